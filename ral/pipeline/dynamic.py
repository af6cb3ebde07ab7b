"""The dynamic scopes of the language: captures, `within`, `guard`, and what `try` and `?` do with a cancellation."""

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from ral.cancel import Scope
    from ral.machine.shell import Shell, Sink

from ral.cancel import DEADLINE, ROOT_ABORT, Cancelled, check, floor, message, shield, status, tag
from ral.diag import Exit, Fault
from ral.machine.faults import as_fault
from ral.machine.shell import Frame
from ral.machine.values import text
from ral.pipeline.lookup import Env
from ral.pipeline.streams import Capture

CLEANUP_SECONDS = 5.0


# Captures


def capture_open(sh: "Shell") -> Capture:
    """Replace standard output by a buffer."""
    held = Capture(sh.out)
    sh.out = held
    sh.unparkable += 1
    return held


def capture_fail(sh: "Shell", held: Capture) -> None:
    """The body halted: what it wrote goes to the stream that the capture replaced."""
    sh.unparkable -= 1
    sh.out = held.outer
    if held.chunks:
        try:
            held.outer.write(b"".join(held.chunks), sh)
        except (Fault, Cancelled):
            pass  # the failure on its way out is the one to report


def capture_close(sh: "Shell", held: Capture) -> str:
    """The captured text: strict UTF-8, one final line end gone."""
    sh.unparkable -= 1
    sh.out = held.outer
    data = b"".join(held.chunks)
    if data.endswith(b"\n"):
        data = data[:-2] if data.endswith(b"\r\n") else data[:-1]
    try:
        return data.decode()
    except UnicodeDecodeError as e:
        held.outer.write(b"".join(held.chunks), sh)
        raise Fault(
            f"the captured output is not UTF-8 (byte {e.start})",
            hint="keep the bytes with `| from-bytes`",
            code="R0031",
        ) from None


# within


class Within:
    """What a `within` changed."""

    __slots__ = ("cwd", "env", "flag", "grace", "handlers", "kept_cwd", "scope", "timer")

    def __init__(self, sh: "Shell") -> None:
        self.cwd = sh.cwd
        self.env = sh.env
        self.handlers = sh.handlers
        self.scope = sh.scope
        self.flag = sh.flag
        self.grace = sh.grace
        self.timer: Scope | None = None
        self.kept_cwd = True


def within_enter(sh: "Shell", options: "dict[str, Any]") -> Within:
    """Validate every option, then install them: environment, directory, handlers, deadline."""
    held = Within(sh)
    env = environment_overlay(sh, options["env"]) if "env" in options else sh.env
    cwd = directory(sh, options["dir"], "within") if "dir" in options else sh.cwd
    seconds = positive(options["timeout"], "timeout") if "timeout" in options else 0.0
    grace = positive(options["grace"], "grace") if "grace" in options else sh.grace
    named = options.get("handlers", {})
    for name, fn in named.items():
        if fn.arity() != 1:
            raise Fault(f"the handler of `{name}` takes one parameter: {{ |args| … }}", code="R0070")
    catch_all = options.get("handler")
    if catch_all is not None and catch_all.arity() != 2:
        raise Fault("the catch-all `handler` takes two parameters: { |name args| … }", code="R0070")
    held.kept_cwd = "dir" not in options
    sh.env, sh.cwd, sh.grace = env, cwd, grace
    if named or catch_all is not None:
        sh.handlers = (*sh.handlers, Frame(named, catch_all))
    if seconds:
        timer = sh.scope.child()
        timer.set_deadline(time.monotonic() + seconds)
        held.timer = timer
        sh.scope = timer
        sh.flag = floor.flag(timer)
        sh.unparkable += 1
    return held


def positive(value: float, name: str) -> float:
    if value <= 0:
        raise Fault(f"`{name}` must be above 0 seconds, found {text(value)}", code="R0071")
    return float(value)


def restore(sh: "Shell", held: Within) -> None:
    if not held.kept_cwd:
        sh.cwd = held.cwd
    sh.env, sh.handlers, sh.grace = held.env, held.handlers, held.grace
    if held.timer is not None:
        held.timer.clear_deadline()  # the clock stops before the cause is read
        sh.scope, sh.flag = held.scope, held.flag
        sh.unparkable -= 1


