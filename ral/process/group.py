"""A pipeline's process group and its children.

The leader's number is the group's number, so the leader is not reaped before the group is closed: else the kernel could
give the number to a stranger while we may still signal it. Other children are reaped as soon as they end.
"""

import posix

from ral.cancel import Cancelled, Scope, floor
from ral.process.ids import Pgid, Pid
from ral.process.mark import put

_CLD_STOPPED = 5
_CLD_TRAPPED = 4
_CLD_EXITED = 1

_known: set[int] = set()
"""Children that a Group answers for: nobody else may reap them."""
_births: list[None] = []
"""One entry for each spawn under way, whose pid is not in `_known` yet. (Appends and pops are indivisible.)"""


def is_known(pid: int) -> bool:
    """Whether a Group answers for this child, or may in a moment: a spawn is under way on some thread."""
    return bool(_births) or pid in _known


class Child:
    """One external process of a Group.

    `status` is None while it runs, then its exit code (0 to 255) or minus the signal that killed it. `stopped` is the
    signal that stopped it, 0 while it runs.
    """

    __slots__ = ("leads", "name", "pid", "pidfd", "status", "stopped")

    def __init__(self, pid: Pid, pidfd: int, name: str, *, leads: bool) -> None:
        self.pid = pid
        self.pidfd = pidfd
        """Readable once it has ended; -1 where the kernel has none, and after its end was seen."""
        self.name = name
        self.leads = leads
        self.status: int | None = None
        self.stopped = 0

    def refresh(self) -> bool:
        """Looks once, without waiting; True when status or stopped changed."""
        if self.status is not None:
            return False
        before = self.stopped
        try:
            keep = posix.WNOWAIT if self.leads else 0
            end = posix.waitid(posix.P_PID, self.pid, posix.WEXITED | posix.WNOHANG | keep)
        except ChildProcessError:
            self.status = 127  # someone else in this process reaped it: the true status is lost
        else:
            if end is not None:
                self.status = end.si_status if end.si_code == _CLD_EXITED else -end.si_status
            elif not self._refresh_stop():
                return self.refresh()
        if self.status is None:
            return self.stopped != before
        self.stopped = 0
        if not self.leads:
            _known.discard(self.pid)
        return True

    def _refresh_stop(self) -> bool:
        """False when it ended since the look before: the kernel says "no such child" of a zombie that can't stop."""
        try:
            # Each stop and each continuation is reported once; the last one is how things stand.
            while change := posix.waitid(posix.P_PID, self.pid, posix.WSTOPPED | posix.WCONTINUED | posix.WNOHANG):
                self.stopped = change.si_status if change.si_code in (_CLD_STOPPED, _CLD_TRAPPED) else 0
        except ChildProcessError:
            return False
        return True

    def drop_pidfd(self) -> None:
        """Closes the pidfd; whoever watches it must have stopped watching."""
        if self.pidfd >= 0:
            fd, self.pidfd = self.pidfd, -1
            posix.close(fd)


class Group:
    """A process group of external children, one for each pipeline; ral is never a member."""

    __slots__ = ("children", "closed", "mark", "pgid", "scope")

    def __init__(self, scope: Scope, mark: bytes) -> None:
        self.scope = scope
        self.mark = mark
        self.pgid: Pgid | None = None
        """None until the first child was started."""
        self.children: list[Child] = []
        self.closed = False

    def __enter__(self) -> "Group":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def spawn(
        self,
        path: bytes,
        argv: list[bytes],
        env: list[bytes],
        cwd: bytes,
        fds: tuple[int, int, int],
        scope: Scope | None = None,
    ) -> Child:
        """Starts a program in this group: the first becomes its leader.

        `env` is a list of `NAME=value`, `cwd` empty for the process's own directory, `fds` what becomes 0, 1 and 2 (-1:
        closed). The last look at `scope` (default: the group's) stands directly before the exec: raises Cancelled.
        Raises OSError with `.filename`: the directory when that failed, else the path.
        """
        scope = self.scope if scope is None else scope
        _births.append(None)
        try:
            pid, pidfd = floor.spawn(path, argv, put(env, self.mark), cwd, fds, self.pgid or 0, scope)
            if pid:
                _known.add(pid)
        finally:
            _births.pop()
        if not pid:
            raise Cancelled(scope.cause(), scope)
        child = Child(Pid(pid), pidfd, path.rpartition(b"/")[2].decode("utf-8", "replace"), leads=self.pgid is None)
        if self.pgid is None:
            self.pgid = Pgid(pid)
        self.children.append(child)
        return child

    @property
    def running(self) -> list[Child]:
        """The children that haven't ended as far as we have seen."""
        return [child for child in self.children if child.status is None]

    def refresh(self) -> bool:
        """Looks at all children once; True when something changed."""
        changed = [child.refresh() for child in self.children]
        return True in changed

    def signal(self, sig: int) -> bool:
        """Signals the whole group; True when at least one process could be. Safe until `close`: see the module."""
        if self.pgid is None or self.closed:
            return False
        try:
            posix.kill(-self.pgid, sig)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Gives the group's number back: out of the ladder's table first, then the leader is reaped.

        Children that still run are let go (disowned): nobody waits for them any more.
        """
        if self.closed:
            return
        self.closed = True
        if self.pgid is not None:
            floor.group_leave(self.pgid)
        for child in self.children:
            child.refresh()
            child.drop_pidfd()
            if child.leads and child.status is not None:
                try:
                    posix.waitpid(child.pid, posix.WNOHANG)
                except ChildProcessError:
                    pass
            _known.discard(child.pid)
