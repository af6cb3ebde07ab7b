"""The scope tree: who may mint which scope, and how a turn shows its scopes to the signal handlers.

Two types spell the invariant. A `DurableRoot` lives as long as its session, a `ForegroundScope` as long as a turn, and
only a root or another foreground scope mints one. Their constructors ask for a token that this module keeps, so the
type checker and the interpreter both refuse any other way.

The start: signals must find someone from the moment the handlers stand, before a session exists. So `install` makes a
root (in batch a foreground scope too) and the session adopts them: what came meanwhile is not lost.
"""

from _thread import get_ident
from time import monotonic

from ral.cancel import floor
from ral.cancel.floor import Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
else:
    import _signal

BATCH = 0
INTERACTIVE = 1


class _Mint:
    __slots__ = ()


_MINT = _Mint()


class DurableRoot(Scope):
    """The root of one session. `DurableRoot.start()` is the only way to it."""

    __slots__ = ()

    def __new__(cls, mint: _Mint) -> "DurableRoot":
        if mint is not _MINT:
            raise TypeError("a root is made by DurableRoot.start()")
        return Scope.__new__(cls)

    @staticmethod
    def start() -> "DurableRoot":
        """A new root; the first caller after `install` adopts the one that the handlers already know."""
        if _startup.root is not None:
            root, _startup.root = _startup.root, None
            return root
        return DurableRoot(_MINT)

    def foreground(self) -> "ForegroundScope":
        """The scope of a turn; in batch the first one is what the handlers already know."""
        turn = _startup.turn
        if turn is not None and turn.parent is self:
            _startup.turn = None
            return turn
        return ForegroundScope(_MINT, self)

    def worker(self) -> Scope:
        """The scope of a detached worker: ends with the session, not with the turn."""
        return self.child()

    def job(self) -> Scope:
        """The scope of a parked job."""
        return self.child()


class ForegroundScope(Scope):
    """The scope of one turn; minted by `DurableRoot.foreground` and `ForegroundScope.nested` alone."""

    __slots__ = ()

    def __new__(cls, mint: _Mint, parent: "DurableRoot | ForegroundScope") -> "ForegroundScope":
        if mint is not _MINT:
            raise TypeError("a foreground scope is made by a root or by another foreground scope")
        return Scope.__new__(cls, parent)

    def nested(self) -> "ForegroundScope":
        """The scope of a turn within this one."""
        return ForegroundScope(_MINT, self)


class _Startup:
    """What `install` made and no session has adopted yet."""

    __slots__ = ("installed", "root", "turn")
    root: DurableRoot | None
    turn: ForegroundScope | None

    def __init__(self) -> None:
        self.installed = False
        self.root = None
        self.turn = None


_startup = _Startup()


def shield(scope: Scope, seconds: float, grace: float = 0.5) -> Scope:
    """A scope for a cleanup that the cancellation of `scope` started.

    It descends from nobody. It is cancelled by a cause of `scope` stronger than today's, and by DEADLINE after
    `seconds`, or `grace` seconds after one more gesture of today's cause.
    """
    made = Scope(shields=scope, grace=grace)
    made.set_deadline(monotonic() + seconds)
    return made


class publish:
    """`with publish(root, turn):` shows a turn's scopes to the signal handlers, and afterwards what was there before.

    Uses nest, last in first out, whatever is raised in between. `turn` None: no turn is running.
    """

    __slots__ = ("_before", "_root", "_turn")
    _before: tuple[Scope | None, Scope | None]

    def __init__(self, root: DurableRoot, turn: ForegroundScope | None) -> None:
        self._root = root
        self._turn = turn

    def __enter__(self) -> None:
        self._before = floor.swap_root(self._root), floor.swap_foreground(self._turn)

    def __exit__(self, *_: object) -> None:
        root, turn = self._before
        # Un-published before anyone lets them go: the floor returns only once no handler looks at them.
        floor.swap_foreground(turn)
        floor.swap_root(root)


_hook: "interruptible | None" = None
_FOUR = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT)


def _break_off() -> None:
    """Runs as a Python-level handler; raises inside an interruptible primitive, and does nothing anywhere else."""
    global _hook
    hook = _hook
    if hook is not None and (cause := hook.scope.cause()):
        _hook = None  # first of all, so that it raises once and nowhere later
        raise Cancelled(cause, hook.scope)


def _on_signal(_sig: int, _frame: object) -> None:
    _break_off()


class interruptible:
    """Marks a primitive of the main thread that may be broken off by an exception: a regex, which no poll reaches.

    Raises `Cancelled` inside when a gesture cancels `scope`. On another thread it does nothing.
    """

    __slots__ = ("scope",)

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def __enter__(self) -> None:
        global _hook
        if get_ident() == _main:
            _hook = self
            floor.set_interruptible(_break_off)
            _break_off()

    def __exit__(self, *_: object) -> None:
        global _hook
        if get_ident() == _main:
            _hook = None
            floor.set_interruptible(None)


_main = get_ident()


class Cancelled(BaseException):
    """The one error that a poll raises: .cause (1 to 5) and the .scope that was asked, if known.

    It stands outside the tree of failures: `except Exception` lets it pass.
    """

    def __init__(self, cause: int, scope: Scope | None = None) -> None:
        super().__init__(cause)
        self.cause = cause
        self.scope = scope


def install(mode: int) -> None:
    """Installs the signal handlers (BATCH or INTERACTIVE); on the main thread. Again after each prompt_toolkit prompt.

    The first call also fills the slots: the root, and in batch the foreground.
    """
    global _main
    _main = get_ident()
    if not _startup.installed:
        _startup.installed = True
        _startup.root = DurableRoot(_MINT)
        floor.swap_root(_startup.root)
        if mode == BATCH:
            _startup.turn = ForegroundScope(_MINT, _startup.root)
            floor.swap_foreground(_startup.turn)
    if floor.KIND == "c":
        # Python's own handlers lie below the floor's, for interruptible primitives; the floor's go on top at once.
        missing = [sig for sig in _FOUR if _signal.getsignal(sig) is not _on_signal]
        if missing:
            _signal.pthread_sigmask(_signal.SIG_BLOCK, _FOUR)
            for sig in missing:
                _signal.signal(sig, _on_signal)
    floor.install(mode)


def startup_scope() -> Scope:
    """The scope that a signal reaches before a session adopts it; for what is waited for at start-up."""
    turn = _startup.turn or _startup.root
    return turn if turn is not None else Scope()
