"""A running pipeline: its stages, and what it holds while it runs."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ral.machine.shell import Shell, Sink
    from ral.process.wait import Waiter

from ral.pipeline.redirect import Streams
from ral.process.group import Child, Group
from ral.process.signals import SIGTTIN, SIGTTOU


class Stage:
    """One stage: a program, or code on a thread."""

    __slots__ = (
        "argv",
        "child",
        "code",
        "error",
        "name",
        "over",
        "path",
        "reader_over",
        "shell",
        "streams",
        "text",
        "value",
    )

    def __init__(self, shell: "Shell") -> None:
        self.shell = shell
        self.name = ""
        self.path = ""
        self.argv: list[bytes] = []
        self.streams: Streams | None = None
        self.child: Child | None = None
        self.code: Any = None
        self.value: Any = None
        self.error: BaseException | None = None
        self.over = False
        self.reader_over = False  # the next stage had ended when this one did
        self.text = ""


class Job:
    """A running pipeline."""

    __slots__ = (
        "bell",
        "group",
        "joined",
        "lent",
        "modes",
        "own",
        "sh",
        "stages",
        "tail_fds",
        "text",
        "threads",
        "waiter",
        "was_lent",
    )

    def __init__(self, sh: "Shell", stages: list[Stage]) -> None:
        self.sh = sh
        self.stages = stages
        self.group: Group | None = None
        self.waiter: Waiter | None = None
        self.bell = -1  # eventfd that stage threads ring when they end
        self.threads = 0  # stage threads that have not ended
        self.own: list[int] = []  # descriptors of the parent, to close after the launch
        self.tail_fds: dict[int, Sink] = {}  # read ends that ral drains into a sink
        self.text = ""
        self.modes: Any = None  # the terminal modes a parked job had
        self.lent = False
        self.was_lent = False
        self.joined = False  # its processes are in the group of the pipeline that this one runs in

    # State

    def live(self) -> list[Child]:
        """Children that have not ended; for the pipeline itself also those that its ral stages started in its group."""
        if self.group is not None and not self.joined:
            return self.group.running
        return [s.child for s in self.stages if s.child is not None and s.child.status is None]

    def over(self) -> bool:
        return self.threads == 0 and not self.live()

    def stopped(self) -> bool:
        """Whether every external that lives is stopped; one that stopped for want of the terminal is enough."""
        live = self.live()
        return bool(live) and (all(c.stopped for c in live) or any(c.stopped in (SIGTTIN, SIGTTOU) for c in live))
