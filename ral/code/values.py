"""Values as Python expressions.

`value` returns an expression and may write statements ahead of it. `values` keeps the order of evaluation: whatever stands
before a value that needs statements is put into a variable first.
"""

from ral.check.types import (
    BOOL,
    BYTES,
    FLOAT,
    INT,
    STRING,
    T_FLOAT,
    T_INT,
    T_STRING,
    UNIT,
    Con,
    TRecord,
    TVar,
    Type,
    prune,
)
from ral.code.buffer import Line, mark
from ral.core import terms as c
from ral.core.native import mangle
from ral.diag import Source

LOW, HIGH = "-9223372036854775808", "9223372036854775807"
FLAT = UNIT | BOOL | INT | FLOAT | STRING | BYTES
COMPARE = {"==": "==", "!=": "!=", "<": "<", ">": ">", "<=": "<=", ">=": ">="}
HELPERS = {"+": "add", "-": "subtract", "*": "multiply"}
STEP = 40  # operations in one expression before it goes into a variable


class Function:
    """A `def` being written."""

    def __init__(self, outer: "Function | None", thunk: c.Thunk | None, depth: int, loop: bool) -> None:
        self.outer = outer
        self.thunk = thunk
        self.depth = depth
        self.base = depth
        self.loop = loop
        self.lines: list[Line] = []
        self.params: list[str] = []
        self.scopes = 0
        self.captured: set[c.Var] = set()  # bindings of enclosing functions that it mentions


