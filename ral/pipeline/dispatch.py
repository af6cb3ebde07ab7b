"""Which thing a command's name reaches: a handler, a base command, or a program."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ral.machine.shell import Frame, Shell

from ral.machine.calls import run
from ral.machine.values import text


def run_external(sh: "Shell", name: str, mode: str, args: "list[Any]") -> None:
    """Run a program; the runner is loaded with the first one."""
    global _run
    if _run is None:
        from ral.pipeline.runner import run_external as _run
    _run(sh, name, mode, args)


_run: "Any" = None


def exec_(sh: "Shell", name: str, mode: str, args: "list[Any]") -> None:
    """Run a command. Raises `Fault` when it fails, `Cancelled` when the run is stopped."""
    if mode == "bare" or mode == "base":
        if sh.handlers and handled(sh, name, args, mode == "bare"):
            return
        if mode == "base":
            sh.session.bases[name](sh, args)
            return
    run_external(sh, name, mode, args)


def handler_of(sh: "Shell", name: str, catch_all: bool) -> "tuple[int, Any] | None":
    """The frame and the function that answer a name: any named handler outranks any catch-all."""
    frames = sh.handlers
    for i in range(len(frames) - 1, -1, -1):
        fn = frames[i].named.get(name)
        if fn is not None:
            return i, fn
    if catch_all:
        for i in range(len(frames) - 1, -1, -1):
            if frames[i].catch_all is not None:
                return i, None
    return None


def handled(sh: "Shell", name: str, args: "list[Any]", catch_all: bool) -> bool:
    """Run the handler of a name, its whole frame masked meanwhile."""
    found = handler_of(sh, name, catch_all)
    if found is None:
        return False
    i, fn = found
    frames: tuple[Frame, ...] = sh.handlers
    frame = frames[i]
    shown = [text(a) for a in args]
    sh.handlers = frames[:i] + frames[i + 1 :]
    try:
        if fn is not None:
            run(sh, fn.a1(sh, shown))
        else:
            run(sh, frame.catch_all.a2(sh, name, shown))
    finally:
        sh.handlers = frames
    return True
