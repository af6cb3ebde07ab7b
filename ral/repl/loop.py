"""Read, run, report, until the session ends."""

import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ral.machine.shell import Shell
    from ral.repl.keyboard import Keyboard
    from ral.session import Outcome

from ral.cancel import EXPLICIT, INTERACTIVE, Cancelled, install, message, status
from ral.diag import Incomplete, Source, normalise, render
from ral.diag.report import render_fault
from ral.machine.values import Handle
from ral.pipeline.streams import write_quietly
from ral.process.terminal import Terminal, size
from ral.repl.show import show
from ral.session import Session

NEVER_AGAIN = 2  # at the second Ctrl-D in a row live work does not hold the shell


def loop(grace: float | None, limit: int | None) -> int:
    """Run an interactive session; the exit status."""
    terminal = Terminal.open() if posix.isatty(0) else None
    home_group = terminal.foreground() if terminal is not None else None
    if terminal is not None and not terminal.claim():
        return 1
    install(INTERACTIVE)
    session = Session(True, [], terminal)
    if grace is not None:
        session.shell.grace = grace
    if limit is not None:
        session.recursion_limit = limit
    repl = Repl(session)
    try:
        code = repl.run()
    except Cancelled as e:
        code = status(e.cause)
    finally:
        cause = session.root.cause()
        session.end_workers(cause or EXPLICIT)
        repl.table.end_all(cause or EXPLICIT, session.shell)
        if terminal is not None:
            terminal.restore()
            if home_group is not None and home_group != terminal.pgid:
                terminal.lend(home_group)
    return status(session.root.cause()) if session.root.cause() else code


class Repl:
    """One interactive loop."""

    def __init__(self, session: Session) -> None:
        from ral.jobs.table import Table
        from ral.repl.keyboard import open_keyboard

        self.session = session
        self.table: Table = Table()
        session.table = self.table
        table = self.table
        session.bases.update(jobs=self.jobs, fg=table.fg, bg=table.bg, end=table.end, disown=table.disown)
        session.names.bases = frozenset(session.bases)
        self.keyboard: Keyboard = open_keyboard(session)
        self.last = 0
        self.leaving = 0

    def run(self) -> int:
        session = self.session
        while True:
            for notice in self.table.refresh():
                say(notice + "\n")
            session.next_turn()
            if session.root.cause():
                return status(session.root.cause())
            try:
                text = self.keyboard.read()
            except EOFError:
                if self.may_leave():
                    return 0
                continue
            except KeyboardInterrupt:
                continue
            finally:
                install(INTERACTIVE)  # the editor puts handlers and the wake-up descriptor back to nothing
            if session.root.cause():
                return status(session.root.cause())
            self.leaving = 0
            if not text.strip():
                continue
            outcome = self.turn(text)
            if outcome is None:
                continue
            self.last = outcome.status
            if outcome.kind == "exit":
                self.name_work()
                return outcome.status
            if session.root.cause():
                return status(session.root.cause())

    def turn(self, text: str) -> "Outcome | None":
        """Run one entry and report it."""
        source = Source("<prompt>", normalise(text))
        try:
            outcome = self.session.run(source)
        except Incomplete as e:
            say(render(e.problem))
            return None
        self.report(outcome, text)
        return outcome

    def report(self, outcome: "Outcome", text: str) -> None:
        for problem in outcome.problems:
            say(render(problem))
        if outcome.kind == "failed" and outcome.fault is not None:
            if outcome.fault.reason != ("cancelled", "reader-gone"):
                say(render_fault(outcome.fault))
        elif outcome.kind == "cancelled":
            say(f"\nral: {message(outcome.cause)}\n")
        elif outcome.kind == "parked" and outcome.job is not None:
            entry = self.table.park(outcome.job)
            dropped = "" if entry.job.text == " ".join(text.split()) else "   (rest of the line dropped)"
            say(f"\n[{entry.number}] stopped  {entry.job.text}{dropped}\n")
        elif outcome.kind == "ok":
            self.print_value(outcome.value)

    def print_value(self, value: "Any") -> None:
        if value is None or (type(value) is Handle and self.session.announced):
            return
        if type(value) is bytes:
            write_quietly(1, value)
            return
        write_quietly(1, f"=> {show(value, size()[0] - 3)}\n".encode("utf-8", "replace"))

    def may_leave(self) -> bool:
        """Ctrl-D: live work is named once; the second time in a row the shell leaves."""
        if self.keyboard.gone:
            return True
        self.leaving += 1
        if self.leaving >= NEVER_AGAIN or not self.name_work():
            return True
        say("Ctrl-D once more leaves the shell and ends them\n")
        return False

    def name_work(self) -> bool:
        """Name what still runs; whether there was any."""
        lines = self.table.lines() + [f"[{w.name}] running  {w.text}" for w in self.session.workers.running()]
        for line in lines:
            say(line + "\n")
        return bool(lines)

    def jobs(self, sh: "Shell", args: "list[Any]") -> None:
        """List parked jobs and workers."""
        lines = self.table.refresh() + self.table.lines()
        for w in self.session.workers.live.values():
            lines.append(f"[{w.name}] {'settled' if w.settled else 'running'}  {w.text}")
        if lines:
            sh.out.write(("\n".join(lines) + "\n").encode("utf-8", "surrogateescape"), sh)


def say(text: str) -> None:
    """To the screen; a screen that is gone is noticed at the next prompt."""
    write_quietly(2, text.encode("utf-8", "backslashreplace"))
