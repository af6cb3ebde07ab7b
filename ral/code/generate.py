"""The generator: one pass over typed terms, writing Python source text.

Shape of the output: a named block is a `def` that takes the shell first; a self tail call is `continue` in a `while True`;
any other tail call returns (code, argument, …) to the trampoline; every function polls on entry and on every turn of its
loop (`if sh.flag: check(sh)`). What must happen before a value is written as statements ahead of it.

Limits of `compile`: 20 nested blocks that need cleanup in one function, 100 levels of indentation, 200 parentheses. A scope
form that would be the sixteenth in its function goes into a function of its own; the parser's 64 forms bound the rest.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType

from ral.cancel import floor
from ral.check.types import CFun, prune_comp
from ral.code.buffer import Line, assemble, mark
from ral.code.scopes import Scopes
from ral.code.tails import Tails, known
from ral.code.values import Function
from ral.core import terms as c
from ral.core.native import mangle
from ral.diag import Source


class Compiled:
    """A code object with its line table."""

    __slots__ = ("code", "filename", "natives", "spans", "text")

    def __init__(
        self, code: "CodeType", spans: list[tuple[int, int]], filename: str, text: str, natives: list[str]
    ) -> None:
        self.code = code
        self.spans = spans
        self.filename = filename
        self.text = text
        self.natives = natives  # the builtins that the code mentions


def generate(seq: c.Seq, source: Source, filename: str) -> Compiled:
    """The code of a whole program. Run it with `exec` in globals that hold the primitives; it leaves `_result`."""
    generator = Generator(source)
    generator.top(seq)
    text, spans = assemble(generator.fn.lines)
    code = floor.compile_text(text, filename)
    return Compiled(code, spans, filename, text, sorted(generator.natives))


class Generator(Scopes):
    """Computations: bindings, calls, functions. Values and scopes are in the base classes."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.fn = Function(None, None, 0, False)
        self.tails = Tails()
        self.counter = 0
        self.natives: set[str] = set()

    def top(self, seq: c.Seq) -> None:
        self.emit("_result = None", seq.start, 0)
        for number, item in enumerate(seq.items):
            if number:  # a long script of builtins has no other poll
                self.emit("if sh.flag: check(sh)", item.start, item.end)
            last = number == len(seq.items) - 1 and not isinstance(item, c.Let | c.Rec)
            self.run(item, "_result" if last else "")

    # Destinations: "return" (tail position), "" (drop the value), or a variable's name.

    def finish(self, expr: str, dest: str, start: int, end: int) -> None:
        """Put a value that is ready where it is wanted."""
        if dest == "return":
            self.emit(f"return {expr}", start, end)
        elif dest:
            if expr != dest:
                self.emit(f"{dest} = {expr}", start, end)
        elif not expr.isidentifier() and expr != "None":
            self.emit(expr, start, end)

    def run_seq(self, seq: c.Seq, dest: str) -> None:
        items = seq.items
        if not items or isinstance(items[-1], c.Let | c.Rec):
            for item in items:
                self.run(item, "")
            self.finish("None", dest, seq.start, seq.end)
            return
        for item in items[:-1]:
            self.run(item, "")
        self.run(items[-1], dest)

    def run(self, m: c.Comp, dest: str) -> None:
        """Write a computation, its value going to `dest`."""
        match m:
            case c.Seq():
                self.run_seq(m, dest)
            case c.Return(value):
                self.finish(self.value(value), dest, m.start, m.end)
            case c.Let():
                self.let(m)
            case c.Rec(group):
                self.rec(group)
            case c.Apply() | c.Force():
                self.call(m, dest)
            case c.Exec():
                self.finish(self.exec_call(m), dest, m.start, m.end)
            case c.Quit(value):
                status = self.value(value) if value is not None else "0"
                self.emit(f"quit_(sh, {status})", m.start, m.end)
            case c.If():
                self.choice(m, dest)
            case c.Case():
                self.case(m, dest)
            case c.Try():
                self.try_(m, dest)
            case c.Choose(arms):
                self.choose(m, arms, dest)
            case c.Guard() | c.Within() | c.Redirect():
                self.scope(m, dest)
            case c.Pipeline(stages):
                self.pipeline(m, stages, dest)
            case c.Spawn(body, shown):
                code = self.code_of(body, "job")
                bare = dest in ("", "_result")  # a statement of its own: the REPL announces the worker
                self.emit(
                    f"{self.temp() if bare else dest} = {mark(m.start, m.end, f'spawn_(sh, {code}, {shown!r}, {bare})')}"
                    if dest != "return"
                    else f"return {mark(m.start, m.end, f'spawn_(sh, {code}, {shown!r}, False)')}",
                    m.start,
                    m.end,
                )
            case _:
                raise AssertionError(m)

    def comp_value(self, m: c.Comp) -> str:
        """A computation run where a value is wanted: an expression, after whatever statements it needs."""
        if isinstance(m, c.Seq) and len(m.items) == 1:
            m = m.items[0]
        if isinstance(m, c.Apply | c.Force):
            return self.call_expr(m)
        if isinstance(m, c.Return):
            return self.value(m.value)
        name = self.temp()
        self.run(m, name)
        return name

    def call(self, m: "c.Apply | c.Force", dest: str) -> None:
        if dest == "return":
            self.tail_call(m)
        elif isinstance(m, c.Force) and isinstance(m.value, c.Thunk) and not m.value.params:
            self.run_seq(m.value.body, dest)
        else:
            self.finish(self.call_expr(m), dest, m.start, m.end)

    def tail_call(self, m: "c.Apply | c.Force") -> None:
        fn = self.fn
        target = known(m)
        args = m.args if isinstance(m, c.Apply) else []
        if target is not None and target is fn.thunk and fn.loop:
            self.self_call(target, args, m.start, m.end)
            return
        if isinstance(m, c.Force) and isinstance(m.value, c.Thunk) and not m.value.params:
            self.run_seq(m.value.body, "return")
            return
        if (isinstance(m, c.Apply) and isinstance(m.fn, c.Native)) or (
            target is not None and not self.tails.bounces(target)
        ):
            self.emit(f"return {self.call_expr(m)}", m.start, m.end)
            return
        if target is not None:
            holder = m.fn if isinstance(m, c.Apply) else m.value
            assert isinstance(holder, c.Local)
            code = self.code_name(holder.var)
            parts = [code, *self.values(args)]
        else:
            head, *rest = self.values([m.fn if isinstance(m, c.Apply) else m.value, *args])
            if len(rest) > 3:
                self.emit(f"return {self.call_many(head, rest, m.start, m.end)}", m.start, m.end)
                return
            parts = [f"{head}.a{len(rest)}", *rest]
            if isinstance(m, c.Apply) and not args and isinstance(prune_comp(m.cty), CFun):
                self.emit(f"return {mark(m.start, m.end, f'{head}.a0(sh)')}", m.start, m.end)
                return
        self.emit(f"return ({', '.join(parts)},)", m.start, m.end)

    def self_call(self, thunk: c.Thunk, args: list[c.Value], start: int, end: int) -> None:
        """Rebind the parameters and go round."""
        exprs = self.values(args)
        names = self.fn.params
        pairs = [(n, e) for n, e in zip(names, exprs, strict=True) if n != e]
        if pairs:
            self.emit(f"{', '.join(n for n, _ in pairs)} = {', '.join(e for _, e in pairs)}", start, end)
        self.emit("continue", start, end)

    def call_expr(self, m: "c.Apply | c.Force") -> str:
        """A call that is no tail call, as an expression whose value is ready."""
        start, end = m.start, m.end
        if isinstance(m, c.Force):
            target = known(m)
            if target is not None and isinstance(m.value, c.Local):
                return self.ready(f"{self.code_name(m.value.var)}(sh)", self.tails.bounces(target), start, end)
            if isinstance(m.value, c.Thunk) and not m.value.params:
                name = self.temp()
                self.run_seq(m.value.body, name)
                return name
            return self.ready(f"{self.value(m.value)}.a0(sh)", True, start, end)
        fn, args = m.fn, m.args
        if isinstance(fn, c.Native):
            return self.native_call(m, fn.name, args)
        target = known(m)
        if target is not None and isinstance(fn, c.Local):
            exprs = self.values(args)
            call = f"{self.code_name(fn.var)}({', '.join(['sh', *exprs])})"
            return self.ready(call, self.tails.bounces(target), start, end)
        head, *exprs = self.values([fn, *args])
        if len(exprs) > 3:
            return self.call_many(head, exprs, start, end)
        return self.ready(f"{head}.a{len(exprs)}({', '.join(['sh', *exprs])})", True, start, end)

    def call_many(self, head: str, args: list[str], start: int, end: int) -> str:
        value = head
        while args:
            part, args = args[:3], args[3:]
            value = self.ready(f"{value}.a{len(part)}({', '.join(['sh', *part])})", True, start, end)
        return value

    def ready(self, call: str, bounces: bool, start: int, end: int) -> str:
        if not bounces:
            return mark(start, end, call)
        name = self.temp()
        return f"({name} if type({name} := {mark(start, end, call)}) is not tuple else {mark(start, end, f'run(sh, {name})')})"

    def native_call(self, m: c.Apply, name: str, args: list[c.Value]) -> str:
        from ral.core.native import arity_of

        self.natives.add(name)
        exprs = self.values(args)
        arity = arity_of(name)
        if name in ("from-json", "from-jsonl", "from-json-at", "use") and len(args) == arity:
            from ral.code.boundary import boundary_spec

            spec = boundary_spec(m.cty, self.source)
            if name == "use":  # a path is relative to the file that holds the word
                exprs.append(repr(self.source.path))
            call = f"n_{mangle(name)}({', '.join(['sh', *exprs])})"
            return mark(m.start, m.end, f"admit({call}, {spec!r}, {name!r})")
        if len(args) == arity:
            return mark(m.start, m.end, f"n_{mangle(name)}({', '.join(['sh', *exprs])})")
        if len(args) > 3:
            return self.call_many(f"N_{mangle(name)}", exprs, m.start, m.end)
        return self.ready(f"N_{mangle(name)}.a{len(args)}({', '.join(['sh', *exprs])})", True, m.start, m.end)

    def exec_call(self, m: c.Exec) -> str:
        return mark(m.start, m.end, f"exec_(sh, {m.name!r}, {m.mode!r}, {self.argument_list(m.args)})")

    def let(self, m: c.Let) -> None:
        pattern = m.pattern
        if isinstance(pattern, c.Bind):
            pattern.var.owner = self.fn
            name = pattern.var.py
        else:
            name = self.temp()
        if m.capture:
            self.capture(m.rhs, name)
        else:
            self.run(m.rhs, name)
        if not isinstance(pattern, c.Bind):
            self.destructure(pattern, name)

    def destructure(self, pattern: c.Pattern, name: str) -> None:
        """Take a value apart; a pattern binds all its names or none."""
        checks: list[tuple[str, str]] = []
        self.take_apart(pattern, name, checks)
        for var, expr in checks:
            self.emit(f"{var} = {expr}", pattern.start, pattern.end)

    def take_apart(self, pattern: c.Pattern, name: str, binds: list[tuple[str, str]]) -> None:
        start, end = pattern.start, pattern.end
        match pattern:
            case c.Bind(var):
                var.owner = self.fn
                binds.append((var.py, name))
            case c.ListPattern(items, rest):
                self.emit(f"take_list({name}, {len(items)}, {rest is not None})", start, end)
                for i, item in enumerate(items):
                    part = self.temp()
                    self.emit(f"{part} = {name}[{i}]", start, end)
                    self.take_apart(item, part, binds)
                if rest is not None:
                    part = self.temp()
                    self.emit(f"{part} = {name}[{len(items)}:]", start, end)
                    self.take_apart(rest, part, binds)
            case c.FieldPattern(fields):
                for key, field in fields:
                    part = self.temp()
                    self.emit(f"{part} = take_field({name}, {key!r})", start, end)
                    self.take_apart(field, part, binds)
            case _:
                assert isinstance(pattern, c.Ignore)

    def rec(self, group: list[tuple[c.Var, c.Thunk]]) -> None:
        outer = self.fn
        for var, _ in group:
            var.owner = outer
        captured: set[c.Var] = set()
        lines: list[Line] = []
        for var, thunk in group:
            inner = self.function(thunk, f"f_{var.py}", outer.depth + (1 if outer.loop else 0))
            captured |= inner.captured
            lines += inner.lines
            lines.append(Line(inner.base, self.wrap(var.py, f"f_{var.py}", len(thunk.params)), thunk.start, thunk.end))
        own = {var for var, _ in group}
        if not outer.loop or not any(v.owner is outer for v in captured - own):
            if outer.loop:
                for line in lines:
                    line.depth -= 1
            outer.lines += lines
            outer.captured |= {v for v in captured if v.owner is not outer}
            return
        names = [n for var, _ in group for n in (f"f_{var.py}", var.py)]
        self.factory(lines, captured - own, names, group[0][1])

    def wrap(self, name: str, code: str, arity: int) -> str:
        if arity <= 3:
            return f"{name} = Fn{arity}({code})"
        return f"{name} = FnN({code}, {arity})"

    def factory(self, lines: list[Line], captured: "set[c.Var]", names: list[str], node: c.Term) -> None:
        """Closures made in a looping function capture by value: the loop rebinds what they mention."""
        outer = self.fn
        frees = sorted({n for v in captured if v.owner is outer for n in self.names_of(v)})
        maker = self.temp("mk")
        outer.lines.append(Line(outer.depth, f"def {maker}({', '.join(frees)}):", node.start, node.end))
        outer.lines += lines
        outer.lines.append(Line(outer.depth + 1, f"return {', '.join(names)}", node.start, node.end))
        outer.lines.append(Line(outer.depth, f"{', '.join(names)} = {maker}({', '.join(frees)})", node.start, node.end))
        outer.captured |= {v for v in captured if v.owner is not outer}

    def names_of(self, var: c.Var) -> list[str]:
        return [var.py, f"f_{var.py}"] if var.thunk is not None else [var.py]

    def thunk_value(self, v: c.Thunk) -> str:
        """A block as a value."""
        outer = self.fn
        name = self.temp("l")
        inner = self.function(v, name, outer.depth + (1 if outer.loop else 0))
        loop_bound = outer.loop and any(x.owner is outer for x in inner.captured)
        if outer.loop and not loop_bound:
            for line in inner.lines:
                line.depth -= 1
        if loop_bound:
            self.factory(inner.lines, inner.captured, [name], v)
        else:
            outer.lines += inner.lines
            outer.captured |= {x for x in inner.captured if x.owner is not outer}
        arity = len(v.params)
        return f"Fn{arity}({name})" if arity <= 3 else f"FnN({name}, {arity})"

    def function(self, thunk: c.Thunk, name: str, depth: int) -> Function:
        """Write a block as a `def` at a depth; the caller places its lines."""
        outer = self.fn
        loop = self.tails.loops(thunk)
        inner = Function(outer, thunk, depth + 1 + (1 if loop else 0), loop)
        self.fn = inner
        params: list[str] = []
        later: list[tuple[c.Pattern, str]] = []
        for p in thunk.params:
            if isinstance(p, c.Bind):
                p.var.owner = inner
                params.append(p.var.py)
            else:
                params.append(self.temp("p"))
                if not isinstance(p, c.Ignore):
                    later.append((p, params[-1]))
        inner.params = params
        # A loop's own scopes end before it turns, so at every turn the flag is the one it began with.
        self.emit(f"if {'flag' if loop else 'sh.flag'}: check(sh)", thunk.start, thunk.end)
        for p, part in later:
            self.destructure(p, part)
        self.run_seq(thunk.body, "return")
        header = [Line(depth, f"def {name}({', '.join(['sh', *params])}):", thunk.start, thunk.end)]
        header.append(Line(depth + 1, repr(self.shown(thunk)), 0, 0))
        if loop:
            header.append(Line(depth + 1, "flag = sh.flag", 0, 0))
            header.append(Line(depth + 1, "while True:", 0, 0))
        inner.lines = header + inner.lines
        inner.base = depth
        self.fn = outer
        return inner

    def shown(self, thunk: c.Thunk) -> str:
        if not thunk.params:
            return "block"
        params = " ".join(self.source.text[p.start : p.end] for p in thunk.params)
        return f"|{params}| block"

    def code_of(self, m: c.Comp, prefix: str) -> str:
        """A computation as a function of the shell; for stages, workers and deep scopes. The name of its `def`."""
        seq = c.Seq(m.start, m.end, [m])
        seq.cty = m.cty
        outer = self.fn
        name = self.temp(prefix)
        thunk = c.Thunk(m.start, m.end, [], seq)
        inner = self.function(thunk, name, outer.depth + (1 if outer.loop else 0))
        if outer.loop and any(x.owner is outer for x in inner.captured):
            self.factory(inner.lines, inner.captured, [name], m)
        else:
            if outer.loop:
                for line in inner.lines:
                    line.depth -= 1
            outer.lines += inner.lines
            outer.captured |= {x for x in inner.captured if x.owner is not outer}
        return name
