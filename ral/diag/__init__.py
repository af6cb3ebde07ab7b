"""Source text, spans, problems and how they are printed.

In: text and offsets. Out: `Source`, `Problem`, the exception tree of `errors`, and printed reports.
This room never reads a file and never writes a stream.
"""

from ral.diag.errors import Exit, Fault, Incomplete, StaticError
from ral.diag.source import Problem, Source, normalise


def render(problem: Problem) -> str:
    """A problem as text; the printer is loaded when there is something to print."""
    from ral.diag.report import render as show

    return show(problem)


__all__ = ["Exit", "Fault", "Incomplete", "Problem", "Source", "StaticError", "normalise", "render"]
