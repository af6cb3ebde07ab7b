"""Types: values, rows, computations and grades, their variables, and how they print.

A value-type variable carries a kind: the heads it admits (a bit set) and whether the demand goes deep (`data`).
A weak variable has one type for the whole unit and is never quantified.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Label = tuple[str, "Type", int, int]  # a selection waiting for its container: label, result, span

# Heads, as bits of a kind.
UNIT, BOOL, INT, FLOAT, STRING, BYTES = 1, 2, 4, 8, 16, 32
LIST, MAP, RECORD, VARIANT, THUNK, HANDLE = 64, 128, 256, 512, 1024, 2048
ANY = 4095
NUMBER = INT | FLOAT
COMPARABLE = INT | FLOAT | STRING
SCALAR = BOOL | INT | FLOAT | STRING
SIZED = STRING | BYTES | LIST | MAP
KEYED = MAP | RECORD
DATA = ANY & ~(THUNK | HANDLE)
KINDS = {"number": NUMBER, "comparable": COMPARABLE, "scalar": SCALAR, "sized": SIZED, "keyed": KEYED}


class Type:
    """A value type."""

    __slots__ = ()


class Con(Type):
    """A type without parts."""

    __slots__ = ("head", "name")

    def __init__(self, name: str, head: int) -> None:
        self.name = name
        self.head = head


T_UNIT = Con("Unit", UNIT)
T_BOOL = Con("Bool", BOOL)
T_INT = Con("Int", INT)
T_FLOAT = Con("Float", FLOAT)
T_STRING = Con("String", STRING)
T_BYTES = Con("Bytes", BYTES)
NULLARY = {t.head: t for t in (T_UNIT, T_BOOL, T_INT, T_FLOAT, T_STRING, T_BYTES)}
BY_NAME = {t.name: t for t in NULLARY.values()}


class TVar(Type):
    """An unknown value type."""

    __slots__ = ("deep", "kind", "labels", "level", "ref", "weak")

    def __init__(self, level: int, kind: int = ANY, deep: bool = False, weak: bool = False) -> None:
        self.ref: Type | None = None
        self.level = level
        self.kind = kind
        self.deep = deep
        self.weak = weak
        self.labels: list[Label] | None = None


class TList(Type):
    __slots__ = ("elem",)

    def __init__(self, elem: Type) -> None:
        self.elem = elem


class TMap(Type):
    __slots__ = ("elem",)

    def __init__(self, elem: Type) -> None:
        self.elem = elem


class THandle(Type):
    __slots__ = ("elem",)

    def __init__(self, elem: Type) -> None:
        self.elem = elem


class TRecord(Type):
    __slots__ = ("row",)

    def __init__(self, row: "Row") -> None:
        self.row = row


class TVariant(Type):
    __slots__ = ("row",)

    def __init__(self, row: "Row") -> None:
        self.row = row


class TThunk(Type):
    """`U C`: a suspended computation."""

    __slots__ = ("comp",)

    def __init__(self, comp: "Comp") -> None:
        self.comp = comp


class Row:
    """Labelled types and a tail: a `RVar`, or None when the row is closed."""

    __slots__ = ("fields", "tail")

    def __init__(self, fields: dict[str, Type], tail: "RVar | None") -> None:
        self.fields = fields
        self.tail = tail


class RVar:
    """An unknown rest of a row."""

    __slots__ = ("deep", "level", "ref", "weak")

    def __init__(self, level: int, deep: bool = False, weak: bool = False) -> None:
        self.ref: Row | None = None
        self.level = level
        self.deep = deep
        self.weak = weak


class Comp:
    """A computation type."""

    __slots__ = ()


class CF(Comp):
    """`F_ε A`: grade `p` returns the value A, grade `w` writes (A is Unit)."""

    __slots__ = ("grade", "type")

    def __init__(self, grade: "str | GVar", type: Type) -> None:
        self.grade = grade
        self.type = type


class CFun(Comp):
    """`A -> C`."""

    __slots__ = ("arg", "comp")

    def __init__(self, arg: Type, comp: Comp) -> None:
        self.arg = arg
        self.comp = comp


class CVar(Comp):
    """An unknown computation type."""

    __slots__ = ("level", "ref", "weak")

    def __init__(self, level: int, weak: bool = False) -> None:
        self.ref: Comp | None = None
        self.level = level
        self.weak = weak


class GVar:
    """An unknown grade, bound to `p` or `w` and to nothing else."""

    __slots__ = ("level", "ref")

    def __init__(self, level: int) -> None:
        self.ref: str | GVar | None = None
        self.level = level


class Scheme:
    """A type with its quantified variables (of all four sorts)."""

    __slots__ = ("body", "vars")

    def __init__(self, vars: "frozenset[object]", body: Type) -> None:
        self.vars = vars
        self.body = body


COMMAND = CF("w", T_UNIT)


def prune(t: Type) -> Type:
    """The type behind bound variables."""
    while isinstance(t, TVar) and t.ref is not None:
        t = t.ref
    return t


def prune_comp(c: Comp) -> Comp:
    while isinstance(c, CVar) and c.ref is not None:
        c = c.ref
    return c


def prune_grade(g: "str | GVar") -> "str | GVar":
    while isinstance(g, GVar) and g.ref is not None:
        g = g.ref
    return g


def flat(row: Row) -> Row:
    """The row with bound tails folded in."""
    if row.tail is None or row.tail.ref is None:
        return row
    fields = dict(row.fields)
    tail: RVar | None = row.tail
    while tail is not None and tail.ref is not None:
        for label, t in tail.ref.fields.items():
            fields.setdefault(label, t)
        tail = tail.ref.tail
    row.fields = fields
    row.tail = tail
    return row


def head_of(t: Type) -> int:
    """The head bit of a pruned type that is no variable."""
    if isinstance(t, Con):
        return t.head
    return HEADS[type(t)]


HEADS: dict[type, int] = {
    TList: LIST, TMap: MAP, TRecord: RECORD, TVariant: VARIANT, TThunk: THUNK, THandle: HANDLE,
}  # fmt: skip


def ending(c: Comp) -> tuple[list[Type], Comp]:
    """A computation type's parameters and what it ends in."""
    params: list[Type] = []
    c = prune_comp(c)
    while isinstance(c, CFun):
        params.append(c.arg)
        c = prune_comp(c.comp)
    return params, c


