"""Readers that take their input line by line, in bounded memory.

Output gathers while there is input at hand and goes out before the reader would have to wait, so that a stream stays prompt
and a file stays fast.
"""

import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ral.machine.calls import Fn
    from ral.machine.shell import Shell, Sink

from ral.cancel import check
from ral.diag import Fault
from ral.machine.calls import run
from ral.machine.values import text
from ral.pipeline.streams import read_chunk

FLUSH = 65536


class Gather:
    """A sink that holds bytes back for the sink behind it."""

    __slots__ = ("behind", "fd", "parts", "size")

    def __init__(self, behind: "Sink") -> None:
        self.fd = -1
        self.behind = behind
        self.parts: list[bytes] = []
        self.size = 0

    def write(self, data: bytes, sh: "Shell") -> None:
        self.parts.append(data)
        self.size += len(data)
        if self.size >= FLUSH:
            self.flush(sh)

    def flush(self, sh: "Shell") -> None:
        if self.parts:
            data, self.parts, self.size = b"".join(self.parts), [], 0
            self.behind.write(data, sh)


def refuse_terminal(sh: "Shell", name: str) -> None:
    """A line reader has a pipe or a redirect; it is no prompt."""
    import posix

    if sh.inp >= 0 and posix.isatty(sh.inp):
        raise Fault(
            f"`{name}` reads a pipe or a file, not the terminal",
            1,
            name,
            hint=f"write cmd | {name} … or {name} … < file; to ask a question use ask",
            code="R0120",
        )


def blocks(sh: "Shell", out: "Gather | None") -> "Iterator[list[str]]":
    """The lines of the input, a chunk's worth at a time; invalid UTF-8 is replaced."""
    rest = b""
    while True:
        if out is not None and sh.inp >= 0 and not select.select([sh.inp], [], [], 0)[0]:
            out.flush(sh)
        chunk = read_chunk(sh)
        if not chunk:
            break
        head, newline, tail = chunk.rpartition(b"\n")
        if not newline:
            rest += chunk
            continue
        block = (rest + head).decode("utf-8", "replace")
        rest = tail
        lines = block.split("\n")
        if "\r" in block:
            lines = [line[:-1] if line.endswith("\r") else line for line in lines]
        yield lines
    if rest:
        yield [rest.decode("utf-8", "replace")]


def fold_lines_(sh: "Shell", fn: "Fn", acc: "Any") -> "Any":
    refuse_terminal(sh, "fold-lines")
    f = fn.a2  # type: ignore[attr-defined]
    for lines in blocks(sh, None):
        for line in lines:
            if sh.flag:
                check(sh)
            acc = f(sh, acc, line)
            if type(acc) is tuple:
                acc = run(sh, acc)
    return acc


def map_lines_(sh: "Shell", fn: "Fn") -> None:
    refuse_terminal(sh, "map-lines")
    f = fn.a1  # type: ignore[attr-defined]
    out = Gather(sh.out)
    try:
        for lines in blocks(sh, out):
            done: list[str] = []
            try:
                for line in lines:
                    if sh.flag:
                        check(sh)
                    r = f(sh, line)
                    if type(r) is tuple:
                        r = run(sh, r)
                    done.append(r if type(r) is str else text(r))
            finally:
                if done:
                    done.append("")
                    out.write("\n".join(done).encode("utf-8", "surrogateescape"), sh)
    finally:
        out.flush(sh)


def filter_lines_(sh: "Shell", fn: "Fn") -> None:
    refuse_terminal(sh, "filter-lines")
    f = fn.a1  # type: ignore[attr-defined]
    out = Gather(sh.out)
    try:
        for lines in blocks(sh, out):
            kept: list[str] = []
            try:
                for line in lines:
                    if sh.flag:
                        check(sh)
                    r = f(sh, line)
                    if type(r) is tuple:
                        r = run(sh, r)
                    if r:
                        kept.append(line)
            finally:
                if kept:
                    kept.append("")
                    out.write("\n".join(kept).encode("utf-8", "surrogateescape"), sh)
    finally:
        out.flush(sh)


def each_line_(sh: "Shell", fn: "Fn") -> None:
    refuse_terminal(sh, "each-line")
    f = fn.a1  # type: ignore[attr-defined]
    for lines in blocks(sh, None):
        for line in lines:
            if sh.flag:
                check(sh)
            r = f(sh, line)
            if type(r) is tuple:
                run(sh, r)
