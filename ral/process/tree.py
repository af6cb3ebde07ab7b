"""Who is alive: the descendants of this process, their state, group and mark.

A walk down `/proc/PID/task/*/children` costs as much as there are descendants; where the kernel lacks that file, or
where orphans don't come to us (we are no subreaper), all of /proc is read. psutil stands in where there is no /proc.
No listing is one moment in time: whoever must be sure lists until two listings in a row say the same.
"""

import posix
from _thread import allocate_lock
from time import monotonic

from ral.cancel import floor
from ral.process.ids import Pgid, Pid

_adopts = False


def adopt_orphans() -> bool:
    """Makes orphaned descendants ours. For ral in its own process, never when embedded. True when it worked."""
    global _adopts
    _adopts = floor.subreaper()
    return _adopts


def adopts() -> bool:
    """Whether `adopt_orphans` worked."""
    return _adopts


class Process:
    """One process as it was when it was looked at. `start` tells it from a later one with the same number."""

    __slots__ = ("_mark", "alive", "group", "name", "parent", "pid", "start")

    def __init__(self, pid: Pid, name: str, parent: Pid, group: Pgid, start: int, *, alive: bool) -> None:
        self.pid = pid
        self.name = name
        self.parent = parent
        self.group = group
        self.start = start
        """Clock ticks since the boot."""
        self.alive = alive
        """False for a zombie."""
        self._mark: bytes | bool | None = False

    @property
    def mark(self) -> bytes | None:
        """As `mark_of`, looked up at most once."""
        if isinstance(self._mark, bool):
            self._mark = mark_of(self.pid)
        return self._mark


def _slurp(path: str) -> bytes | None:
    try:
        fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    except OSError:
        return None
    try:
        chunks = []
        while chunk := posix.read(fd, 65536):
            chunks.append(chunk)
        return b"".join(chunks)
    except OSError:
        return None  # it ended while we read
    finally:
        posix.close(fd)


# A PID namespace made without a /proc of its own (`unshare --pid`) shows us the numbers of the namespace around it. Then a
# process has two numbers, the one that signals take and the one that /proc shows; its `status` file knows both.

_shown_as: dict[int, int] = {}
"""Our number of a process -> /proc's, for such a namespace."""
_namespace: tuple[int, int, int] = (0, 0, 0)
"""(our pid, /proc's number of us, depth of our namespace below /proc's; 0 when the two are the same)."""


def _own() -> tuple[int, int, int]:
    global _namespace
    pid = posix.getpid()
    if _namespace[0] != pid:
        try:
            shown = int(posix.readlink("/proc/self"))
        except (OSError, ValueError):
            shown = pid
        _namespace = pid, shown, 0 if shown == pid else len(_numbers(shown, b"NSpid:")) - 1
    return _namespace


def _numbers(shown: int, key: bytes) -> list[int]:
    """The numbers of a process or of its group, from /proc's namespace inwards."""
    for line in (_slurp(f"/proc/{shown}/status") or b"").split(b"\n"):
        if line.startswith(key):
            return [int(word) for word in line.split()[1:]]
    return []


def _shown(pid: int) -> int:
    own, shown, depth = _own()
    if not depth:
        return pid
    return shown if pid == own else _shown_as.get(pid, pid)


def look(pid: Pid) -> Process | None:
    """The process, or None when there is none (any more)."""
    if not _HAS_PROC:
        return _look_with_psutil(pid)
    text = _slurp(f"/proc/{_shown(pid)}/stat")
    if text is None:
        return None
    head, _, tail = text.rpartition(b")")  # the name may hold parentheses and spaces
    field = tail.split()
    name = head.partition(b"(")[2].decode("utf-8", "replace")
    # A process whose first thread has ended looks like a zombie while its other threads (field 17) run on.
    alive = field[0] not in b"ZXx" or int(field[17]) > 1
    group = int(field[2])
    if depth := _own()[2]:
        group = ([*_numbers(_shown(pid), b"NSpgid:"), *[0] * (depth + 1)])[depth]
    return Process(pid, name, Pid(int(field[1])), Pgid(group), int(field[19]), alive=alive)