# Printing

GREEK = "αβγδεζηθικλμ"
KIND_NAMES = {NUMBER: "number", COMPARABLE: "comparable", SCALAR: "scalar", SIZED: "sized", KEYED: "keyed"}


class Printer:
    """Prints types with names for variables that stay the same within one message."""

    def __init__(self) -> None:
        self.names: dict[object, str] = {}

    def name(self, var: object) -> str:
        known = self.names.get(var)
        if known is None:
            number = len(self.names)
            known = GREEK[number % len(GREEK)] + (str(number // len(GREEK)) if number >= len(GREEK) else "")
            self.names[var] = known
        return known

    def type(self, t: Type, depth: int = 0) -> str:
        t = prune(t)
        if depth > 6:
            return "…"
        if isinstance(t, Con):
            return t.name
        if isinstance(t, TVar):
            kind = KIND_NAMES.get(t.kind, "data" if t.deep else "")
            return ("_" if t.weak else "") + self.name(t) + (f":{kind}" if kind else "")
        if isinstance(t, TList):
            return f"[{self.type(t.elem, depth + 1)}]"
        if isinstance(t, TMap):
            return f"Map {self.type(t.elem, depth + 1)}"
        if isinstance(t, THandle):
            return f"Handle {self.type(t.elem, depth + 1)}"
        if isinstance(t, TThunk):
            return "{" + self.comp(t.comp, depth + 1) + "}"
        if isinstance(t, TRecord):
            row = flat(t.row)
            parts = [f"{k}: {self.type(v, depth + 1)}" for k, v in sorted(row.fields.items())]
            return "[" + ", ".join(parts + (["…"] if row.tail is not None else [])) + "]"
        assert isinstance(t, TVariant)
        row = flat(t.row)
        parts = []
        for tag, payload in sorted(row.fields.items()):
            shown = self.type(payload, depth + 1)
            parts.append(f"`{tag}" + ("" if shown == "Unit" else " " + shown))
        return "<" + " | ".join(parts + (["…"] if row.tail is not None else [])) + ">"

    def comp(self, c: Comp, depth: int = 0) -> str:
        c = prune_comp(c)
        if isinstance(c, CVar):
            return self.name(c)
        if isinstance(c, CFun):
            return f"{self.type(c.arg, depth)} -> {self.comp(c.comp, depth + 1)}"
        assert isinstance(c, CF)
        grade = prune_grade(c.grade)
        if grade == "w":
            return "Command"
        if grade == "p":
            return f"Returns {self.type(c.type, depth)}"
        return f"{self.name(grade)} {self.type(c.type, depth)}"


cyclic = [False]  # whether any type of this process is a cycle: until then no walk needs to remember where it was


def reaches(t: Type, var: object) -> bool:
    """Whether a type reaches a variable along edges that are no data: blocks, parameters, results, handles.

    Types are regular trees, and every cycle crosses a data edge: a list element, a map's value, a field, a payload.
    """
    stack: list[object] = [t]
    seen: set[int] = set()
    while stack:
        x = stack.pop()
        if x is var:
            return True
        if cyclic[0]:
            if id(x) in seen:
                continue
            seen.add(id(x))
        if isinstance(x, TVar | CVar):
            if x.ref is not None:
                stack.append(x.ref)
        elif isinstance(x, TThunk):
            stack.append(x.comp)
        elif isinstance(x, THandle):
            stack.append(x.elem)
        elif isinstance(x, CFun):
            stack.append(x.arg)
            stack.append(x.comp)
        elif isinstance(x, CF):
            stack.append(x.type)
    return False


def walk_vars(t: Type, visit: "Callable[[object], None]") -> None:
    """Call `visit` on every unbound variable of a type."""
    stack: list[object] = [t]
    seen: set[int] | None = set() if cyclic[0] else None
    while stack:
        x = stack.pop()
        if seen is not None:
            if id(x) in seen:
                continue
            seen.add(id(x))
        if isinstance(x, TVar):
            if x.ref is not None:
                stack.append(x.ref)
            else:
                visit(x)
                if x.labels:
                    stack += [label[1] for label in x.labels]
        elif isinstance(x, TList | TMap | THandle):
            stack.append(x.elem)
        elif isinstance(x, TRecord | TVariant):
            row = flat(x.row)
            stack += row.fields.values()
            if row.tail is not None:
                visit(row.tail)
        elif isinstance(x, TThunk):
            stack.append(x.comp)
        elif isinstance(x, CVar):
            if x.ref is not None:
                stack.append(x.ref)
            else:
                visit(x)
        elif isinstance(x, CFun):
            stack.append(x.arg)
            stack.append(x.comp)
        elif isinstance(x, CF):
            stack.append(x.type)
            grade = prune_grade(x.grade)
            if isinstance(grade, GVar):
                visit(grade)
