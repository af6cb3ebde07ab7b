"""The one wait loop, on both floors."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

Start = Callable[..., Any]

START = "install(BATCH); root = DurableRoot.start(); turn = root.foreground()\n"


def test_it_sees_exits_stops_and_continuations(script: Start) -> None:
    out = script(
        START
        + """
group, child = sh(turn, b'kill -STOP $$; exit 7')
with Waiter(turn) as waiter:
    waiter.add_child(child)
    say(waiter.run(lambda: child.stopped != 0, 10), child.stopped, child.status)
    group.signal(18)
    say(waiter.run(lambda: child.status is not None, 10), child.stopped, child.status)
group.close()
group, child = sh(turn, b'kill -9 $$')
with Waiter(turn) as waiter:
    waiter.add_child(child)
    say(waiter.run(lambda: child.status is not None, 10), child.status)
group.close()
"""
    )
    assert [out.line() for _ in range(3)] == ["0 19 None", "0 0 7", "0 -9"]


def test_a_cancel_between_the_check_and_the_sleep_is_not_missed(script: Start) -> None:
    out = script(
        START
        + """
group, child = sh(turn, b'exec sleep 1000')
with Waiter(turn.child()) as waiter:
    waiter.add_child(child)
    for cause in (INTERRUPT, DEADLINE, TERMINATE):
        floor.set_seam(lambda: turn.cancel(cause))
        say(waiter.run(lambda: False, 10))
    floor.set_seam(lambda: turn.cancel(INTERRUPT))   # weaker: no news
    say(waiter.run(lambda: False, 0.05))
floor.set_seam(None)
group.signal(9); group.close()
"""
    )
    assert [out.line() for _ in range(4)] == ["1", "3", "4", "-1"]


def test_an_exit_or_a_stop_between_the_check_and_the_sleep_is_not_missed(script: Start) -> None:
    out = script(
        START
        + """
def settled(child):
    # Until the kernel has made the change, which nobody has looked at yet.
    while True:
        state = open(f'/proc/{child.pid}/stat').read().rpartition(')')[2].split()[0]
        if state in 'ZT': return
for end in (b'exec sleep 1000', b'exec sleep 1000'):
    for sig in (19, 9):
        group, child = sh(turn, end)
        with Waiter(turn) as waiter:
            waiter.add_child(child)
            floor.set_seam(lambda: (floor.set_seam(None), group.signal(sig), settled(child)))
            say(waiter.run(lambda: child.stopped or child.status is not None, 10))
        group.signal(9); group.close()
"""
    )
    assert [out.line() for _ in range(4)] == ["0"] * 4


def test_other_descriptors_and_time(script: Start, tmp_path: Any) -> None:
    out = script(
        START
        + f"""
r, w = posix.pipe()
got = []
with Waiter(turn) as waiter:
    def read(fd, events):
        data = posix.read(fd, 100)
        got.append(data)
        if not data: waiter.remove(fd)
    waiter.add(r, 1, read)
    say(waiter.run(lambda: bool(got), 0.02))
    posix.write(w, b'hello'); posix.close(w)
    say(waiter.run(lambda: b'' in got, 10), got)
    file = posix.open('{tmp_path}/f', posix.O_RDWR | posix.O_CREAT)
    ready = []
    waiter.add(file, 4, lambda fd, events: ready.append(fd))   # a regular file is always ready
    say(waiter.run(lambda: len(ready) > 2, 10))
    waiter.remove(file); waiter.remove(file)
    say(waiter.run(lambda: False, 0.01))
"""
    )
    assert [out.line() for _ in range(4)] == ["-1", "0 [b'hello', b'']", "0", "-1"]


def test_a_signal_ends_a_wait_on_any_thread(script: Start) -> None:
    out = script(
        START
        + """
heard = []
def work():
    group, child = sh(turn, b'exec sleep 1000')
    with Waiter(turn) as waiter:
        waiter.add_child(child)
        heard.append(waiter.run(lambda: child.status is not None, 20))
    group.signal(9); group.close()
for _ in range(4): _thread.start_new_thread(work, ())
while len(floor.groups()) < 4: time.sleep(0.001)
say('in')
with Waiter(turn) as waiter: heard.append(waiter.run(lambda: False, 20))
while len(heard) < 5: time.sleep(0.001)
say(heard)
"""
    )
    assert out.line() == "in"
    out.kill(signal.SIGINT)
    assert out.line() == "[1, 1, 1, 1, 1]"


def test_an_exit_is_known_at_once_and_without_polling(script: Start) -> None:
    out = script(
        START
        + """
group, child = sh(turn, b'read line; exit 5')
with Waiter(turn) as waiter:
    waiter.add_child(child)
    say('in')
    before = time.process_time()
    waiter.run(lambda: child.status is not None)
    say(child.status, time.process_time() - before < 0.05)
group.close()
""",
    )
    assert out.line() == "in"
    out.process.stdin.write("\n")
    out.process.stdin.flush()
    assert out.line() == "5 True"


def test_the_start_up_path_imports_nothing_dear() -> None:
    """What `-c` pays for: the doors of cancel and process, and nothing of the slow part of the library."""
    dear = "re enum typing dataclasses signal subprocess threading argparse json pathlib asyncio psutil os contextlib"
    code = "import sys; sys.path.extend(sys.argv[1].split(':')); import ral.cancel, ral.process; print(*sys.modules)"
    path = ":".join(each for each in sys.path if each)
    command = [sys.executable, "-I", "-S", "-c", code, path]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "RAL_FLOOR": ""})
    assert not set(dear.split()) & set(loaded.stdout.split())
