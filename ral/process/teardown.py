"""How children are ended: asked first, given a grace, then killed; all members of the group and whoever left it.

What doesn't work: signalling only the leader (its pipeline runs on), waiting only for the leader (a grandchild that
ignores the signal outlives it), killing only the group (setsid leaves it). So: the whole group is signalled; the grace
ends when no member is alive but zombies; and every look at the descendants also finds escapees, by their mark.

Who is told, and when. One gesture is one signal: the group hears it here, unless the kernel told it already
(`already`); an escapee that carries the job's own mark hears it too. One that carries a longer mark belongs to a ral
that runs inside the job and ends its own children: it is told only when nobody of the job itself is left.
"""

import posix
from time import monotonic

from ral.cancel import DEADLINE, EXPLICIT, INTERRUPT, ROOT_ABORT, TERMINATE, Scope
from ral.process import tree
from ral.process.group import Group, is_known
from ral.process.ids import Pid
from ral.process.poller import READ, Poller
from ral.process.signals import SIGCONT, SIGINT, SIGKILL, SIGTERM
from ral.process.tree import Process

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable, Sequence
else:
    import _signal

GRACE = 0.5
FIRST = {INTERRUPT: SIGINT, EXPLICIT: SIGTERM, DEADLINE: SIGTERM, TERMINATE: SIGTERM, ROOT_ABORT: SIGKILL}
"""The signal that a cause sends first."""

_DEATH_TAKES = 1.0  # seconds from SIGKILL to being named as someone who could not be ended
_DRAIN_EVERY = 0.02
_SLEEP_ON = 64  # descriptors opened for one sleep; there may be more members than a process may open


class Report:
    """What a teardown did. `killed`: (pid, name) of those that needed SIGKILL. `could_not`: lines such as
    `pid 12 sudo: not permitted`."""

    __slots__ = ("could_not", "killed")

    def __init__(self) -> None:
        self.killed: list[tuple[int, str]] = []
        self.could_not: list[str] = []


def teardown(
    groups: "Sequence[Group]",
    cause: int,
    scope: Scope,
    grace: float = GRACE,
    drain: "Callable[[], object] | None" = None,
    *,
    already: bool = False,
    wake: int = -1,
    everyone: bool = False,
) -> Report:
    """Ends all groups together, and returns when nobody is left or 1 s after SIGKILL. Children are refreshed, their
    groups not closed. For groups that still run: what a command that ended by itself left behind is not swept.

    `cause` chooses the signal and is what `scope` was cancelled with; a stronger one there is passed on, and halves
    what is left of the grace (ROOT_ABORT ends it). `grace`: seconds, 0 for SIGKILL right after the first signal.
    `drain` is called whenever something moved, and when `wake` (a descriptor, such as a Waiter's) is readable;
    without `wake` every 20 ms. `already`: the groups heard the gesture from the kernel. `everyone`: all descendants are
    ended (PID 1 before it leaves). Raises nothing of its own.
    """
    return _Teardown(groups, cause, scope, drain, wake, everyone).run(grace, already=already)


