"""The floor in Python: the same interface as ral/_floor.c, for machines without a compiler and for reading.

What it can't do: CPython runs these handlers between bytecodes of the main thread, so a gesture that falls into one
long C call is heard when the call ends, several of them as one, and the ladder's third comes as late. Everything else
holds. It is its own record of the races, too: under the interpreter lock one store or one append can't be torn.

The twin's poll flag is one list for the process: it holds a weak reference to every scope that was cancelled and still
lives, so `if flag:` is the truth of a list, and the slow path behind it asks the scope.
"""

import posix
import select
import sys
import time
from _thread import allocate_lock, get_ident, start_new_thread
from _weakref import ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable
    from types import CodeType, FrameType
    from typing import Self
else:
    import _signal

KIND = "python"
_INTERRUPT, _DEADLINE, _TERMINATE, _ROOT_ABORT = 1, 3, 4, 5
_MERGE = 0.015
_RUNGS = 3
_PLACES = 4096
_HUP, _INT, _QUIT, _KILL, _TERM = _signal.SIGHUP, _signal.SIGINT, _signal.SIGQUIT, _signal.SIGKILL, _signal.SIGTERM
_EAGAIN = 11 if sys.platform == "linux" else 35

_cancelled: "list[ref[Scope]]" = []  # the flag
_seam: "Callable[[], None] | None" = None
_making = allocate_lock()  # never taken by a handler


def _bell() -> tuple[int, int]:
    """A descriptor to watch and one to write to: an eventfd twice, or the two ends of a pipe."""
    if sys.platform == "linux":
        fd = posix.eventfd(0, posix.EFD_CLOEXEC | posix.EFD_NONBLOCK)
        return fd, fd
    ends = posix.pipe()
    for end in ends:
        posix.set_blocking(end, False)
    return ends


def _ring(fd: int) -> None:
    try:
        posix.write(fd, b"\1\0\0\0\0\0\0\0")
    except OSError:
        pass  # full is readable too


class Scope:
    """What can be cancelled. True once it or an ancestor is cancelled."""

    __slots__ = (
        "__weakref__",
        "_bell",
        "_beyond",
        "_deadline",
        "_grace",
        "_parent",
        "_raised",
        "_seen",
        "_shields",
        "_watch",
    )

    _parent: "Scope | None"
    _shields: "Scope | None"
    _raised: list[bool]  # one store per cause, never back: a weaker cause can't overwrite a stronger
    _deadline: list[float]  # at most one
    _bell: tuple[int, int] | None
    _watch: "_Watch | None"
    _beyond: int
    _seen: int  # a shield: gestures of that cause so far, -1 once one more has come
    _grace: float

    def __new__(cls, parent: "Scope | None" = None, *, shields: "Scope | None" = None, grace: float = 0.5) -> "Self":
        if parent is not None and shields is not None:
            raise TypeError("a shield has no parent")
        self = object.__new__(cls)
        self._parent, self._shields = parent, shields
        self._raised = [False] * 6
        self._deadline = []
        self._bell = self._watch = None
        self._beyond = shields.cause() if shields is not None else 0
        self._seen = _gestures[self._beyond] if shields is not None else -1
        self._grace = grace
        return self

    def __bool__(self) -> bool:
        return self.cause() != 0

    def __del__(self) -> None:
        if self._watch is not None:
            self._watch.close()
        if self._bell is not None:
            for fd in set(self._bell):
                posix.close(fd)

    @property
    def parent(self) -> "Scope | None":
        return self._parent

    def child(self) -> "Scope":
        return Scope(self)

    def cause(self) -> int:
        strongest = 0
        scope: Scope | None = self
        while scope is not None:
            if 0 <= scope._seen < _gestures[scope._beyond]:
                scope._hasten()
            strongest = max(strongest, scope.own_cause())
            if scope._shields is not None and (outer := scope._shields.cause()) > scope._beyond:
                strongest = max(strongest, outer)
            scope = scope._parent
        return strongest

    def _hasten(self) -> None:
        """A shield hears its own cause once more: the cleanup has the grace left."""
        self._seen = -1
        at = time.monotonic() + self._grace
        if not self._deadline or at < self._deadline[0]:
            self.set_deadline(at)

    def own_cause(self) -> int:
        for at in self._deadline:
            if time.monotonic() >= at:
                try:
                    self._deadline.remove(at)  # clear_deadline() may be quicker: only who takes it out fires it
                except ValueError:
                    break
                self.cancel(_DEADLINE)
        for cause in (5, 4, 3, 2, 1):
            if self._raised[cause]:
                return cause
        return 0

    def cancel(self, cause: int, /) -> None:
        if not 1 <= cause <= 5:
            raise ValueError("a cause is a number from 1 to 5")
        # The cause, then the flag, then the bell. _ring_bell() stores its descriptors before it looks for a cause, so
        # a cancel that lands between is rung by one of the two.
        first = True not in self._raised
        self._raised[cause] = True
        if first:  # two threads at once may both be first: two entries, which leave together
            _cancelled.append(ref(self, _cancelled.remove))
        if self._bell is not None:
            _ring(self._bell[1])

    def _ring_bell(self) -> int:
        """Under the lock: two sleepers must not make two bells."""
        if self._bell is None:
            self._bell = _bell()
            if True in self._raised:
                _ring(self._bell[1])
        return self._bell[0]

    def fileno(self) -> int:
        with _making:
            if self._watch is None:
                watch = _Watch()
                self._add_path(watch, edge=False)
                self._watch = watch
        # Edges from a shielded scope that say nothing new are thrown away; a cancel in between rings a bell that stays.
        if self._watch.edges and not self.cause():
            self._watch.drain()
            if self.cause() and self._bell is not None:
                _ring(self._bell[1])
        return self._watch.fileno()

    def _add_path(self, watch: "_Watch", *, edge: bool) -> None:
        scope: Scope | None = self
        while scope is not None:
            watch.add(scope._ring_bell(), edge=edge)
            if scope._shields is not None:
                scope._shields._add_path(watch, edge=True)
            scope = scope._parent

    def wait(self, timeout: float | None, /) -> int:
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            fd = self.fileno()
            if cause := self.cause():
                return cause
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                return 0
            at_seam()
            fds = [fd]
            if _wakeup >= 0 and get_ident() == _main:
                fds.append(_wakeup)  # the kernel may have given the signal to another thread
            poll = select.poll()
            for each in fds:
                poll.register(each, select.POLLIN)
            poll.poll(None if left is None else left * 1000 + 1)

    def set_deadline(self, monotonic_seconds: float, /) -> None:
        self._deadline[:] = [monotonic_seconds]
        _alarm(monotonic_seconds, self)

    def clear_deadline(self) -> None:
        if self._deadline:
            self._deadline.clear()
            _look_again()


