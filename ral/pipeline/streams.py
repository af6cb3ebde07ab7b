"""Reading and writing descriptors so that every wait hears a stop.

ral never sets O_NONBLOCK on a descriptor it inherited: the flag belongs to the open file, and the caller would see it. It
polls instead, and writes at most 4,096 bytes (PIPE_BUF) at a time: a pipe that polls writable takes that many at once.
"""

import errno
import posix
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ral.machine.shell import Shell, Sink

from ral.cancel import Scope, check, floor
from ral.diag import Fault
from ral.pipeline.outcome import reader_gone

PIECE = 4096
CHUNK = 65536
CAPTURE_LIMIT = 16 * 1024 * 1024


def watcher(scope: Scope, fds: "Iterable[int]", events: int = select.POLLIN) -> select.poll:
    """A poll object over descriptors and everything that a stop of the scope reaches."""
    poll = select.poll()
    for fd in fds:
        poll.register(fd, events)
    poll.register(scope.fileno(), select.POLLIN)
    wake = floor.wakeup_fd()
    if wake >= 0:
        poll.register(wake, select.POLLIN)
    return poll


def write_quietly(fd: int, data: bytes) -> None:
    """Words for a person; a descriptor that is closed or full changes nothing."""
    try:
        while data:
            data = data[posix.write(fd, data) :]
    except OSError:
        pass


class FdSink:
    """Bytes go to a descriptor."""

    __slots__ = ("direct", "fd", "name")

    def __init__(self, fd: int, name: str) -> None:
        self.fd = fd
        self.name = name
        self.direct: bool | None = None  # a regular file or /dev/null never blocks

    def write(self, data: bytes, sh: "Shell") -> None:
        try:
            if self.direct is None:
                mode = posix.fstat(self.fd).st_mode & 0o170000
                self.direct = mode == 0o100000
            if self.direct:
                while data:
                    data = data[posix.write(self.fd, data) :]
            elif data:
                self.write_polled(data, sh)
        except OSError as e:
            raise self.fault(e) from None

    def write_polled(self, data: bytes, sh: "Shell") -> None:
        poll = watcher(sh.scope, (self.fd,), select.POLLOUT)
        view = memoryview(data)
        while view:
            for fd, events in poll.poll():
                if fd == self.fd and events:
                    try:
                        view = view[posix.write(fd, view[:PIECE]) :]
                    except BlockingIOError:  # somebody else made the open file non-blocking, and it filled meanwhile
                        pass
            if sh.flag:
                check(sh)

    def fault(self, e: OSError) -> Fault:
        if e.errno == errno.EPIPE:
            return reader_gone()
        hint = "free some space and run it again" if e.errno == errno.ENOSPC else ""
        return Fault(f"can't write to {self.name}: {e.strerror}", hint=hint, code="R0050")


class Capture:
    """Bytes gather in memory; what a captured command wrote. `outer` is the sink that it replaced."""

    __slots__ = ("chunks", "fd", "outer", "size")

    def __init__(self, outer: "Sink") -> None:
        self.fd = -1
        self.chunks: list[bytes] = []
        self.size = 0
        self.outer = outer

    def write(self, data: bytes, sh: "Shell") -> None:
        self.chunks.append(data)
        self.size += len(data)
        if self.size > CAPTURE_LIMIT:
            raise Fault(
                "a captured output is larger than 16 MiB",
                hint="redirect it to a file, or read it line by line",
                code="R0051",
            )


class NullSink:
    """Bytes vanish: a stream that was closed when ral started."""

    __slots__ = ("fd", "name")

    def __init__(self, name: str) -> None:
        self.fd = -1
        self.name = name

    def write(self, data: bytes, sh: "Shell") -> None:
        raise Fault(f"can't write to {self.name}: it is closed", code="R0050")


def read_chunk(sh: "Shell") -> bytes:
    """Up to 64 KiB of the shell's input; empty at its end."""
    fd = sh.inp
    if fd < 0:
        return b""
    poll = watcher(sh.scope, (fd,))
    while True:
        ready = poll.poll()
        if sh.flag:
            check(sh)
        for got, _ in ready:
            if got == fd:
                try:
                    return posix.read(fd, CHUNK)
                except BlockingIOError:
                    break
                except OSError as e:
                    if e.errno == errno.EIO:  # the terminal is gone
                        return b""
                    raise Fault(f"can't read standard input: {e.strerror}", code="R0052") from None


def read_all(sh: "Shell") -> bytes:
    """The rest of the shell's input."""
    chunks: list[bytes] = []
    while True:
        chunk = read_chunk(sh)
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)


def open_fifo(path: str, flags: int, sh: "Shell") -> int:
    """Open a named pipe without the wait that no signal could end: non-blocking, then wait for the other side."""
    deadline_free = flags & posix.O_WRONLY
    while True:
        try:
            fd = posix.open(path, flags | posix.O_NONBLOCK | posix.O_CLOEXEC)
            break
        except OSError as e:
            if not (deadline_free and e.errno == errno.ENXIO):
                raise
            if sh.scope.wait(0.01):  # no reader yet, and nothing to sleep on but time
                check(sh)
    if not deadline_free:
        poll = watcher(sh.scope, (fd,))
        while not any(got == fd for got, _ in poll.poll()):
            if sh.flag:
                posix.close(fd)
                check(sh)
    posix.set_blocking(fd, True)
    return fd


def here_string(text: str) -> int:
    """A descriptor that reads the text: an anonymous file, so that no writer has to keep up with the reader."""
    if text.startswith("\r\n"):
        text = text[2:]
    elif text.startswith("\n"):
        text = text[1:]
    data = text.encode("utf-8", "surrogateescape")
    if hasattr(posix, "memfd_create"):
        fd = posix.memfd_create("here", posix.MFD_CLOEXEC)
    else:
        import tempfile

        with tempfile.TemporaryFile() as file:
            fd = posix.dup(file.fileno())
    while data:
        data = data[posix.write(fd, data) :]
    posix.lseek(fd, 0, 0)
    return fd