class Values:
    """The value half of the generator."""

    source: Source
    fn: Function
    counter: int
    natives: set[str]

    def comp_value(self, m: c.Comp) -> str:
        raise NotImplementedError

    def thunk_value(self, v: c.Thunk) -> str:
        raise NotImplementedError

    def capture(self, m: c.Comp, name: str) -> None:
        raise NotImplementedError

    # Writing

    def emit(self, text: str, start: int, end: int) -> None:
        self.fn.lines.append(Line(self.fn.depth, text, start, end))

    def temp(self, prefix: str = "t") -> str:
        self.counter += 1
        return f"{prefix}{self.counter}"

    def use(self, var: c.Var) -> None:
        """Note that the current function mentions a binding."""
        if var.owner is not self.fn and var.owner is not None:
            self.fn.captured.add(var)

    def code_name(self, var: c.Var) -> str:
        self.use(var)
        return f"f_{var.py}"

    # Values

    def simple(self, v: c.Value) -> bool:
        """Whether a value is written without statements ahead of it."""
        if isinstance(v, c.Const | c.Local | c.Ambient | c.Native | c.Tilde):
            return True
        if isinstance(v, c.Index):
            return self.simple(v.base) and self.simple(v.key)
        if isinstance(v, c.Binary):
            count = 0
            at: c.Value = v
            while isinstance(at, c.Binary):
                if not self.simple(at.right):
                    return False
                at = at.left
                count += 1
            return count < STEP and self.simple(at)
        if isinstance(v, c.Unary):
            return self.simple(v.operand)
        if isinstance(v, c.Run):
            return not v.capture and self.simple_comp(v.comp)
        if isinstance(v, c.Text):
            return all(self.simple(p) for p in v.parts)
        if isinstance(v, c.ListOf):
            return all(self.simple(i.value) for i in v.items)
        if isinstance(v, c.RecordOf):
            return (v.base is None or self.simple(v.base)) and all(self.simple(x) for _, x in v.fields)
        if isinstance(v, c.MapOf):
            return all(self.simple(e.value) and (e.key is None or self.simple(e.key)) for e in v.entries)
        if isinstance(v, c.Variant):
            return v.payload is None or self.simple(v.payload)
        return False

    def simple_comp(self, m: c.Comp) -> bool:
        if isinstance(m, c.Seq):
            return len(m.items) == 1 and self.simple_comp(m.items[0])
        if isinstance(m, c.Apply):
            return self.simple(m.fn) and all(self.simple(a) for a in m.args)
        if isinstance(m, c.Force):
            return not isinstance(m.value, c.Thunk) and self.simple(m.value)
        return isinstance(m, c.Return) and self.simple(m.value)

    def values(self, vs: "list[c.Value]") -> list[str]:
        last = -1
        for i, v in enumerate(vs):
            if not self.simple(v):
                last = i
        exprs: list[str] = []
        for i, v in enumerate(vs):
            expr = self.value(v)
            if i < last and not isinstance(v, c.Const | c.Local):
                name = self.temp()
                self.emit(f"{name} = {expr}", v.start, v.end)
                expr = name
            exprs.append(expr)
        return exprs

    def value(self, v: c.Value) -> str:
        match v:
            case c.Const(value):
                return "None" if value is None else repr(value)
            case c.Local(var):
                self.use(var)
                return var.py
            case c.Native(name):
                self.natives.add(name)
                return f"N_{mangle(name)}"
            case c.Ambient(name):
                return f"ambient(sh, {name!r})"
            case c.Tilde(text):
                return mark(v.start, v.end, f"tilde(sh, {text!r})")
            case c.ListOf(items):
                exprs = self.values([i.value for i in items])
                parts = [f"*{e}" if i.spread else e for i, e in zip(items, exprs, strict=True)]
                return "[" + ", ".join(parts) + "]"
            case c.RecordOf(base, fields):
                exprs = self.values(([base] if base is not None else []) + [x for _, x in fields])
                head = [f"**{exprs.pop(0)}"] if base is not None else []
                return "{" + ", ".join(head + [f"{k!r}: {e}" for (k, _), e in zip(fields, exprs, strict=True)]) + "}"
            case c.MapOf(entries):
                return self.map(entries)
            case c.Variant(tag, payload):
                return f"Variant({tag!r}, {self.value(payload)})" if payload is not None else f"Variant({tag!r})"
            case c.Text(parts_of_text):
                exprs = self.values(parts_of_text)
                shown = [self.as_text(e, p) for e, p in zip(exprs, parts_of_text, strict=True)]
                return shown[0] if len(shown) == 1 else f"''.join(({', '.join(shown)}))"
            case c.Index(base, key):
                return self.index(v, base, key)
            case c.Binary():
                return self.binary(v)
            case c.Unary(op, operand):
                expr = self.value(operand)
                if op == "not":
                    return f"(not {expr})"
                return mark(v.start, v.end, f"negate({expr})")
            case c.Thunk():
                return self.thunk_value(v)
            case c.Run(comp):
                if v.capture:
                    name = self.temp()
                    self.capture(comp, name)
                    return name
                return self.comp_value(comp)
            case _:
                raise AssertionError(v)

    def map(self, entries: list[c.MapItem]) -> str:
        flat: list[c.Value] = []
        for e in entries:
            flat += [e.value] if e.key is None else [e.key, e.value]
        exprs = self.values(flat)
        if all(isinstance(e.key, c.Const) for e in entries):
            pairs = [f"{exprs[i]}: {exprs[i + 1]}" for i in range(0, len(exprs), 2)]
            return "{" + ", ".join(pairs) + "}"
        parts: list[str] = []
        for e in entries:
            if e.key is None:
                parts.append(f"({exprs.pop(0)},)")
            else:
                key = exprs.pop(0)
                parts.append(f"({key}, {exprs.pop(0)})")
        return f"map_of([{', '.join(parts)}], sh)"

    def as_text(self, expr: str, part: c.Value) -> str:
        t = prune(part.ty)
        if isinstance(part, c.Const) and isinstance(part.value, str):
            return expr
        if t is T_STRING:
            return expr
        if t is T_INT:
            return f"str({expr})"
        return mark(part.start, part.end, f"scalar({expr})")

    def index(self, v: c.Index, base: c.Value, key: c.Value) -> str:
        container, k = self.values([base, key])
        t = prune(base.ty)
        if isinstance(t, TRecord) and isinstance(key, c.Const):
            return f"{container}[{k}]"
        if isinstance(base, c.Ambient) and base.name == "ENV":
            return mark(v.start, v.end, f"index(environment(sh), {k})")
        return mark(v.start, v.end, f"index({container}, {k})")

    # Operations

    def binary(self, v: c.Binary) -> str:
        """A left-leaning chain; a long one goes through variables."""
        spine: list[c.Binary] = []
        at: c.Value = v
        while isinstance(at, c.Binary):
            spine.append(at)
            at = at.left
        spine.reverse()
        pending = [s.right for s in spine]
        left = self.value(at)
        for number, step in enumerate(spine):
            complex_ahead = not all(self.simple(x) for x in pending[number : number + 1])
            if step.op in ("&&", "||") and complex_ahead:
                left = self.short_circuit(step, left)
                continue
            if (complex_ahead or number % STEP == STEP - 1) and not left.isidentifier():
                name = self.temp()
                self.emit(f"{name} = {left}", step.start, step.end)
                left = name
            left = self.operation(step, left, self.value(step.right))
        return left

    def short_circuit(self, step: c.Binary, left: str) -> str:
        name = self.temp()
        self.emit(f"{name} = {left}", step.start, step.end)
        self.emit(f"if {name}:" if step.op == "&&" else f"if not {name}:", step.start, step.end)
        self.fn.depth += 1
        self.emit(f"{name} = {self.value(step.right)}", step.start, step.end)
        self.fn.depth -= 1
        return name

    def operation(self, step: c.Binary, left: str, right: str) -> str:
        op = step.op
        if op == "&&":
            return f"({left} and {right})"
        if op == "||":
            return f"({left} or {right})"
        if op in COMPARE:
            if op in ("==", "!=") and not self.is_flat(step.left.ty):
                return f"equal({left}, {right})" if op == "==" else f"(not equal({left}, {right}))"
            return f"({left} {op} {right})"
        if op == "/":
            return mark(step.start, step.end, f"divide({left}, {right})")
        if op == "%":
            return mark(step.start, step.end, f"remainder({left}, {right})")
        t = prune(step.ty)
        name = self.temp()
        if t is T_INT:
            return mark(step.start, step.end, self.checked_int(step, name, f"{left} {op} {right}"))
        if t is T_FLOAT:
            return mark(
                step.start, step.end, f"{name} if ({name} := {left} {op} {right}) - {name} == 0.0 else infinite()"
            )
        return mark(step.start, step.end, f"{HELPERS[op]}({left}, {right})")

    def checked_int(self, step: c.Binary, name: str, expr: str) -> str:
        """The range check that an Int result needs; a written operand leaves only one side to check."""
        right = step.right.value if isinstance(step.right, c.Const) else None
        if isinstance(right, int) and step.op in "+-":
            grows = (step.op == "+") == (right >= 0)
            bound = f"<= {HIGH}" if grows else f">= {LOW}"
            return f"{name} if ({name} := {expr}) {bound} else overflow()"
        return f"{name} if {LOW} <= ({name} := {expr}) <= {HIGH} else overflow()"

    def is_flat(self, t: Type) -> bool:
        t = prune(t)
        if isinstance(t, Con):
            return True
        return isinstance(t, TVar) and not t.kind & ~FLAT

    def argument_list(self, items: list[c.Item]) -> str:
        exprs = self.values([i.value for i in items])
        return "[" + ", ".join(f"*{e}" if i.spread else e for i, e in zip(items, exprs, strict=True)) + "]"
