"""What inference is built from: fresh variables, constraints with their reasons, and what a mismatch says."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from ral.check.types import Scheme

from ral.check.types import (
    CF,
    T_STRING,
    CFun,
    Comp,
    CVar,
    GVar,
    Printer,
    TThunk,
    TVar,
    Type,
    head_of,
    prune,
    prune_comp,
    prune_grade,
    walk_vars,
)
from ral.check.unify import Mismatch, impose_data, unify, unify_comp
from ral.core import terms as c
from ral.diag import Problem, Source, StaticError


class Plumbing:
    """The state of one unit's inference, and the steps that everything in it uses."""

    def __init__(self, source: Source, signature: "Callable[[str], Scheme]") -> None:
        self.source = source
        self.signature = signature
        self.level = 1
        self.deferred: list[tuple[Type, Type, Type, c.Value]] = []
        self.waiting: list[TVar] = []
        self.later: list[Callable[[], None]] = []
        self.handled: list[str] = []  # command names with a handler written around; `*` for a catch-all

    def value(self, v: c.Value) -> Type:
        raise NotImplementedError

    def pattern(self, p: c.Pattern, t: Type | None = None) -> Type:
        raise NotImplementedError

    def quantify(self, p: c.Pattern) -> None:
        raise NotImplementedError

    def fresh(self, kind: int = 4095, deep: bool = False, weak: bool = False) -> TVar:
        return TVar(self.level, kind, deep, weak)

    def fail(self, code: str, message: str, node: c.Term, hint: str) -> "NoReturn":
        raise StaticError([Problem(code, message, self.source, node.start, node.end, hint)], 1)

    def solve(self, step: "Callable[[], None]", node: c.Term, what: str, hint: str = "") -> None:
        try:
            step()
        except Mismatch as m:
            self.fail(m.code, explain(m, what), node, m.hint or hint or grade_hint(m))

    def unify(self, expected: Type, found: Type, node: c.Term, what: str, hint: str = "") -> None:
        """`found` must be `expected`; `what` says why, in the user's words."""
        try:
            unify(expected, found)
        except Mismatch as m:
            self.fail(m.code, describe(what, expected, found, m), node, m.hint or hint or grade_hint(m))

    def kinded(self, kind: int, t: Type, node: c.Term, what: str, hint: str = "", deep: bool = False) -> Type:
        """Constrain a type to a kind."""
        pruned = prune(t)
        if not isinstance(pruned, TVar):
            if not head_of(pruned) & kind:
                self.fail("T0074", f"{what}, found {Printer().type(pruned)}", node, hint)
            if deep:
                self.solve(lambda: impose_data(pruned), node, what, hint)
            return pruned
        self.unify(self.fresh(kind, deep), pruned, node, what, hint)
        return prune(pruned)

    def weaken(self, t: Type) -> None:
        def visit(x: object) -> None:
            if not isinstance(x, GVar):
                x.weak = True  # type: ignore[attr-defined]

        walk_vars(t, visit)

    def demand(self, comp: Comp, node: "c.Run | c.Let") -> Type:
        """The value of a computation where one is wanted: a command's is its captured output."""
        comp = prune_comp(comp)
        if isinstance(comp, CFun):
            return TThunk(comp)
        if isinstance(comp, CVar):
            t = self.fresh()
            unify_comp(comp, CF("p", t))
            return t
        assert isinstance(comp, CF)
        grade = prune_grade(comp.grade)
        if grade == "w":
            node.capture = True
            return T_STRING
        if isinstance(grade, GVar):
            grade.ref = "p"
        return comp.type

    def result_value(self, comp: Comp) -> Type:
        """The value a body of either grade leaves behind."""
        comp = prune_comp(comp)
        if isinstance(comp, CFun):
            return TThunk(comp)
        if isinstance(comp, CVar):
            t = self.fresh()
            unify_comp(comp, CF(GVar(self.level), t))
            return t
        assert isinstance(comp, CF)
        return comp.type


def article(t: Type) -> str:
    name = Printer().type(t)
    return ("an " if name[0] in "AEIOU" else "a ") + name if name[0].isupper() else name


def describe(what: str, expected: Type, found: Type, m: Mismatch) -> str:
    """A mismatch in words: why, what was expected, what was found."""
    printer = Printer()
    text = f"{what}: expected {printer.type(expected)}, found {printer.type(found)}"
    return f"{text}; {m.message}" if m.message else text


def describe_comp(what: str, expected: Comp, found: Comp) -> str:
    printer = Printer()
    return f"{what}: {printer.comp(expected)} against {printer.comp(found)}"


def explain(m: Mismatch, what: str) -> str:
    if m.message:
        return f"{what}: {m.message}" if what else m.message
    printer = Printer()
    sides = [printer.type(x) if isinstance(x, Type) else printer.comp(x) for x in (m.left, m.right)]  # type: ignore[arg-type]
    text = f"{sides[0]} against {sides[1]}"
    return f"{what}: {text}" if what else text


def grade_hint(m: Mismatch) -> str:
    if m.code == "T0005":
        return "a command's value is its output: capture it with let, or return the value instead of writing it"
    return ""
