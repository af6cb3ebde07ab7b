"""The session object, and the turn: one short walk from text to outcome."""

import gc
import posix
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ral.cancel import Scope
    from ral.code import Compiled
    from ral.jobs import Registry, Worker
    from ral.jobs.table import Table
    from ral.machine.calls import Fn
    from ral.machine.shell import Frame as HandlerFrame
    from ral.machine.shell import Sink
    from ral.process.terminal import Terminal
    from ral.process.wait import Waiter
    from ral.syntax.tree import Program

from ral.builtins.catalogue import BASES, CATALOGUE, signature
from ral.cancel import (
    INTERRUPT,
    Cancelled,
    DurableRoot,
    ForegroundScope,
    acknowledge,
    check,
    flag,
    interruptible,
    publish,
    status,
)
from ral.check import check_program
from ral.code import generate
from ral.core import Names, elaborate
from ral.core import terms as c
from ral.diag import Exit, Fault, Source, StaticError
from ral.machine.faults import FAILS, UNITS, Unit, as_fault
from ral.machine.shell import Frame, Shell
from ral.pipeline.dynamic import CLEANUP_SECONDS
from ral.pipeline.lookup import Env
from ral.pipeline.parked import Parked
from ral.pipeline.streams import FdSink
from ral.session import prims
from ral.session.outcome import Outcome
from ral.syntax import parse

RECURSION_LIMIT = 100_000
KEPT_BACK = ("PWD", "OLDPWD", "RAL_JOB")  # not in $ENV: ral keeps them itself


