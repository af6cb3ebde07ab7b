"""The walk from surface to core. Its recursion follows nested forms, which the parser bounds at 64."""

from ral.core import terms as c
from ral.core.names import Frame, Names, components, nearest
from ral.diag import Problem, Source, StaticError
from ral.syntax import tree as t

AMBIENT = ("ENV", "CWD", "USER", "NPROC", "ARGS")


def elaborate(program: t.Program, source: Source, names: Names) -> tuple[c.Seq, dict[str, c.Var]]:
    """The core of a program and its top-level bindings, last one first in meaning."""
    walk = Elaborator(source, names)
    frame = Frame(None)
    seq = walk.statements(program, frame)
    if walk.problems:
        raise StaticError(walk.problems, 1)
    return seq, frame.seen


class Elaborator:
    """One program's walk. Unknown names are collected, so that all of them are reported together."""

    def __init__(self, source: Source, names: Names) -> None:
        self.source = source
        self.names = names
        self.problems: list[Problem] = []
        self.frame = Frame(None)

    # Statements

    def statements(self, program: t.Program, frame: Frame) -> c.Seq:
        outer, self.frame = self.frame, frame
        block_vars: dict[int, c.Var] = {}
        for i, node in enumerate(program.statements):
            if isinstance(node, t.Let) and isinstance(node.pattern, t.PName) and block_of(node.chain) is not None:
                name = node.pattern
                var = self.names.fresh(name.name, name.start, name.end)
                block_vars[i] = var
                frame.blocks.setdefault(name.name, []).append((i, var))
        items: list[c.Comp] = []
        thunks: dict[int, c.Thunk] = {}
        for i, node in enumerate(program.statements):
            frame.at = i
            if i in block_vars:
                var = block_vars[i]
                frame.inside = True
                block = block_of(node.chain)  # type: ignore[attr-defined]
                assert block is not None
                thunk = self.thunk(block)
                thunk.name = var.name
                frame.inside = False
                var.thunk = thunk
                thunks[i] = thunk
                frame.seen[var.name] = var
                items.append(c.Rec(node.start, node.end, [(var, thunk)]))
            elif isinstance(node, t.Let):
                rhs = self.chain(node.chain)
                found: list[c.Var] = []
                pattern = self.pattern(node.pattern, found)
                for var in found:
                    frame.seen[var.name] = var
                items.append(c.Let(node.start, node.chain.end, pattern, rhs))
            else:
                assert isinstance(node, t.Chain)
                items.append(self.chain(node))
        self.frame = outer
        return c.Seq(program.start, program.end, self.group(items, block_vars, thunks, frame))

    def group(
        self, items: list[c.Comp], block_vars: dict[int, c.Var], thunks: dict[int, c.Thunk], frame: Frame
    ) -> list[c.Comp]:
        """Named blocks with those that they mention ahead, callees first, recursive ones together."""
        edges = frame.edges
        if not any(target > i for i, targets in edges.items() for target in targets):
            return items
        placed: set[int] = set()
        out: list[c.Comp] = []
        for i, item in enumerate(items):
            if i not in block_vars:
                out.append(item)
                continue
            if i in placed:
                continue
            reach = [i]
            for node in reach:
                reach += [x for x in sorted(edges.get(node, ())) if x not in placed and x not in reach and x >= i]
            for component in components(sorted(reach), edges):
                placed.update(component)
                out.append(c.Rec(item.start, item.end, [(block_vars[x], thunks[x]) for x in component]))
        return out

    def chain(self, node: t.Chain) -> c.Comp:
        if len(node.arms) == 1:
            return self.pipeline(node.arms[0])
        arms: list[c.Branch] = []
        for arm in node.arms:
            outer, self.frame = self.frame, Frame(self.frame)
            comp = self.pipeline(arm)
            self.frame = outer
            arms.append(c.Branch(None, c.Seq(arm.start, arm.end, [comp]), None))
        return c.Choose(node.start, node.end, arms)

    def pipeline(self, node: t.Node) -> c.Comp:
        assert isinstance(node, t.Pipeline)
        if len(node.stages) == 1:
            comp = self.stage(node.stages[0])
        else:
            comp = c.Pipeline(node.start, node.end, [self.stage(s) for s in node.stages])
        if node.background:
            text = self.source.text[node.start : node.end].rstrip("&").strip()
            comp = c.Spawn(node.start, node.end, comp, text)
        return comp

    def stage(self, node: t.Node) -> c.Comp:
        match node:
            case t.Command():
                return self.command(node)
            case t.Return(value):
                empty = c.Const(node.start, node.end, None)
                return c.Return(node.start, node.end, self.value(value) if value is not None else empty)
            case t.If(arms, orelse):
                pairs: list[tuple[c.Value, c.Branch]] = []
                for arm in arms:
                    assert isinstance(arm, t.Arm)
                    pairs.append((self.value(arm.cond), self.branch(arm.body, 0)))
                other = self.branch(orelse, 0) if orelse is not None else None
                return c.If(node.start, node.end, pairs, other)
            case t.Case(scrutinee, fields):
                of = self.value(scrutinee)
                return c.Case(node.start, node.end, of, [(f.key, self.branch(f.value, 1)) for f in fields])
            case t.Try(body, handler, redirects):
                comp: c.Comp = c.Try(node.start, node.end, self.branch(body, 0), self.branch(handler, 1))
                return self.redirected(comp, redirects)
            case t.Guard(body, cleanup, redirects):
                comp = c.Guard(node.start, node.end, self.branch(body, 0), self.branch(cleanup, 0))
                return self.redirected(comp, redirects)
            case t.Within(options, body, redirects):
                return self.redirected(self.within(node, options, body), redirects)
            case _:
                raise AssertionError(node)

    def within(self, node: t.Node, options: list[t.Field], body: t.Node) -> c.Comp:
        values: list[tuple[str, c.Value]] = []
        arms: list[tuple[str, c.Value]] = []
        for option in options:
            if option.key == "handlers":
                if isinstance(option.value, t.RecordLit):
                    arms += [(f.key, self.value(f.value)) for f in option.value.fields]
            else:
                values.append((option.key, self.value(option.value)))
        return c.Within(node.start, node.end, values, arms, self.branch(body, 0))

    def branch(self, node: t.Node, arity: int) -> c.Branch:
        """A literal block with the arity the form wants is run in place; anything else is a value that is forced."""
        if isinstance(node, t.Block) and len(node.params) == arity:
            frame = Frame(self.frame)
            outer, self.frame = self.frame, frame
            param = self.params(node.params, frame)[0] if arity else None
            body = self.statements(node.body, Frame(frame))
            self.frame = outer
            return c.Branch(param, body, None)
        return c.Branch(None, None, self.value(node))

    def redirected(self, comp: c.Comp, redirects: list[t.Redirect]) -> c.Comp:
        if not redirects:
            return comp
        found = [
            c.Redir(r.fd, r.op, self.value(r.target) if r.target is not None else None, r.start, r.end)
            for r in redirects
        ]
        return c.Redirect(comp.start, redirects[-1].end, comp, found)

    # Commands

    def command(self, node: t.Command) -> c.Comp:
        comp = self.head(node)
        return self.redirected(comp, node.redirects)

    def head(self, node: t.Command) -> c.Comp:
        head = node.head
        start, end = node.start, node.end
        if isinstance(head, t.Word):
            word = head.text
            if node.caret:
                return c.Exec(start, end, word, "caret", self.items(node.args))
            if "/" in word or word.startswith("~"):
                return c.Exec(start, end, word, "path", self.items(node.args))
            var = self.find(word)
            if var is not None:
                local = c.Local(head.start, head.end, var)
                return c.Apply(start, end, local, self.arguments(node.args, word), word)
            if word in ("exit", "quit") and word in self.names.natives:
                if len(node.args) > 1:
                    self.problem("T0021", f"`{word}` takes at most one status", node.args[1], "")
                args = self.arguments(node.args[:1], word)
                return c.Quit(start, end, args[0] if args else None)
            if word in self.names.natives:
                native = c.Native(head.start, head.end, word)
                return c.Apply(start, end, native, self.arguments(node.args, word), word)
            mode = "base" if word in self.names.bases else "bare"
            return c.Exec(start, end, word, mode, self.items(node.args))
        if isinstance(head, t.Force):
            target = self.value(head.target)
            if not node.args:
                if isinstance(target, c.Thunk) and not target.params:
                    return c.Force(start, end, target)
                return c.Force(start, end, target)
            return c.Apply(start, end, target, self.arguments(node.args, "the block"), "")
        value = self.value(head)
        if not node.args:
            return c.Return(start, end, value)
        shown = self.source.text[head.start : head.end]
        return c.Apply(start, end, value, self.arguments(node.args, shown), shown)

    def arguments(self, nodes: list[t.Node], head: str) -> list[c.Value]:
        args: list[c.Value] = []
        for node in nodes:
            if isinstance(node, t.Spread):
                self.problem(
                    "T0020",
                    f"`{head}` is a value and takes its arguments one by one, so nothing is spread",
                    node,
                    "give each argument: f $xs[0] $xs[1]",
                )
                continue
            args.append(self.value(node))
        return args

    def items(self, nodes: list[t.Node]) -> list[c.Item]:
        return [
            c.Item(self.value(n.value), True) if isinstance(n, t.Spread) else c.Item(self.value(n), False)
            for n in nodes
        ]

    # Values

    def value(self, node: t.Node) -> c.Value:
        start, end = node.start, node.end
        match node:
            case t.Lit(value):
                return c.Const(start, end, value)
            case t.Word(text):
                return c.Tilde(start, end, text) if text[0] == "~" else c.Const(start, end, text)
            case t.Var(name):
                return self.variable(node, name)
            case t.Interp(parts):
                return c.Text(start, end, [self.value(p) for p in parts])
            case t.Index(base, keys):
                value = self.value(base)
                for key in keys:
                    value = c.Index(start, key.end, value, self.value(key))
                return value
            case t.Binary():
                return self.binary(node)
            case t.Unary(op, operand):
                return c.Unary(start, end, op, self.value(operand))
            case t.Force(target):
                if isinstance(target, t.Block) and not target.params:
                    frame = Frame(self.frame)
                    return c.Run(start, end, self.statements(target.body, frame))
                return c.Run(start, end, c.Force(start, end, self.value(target)))
            case t.Tag(name, payload):
                return c.Variant(start, end, name, self.value(payload) if payload is not None else None)
            case t.Block():
                return self.thunk(node)
            case t.ListLit(items):
                return c.ListOf(start, end, self.items(items))
            case t.RecordLit(base, fields):
                value = None if base is None else self.value(base)
                return c.RecordOf(start, end, value, [(f.key, self.value(f.value)) for f in fields])
            case t.MapLit(entries):
                return c.MapOf(start, end, [self.map_item(e) for e in entries])
            case _:
                raise AssertionError(node)

    def map_item(self, node: t.Node) -> c.MapItem:
        if isinstance(node, t.Entry):
            key: c.Value
            if isinstance(node.key, t.Word):
                key = c.Const(node.key.start, node.key.end, node.key.text)
            elif isinstance(node.key, t.Lit) and not isinstance(node.key.value, str):
                key = c.Const(node.key.start, node.key.end, self.source.text[node.key.start : node.key.end])
            else:
                key = self.value(node.key)
            return c.MapItem(key, self.value(node.value))
        assert isinstance(node, t.Spread)
        return c.MapItem(None, self.value(node.value))

    def binary(self, node: t.Binary) -> c.Value:
        """A left-leaning chain, walked without recursion along the lean."""
        spine: list[t.Binary] = []
        at: t.Node = node
        while isinstance(at, t.Binary):
            spine.append(at)
            at = at.left
        value = self.value(at)
        for step in reversed(spine):
            value = c.Binary(step.start, step.end, step.op, value, self.value(step.right))
        return value

    def thunk(self, node: t.Block) -> c.Thunk:
        frame = Frame(self.frame)
        outer, self.frame = self.frame, frame
        params = self.params(node.params, frame)
        body = self.statements(node.body, Frame(frame))
        self.frame = outer
        return c.Thunk(node.start, node.end, params, body)

    def params(self, nodes: list[t.Node], frame: Frame) -> list[c.Pattern]:
        patterns: list[c.Pattern] = []
        for node in nodes:
            found: list[c.Var] = []
            patterns.append(self.pattern(node, found))
            for var in found:
                frame.seen[var.name] = var
        return patterns

    def pattern(self, node: t.Node, found: list[c.Var]) -> c.Pattern:
        start, end = node.start, node.end
        match node:
            case t.PName(name):
                var = self.names.fresh(name, start, end)
                found.append(var)
                return c.Bind(start, end, var)
            case t.PWild():
                return c.Ignore(start, end)
            case t.PList(items, rest):
                parts = [self.pattern(p, found) for p in items]
                tail: c.Pattern | None = None
                if rest is not None:
                    tail = self.pattern(t.PWild(start, end) if rest == "_" else t.PName(start, end, rest), found)
                return c.ListPattern(start, end, parts, tail)
            case t.PRecord(fields):
                return c.FieldPattern(start, end, [(f.key, self.pattern(f.value, found)) for f in fields])
            case _:
                raise AssertionError(node)

    # Names

    def find(self, name: str) -> c.Var | None:
        return self.frame.lookup(name) or self.names.bindings.get(name)

    def variable(self, node: t.Node, name: str) -> c.Value:
        start, end = node.start, node.end
        var = self.find(name)
        if var is not None:
            return c.Local(start, end, var)
        if name in AMBIENT:
            return c.Ambient(start, end, name)
        if name == "SCRIPT":
            if self.names.script is None:
                problem = Problem(
                    "P0080",
                    "`$SCRIPT` names a script file, and this program is none",
                    self.source,
                    start,
                    end,
                    "run it from a file: ral script.ral",
                )
                raise StaticError([problem], 2)
            return c.Const(start, end, self.names.script)
        if name in self.names.natives and name not in ("exit", "quit"):
            return c.Native(start, end, name)
        hint = ""
        if name in self.names.bases or name in ("exit", "quit"):
            hint = f"`{name}` is a command, not a value: write {{ |x| {name} $x }}"
        else:
            close = nearest(name, [*self.frame.visible(), *self.names.bindings, *self.names.natives, *AMBIENT])
            shorter = name
            while "-" in shorter and not hint:
                shorter = shorter.rpartition("-")[0]
                if self.find(shorter) is not None:
                    hint = f"`{name}` is one name; to subtract write ${shorter} - …"
            if close and not hint:
                hint = f"did you mean ${close}?"
            elif name.isupper() and not hint:
                hint = f"environment variables are read as $ENV[{name}]"
        self.problem("T0010", f"undefined variable: ${name}", node, hint or "bind it with let before this line")
        return c.Const(start, end, "")

    def problem(self, code: str, message: str, node: t.Node, hint: str) -> None:
        self.problems.append(Problem(code, message, self.source, node.start, node.end, hint))


def block_of(chain: t.Node) -> t.Block | None:
    """The literal block that is the whole right-hand side of a `let`, if it is one."""
    if isinstance(chain, t.Chain) and len(chain.arms) == 1:
        pipe = chain.arms[0]
        if isinstance(pipe, t.Pipeline) and len(pipe.stages) == 1 and not pipe.background:
            stage = pipe.stages[0]
            if isinstance(stage, t.Command) and not stage.args and not stage.redirects and not stage.caret:
                if isinstance(stage.head, t.Block):
                    return stage.head
            elif isinstance(stage, t.Return) and isinstance(stage.value, t.Block):
                return stage.value
    return None
