"""Failure, the session's directory, diagnostics, questions, modules, aliases."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from ral.machine.calls import Fn
    from ral.machine.shell import Shell

from ral.cancel import check
from ral.diag import Exit, Fault
from ral.machine.calls import run
from ral.machine.faults import FAILS
from ral.machine.values import text
from ral.pipeline.dynamic import directory


def echo(sh: "Shell", args: "list[Any]") -> None:
    """Write the arguments' text forms, separated by single spaces, and a newline."""
    line = " ".join([a if type(a) is str else text(a) for a in args]) + "\n"
    sh.out.write(line.encode("utf-8", "surrogateescape"), sh)


def fail_(sh: "Shell", record: "dict[str, Any]") -> "NoReturn":
    status, message = record.get("status"), record.get("message")
    if type(status) is not int or type(message) is not str:
        raise Fault("a failure is a record with an Int `status` and a String `message`", 1, "fail", code="R0150")
    if status == 0:
        raise Fault("a failure's status is not 0", 1, "fail", hint="to succeed use return", code="R0150")
    raise Fault(message, status if 0 <= status <= 255 else 255, "fail", code="R0151")


def exit_(sh: "Shell", status: int) -> "NoReturn":
    raise Exit(status)


quit_ = exit_


def cd_(sh: "Shell", path: str) -> None:
    sh.cwd = directory(sh, path, "cd")


def warn_(sh: "Shell", message: str) -> None:
    sh.err.write((message + "\n").encode("utf-8", "surrogateescape"), sh)


def ask_(sh: "Shell", question: str) -> str:
    """Read a line from the controlling terminal, not from standard input."""
    import posix

    from ral.pipeline.streams import watcher

    if sh.place not in ("main", "stage"):
        raise Fault("a worker can't ask: it has no terminal", 1, "ask", hint="ask before you spawn", code="R0153")
    try:
        fd = posix.open("/dev/tty", posix.O_RDWR | posix.O_CLOEXEC | posix.O_NOCTTY)
    except OSError:
        raise Fault(
            "there is no terminal to ask on", 1, "ask", hint="pass the answer as an argument: $ARGS[0]", code="R0153"
        ) from None
    try:
        posix.write(fd, question.encode("utf-8", "surrogateescape"))
        poll = watcher(sh.scope, (fd,))
        data = b""
        while not data.endswith(b"\n"):
            ready = poll.poll()
            if sh.flag:
                check(sh)
            if any(got == fd for got, _ in ready):
                piece = posix.read(fd, 4096)
                if not piece:
                    break
                data += piece
        if not data:
            raise Fault("the answer is missing: end of input", 1, "ask", code="R0153")
    finally:
        posix.close(fd)
    if data.endswith(b"\n"):
        data = data[:-2] if data.endswith(b"\r\n") else data[:-1]
    return data.decode("utf-8", "replace")


def attempt_(sh: "Shell", body: "Fn") -> None:
    succeeds_(sh, body)


def succeeds_(sh: "Shell", body: "Fn") -> bool:
    try:
        run(sh, body.a0(sh))  # type: ignore[attr-defined]
        return True
    except FAILS:
        if sh.flag:
            check(sh)
        return False


def use_(sh: "Shell", path: str, script: str | None = None) -> "Any":
    return sh.session.use(sh, path, script)


def alias_(sh: "Shell", name: str, body: "Fn") -> None:
    if body.arity() != 1:
        raise Fault(f"the alias `{name}` takes one parameter: {{ |args| … }}", 1, "alias", code="R0070")
    sh.session.aliases[name] = body
    sh.handlers = sh.session.with_aliases(sh.handlers)


def unalias_(sh: "Shell", name: str) -> None:
    if name not in sh.session.aliases:
        raise Fault(f"there is no alias `{name}`", 1, "unalias", code="R0154")
    del sh.session.aliases[name]
    sh.handlers = sh.session.with_aliases(sh.handlers)


def help_(sh: "Shell") -> None:
    from ral.builtins.catalogue import CATALOGUE

    width = max(len(name) for name in CATALOGUE)
    lines = [f"{name.ljust(width)}  {row[2]}" for name, row in sorted(CATALOGUE.items())]
    sh.out.write(("\n".join(lines) + "\n").encode(), sh)


def explain_(sh: "Shell", name: str) -> None:
    from ral.builtins.catalogue import CATALOGUE, signature
    from ral.check.types import Printer, Scheme

    out: list[str] = []
    var = sh.session.names.bindings.get(name)
    if var is not None and isinstance(var.scheme, Scheme):
        out.append(f"{name} : {Printer().type(var.scheme.body)}\n  a binding of this session")
    elif name in CATALOGUE:
        out.append(f"{name} : {Printer().type(signature(name).body)}\n  {CATALOGUE[name][2]}")
    else:
        near = [n for n in sorted(CATALOGUE) if name.lower() in n or name.lower() in CATALOGUE[n][2]]
        out.append(f"no word `{name}`" + (f"; related: {', '.join(near)}" if near else ""))
    sh.out.write(("\n".join(out) + "\n").encode(), sh)