class Session:
    """One shell. `interactive` sessions lend their terminal and park jobs; batch sessions walk the ladder."""

    def __init__(self, interactive: bool, args: list[str], terminal: "Terminal | None" = None) -> None:
        self.interactive = interactive
        self.terminal = terminal
        self.root = DurableRoot.start()
        self.turn: ForegroundScope = self.root.foreground()
        self.recursion_limit = RECURSION_LIMIT
        self.natives = frozenset(CATALOGUE)
        self.bases: dict[str, Any] = {"echo": prims.echo}
        self.names = Names({}, self.natives, frozenset(BASES), None)
        self.aliases: dict[str, Fn] = {}
        self._workers: Registry | None = None
        self.adopting = False
        self.waiter: Waiter | None = None  # of the last command, for the next
        self.table: Table | None = None  # parked jobs; interactive sessions only
        self.ending: list[Worker] = []  # cancelled workers that may still be tearing down
        self.announced = False
        self.loading: list[str] = []  # module files being loaded, outermost first
        self.unwinds: dict[int, tuple[Scope, float]] = {}
        self.pass_on = False  # a Ctrl-C fell on a lent group and is owed to our own
        self.turns = 0
        self.globals = prims.namespace(self)
        self._null = -1
        self.stdin_is_terminal = posix.isatty(0)
        self.out: Sink = FdSink(1, "standard output")
        self.out_err: Sink = FdSink(2, "standard error")
        sh = Shell(self.turn, flag(self.turn), self)
        sh.env = Env(
            (k.decode("utf-8", "surrogateescape"), v.decode("utf-8", "surrogateescape"))
            for k, v in posix.environ.items()
            if k.decode("utf-8", "surrogateescape") not in KEPT_BACK
        )
        seed(sh.env)
        sh.cwd = start_directory()
        sh.out, sh.err = self.out, self.out_err
        sh.args = args
        try:
            sh.grace = max(0.0, float(sh.env.get("RAL_GRACE", "0.5")))
            self.cleanup = max(0.0, float(sh.env.get("RAL_CLEANUP", str(CLEANUP_SECONDS))))
        except ValueError:
            self.cleanup = CLEANUP_SECONDS
        self.shell = sh

    # What the rooms below ask of the session

    @property
    def null(self) -> int:
        """A descriptor of the null device: a child's empty input."""
        if self._null < 0:
            self._null = posix.open("/dev/null", posix.O_RDONLY | posix.O_CLOEXEC)
        return self._null

    @property
    def workers(self) -> "Registry":
        """The workers, made when the first is wanted."""
        if self._workers is None:
            from ral.jobs import Registry

            self._workers = Registry()
        return self._workers

    def adopt(self) -> None:
        """Before the first child: whoever leaves a process group stays our descendant."""
        if not self.adopting:
            from ral.process.tree import adopt_orphans

            self.adopting = True
            adopt_orphans()

    def open_terminal(self) -> "Terminal | None":
        """The controlling terminal; batch looks for it when a child first wants it."""
        if self.terminal is None and not self.interactive:
            from ral.process.terminal import Terminal

            self.terminal = Terminal.open()
        return self.terminal

    def struck(self, sh: Shell, cause: int) -> None:
        """A key fell on a lent terminal, and the job died of it: the run is cancelled."""
        if cause == INTERRUPT:
            self.pass_on = not self.interactive
            self.turn.cancel(cause)
        else:
            self.root.cancel(cause)

    def stop_self(self) -> None:
        """Batch: a SIGTSTP that fell on a lent group, passed on to our own."""
        from ral.process.signals import SIGTSTP

        posix.kill(0, SIGTSTP)

    def cleanup_left(self, scope: "Scope") -> float:
        """Seconds left of the one cleanup budget of an unwinding, counted from when its first guard was reached."""
        top: Scope | None = scope
        fired = scope
        while top is not None:
            if top.own_cause():
                fired = top
            top = top.parent
        known = self.unwinds.get(id(fired))
        if known is None:
            known = self.unwinds[id(fired)] = (fired, time.monotonic() + self.cleanup)
        return known[1] - time.monotonic()

    def with_aliases(self, frames: "tuple[HandlerFrame, ...]") -> "tuple[HandlerFrame, ...]":
        """Aliases are the outermost named handlers."""
        rest = tuple(f for f in frames if f.named is not self.aliases)
        return (Frame(self.aliases, None), *rest) if self.aliases else rest

    def use(self, sh: Shell, path: str, script: str | None) -> "dict[str, Any]":
        """Load a module."""
        from ral.session.modules import use

        return use(self, sh, path, script)

    # Turns

    def compile(self, source: Source, program: "Program", names: Names) -> "tuple[Compiled, c.Seq]":
        """Elaborate, check and generate. Raises `StaticError`."""
        self.turns += 1
        names.counter = max(names.counter, self.names.counter)
        seq, _ = elaborate(program, source, names)
        self.names.counter = names.counter
        check_program(seq, source, signature)
        compiled = generate(seq, source, f"<ral {self.turns}>")
        self.names.counter = names.counter
        UNITS[compiled.filename] = Unit(source, compiled.spans)
        prims.provide(self.globals, compiled.natives)
        return compiled, seq

    def run(self, source: Source) -> Outcome:
        """One turn: parse, check, execute. Raises `Incomplete` when the text ends inside a form."""
        with publish(self.root, self.turn):
            try:
                with interruptible(self.turn):  # nothing polls while a program is read, however long it is
                    compiled, seq = self.compile(source, parse(source), self.names)
            except StaticError as e:
                return refused(e)
            except Cancelled as e:
                return cancelled(e.cause)
            try:
                return self.execute(compiled)
            finally:
                self.keep(seq)

    def execute(self, compiled: "Compiled") -> Outcome:
        """Run a turn's code under its published scopes."""
        sh = self.shell
        sh.scope, sh.flag = self.turn, flag(self.turn)
        sh.unparkable = 0
        self.announced = False
        self.globals["sh"] = sh
        depth = sys.getrecursionlimit()
        sys.setrecursionlimit(self.recursion_limit + 60)
        gc.freeze()  # what the start made stays; collections need not look at it
        gc.enable()
        try:
            exec(compiled.code, self.globals)
            check(sh)  # recovery inside a last `try` cannot settle a cancelled run
            outcome = Outcome("ok", 0)
            outcome.value = self.globals.get("_result")
            if outcome.value is False:
                outcome.status = 1
            return outcome
        except Exit as e:
            cause = self.turn.cause()
            return cancelled(cause) if cause else exited(e.status)
        except Parked as e:
            outcome = Outcome("parked", 148)
            outcome.job = e.job
            return outcome
        except FAILS as e:
            cause = self.turn.cause()
            return cancelled(cause) if cause else failed(e)
        finally:
            sys.setrecursionlimit(depth)

    def keep(self, seq: c.Seq) -> None:
        """Bind what the turn's top level established, up to where it failed."""
        for item in seq.items:
            for var in bound(item):
                if var.py in self.globals:
                    self.names.bindings[var.name] = var

    def next_turn(self) -> None:
        """A fresh foreground scope; a stale gesture hits nothing."""
        self.turn = self.root.foreground()
        self.unwinds.clear()
        acknowledge()

    # The end

    def end_workers(self, cause: int) -> None:
        """Cancel every live worker, all at once, and wait for one grace and a little for their teardown."""
        live = self._workers.running() if self._workers is not None else []
        for worker in live:
            worker.cancelled = True
            worker.scope.cancel(cause)
        waiting = [w for w in live + self.ending if not w.settled]
        if not waiting:
            return
        import select

        poll = select.poll()
        for w in waiting:
            poll.register(w.bell, select.POLLIN)
        end = time.monotonic() + self.shell.grace + 1.5
        while any(not w.settled for w in waiting):
            left = end - time.monotonic()
            if left <= 0:
                return
            for w in waiting:
                if w.settled:
                    try:
                        poll.unregister(w.bell)
                    except KeyError:
                        pass
            poll.poll(left * 1000)


