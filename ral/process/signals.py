"""Signals by number and name, without the `signal` module, whose enums are dear at start-up."""

import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
else:
    import _signal

SIGHUP = int(_signal.SIGHUP)
SIGINT = int(_signal.SIGINT)
SIGQUIT = int(_signal.SIGQUIT)
SIGKILL = int(_signal.SIGKILL)
SIGPIPE = int(_signal.SIGPIPE)
SIGTERM = int(_signal.SIGTERM)
SIGCHLD = int(_signal.SIGCHLD)
SIGCONT = int(_signal.SIGCONT)
SIGSTOP = int(_signal.SIGSTOP)
SIGTSTP = int(_signal.SIGTSTP)
SIGTTIN = int(_signal.SIGTTIN)
SIGTTOU = int(_signal.SIGTTOU)


def name(sig: int) -> str:
    """`SIGTERM` for 15; `signal 70` for a number without a name."""
    for word in dir(_signal):
        if word.startswith("SIG") and not word.startswith("SIG_") and getattr(_signal, word) == sig:
            return word
    return f"signal {sig}"


def describe(sig: int) -> str:
    """What the system calls it, such as `Terminated`; the name where it has no words."""
    return _signal.strsignal(sig) or name(sig)


def number(word: str) -> int | None:
    """15 for `SIGTERM`, `TERM`, `term` or `15`; None for anything else."""
    if word.isascii() and word.isdigit():
        return int(word) if 0 < int(word) < int(_signal.NSIG) else None
    upper = word.upper()
    if not upper.startswith("SIG"):
        upper = "SIG" + upper
    found = getattr(_signal, upper, None)
    return int(found) if isinstance(found, int) and not upper.startswith("SIG_") else None


def die_of(sig: int, *, group: bool = False) -> None:
    """Ends this process by the signal's default action, so that the caller sees a death and not a number.

    After all cleanup, on the main thread. `group`: our whole process group hears the signal, once, ourselves included:
    for a key that fell on a job's group alone. Returns where the default action doesn't apply, as for PID 1.
    """
    _signal.pthread_sigmask(_signal.SIG_BLOCK, (sig,))
    _signal.signal(sig, _signal.SIG_DFL)
    posix.kill(0 if group else posix.getpid(), sig)
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, (sig,))
