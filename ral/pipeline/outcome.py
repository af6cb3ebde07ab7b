"""How a command's end reads: failures by status."""

from ral.diag import Fault

HINTS = {
    "grep": {1: "grep exits 1 when nothing matched"},
    "diff": {1: "diff exits 1 when the files differ"},
    "cmp": {1: "cmp exits 1 when the files differ"},
    "test": {1: "test exits 1 for false"},
}


def failure(name: str, status: int) -> Fault:
    """The failure of a command: status is an exit code, or a negative signal."""
    if status >= 0:
        hint = HINTS.get(name, {}).get(status, "")
        return Fault(f"`{name}` exited with status {status}", status, name, ("exited", status), hint, "R0040")
    from ral.process.signals import name as signal_name

    return Fault(
        f"`{name}` was killed by {signal_name(-status)}", 128 - status, name, ("signaled", -status), code="R0041"
    )


def reader_gone(cmd: str = "<runtime>") -> Fault:
    """The reader of a stream left; nothing is printed about it."""
    return Fault("the reader is gone", 141, cmd, ("cancelled", "reader-gone"), code="R0042")