def bound(item: c.Comp) -> "list[c.Var]":
    """The variables that a top-level statement binds."""
    if isinstance(item, c.Rec):
        return [var for var, _ in item.group]
    if not isinstance(item, c.Let):
        return []
    found: list[c.Var] = []
    stack: list[c.Pattern] = [item.pattern]
    while stack:
        match stack.pop():
            case c.Bind(var):
                found.append(var)
            case c.ListPattern(items, rest):
                stack += items
                if rest is not None:
                    stack.append(rest)
            case c.FieldPattern(fields):
                stack += [p for _, p in fields]
            case _:
                pass
    return found


def refused(e: StaticError) -> Outcome:
    outcome = Outcome("refused", e.status)
    outcome.problems = e.problems
    return outcome


def cancelled(cause: int) -> Outcome:
    outcome = Outcome("cancelled", status(cause))
    outcome.cause = cause
    return outcome


def exited(number: int) -> Outcome:
    return Outcome("exit", number if 0 <= number <= 255 else 255)


def failed(e: BaseException) -> Outcome:
    fault: Fault = as_fault(e)
    outcome = Outcome("failed", fault.status if 0 <= fault.status <= 255 else 255)
    outcome.fault = fault
    return outcome


def start_directory() -> str:
    """The logical directory: PWD when it names the real one, else what the system says."""
    logical = posix.environ.get(b"PWD", b"").decode("utf-8", "surrogateescape")
    try:
        if logical.startswith("/") and "/." not in logical:
            a, b = posix.stat(logical), posix.stat(".")
            if (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino):
                return logical
        return posix.getcwd()
    except OSError:
        return logical or "/"


def seed(env: dict[str, str]) -> None:
    """Defaults for what a program may count on; what is inherited wins."""
    env.setdefault("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
    env.setdefault("TERM", "dumb")
    level = env.get("SHLVL", "0")
    env["SHLVL"] = str(int(level) + 1) if level.isdigit() and len(level) < 9 else "1"
