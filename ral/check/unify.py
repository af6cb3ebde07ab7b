"""Unification of types, rows, computations and grades; generalisation and instantiation."""

from ral.check.types import (
    ANY,
    CF,
    DATA,
    MAP,
    NULLARY,
    RECORD,
    CFun,
    Comp,
    Con,
    CVar,
    GVar,
    Row,
    RVar,
    Scheme,
    THandle,
    TList,
    TMap,
    TRecord,
    TThunk,
    TVar,
    TVariant,
    Type,
    cyclic,
    flat,
    head_of,
    prune,
    prune_comp,
    prune_grade,
    reaches,
    walk_vars,
)


class Mismatch(Exception):
    """Two types that don't unify: the innermost pair, or a message of its own."""

    def __init__(self, left: object, right: object, message: str = "", hint: str = "", code: str = "T0001") -> None:
        super().__init__(message)
        self.left = left
        self.right = right
        self.message = message
        self.hint = hint
        self.code = code


def unify(a: Type, b: Type) -> None:
    """Make two types equal, or raise `Mismatch`."""
    a = prune(a)
    b = prune(b)
    if a is b:
        return
    if isinstance(a, TVar):
        if isinstance(b, TVar):
            unite(a, b)
        else:
            bind(a, b)
        return
    if isinstance(b, TVar):
        bind(b, a)
        return
    if isinstance(a, Con) or isinstance(b, Con) or type(a) is not type(b):
        raise Mismatch(a, b)
    if cyclic[0]:  # two cycles are equal if nothing on the way round says otherwise
        pair = (id(a), id(b))
        if pair in assumed:
            return
        assumed.add(pair)
        try:
            unify_parts(a, b)
        finally:
            assumed.discard(pair)
        return
    unify_parts(a, b)


assumed: set[tuple[int, int]] = set()  # pairs of types that are being unified further out


def unify_parts(a: Type, b: Type) -> None:
    """Two structures of one head."""
    if isinstance(a, TList | TMap | THandle):
        assert isinstance(b, TList | TMap | THandle)
        unify(a.elem, b.elem)
    elif isinstance(a, TThunk):
        assert isinstance(b, TThunk)
        unify_comp(a.comp, b.comp)
    else:
        assert isinstance(a, TRecord | TVariant) and isinstance(b, TRecord | TVariant)
        unify_rows(a.row, b.row, a, b)


def unite(a: TVar, b: TVar) -> None:
    """Two variables become one, at the meet of their kinds."""
    kind = a.kind & b.kind
    if not kind:
        raise Mismatch(a, b, code="T0074")
    b.kind = kind
    b.deep = b.deep or a.deep
    b.weak = b.weak or a.weak
    b.level = min(a.level, b.level)
    a.ref = b
    labels = a.labels
    a.labels = None
    only = NULLARY.get(kind)
    if labels:
        b.labels = (b.labels or []) + labels
    if only is not None:
        bind(b, only)


def bind(var: TVar, t: Type) -> None:
    """Bind a variable to a structure that its kind admits."""
    if not var.kind & head_of(t):
        raise Mismatch(var, t, code="T0074")
    if not isinstance(t, Con):
        adjust(var, t)
        if var.deep:
            impose_data(t)
    labels = var.labels
    var.ref = t
    var.labels = None
    if labels:
        for label, result, start, end in labels:
            select(t, label, result, start, end, var.level)


def adjust(var: TVar, t: Type) -> None:
    """Refuse a cycle; bring the levels and the weakness of a type's variables to the variable's."""
    level, weak = var.level, var.weak

    def visit(x: object) -> None:
        if x is var:
            if reaches(t, var):
                raise Mismatch(
                    var, t, "this would be a type that contains itself", "a function can't be its own argument"
                )
            cyclic[0] = True
        if x.level > level:  # type: ignore[attr-defined]
            x.level = level  # type: ignore[attr-defined]
        if weak and not isinstance(x, GVar):
            x.weak = True  # type: ignore[attr-defined]

    walk_vars(t, visit)


