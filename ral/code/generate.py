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
from ral.code.tails import Tails, known
from ral.code.values import Function, Values
from ral.core import terms as c
from ral.core.native import mangle
from ral.diag import Source

MAX_SCOPES = 15


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


class Generator(Values):
    """Computations; values are in the base class."""

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

    # Calls

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

    # Bindings

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

    # Branching

    def branch(self, b: c.Branch, payload: str | None, dest: str, node: c.Term) -> None:
        """Force an arm in place."""
        if b.capture:
            name = self.temp()
            self.captured_branch(b, payload, name, node)
            self.finish(name, dest, node.start, node.end)
            return
        if b.body is not None:
            if b.param is not None:
                assert payload is not None
                if isinstance(b.param, c.Bind):
                    b.param.var.owner = self.fn
                    self.emit(f"{b.param.var.py} = {payload}", node.start, node.end)
                else:
                    self.destructure(b.param, payload)
            self.run_seq(b.body, dest)
            return
        assert b.value is not None
        head = self.value(b.value)
        target = known(b)
        if target is not None and target is self.fn.thunk and self.fn.loop and dest == "return":
            self.emit("continue", node.start, node.end)
        elif dest == "return":
            self.emit(
                f"return ({head}.a{1 if payload else 0}{', ' + payload if payload else ''},)", node.start, node.end
            )
        else:
            call = f"{head}.a1(sh, {payload})" if payload else f"{head}.a0(sh)"
            self.finish(self.ready(call, True, node.start, node.end), dest, node.start, node.end)

    def captured_branch(self, b: c.Branch, payload: str | None, name: str, node: c.Term) -> None:
        token = self.open_capture(node)
        self.branch(Plain(b), payload, "", node)
        self.close_capture(token, name, node)

    def choice(self, m: c.If, dest: str) -> None:
        inner = dest if m.orelse is not None else ""
        pending = ""
        if not all(self.simple(cond) for cond, _ in m.arms[1:]):
            # A later condition needs statements of its own: a flag keeps the arms side by side, however many there are.
            pending = self.temp()
            self.emit(f"{pending} = True", m.start, m.end)
        for number, (cond, body) in enumerate(m.arms):
            depth = self.fn.depth
            if number and pending:
                self.emit(f"if {pending}:", cond.start, cond.end)
                self.fn.depth += 1
            self.emit(f"{'elif' if number and not pending else 'if'} {self.value(cond)}:", cond.start, cond.end)
            self.fn.depth += 1
            if pending:
                self.emit(f"{pending} = False", cond.start, cond.end)
            self.branch(body, None, inner, m)
            self.emit("pass", m.start, m.end)
            self.fn.depth = depth
        if m.orelse is None:
            self.finish("None", dest, m.start, m.end)
            return
        self.emit(f"if {pending}:" if pending else "else:", m.start, m.end)
        self.fn.depth += 1
        self.branch(m.orelse, None, dest, m)
        self.emit("pass", m.start, m.end)
        self.fn.depth -= 1

    def case(self, m: c.Case, dest: str) -> None:
        name, tag, payload = self.temp(), self.temp(), self.temp()
        self.emit(f"{name} = {self.value(m.scrutinee)}", m.start, m.end)
        self.emit(f"{tag} = {name}.tag; {payload} = {name}.payload", m.start, m.end)
        for number, (label, arm) in enumerate(m.arms):
            self.emit(f"{'elif' if number else 'if'} {tag} == {label!r}:", m.start, m.end)
            self.fn.depth += 1
            self.branch(arm, payload, dest, m)
            self.emit("pass", m.start, m.end)
            self.fn.depth -= 1
        self.emit("else:", m.start, m.end)
        self.emit(f" no_arm({tag})", m.start, m.end)

    def try_(self, m: c.Try, dest: str) -> None:
        if self.hoist(m, dest):
            return
        err, name = self.temp(), self.temp()
        self.emit(f"{err} = None", m.start, m.end)
        self.protected(lambda: self.branch(m.body, None, name if dest else "", m), m)
        self.emit(f"except FAILS as e: {err} = e", m.start, m.end)
        self.emit(f"if {err} is not None:", m.start, m.end)
        self.fn.depth += 1
        payload = self.temp()
        self.emit(f"{payload} = error_record({err}); {err} = None", m.start, m.end)
        # A handler sees a cancellation but can't recover from it: nothing that follows it may run.
        self.protected(lambda: self.branch(m.handler, payload, dest, m), m)
        self.emit("finally:", m.start, m.end)
        self.emit(" if sh.flag: check(sh)", m.start, m.end)
        self.fn.depth -= 1
        if dest:
            self.emit("else:", m.start, m.end)
            self.fn.depth += 1
            self.finish(name, dest, m.start, m.end)
            self.emit("pass", m.start, m.end)
            self.fn.depth -= 1

    def choose(self, m: c.Choose, arms: list[c.Branch], dest: str) -> None:
        if self.hoist(m, dest):
            return
        done, name = self.temp(), self.temp()
        self.emit(f"{done} = False", m.start, m.end)
        for number, arm in enumerate(arms[:-1]):
            if number:
                self.emit(f"if not {done}:", m.start, m.end)
                self.fn.depth += 1
            self.protected(lambda arm=arm: self.branch(arm, None, name, m), m)
            self.emit(f"except FAILS as e: next_arm(sh, e)", m.start, m.end)  # noqa: F541
            self.emit(f"else: {done} = True", m.start, m.end)
            if number:
                self.fn.depth -= 1
        self.emit(f"if not {done}:", m.start, m.end)
        self.fn.depth += 1
        self.branch(arms[-1], None, dest, m)
        self.emit("pass", m.start, m.end)
        self.fn.depth -= 1
        if dest:
            self.emit("else:", m.start, m.end)
            self.fn.depth += 1
            self.finish(name, dest, m.start, m.end)
            self.emit("pass", m.start, m.end)
            self.fn.depth -= 1

    # Scopes

    def protected(self, body: "object", m: c.Term) -> None:
        """`try:` and a body."""
        self.emit("try:", m.start, m.end)
        self.fn.depth += 1
        self.fn.scopes += 1
        body()  # type: ignore[operator]
        self.emit("pass", m.start, m.end)
        self.fn.scopes -= 1
        self.fn.depth -= 1

    def hoist(self, m: c.Comp, dest: str) -> bool:
        """Give a scope that is too deep for its function a function of its own."""
        if self.fn.scopes < MAX_SCOPES:
            return False
        name = self.code_of(m, "deep")
        self.finish(self.ready(f"{name}(sh)", True, m.start, m.end), dest, m.start, m.end)
        return True

    def scope(self, m: "c.Guard | c.Within | c.Redirect", dest: str) -> None:
        if self.hoist(m, dest):
            return
        token = self.temp()
        name = self.temp() if dest else ""
        if isinstance(m, c.Guard):
            body, cleanup = m.body, m.cleanup
            self.emit(f"{token} = guard_open(sh)", m.start, m.end)
            self.protected(lambda: self.branch(body, None, name, m), m)
            self.emit(f"except BaseException as e: {token} = e", m.start, m.end)
            held = self.temp()
            self.emit(f"{held} = guard_enter(sh, {token})", m.start, m.end)
            self.emit(f"if {held} is not None:", m.start, m.end)
            self.fn.depth += 1
            self.protected(lambda: self.branch(cleanup, None, "", m), m)
            self.emit(f"finally: guard_leave(sh, {held})", m.start, m.end)
            self.fn.depth -= 1
            self.emit(f"if {token} is not None: raise {token}", 0, 0)
        elif isinstance(m, c.Within):
            options = self.within_options(m)
            self.emit(f"{token} = {mark(m.start, m.end, f'within_enter(sh, {options})')}", m.start, m.end)
            inner = m.body
            self.protected(lambda: self.branch(inner, None, name, m), m)
            self.emit(f"except BaseException as e: within_fail(sh, {token}, e)", m.start, m.end)
            self.emit(f"else: within_leave(sh, {token})", m.start, m.end)
        else:
            streams: list[str] = []
            values = self.values([r.target for r in m.redirects if r.target is not None])
            for r in m.redirects:
                target = values.pop(0) if r.target is not None else "None"
                streams.append(f"({r.fd}, {r.op!r}, {target})")
            inner_comp = m.body
            self.emit(
                f"{token} = {mark(m.start, m.end, f'redirect_open(sh, [{chr(44).join(streams)}])')}", m.start, m.end
            )
            self.protected(lambda: self.run(inner_comp, name), m)
            self.emit(f"except BaseException: redirect_fail(sh, {token}); raise", m.start, m.end)
            self.emit(f"else: redirect_close(sh, {token})", m.start, m.end)
        if dest:
            self.finish(name, dest, m.start, m.end)

    def within_options(self, m: c.Within) -> str:
        values = self.values([v for _, v in m.options] + [v for _, v in m.arms])
        parts = [f"{key!r}: {values[i]}" for i, (key, _) in enumerate(m.options)]
        if m.arms:
            named = values[len(m.options) :]
            arms = ", ".join(f"{name!r}: {named[i]}" for i, (name, _) in enumerate(m.arms))
            parts.append(f"'handlers': {{{arms}}}")
        return "{" + ", ".join(parts) + "}"

    def capture(self, m: c.Comp, name: str) -> None:
        """Run a command; the name gets its decoded output."""
        if self.fn.scopes >= MAX_SCOPES:
            code = self.code_of(m, "deep")
            token = self.open_capture(m)
            self.emit(self.ready(f"{code}(sh)", True, m.start, m.end), m.start, m.end)
            self.close_capture(token, name, m)
            return
        token = self.open_capture(m)
        self.run(m, "")
        self.close_capture(token, name, m)

    def open_capture(self, m: c.Term) -> str:
        token = self.temp()
        self.emit(f"{token} = capture_open(sh)", m.start, m.end)
        self.emit("try:", m.start, m.end)
        self.fn.depth += 1
        self.fn.scopes += 1
        return token

    def close_capture(self, token: str, name: str, m: c.Term) -> None:
        self.emit("pass", m.start, m.end)
        self.fn.depth -= 1
        self.fn.scopes -= 1
        self.emit(f"except BaseException: capture_fail(sh, {token}); raise", m.start, m.end)
        self.emit(f"{name} = {mark(m.start, m.end, f'capture_close(sh, {token})')}", m.start, m.end)

    def pipeline(self, m: c.Pipeline, stages: list[c.Comp], dest: str) -> None:
        """Stages in order: (name, mode, arguments, redirects) for a command, else the code of a stage."""
        parts: list[str] = []
        for stage in stages:
            core, redirects = (stage.body, stage.redirects) if isinstance(stage, c.Redirect) else (stage, [])
            if isinstance(core, c.Exec) and core.mode != "base":
                args = self.argument_list(core.args)
                streams = []
                for r in redirects:
                    target = self.value(r.target) if r.target is not None else "None"
                    streams.append(f"({r.fd}, {r.op!r}, {target})")
                span = self.source.text[stage.start : stage.end]
                part = self.temp("s")
                call = f"[{core.name!r}, {core.mode!r}, {args}, [{', '.join(streams)}], {span!r}]"
                self.emit(f"{part} = {call}", m.start, m.end)
                parts.append(part)
            else:
                parts.append(self.code_of(stage, "st"))
        self.finish(mark(m.start, m.end, f"pipeline_(sh, [{', '.join(parts)}])"), dest, m.start, m.end)


class Plain(c.Branch):
    """A branch seen without its capture, while the capture around it is being written."""

    __slots__ = ()

    def __init__(self, b: c.Branch) -> None:
        super().__init__(b.param, b.body, b.value)