def mark_of(pid: Pid) -> bytes | None:
    """The job mark in the process's environment; None when it has none or we may not look."""
    if not _HAS_PROC:
        return _mark_with_psutil(pid)
    text = _slurp(f"/proc/{_shown(pid)}/environ")
    for pair in text.split(b"\0") if text else ():
        if pair.startswith(b"RAL_JOB="):
            return pair[8:]
    return None


def children(pid: Pid) -> list[Pid] | None:
    """The children of all threads of a process, zombies too; None where the kernel doesn't tell."""
    folder = f"/proc/{_shown(pid)}/task"
    try:
        threads = posix.listdir(folder)
    except OSError:
        return []
    found: list[Pid] = []
    for thread in threads:
        text = _slurp(f"{folder}/{thread}/children")
        if text is None:
            if not _HAS_CHILDREN:
                return None
            continue  # that thread just ended
        found.extend(pid for each in text.split() if (pid := _ours(int(each))))
    return found


def _ours(shown: int) -> Pid:
    """Our number of a process that /proc shows under another one; 0 when it is not in our namespace."""
    depth = _own()[2]
    if not depth:
        return Pid(shown)
    numbers = _numbers(shown, b"NSpid:")
    if len(numbers) <= depth:
        return Pid(0)
    _shown_as[numbers[depth]] = shown
    return Pid(numbers[depth])


def descendants() -> list[Process]:
    """All descendants of this process, zombies too, parents before children."""
    if _HAS_PROC and _HAS_CHILDREN:
        found: list[Process] = []
        queue = children(Pid(posix.getpid())) or []
        for pid in queue:  # grows as we go
            process = look(pid)
            if process is not None:
                found.append(process)
                queue.extend(children(pid) or ())
        return found
    below = {posix.getpid()}
    found = []
    rest = everyone()
    while True:
        new = [process for process in rest if process.parent in below and process.pid not in below]
        if not new:
            return found
        found.extend(new)
        below.update(process.pid for process in new)


def everyone() -> list[Process]:
    """Every process that this machine shows us."""
    if _HAS_PROC:
        looks = (look(pid) for entry in posix.listdir("/proc") if entry.isdigit() and (pid := _ours(int(entry))))
    else:
        import psutil

        looks = (look(Pid(pid)) for pid in psutil.pids())
    return [process for process in looks if process is not None]


_survey_lock = allocate_lock()
_surveyed: tuple[float, list[Process]] = (0.0, [])


def survey() -> list[Process]:
    """All descendants, or everyone where orphans don't come to us: as seen by a walk that began after this was called.

    Teardowns on many threads share their walks: whoever waited here while another's walk began takes its result.
    """
    global _surveyed
    asked = monotonic()
    with _survey_lock:  # held for one walk, some milliseconds
        began, found = _surveyed
        if began <= asked:
            began = monotonic()
            found = descendants() if _adopts else everyone()
            _surveyed = began, found
    return found


def _look_with_psutil(pid: Pid) -> Process | None:
    import psutil

    try:
        process = psutil.Process(pid)
        alive = process.status() != psutil.STATUS_ZOMBIE
        group = Pgid(posix.getpgid(pid))
        start = int(process.create_time() * 100)
        return Process(pid, process.name(), Pid(process.ppid()), group, start, alive=alive)
    except (psutil.Error, OSError):
        return None


def _mark_with_psutil(pid: Pid) -> bytes | None:
    import psutil

    try:
        value = psutil.Process(pid).environ().get("RAL_JOB")
    except (psutil.Error, OSError):
        return None
    return None if value is None else value.encode()


_HAS_PROC = _slurp("/proc/self/stat") is not None
_HAS_CHILDREN = _slurp("/proc/thread-self/children") is not None
