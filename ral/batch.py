"""Batch: a program from a file, from `-c` or from standard input, run once.

In: source text and arguments. Out: an exit status, diagnostics on standard error. SIGINT, SIGTERM and SIGHUP walk the
ladder here.
"""

import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ral.session import Outcome, Session

from ral.cancel import EXPLICIT, INTERRUPT, TERMINATE, floor
from ral.diag import Incomplete, Problem, Source, StaticError, normalise, render
from ral.pipeline.streams import watcher, write_quietly
from ral.session import Session as make_session


def run(source: Source, args: list[str], grace: float | None, limit: int | None) -> int:
    """Run a program to its end and return the exit status; dies of SIGINT where the contract says so."""
    session = make_session(False, args)
    session.names.script = source.path
    if grace is not None:
        session.shell.grace = grace
    if limit is not None:
        session.recursion_limit = limit
    try:
        outcome = session.run(source)
    except Incomplete as e:
        write(2, render(e.problem))
        return 2
    report(outcome)
    end(session, outcome)
    return outcome.status


def report(outcome: "Outcome") -> None:
    """Print what a failure has to say; a reader that left is told nothing."""
    for problem in outcome.problems:
        write(2, render(problem))
    fault = outcome.fault
    if fault is not None and fault.reason != ("cancelled", "reader-gone"):
        from ral.diag.report import render_fault

        # A standard stream that is closed or full has no place in the program: one line says it.
        stream = fault.code == "R0050" and "standard" in fault.message
        write(2, f"ral: {fault.message}\n" if stream else render_fault(fault))
    if outcome.kind == "cancelled":
        from ral.cancel import message

        write(2, f"ral: {message(outcome.cause)}\n")


def end(session: "Session", outcome: "Outcome") -> None:
    """The end of a run ends its workers, with the run's own cause when there is one."""
    cause = outcome.cause or session.root.cause() or EXPLICIT
    session.end_workers(cause)
    late = session.root.cause()
    if late and outcome.kind != "cancelled" and session.ending:
        outcome.kind, outcome.cause, outcome.status = "cancelled", late, 143 if late == TERMINATE else 130
    if posix.getpid() == 1:
        from ral.process.teardown import teardown

        teardown([], TERMINATE, session.root, session.shell.grace, everyone=True)
    if session.pass_on or outcome.cause == INTERRUPT:
        answer_key(session, outcome.cause)


def answer_key(session: "Session", cause: int) -> None:
    """Die of SIGINT, after all cleanup, where a calling shell watches how we end: its loop must stop too. A key that fell
    on a group that had the terminal on loan is passed on to our own group."""
    from ral.process.signals import SIGINT, die_of

    watched = cause == INTERRUPT and posix.getpid() != 1 and in_foreground()
    if watched and SIGINT not in floor.ignored_at_start():
        die_of(SIGINT, group=session.pass_on)
    elif session.pass_on:
        posix.kill(0, SIGINT)


def in_foreground() -> bool:
    """Whether our own group is a terminal's foreground, so that a calling shell watches how we end."""
    try:
        fd = posix.open("/dev/tty", posix.O_RDWR | posix.O_CLOEXEC | posix.O_NOCTTY)
    except OSError:
        return False
    try:
        return posix.tcgetpgrp(fd) == posix.getpgrp()
    except OSError:
        return False
    finally:
        posix.close(fd)


def check(source: Source) -> int:
    """`--check`: everything but the run."""
    from ral.syntax import parse

    session = make_session(False, [])
    session.names.script = source.path
    try:
        session.compile(source, parse(source), session.names)
    except Incomplete as e:
        write(2, render(e.problem))
        return 2
    except StaticError as e:
        for problem in e.problems:
            write(2, render(problem))
        return e.status
    return 0


def dump(source: Source) -> int:
    """`--dump-ast`: the surface tree, on standard error."""
    from ral.syntax import parse
    from ral.syntax.dump import dump as show

    try:
        program = parse(source)
    except (Incomplete, StaticError) as e:
        problems = [e.problem] if isinstance(e, Incomplete) else e.problems
        for problem in problems:
            write(2, render(problem))
        return 2
    write(2, show(program))
    return 0


def load(path: str) -> Source:
    """A script file's source. Raises `StaticError`: status 1 when it can't be read, 2 when it is no text."""
    try:
        fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
        try:
            data = read_descriptor(fd)
        finally:
            posix.close(fd)
    except OSError as e:
        hint = "check the path" if isinstance(e, FileNotFoundError) else ""
        if isinstance(e, IsADirectoryError):
            hint = "name a file in it"
        raise StaticError([Problem("L0010", f"can't read {path}: {e.strerror}", None, 0, 0, hint)], 1) from None
    except ValueError as e:
        raise StaticError([Problem("L0010", f"can't read {path!r}: {e}", None, 0, 0)], 1) from None
    full = path if path.startswith("/") else posix.getcwd() + "/" + path
    return text_source(path, data, full)


def text_source(name: str, data: bytes, path: str | None) -> Source:
    """Source text from bytes."""
    try:
        text = data.decode()
    except UnicodeDecodeError as e:
        line = data.count(b"\n", 0, e.start) + 1
        what = f"{name} is not UTF-8 text (line {line})"
        raise StaticError([Problem("L0001", what, None, 0, 0, "save it as UTF-8; is it a ral program?")], 2) from None
    return checked_source(name, text, path)


def checked_source(name: str, text: str, path: str | None) -> Source:
    if "\0" in text:
        what = f"{name} holds a NUL character"
        raise StaticError([Problem("L0001", what, None, 0, 0, "is it a program for the machine, not for ral?")], 2)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise StaticError([Problem("L0001", f"{name} is not UTF-8 text", None, 0, 0)], 2) from None
    return Source(name, normalise(text), path)


def read_descriptor(fd: int) -> bytes:
    """Everything a descriptor has to give."""
    parts: list[bytes] = []
    while data := posix.read(fd, 1 << 20):
        parts.append(data)
    return b"".join(parts)


def read_stdin() -> bytes:
    """The program on standard input; a stop while it comes ends the wait."""
    from ral.cancel.scopes import startup_scope

    scope = startup_scope()
    poll = watcher(scope, (0,))
    parts: list[bytes] = []
    while True:
        ready = poll.poll()
        if scope.cause():
            from ral.cancel import Cancelled

            raise Cancelled(scope.cause(), scope)
        if any(fd == 0 for fd, _ in ready):
            try:
                data = posix.read(0, 1 << 20)
            except OSError as e:
                what = f"can't read standard input: {e.strerror}"
                raise StaticError([Problem("L0010", what, None, 0, 0)], 1) from None
            if not data:
                return b"".join(parts)
            parts.append(data)


def write(fd: int, text: str) -> None:
    """A diagnostic; a closed or full standard error changes nothing."""
    write_quietly(fd, text.encode("utf-8", "backslashreplace"))
