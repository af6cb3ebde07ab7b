"""Generated lines with indentation, and the line table.

A call that can fail stands on a physical line of its own inside its parentheses, so that a traceback's line number names
the program's span: `mark` writes the break, `assemble` makes it.
"""

MARK, STOP = "\x01", "\x02"  # repr() escapes both, so they never occur in a literal


class Line:
    """One logical line."""

    __slots__ = ("depth", "end", "start", "text")

    def __init__(self, depth: int, text: str, start: int, end: int) -> None:
        self.depth = depth
        self.text = text
        self.start = start
        self.end = end


def mark(start: int, end: int, call: str) -> str:
    """A call on a line of its own, in parentheses."""
    return f"({MARK}{start},{end}{STOP}{call})"


def assemble(lines: list[Line]) -> tuple[str, list[tuple[int, int]]]:
    """The source text and, for each of its lines (counted from 1), a span."""
    out: list[str] = []
    spans: list[tuple[int, int]] = [(0, 0)]
    for line in lines:
        pad = " " * line.depth
        if MARK not in line.text:
            out.append(pad + line.text)
            spans.append((line.start, line.end))
            continue
        first, *rest = line.text.split(MARK)
        out.append(pad + first)
        spans.append((line.start, line.end))
        for part in rest:
            numbers, _, code = part.partition(STOP)
            start, _, end = numbers.partition(",")
            out.append(pad + code)
            spans.append((int(start), int(end)))
    return "\n".join(out) + "\n", spans
