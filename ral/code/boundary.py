"""What a decoded value is admitted against: the type that the unit's uses fixed, as plain data for the run.

A spec is None (anything), a name ("Int", "number", …), ("list", spec), ("map", spec), ("record", {key: spec}, open),
("variant", {tag: spec}), ("fn",), or ("up", n): the spec n structures further out. "number" and "comparable" stand for what
a kind left open.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

from ral.check.types import (
    ANY,
    CF,
    DATA,
    KIND_NAMES,
    CFun,
    Comp,
    Con,
    TList,
    TMap,
    TRecord,
    TThunk,
    TVar,
    TVariant,
    Type,
    flat,
    prune,
    prune_comp,
)
from ral.diag import Source


def boundary_spec(comp: Comp, source: Source) -> "Any":
    """The spec of a boundary call's result."""
    comp = prune_comp(comp)
    while isinstance(comp, CFun):
        comp = prune_comp(comp.comp)
    return spec(comp.type, ()) if isinstance(comp, CF) else None


def spec(t: Type, above: "tuple[Type, ...]") -> "Any":
    """`above`: the structures around, outermost first; a recursive type points back to one of them."""
    t = prune(t)
    if t in above:
        return ("up", len(above) - above.index(t))
    depth = (*above, t)
    if isinstance(t, Con):
        return t.name
    if isinstance(t, TVar):
        if t.kind in (ANY, DATA):
            return None
        return KIND_NAMES.get(t.kind)
    if isinstance(t, TList):
        return ("list", spec(t.elem, depth))
    if isinstance(t, TMap):
        return ("map", spec(t.elem, depth))
    if isinstance(t, TRecord):
        row = flat(t.row)
        return ("record", {k: spec(v, depth) for k, v in row.fields.items()}, row.tail is not None)
    if isinstance(t, TVariant):
        return ("variant", {k: spec(v, depth) for k, v in flat(t.row).fields.items()})
    if isinstance(t, TThunk):
        return ("fn",)
    return None
