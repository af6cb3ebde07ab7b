"""The life of a pipeline: launch, wait, tear down, and read how it ended.

One function runs every pipeline, a single command included. Externals are processes of one group; ral-written stages are
threads over cloned shells. The launching thread then sleeps in one wait loop that sees exits, stops, captured bytes, the ends
of stage threads, and the scope. A cancelled pipeline returns only when its processes are reaped and its threads have ended.
"""

import posix
import select
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ral.machine.shell import Shell

from ral.cancel import EXPLICIT, INTERRUPT, ROOT_ABORT, Cancelled, check
from ral.diag import Exit, Fault
from ral.pipeline import foreground
from ral.pipeline.job import Job, Stage
from ral.pipeline.launch import (
    HURRIED,
    SHARED,
    close,
    close_tail,
    drain,
    drain_quietly,
    heard,
    launch,
    start_program,
)
from ral.pipeline.lookup import argv_of, find_program, joined
from ral.pipeline.outcome import failure, reader_gone
from ral.pipeline.parked import Parked
from ral.pipeline.redirect import Streams, redirect_close, redirect_fail, redirect_open
from ral.pipeline.streams import FdSink
from ral.process.group import Group
from ral.process.mark import fresh
from ral.process.signals import SIGINT, SIGKILL, SIGPIPE, SIGQUIT, SIGTERM
from ral.process.teardown import teardown
from ral.process.wait import Waiter

LINGER, LINGER_ALL = 0.25, 1.0  # seconds that a lingering inheritor's bytes are waited for, past the last and in all


def run_external(sh: "Shell", name: str, mode: str, args: "list[Any]") -> None:
    """Run one program in the shell's streams."""
    stage = Stage(sh)
    stage.name = name
    stage.path = joined(sh, name) if mode == "path" else find_program(sh, name, mode)
    stage.argv = argv_of(name, args)
    if sh.flag:
        check(sh)
    job = Job(sh, [stage])
    if not sh.session.interactive and sh.out.fd >= 0 and sh.err.fd >= 0:
        run_simply(job, stage)
        return
    if sh.session.interactive:
        job.text = b" ".join(stage.argv).decode("utf-8", "replace")
    finish(run_job(job))


def run_simply(job: Job, stage: Stage) -> None:
    """One program whose streams are descriptors, in batch: the common case, without what it does not need."""
    sh = job.sh
    session = sh.session
    session.adopt()
    group = job.group = Group(sh.scope, fresh())
    waiter = job.waiter = waiter_for(sh)
    try:
        child = stage.child = start_program(job, stage, (sh.inp if sh.inp >= 0 else session.null, sh.out.fd, sh.err.fd))
    except BaseException:
        release(job, False)
        raise
    waiter.add_child(child)
    waiter.run(lambda: child.status is not None or child.stopped != 0)
    if child.status is None:
        waiter.forget()
        supervise(job, lambda: None)
        finish(job)
        return
    group.close()
    keep_waiter(job)
    if child.status:
        finish(job)


def pipeline(sh: "Shell", parts: "list[Any]") -> "Any":
    """Run stages over byte pipes; the value is the last one's. A part is [name, mode, args, redirects, text] or code."""
    stages = [prepare(sh, part) for part in parts]
    job = Job(sh, stages)
    job.text = " | ".join(s.text or "…" for s in stages)
    try:
        wire(job)
    except BaseException:
        abandon(job)
        raise
    return finish(run_job(job))


def prepare(sh: "Shell", part: "Any") -> Stage:
    """A stage before it has its pipes. A program that does not exist is found out here, before anything starts."""
    from ral.pipeline.dispatch import exec_, handler_of

    stage = Stage(sh.clone())
    if type(part) is not list:
        stage.code = part
        return stage
    name, mode, args, redirects, shown = part
    stage.name, stage.text = name, shown
    if mode == "bare" and sh.handlers and handler_of(sh, name, True):

        def call(inner: "Shell") -> None:
            if not redirects:
                exec_(inner, name, mode, args)
                return
            held = redirect_open(inner, redirects)
            try:
                exec_(inner, name, mode, args)
            except BaseException:
                redirect_fail(inner, held)
                raise
            redirect_close(inner, held)

        stage.code = call
        return stage
    stage.path = find_program(sh, name, mode)
    stage.argv = argv_of(name, args)
    stage.streams = redirects
    return stage


def wire(job: Job) -> None:
    """Connect the stages; a stage's own redirects win over the pipe."""
    sh, stages = job.sh, job.stages
    reads: list[int] = []
    for i, stage in enumerate(stages):
        inner = stage.shell
        if i:
            inner.inp = reads[i - 1]
        elif (
            stage.code is not None and sh.session.terminal is not None and sh.inp == 0 and sh.session.stdin_is_terminal
        ):
            inner.inp = -1  # the terminal belongs to the externals' group; a read would stop the whole shell
        if i < len(stages) - 1:
            r, w = posix.pipe2(posix.O_CLOEXEC)
            job.own += [r, w]
            reads.append(r)
            inner.out = FdSink(w, "the pipe")
        if stage.code is not None:
            inner.place = "stage" if sh.place == "main" else sh.place
        redirects: Any = stage.streams
        stage.streams = redirect_open(inner, redirects) if redirects else None


