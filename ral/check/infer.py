"""Inference over core terms.

The walk follows nested forms (at most 64 deep). Constraints are solved as they arise, but for two that wait: a selection by
a written label from a value whose head is unknown, and a computed index (`unify.select`, `Inference.deferred`).
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

from ral.check.commands import Commands
from ral.check.types import (
    COMPARABLE,
    DATA,
    NUMBER,
    SCALAR,
    T_BOOL,
    T_BYTES,
    T_FLOAT,
    T_INT,
    T_STRING,
    T_UNIT,
    CFun,
    Comp,
    Row,
    RVar,
    Scheme,
    TList,
    TMap,
    TRecord,
    TThunk,
    TVar,
    TVariant,
    Type,
    prune,
)
from ral.check.unify import default_labels, generalise, instantiate, select
from ral.core import terms as c
from ral.diag import Source

AMBIENT: dict[str, Type] = {
    "ENV": TMap(T_STRING),
    "CWD": T_STRING,
    "USER": T_STRING,
    "NPROC": T_INT,
    "ARGS": TList(T_STRING),
}
ARITHMETIC = ("+", "-", "*", "/")
ORDER = ("<", ">", "<=", ">=")


def check_program(seq: c.Seq, source: Source, signature: "Callable[[str], Scheme]") -> None:
    """Type a whole program in place. Raises `StaticError` with status 1."""
    inference = Inference(source, signature)
    inference.seq(seq)
    inference.settle()


class Inference(Commands):
    """One unit's inference: values and patterns here, computations in `Commands`."""

    # Values

    def value(self, v: c.Value) -> Type:
        t = self.value_type(v)
        v.ty = t
        return t

    def value_type(self, v: c.Value) -> Type:
        match v:
            case c.Const(value):
                return constant(value)
            case c.Tilde():
                return T_STRING
            case c.Local(var):
                return self.variable(var)
            case c.Native(name):
                return instantiate(self.signature(name), self.level)
            case c.Ambient(name):
                return AMBIENT[name]
            case c.ListOf(items):
                elem = self.fresh()
                for item in items:
                    t = self.value(item.value)
                    if item.spread:
                        self.unify(TList(elem), t, item.value, "`...` spreads a list")
                    else:
                        self.unify(elem, t, item.value, "the elements of a list have one type")
                return TList(elem)
            case c.RecordOf(base, fields):
                return self.record(v, base, fields)
            case c.MapOf(entries):
                return self.map(entries)
            case c.Variant(tag, payload):
                t = T_UNIT if payload is None else self.value(payload)
                return TVariant(Row({tag: t}, RVar(self.level)))
            case c.Text(parts):
                for part in parts:
                    self.kinded(
                        SCALAR,
                        self.value(part),
                        part,
                        "a string takes text, numbers and true or false",
                        "render a list with !{intercalate ', ' $xs}, other data with !{to-json $x}",
                    )
                return T_STRING
            case c.Index(base, key):
                return self.index(v, base, key)
            case c.Binary():
                return self.binary(v)
            case c.Unary(op, operand):
                t = self.value(operand)
                if op == "not":
                    self.unify(T_BOOL, t, operand, "`not` takes a Bool")
                    return T_BOOL
                return self.kinded(NUMBER, t, operand, "`-` takes a number")
            case c.Thunk():
                return TThunk(self.lambda_type(v.params, v.body))
            case c.Run(comp):
                return self.demand(self.comp(comp), v)
            case _:
                raise AssertionError(v)

    def variable(self, var: c.Var) -> Type:
        scheme = var.scheme
        if scheme is None:  # a block that comes early mentions a value that comes later
            scheme = var.scheme = Scheme(frozenset(), TVar(0))
        assert isinstance(scheme, Scheme)
        return instantiate(scheme, self.level)

    def lambda_type(self, params: list[c.Pattern], body: c.Seq) -> Comp:
        types = [self.pattern(p) for p in params]
        result = self.seq(body)
        for t in reversed(types):
            result = CFun(t, result)
        return result

    def record(self, v: c.Value, base: c.Value | None, fields: list[tuple[str, c.Value]]) -> Type:
        types = {key: self.value(value) for key, value in fields}
        if base is None:
            return TRecord(Row(types, None))
        t = prune(self.value(base))
        if isinstance(t, TMap):
            self.fail("T0022", "this spreads a map into a record", base, "for a map write [:, ...$m, k: v]")
        old = Row({key: self.fresh() for key in types}, RVar(self.level))
        names = ", ".join(types)
        self.unify(
            TRecord(old),
            t,
            base,
            f"a record spread never adds a field (here: {names})",
            "give the base the field, nest the record ([cfg: $r, k: v]), or use a map ([:, ...$r, k: v])",
        )
        return TRecord(Row(types, old.tail))

    def map(self, entries: list[c.MapItem]) -> Type:
        elem = self.fresh()
        for entry in entries:
            t = self.value(entry.value)
            if entry.key is not None:
                self.unify(T_STRING, self.value(entry.key), entry.key, "a map's key is a String")
                self.unify(elem, t, entry.value, "the values of a map have one type")
                continue
            t = prune(t)
            if isinstance(t, TRecord) and t.row.tail is None:
                for field in t.row.fields.values():
                    self.unify(elem, field, entry.value, "the values of a map have one type")
            else:
                self.unify(TMap(elem), t, entry.value, "`...` spreads a map here")
        return TMap(elem)

    def index(self, v: c.Value, base: c.Value, key: c.Value) -> Type:
        container = self.value(base)
        if isinstance(key, c.Const):
            key.ty = constant(key.value)
            if isinstance(key.value, str):
                return self.select(container, key.value, v)
            if isinstance(key.value, int) and not isinstance(key.value, bool):
                elem = self.fresh()
                self.unify(TList(elem), container, base, "a position indexes a list", "a map's key is text: $m['0']")
                return elem
            self.fail("T0077", "a key is an Int or a String", key, "")
        kt = self.value(key)
        result = self.fresh(weak=True)
        self.weaken(container)
        self.weaken(kt)
        entry = (container, kt, result, v)
        if not self.decide(entry):
            self.deferred.append(entry)
        return result

    def select(self, container: Type, label: str, node: c.Term) -> Type:
        result = self.fresh()
        self.solve(lambda: select(container, label, result, node.start, node.end, self.level), node, "")
        pending = prune(container)
        if isinstance(pending, TVar):
            self.waiting.append(pending)
        return result

    def binary(self, node: c.Value) -> Type:
        """A left-leaning chain, typed from its first operand on."""
        spine: list[c.Binary] = []
        at: c.Value = node
        while isinstance(at, c.Binary):
            spine.append(at)
            at = at.left
        t = self.value(at)
        for step in reversed(spine):
            t = self.operation(step, t, self.value(step.right))
            step.ty = t
        return t

    def operation(self, step: c.Binary, left: Type, right: Type) -> Type:
        op = step.op
        if op in ("&&", "||"):
            self.unify(T_BOOL, left, step.left, f"`{op}` takes two Bools")
            self.unify(T_BOOL, right, step.right, f"`{op}` takes two Bools")
            return T_BOOL
        if op == "%":
            self.unify(T_INT, left, step.left, "`%` takes two Ints")
            self.unify(T_INT, right, step.right, "`%` takes two Ints")
            return T_INT
        if op in ARITHMETIC:
            hint = 'join text by interpolation: "$a$b"' if op == "+" else ""
            t = self.kinded(NUMBER, left, step.left, f"`{op}` takes two numbers", hint)
            self.unify(t, right, step.right, f"`{op}` takes two numbers of one type", NUMBER_HINT)
            return t
        if op in ORDER:
            self.kinded(COMPARABLE, left, step.left, f"`{op}` orders numbers or text")
            self.unify(left, right, step.right, f"`{op}` compares two values of one type", NUMBER_HINT)
            return T_BOOL
        self.kinded(DATA, left, step.left, f"`{op}` compares data", deep=True)
        self.unify(left, right, step.right, f"`{op}` compares two values of one type", NUMBER_HINT)
        self.kinded(DATA, left, step.left, f"`{op}` compares data", deep=True)
        return T_BOOL

    # Patterns

    def pattern(self, p: c.Pattern, t: Type | None = None) -> Type:
        """The type a pattern takes; its variables are bound to it unquantified."""
        if t is None:
            t = self.fresh()
        p.ty = t
        match p:
            case c.Bind(var):
                if isinstance(var.scheme, Scheme):
                    self.unify(var.scheme.body, t, p, "a value that an earlier block uses")
                var.scheme = Scheme(frozenset(), t)
            case c.ListPattern(items, rest):
                elem = self.fresh()
                self.unify(TList(elem), t, p, "this pattern takes a list apart")
                for item in items:
                    self.pattern(item, elem)
                if rest is not None:
                    self.pattern(rest, TList(elem))
            case c.FieldPattern(fields):
                for label, field in fields:
                    self.pattern(field, self.select(t, label, p))
            case _:
                assert isinstance(p, c.Ignore)
        return t

    def quantify(self, p: c.Pattern) -> None:
        """Generalise the variables of a `let`'s pattern."""
        match p:
            case c.Bind(var):
                var.scheme = generalise(p.ty, self.level)
            case c.ListPattern(items, rest):
                for item in items:
                    self.quantify(item)
                if rest is not None:
                    self.quantify(rest)
            case c.FieldPattern(fields):
                for _, field in fields:
                    self.quantify(field)
            case _:
                assert isinstance(p, c.Ignore)

    # What waits

    def decide(self, entry: "tuple[Type, Type, Type, c.Value]") -> bool:
        """Settle a computed index if its container or its key says which it is."""
        container, key, result, node = entry
        t, k = prune(container), prune(key)
        if isinstance(t, TRecord):
            self.fail("T0077", "a record's fields are read by written names", node, "for computed keys use a map")
        as_list = isinstance(t, TList) or k is T_INT
        as_map = isinstance(t, TMap) or k is T_STRING
        if isinstance(t, TVar) and not (as_list or as_map):
            as_list = bool(t.kind & 64) and not t.kind & 128
            as_map = bool(t.kind & 128) and not t.kind & 64
        if isinstance(k, TVar) and not (as_list or as_map):
            as_list = bool(k.kind & 4) and not k.kind & 16
            as_map = bool(k.kind & 16) and not k.kind & 4
        if as_list:
            self.unify(TList(result), t, node, "an Int indexes a list")
            self.unify(T_INT, k, node, "a list is indexed by an Int")
            return True
        if as_map:
            self.unify(TMap(result), t, node, "a String reads a map")
            self.unify(T_STRING, k, node, "a map is read by a String")
            return True
        if not isinstance(k, TVar):
            self.fail("T0074", "a key is an Int or a String", node, "")
        if not isinstance(t, TVar):
            self.fail("T0077", "only lists, maps and records can be indexed", node, "")
        return False

    def settle(self) -> None:
        """The end of the unit: what nothing decided gets its default or is refused."""
        while True:
            left = [entry for entry in self.deferred if not self.decide(entry)]
            done = len(left) == len(self.deferred)
            self.deferred = left
            for var in self.waiting:
                if var.ref is None and var.labels and done:
                    default_labels(var)
                    done = False
            self.waiting = [v for v in self.waiting if v.ref is None and v.labels]
            if done:
                break
        if self.deferred:
            self.fail(
                "T0075",
                "nothing says whether this indexes a list or a map",
                self.deferred[0][3],
                "call it with a list and an Int, or with a map and a String, in the same program",
            )
        for check in self.later:
            check()


NUMBER_HINT = "convert one side: !{float $n} or !{int $x}"


def constant(value: object) -> Type:
    """The type of a written value."""
    if value is None:
        return T_UNIT
    if isinstance(value, bool):
        return T_BOOL
    if isinstance(value, int):
        return T_INT
    if isinstance(value, float):
        return T_FLOAT
    return T_STRING if isinstance(value, str) else T_BYTES