class _Watch:
    """One descriptor over many: an epoll, or a kqueue."""

    def __init__(self) -> None:
        self.edges = False
        if sys.platform == "linux":
            self._set = select.epoll()
        else:
            self._set = select.kqueue()

    def add(self, fd: int, *, edge: bool) -> None:
        self.edges = self.edges or edge
        if sys.platform == "linux":
            try:
                self._set.register(fd, select.EPOLLIN | (select.EPOLLET if edge else 0))
            except FileExistsError:
                pass
        else:
            flags = select.KQ_EV_ADD | (select.KQ_EV_CLEAR if edge else 0)
            self._set.control([select.kevent(fd, select.KQ_FILTER_READ, flags)], 0)

    def drain(self) -> None:
        if sys.platform == "linux":
            self._set.poll(0)
        else:
            self._set.control(None, 16, 0)

    def fileno(self) -> int:
        return self._set.fileno()

    def close(self) -> None:
        self._set.close()


# ---------------------------------------------------------------------------------------------------------- deadlines
# One small thread cancels what is due: the flag must fill even when nobody asks the scope.

_alarms: "list[tuple[float, ref[Scope]]]" = []
_alarms_lock = allocate_lock()  # never taken by a handler
_alarm_set = allocate_lock()
_alarm_set.acquire()
_alarm_thread = False


def _alarm(when: float, scope: Scope) -> None:
    global _alarm_thread
    with _alarms_lock:
        _alarms.append((when, ref(scope, _look_again)))
        if not _alarm_thread:
            _alarm_thread = True
            start_new_thread(_watch_clock, ())
    _look_again()


def _look_again(_gone: object = None) -> None:
    try:
        _alarm_set.release()
    except RuntimeError:
        pass  # it has been told already


def _watch_clock() -> None:
    """Ends when no deadline is left: a scope that is gone, or was given another one, has none here."""
    global _alarm_thread
    while True:
        now = time.monotonic()
        due: list[Scope] = []
        with _alarms_lock:
            for entry in tuple(_alarms):
                scope = entry[1]()
                if scope is None or entry[0] not in scope._deadline:
                    _alarms.remove(entry)
                elif entry[0] <= now:
                    _alarms.remove(entry)
                    due.append(scope)
                scope = None  # or this thread would keep it alive
            if not _alarms:
                _alarm_thread = False
            soonest = min((when for when, _ in _alarms), default=None)
        while due:
            due.pop().own_cause()  # fires, if the deadline still stands
        if soonest is None:
            return
        _alarm_set.acquire(timeout=max(soonest - now, 0.0) + 0.0005)


# ------------------------------------------------------------------------------------------ slots, handlers, ladder

