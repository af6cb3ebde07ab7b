"""Inference of computations: application, commands, arms and their join, scopes, pipelines."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


from ral.check.plumbing import Plumbing, article, describe_comp, grade_hint
from ral.check.types import (
    BYTES,
    CF,
    COMMAND,
    HANDLE,
    LIST,
    MAP,
    NUMBER,
    RECORD,
    SCALAR,
    T_BOOL,
    T_INT,
    T_STRING,
    T_UNIT,
    THUNK,
    CFun,
    Comp,
    CVar,
    GVar,
    Printer,
    Row,
    THandle,
    TList,
    TMap,
    TRecord,
    TThunk,
    TVar,
    TVariant,
    Type,
    ending,
    head_of,
    prune,
    prune_comp,
    prune_grade,
)
from ral.check.unify import Mismatch, generalise, unify_comp
from ral.core import terms as c
from ral.diag import Problem, StaticError

# A decoder returns a value and writes nothing; a boundary's result is checked against its uses when it is decoded.
DECODERS = frozenset(
    ("from-bytes", "from-string", "from-line", "from-lines", "from-json", "from-jsonl", "from-json-at", "from-csv")
)
BOUNDARIES = frozenset(("from-json", "from-jsonl", "from-json-at", "use"))
NO_ARGUMENT = BYTES | LIST | MAP | RECORD | THUNK | HANDLE

CAUSES = ("interrupted", "cancelled", "timed-out", "terminated", "aborted", "reader-gone")
CAUSE = TVariant(Row(dict.fromkeys(CAUSES, T_UNIT), None))
REASON = TVariant(
    Row(
        {
            "exited": T_INT,
            "signaled": T_INT,
            "cancelled": CAUSE,
            "not-found": T_UNIT,
            "not-runnable": T_UNIT,
            "raised": T_UNIT,
        },
        None,
    )
)
SITE = TVariant(
    Row({"just": TRecord(Row({"script": T_STRING, "line": T_INT, "col": T_INT}, None)), "none": T_UNIT}, None)
)
ERROR = TRecord(Row({"cmd": T_STRING, "status": T_INT, "reason": REASON, "message": T_STRING, "site": SITE}, None))


class Commands(Plumbing):
    """The computation half of an inference."""

    def seq(self, seq: c.Seq) -> Comp:
        result: Comp = CF("p", T_UNIT)
        for item in seq.items:
            result = self.comp(item)
        seq.cty = result
        return result

    def comp(self, m: c.Comp) -> Comp:
        t = self.comp_type(m)
        m.cty = t
        return t

    def comp_type(self, m: c.Comp) -> Comp:
        match m:
            case c.Seq():
                return self.seq(m)
            case c.Let():
                self.let(m)
                return CF("p", T_UNIT)
            case c.Rec(group):
                self.rec(group)
                return CF("p", T_UNIT)
            case c.Return(value):
                return CF("p", self.value(value))
            case c.Force(value):
                return self.force(value)
            case c.Apply():
                return self.apply(m)
            case c.Exec():
                return self.execute(m)
            case c.Quit(value):
                if value is not None:
                    self.unify(T_INT, self.value(value), value, "an exit status is an Int")
                return CVar(self.level)
            case c.If(arms, orelse):
                return self.choice(m, arms, orelse)
            case c.Case(scrutinee, fields):
                return self.case(m, scrutinee, fields)
            case c.Try(body, handler):
                arms_of_try = [(body, self.branch(body, [], m)), (handler, self.branch(handler, [ERROR], m))]
                return self.join(arms_of_try, m, "the body and the handler of `try`")
            case c.Choose(arms_of_choose):
                pairs = [(arm, self.branch(arm, [], m)) for arm in arms_of_choose]
                return self.join(pairs, m, "the alternatives of `?`")
            case c.Guard(body, cleanup):
                result = self.branch(body, [], m)
                self.branch(cleanup, [], m)
                return result
            case c.Within():
                return self.within(m)
            case c.Redirect(inner, redirects):
                return self.redirect(inner, redirects)
            case c.Pipeline(stages):
                return self.pipeline(stages)
            case c.Spawn(body_comp):
                return CF("p", THandle(self.result_value(self.comp(body_comp))))
            case _:
                raise AssertionError(m)

    def let(self, m: c.Let) -> None:
        self.level += 1
        t = self.demand(self.comp(m.rhs), m)
        self.pattern(m.pattern, t)
        self.level -= 1
        self.quantify(m.pattern)

    def rec(self, group: list[tuple[c.Var, c.Thunk]]) -> None:
        from ral.check.types import Scheme

        self.level += 1
        for var, _ in group:
            if var.scheme is None:
                var.scheme = Scheme(frozenset(), self.fresh())
        for var, thunk in group:
            t = self.value(thunk)
            assert isinstance(var.scheme, Scheme)
            self.unify(var.scheme.body, t, thunk, f"`{var.name}` is used as")
        self.level -= 1
        for var, thunk in group:
            var.scheme = generalise(thunk.ty, self.level)

    def force(self, value: c.Value) -> Comp:
        t = prune(self.value(value))
        if isinstance(t, TThunk):
            return t.comp
        if isinstance(t, TVar):
            comp = CVar(self.level)
            self.unify(t, TThunk(comp), value, "`!` runs a block")
            return comp
        self.fail("T0002", f"`!` runs a block, found {Printer().type(t)}", value, "read a value with $name alone")

    def apply(self, m: c.Apply) -> Comp:
        fn = m.fn
        t = prune(self.value(fn))
        head = m.head or "the block"
        comp: Comp
        if isinstance(t, TThunk):
            comp = t.comp
        elif isinstance(t, TVar):
            comp = CVar(self.level)
            self.unify(t, TThunk(comp), fn, f"`{head}` is applied")
        else:
            hint = f"^{head} runs the command of that name" if isinstance(fn, c.Local) else "the head of a command runs"
            self.fail("T0002", f"`{head}` is bound to {article(t)}, which takes no arguments and can't run", fn, hint)
        if isinstance(fn, c.Native) and fn.name in BOUNDARIES:
            self.weaken(t)
        for number, arg in enumerate(m.args):
            comp = prune_comp(comp)
            if isinstance(comp, CVar):
                param, rest = self.fresh(), CVar(self.level)
                unify_comp(comp, CFun(param, rest))
                comp = CFun(param, rest)
            elif isinstance(comp, CF):
                comp = self.applied_result(comp, m, number)
            if isinstance(comp, CF):
                raise AssertionError(comp)
            assert isinstance(comp, CFun)
            m.args[number] = self.argument(comp.arg, arg, head, number + 1)
            comp = comp.comp
        if isinstance(fn, c.Native) and fn.name == "fail":
            self.check_fail(m.args)
        return comp

    def applied_result(self, comp: CF, m: c.Apply, number: int) -> Comp:
        """Arguments remain after the function returned: its value must be a function."""
        t = prune(comp.type)
        if isinstance(t, TThunk) and prune_grade(comp.grade) != "w":
            inner = prune_comp(t.comp)
            if isinstance(inner, CFun):
                return inner
        if isinstance(t, TVar) and prune_grade(comp.grade) != "w":
            fun = CFun(self.fresh(), CVar(self.level))
            self.unify(t, TThunk(fun), m, "the result is applied to one more argument")
            return fun
        count = "no argument" if number == 0 else "1 argument" if number == 1 else f"{number} arguments"
        head = m.head or "this block"
        self.fail(
            "T0004",
            f"`{head}` takes {count}, and {len(m.args)} are given",
            m.args[number],
            "each argument is one word or value; quote a text with spaces",
        )

    def argument(self, param: Type, arg: c.Value, head: str, number: int) -> c.Value:
        """Check one argument; a command handed to a parameter that demands a value is captured per call."""
        found = self.value(arg)
        p, a = prune(param), prune(found)
        if isinstance(p, TThunk) and isinstance(a, TThunk):
            wanted, wend = ending(p.comp)
            given, gend = ending(a.comp)
            if len(wanted) == len(given) and isinstance(wend, CF) and isinstance(gend, CF):
                want, have = prune_grade(wend.grade), prune_grade(gend.grade)
                what = f"argument {number} of `{head}`"
                if want == "p" and have == "w":
                    for x, y in zip(wanted, given, strict=True):
                        self.unify(x, y, arg, what)
                    self.unify(wend.type, T_STRING, arg, what)
                    return self.captured(arg, len(wanted))
                if want == "w" and have == "p" and prune(gend.type) is T_UNIT:
                    for x, y in zip(wanted, given, strict=True):
                        self.unify(x, y, arg, what)
                    return arg
        hint = ""
        if isinstance(p, TThunk) and a is T_STRING and isinstance(arg, c.Const):
            hint = f"`{arg.value}` is text here; did you mean ${arg.value}?"
        self.unify(param, found, arg, f"argument {number} of `{head}`", hint)
        return arg

    def captured(self, arg: c.Value, arity: int) -> c.Value:
        """The function `arg` with its output as its value; a function that must be computed is computed once."""
        start, end = arg.start, arg.end
        if isinstance(arg, c.Thunk) and len(arg.params) == arity:
            return self.returning(arg, arg.params, arg.body)
        bound: c.Let | None = None
        fn = arg
        if not isinstance(arg, c.Local | c.Native | c.Thunk):
            holder = c.Var("f", f"f_{start}_{end}", start, end)
            bound = c.Let(start, end, c.Bind(start, end, holder), c.Return(start, end, arg))
            fn = c.Local(start, end, holder)
            fn.ty = arg.ty
        names = [c.Var(f"x{i}", f"x_{start}_{i}", start, end) for i in range(arity)]
        args: list[c.Value] = []
        for v in names:
            local = c.Local(start, end, v)
            local.ty = self.fresh()
            args.append(local)
        call = c.Apply(start, end, fn, args, "") if arity else c.Force(start, end, fn)
        call.cty = COMMAND
        thunk = self.returning(arg, [c.Bind(start, end, v) for v in names], call)
        if bound is None:
            return thunk
        value = c.Run(start, end, c.Seq(start, end, [bound, c.Return(start, end, thunk)]))
        value.ty = arg.ty
        return value

    def returning(self, arg: c.Value, params: "Sequence[c.Pattern]", body: c.Comp) -> c.Thunk:
        """A block that runs `body` and returns what it wrote."""
        run = c.Run(body.start, body.end, body)
        run.capture = True
        run.ty = T_STRING
        result = c.Return(arg.start, arg.end, run)
        seq = c.Seq(arg.start, arg.end, [result])
        result.cty = seq.cty = CF("p", T_STRING)
        thunk = c.Thunk(arg.start, arg.end, list(params), seq)
        thunk.ty = arg.ty
        return thunk

    def check_fail(self, args: list[c.Value]) -> None:
        if args and isinstance(args[0], c.RecordOf):
            for key, value in args[0].fields:
                if key == "status" and isinstance(value, c.Const) and value.value == 0:
                    self.fail("T0023", "a failure's status is not 0", value, "to succeed use return")

    def execute(self, m: c.Exec) -> Comp:
        external = m.mode != "base" and m.name not in self.handled and "*" not in self.handled
        if m.mode in ("caret", "path"):
            external = True
        for item in m.args:
            t = self.value(item.value)
            if item.spread:
                self.unify(TList(self.fresh()), t, item.value, "`...` spreads a list into the arguments")
            elif external:
                self.later.append(lambda v=item.value, t=t: self.check_argument(v, t, m.name))  # type: ignore[misc]
        return COMMAND

    def check_argument(self, node: c.Value, t: Type, name: str) -> None:
        t = prune(t)
        if not isinstance(t, TVar) and head_of(t) & NO_ARGUMENT:
            hint = "spread a list with ...$xs" if isinstance(t, TList) else "encode it first, for instance with to-json"
            self.fail("T0030", f"cannot pass {Printer().type(t)} to the external command `{name}`", node, hint)

    def redirect(self, inner: c.Comp, redirects: list[c.Redir]) -> Comp:
        out = False
        for r in redirects:
            out = out or r.fd == 1
            if r.target is None:
                continue
            t = self.value(r.target)
            if r.op == "<<":
                self.unify(T_STRING, t, r.target, "`<<` feeds a String", "render it first: !{to-json $x}")
            else:
                self.kinded(SCALAR, t, r.target, "a redirect names a file")
        comp = self.comp(inner)
        if not out:
            return comp
        comp = prune_comp(comp)
        return CF("p", self.result_value(comp)) if not isinstance(comp, CFun) else comp

    def pipeline(self, stages: list[c.Comp]) -> Comp:
        last = len(stages) - 1
        result: Comp = COMMAND
        for number, stage in enumerate(stages):
            comp = prune_comp(self.comp(stage))
            core = stage.body if isinstance(stage, c.Redirect) else stage
            if isinstance(comp, CFun):
                self.fail(
                    "T0041", "this stage still waits for an argument", stage, "apply it: f $x, don't pipe into it"
                )
            if number and isinstance(stage, c.Redirect):
                for r in stage.redirects:
                    if r.fd == 0:
                        raise StaticError(
                            [
                                Problem(
                                    "T0042",
                                    "this stage's input comes from the pipe",
                                    self.source,
                                    r.start,
                                    r.end,
                                    "drop the pipe, or the redirect",
                                )
                            ],
                            1,
                        )
            if number == last:
                result = comp
                break
            if isinstance(core, c.Apply) and isinstance(core.fn, c.Native) and core.fn.name in DECODERS:
                self.fail(
                    "T0040",
                    f"`{core.fn.name}` is a decoder: it ends the pipeline and feeds no further stage",
                    stage,
                    "bind its value with let, and encode again to go on",
                )
            if isinstance(comp, CVar):
                unify_comp(comp, CF(GVar(self.level), T_UNIT))
                continue
            assert isinstance(comp, CF)
            self.unify(
                T_UNIT,
                comp.type,
                stage,
                "a stage feeds the next by writing; a value writes nothing",
                "write the value first: to-lines $xs | …, or pass it as an argument",
            )
        return result

    def branch(self, b: c.Branch, params: list[Type], node: c.Term) -> Comp:
        """The computation type of an arm after its parameters."""
        if b.body is not None:
            if b.param is not None:
                self.pattern(b.param, params[0])
            return self.seq(b.body)
        assert b.value is not None
        if isinstance(b.value, c.Thunk) and len(b.value.params) != len(params):
            wanted = "one parameter: { |x| … }" if params else "no parameter: { … }"
            self.fail("T0006", f"this arm takes {wanted}", b.value, "")
        comp: Comp = CVar(self.level)
        for t in reversed(params):
            comp = CFun(t, comp)
        self.unify(TThunk(comp), self.value(b.value), b.value, "an arm is a block")
        return ending(comp)[1] if not params else self.after(comp, len(params))

    def after(self, comp: Comp, count: int) -> Comp:
        for _ in range(count):
            comp = prune_comp(comp)
            assert isinstance(comp, CFun)
            comp = comp.comp
        return comp

    def join(self, arms: list[tuple[c.Branch, Comp]], node: c.Term, what: str) -> Comp:
        """One result for several arms: a command joined with a value is captured."""
        pruned = [(b, prune_comp(comp)) for b, comp in arms]
        value: CF | None = None
        writes = False
        for _, comp in pruned:
            if isinstance(comp, CF):
                grade = prune_grade(comp.grade)
                if grade == "p" and prune(comp.type) is not T_UNIT and value is None:
                    value = comp
                writes = writes or grade == "w"
        if value is not None:
            for b, comp in pruned:
                if isinstance(comp, CF) and prune_grade(comp.grade) == "w":
                    self.unify(
                        value.type,
                        T_STRING,
                        self.place(b, node),
                        f"{what} return one type",
                        "a command's value is its output; return a string there, or end the command's arm "
                        "with `; return ()`",
                    )
                    b.capture = True
                else:
                    self.agree(CF("p", value.type), comp, b, node, what)
            return CF("p", value.type)
        if writes:
            for b, comp in pruned:
                if isinstance(comp, CF) and prune_grade(comp.grade) == "p":
                    self.unify(T_UNIT, comp.type, self.place(b, node), what)
                else:
                    self.agree(COMMAND, comp, b, node, what)
            return COMMAND
        first = pruned[0][1]
        for b, comp in pruned[1:]:
            self.agree(first, comp, b, node, what)
        return first

    def agree(self, wanted: Comp, comp: Comp, b: c.Branch, node: c.Term, what: str) -> None:
        try:
            unify_comp(wanted, comp)
        except Mismatch as m:
            self.fail(
                m.code if m.code != "T0001" else "T0007",
                describe_comp(f"{what} return one type", wanted, comp),
                self.place(b, node),
                m.hint or grade_hint(m),
            )

    def place(self, b: c.Branch, node: c.Term) -> c.Term:
        if b.value is not None:
            return b.value
        if b.body is not None and b.body.items:
            return b.body.items[-1]
        return node

    def choice(self, m: c.If, arms: list[tuple[c.Value, c.Branch]], orelse: c.Branch | None) -> Comp:
        pairs: list[tuple[c.Branch, Comp]] = []
        for cond, body in arms:
            self.unify(T_BOOL, self.value(cond), cond, "a condition is a Bool")
            pairs.append((body, self.branch(body, [], m)))
        if orelse is None:
            return CF("p", T_UNIT)
        pairs.append((orelse, self.branch(orelse, [], m)))
        return self.join(pairs, m, "the branches of `if`")

    def case(self, m: c.Case, scrutinee: c.Value, fields: list[tuple[str, c.Branch]]) -> Comp:
        payloads: dict[str, Type] = {tag: self.fresh() for tag, _ in fields}
        t = self.value(scrutinee)
        tags = ", ".join(f"`{tag}" for tag in payloads)
        self.unify(
            TVariant(Row(dict(payloads), None)),
            t,
            scrutinee,
            f"`case` matches {tags}",
            "give every tag that can come an arm, and no other",
        )
        for tag, arm in fields:
            if isinstance(arm.value, c.Thunk) and not arm.value.params:
                self.fail(
                    "T0006",
                    f"the arm of `` `{tag} `` takes the payload: {{ |x| … }}",
                    arm.value,
                    "write { |_| … } to ignore it",
                )
        pairs = [(arm, self.branch(arm, [payloads[tag]], m)) for tag, arm in fields]
        return self.join(pairs, m, "the arms of `case`")

    def within(self, m: c.Within) -> Comp:
        names: list[str] = []
        for key, value in m.options:
            if key == "handler":
                self.stand_in(value, [T_STRING, TList(T_STRING)], "the catch-all `handler`")
                names.append("*")
            elif key == "dir":
                self.unify(T_STRING, self.value(value), value, "`dir` is a path")
            elif key == "env":
                self.environment(value)
            else:
                self.kinded(NUMBER, self.value(value), value, f"`{key}` is a number of seconds")
        for name, value in m.arms:
            self.stand_in(value, [TList(T_STRING)], f"the handler of `{name}`")
            names.append(name)
        self.handled += names
        comp = self.branch(m.body, [], m)
        del self.handled[len(self.handled) - len(names) :]
        return comp

    def environment(self, value: c.Value) -> None:
        t = prune(self.value(value))
        if isinstance(t, TRecord):
            for key, field in t.row.fields.items():
                self.kinded(SCALAR, field, value, f"the environment variable `{key}` is text, a number or a Bool")
                if key in ("PWD", "OLDPWD"):
                    self.fail("T0024", f"`{key}` can't be set", value, "use the option dir, or cd")
        else:
            elem = self.fresh(SCALAR)
            self.unify(TMap(elem), t, value, "`env` is a record or a map of text, numbers and Bools")

    def stand_in(self, value: c.Value, params: list[Type], what: str) -> None:
        """A handler takes the argument list and writes, as the command does that it stands in for."""
        shape = "{ |args| … }" if len(params) == 1 else "{ |name args| … }"
        if not isinstance(value, c.Thunk | c.Local | c.Native | c.Index | c.Run):
            self.fail("T0006", f"{what} is a function {shape}", value, "")
        if isinstance(value, c.Thunk) and len(value.params) != len(params):
            self.fail(
                "T0006", f"{what} takes {len(params)} parameter{'s' if len(params) > 1 else ''}: {shape}", value, ""
            )
        t = prune(self.value(value))
        comp: Comp = CVar(self.level)
        for p in reversed(params):
            comp = CFun(p, comp)
        self.unify(TThunk(comp), t, value, f"{what} takes the rendered arguments")
        end = prune_comp(self.after(comp, len(params)))
        if isinstance(end, CVar):
            unify_comp(end, COMMAND)
        elif isinstance(end, CF):
            grade = prune_grade(end.grade)
            if grade == "p" and isinstance(prune(end.type), TVar):
                self.unify(T_UNIT, end.type, value, what)
            if grade == "p" and prune(end.type) is not T_UNIT:
                self.fail(
                    "T0008",
                    f"{what} returns {Printer().type(end.type)}, and a command's value is its output",
                    value,
                    "write it with echo",
                )
        else:
            self.fail("T0006", f"{what} takes {len(params)} parameter{'s' if len(params) > 1 else ''}", value, "")