def abandon(job: Job) -> None:
    """Give back what a launch that did not happen had taken."""
    for stage in job.stages:
        if isinstance(stage.streams, Streams):
            redirect_fail(stage.shell, stage.streams)
            stage.streams = None
    close(job.own)


def continue_job(job: Job, sh: "Shell") -> None:
    """Resume a parked job in the foreground of the current turn and wait for it, as `run_job` does."""
    job.sh = sh
    job.waiter = Waiter(sh.scope)
    for child in job.live():
        job.waiter.add_child(child)
    if job.bell >= 0:
        job.waiter.add(job.bell, select.POLLIN, lambda fd, _events: heard(job))
    for fd in job.tail_fds:
        job.waiter.add(fd, select.POLLIN, lambda fd, _events: drain(job, fd))
    foreground.lend_again(job)
    supervise(job, lambda: None)


# Launch


def run_job(job: Job) -> Job:
    """Launch, wait, and tear down if the scope is cancelled. Raises `Cancelled`, `Parked`, or a launch failure."""
    job.waiter = waiter_for(job.sh)
    supervise(job, lambda: launch(job))
    return job


def waiter_for(sh: "Shell") -> Waiter:
    """A Waiter under the shell's scope; on the turn's own thread the one of the command before, if it fits."""
    session = sh.session
    spare: Waiter | None = session.waiter
    if spare is not None and sh.place == "main":
        session.waiter = None
        if spare.serves(sh.scope):
            spare.forget()
            return spare
        spare.close()
    return Waiter(sh.scope)


def keep_waiter(job: Job) -> None:
    """The job is over: its Waiter is for the turn's next command, if that can use it."""
    session = job.sh.session
    waiter = job.waiter
    if job.sh.place == "main" and session.waiter is None and waiter is not None and waiter.serves(job.sh.scope):
        session.waiter = waiter
        job.waiter = None
    else:
        drop_waiter(job)


def drop_waiter(job: Job) -> None:
    if job.waiter is not None:
        job.waiter.close()
        job.waiter = None


def supervise(job: Job, begin: "Callable[[], None]") -> None:
    """Begin, wait, and give everything back however it ends; a parked job keeps what it has but its waiter."""
    sh = job.sh
    try:
        try:
            begin()
            cause = wait(job)
        except Parked:
            raise
        except Cancelled as e:  # the last check before a spawn
            stop(job, e.cause)
            raise
        except BaseException:
            stop(job, EXPLICIT)
            raise
        if cause:
            stop(job, cause)
            check(sh)
    except Parked:
        drop_waiter(job)
        raise
    except BaseException:
        release(job, False)
        raise
    release(job, True)


def wait(job: Job) -> int:
    """Sleep until every stage has ended; a cause when the scope is cancelled. Raises `Parked`."""
    waiter = job.waiter
    assert waiter is not None

    def done() -> bool:
        note_ends(job)
        return job.over() or job.stopped()

    while True:
        cause = waiter.run(done)
        if cause > 0:
            return cause
        if job.lent and not job.live() and (key := end_loan(job)):
            return job.sh.scope.cause() or key
        if job.stopped():
            foreground.on_stop(job)
            continue
        if job.over():
            break
    linger(job, waiter)
    return 0


def note_ends(job: Job) -> None:
    """Record the order of ends: a death of SIGPIPE is forgiven only when the reader had ended."""
    stages = job.stages
    for i, stage in enumerate(stages):
        if stage.child is not None and not stage.over and stage.child.status is not None:
            stage.over = True
            if i + 1 < len(stages):
                after = stages[i + 1]
                stage.reader_over = after.over or (after.child is not None and after.child.status is not None)
    if job.lent and not job.live() and job.threads:
        # The terminal comes back the moment the last external has ended, though ral stages still run.
        end_loan(job)


def end_loan(job: Job) -> int:
    """The externals have ended: the terminal comes back, and the cause of a key that fell meanwhile goes to the session."""
    foreground.take_back(job)
    key = verdict(job)
    if key:
        job.sh.session.struck(job.sh, key)
    return key


def verdict(job: Job) -> int:
    """What a key on a lent terminal means: the last external in pipeline order decides."""
    for stage in reversed(job.stages):
        if stage.child is not None and stage.child.status is not None:
            if stage.child.status == -SIGINT:
                return INTERRUPT
            if stage.child.status == -SIGQUIT:
                return ROOT_ABORT
            return 0
    return 0


