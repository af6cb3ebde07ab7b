"""The terminal: lent to a job's group, taken back, and put in order as it was found.

tcsetpgrp from the background stops the caller with SIGTTOU, and so does tcsetattr; so both are done with that signal
blocked on this thread. The loan is also written down in the floor, so that the ladder's third gives it back.
"""

import posix

from ral.cancel import floor
from ral.process.ids import Pgid
from ral.process.signals import SIGCONT, SIGTTIN, SIGTTOU

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal

    Modes = list[int | list[bytes | int]]
    """What termios.tcgetattr returns."""
else:
    import _signal

OFF = (
    b"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\x1b[?1015l"  # mouse reporting
    b"\x1b[?1004l\x1b[?2004l"  # focus reports, bracketed paste
    b"\x1b[=0u\x1b[<u"  # kitty keys
    # Main screen. Leaving it once more than it was entered moves the cursor on some terminals, so that is saved and put back.
    b"\x1b7\x1b[?1049l\x1b8"
    b"\x1b[?25h\x1b[0m"  # cursor, colours
)
"""What undoes the modes that programs switch on by writing to the terminal."""


class Terminal:
    """The controlling terminal of this process, with the modes and the group that it had when it was opened."""

    __slots__ = ("fd", "lent_to", "modes", "pgid")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.pgid = Pgid(posix.getpgrp())
        self.modes = _read(fd)
        self.lent_to: Pgid | None = None

    @staticmethod
    def open() -> "Terminal | None":
        """None when this process has no controlling terminal."""
        try:
            return Terminal(posix.open("/dev/tty", posix.O_RDWR | posix.O_CLOEXEC | posix.O_NOCTTY))
        except OSError:
            return None

    def close(self) -> None:
        posix.close(self.fd)

    @property
    def is_ours(self) -> bool:
        """Whether our own group is the foreground. False when the terminal is gone."""
        return self.foreground() == self.pgid

    def foreground(self) -> Pgid | None:
        """The foreground group; None when the terminal is gone."""
        try:
            return Pgid(posix.tcgetpgrp(self.fd))
        except OSError:
            return None

    def claim(self) -> bool:
        """For an interactive shell: waits to be in the foreground, then leads a group of its own there.

        False when the terminal is gone. Before `install(INTERACTIVE)`, whose ignored SIGTTIN could not stop us here.
        """
        while not self.is_ours:
            if self.foreground() is None:
                return False
            posix.kill(0, SIGTTIN)  # the shell above continues us when it is our turn
            self.pgid = Pgid(posix.getpgrp())
        if self.pgid != posix.getpid():
            try:
                posix.setpgid(0, 0)
            except PermissionError:
                pass  # a session leader leads its group already
            self.pgid = Pgid(posix.getpgrp())
            return self._give(self.pgid)
        return True

    def lend(self, pgid: Pgid, modes: "Modes | None" = None, *, resume: bool = True) -> bool:
        """Makes `pgid` the foreground, and continues it in case it was quicker and stopped for want of the terminal.

        `modes`: what a resumed job had set. `resume` False: the caller watches for a stop of SIGTTIN or SIGTTOU and
        continues the group itself; a SIGCONT sent blindly could undo a Ctrl-Z that fell just after the loan.
        False when the group or the terminal is gone.
        """
        floor.set_terminal(self.fd, self.pgid, self.modes)
        self.lent_to = pgid
        if not self._give(pgid):
            self.lent_to = None
            floor.clear_terminal()
            return False
        if modes is not None:
            self._write(modes)
        if resume:
            try:
                posix.kill(-pgid, SIGCONT)
            except OSError:
                pass  # ended already
        return True

    def take_back(self, *, died: bool = False) -> "Modes | None":
        """The foreground and the modes are ours again. What the job left as modes, to give it back when it resumes.

        `died`: the job died of a signal; then, or when it left the modes changed, the off sequences are written too.
        Harmless when nothing is lent.
        """
        if self.lent_to is None:
            return None
        self.lent_to = None
        self._give(self.pgid)
        left = _read(self.fd)
        if died or (left is not None and left != self.modes):
            self.restore()
            self._put(OFF)
        floor.clear_terminal()
        return left

    def restore(self) -> None:
        """Our own modes again, and our own group if the terminal is still lent."""
        if self.lent_to is not None:
            self.lent_to = None
            self._give(self.pgid)
        if self.modes is not None:
            self._write(self.modes)

    def _give(self, pgid: Pgid) -> bool:
        before = _signal.pthread_sigmask(_signal.SIG_BLOCK, (SIGTTOU,))
        try:
            posix.tcsetpgrp(self.fd, pgid)
        except OSError:
            return False
        finally:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, before)
        return True

    def _write(self, modes: "Modes") -> None:
        import termios

        before = _signal.pthread_sigmask(_signal.SIG_BLOCK, (SIGTTOU,))
        try:
            termios.tcsetattr(self.fd, termios.TCSANOW, modes)
        except (OSError, termios.error):
            pass  # the terminal is gone
        finally:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, before)

    def _put(self, sequence: bytes) -> None:
        before = _signal.pthread_sigmask(_signal.SIG_BLOCK, (SIGTTOU,))
        try:
            posix.write(self.fd, sequence)
        except OSError:
            pass
        finally:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, before)


def _read(fd: int) -> "Modes | None":
    import termios

    try:
        return termios.tcgetattr(fd)
    except (OSError, termios.error):
        return None


def size(fd: int = 1) -> tuple[int, int]:
    """Columns and lines; (80, 24) where it is not a terminal or doesn't say."""
    try:
        columns, lines = posix.get_terminal_size(fd)
    except OSError:
        columns, lines = 0, 0
    return columns or 80, lines or 24
