"""Signals sent to real processes: who hears them, how they are counted, and what is left alone."""

import signal
from collections.abc import Callable
from typing import Any

import pytest

Start = Callable[..., Any]

REPORT = """
def report():
    say(turn.cause() if turn else 0, root.cause(), floor.escalation_pending())
def on_each_gesture(total):
    # Says how things stand after each gesture, up to this many.
    seen = 0
    while seen < total:
        now = sum(gestures(cause) for cause in CAUSES)
        if now > seen:
            seen = now
            report()
        time.sleep(0.0005)
"""
BATCH = REPORT + "install(BATCH); root = DurableRoot.start(); turn = root.foreground(); say('ready')\n"
INTERACTIVE = REPORT + "install(INTERACTIVE); root = DurableRoot.start(); turn = None; say('ready')\n"


@pytest.mark.parametrize(
    ("sig", "turn", "root", "pending"),
    [(signal.SIGINT, 1, 0, 1), (signal.SIGTERM, 4, 4, 1), (signal.SIGHUP, 4, 4, 1), (signal.SIGQUIT, 5, 5, 0)],
)
def test_batch(script: Start, sig: int, turn: int, root: int, pending: int) -> None:
    run = script(BATCH + "on_each_gesture(1)")
    assert run.line() == "ready"
    run.kill(sig)
    assert run.line() == f"{turn} {root} {pending}"
    assert run.end() == 0


def test_deliveries_close_together_are_one_gesture(script: Start) -> None:
    run = script(BATCH + "on_each_gesture(1); sys.stdin.readline(); report(); say(gestures(TERMINATE))")
    assert run.line() == "ready"
    for _ in range(3):  # as `timeout` does to a wrapper and its child
        run.process.send_signal(signal.SIGTERM)
    assert run.line() == "4 4 1"
    run.process.stdin.write("\n")
    run.process.stdin.flush()
    assert run.line() == "4 4 1"
    assert run.line() == "1"


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_third_gesture_ends_a_batch_run(script: Start, sig: int) -> None:
    run = script(BATCH + "on_each_gesture(9)")
    assert run.line() == "ready"
    for count in (1, 2):
        run.kill(sig)
        assert run.line().endswith(str(count))
    run.kill(sig)
    assert run.end() == 128 + sig


def test_different_gestures_walk_one_ladder(script: Start) -> None:
    run = script(BATCH + "on_each_gesture(9)")
    assert run.line() == "ready"
    for sig in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        run.kill(sig)
        if sig != signal.SIGTERM:
            run.line()
    assert run.end() == 143


def test_an_acknowledgement_clears_the_ladder(script: Start) -> None:
    run = script(
        BATCH
        + """
for count in range(1, 5):
    while gestures(INTERRUPT) < count: time.sleep(0.0005)
    report()
    acknowledge()
report()
"""
    )
    assert run.line() == "ready"
    for _ in range(4):
        run.kill(signal.SIGINT)
        assert run.line() == "1 0 1"
    assert run.line() == "1 0 0"
    assert run.end() == 0


def test_a_hundred_keys_never_end_an_interactive_shell(script: Start) -> None:
    run = script(INTERACTIVE + "turn = root.foreground()\nwith publish(root, turn):\n  say('go'); on_each_gesture(100)")
    assert (run.line(), run.line()) == ("ready", "go")
    for _ in range(100):
        run.kill(signal.SIGINT)
        assert run.line() == "1 0 0"
    assert run.end() == 0


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGQUIT])
def test_an_idle_prompt_is_not_touched(script: Start, sig: int) -> None:
    run = script(INTERACTIVE + "sys.stdin.readline(); report(); say(gestures(INTERRUPT), gestures(ROOT_ABORT))")
    assert run.line() == "ready"
    run.kill(sig)
    run.process.stdin.write("\n")
    run.process.stdin.flush()
    assert run.line() == "0 0 0"
    assert run.line() == "0 0"


def test_termination_finds_an_idle_prompt(script: Start) -> None:
    run = script(INTERACTIVE + "say(root.wait(20))")
    assert run.line() == "ready"
    run.kill(signal.SIGTERM)
    assert run.line() == "4"


