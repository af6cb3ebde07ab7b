"""Slots, the words, and who may mint what."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ral import cancel
from ral.cancel import Cancelled, DurableRoot, ForegroundScope, check, floor, publish, scopes


def current() -> tuple[object, object]:
    root, turn = floor.swap_root(None), floor.swap_foreground(None)
    floor.swap_root(root)
    floor.swap_foreground(turn)
    return root, turn


@given(st.lists(st.booleans(), max_size=6))
def test_slots_come_back_in_order_whatever_is_raised(raises: list[bool]) -> None:
    root = DurableRoot.start()

    def nest(turn: ForegroundScope, rest: list[bool]) -> None:
        before = current()
        try:
            with publish(root, turn):
                assert current() == (root, turn)
                if rest:
                    nest(turn.nested(), rest[1:])
                if rest and rest[0]:
                    raise KeyError
        except KeyError:
            pass
        assert current() == before

    before = current()
    nest(root.foreground(), raises)
    assert current() == before


def test_a_request_hits_what_the_slot_holds_and_an_empty_one_nothing() -> None:
    root = DurableRoot.start()
    turn, worker = root.foreground(), root.worker()
    floor.request_foreground_cancel(cancel.INTERRUPT)
    floor.request_root_cancel(cancel.TERMINATE)
    assert not turn
    with publish(root, turn):
        floor.request_foreground_cancel(cancel.INTERRUPT)
        assert (turn.cause(), worker.cause()) == (cancel.INTERRUPT, 0)
        floor.request_root_cancel(cancel.TERMINATE)
        assert (turn.cause(), worker.cause()) == (cancel.TERMINATE, cancel.TERMINATE)


def test_roots_and_foregrounds_have_no_other_way() -> None:
    for attempt in (lambda: DurableRoot(None), lambda: ForegroundScope(None, DurableRoot.start())):  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            attempt()


def test_the_type_checker_rejects_the_attempt(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "tried.py").write_text(
        "from ral.cancel import DurableRoot, ForegroundScope\n"
        "DurableRoot()\nForegroundScope()\nForegroundScope(DurableRoot.start())\n"
        "DurableRoot.start().worker().nested()\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "tried.py"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    lines = {line.split(":")[1] for line in result.stdout.splitlines() if ": error:" in line}
    assert lines == {"2", "3", "4", "5"}, result.stdout + result.stderr


def test_check_raises_the_one_error() -> None:
    scope = DurableRoot.start().foreground()
    shell = SimpleNamespace(scope=scope)
    check(shell)
    scope.cancel(cancel.DEADLINE)
    with pytest.raises(Cancelled) as raised:
        check(shell)
    assert (raised.value.cause, raised.value.scope) == (cancel.DEADLINE, scope)
    assert not isinstance(raised.value, Exception)


def test_a_shield_of_the_door_has_a_clock() -> None:
    turn = DurableRoot.start().foreground()
    turn.cancel(cancel.INTERRUPT)
    assert scopes.shield(turn, 0.01).wait(10) == cancel.DEADLINE


def test_words_and_statuses() -> None:
    assert [(cancel.message(c), cancel.tag(c), cancel.status(c)) for c in cancel.CAUSES] == [
        ("interrupted", "interrupted", 130),
        ("cancelled", "cancelled", 130),
        ("timed out", "timed-out", 130),
        ("terminated", "terminated", 143),
        ("aborted", "aborted", 130),
    ]
