"""Concurrency: workers and what is done with their handles."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ral.machine.calls import Fn
    from ral.machine.shell import Shell

from ral.cancel import EXPLICIT, Cancelled, check
from ral.diag import Exit, Fault
from ral.jobs.worker import Worker, cancelled_fault, handle, wait_settled
from ral.machine.faults import error_record
from ral.machine.values import Handle, Variant


def spawn_(sh: "Shell", body: "Fn") -> Handle:
    return handle(sh.session.workers.spawn(sh, body.a0, "spawn", None, None))  # type: ignore[attr-defined]


def watch_(sh: "Shell", label: str, body: "Fn") -> Handle:
    return handle(sh.session.workers.spawn(sh, body.a0, f"watch {label}", label, None))  # type: ignore[attr-defined]


def background(sh: "Shell", code: "Any", text: str, bare: bool) -> Handle:
    """A trailing `&`."""
    worker = sh.session.workers.spawn(sh, code, text, None, None)
    if bare and sh.session.interactive and sh.place == "main":
        sh.out.write(f"[{worker.name}] {text}\n".encode("utf-8", "surrogateescape"), sh)
        sh.session.announced = True
    return handle(worker)


def result(sh: "Shell", worker: Worker) -> "dict[str, Any]":
    sh.session.workers.observe(worker)
    if worker.cancelled:
        raise cancelled_fault(worker)
    fault = worker.failure()
    if fault is not None:
        raise fault
    out, err = worker.buffers()
    return {"value": worker.value, "stdout": out, "stderr": err}


def await_(sh: "Shell", h: Handle) -> "dict[str, Any]":
    worker: Worker = h.worker
    if worker.cancelled:
        raise cancelled_fault(worker)
    wait_settled(sh, [worker])
    return result(sh, worker)


def poll_(sh: "Shell", h: Handle) -> Variant:
    worker: Worker = h.worker
    if worker.cancelled:
        raise cancelled_fault(worker)
    settled = worker.settled
    out, err = worker.buffers()
    if not settled:
        return Variant("pending", {"stdout": out, "stderr": err})
    sh.session.workers.observe(worker)
    fault = worker.failure()
    outcome = Variant("ok", worker.value) if fault is None else Variant("err", error_record(fault))
    return Variant("settled", {"stdout": out, "stderr": err, "outcome": outcome})


def is_done_(sh: "Shell", h: Handle) -> bool:
    return bool(h.worker.settled)


def race_(sh: "Shell", handles: list[Handle]) -> "dict[str, Any]":
    workers = [h.worker for h in handles if not h.worker.cancelled]
    if not workers:
        what = "an empty list" if not handles else "cancelled handles only"
        raise Fault(f"`race` of {what}", 1, "race", hint="give it at least one handle", code="R0163")
    winner = wait_settled(sh, workers)
    for w in workers:
        if w is not winner and not w.settled:
            stop(sh, w)
    return result(sh, winner)


def cancel_(sh: "Shell", h: Handle) -> None:
    if not h.worker.settled:
        stop(sh, h.worker)


def stop(sh: "Shell", worker: Worker) -> None:
    worker.cancelled = True
    worker.scope.cancel(EXPLICIT)
    sh.session.workers.observe(worker)
    sh.session.ending.append(worker)


def par_(sh: "Shell", fn: "Fn", items: "list[Any]", jobs: int) -> "list[Any]":
    """Structured: returns only when every item has ended. An item's failure, a deadline or a Ctrl-C cancels the others."""
    limit = jobs if jobs > 0 else len(items)
    code = fn.a1  # type: ignore[attr-defined]
    scope = sh.scope.child()
    results: list[Any] = [None] * len(items)
    running: dict[int, Worker] = {}
    failed: BaseException | None = None
    upcoming = 0
    try:
        while upcoming < len(items) or running:
            while failed is None and upcoming < len(items) and len(running) < limit:
                item = items[upcoming]
                running[upcoming] = sh.session.workers.spawn(
                    sh, lambda inner, item=item: code(inner, item), "par", None, scope, "item"
                )
                upcoming += 1
            if not running:
                break
            done = wait_settled(sh, list(running.values()))
            for number, worker in list(running.items()):
                if worker is done or worker.settled:
                    del running[number]
                    sh.session.workers.observe(worker)
                    results[number] = worker.value
                    if worker.error is not None and failed is None:
                        failed = worker.error
                        scope.cancel(EXPLICIT)
                        break
            if failed is not None:
                break
    except (Cancelled, Fault) as e:
        failed = e
    if failed is not None:
        scope.cancel(EXPLICIT)
        for worker in running.values():
            settle(worker)
            sh.session.workers.observe(worker)
        if sh.flag:
            check(sh)
        if isinstance(failed, Exit):
            raise failed
        raise failed
    return results


def settle(worker: Worker) -> None:
    """Wait for a cancelled item to end: its own teardown is bounded."""
    import select

    poll = select.poll()
    poll.register(worker.bell, select.POLLIN)
    while not worker.settled:
        poll.poll()
