"""The terminal is lent, taken back and put in order: on a real pty, seen from its other end."""

import fcntl
import os
import pty
import select
import signal
import termios
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

Start = Callable[..., Any]

START = """
from ral.process import tree
from ral.process.teardown import teardown
from ral.process.terminal import Terminal, OFF
install(MODE); root = DurableRoot.start(); turn = root.foreground()
terminal = Terminal.open()
def until_status(child):
    with Waiter(turn) as w: w.add_child(child); return w.run(lambda: child.status is not None, 10)
def until_stop(child):
    with Waiter(turn) as w: w.add_child(child); return w.run(lambda: child.stopped != 0, 10)
tty = posix.open('/dev/tty', posix.O_RDWR | posix.O_CLOEXEC)
"""
INTERACTIVE = START.replace("MODE", "INTERACTIVE")
BATCH = START.replace("MODE", "BATCH")


class Pty:
    def __init__(self) -> None:
        self.master, self.slave = pty.openpty()
        self.text = b""

    def own(self) -> None:
        os.setsid()
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)

    def read_until(self, wanted: bytes, seconds: float = 10) -> None:
        end = time.monotonic() + seconds
        while wanted not in self.text:
            left = end - time.monotonic()
            assert left > 0, f"{wanted!r} never came: {self.text!r}"
            if select.select([self.master], [], [], left)[0]:
                self.text += os.read(self.master, 65536)


@pytest.fixture
def screen() -> Iterator[Pty]:
    made = Pty()
    yield made
    os.close(made.master)
    os.close(made.slave)


def test_none_where_there_is_no_terminal(script: Start) -> None:
    run = script(BATCH.replace("tty = ", "#") + "say(terminal)", preexec_fn=os.setsid)
    assert run.line() == "None"


@pytest.mark.parametrize("mode", [INTERACTIVE, BATCH], ids=["interactive", "batch"])
def test_a_child_that_was_faster_is_continued(script: Start, screen: Pty, mode: str) -> None:
    run = script(
        mode
        + """
group, child = sh(turn, b'read line; echo got $line', fds=(tty, tty, tty))
until_stop(child)
say(child.stopped, terminal.is_ours)
say(terminal.lend(group.pgid), terminal.foreground() == group.pgid)
until_status(child)
terminal.take_back()
say(child.status, terminal.is_ours)
group.close()
""",
        preexec_fn=screen.own,
    )
    assert run.line() == f"{signal.SIGTTIN} True"
    assert run.line() == "True True"
    os.write(screen.master, b"hello\n")
    screen.read_until(b"got hello")
    assert run.line() == "0 True"
    assert run.end() == 0


def test_keys_go_to_the_lent_group(script: Start, screen: Pty) -> None:
    run = script(
        INTERACTIVE
        + """
with publish(root, turn):
    group, child = sh(turn, b'exec sleep 1000')
    terminal.lend(group.pgid)
    say('lent')
    until_status(child)
    terminal.take_back(died=child.status < 0)
    say(child.status, turn.cause(), terminal.is_ours)
    group.close()
""",
        preexec_fn=screen.own,
    )
    assert run.line() == "lent"
    os.write(screen.master, b"\x03")
    assert run.line() == "-2 0 True"


def test_modes_are_restored_and_modes_switched_off_only_when_needed(script: Start, screen: Pty) -> None:
    before = termios.tcgetattr(screen.slave)
    run = script(
        INTERACTIVE
        + """
def job(text):
    group, child = sh(turn, text, fds=(tty, tty, tty))
    terminal.lend(group.pgid)
    until_status(child)
    terminal.take_back(died=child.status < 0)
    posix.write(tty, b'<%d>' % -child.status)
    group.close()
job(b'echo quiet')
job(b'stty raw -echo')
job(b'kill -9 $$')
""",
        preexec_fn=screen.own,
    )
    assert run.end() == 0
    screen.read_until(b"<9>")
    quiet, changed, died = screen.text.split(b"<0>")
    assert b"\x1b" not in quiet
    for mode in (b"?1003l", b"?1006l", b"?2004l", b"?1049l", b"?25h", b"\x1b[<u"):
        assert mode in changed
        assert mode in died
    assert termios.tcgetattr(screen.slave) == before


def test_a_stopped_job_gets_its_modes_again(script: Start, screen: Pty) -> None:
    run = script(
        INTERACTIVE
        + """
import termios
group, child = sh(turn, b'stty -echo; kill -STOP $$; stty -a | grep -o -e "-echo "', fds=(tty, 1, 2))
terminal.lend(group.pgid)
until_stop(child)
modes = terminal.take_back()
say(bool(termios.tcgetattr(tty)[3] & termios.ECHO), bool(modes[3] & termios.ECHO))
terminal.lend(group.pgid, modes)
until_status(child)
terminal.take_back()
say(child.status)
group.close()
""",
        preexec_fn=screen.own,
    )
    assert run.line() == "True False"
    assert run.line().strip() == "-echo"
    assert run.line() == "0"


def test_a_group_that_is_gone_cannot_be_lent_to(script: Start, screen: Pty) -> None:
    run = script(INTERACTIVE + "say(terminal.lend(2 ** 22 - 1), terminal.is_ours)", preexec_fn=screen.own)
    assert run.line() == "False True"


def state(pid: int) -> str:
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def test_batch_stops_and_resumes_together_with_its_groups(script: Start) -> None:
    run = script(
        BATCH.replace("terminal = Terminal.open()", "").replace("tty = ", "#")
        + "group, child = sh(turn, b'exec sleep 1000'); say(child.pid)\nuntil_status(child); say(child.status)\n",
        preexec_fn=os.setpgrp,  # with a parent outside of it, the group is no orphan, so the kernel lets it stop
    )
    child = int(run.line())
    end = time.monotonic() + 10
    for sig, wanted in ((signal.SIGTSTP, "T"), (signal.SIGCONT, "RS")):
        run.process.send_signal(sig)
        while state(run.process.pid) not in wanted or state(child) not in wanted:
            assert time.monotonic() < end
    os.kill(child, signal.SIGKILL)
    assert run.line() == "-9"
    assert run.end() == 0


def test_an_interactive_shell_is_not_stopped(script: Start) -> None:
    run = script(
        INTERACTIVE.replace("terminal = Terminal.open()", "").replace("tty = ", "#") + "say('in'); say(root.wait(10))"
    )
    assert run.line() == "in"
    for sig in (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
        run.process.send_signal(sig)
    run.kill(signal.SIGTERM)
    assert run.line() == "4"
