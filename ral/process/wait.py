"""The one wait loop: it sleeps on children, on the scope and on whatever else its user adds, all at once.

A pidfd tells of an end but not of a stop, so SIGCHLD's descriptor is in the set too. That one and the scope's are never
read by anybody, because other threads sleep on them as well: they are watched edge-triggered, and every new write is
one wake-up for each sleeper. What happened between a look and the sleep is an edge that the sleep still sees.
"""

from time import monotonic

from ral.cancel import Scope, floor
from ral.process.group import Child
from ral.process.poller import READ, Poller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_SHORTEST, _LONGEST = 0.005, 0.1


class Waiter:
    """Waits under one scope, on any thread (one thread at a time)."""

    __slots__ = ("_bells", "_calls", "_children", "_heard", "_pause", "_pidfds", "_poller", "_scope")

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._poller = Poller()
        self._calls: dict[int, Callable[[int, int], object]] = {}
        self._children: list[Child] = []
        self._pidfds: dict[int, Child] = {}
        self._heard = 0
        self._pause = _SHORTEST
        self._bells = {scope.fileno(), floor.sigchld_fd(), floor.wakeup_fd()} - {-1}
        for fd in self._bells:
            self._poller.add(fd, READ, edge=True)

    def __enter__(self) -> "Waiter":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, fd: int, mask: int, callback: "Callable[[int, int], object]") -> None:
        """Calls `callback(fd, events)` whenever `fd` is ready (level-triggered). `mask`: poller.READ, WRITE or both."""
        self._poller.add(fd, mask)
        self._calls[fd] = callback

    def remove(self, fd: int) -> None:
        """Stops watching; before the descriptor is closed. Harmless when it is not watched."""
        if self._calls.pop(fd, None) is not None:
            self._poller.remove(fd)

    def add_child(self, child: Child) -> None:
        """Watches a child: its status and stopped are kept up to date while `run` waits."""
        self._children.append(child)
        if child.pidfd >= 0:
            self._poller.add(child.pidfd, READ)
            self._pidfds[child.pidfd] = child

    def serves(self, scope: Scope) -> bool:
        """Whether this Waiter can be used again for another wait under `scope`: it watches nothing else any more."""
        return self._scope is scope and not self._calls and not self._children and not self._pidfds

    def forget(self) -> None:
        """A new wait: every cause counts again."""
        self._heard = 0

    def close(self) -> None:
        self._poller.close()
        self._pidfds.clear()
        self._calls.clear()

    def fileno(self) -> int:
        """Readable when `dispatch` has something to do."""
        return self._poller.fileno()

    def dispatch(self) -> None:
        """Handles what is ready, without sleeping."""
        self._step(0.0)

    def run(self, done: "Callable[[], bool]", timeout: float | None = None) -> int:
        """Waits until `done()` is true: 0. A cause stronger than the last one this Waiter returned: that cause.
        `timeout` seconds passed: -1. `done` is asked after every wake-up; OSError of callbacks passes through.
        """
        end = None if timeout is None else monotonic() + timeout
        self._look_at_all()
        while True:
            if done():
                return 0
            cause = self._scope.cause()
            if cause > self._heard:
                self._heard = cause
                return cause
            left = None if end is None else end - monotonic()
            if left is not None and left <= 0:
                return -1
            floor.at_seam()
            self._step(left)

    def _step(self, seconds: float | None) -> None:
        blind = any(child.pidfd < 0 for child in self._children)
        if blind:  # no pidfd here: SIGCHLD wakes us, but where its handler needs the main thread it may be late
            seconds = self._pause if seconds is None else min(seconds, self._pause)
            self._pause = min(self._pause * 2, _LONGEST)
        for fd, events in self._poller.sleep(seconds):
            if fd in self._bells:
                self._look_at_all()
            elif fd in self._pidfds:
                self._look_at(self._pidfds[fd])
            elif fd in self._calls:  # a callback before this one may have removed it
                self._calls[fd](fd, events)
        if blind:
            self._look_at_all()

    def _look_at_all(self) -> None:
        for child in tuple(self._children):
            self._look_at(child)

    def _look_at(self, child: Child) -> None:
        child.refresh()
        if child.status is not None:
            self._children.remove(child)
            if child.pidfd in self._pidfds:  # it stays readable for ever: out of the sleep, then closed
                del self._pidfds[child.pidfd]
                self._poller.remove(child.pidfd)
            child.drop_pidfd()
