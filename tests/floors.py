"""Both floors, side by side: `floor` is the module, `script` runs code on one of them in a process of its own."""

import gc
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from support import until

try:
    from ral import _floor
except ImportError:  # built without a compiler
    _floor = None  # type: ignore[assignment]
from ral.cancel import _twin

PREAMBLE = """
import sys, time, posix, _thread, select
from ral.cancel import *
from ral.process import Group, Waiter, fresh
ENV = [k + b"=" + v for k, v in posix.environ.items()]
def say(*words): sys.stdout.write(" ".join(map(str, words)) + "\\n"); sys.stdout.flush()
def sh(scope, text, group=None, cwd=b"", fds=(0, 1, 2)):
    group = group or Group(scope, fresh())
    return group, group.spawn(b"/bin/sh", [b"sh", b"-c", text], ENV, cwd, fds)
"""


@pytest.fixture(params=["c", "python"])
def kind(request: pytest.FixtureRequest) -> str:
    """Which floor: c or python."""
    if request.param == "c" and _floor is None:
        pytest.skip("the C floor is not built")
    if request.param == "python" and request.node.get_closest_marker("floor"):
        pytest.skip("only the C floor can promise this")
    return str(request.param)


@pytest.fixture
def floor(kind: str) -> Iterator[ModuleType]:
    threads = len(os.listdir("/proc/self/task"))
    yield _floor if kind == "c" else _twin
    gc.collect()
    until(lambda: len(os.listdir("/proc/self/task")) <= threads)  # the twin's clock ends when no deadline is left


class Script:
    """A program on one floor; its processes carry a mark in the environment by which survivors are counted."""

    def __init__(self, kind: str, code: str, **options: object) -> None:
        self.mark = f"RAL_TEST_MARK={uuid.uuid4().hex}"
        name, _, value = self.mark.partition("=")
        env = {**os.environ, "RAL_FLOOR": kind, name: value}
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", PREAMBLE + code],
            env=env,
            text=True,
            **{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, **options},  # type: ignore[call-overload]
        )
        self.last = 0.0

    def line(self) -> str:
        """The next line that it says; empty at its end."""
        said = str(self.process.stdout.readline()).rstrip("\n")
        self.last = time.monotonic()  # what it says of a gesture, it says after it heard it
        return said

    def kill(self, sig: int) -> None:
        """Sends a gesture of its own: 30 ms after the last one was delivered, or two would be one."""
        until(lambda: time.monotonic() - self.last > 0.03)
        self.process.send_signal(sig)
        until(lambda: not self.pending(sig))
        self.last = time.monotonic()

    def pending(self, sig: int) -> bool:
        """Whether the kernel still holds the signal back; a busy machine takes its time to deliver one."""
        if self.process.poll() is not None:
            return False
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        lines = dict(line.split(":", 1) for line in status.splitlines())
        sets = {name: int(lines[name], 16) for name in ("SigPnd", "ShdPnd", "SigBlk")}
        blocked = sets["SigBlk"] >> (sig - 1) & 1
        return bool((sets["SigPnd"] | sets["ShdPnd"]) >> (sig - 1) & 1) and not blocked

    def end(self, timeout: float = 20) -> int:
        return self.process.wait(timeout)

    def survivors(self) -> list[str]:
        """Living processes that carry the mark, as `pid name`."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if self.mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(f"{entry.name} {(entry / 'comm').read_text().strip()}")
            except OSError:
                continue
        return found


@pytest.fixture
def script(kind: str) -> Iterator[Callable[..., Script]]:
    """Starts scripts; afterwards none of their processes may be left."""
    started: list[Script] = []

    def start(code: str, **options: object) -> Script:
        started.append(Script(kind, code, **options))
        return started[-1]

    yield start
    for each in started:
        try:
            each.end(5)  # most end by themselves, after they ended their children
        except subprocess.TimeoutExpired:
            each.process.kill()
            each.process.wait()
    for each in started:
        for pipe in (each.process.stdin, each.process.stdout):
            if pipe:
                pipe.close()
        until(lambda each=each: not each.survivors(), 3)  # type: ignore[misc]
