"""The floor holds when Python can't run: only the C floor can promise this."""

import os
import pty
import signal
import termios
import time
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.floor
Start = Callable[..., Any]

START = """
install(BATCH); root = DurableRoot.start(); turn = root.foreground()
"""
# A child that nothing but SIGKILL ends, in the table of groups.
STUB = """
group, child = sh(turn, b'trap "" INT TERM HUP; echo stub; while :; do sleep 1000; done')
"""
WEDGES = {
    "sorting": "import random; data = [random.random() for _ in range(3000000)]; say('in'); sorted(data); sorted(data)",
    "summing": "say('in'); sum(range(10**11))",
    "a worker that keeps the lock": "_thread.start_new_thread(sum, (range(10**11),)); say('in'); root.wait(None)",
    "a regex in a worker": "import re; _thread.start_new_thread(re.match, (r'(a*)*$', 'a' * 40 + 'b'));"
    " say('in'); root.wait(None); time.sleep(60)",
}


@pytest.mark.parametrize("wedge", WEDGES)
@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_the_third_gesture_ends_a_wedged_process_and_its_groups(script: Start, wedge: str, sig: int) -> None:
    run = script(START + STUB + WEDGES[wedge])
    assert sorted([run.line(), run.line()]) == ["in", "stub"]
    assert run.survivors()
    for _ in range(3):
        run.kill(sig)
    start = time.monotonic()
    assert run.end(5) == 128 + sig
    assert time.monotonic() - start < 1.5
    # that nobody is left is what the fixture waits for


def test_the_ladder_gives_the_terminal_back(script: Start) -> None:
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    code = (
        START
        + """
from ral.process.terminal import Terminal
terminal = Terminal.open()
group, child = sh(turn, b'trap "" INT TERM; stty raw -echo </dev/tty; echo raw; while :; do sleep 1000; done')
terminal.lend(group.pgid)
say(terminal.foreground() == group.pgid)
say('in'); sum(range(10**11))
"""
    )

    def own_terminal() -> None:
        os.setsid()
        os.close(os.open(os.ttyname(slave), os.O_RDWR))

    run = script(code, preexec_fn=own_terminal)
    assert sorted(run.line() for _ in range(3)) == ["True", "in", "raw"]
    assert termios.tcgetattr(slave) != before
    for _ in range(3):
        run.kill(signal.SIGTERM)
    assert run.end(5) == 143
    assert termios.tcgetattr(slave) == before
    os.close(master)
    os.close(slave)


def test_a_handler_needs_no_python(script: Start) -> None:
    """The gesture is counted and the scope cancelled while the main thread is in one C call."""
    run = script(START + "text = 'x' * 600_000_000; say('in'); text.split('y'); say(gestures(TERMINATE), root.cause())")
    assert run.line() == "in"
    run.kill(signal.SIGTERM)
    assert run.line() == "1 4"
