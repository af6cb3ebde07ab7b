"""From a command's name to a program: PATH, paths, arguments and environment as the operating system wants them."""

import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ral.machine.shell import Shell

from ral.diag import Fault
from ral.machine.values import Variant, text

DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"


class Env(dict[str, str]):
    """An environment: never changed once in force, so its encoded form is kept."""

    __slots__ = ("block", "entered", "full")

    full: list[bytes]

    def __init__(self, *args: "Any") -> None:
        super().__init__(*args)
        self.entered = ""

    def encoded(self) -> list[bytes]:
        try:
            return self.block
        except AttributeError:
            pass
        self.block: list[bytes] = [f"{k}={v}".encode("utf-8", "surrogateescape") for k, v in self.items()]
        return self.block

    def for_child(self, cwd: str) -> list[bytes]:
        """The encoded form with PWD, as a child gets it."""
        if self.entered != cwd:
            self.entered = cwd
            self.full = [*self.encoded(), b"PWD=" + cwd.encode("utf-8", "surrogateescape")]
        return self.full


def home(sh: "Shell") -> str:
    """The home directory, or a failure that names HOME."""
    value = sh.env.get("HOME", "")
    if not value:
        raise Fault("`~` has no meaning: HOME is not set", hint="within [env: [HOME: '/path']] { … }", code="R0060")
    return value


def tilde(sh: "Shell", word: str) -> str:
    """A word that starts with `~`, its home directory written out."""
    return home(sh) + word[1:]


def absolute(sh: "Shell", path: str) -> str:
    """A path resolved lexically against the logical directory; `~` is expanded."""
    if path == "~" or path.startswith("~/"):
        path = tilde(sh, path)
    if not path.startswith("/"):
        path = sh.cwd + "/" + path
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if parts:
                parts.pop()
        elif part and part != ".":
            parts.append(part)
    return "/" + "/".join(parts)


def joined(sh: "Shell", path: str) -> str:
    """A path made absolute for a system call, `..` left to the file system."""
    if path == "~" or path.startswith("~/"):
        path = tilde(sh, path)
    return path if path.startswith("/") else sh.cwd + "/" + path


KNOWN: dict[tuple[str, str], str] = {}  # (PATH, name) -> program


def find_program(sh: "Shell", name: str, mode: str) -> str:
    """The program that a command names. Raises `Fault` 127 when there is none, 126 when it can't be run."""
    if mode == "path":
        return direct_program(sh, name)
    path = sh.env.get("PATH", DEFAULT_PATH)
    found = KNOWN.get((path, name))
    if found is not None:
        return found
    blocked = ""
    for directory in path.split(":"):
        candidate = f"{directory or '.'}/{name}"
        full = candidate if candidate.startswith("/") else f"{sh.cwd}/{candidate}"
        try:
            mode_bits = posix.stat(full).st_mode
        except (OSError, ValueError):
            continue
        if mode_bits & 0o170000 == 0o040000:
            continue
        if not posix.access(full, posix.X_OK):
            blocked = blocked or full
            continue
        if candidate.startswith("/"):
            KNOWN[(path, name)] = full
        return full
    if blocked:
        raise Fault(
            f"`{name}` can't be run: {blocked} is not executable",
            126,
            name,
            ("not-runnable", None),
            f"chmod +x {blocked}",
            "R0062",
        )
    raise Fault(f"command not found: {name}", 127, name, ("not-found", None), missing_hint(sh, name), "R0061")


def missing_hint(sh: "Shell", name: str) -> str:
    """What to try when a command does not exist."""
    from ral.core.names import nearest

    seen: list[str] = []
    for directory in sh.env.get("PATH", DEFAULT_PATH).split(":"):
        try:
            seen += posix.listdir(directory or ".")
        except OSError:
            continue
    close = nearest(name, seen + list(sh.session.natives))
    if close:
        return f"did you mean {close}?"
    return "check the spelling, or install the program that has it"


def direct_program(sh: "Shell", name: str) -> str:
    full = joined(sh, name)
    try:
        bits = posix.stat(full).st_mode
    except FileNotFoundError:
        raise Fault(f"command not found: {name}", 127, name, ("not-found", None), "no such file", "R0061") from None
    except (OSError, ValueError) as e:
        reason = e.strerror if isinstance(e, OSError) else str(e)
        raise Fault(f"`{name}` can't be run: {reason}", 126, name, ("not-runnable", None), code="R0062") from None
    if bits & 0o170000 == 0o040000:
        raise Fault(f"`{name}` is a directory", 126, name, ("not-runnable", None), f"cd {name} enters it", "R0062")
    if not posix.access(full, posix.X_OK):
        raise Fault(
            f"`{name}` can't be run: it is not executable",
            126,
            name,
            ("not-runnable", None),
            f"chmod +x {name}",
            "R0062",
        )
    return full


def argv_of(name: str, args: "list[Any]") -> list[bytes]:
    """The argument vector; a value that is no text is refused."""
    argv = [name.encode("utf-8", "surrogateescape")]
    for value in args:
        kind = type(value)
        if kind is str:
            shown: str = value
        elif kind is int or kind is float or kind is bool or value is None or kind is Variant:
            shown = text(value)
        else:
            hint = "spread a list with ...$xs" if kind is list else "encode it first, for instance with to-json"
            raise Fault(f"cannot pass {text(value)} to the external command `{name}`", 1, name, hint=hint, code="R0063")
        data = shown.encode("utf-8", "surrogateescape")
        if b"\0" in data:
            raise Fault(
                f"an argument of `{name}` holds a NUL character", 1, name, hint="pass it through a pipe", code="R0063"
            )
        argv.append(data)
    return argv


def environment(sh: "Shell") -> dict[str, str]:
    """`$ENV`: the effective environment without what ral keeps for itself."""
    return sh.env


def refused(name: str, path: str, e: OSError) -> Fault:
    """The failure of a program that exists and could not be started."""
    import errno

    hint = ""
    reason = e.strerror or "it could not be started"
    if e.errno == errno.ENOENT:
        try:
            fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
            first = posix.read(fd, 256).split(b"\n")[0]
            posix.close(fd)
        except OSError:
            return Fault(f"command not found: {name}", 127, name, ("not-found", None), "the file is gone", "R0061")
        if first.startswith(b"#!"):
            interpreter = first[2:].decode("utf-8", "replace").split()
            reason = f"its interpreter {interpreter[0] if interpreter else ''} does not exist"
            hint = "correct the first line of the script, or install the interpreter"
    elif e.errno == errno.ENOEXEC:
        reason = "it is no program for this machine and names no interpreter"
        hint = "begin a script with #!/bin/sh or another interpreter"
    elif e.errno == errno.E2BIG:
        reason = "its arguments and environment are too long"
        hint = "pass the data through a pipe or a file"
    return Fault(f"`{name}` can't be run: {reason}", 126, name, ("not-runnable", None), hint, "R0062")
