"""Batch on a terminal: lending on demand, the key that is passed on, a death that a calling shell sees, Ctrl-Z."""

import os
import shlex
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from support import RAL, Mark, until

MARK = Mark()
READ = "sh -c 'echo run-$((1+1)); read x < /dev/tty; echo got-$x'"


def quoted(program: str) -> str:
    return shlex.join([*RAL, "-c", program])


@pytest.fixture
def start(tmp_path: Path) -> "Iterator[object]":
    started: list[pexpect.spawn[str]] = []

    def begin(*argv: str) -> "pexpect.spawn[str]":
        env = {**os.environ, **MARK.env(), "HOME": str(tmp_path), "TERM": "xterm"}
        child = pexpect.spawn(argv[0], list(argv[1:]), env=env, timeout=15, encoding="utf-8", dimensions=(12, 80))
        child.delaybeforesend = None
        started.append(child)
        return child

    yield begin
    for child in started:
        child.close(force=True)
    until(lambda: not MARK.carriers(), 5)


def end(child: "pexpect.spawn[str]") -> "tuple[int | None, int | None]":
    child.expect(pexpect.EOF)
    child.close()
    return child.exitstatus, child.signalstatus


def sleeping() -> bool:
    return any(c.endswith(" sleep") for c in MARK.carriers())


def test_a_child_is_lent_the_terminal_when_it_wants_it(start) -> None:  # type: ignore[no-untyped-def]
    child = start(*RAL, "-c", READ + "; echo done")
    child.expect_exact("run-2\r\n")
    child.send("hello\r")
    child.expect_exact("got-hello\r\ndone\r\n")
    assert end(child) == (0, None)


def test_also_inside_a_capture(start) -> None:  # type: ignore[no-untyped-def]
    child = start(*RAL, "-c", "let x = sh -c 'read x < /dev/tty; echo got-$x'; echo \"x-$x\"")
    child.send("hello\r")
    child.expect_exact("x-got-hello\r\n")
    assert end(child) == (0, None)


@pytest.mark.skipif(shutil.which("less") is None, reason="needs less")
def test_a_pager_at_the_end_of_a_pipeline(start) -> None:  # type: ignore[no-untyped-def]
    child = start(*RAL, "-c", 'seq 1 100000 | less; echo "done-$[1 + 1]"')
    child.expect_exact("\r\n9")
    child.send("q")
    child.expect_exact("done-2")
    assert end(child) == (0, None)


@pytest.mark.parametrize("program", ["sleep 3171", READ, "let x = sleep 3171", "guard { sleep 3171 } { sleep 0.1 }"])
def test_ctrl_c_ends_ral_by_the_signal(program: str, start) -> None:  # type: ignore[no-untyped-def]
    child = start(*RAL, "-c", program + "; echo no")
    if program == READ:
        child.expect_exact("run-2\r\n")
        until(lambda: os.tcgetpgrp(child.child_fd) != child.pid)
    else:
        until(sleeping)
    child.send("\x03")
    child.expect_exact("ral: interrupted")
    assert end(child) == (None, signal.SIGINT)


@pytest.mark.parametrize("program", ["sleep 3171", READ])
def test_the_loop_of_a_calling_shell_stops(program: str, start) -> None:  # type: ignore[no-untyped-def]
    child = start("bash", "-c", f"while true; do {quoted(program)}; done; echo never")
    if program == READ:
        child.expect_exact("run-2\r\n")
        until(lambda: os.tcgetpgrp(child.child_fd) != child.pid)
    else:
        until(sleeping)
    child.send("\x03")
    assert end(child) == (None, signal.SIGINT)


def test_the_status_is_130_all_the_same(start) -> None:  # type: ignore[no-untyped-def]
    child = start("bash", "-c", f"trap : INT; {quoted('sleep 3171')}; echo status-$?")
    until(sleeping)
    child.send("\x03")
    child.expect_exact("status-130")
    end(child)


def test_ctrl_z_stops_ral_and_its_groups_and_they_go_on_together(start) -> None:  # type: ignore[no-untyped-def]
    child = start("bash", "--norc", "-i")
    child.expect("#|[$]")
    child.send(quoted("sleep 1; sleep 0.1; echo end") + "\r")
    until(sleeping)
    child.send("\x1a")
    child.expect("Stopped")
    states = [Path(f"/proc/{c.split()[0]}/stat").read_text().rpartition(")")[2].split()[0] for c in MARK.carriers()]
    assert states.count("T") >= 2
    child.send("fg\r")
    child.expect_exact("end\r\n")
    child.send("exit\r")
    child.expect(pexpect.EOF)
