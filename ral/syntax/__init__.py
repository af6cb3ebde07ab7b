"""Text to surface tree; tells incomplete from wrong.

In: a `Source`. Out: a `tree.Program`, or `StaticError` (status 2), or `Incomplete` when the text ends inside a form.
This room never looks up a name and never runs anything.
"""

from ral.syntax.parser import parse

__all__ = ["parse"]
