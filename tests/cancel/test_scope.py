"""The scope tree, on both floors, against a model that is too simple to be wrong."""

import gc
import os
import select
import threading
import time
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

INTERRUPT, EXPLICIT, DEADLINE, TERMINATE, ROOT_ABORT = range(1, 6)
many = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def readable(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))


def open_fds() -> int:
    return len(os.listdir("/proc/self/fd"))


@many
@given(
    parents=st.lists(st.integers(0, 30), min_size=1, max_size=12),
    cancels=st.lists(st.tuples(st.integers(0, 30), st.integers(1, 5)), max_size=12),
    watched=st.sets(st.integers(0, 12)),
)
def test_a_cause_reaches_every_descendant_and_only_rises(
    floor: ModuleType, parents: list[int], cancels: list[tuple[int, int]], watched: set[int]
) -> None:
    scopes = [floor.Scope()]
    above = [-1]
    for number in parents:
        above.append(number % len(scopes))
        scopes.append(floor.Scope(scopes[above[-1]]))
    own = [0] * len(scopes)
    for index in watched:  # some descriptors exist before the cancel, the others are made after it
        scopes[index % len(scopes)].fileno()
    for index, cause in [(0, 0), *cancels]:
        if cause:
            scopes[index % len(scopes)].cancel(cause)
            own[index % len(scopes)] = max(own[index % len(scopes)], cause)
        for i, scope in enumerate(scopes):
            path, expected = i, 0
            while path >= 0:
                expected, path = max(expected, own[path]), above[path]
            assert (scope.cause(), scope.own_cause(), bool(scope)) == (expected, own[i], expected > 0)
    for scope in scopes:
        assert readable(scope.fileno()) == bool(scope)
        assert scope.wait(0) == scope.cause()


@many
@given(causes=st.lists(st.integers(1, 5), min_size=2, max_size=4))
def test_racing_cancels_leave_the_strongest_and_no_one_sees_a_fall(floor: ModuleType, causes: list[int]) -> None:
    scope = floor.Scope()
    start = threading.Barrier(len(causes) + 1)
    seen: list[int] = []

    def cancel(cause: int) -> None:
        start.wait()
        scope.cancel(cause)

    threads = [threading.Thread(target=cancel, args=(cause,)) for cause in causes]
    for thread in threads:
        thread.start()
    start.wait()
    while any(thread.is_alive() for thread in threads):
        seen.append(scope.cause())
    seen.append(scope.cause())
    assert seen == sorted(seen)
    assert seen[-1] == max(causes)


def test_a_cancel_between_check_and_sleep_is_not_missed(floor: ModuleType) -> None:
    root = floor.Scope()
    leaf = root.child().child()
    floor.set_seam(lambda: root.cancel(TERMINATE))
    try:
        assert leaf.wait(None) == TERMINATE
    finally:
        floor.set_seam(None)


def test_a_rise_wakes_a_sleeper_who_knows_the_weaker_cause(floor: ModuleType) -> None:
    root = floor.Scope()
    leaf = root.child()
    sleeper = select.epoll()
    sleeper.register(leaf.fileno(), select.EPOLLIN | select.EPOLLET)
    root.cancel(INTERRUPT)
    assert sleeper.poll(5)
    assert not sleeper.poll(0)  # edge-triggered: once for each request
    root.cancel(TERMINATE)
    assert sleeper.poll(5)
    leaf.cancel(INTERRUPT)  # each request writes again, the weak ones too
    assert sleeper.poll(5)


def test_a_cancel_wakes_a_sleeping_thread(floor: ModuleType) -> None:
    root = floor.Scope()
    got: list[int] = []
    threads = [threading.Thread(target=lambda: got.append(root.child().wait(20))) for _ in range(8)]
    for thread in threads:
        thread.start()
    root.cancel(EXPLICIT)
    for thread in threads:
        thread.join(10)
    assert got == [EXPLICIT] * 8


def test_a_deadline_fires_where_it_stands_and_below(floor: ModuleType) -> None:
    root = floor.Scope()
    bounded = root.child()
    leaf = bounded.child()
    start = time.monotonic()
    bounded.set_deadline(start + 0.05)
    assert leaf.wait(10) == DEADLINE
    assert time.monotonic() - start >= 0.05
    assert (root.cause(), bounded.own_cause(), leaf.own_cause()) == (0, DEADLINE, 0)
    assert readable(leaf.fileno())


def test_the_poll_sees_a_deadline_without_a_wait(floor: ModuleType) -> None:
    scope = floor.Scope()
    leaf = scope.child()
    flag = floor.flag(leaf)
    scope.set_deadline(time.monotonic() + 0.02)
    end = time.monotonic() + 10
    while not (flag and leaf.cause()):  # the twin's flag may be up for others, too
        assert time.monotonic() < end
    assert leaf.cause() == DEADLINE


def test_a_first_deadline_reaches_those_who_sleep_already(floor: ModuleType) -> None:
    root = floor.Scope()
    leaf = root.child()
    leaf.fileno()
    armed: list[bool] = []

    def set_it() -> None:
        if not armed:
            armed.append(True)
            root.set_deadline(time.monotonic() + 0.02)

    floor.set_seam(set_it)
    try:
        assert leaf.wait(10) == DEADLINE
    finally:
        floor.set_seam(None)


