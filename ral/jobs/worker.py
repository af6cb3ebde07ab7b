"""Workers: threads that run a block over a cloned shell, with buffers of their own.

A worker's scope hangs from the durable root, so a Ctrl-C of the turn that made it does not reach it. The waits here sleep on
the scope's descriptor and on the worker's eventfd together; there is no bare `join`.
"""

import _thread
import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ral.cancel import Scope
    from ral.machine.shell import Shell

from ral.cancel import EXPLICIT, Cancelled, check, floor, status
from ral.diag import Exit, Fault
from ral.machine.calls import run
from ral.machine.faults import as_fault
from ral.machine.values import Handle
from ral.pipeline.streams import watcher

LIMIT = 16 * 1024 * 1024
MARKER = b"\n[ral: the rest of this output was discarded after 16 MiB]\n"


class Buffer:
    """A worker's output: bounded, drained past its bound."""

    __slots__ = ("fd", "full", "parts", "size")

    def __init__(self) -> None:
        self.fd = -1
        self.parts: list[bytes] = []
        self.size = 0
        self.full = False

    def write(self, data: bytes, sh: "Shell") -> None:
        if self.full:
            return
        room = LIMIT - self.size
        if len(data) > room:
            data = data[:room] + MARKER
            self.full = True
        self.parts.append(data)
        self.size += len(data)

    def bytes(self) -> bytes:
        return b"".join(self.parts)


class Lines:
    """A watched worker's output: whole lines with a label, as they come."""

    __slots__ = ("behind", "fd", "label", "rest")

    def __init__(self, label: str, behind: "Any") -> None:
        self.fd = -1
        self.label = label.encode("utf-8", "surrogateescape")
        self.behind = behind
        self.rest = b""

    def write(self, data: bytes, sh: "Shell") -> None:
        *lines, self.rest = (self.rest + data).split(b"\n")
        if lines:
            self.behind.write(b"".join([b"[" + self.label + b"] " + line + b"\n" for line in lines]), sh)

    def flush(self, sh: "Shell") -> None:
        if self.rest:
            self.write(b"\n", sh)


class Worker:
    """One worker."""

    __slots__ = ("bell", "cancelled", "err", "error", "name", "out", "scope", "settled", "started", "text", "value")

    def __init__(self, name: str, text: str, scope: "Scope", out: "Any", err: "Any") -> None:
        self.name = name
        self.text = text
        self.scope = scope
        self.out = out
        self.err = err
        self.value: Any = None
        self.error: BaseException | None = None
        self.settled = False
        self.cancelled = False
        self.started = False
        self.bell = posix.eventfd(0, posix.EFD_CLOEXEC | posix.EFD_NONBLOCK)  # readable once settled; read by nobody

    def __del__(self) -> None:
        posix.close(self.bell)

    def buffers(self) -> "tuple[bytes, bytes]":
        out = self.out.bytes() if isinstance(self.out, Buffer) else b""
        err = self.err.bytes() if isinstance(self.err, Buffer) else b""
        return out, err

    def failure(self) -> Fault | None:
        """What `await` raises, or None."""
        if self.error is None:
            return None
        if isinstance(self.error, Exit):
            code = self.error.status
            if code == 0:
                return None
            return Fault(
                f"the worker {self.name} exited with status {code}",
                code if 0 < code < 256 else 255,
                "await",
                code="R0160",
            )
        return as_fault(self.error)


class Registry:
    """The workers of a session; nested workers are in the same one."""

    def __init__(self) -> None:
        self.count = 0
        self.live: dict[str, Worker] = {}

    def spawn(
        self,
        sh: "Shell",
        code: "Callable[[Shell], Any]",
        text: str,
        watch: str | None,
        scope: "Scope | None",
        place: str = "worker",
    ) -> Worker:
        """Start a worker. A scope that is cancelled already starts nothing."""
        if sh.flag:
            check(sh)
        own = scope if scope is not None else sh.session.root.worker()
        if watch is None:
            out: Any = Buffer()
            err: Any = Buffer()
        else:
            out, err = Lines(watch, sh.session.out), Lines(watch + ":err", sh.session.out_err)
        worker = Worker(f"w{self.count}", text, own, out, err)
        self.count += 1
        inner = sh.clone()
        inner.scope, inner.flag = own, floor.flag(own)
        inner.out, inner.err, inner.inp = out, err, -1
        inner.place, inner.job, inner.unparkable = place, None, 0
        self.live[worker.name] = worker
        sys.setswitchinterval(0.0005)
        try:
            _thread.start_new_thread(self.body, (worker, inner, code))
        except RuntimeError:
            del self.live[worker.name]
            raise Fault(
                "no more workers can be started", 1, "spawn", hint="wait for some to end", code="R0161"
            ) from None
        return worker

    def body(self, worker: Worker, sh: "Shell", code: "Callable[[Shell], Any]") -> None:
        try:
            try:
                worker.value = run(sh, code(sh))
                if sh.flag:
                    check(sh)
            except BaseException as e:  # carried to whoever awaits it
                worker.error = e
            for sink in (worker.out, worker.err):
                if isinstance(sink, Lines):
                    try:
                        sink.flush(sh)
                    except (Fault, Cancelled):
                        pass
        finally:
            worker.settled = True
            posix.eventfd_write(worker.bell, 1)
            if worker.scope.cause():
                self.live.pop(worker.name, None)

    def running(self) -> list[Worker]:
        return [w for w in self.live.values() if not w.settled]

    def observe(self, worker: Worker) -> None:
        self.live.pop(worker.name, None)


def wait_settled(sh: "Shell", workers: list[Worker]) -> Worker:
    """Sleep until one of the workers has settled; the first in the list's order wins."""
    poll = watcher(sh.scope, [w.bell for w in workers])
    while True:
        for w in workers:
            if w.settled:
                return w
        if sh.flag:
            check(sh)
        poll.poll()


def is_cancelled(worker: Worker) -> bool:
    return worker.cancelled


def cancelled_fault(worker: Worker) -> Fault:
    return Fault(
        "handle is cancelled",
        status(EXPLICIT),
        "await",
        ("cancelled", "cancelled"),
        "to go on, put the await into try",
        "R0162",
    )


def handle(worker: Worker) -> Handle:
    return Handle(worker.name, worker)
