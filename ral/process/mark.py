"""The mark in a child's environment, by which a teardown knows who belongs to a job after it left the group.

A path, `RAL_JOB=outer/inner`: a ral that runs in another's job appends its own part, so the outer one matches all by
prefix. A part is unique on this machine: pid, start time of that process, counter. Users neither see nor set it.
"""

import posix
from itertools import count

VARIABLE = b"RAL_JOB"
_counter = count(1)
_prefix: tuple[int, bytes] | None = None


def _start_time() -> bytes:
    """Of this process, in clock ticks since the boot; empty where /proc is missing."""
    try:
        fd = posix.open("/proc/self/stat", posix.O_RDONLY | posix.O_CLOEXEC)
    except OSError:
        return b""
    try:
        # The name, in parentheses, may hold anything; what follows it is regular. The start time is field 22.
        return posix.read(fd, 4096).rpartition(b")")[2].split()[19]
    finally:
        posix.close(fd)


def fresh() -> bytes:
    """A new mark, below the one that this process itself carries."""
    global _prefix
    pid = posix.getpid()
    if _prefix is None or _prefix[0] != pid:  # a fork has its own pid and start time
        outer = posix.environ.get(VARIABLE, b"")
        _prefix = pid, (outer + b"/" if outer else b"") + b"%d.%s." % (pid, _start_time())
    return _prefix[1] + b"%d" % next(_counter)


def put(env: list[bytes], mark: bytes) -> list[bytes]:
    """`env`, a list of `NAME=value` without a mark, with this one."""
    return [*env, b"RAL_JOB=" + mark]