def test_a_cleared_deadline_never_fires(floor: ModuleType) -> None:
    scope = floor.Scope()
    scope.fileno()
    scope.set_deadline(time.monotonic() + 0.03)
    scope.clear_deadline()
    assert scope.wait(0.08) == 0
    assert not scope
    assert not readable(scope.fileno())


def test_a_moved_deadline_counts_from_its_last_place(floor: ModuleType) -> None:
    scope = floor.Scope()
    scope.set_deadline(time.monotonic() + 0.02)
    scope.set_deadline(time.monotonic() + 60)
    assert scope.wait(0.06) == 0
    scope.set_deadline(time.monotonic() - 1)
    assert scope.wait(5) == DEADLINE


def test_a_weak_cause_does_not_stop_a_clock(floor: ModuleType) -> None:
    scope = floor.Scope()
    scope.set_deadline(time.monotonic() + 0.02)
    scope.cancel(INTERRUPT)
    end = time.monotonic() + 10
    while scope.cause() != DEADLINE:
        assert time.monotonic() < end


@pytest.mark.parametrize("again", [INTERRUPT, EXPLICIT])
def test_a_shield_hears_only_what_is_stronger_than_what_it_shields_from(floor: ModuleType, again: int) -> None:
    root = floor.Scope()
    turn = root.child()
    turn.cancel(EXPLICIT)
    shield = floor.Scope(shields=turn)
    below = shield.child()
    assert not shield
    assert not below
    assert below.wait(0.01) == 0
    turn.cancel(again)
    assert below.wait(0.01) == 0
    assert not readable(below.fileno())
    root.cancel(TERMINATE)
    assert below.wait(10) == TERMINATE
    assert shield
    assert shield.own_cause() == 0
    assert readable(shield.fileno())


def test_a_shield_wakes_a_sleeper_on_a_rise_and_by_its_own_clock(floor: ModuleType) -> None:
    turn = floor.Scope()
    turn.cancel(INTERRUPT)
    shield = floor.Scope(shields=turn)
    floor.set_seam(lambda: turn.cancel(ROOT_ABORT))
    try:
        assert shield.wait(10) == ROOT_ABORT
    finally:
        floor.set_seam(None)
    second = floor.Scope(shields=turn)
    second.set_deadline(time.monotonic() + 0.02)
    assert second.wait(10) == DEADLINE
    assert second.own_cause() == DEADLINE


def test_a_dropped_scope_frees_its_descriptors(floor: ModuleType) -> None:
    gc.collect()
    root = floor.Scope()
    root.fileno()
    before = open_fds()
    for _ in range(50):
        leaf = root.child()
        leaf.set_deadline(time.monotonic() + 60)
        leaf.fileno()
    del leaf
    gc.collect()
    assert open_fds() == before


def test_descriptors_are_not_inherited(floor: ModuleType) -> None:
    before = set(os.listdir("/proc/self/fd"))
    scope = floor.Scope()
    scope.set_deadline(time.monotonic() + 60)
    scope.fileno()
    new = {int(fd) for fd in os.listdir("/proc/self/fd")} - {int(fd) for fd in before}
    for fd in new:
        try:
            assert not os.get_inheritable(fd)
        except OSError:
            pass  # the listing's own


def test_a_long_chain_goes_away_without_a_crash(floor: ModuleType) -> None:
    scope = floor.Scope()
    for _ in range(100_000 if floor.KIND == "c" else 1_000):
        scope = scope.child()
    assert not scope
    del scope
    gc.collect()


def test_scopes_can_be_subclassed_weakly_held_and_collected(floor: ModuleType) -> None:
    class Own(floor.Scope):  # type: ignore[name-defined,misc]
        pass

    own = Own(floor.Scope())
    own.itself = own
    gone = weakref.ref(own)
    del own
    gc.collect()
    assert gone() is None


def test_what_is_no_cause_is_refused(floor: ModuleType) -> None:
    for wrong in (0, 6, -1):
        with pytest.raises(ValueError):
            floor.Scope().cancel(wrong)
    with pytest.raises(TypeError):
        floor.Scope(floor.Scope(), shields=floor.Scope())


def test_the_flag_forgets_the_cancelled_that_are_gone(floor: ModuleType) -> None:
    scope = floor.Scope()
    scope.cancel(INTERRUPT)
    flag = floor.flag(scope)
    assert flag
    del scope
    gc.collect()
    floor.acknowledge()
    if isinstance(flag, list):
        assert all(each() is not None for each in flag)


def test_one_more_gesture_leaves_a_cleanup_the_grace(script: Callable[..., Any]) -> None:
    """A shield under its own cause: the second gesture of the same kind shortens its time to the grace."""
    program = """
install(BATCH)
root = DurableRoot.start(); turn = root.foreground()
say("ready")
turn.wait(None)
cleanup = shield(turn, 60.0, 0.2)
say("cleaning")
start = time.monotonic()
cause = cleanup.wait(None)
say(cause, time.monotonic() - start < 30)
"""
    run = script(program)
    assert run.line() == "ready"
    run.kill(2)
    assert run.line() == "cleaning"
    run.kill(2)
    assert run.line() == "3 True"
    assert run.end() == 0
