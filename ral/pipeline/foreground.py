"""The terminal on loan: when a job gets it, when it comes back, and what a stop means."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ral.pipeline.job import Job

from ral.diag import Fault
from ral.pipeline.parked import Parked
from ral.process.signals import SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU


def lend(job: "Job") -> None:
    """REPL: every pipeline that the turn's own thread runs is lent the terminal, captured or not."""
    sh = job.sh
    session = sh.session
    if session.terminal is None or not session.interactive or sh.place not in ("main", "stage") or job.group is None:
        return
    # A child that was faster than the loan stops for want of the terminal: the wait loop sees it, and `on_stop` resumes it.
    give(job)


def give(job: "Job", modes: "Any" = None) -> None:
    """Makes the job's group the terminal's foreground; a member that stopped for want of it is resumed by the caller."""
    assert job.group is not None
    job.sh.session.terminal.lend(job.group.pgid, modes, resume=False)
    job.lent = job.was_lent = True


def lend_again(job: "Job") -> None:
    """A parked job comes to the foreground with the modes that it had."""
    if job.sh.session.terminal is not None:
        give(job, job.modes)
    resume(job)


def take_back(job: "Job") -> "Any":
    """The terminal is ral's again; modes that a dead job left are put right. The modes that the job had set."""
    if not job.lent:
        return None
    job.lent = False
    terminal = job.sh.session.terminal
    if terminal is None:
        return None
    died = any(s.child is not None and (s.child.status or 0) < 0 for s in job.stages)
    return terminal.take_back(died=died)


def on_stop(job: "Job") -> None:
    """A job stopped: park it, lend it the terminal, end it, or resume it. Returns when it was resumed."""
    sh = job.sh
    session = sh.session
    group = job.group
    assert group is not None
    signals = {c.stopped for c in job.live()}
    wants_terminal = bool(signals & {SIGTTIN, SIGTTOU})
    if sh.place not in ("main", "stage"):
        if wants_terminal:  # resumed blindly it would stop again at once, thousands of times a second
            name = next(s.name for s in job.stages if s.child is not None)
            raise Fault(f"`{name}` needs the terminal", 1, name, hint="run it in the foreground", code="R0065")
        resume(job)
        return
    if wants_terminal and job.lent:  # it was faster than the loan
        resume(job)
        return
    if session.interactive:
        if session.terminal is not None and wants_terminal and not job.lent:
            give(job)
            resume(job)
            return
        if sh.place == "main" and not sh.unparkable and session.terminal is not None:
            job.modes = take_back(job)
            raise Parked(job)
        sh.err.write(b"ral: a command stopped here and was resumed: it runs inside a form that can't be parked\n", sh)
        resume(job)
        return
    if session.open_terminal() is None:
        resume(job)
        return
    if wants_terminal and not job.lent and session.terminal.is_ours:
        give(job)
        resume(job)
        return
    if job.lent and SIGTSTP in signals:
        take_back(job)
        session.stop_self()  # returns when ral is continued
        resume(job)
        return
    resume(job)


def resume(job: "Job") -> None:
    """Continue the whole group."""
    assert job.group is not None
    for child in job.live():
        child.stopped = 0
    job.group.signal(SIGCONT)