def impose_data(t: Type) -> None:
    """Demand data at every depth: no block, no handle."""
    stack = [t]
    seen: set[int] = set()
    while stack:
        t = prune(stack.pop())
        if id(t) in seen:
            continue
        seen.add(id(t))
        if isinstance(t, TVar):
            t.deep = True
            t.kind &= DATA
            if not t.kind:
                raise Mismatch(t, t, "a block or a handle is no data", code="T0074")
        elif isinstance(t, TThunk | THandle):
            raise Mismatch(t, t, "blocks, functions and handles can't be compared or encoded", code="T0074")
        elif isinstance(t, TList | TMap):
            stack.append(t.elem)
        elif isinstance(t, TRecord | TVariant):
            row = flat(t.row)
            stack += row.fields.values()
            if row.tail is not None:
                row.tail.deep = True


def select(t: Type, label: str, result: Type, start: int, end: int, level: int) -> None:
    """`t[label]` has type `result`; a variable waits until its head is known."""
    t = prune(t)
    if isinstance(t, TVar):
        if t.kind & MAP and not t.kind & RECORD:
            bind(t, TMap(result))
        elif t.kind & RECORD and not t.kind & MAP:
            bind(t, TRecord(Row({label: result}, RVar(t.level, t.deep, t.weak))))
        elif t.kind & (MAP | RECORD):
            for other, known, _, _ in t.labels or ():
                if other == label:
                    unify(known, result)
                    return
            lower(t, result)
            t.labels = [*(t.labels or []), (label, result, start, end)]
        else:
            raise Mismatch(t, t, f"this has no field `{label}`", code="T0076")
    elif isinstance(t, TRecord):
        row = flat(t.row)
        known_type = row.fields.get(label)
        if known_type is not None:
            unify(known_type, result)
        elif row.tail is None:
            fields = ", ".join(sorted(row.fields))
            raise Mismatch(t, t, f"this record has no field `{label}`", f"it has {fields}", "T0076")
        else:
            extend(row.tail, {label: result})
    elif isinstance(t, TMap):
        unify(t.elem, result)
    elif isinstance(t, TList):
        raise Mismatch(t, t, f"a list is indexed by position, not by `{label}`", "write $xs[0]", "T0076")
    else:
        raise Mismatch(t, t, f"only a record or a map has `[{label}]`", code="T0076")


def lower(var: TVar, t: Type) -> None:
    """Keep a waiting result at its container's level, so that it generalises no earlier."""
    level = var.level

    def visit(x: object) -> None:
        if x.level > level:  # type: ignore[attr-defined]
            x.level = level  # type: ignore[attr-defined]
        if var.weak and not isinstance(x, GVar):
            x.weak = True  # type: ignore[attr-defined]

    walk_vars(t, visit)


def default_labels(var: TVar) -> None:
    """Nothing fixed the container: it is a record of the fields that are read."""
    labels = var.labels or []
    var.labels = None
    fields: dict[str, Type] = {}
    for label, result, _, _ in labels:
        if label in fields:
            unify(fields[label], result)
        else:
            fields[label] = result
    bind(var, TRecord(Row(fields, RVar(var.level, var.deep, var.weak))))


def extend(tail: RVar, fields: dict[str, Type]) -> RVar:
    """Bind a row's tail to more fields and a new tail."""
    rest = RVar(tail.level, tail.deep, tail.weak)
    level, weak = tail.level, tail.weak

    def visit(x: object) -> None:
        if x is tail:
            cyclic[0] = True
        if x.level > level:  # type: ignore[attr-defined]
            x.level = level  # type: ignore[attr-defined]
        if weak and not isinstance(x, GVar):
            x.weak = True  # type: ignore[attr-defined]

    for t in fields.values():
        walk_vars(t, visit)
        if tail.deep:
            impose_data(t)
    tail.ref = Row(dict(fields), rest)
    return rest