_foreground: Scope | None = None
_root: Scope | None = None
_ladder = 0
_gestures = [0] * 6
_last_seen: dict[int, float] = {}
_mode = 0
_live: set[int] = set()
_terminal: "tuple[int, int, list[int | list[bytes | int]] | None] | None" = None
_interruptible: "Callable[[], None] | None" = None
_main = get_ident()
_wakeup = _wakeup_write = -1
_child: tuple[int, int] | None = None
_valid = frozenset(int(s) for s in _signal.valid_signals())
_ignored = frozenset(
    s
    for s in _valid
    if _signal.getsignal(s) == _signal.SIG_IGN and s not in (_signal.SIGPIPE, getattr(_signal, "SIGXFSZ", 0))
)


def _forked() -> None:
    """A forked process owns none of its parent's groups, and its host cancels it, not the signals."""
    global _foreground, _root, _terminal
    _live.clear()
    _foreground = _root = _terminal = None


posix.register_at_fork(after_in_child=_forked)


def _fall(sig: int) -> None:
    for group in tuple(_live):
        _kill_group(group, _KILL)
    if _terminal is not None:
        fd, pgid, modes = _terminal
        _signal.pthread_sigmask(_signal.SIG_BLOCK, [_signal.SIGTTOU])
        try:
            posix.tcsetpgrp(fd, pgid)
            if modes is not None:
                import termios

                termios.tcsetattr(fd, termios.TCSANOW, modes)
        except Exception:
            pass  # the terminal may be gone; what matters is that we go now
    posix._exit(128 + sig)


def _kill_group(group: int, sig: int) -> None:
    try:
        posix.kill(-group, sig)
    except OSError:
        pass


def _on_gesture(sig: int, _frame: "FrameType | None") -> None:
    global _ladder
    _drain_wakeup()
    cause = _INTERRUPT if sig == _INT else _ROOT_ABORT if sig == _QUIT else _TERMINATE
    here = _foreground
    target = here if cause == _INTERRUPT else _root
    if cause != _TERMINATE and here is None:
        return  # an idle prompt touches nothing
    now = time.monotonic()
    before = _last_seen.get(sig)
    _last_seen[sig] = now
    if before is None or now - before >= _MERGE:
        _gestures[cause] += 1
        if cause == _TERMINATE or (sig == _INT and _mode == 0):
            _ladder += 1
            if _ladder >= _RUNGS:
                _fall(sig)
    if target is not None:
        target.cancel(cause)
    if _interruptible is not None:
        _interruptible()


def _drain_wakeup() -> None:
    try:
        while len(posix.read(_wakeup, 4096)) == 4096:
            pass
    except OSError:
        pass


def _on_child(_sig: int, _frame: "FrameType | None") -> None:
    _drain_wakeup()
    if _child is not None:
        _ring(_child[1])


def _on_stop(sig: int, _frame: "FrameType | None") -> None:
    for group in tuple(_live):
        _kill_group(group, _signal.SIGSTOP)
    _signal.signal(sig, _signal.SIG_DFL)
    _signal.raise_signal(sig)  # here we stop, and here SIGCONT wakes us
    _signal.signal(sig, _on_stop)
    for group in tuple(_live):
        _kill_group(group, _signal.SIGCONT)


def _stays_ignored(sig: int) -> bool:
    return sig in _ignored and (sig == _HUP or (_mode == 0 and sig in (_INT, _QUIT)))


def install(mode: int, /) -> None:
    """Installs the handlers (0 batch, 1 interactive), on the main thread only, and unblocks their signals."""
    global _mode, _wakeup, _wakeup_write, _main
    _mode = mode
    _main = get_ident()
    sigchld_fd()
    if _wakeup < 0:
        _wakeup, _wakeup_write = posix.pipe()
        posix.set_blocking(_wakeup, False)
        posix.set_blocking(_wakeup_write, False)
    four = (_INT, _TERM, _HUP, _QUIT)
    for sig in four:
        _signal.signal(sig, _signal.SIG_IGN if _stays_ignored(sig) else _on_gesture)
    _signal.signal(_signal.SIGCHLD, _on_child)
    if mode:
        for sig in (_signal.SIGTSTP, _signal.SIGTTIN, _signal.SIGTTOU):
            _signal.signal(sig, _signal.SIG_IGN)
    elif _signal.SIGTSTP not in _ignored:
        _signal.signal(_signal.SIGTSTP, _on_stop)
    _signal.set_wakeup_fd(_wakeup_write, warn_on_full_buffer=False)
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, four)


def flag(scope: Scope, /) -> object:
    """What generated code tests: the process-wide list of scopes that were cancelled and still live."""
    return _cancelled


def acknowledge() -> None:
    """Clears the ladder's count. (The flag empties by itself: a scope that nobody holds leaves it.)"""
    global _ladder
    _ladder = 0


