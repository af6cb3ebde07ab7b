"""Cancellation: causes, the scope tree, and the handlers that lead a signal to it.

In: signals, `cancel(cause)` on a scope, deadlines. Out: `scope.cause()` to poll, `scope.wait()` and `scope.fileno()` to
sleep on, `Cancelled` raised by `check`. This room never waits for a child and never decides what a stop means for one.

Read the floor first (`ral/_floor.c`, or `_twin` in Python), then the tree built on it (`scopes`), then the words
(`cause`).
"""

from ral.cancel import floor
from ral.cancel.cause import (
    CAUSES,
    DEADLINE,
    EXPLICIT,
    INTERRUPT,
    READER_GONE,
    ROOT_ABORT,
    TERMINATE,
    message,
    status,
    tag,
)
from ral.cancel.floor import Scope, acknowledge, escalation_pending, flag, gestures
from ral.cancel.scopes import (
    BATCH,
    INTERACTIVE,
    Cancelled,
    DurableRoot,
    ForegroundScope,
    install,
    interruptible,
    publish,
    shield,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class HasScope(Protocol):
        """What `check` needs of a shell."""

        @property
        def scope(self) -> Scope: ...


def check(shell: "HasScope") -> None:
    """The poll: raises `Cancelled` with the strongest cause in force on the shell's scope, or returns."""
    scope = shell.scope
    cause = scope.cause()
    if cause:
        raise Cancelled(cause, scope)


__all__ = [
    "BATCH",
    "CAUSES",
    "DEADLINE",
    "EXPLICIT",
    "INTERACTIVE",
    "INTERRUPT",
    "READER_GONE",
    "ROOT_ABORT",
    "TERMINATE",
    "Cancelled",
    "DurableRoot",
    "ForegroundScope",
    "Scope",
    "acknowledge",
    "check",
    "escalation_pending",
    "flag",
    "floor",
    "gestures",
    "install",
    "interruptible",
    "message",
    "publish",
    "shield",
    "status",
    "tag",
]
