"""The launch of a pipeline: programs into one process group, ral-written stages onto threads, pipes for what ral drains."""

import _thread
import posix
import select
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ral.machine.shell import Sink

from ral.cancel import Cancelled, check
from ral.diag import Fault
from ral.machine.calls import run
from ral.pipeline import foreground
from ral.pipeline.job import Job, Stage
from ral.pipeline.lookup import direct_program, refused
from ral.pipeline.streams import CHUNK
from ral.process.group import Child, Group
from ral.process.mark import fresh

SHARED, HURRIED = 0.0005, 0.00005  # seconds a thread may keep the interpreter lock while another waits for it


def start_program(job: Job, stage: Stage, fds: tuple[int, int, int]) -> Child:
    """Spawn a stage's program into the job's group. Raises `Fault` 127 or 126, or `Cancelled`."""
    inner = stage.shell
    assert job.group is not None
    try:
        return job.group.spawn(
            stage.path.encode("utf-8", "surrogateescape"),
            stage.argv,
            inner.env.for_child(inner.cwd),  # type: ignore[attr-defined]
            inner.cwd.encode("utf-8", "surrogateescape"),
            fds,
        )
    except OSError as e:
        raise launch_failure(stage, e) from None


def launch(job: Job) -> None:
    """Start every stage; descriptors of the parent are closed once the children have theirs."""
    sh = job.sh
    outputs: dict[int, int] = {}  # sink identity -> write end of the pipe that ral drains into it
    try:
        for stage in job.stages:  # programs first: one that can't start must find no thread running
            if stage.code is not None:
                continue
            if sh.flag:
                check(sh)
            inner = stage.shell
            out = descriptor(job, inner.out, outputs)
            err = descriptor(job, inner.err, outputs)
            inp = inner.inp if inner.inp >= 0 else sh.session.null
            if job.group is None:
                sh.session.adopt()
                job.group = join_group(job) or Group(sh.scope, fresh())
            child = start_program(job, stage, (inp, out, err))
            stage.child = child
            job.waiter.add_child(child)  # type: ignore[union-attr]
        if job.group is not None and not job.joined:
            # After the last spawn: until then a key is ral's, and no program starts after it.
            foreground.lend(job)
        for number, stage in enumerate(job.stages):
            if stage.code is not None:
                start_thread(job, number)
    finally:
        fds = list(outputs.values())
        for number, stage in enumerate(job.stages):
            if stage.code is None:  # threads close their own ends
                fds += take_ends(job, number)
        for fd in fds:
            posix.close(fd)


def join_group(job: Job) -> Group | None:
    """The group of the pipeline around, which an external that a ral stage starts joins while it lives."""
    outer: Job | None = job.sh.job
    if outer is None or not job.sh.session.interactive or outer.sh.scope is not job.sh.scope:
        return None
    group = outer.group
    if group is None or group.closed or not group.running:
        return None
    job.joined = True
    return group


def take_ends(job: Job, number: int) -> list[int]:
    """The pipe ends of a stage, to read and to write; the caller closes them, the job no longer does."""
    ends: list[int] = []
    for index in (2 * number - 2, 2 * number + 1):
        if 0 <= index < len(job.own) and job.own[index] >= 0:
            ends.append(job.own[index])
            job.own[index] = -1
    return ends


def launch_failure(stage: Stage, e: OSError) -> Fault:
    import errno

    if e.errno in (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE):
        return Fault(
            f"`{stage.name}` can't be started: {e.strerror}",
            1,
            stage.name,
            hint="too much is running; wait for some of it to end",
            code="R0064",
        )
    where = e.filename.decode("utf-8", "replace") if isinstance(e.filename, bytes) else e.filename
    if where and where == stage.shell.cwd and where != stage.path:
        return Fault(
            f"the working directory {where} is gone: {e.strerror}",
            1,
            stage.name,
            hint="cd to one that exists",
            code="R0064",
        )
    if "/" in stage.name:
        direct_program(stage.shell, stage.name)  # says it better, when the path itself is what is wrong
    return refused(stage.name, stage.path, e)


def descriptor(job: Job, sink: "Sink", outputs: dict[int, int]) -> int:
    """A descriptor that a child writes to for a sink: its own, or a pipe that ral drains into it."""
    if sink.fd >= 0:
        return sink.fd
    key = id(sink)
    if key not in outputs:
        r, w = posix.pipe2(posix.O_CLOEXEC)
        outputs[key] = w
        job.tail_fds[r] = sink
        assert job.waiter is not None
        job.waiter.add(r, select.POLLIN, lambda fd, _events: drain(job, fd))
    return outputs[key]


def drain(job: Job, fd: int) -> None:
    """Bytes of a child for a sink of ral's."""
    data = posix.read(fd, CHUNK)
    if not data:
        close_tail(job, fd)
        return
    job.tail_fds[fd].write(data, job.sh)


def drain_quietly(job: Job) -> None:
    """Drain during a teardown: what the sink says to it no longer matters."""
    assert job.waiter is not None
    try:
        job.waiter.dispatch()
    except (Fault, Cancelled, OSError):
        pass


def close_tail(job: Job, fd: int) -> None:
    assert job.waiter is not None
    job.waiter.remove(fd)
    del job.tail_fds[fd]
    posix.close(fd)


def start_thread(job: Job, number: int) -> None:
    """Run a ral-written stage on a thread of its own."""
    if job.bell < 0:
        job.bell = posix.eventfd(0, posix.EFD_CLOEXEC | posix.EFD_NONBLOCK)
        assert job.waiter is not None
        job.waiter.add(job.bell, select.POLLIN, lambda fd, _events: heard(job))
        sys.setswitchinterval(SHARED)
    stage = job.stages[number]
    stage.shell.job = job
    job.threads += 1
    _thread.start_new_thread(stage_thread, (job, stage, take_ends(job, number)))


def stage_thread(job: Job, stage: Stage, ends: list[int]) -> None:
    sh = stage.shell
    try:
        try:
            stage.value = run(sh, stage.code(sh))
        except BaseException as e:  # carried to the joining thread, which raises it
            stage.error = e
        # Mark before closing: whoever feels the closed pipe must find the reader ended.
        stage.over = True
    finally:
        close(ends)
        posix.eventfd_write(job.bell, 1)


def heard(job: Job) -> None:
    """Count the stage threads that have ended. Ringing is the last thing that a thread does with the job's bell, so only
    the sum of the rings says that the bell may be closed."""
    if job.bell >= 0:
        try:
            job.threads -= posix.eventfd_read(job.bell)
        except BlockingIOError:
            pass


def close(fds: list[int]) -> None:
    while fds:
        try:
            posix.close(fds.pop())
        except OSError:
            pass