def unify_rows(a: Row, b: Row, left: Type, right: Type) -> None:
    a = flat(a)
    b = flat(b)
    if a is b:
        return
    for label, t in a.fields.items():
        other = b.fields.get(label)
        if other is not None:
            unify(t, other)
    a = flat(a)
    b = flat(b)
    only_a = {k: t for k, t in a.fields.items() if k not in b.fields}
    only_b = {k: t for k, t in b.fields.items() if k not in a.fields}
    if a.tail is not None and a.tail is b.tail:
        if only_a or only_b:
            raise Mismatch(left, right)
        return
    for missing, row in ((only_a, b), (only_b, a)):
        if missing and row.tail is None:
            raise Mismatch(left, right, missing_label(left, sorted(missing)[0], row), code="T0076")
    if b.tail is not None and a.tail is not None:
        if only_a:
            rest = extend(b.tail, only_a)
            if only_b:
                a.tail.ref = Row(only_b, rest)
                spread(a.tail, only_b)
            else:
                a.tail.ref = Row({}, rest)
            join_tails(rest, a.tail)
        else:
            spread(a.tail, only_b)
            join_tails(b.tail, a.tail)
            a.tail.ref = Row(only_b, b.tail)
    elif b.tail is not None:
        spread(b.tail, only_a)
        b.tail.ref = Row(only_a, None)
    elif a.tail is not None:
        spread(a.tail, only_b)
        a.tail.ref = Row(only_b, None)


def join_tails(kept: RVar, gone: RVar) -> None:
    kept.level = min(kept.level, gone.level)
    kept.deep = kept.deep or gone.deep
    kept.weak = kept.weak or gone.weak


def spread(tail: RVar, fields: dict[str, Type]) -> None:
    """Give fields that join a row its level, weakness and depth."""
    for t in fields.values():
        stand_in = TVar(tail.level, ANY, False, tail.weak)

        def visit(x: object) -> None:
            if x is tail:
                cyclic[0] = True

        walk_vars(t, visit)
        lower(stand_in, t)
        if tail.deep:
            impose_data(t)


def missing_label(t: Type, label: str, row: Row) -> str:
    if isinstance(t, TVariant):
        tags = ", ".join(f"`{x}" for x in sorted(row.fields))
        return f"the tag `` `{label} `` has no place here; the tags are {tags}"
    return f"the field `{label}` is missing on one side; the fields are {', '.join(sorted(row.fields))}"


def unify_comp(a: Comp, b: Comp) -> None:
    a = prune_comp(a)
    b = prune_comp(b)
    if a is b:
        return
    if isinstance(a, CVar):
        bind_comp(a, b)
    elif isinstance(b, CVar):
        bind_comp(b, a)
    elif isinstance(a, CFun) and isinstance(b, CFun):
        unify(a.arg, b.arg)
        unify_comp(a.comp, b.comp)
    elif isinstance(a, CF) and isinstance(b, CF):
        if not unify_grade(a.grade, b.grade):
            raise Mismatch(a, b, code="T0005")
        unify(a.type, b.type)
    else:
        raise Mismatch(a, b, code="T0003")


def bind_comp(var: CVar, c: Comp) -> None:
    level, weak = var.level, var.weak

    def visit(x: object) -> None:
        if x is var:
            if reaches(TThunk(c), var):
                raise Mismatch(var, c, "this would be a type that contains itself")
            cyclic[0] = True
        if x.level > level:  # type: ignore[attr-defined]
            x.level = level  # type: ignore[attr-defined]
        if weak and not isinstance(x, GVar):
            x.weak = True  # type: ignore[attr-defined]

    if isinstance(c, CVar):
        c.level = min(c.level, level)
        c.weak = c.weak or weak
    else:
        walk_vars(TThunk(c), visit)
    var.ref = c


