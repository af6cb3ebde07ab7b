"""What a child is born with, seen in the process table, on both floors."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Start = Callable[..., Any]

START = """
import json
install(BATCH); root = DurableRoot.start(); turn = root.foreground()
def run(text, **options):
    group, child = sh(turn, text, **options)
    with Waiter(turn) as waiter:
        waiter.add_child(child)
        assert waiter.run(lambda: child.status is not None, 10) == 0
    group.close()
    return child.status
"""


def status_line(text: str, name: str) -> int:
    bits = int(next(line.split()[1] for line in text.splitlines() if line.startswith(name + ":")), 16)
    return bits & ~(0b11 << 31)  # the C library's own 32 and 33, which posix_spawn leaves ignored


def test_group_directory_mask_and_dispositions(script: Start, tmp_path: Path) -> None:
    out = script(
        START
        + f"""
group, child = sh(turn, b'pwd; exec cat /proc/self/status /proc/self/stat', cwd={os.fsencode(tmp_path)!r})
say(posix.getpgrp(), child.pid, group.pgid, floor.groups())
with Waiter(turn) as waiter:
    waiter.add_child(child); waiter.run(lambda: child.status is not None, 10)
group.close()
say('groups', floor.groups())
"""
    )
    text = out.process.communicate(timeout=20)[0]
    lines = text.splitlines()
    first = next(line for line in lines if line.endswith("]") and not line.startswith("groups"))
    own, pid, pgid, table = first.split()
    assert pid == pgid != own
    assert table == f"[{pid}]"
    assert "groups []" in lines
    assert str(tmp_path) in lines
    stat = next(line for line in lines if line.startswith(f"{pid} ("))
    assert stat.rpartition(")")[2].split()[2] == pid  # its group, in the kernel's own words
    assert status_line(text, "SigBlk") == 0
    assert status_line(text, "SigIgn") == 0  # SIGPIPE and SIGXFSZ too, which Python ignores
    assert status_line(text, "SigCgt") == 0


@pytest.mark.parametrize(("mode", "kept"), [("BATCH", {1, 2, 3}), ("INTERACTIVE", {1})])
def test_what_was_ignored_at_the_start_stays_so_in_children(script: Start, mode: str, kept: set[int]) -> None:
    def ignore() -> None:
        for sig in (1, 2, 3, 10, 15):
            signal.signal(sig, signal.SIG_IGN)

    out = script(START.replace("BATCH", mode) + "run(b'exec cat /proc/self/status')", preexec_fn=ignore)
    ignored = status_line(out.process.communicate(timeout=20)[0], "SigIgn")
    assert {sig for sig in range(1, 65) if ignored >> (sig - 1) & 1} == kept


def test_descriptors_go_where_they_belong_and_nowhere_else(script: Start) -> None:
    out = script(
        START
        + """
r, w = posix.pipe()
run(b'echo out; echo err >&2', fds=(0, 2, w))   # 1 and 2 cross
posix.close(w)
say('pipe', posix.read(r, 100))
extra = posix.open('/dev/null', posix.O_RDONLY)
run(b'ls -l /proc/self/fd | grep -c ">"', fds=(extra, 1, 2))
say('closed', run(b'exec test ! -e /proc/self/fd/0', fds=(-1, 1, extra)) == 0)
""",
        stderr=-2,
    )
    text = out.process.communicate(timeout=20)[0]
    assert "pipe b'err\\n'" in text
    assert "out" in text.split()
    assert "4" in text.split()  # 0, 1, 2 and the directory that ls reads
    assert "closed True" in text


def test_the_environment_is_what_was_given_plus_the_mark(script: Start) -> None:
    out = script(
        START + "ENV[:] = [b'A=1', b'EMPTY=', b'RAL_JOB=forged']\nrun(b'exec /usr/bin/env')\nsay('mark', fresh())"
    )
    lines = [line for line in out.process.communicate(timeout=20)[0].splitlines() if not line.startswith(("PWD", "_="))]
    mark = next(line for line in lines if line.startswith("RAL_JOB="))
    assert sorted(lines)[:2] == ["A=1", "EMPTY="]
    assert mark.count("RAL_JOB") == 1
    assert "forged" not in mark
    assert mark.partition("=")[2].split(".")[0] == str(out.process.pid)


def test_errors_name_what_failed(script: Start) -> None:
    out = script(
        START
        + """
def attempt(path, cwd=b''):
    group = Group(turn, fresh())
    try:
        group.spawn(path, [path], ENV, cwd, (0, 1, 2))
    except OSError as e:
        say(json.dumps([type(e).__name__, e.filename.decode(), floor.groups(), group.pgid]))
attempt(b'/nonexistent/x')
attempt(b'/etc/passwd')
attempt(b'/bin/true', b'/nonexistent')
"""
    )
    lines = [json.loads(line) for line in out.process.communicate(timeout=20)[0].splitlines()]
    assert lines == [
        ["FileNotFoundError", "/nonexistent/x", [], None],
        ["PermissionError", "/etc/passwd", [], None],
        ["FileNotFoundError", "/nonexistent", [], None],
    ]


def test_a_cancelled_scope_starts_nothing(script: Start, tmp_path: Path) -> None:
    out = script(
        START
        + f"""
scope = turn.child()
turn.cancel(INTERRUPT)
try:
    sh(scope, b'touch {tmp_path}/F')
except Cancelled as stopped:
    say('stopped', stopped.cause, floor.groups())
"""
    )
    assert out.line() == "stopped 1 []"
    assert out.end() == 0
    assert not (tmp_path / "F").exists()


def test_a_leader_may_end_before_the_others_join(script: Start) -> None:
    out = script(
        START
        + """
bad = 0
for _ in range(100):
    group, first = sh(turn, b'exit 3')
    with Waiter(turn) as waiter:
        waiter.add_child(first)
        if _ % 2: waiter.run(lambda: first.status is not None)
        _, second = sh(turn, b'exit 4', group)
        waiter.add_child(second)
        waiter.run(lambda: not group.running, 10)
    bad += (first.status, second.status) != (3, 4) or len(floor.groups()) != 1
    group.close()
say(bad, floor.groups())
"""
    )
    assert out.line() == "0 []"


def test_a_full_table_refuses(script: Start) -> None:
    out = script(
        START
        + """
if floor.KIND == 'python':
    from ral.cancel import _twin
    _twin._PLACES = 5
places = 5 if floor.KIND == 'python' else 4096
groups = []
try:
    import resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    for _ in range(places + 1):
        pid, pidfd = floor.spawn(b'/bin/true', [b'true'], ENV, b'', (0, 1, 2), 0, turn)
        posix.close(pidfd)
        groups.append(pid)
except OSError as e:
    say(len(groups) == places, e.errno == 11)
for pid in groups:
    floor.group_leave(pid); posix.waitpid(pid, 0)
say(floor.groups())
"""
    )
    assert out.line() == "True True"
    assert out.line() == "[]"


def test_spawns_from_many_threads_and_no_descriptor_is_left(script: Start) -> None:
    out = script(
        START
        + """
run(b':')
before = len(posix.listdir('/proc/self/fd'))
done = []
def work():
    done.append(sum(run(b'exit 1') for _ in range(20)))
for _ in range(8): _thread.start_new_thread(work, ())
while len(done) < 8: time.sleep(0.001)
say(done == [20] * 8 or done, floor.groups(), len(posix.listdir('/proc/self/fd')) == before)
"""
    )
    assert out.line() == "True [] True"
