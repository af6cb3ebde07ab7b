"""Typed terms to Python code objects.

In: a checked `terms.Seq`. Out: `Compiled`: a code object, and the table from its lines to the program's spans. The code
reads its helpers from the globals it is run in (`ral.machine.prims`). This room runs nothing.
"""

from ral.code.generate import Compiled, generate

__all__ = ["Compiled", "generate"]
