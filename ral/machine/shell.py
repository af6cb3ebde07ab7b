"""The shell object that every compiled function receives.

It owns what is dynamic: the working directory, the environment, the handlers, the streams, the cancel scope. Workers and
pipeline stages run on clones, so nothing here is shared by two threads but `session`.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from ral.cancel import Scope

    class Sink(Protocol):
        """Where a stream's bytes go. `fd` is a descriptor that a child may inherit, or -1."""

        fd: int

        def write(self, data: bytes, sh: "Shell") -> None: ...


class Frame:
    """A frame of handlers: named ones, and perhaps a catch-all."""

    __slots__ = ("catch_all", "named")

    def __init__(self, named: "dict[str, Any]", catch_all: "Any") -> None:
        self.named = named
        self.catch_all = catch_all


class Shell:
    """The dynamic context of running code."""

    __slots__ = (
        "args",
        "cwd",
        "env",
        "err",
        "flag",
        "grace",
        "handlers",
        "inp",
        "job",
        "out",
        "place",
        "scope",
        "session",
        "unparkable",
    )  # fmt: skip

    def __init__(self, scope: "Scope", flag: object, session: "Any") -> None:
        self.scope = scope
        self.flag = flag  # what generated code polls: the scope itself, or the twin's flag
        self.session = session
        self.cwd = "/"
        self.env: dict[str, str] = {}
        self.handlers: tuple[Frame, ...] = ()  # innermost last
        self.inp = 0  # a descriptor, or -1 for empty input
        self.out: Sink
        self.err: Sink
        self.args: list[str] = []
        self.grace = 0.5  # seconds between the polite signal and SIGKILL
        self.place = "main"  # `main` for the turn's own thread, else `stage`, `worker` or `item`
        self.unparkable = 0  # forms around the current one in which a stopped job is resumed, not parked
        self.job: Any = None  # the pipeline whose process group new children join, if one is live

    def clone(self) -> "Shell":
        """A subshell: the same context, private from here on."""
        new = Shell(self.scope, self.flag, self.session)
        new.cwd = self.cwd
        new.env = self.env
        new.handlers = self.handlers
        new.inp = self.inp
        new.out = self.out
        new.err = self.err
        new.args = self.args
        new.grace = self.grace
        new.place = self.place
        new.job = self.job
        new.unparkable = self.unparkable
        return new

    def warn(self, message: str) -> None:
        """A diagnostic of ral's own on the error stream."""
        self.err.write(f"warning: {message}\n".encode(), self)
