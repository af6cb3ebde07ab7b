"""One sleep on many descriptors: epoll, or kqueue where there is none."""

import select
import sys

READ = 1
WRITE = 4
ERROR = 8
HANGUP = 16


class Poller:
    """Level-triggered unless `edge`. Files that are always ready (regular ones) are ready at every sleep."""

    __slots__ = ("_always", "_set")

    def __init__(self) -> None:
        self._always: dict[int, int] = {}
        if sys.platform == "linux":
            self._set = select.epoll()
        else:
            self._set = select.kqueue()

    def add(self, fd: int, mask: int, *, edge: bool = False) -> None:
        """Watches `fd` for READ, WRITE or both. Raises OSError: FileExistsError when it is watched already."""
        if sys.platform == "linux":
            try:
                self._set.register(fd, mask | (select.EPOLLET if edge else 0))
            except PermissionError:  # epoll refuses what never blocks
                self._always[fd] = mask
        else:
            flags = select.KQ_EV_ADD | (select.KQ_EV_CLEAR if edge else 0)
            wanted = ((READ, select.KQ_FILTER_READ), (WRITE, select.KQ_FILTER_WRITE))
            self._set.control([select.kevent(fd, kind, flags) for bit, kind in wanted if mask & bit], 0)

    def remove(self, fd: int) -> None:
        """Before the descriptor is closed: a closed one that others still hold would go on waking us."""
        if self._always.pop(fd, None) is not None:
            return
        if sys.platform == "linux":
            self._set.unregister(fd)
        else:
            for kind in (select.KQ_FILTER_READ, select.KQ_FILTER_WRITE):
                try:
                    self._set.control([select.kevent(fd, kind, select.KQ_EV_DELETE)], 0)
                except OSError:
                    pass  # it was not watched for that

    def sleep(self, seconds: float | None) -> list[tuple[int, int]]:
        """What is ready, as (descriptor, READ | WRITE | ERROR | HANGUP); empty after `seconds` (None: for ever)."""
        if self._always:
            seconds = 0.0
        if sys.platform == "linux":
            ready = self._set.poll(seconds)
        else:
            ready = []
            for event in self._set.control(None, 64, seconds):
                bit = READ if event.filter == select.KQ_FILTER_READ else WRITE
                ready.append((event.ident, bit | (HANGUP if event.flags & select.KQ_EV_EOF else 0)))
        if self._always:
            ready.extend(self._always.items())
        return ready

    def fileno(self) -> int:
        """Readable when `sleep` would return at once (always-ready files apart)."""
        return self._set.fileno()

    def close(self) -> None:
        self._set.close()
