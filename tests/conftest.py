"""Guards around every test: what it started and opened must be gone."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


def children() -> set[int]:
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        try:
            found |= {int(pid) for pid in (task / "children").read_text().split()}
        except OSError:
            continue
    return found


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """No new children, descriptors or threads after a test."""
    before = children(), len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
    yield
    assert children() <= before[0], "a test left a child behind"
    assert len(os.listdir("/proc/self/fd")) <= before[1] + 2, "a test left descriptors open"
    assert len(os.listdir("/proc/self/task")) <= before[2], "a test left a thread behind"