def linger(job: Job, waiter: Waiter) -> None:
    """The processes are over; take what lingering inheritors still write, for a bounded time."""
    import time

    if not job.tail_fds:
        return
    end = time.monotonic() + LINGER_ALL
    while job.tail_fds:
        sizes = [getattr(s, "size", 0) for s in job.tail_fds.values()]
        left = min(LINGER, end - time.monotonic())
        if left <= 0:
            break
        result = waiter.run(lambda: not job.tail_fds, left)
        if result > 0 or (result < 0 and sizes == [getattr(s, "size", 0) for s in job.tail_fds.values()]):
            break
    for fd in list(job.tail_fds):
        close_tail(job, fd)


# Teardown


def stop(job: Job, cause: int) -> None:
    """End everything the job started, as the cause directs; returns when its threads have ended too."""
    # A teardown takes the interpreter lock dozens of times, and each time busy workers hold it for their whole interval.
    sys.setswitchinterval(HURRIED)
    try:
        stop_all(job, cause)
    finally:
        sys.setswitchinterval(SHARED)


def stop_all(job: Job, cause: int) -> None:
    sh = job.sh
    close(job.own)
    if job.joined:
        stop_own(job)
    elif job.group is not None and job.live():
        # A child that is blocked in a write to a pipe of ours can only obey while someone reads.
        wake = job.waiter.fileno() if job.waiter is not None and job.tail_fds else -1
        drain_some = (lambda: drain_quietly(job)) if wake >= 0 else None
        report = teardown([job.group], cause, sh.scope, sh.grace, drain_some, wake=wake)
        for line in report.could_not:
            sh.warn(f"could not be ended: {line}")
    foreground.take_back(job)
    waiter = job.waiter
    assert waiter is not None
    while job.threads:
        waiter.run(lambda: job.threads == 0)
    note_ends(job)
    for fd in list(job.tail_fds):
        try:
            while select.select([fd], [], [], 0)[0]:
                before = fd in job.tail_fds
                drain(job, fd)
                if not before or fd not in job.tail_fds:
                    break
        except (Fault, Cancelled, OSError):
            pass
        if fd in job.tail_fds:
            close_tail(job, fd)


def stop_own(job: Job) -> None:
    """End the processes of a job that joined another's group. A stop of the run reaches them through that group."""
    sh, waiter = job.sh, job.waiter
    assert waiter is not None
    if not sh.scope.cause():
        for sig, seconds in ((SIGTERM, sh.grace), (SIGKILL, 1.0)):
            for child in job.live():
                posix.kill(child.pid, sig)
            waiter.run(lambda: not job.live(), seconds)
    while job.live():
        if waiter.run(lambda: not job.live(), 2 * sh.grace + 1.0) < 0:
            break


def release(job: Job, ended: bool) -> None:
    """Give back group, descriptors and redirects."""
    foreground.take_back(job)
    if job.group is not None and job.joined:
        for stage in job.stages:
            if stage.child is not None and not stage.child.leads and stage.child in job.group.children:
                job.group.children.remove(stage.child)
    elif job.group is not None:
        job.group.close()
    if job.waiter is not None:
        if job.bell >= 0:
            job.waiter.remove(job.bell)
        if ended:
            keep_waiter(job)
        else:
            drop_waiter(job)
    if job.bell >= 0 and not job.threads:
        posix.close(job.bell)
        job.bell = -1
    if not ended:
        abandon(job)


def finish(job: Job) -> "Any":
    """The value of the last stage, or the failure that the pipeline has."""
    stages = job.stages
    last = len(stages) - 1
    escape: Exit | None = None
    first: BaseException | None = None
    externals = [i for i, stage in enumerate(stages) if stage.child is not None]
    for i, stage in enumerate(stages):
        error = stage.error
        if stage.child is not None:
            status = stage.child.status
            gone = status in (-SIGPIPE, 128 + SIGPIPE)
            if gone and i < last and (stage.reader_over or (status == -SIGPIPE and stages[i + 1].over)):
                status = 0
            if job.was_lent and i < externals[-1] and status in (-SIGINT, -SIGQUIT):
                status = 0  # died of a key that the last external caught
            if status:
                error = failure(stage.name, status)
                if gone and i == last:
                    error = reader_gone(stage.name) if status == -SIGPIPE else error
            if isinstance(stage.streams, Streams):
                if error is None:
                    redirect_close(stage.shell, stage.streams)
                else:
                    redirect_fail(stage.shell, stage.streams)
                stage.streams = None
        elif isinstance(error, Fault) and error.reason == ("cancelled", "reader-gone") and i < last:
            error = None if stages[i + 1].over else error
        if isinstance(error, Exit):
            escape = escape or error
        elif error is not None and first is None:
            first = error
    if escape is not None:
        raise escape
    if first is not None:
        if isinstance(first, Fault) and first.site is None and first.__traceback__ is not None:
            from ral.machine.faults import as_fault

            as_fault(first)
        raise first
    return stages[last].value
