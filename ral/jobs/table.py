"""Parked pipelines: their numbers, their states, and what `jobs`, `fg`, `bg`, `end` and `disown` do with them.

state      fg            bg          end     disown   its processes end   they stop
stopped    foreground    running     ended   dropped  done                stopped
running    foreground    (nothing)   ended   dropped  done                stopped
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ral.machine.shell import Shell

from ral.cancel import EXPLICIT
from ral.diag import Fault
from ral.pipeline.foreground import resume
from ral.pipeline.job import Job
from ral.pipeline.launch import heard
from ral.pipeline.runner import continue_job, finish, release
from ral.process.teardown import teardown

STOPPED, RUNNING = "stopped", "running"


class Entry:
    """One parked job."""

    __slots__ = ("job", "number", "state")

    def __init__(self, number: int, job: Job) -> None:
        self.number = number
        self.job = job
        self.state = STOPPED


class Table:
    """The parked jobs of a session."""

    def __init__(self) -> None:
        self.entries: dict[int, Entry] = {}
        self.current: Entry | None = None  # the one that `fg` has in the foreground

    def park(self, job: Job) -> Entry:
        """Take in a job that stopped; one that was parked before keeps its number."""
        entry = self.current
        if entry is not None and entry.job is job:
            entry.state = STOPPED
        else:
            number = 1
            while number in self.entries:
                number += 1
            entry = Entry(number, job)
        self.current = None
        self.entries[entry.number] = entry
        return entry

    def find(self, args: "list[Any]", word: str) -> Entry:
        """The entry that an argument names; without one, the latest."""
        if not self.entries:
            raise Fault("there is no parked job", 1, word, hint="Ctrl-Z parks a running command", code="R0180")
        if not args:
            return self.entries[max(self.entries)]
        shown = str(args[0]).lstrip("%")
        number = int(shown) if shown.isdigit() else -1
        if number not in self.entries:
            known = ", ".join(str(n) for n in sorted(self.entries))
            raise Fault(f"there is no job {args[0]}", 1, word, hint=f"the jobs are {known}", code="R0180")
        return self.entries[number]

    def refresh(self) -> list[str]:
        """Look at every job; a line for each that ended or stopped behind the prompt."""
        notices: list[str] = []
        for number, entry in sorted(self.entries.items()):
            job = entry.job
            if job.group is not None:
                job.group.refresh()
            heard(job)
            if job.over():
                del self.entries[number]
                notices.append(f"[{number}] {ending(job)}  {job.text}")
            elif entry.state == RUNNING and job.stopped():
                entry.state = STOPPED
                notices.append(f"[{number}] stopped  {job.text}")
        return notices

    def lines(self) -> list[str]:
        return [f"[{n}] {e.state}  {e.job.text}" for n, e in sorted(self.entries.items())]

    # The words

    def fg(self, sh: "Shell", args: "list[Any]") -> None:
        entry = self.find(args, "fg")
        del self.entries[entry.number]
        self.current = entry
        sh.out.write(f"{entry.job.text}\n".encode("utf-8", "surrogateescape"), sh)
        continue_job(entry.job, sh)
        self.current = None
        finish(entry.job)

    def bg(self, sh: "Shell", args: "list[Any]") -> None:
        entry = self.find(args, "bg")
        entry.state = RUNNING
        resume(entry.job)
        sh.out.write(f"[{entry.number}] {entry.job.text} &\n".encode("utf-8", "surrogateescape"), sh)

    def end(self, sh: "Shell", args: "list[Any]") -> None:
        entry = self.find(args, "end")
        del self.entries[entry.number]
        end_jobs([entry], EXPLICIT, sh)

    def disown(self, sh: "Shell", args: "list[Any]") -> None:
        entry = self.find(args, "disown")
        del self.entries[entry.number]
        if entry.state == STOPPED:
            resume(entry.job)
        if entry.job.group is not None:
            entry.job.group.close()

    def end_all(self, cause: int, sh: "Shell") -> None:
        """The session ends: every parked job with it, all at once."""
        entries = list(self.entries.values())
        self.entries.clear()
        if entries:
            end_jobs(entries, cause, sh)


def end_jobs(entries: list[Entry], cause: int, sh: "Shell") -> None:
    groups = [e.job.group for e in entries if e.job.group is not None]
    report = teardown(groups, cause, sh.scope, sh.grace)
    for line in report.could_not:
        sh.warn(f"could not be ended: {line}")
    for e in entries:
        for stage in e.job.stages:
            if stage.code is not None:
                stage.shell.scope.cancel(cause)
        release(e.job, False)


def ending(job: Job) -> str:
    """How a job's last process ended, in a word or two."""
    release(job, True)
    for stage in reversed(job.stages):
        if stage.child is not None:
            status = stage.child.status or 0
            return "done" if status == 0 else f"exited {status}" if status > 0 else f"killed by signal {-status}"
    return "done"
