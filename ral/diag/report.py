"""How a problem or a failure is printed: one message, the place, the line with carets, a hint."""

from ral.diag.errors import Fault
from ral.diag.source import Problem, Source

WIDTH = 160  # a longer source line is shown as a window around the caret


def render(problem: Problem) -> str:
    """A problem as text, with a final newline."""
    out = [f"error[{problem.code}]: {problem.message}"]
    if problem.source is not None:
        out += excerpt(problem.source, problem.start, problem.end)
        for label, start, end in problem.also:
            out.append(f"  {label}")
            out += excerpt(problem.source, start, end)
    if problem.hint:
        out.append(f"  hint: {problem.hint}")
    return "\n".join(out) + "\n"


def render_fault(fault: Fault) -> str:
    """A run-time failure as text."""
    message = fault.message
    suffix = "" if fault.status == 1 or fault.reason[0] != "raised" else f" (status {fault.status})"
    out = [f"error[{fault.code}]: {message}{suffix}"]
    if fault.site is not None:
        out += excerpt(*fault.site)
    if fault.hint:
        out.append(f"  hint: {fault.hint}")
    return "\n".join(out) + "\n"


def excerpt(source: Source, start: int, end: int) -> list[str]:
    """The lines `--> name:line:col`, the source line, and its carets."""
    line, column = source.place(start)
    text = source.line(line).replace("\t", " ")
    length = max(1, min(end - start, len(text) - column + 1))
    number = str(line)
    shown, at = text, column - 1
    if len(text) > WIDTH:
        left = max(0, at - WIDTH // 3)
        shown = ("…" if left else "") + text[left : left + WIDTH] + ("…" if left + WIDTH < len(text) else "")
        at = at - left + (1 if left else 0)
        length = min(length, max(1, len(shown) - at))
    printable = "".join(ch if ch.isprintable() else "\N{REPLACEMENT CHARACTER}" for ch in shown)
    pad = " " * len(number)
    return [
        f" {pad}--> {source.name}:{line}:{column}",
        f" {number} | {printable}",
        f" {pad} | {' ' * at}{'^' * length}",
    ]
