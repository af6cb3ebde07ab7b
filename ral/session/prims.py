"""The names that generated code finds in its globals."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ral.machine.shell import Shell
    from ral.session.session import Session

from ral.builtins.catalogue import load
from ral.builtins.control import echo
from ral.cancel import check
from ral.core.native import mangle
from ral.machine import faults, values
from ral.machine.calls import Fn0, Fn1, Fn2, Fn3, FnN, function, run
from ral.pipeline import dynamic
from ral.pipeline.dispatch import exec_
from ral.pipeline.lookup import environment, home, tilde


def namespace(session: "Session") -> "dict[str, Any]":
    """Fresh globals for a session's code."""
    return {
        "__name__": "ral program",
        "__builtins__": {"type": type, "str": str, "tuple": tuple, "BaseException": BaseException},
        "check": check,
        "run": run,
        "Fn0": Fn0,
        "Fn1": Fn1,
        "Fn2": Fn2,
        "Fn3": Fn3,
        "FnN": FnN,
        "Variant": values.Variant,
        "equal": values.equal,
        "FAILS": faults.FAILS,
        "error_record": faults.error_record,
        "overflow": faults.overflow,
        "infinite": faults.infinite,
        "divide": faults.divide,
        "remainder": faults.remainder,
        "add": faults.add,
        "subtract": faults.subtract,
        "multiply": faults.multiply,
        "negate": faults.negate,
        "index": faults.index,
        "take_list": faults.take_list,
        "take_field": faults.take_field,
        "map_of": faults.map_of,
        "scalar": faults.scalar,
        "capture_open": dynamic.capture_open,
        "capture_fail": dynamic.capture_fail,
        "capture_close": dynamic.capture_close,
        "within_enter": dynamic.within_enter,
        "within_leave": dynamic.within_leave,
        "within_fail": dynamic.within_fail,
        "guard_open": dynamic.guard_open,
        "guard_enter": dynamic.guard_enter,
        "guard_leave": dynamic.guard_leave,
        "next_arm": dynamic.next_arm,
        "no_arm": dynamic.no_arm,
        "quit_": dynamic.quit_,
        "redirect_open": redirect_open,
        "exec_": exec_,
        "pipeline_": pipeline_,
        "tilde": tilde,
        "environment": environment,
        "ambient": ambient,
        "spawn_": background,
        "admit": admit,
    }


# What a start need not load is put in place by its first use.


def redirect_open(sh: "Shell", redirects: "list[Any]") -> "Any":
    from ral.pipeline import redirect

    space = sh.session.globals
    for name in ("redirect_open", "redirect_close", "redirect_fail"):
        space[name] = getattr(redirect, name)
    return redirect.redirect_open(sh, redirects)


def pipeline_(sh: "Shell", parts: "list[Any]") -> "Any":
    from ral.pipeline.runner import pipeline

    sh.session.globals["pipeline_"] = pipeline
    return pipeline(sh, parts)


def ambient(sh: "Shell", name: str) -> "Any":
    """A value of the live shell, computed when it is read."""
    if name == "ENV":
        return dict(sh.env)
    if name == "ARGS":
        return sh.args
    if name == "CWD":
        base = sh.env.get("HOME", "").rstrip("/")
        if base and (sh.cwd == base or sh.cwd.startswith(base + "/")):
            return "~" + sh.cwd[len(base) :]
        return sh.cwd
    if name == "USER":
        return sh.env.get("USER", sh.env.get("USERNAME", ""))
    import posix

    try:
        return max(1, len(posix.sched_getaffinity(0)))
    except AttributeError:
        return posix.cpu_count() or 1


def background(sh: "Shell", code: "Any", text: str, bare: bool) -> "Any":
    from ral.builtins.workers import background as start

    return start(sh, code, text, bare)


def admit(value: "Any", spec: "Any", name: str) -> "Any":
    from ral.builtins.codecs import admit as decide

    return decide(value, spec, name)


def provide(space: "dict[str, Any]", names: list[str]) -> None:
    """Load the builtins that a program mentions."""
    for name in names:
        key = "n_" + mangle(name)
        if key not in space:
            code, arity = load(name)
            space[key] = code
            space["N_" + mangle(name)] = function(code, arity)


__all__ = ["echo", "home", "namespace", "provide"]
