"""Redirects: streams bound for one body, given back however it ends.

`>` to a regular file is atomic: the bytes go to a temporary file beside it, renamed over it when the body succeeded. Files
are opened by ral and never by a spawn action: opening a named pipe there would freeze every thread.
"""

import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ral.machine.shell import Shell, Sink

from ral.diag import Fault
from ral.machine.values import text
from ral.pipeline.lookup import joined
from ral.pipeline.streams import FdSink, here_string, open_fifo

COUNTER = [0]


class Streams:
    """What a redirect replaced, and what it must close or rename."""

    __slots__ = ("err", "fds", "final", "inp", "out", "temp")

    def __init__(self, sh: "Shell") -> None:
        self.inp = sh.inp
        self.out: Sink = sh.out
        self.err: Sink = sh.err
        self.fds: list[int] = []
        self.temp = ""
        self.final = ""


def redirect_open(sh: "Shell", redirects: "list[Any]") -> Streams:
    """Bind the streams, in the order input, output, error. Targets are evaluated already."""
    held = Streams(sh)
    try:
        for fd, op, target in sorted(redirects, key=lambda r: r[0]):
            if op == "<<":
                sh.inp = keep(held, here_string(target))
            elif op == "<":
                sh.inp = keep(held, open_file(sh, text(target), posix.O_RDONLY))
            elif op == ">&1":
                continue
            else:
                sink = open_sink(sh, held, text(target), op if fd == 1 else (">~" if op == ">" else op))
                if fd == 1:
                    sh.out = sink
                else:
                    sh.err = sink
        if any(op == ">&1" for _, op, _ in redirects):
            sh.err = sh.out
    except BaseException:
        redirect_fail(sh, held)
        raise
    return held


def keep(held: Streams, fd: int) -> int:
    held.fds.append(fd)
    return fd


def open_file(sh: "Shell", name: str, flags: int) -> int:
    path = joined(sh, name)
    try:
        try:
            fifo = posix.stat(path).st_mode & 0o170000 == 0o010000
        except FileNotFoundError:
            fifo = False
        if fifo:
            return open_fifo(path, flags & ~(posix.O_CREAT | posix.O_TRUNC), sh)
        return posix.open(path, flags | posix.O_CLOEXEC | posix.O_NOCTTY, 0o666)
    except OSError as e:
        raise cannot_open(name, e) from None
    except ValueError as e:
        raise Fault(f"can't open {name!r}: {e}", code="R0053") from None


def cannot_open(name: str, e: OSError) -> Fault:
    hint = ""
    if isinstance(e, IsADirectoryError):
        hint = "name a file in it"
    elif isinstance(e, FileNotFoundError):
        hint = "check the path; the directory must exist"
    elif isinstance(e, PermissionError):
        hint = "check the permissions of the file and its directory"
    return Fault(f"can't open {name}: {e.strerror}", hint=hint, code="R0053")


def open_sink(sh: "Shell", held: Streams, name: str, op: str) -> FdSink:
    writing = posix.O_WRONLY | posix.O_CREAT
    if op == ">>":
        return FdSink(keep(held, open_file(sh, name, writing | posix.O_APPEND)), name)
    if op == ">":
        fd = open_atomic(sh, held, name)
        if fd >= 0:
            return FdSink(fd, name)
    return FdSink(keep(held, open_file(sh, name, writing | posix.O_TRUNC)), name)


def open_atomic(sh: "Shell", held: Streams, name: str) -> int:
    """A temporary file beside the destination, or -1 where writing must stream (no regular file)."""
    path = joined(sh, name)
    try:
        for _ in range(40):  # follow links, so that the target is updated and the link stays
            try:
                link = posix.readlink(path)
            except OSError:
                break
            path = link if link.startswith("/") else path.rpartition("/")[0] + "/" + link
        try:
            old = posix.stat(path)
        except FileNotFoundError:
            mode = 0o666
            made = None
        else:
            if old.st_mode & 0o170000 != 0o100000:
                return -1
            if not posix.access(path, posix.W_OK):
                raise PermissionError(13, "Permission denied")
            mode = 0o600
            made = old
        directory = path.rpartition("/")[0] or "/"
        while True:
            COUNTER[0] += 1
            temp = f"{directory}/.ral-{posix.getpid()}-{COUNTER[0]}.tmp"
            try:
                fd = posix.open(temp, posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_CLOEXEC, mode)
                break
            except FileExistsError:
                continue
        held.temp, held.final = temp, path
        keep(held, fd)
        if made is not None:
            posix.fchmod(fd, made.st_mode & 0o7777)
            try:
                posix.fchown(fd, made.st_uid, made.st_gid)
            except OSError:
                pass  # another owner's file that we may write: the new one is ours
        return fd
    except OSError as e:
        raise cannot_open(name, e) from None
    except ValueError as e:
        raise Fault(f"can't open {name!r}: {e}", code="R0053") from None


def give_back(sh: "Shell", held: Streams) -> None:
    sh.inp, sh.out, sh.err = held.inp, held.out, held.err


def redirect_close(sh: "Shell", held: Streams) -> None:
    """The body succeeded: rename, close, and restore the streams."""
    give_back(sh, held)
    fds, held.fds = held.fds, []
    try:
        if held.temp:
            try:
                posix.rename(held.temp, held.final)
                held.temp = ""
            except OSError as e:
                raise Fault(f"can't write {held.final}: {e.strerror}", code="R0053") from None
    finally:
        close_all(fds)
        discard(held)


def redirect_fail(sh: "Shell", held: Streams) -> None:
    """The body failed: the old file stays as it was."""
    give_back(sh, held)
    fds, held.fds = held.fds, []
    close_all(fds)
    discard(held)


def discard(held: Streams) -> None:
    if held.temp:
        try:
            posix.unlink(held.temp)
        except OSError:
            pass
        held.temp = ""


def close_all(fds: list[int]) -> None:
    for fd in fds:
        try:
            posix.close(fd)
        except OSError:
            pass