def test_an_interactive_quit_aborts_the_root_while_a_turn_runs(script: Start) -> None:
    run = script(INTERACTIVE + "turn = root.foreground()\nwith publish(root, turn):\n  say('go'); on_each_gesture(1)")
    assert (run.line(), run.line()) == ("ready", "go")
    run.kill(signal.SIGQUIT)
    assert run.line() == "5 5 0"


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_what_comes_while_ral_starts_is_heard_by_the_session(script: Start, sig: int) -> None:
    four = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT}
    run = script(
        "say('up'); sys.stdin.readline()\n" + BATCH + "report()",
        preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, four),
    )
    assert run.line() == "up"
    run.kill(sig)
    run.process.stdin.write("\n")
    run.process.stdin.flush()
    assert run.line() == "ready"
    assert run.line().split()[0] == {2: "1", 3: "5"}.get(sig, "4")
    assert run.end() == 0


def ignoring(*signals: int) -> Callable[[], None]:
    def ignore() -> None:
        for sig in signals:
            signal.signal(sig, signal.SIG_IGN)

    return ignore


def test_what_was_ignored_at_the_start(script: Start) -> None:
    run = script(
        BATCH + "say(*sorted(floor.ignored_at_start() & {1, 2, 3, 15})); on_each_gesture(1)",
        preexec_fn=ignoring(1, 2, 3, 15),
    )
    assert run.line() == "ready"
    assert run.line() == "1 2 3 15"
    for sig in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        run.process.send_signal(sig)
    assert run.line() == "4 4 1"  # SIGTERM alone is never ignored
    assert run.end() == 0


def test_an_interactive_shell_hears_the_keys_that_were_ignored(script: Start) -> None:
    code = INTERACTIVE + "turn = root.foreground()\nwith publish(root, turn):\n  say('go'); on_each_gesture(1)"
    run = script(code, preexec_fn=ignoring(1, 2))
    assert (run.line(), run.line()) == ("ready", "go")
    run.process.send_signal(signal.SIGHUP)
    run.kill(signal.SIGINT)
    assert run.line() == "1 0 0"


def test_handlers_come_back_after_someone_else_took_them(script: Start) -> None:
    code = BATCH + "import signal\nfor s in (2, 15): signal.signal(s, signal.SIG_IGN)\nsignal.set_wakeup_fd(-1)\n"
    run = script(code + "install(BATCH); say('again'); on_each_gesture(1)")
    assert (run.line(), run.line()) == ("ready", "again")
    run.kill(signal.SIGINT)
    assert run.line() == "1 0 1"


def test_a_flood_of_signals_while_scopes_come_and_go(script: Start) -> None:
    """Races the handlers of many threads against slots that are swapped and scopes that are freed."""
    run = script(
        INTERACTIVE
        + """
stop = []
def spin():
    while not stop: sum(range(1000))
for _ in range(3): _thread.start_new_thread(spin, ())
end = time.monotonic() + 30
turns = hit = 0
while time.monotonic() < end and (turns < 300 or hit < 3):
    turn = root.foreground()
    with publish(root, turn):
        turn.fileno()
        turn.wait(0.0005)
    hit += bool(turn)
    turns += 1
    del turn
stop.append(1)
say('over')
posix._exit(0)  # the flood goes on, and the interpreter gives the signals up before it ends
"""
    )
    assert run.line() == "ready"
    while run.process.poll() is None:
        run.process.send_signal(signal.SIGINT)
    assert run.line() == "over"
    assert run.end() == 0


def test_a_regex_of_the_main_thread_is_broken_off(script: Start) -> None:
    run = script(
        BATCH
        + """
import re
try:
    with interruptible(turn):
        say('in')
        re.match(r'(a*)*$', 'a' * 40 + 'b')
    say('through')
except Cancelled as stopped:
    say('stopped', stopped.cause)
with interruptible(root): say('fine')
"""
    )
    assert (run.line(), run.line()) == ("ready", "in")
    run.kill(signal.SIGINT)
    assert run.line() == "stopped 1"
    assert run.line() == "fine"
    assert run.end() == 0


def test_a_forked_process_owns_no_groups(script: Start) -> None:
    run = script(
        BATCH
        + """
group, child = sh(turn, b'exec sleep 100')
pid = posix.fork()
if pid == 0:
    posix._exit(len(floor.groups()))
say(posix.waitpid(pid, 0)[1] >> 8, len(floor.groups()))
group.signal(9); group.close()
"""
    )
    assert run.line() == "ready"
    assert run.line() == "0 1"
    assert run.end() == 0
