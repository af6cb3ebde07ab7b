"""Surface tree to core terms: names resolved, forms spelled out, recursive groups found.

In: a `syntax.tree.Program`, the names in scope. Out: `terms.Seq`. Problems: unknown names (status 1), `$SCRIPT` without a
script (status 2). This room knows no types and runs nothing.
"""

from ral.core.elaborate import elaborate
from ral.core.names import Names

__all__ = ["Names", "elaborate"]