def unify_grade(a: "str | GVar", b: "str | GVar") -> bool:
    a = prune_grade(a)
    b = prune_grade(b)
    if a is b or a == b:
        return True
    if isinstance(a, GVar):
        if isinstance(b, GVar):
            b.level = min(a.level, b.level)
        a.ref = b
        return True
    if isinstance(b, GVar):
        b.ref = a
        return True
    return False


def generalise(t: Type, level: int) -> Scheme:
    """Quantify the variables above a level that are not weak."""
    while True:
        waiting: list[TVar] = []
        found: set[object] = set()

        def visit(x: object) -> None:
            if x.level > level:  # type: ignore[attr-defined]
                if isinstance(x, GVar) or not x.weak:  # type: ignore[attr-defined]
                    found.add(x)
                    if isinstance(x, TVar) and x.labels:
                        waiting.append(x)

        walk_vars(t, visit)
        if not waiting:
            return Scheme(frozenset(found), t)
        for var in waiting:
            if var.ref is None:
                default_labels(var)


def instantiate(scheme: Scheme, level: int) -> Type:
    """The scheme's type with fresh variables for the quantified ones."""
    if not scheme.vars:
        return scheme.body
    return Copy(scheme.vars, level).type(scheme.body)


class Copy:
    """One instantiation."""

    def __init__(self, vars: "frozenset[object]", level: int) -> None:
        self.vars = vars
        self.level = level
        self.fresh: dict[object, object] = {}
        self.made: dict[int, Type] = {}  # copies of structures, by the original: a cycle is copied once

    def type(self, t: Type) -> Type:
        t = prune(t)
        if isinstance(t, Con):
            return t
        if cyclic[0] and isinstance(t, TList | TMap | TRecord | TVariant):
            known = self.made.get(id(t))
            if known is not None:
                return known
            copy: Type = (
                TList(t) if isinstance(t, TList) else TMap(t) if isinstance(t, TMap) else type(t)(Row({}, None))
            )
            self.made[id(t)] = copy
            if isinstance(t, TList | TMap):
                copy.elem = self.type(t.elem)  # type: ignore[attr-defined]
            else:
                copy.row = self.row(t.row)  # type: ignore[attr-defined]
            return copy
        if isinstance(t, TVar):
            if t not in self.vars:
                return t
            new = self.fresh.get(t)
            if new is None:
                new = self.fresh[t] = TVar(self.level, t.kind, t.deep)
            return new  # type: ignore[return-value]
        if isinstance(t, TList):
            return TList(self.type(t.elem))
        if isinstance(t, TMap):
            return TMap(self.type(t.elem))
        if isinstance(t, THandle):
            return THandle(self.type(t.elem))
        if isinstance(t, TThunk):
            return TThunk(self.comp(t.comp))
        if isinstance(t, TRecord):
            return TRecord(self.row(t.row))
        assert isinstance(t, TVariant)
        return TVariant(self.row(t.row))

    def row(self, row: Row) -> Row:
        row = flat(row)
        tail = row.tail
        if tail is not None and tail in self.vars:
            new = self.fresh.get(tail)
            if new is None:
                new = self.fresh[tail] = RVar(self.level, tail.deep)
            tail = new  # type: ignore[assignment]
        return Row({k: self.type(v) for k, v in row.fields.items()}, tail)

    def comp(self, c: Comp) -> Comp:
        c = prune_comp(c)
        if isinstance(c, CVar):
            if c not in self.vars:
                return c
            new = self.fresh.get(c)
            if new is None:
                new = self.fresh[c] = CVar(self.level)
            return new  # type: ignore[return-value]
        if isinstance(c, CFun):
            return CFun(self.type(c.arg), self.comp(c.comp))
        assert isinstance(c, CF)
        grade = prune_grade(c.grade)
        if isinstance(grade, GVar) and grade in self.vars:
            new = self.fresh.get(grade)
            if new is None:
                new = self.fresh[grade] = GVar(self.level)
            grade = new  # type: ignore[assignment]
        return CF(grade, self.type(c.type))