class _Teardown:
    __slots__ = (
        "_asked",
        "_cause",
        "_drain",
        "_everyone",
        "_groups",
        "_marks",
        "_pgids",
        "_refused",
        "_report",
        "_scope",
        "_wake",
    )

    def __init__(
        self,
        groups: "Sequence[Group]",
        cause: int,
        scope: Scope,
        drain: "Callable[[], object] | None",
        wake: int,
        everyone: bool,
    ) -> None:
        self._groups = groups
        self._cause = cause
        self._scope = scope
        self._drain = drain
        self._wake = wake
        self._everyone = everyone
        self._pgids = {group.pgid for group in groups if group.pgid is not None and not group.closed}
        self._marks = tuple(group.mark for group in groups if group.pgid is not None and not group.closed)
        self._asked: dict[tuple[int, int], int] = {}  # (pid, start) of an escapee: the last signal it was sent
        self._refused: set[tuple[int, int]] = set()  # those we may not signal
        self._report = Report()

    def run(self, grace: float, *, already: bool) -> Report:
        end = monotonic() + grace
        first = FIRST[self._cause]
        if first == SIGKILL:
            end = 0.0
            self._kill_groups()
        else:
            self._tell_groups(first, already=already)
        while (alive := self._alive()) and monotonic() < end:
            self._tell_escapees(alive, first)
            self._sleep(alive, end - monotonic())
            rise = self._scope.cause()
            if rise > self._cause:
                self._cause = rise
                now = monotonic()
                end = 0.0 if rise == ROOT_ABORT else now + (end - now) / 2
                if FIRST[rise] not in (first, SIGKILL):
                    first = FIRST[rise]
                    self._tell_groups(first, already=False)
        if alive:
            self._kill(alive)
        for group in self._groups:
            group.refresh()
        reap_adopted()
        if self._drain is not None:
            self._drain()  # what the last one to go left in its pipe
        return self._report

    def _tell_groups(self, sig: int, *, already: bool) -> None:
        for group in self._groups:
            if not already:
                group.signal(sig)
            group.signal(SIGCONT)  # a stopped process acts on nothing but SIGKILL

    def _kill_groups(self) -> None:
        for group in self._groups:
            group.signal(SIGKILL)

    def _tell_escapees(self, alive: list[tuple[Process, bytes | None]], sig: int) -> None:
        own = [process for process, mark in alive if mark is not None and mark in self._marks]
        if not own and all(mark is not None for _, mark in alive):
            own = [process for process, _ in alive]  # only a nested ral's children are left, and no nested ral
        for process in own:
            if self._asked.get((process.pid, process.start)) != sig:
                self._asked[process.pid, process.start] = sig
                self._send(process, sig)
                self._send(process, SIGCONT)

    def _kill(self, alive: list[tuple[Process, bytes | None]]) -> None:
        """SIGKILL, again for whoever turns up meanwhile; those that don't die within a second are named."""
        self._cause = ROOT_ABORT  # nothing is stronger: no rise wakes the sleeps below
        end = monotonic() + _DEATH_TAKES
        seen: set[tuple[int, int]] = set()
        while alive:
            self._kill_groups()
            for process, _ in alive:
                key = process.pid, process.start
                if not self._send(process, SIGKILL):
                    self._refused.add(key)
                elif key not in seen:
                    seen.add(key)
                    self._report.killed.append((process.pid, process.name))
            alive = [(process, mark) for process, mark in alive if (process.pid, process.start) not in self._refused]
            if alive and (left := end - monotonic()) > 0:
                self._sleep(alive, left)
            everyone = self._alive()
            alive = [(process, mark) for process, mark in everyone if (process.pid, process.start) not in self._refused]
            if not alive or monotonic() >= end:
                for process, _ in everyone:
                    refused = (process.pid, process.start) in self._refused
                    why = "not permitted" if refused else "still alive after SIGKILL"
                    self._report.could_not.append(f"pid {process.pid} {process.name}: {why}")
                return

    def _alive(self) -> list[tuple[Process, bytes | None]]:
        """Members that are alive, each with None, and escapees with their marks. Empty only when two looks agree:
        a process that is forked or adopted during one look may hide from it, not from the next."""
        return self._look() or self._look()

    def _look(self) -> list[tuple[Process, bytes | None]]:
        found: list[tuple[Process, bytes | None]] = []
        for process in tree.descendants() if self._everyone else tree.survey():
            if not process.alive:
                continue
            if process.group in self._pgids:
                found.append((process, None))
                continue
            mark = process.mark
            if mark is not None and self._is_ours(mark):
                found.append((process, mark))
            elif self._everyone:
                found.append((process, self._marks[0] if self._marks else b""))
        return found

    def _is_ours(self, mark: bytes) -> bool:
        return any(mark == own or mark.startswith(own + b"/") for own in self._marks)

    def _sleep(self, alive: list[tuple[Process, bytes | None]], seconds: float) -> None:
        """Until all of them ended, the cause rose, or the time passed; drains meanwhile."""
        end = monotonic() + seconds
        pidfds: list[int] = []
        poller = Poller()
        bell = self._scope.fileno()
        poller.add(bell, READ, edge=True)
        if self._wake >= 0:
            poller.add(self._wake, READ)
        try:
            for process, _ in alive[:_SLEEP_ON]:
                fd = _open(process)
                if fd >= 0:
                    pidfds.append(fd)
                    poller.add(fd, READ)
            waiting = set(pidfds)
            blind = not hasattr(posix, "pidfd_open")
            while waiting or blind:
                if self._drain is not None:
                    self._drain()
                left = end - monotonic()
                if left <= 0 or self._scope.cause() > self._cause:
                    return
                slices = blind or (self._drain is not None and self._wake < 0)
                for fd, _ in poller.sleep(min(left, _DRAIN_EVERY) if slices else left):
                    if fd in waiting:
                        waiting.remove(fd)
                        poller.remove(fd)
                if blind:
                    return
        finally:
            poller.close()
            for fd in pidfds:
                posix.close(fd)

    def _send(self, process: Process, sig: int) -> bool:
        """Signals this very process, not a later one with its number; False when we may not."""
        fd = _open(process)
        try:
            if fd >= 0:
                _signal.pidfd_send_signal(fd, sig)
            elif not hasattr(posix, "pidfd_open"):
                posix.kill(process.pid, sig)
        except PermissionError:
            return False
        except OSError:
            pass  # it has ended
        finally:
            if fd >= 0:
                posix.close(fd)
        return True


def _open(process: Process) -> int:
    """A pidfd, or -1 when the process has ended (or this system has none)."""
    if not hasattr(posix, "pidfd_open"):
        return -1
    try:
        fd = posix.pidfd_open(process.pid)
    except OSError:
        return -1
    now = tree.look(process.pid)
    if now is None or now.start != process.start:
        posix.close(fd)
        return -1
    return fd


def reap_adopted() -> None:
    """Reaps, one by one, the zombies that came to us as a subreaper; never a child that a Group answers for."""
    if not tree.adopts():
        return
    for pid in tree.children(Pid(posix.getpid())) or ():
        process = tree.look(pid)
        # Asked after the listing: a spawn that is under way may have a pid in it that its Group doesn't know yet.
        if process is None or process.alive or is_known(pid):
            continue
        try:
            posix.waitpid(pid, posix.WNOHANG)
        except ChildProcessError:
            pass
