"""What comes back from a turn. Cancelled is not failed: every surface keeps the four apart, and a parked job is a fifth."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ral.diag import Fault, Problem
    from ral.pipeline.job import Job


class Outcome:
    """kind: `ok` (value), `failed` (fault), `refused` (problems, nothing ran), `cancelled` (cause), `exit`, `parked` (job).

    status: the exit status that this outcome has.
    """

    __slots__ = ("cause", "fault", "job", "kind", "problems", "status", "value")

    def __init__(self, kind: str, status: int) -> None:
        self.kind = kind
        self.status = status
        self.value: Any = None
        self.fault: Fault | None = None
        self.problems: list[Problem] = []
        self.cause = 0
        self.job: Job | None = None
