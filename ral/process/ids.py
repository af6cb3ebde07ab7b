"""Numbers with a type: a `Pid` where a `Pgid` belongs doesn't check."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NewType

    Pid = NewType("Pid", int)
    Pgid = NewType("Pgid", int)
else:
    Pid = Pgid = int

__all__ = ["Pgid", "Pid"]
