"""Names, numbers, and dying of a signal."""

import signal
from collections.abc import Callable
from typing import Any

import pytest

from ral.process import exit_number, signals

Start = Callable[..., Any]


def test_names_and_numbers() -> None:
    assert signals.name(15) == "SIGTERM"
    assert signals.name(40) == "signal 40"
    assert [signals.number(word) for word in ("SIGTERM", "TERM", "term", "15")] == [15] * 4
    assert [signals.number(word) for word in ("", "0", "999", "SIG_DFL", "nope", "TERMINAL")] == [None] * 6
    assert "erminated" in signals.describe(15)


def test_exit_numbers() -> None:
    assert [exit_number(status) for status in (0, 7, 255, -2, -9, -15)] == [0, 7, 255, 130, 137, 143]


@pytest.mark.parametrize("group", [False, True])
def test_a_run_may_end_by_the_death_itself(script: Start, group: bool) -> None:
    code = f"""
from ral.process.signals import die_of
install(BATCH); root = DurableRoot.start(); turn = root.foreground()
say('in'); turn.wait(10); die_of(2, group={group}); say('never')
"""
    run = script(code, start_new_session=True)
    assert run.line() == "in"
    run.kill(signal.SIGINT)
    assert run.line() == ""
    assert run.end() == -2