def within_leave(sh: "Shell", held: Within) -> None:
    """The body ended with a value."""
    restore(sh, held)
    if held.timer is not None:
        ended(sh, held.timer)


def within_fail(sh: "Shell", held: Within, error: BaseException) -> "NoReturn":
    """The body halted; a deadline of this `within` is its own failure, anything else goes on."""
    restore(sh, held)
    if held.timer is not None and isinstance(error, Cancelled):
        ended(sh, held.timer)
    raise error


def ended(sh: "Shell", timer: "Scope") -> None:
    """Raise what a deadline that fired means outside its scope."""
    if timer.own_cause() == DEADLINE and not sh.scope.cause():
        raise Fault(
            message(DEADLINE),
            status(DEADLINE),
            "within",
            ("cancelled", tag(DEADLINE)),
            "give it more time, or make the work smaller",
            "R0002",
        )


def environment_overlay(sh: "Shell", added: "dict[str, Any]") -> Env:
    env = Env(sh.env)
    for key, value in added.items():
        if key in ("PWD", "OLDPWD", "RAL_JOB"):
            hint = "ral keeps it itself" if key == "RAL_JOB" else "use the option dir, or cd"
            raise Fault(f"`{key}` can't be set", hint=hint, code="R0072")
        if not isinstance(value, str | int | float):
            raise Fault(
                f"the environment variable `{key}` is text, a number or a Bool, found {text(value)}", code="R0072"
            )
        shown = text(value)
        if "\0" in shown or "\0" in key or "=" in key or not key:
            raise Fault(f"`{key}` can't be an environment variable: a NUL or an `=` is in it", code="R0072")
        env[key] = shown
    return env


def directory(sh: "Shell", name: str, cmd: str) -> str:
    """A directory that exists, as an absolute path."""
    import posix

    from ral.pipeline.lookup import absolute

    if not name:
        raise Fault("an empty path names no directory", 1, cmd, code="R0073")
    path = absolute(sh, name)
    try:
        mode = posix.stat(path).st_mode
        if mode & 0o170000 != 0o040000:
            raise Fault(f"{name} is no directory", 1, cmd, code="R0073")
        if not posix.access(path, posix.X_OK):
            raise Fault(f"can't enter {name}: Permission denied", 1, cmd, code="R0073")
    except (OSError, ValueError) as e:
        reason = e.strerror if isinstance(e, OSError) else str(e)
        raise Fault(f"can't enter {name}: {reason}", 1, cmd, hint="check the path", code="R0073") from None
    return path


# guard, try and ?


class Cleanup:
    """What a `guard` changed for its cleanup."""

    __slots__ = ("flag", "out", "scope")

    def __init__(self, sh: "Shell") -> None:
        self.scope = sh.scope
        self.flag = sh.flag
        self.out: Sink = sh.out


def guard_open(sh: "Shell") -> None:
    """A guard's body begins; a job that stops in it is resumed."""
    sh.unparkable += 1


def guard_enter(sh: "Shell", error: BaseException | None) -> Cleanup | None:
    """Prepare the cleanup. When a cancellation started it, it runs under a shield with what is left of the run's budget;
    after ROOT_ABORT, or when the budget is spent, it is skipped (None)."""
    sh.unparkable -= 1
    held = Cleanup(sh)
    while isinstance(sh.out, Capture):  # its output is real output
        sh.out = sh.out.outer
    cause = sh.scope.cause()
    if cause:
        left = sh.session.cleanup_left(sh.scope)
        if cause >= ROOT_ABORT or left <= 0:
            sh.out = held.out
            return None
        sh.scope = shield(sh.scope, left, sh.grace)
        sh.flag = floor.flag(sh.scope)
    return held


def guard_leave(sh: "Shell", held: Cleanup) -> None:
    sh.scope, sh.flag, sh.out = held.scope, held.flag, held.out


def next_arm(sh: "Shell", error: BaseException) -> None:
    """An alternative of `?` failed: poll before the next."""
    as_fault(error)
    if sh.flag:
        check(sh)


def no_arm(tag: str) -> "NoReturn":
    raise Fault(f"no arm for `` `{tag} ``", code="R0074")


def quit_(sh: "Shell", value: int) -> "NoReturn":
    raise Exit(value)
