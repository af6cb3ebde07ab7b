"""The command line: which host runs what. The only place that ends the process."""

import gc
import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

from ral import __version__
from ral.cancel import BATCH, Cancelled, floor, install, message, status

USAGE = """\
usage: ral [options]                    an interactive shell, when standard input is a terminal
       ral [options] FILE [ARG …]       run a file
       ral [options] -c CODE [ARG …]    run CODE
       ral [options] -s                 run the program on standard input

options:
  -n, --check            parse and check, run nothing (with FILE or -c)
  --dump-ast             parse, and print the tree to standard error (with FILE or -c)
  -i                     interactive, also when standard input is no terminal
  --grace SECONDS        from the polite signal to SIGKILL for what is stopped (0.5)
  --recursion-limit N    nested calls that are no tail calls (100000)
  --norc                 read no startup file
  -e, -u                 accepted, and without effect
  --version, --help

environment: RAL_GRACE, RAL_CLEANUP (seconds), RAL_PATH (modules), RAL_FLOOR (c or python)
"""


class Options:
    """What the command line asks for."""

    __slots__ = ("args", "check", "code", "dump", "file", "grace", "interactive", "limit", "login", "mode", "stdin")

    def __init__(self) -> None:
        self.mode = ""
        self.code: str | None = None
        self.file: str | None = None
        self.args: list[str] = []
        self.check = False
        self.dump = False
        self.interactive = False
        self.stdin = False
        self.login = False
        self.grace: float | None = None
        self.limit: int | None = None


class Usage(Exception):
    """A command line that can't be understood."""


def read_options(argv: list[str]) -> Options:
    """Options up to the file or the code; everything after that is the program's."""
    o = Options()
    at = 0
    while at < len(argv):
        word = argv[at]
        at += 1
        if word == "--":
            break
        if word in ("--version", "--help", "-h"):
            o.mode = "version" if word == "--version" else "help"
            return o
        if word == "--check":
            o.check = True
        elif word == "--dump-ast":
            o.dump = True
        elif word == "--login":
            o.login = True
        elif word in ("--norc", "--noprofile"):
            pass  # no startup file is read yet
        elif word in ("--audit", "--pretty", "--capabilities"):
            raise Usage(f"{word} is not yet supported")
        elif word in ("--grace", "--recursion-limit") or word.startswith(("--grace=", "--recursion-limit=")):
            name, given, value = word.partition("=")
            if not given:
                if at >= len(argv):
                    raise Usage(f"{name} needs a value")
                value = argv[at]
                at += 1
            number_option(o, name, value)
        elif word.startswith("--"):
            raise Usage(f"unknown option {word}")
        elif word.startswith("-") and len(word) > 1:
            for letter in word[1:]:
                if letter == "c":
                    if at >= len(argv):
                        raise Usage("-c needs a program")
                    o.code = argv[at]
                    o.args = argv[at + 1 :]
                    return o
                if letter == "s":
                    o.stdin = True
                elif letter == "i":
                    o.interactive = True
                elif letter == "n":
                    o.check = True
                elif letter == "l":
                    o.login = True
                elif letter not in "eu":
                    raise Usage(f"unknown option -{letter}")
        else:
            at -= 1
            break
    if at < len(argv):
        o.file = argv[at]
        o.args = argv[at + 1 :]
    return o


def number_option(o: Options, name: str, value: str) -> None:
    try:
        number = float(value) if name == "--grace" else int(value)
        if not 0 <= number < 1e9:
            raise ValueError
    except ValueError:
        raise Usage(f"{name} takes a number, found {value!r}") from None
    if name == "--grace":
        o.grace = float(number)
    else:
        o.limit = max(100, int(number))


def leave(code: int) -> "NoReturn":
    """End the process at once: nothing of Python's own is left to do, and a wedged thread must not hold it."""
    posix._exit(code & 0xFF)


def hold_standard_streams() -> None:
    """A closed standard descriptor stays useless instead of being taken by the next file that is opened."""
    for fd in (0, 1, 2):
        try:
            posix.fstat(fd)
        except OSError:
            got = posix.open("/dev/null", posix.O_RDONLY)  # writes to it fail, as they would have
            if got != fd:
                posix.dup2(got, fd)
                posix.close(got)


def main() -> "NoReturn":
    """Run ral with `sys.argv`. Never returns."""
    try:
        code = start(sys.argv[1:])
    except Cancelled as e:
        code = status(e.cause)
        say(f"ral: {message(e.cause)}\n")
    except BrokenPipeError:
        code = 141
    except OSError as e:
        say(f"ral: the system refuses: {e.strerror or e}\n")
        code = 1
    except MemoryError:
        say("ral: out of memory\n")
        code = 1
    except Exception as e:
        code = internal(e)
    leave(code)


def internal(e: BaseException) -> int:
    """A bug of ral's own: said as such, with where it happened, never as a traceback."""
    place = ""
    trace = e.__traceback__
    while trace is not None:
        place = f"{trace.tb_frame.f_code.co_filename.rpartition('/ral/')[2]}:{trace.tb_lineno}"
        trace = trace.tb_next
    shown = str(e).split("\n")[0][:200]
    say(
        f"error[R9999]: internal error in ral: {type(e).__name__}: {shown} ({place})\n"
        "  hint: this is a bug; please report it with the program that caused it\n"
    )
    return 70


def say(text: str) -> None:
    """A line on standard error; a closed or full one changes nothing."""
    try:
        posix.write(2, text.encode("utf-8", "backslashreplace"))
    except OSError:
        pass


def start(argv: list[str]) -> int:
    if sys.platform == "win32":
        sys.stderr.write("ral: Windows is not supported yet\n")
        return 2
    gc.set_threshold(50_000, 20, 100)  # values are made and kept in bulk; small generations cost more than they free
    hold_standard_streams()
    if posix.getuid() != posix.geteuid():
        say("ral: a setuid shell is refused\n")
        return 2
    try:
        o = read_options(argv)
    except Usage as e:
        say(f"ral: {e}\n{USAGE.splitlines()[0]}\n  hint: ral --help lists the options\n")
        return 2
    if o.mode == "help":
        posix.write(1, USAGE.encode())
        return 0
    if o.mode == "version":
        floor_name = "C floor" if floor.KIND == "c" else "Python twin (no floor: see docs/cancellation.md)"
        python = ".".join(map(str, sys.version_info[:3]))
        posix.write(1, f"ral {__version__} (Python {python}, {floor_name})\n".encode())
        return 0
    batch = o.code is not None or o.file is not None or o.stdin
    if not batch and (o.interactive or posix.isatty(0)):
        if o.check or o.dump:
            say("ral: --check and --dump-ast need a file or -c\n")
            return 2
        return interactive(o)
    install(BATCH)
    return run_batch(o)


def run_batch(o: Options) -> int:
    from ral import batch
    from ral.diag import StaticError, render

    try:
        if o.code is not None:
            source = batch.checked_source("-c", o.code, None)
        elif o.file is not None:
            source = batch.load(o.file)
        else:
            if o.check or o.dump:
                say("ral: --check and --dump-ast need a file or -c\n")
                return 2
            source = batch.text_source("standard input", batch.read_stdin(), None)
            o.args = []
    except StaticError as e:
        say("".join(render(p) for p in e.problems))
        return e.status
    if o.dump:
        return batch.dump(source)
    if o.check:
        return batch.check(source)
    return batch.run(source, o.args, o.grace, o.limit)


def interactive(o: Options) -> int:
    import site

    site.main()  # the launcher starts without it; prompt_toolkit lives in site-packages
    from ral.repl import loop

    return loop(o.grace, o.limit)