def escalation_pending() -> int:
    return _ladder


def gestures(cause: int, /) -> int:
    if not 1 <= cause <= 5:
        raise ValueError("a cause is a number from 1 to 5")
    return _gestures[cause]


def swap_foreground(scope: Scope | None, /) -> Scope | None:
    global _foreground
    old, _foreground = _foreground, scope
    return old


def swap_root(scope: Scope | None, /) -> Scope | None:
    global _root
    old, _root = _root, scope
    return old


def request_foreground_cancel(cause: int, /) -> None:
    scope = _foreground
    if scope is not None:
        scope.cancel(cause)


def request_root_cancel(cause: int, /) -> None:
    scope = _root
    if scope is not None:
        scope.cancel(cause)


def ignored_at_start() -> frozenset[int]:
    return _ignored


def sigchld_fd() -> int:
    global _child
    if _child is None:
        _child = _bell()
    return _child[0]


def set_terminal(fd: int, pgid: int, modes: "list[int | list[bytes | int]] | None" = None, /) -> None:
    global _terminal
    _terminal = (fd, pgid, modes)


def clear_terminal() -> None:
    global _terminal
    _terminal = None


# ------------------------------------------------------------------------------------------------------------- spawn

_CHANGE_DIRECTORY = b'cd -- "$1" || exit 126; shift; exec "$@"'


def spawn(
    path: bytes,
    argv: list[bytes],
    env: list[bytes],
    cwd: bytes,
    fds: tuple[int, int, int],
    pgid: int,
    scope: Scope | None,
    /,
) -> tuple[int, int]:
    """As in C, by posix_spawn. For another directory a small sh changes it and execs, so argv[0] is then the path."""
    if scope is not None and scope:
        return 0, -1
    if pgid == 0 and len(_live) >= _PLACES:
        raise OSError(_EAGAIN, posix.strerror(_EAGAIN), path)
    if cwd and cwd != posix.getcwdb():
        posix.stat(cwd)  # its errors, before sh could only say 126
        if not posix.access(path, posix.X_OK):
            posix.stat(path)
            raise PermissionError(13, posix.strerror(13), path)
        path, argv = b"/bin/sh", [b"sh", b"-c", _CHANGE_DIRECTORY, b"sh", cwd, path, *argv[1:]]
    keep = frozenset(s for s in _valid if _stays_ignored(s))
    borrowed: list[int] = []
    actions: list[tuple[int, int, int] | tuple[int, int]] = []
    try:
        for target, source in enumerate(fds):
            if 0 <= source < 3 and source != target:  # out of the way first: a source may be another's target
                import fcntl

                source = fcntl.fcntl(source, fcntl.F_DUPFD_CLOEXEC, 3)
                borrowed.append(source)
            if source < 0:
                actions.append((posix.POSIX_SPAWN_CLOSE, target))
            else:
                actions.append((posix.POSIX_SPAWN_DUP2, source, target))
        before = _signal.pthread_sigmask(_signal.SIG_BLOCK, _valid)
        try:
            pid = posix.posix_spawn(
                path,
                argv,
                dict(pair.split(b"=", 1) for pair in env if b"=" in pair[1:]),
                file_actions=actions,
                setpgroup=pgid,
                setsigmask=(),
                setsigdef=_valid - keep - {_KILL, _signal.SIGSTOP},
            )
            if pgid == 0:
                _live.add(pid)
        finally:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, before)
    finally:
        for fd in borrowed:
            posix.close(fd)
    if not hasattr(posix, "pidfd_open"):
        return pid, -1
    try:
        return pid, posix.pidfd_open(pid)
    except OSError as problem:
        if problem.errno == 38:  # ENOSYS: an old kernel, SIGCHLD alone must do
            return pid, -1
        posix.kill(pid, _KILL)  # no descriptor left: a child that can't be watched must go
        group_leave(pid)
        posix.waitpid(pid, 0)
        raise


def group_leave(pgid: int, /) -> None:
    _live.discard(pgid)


def groups() -> list[int]:
    return list(_live)


def set_interruptible(hook: "Callable[[], None] | None", /) -> None:
    global _interruptible
    _interruptible = hook


def wakeup_fd() -> int:
    """What the main thread's sleeps watch besides: Python's handlers can only run once it wakes."""
    return _wakeup


def subreaper() -> bool:
    """No: the only way from Python is ctypes, dear to import. A teardown then finds escapees by their mark in /proc."""
    return False


def compile_text(text: str, filename: str, /) -> "CodeType":
    """The code object of a module."""
    return compile(text, filename, "exec", dont_inherit=True, optimize=1)


def set_seam(hook: "Callable[[], None] | None", /) -> None:
    global _seam
    _seam = hook


def at_seam() -> None:
    if _seam is not None:
        _seam()
