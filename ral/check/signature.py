"""The written form of a builtin's type, read when the builtin is first mentioned.

{a -> b} -> [a] -> [b]        a function value, a list, a returned list
a:number -> a -> Bool         kinds: number, comparable, scalar, sized, keyed, data
a:data -> !                   `!` is Command
{%g a} -> Handle a            `%g a`: a body of either grade
_a                            a weak result: a boundary
<`just a | `none>             a variant;  [k: T, …] a record;  [k: T, *] an open one
"""

from ral.check.types import (
    ANY,
    BY_NAME,
    CF,
    COMMAND,
    DATA,
    KINDS,
    T_UNIT,
    CFun,
    Comp,
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
    walk_vars,
)

PUNCTUATION = frozenset("{}[](),:|<>`!%*")


def read_signature(text: str) -> Scheme:
    """The scheme of `A -> … -> C`, as the type of a function value."""
    reader = Reader(text)
    comp = reader.comp()
    body = TThunk(comp)
    found: set[object] = set()
    walk_vars(body, found.add)
    return Scheme(frozenset(found), body)


class Reader:
    """A cursor over a signature's tokens."""

    def __init__(self, text: str) -> None:
        self.tokens = list(scan(text))
        self.at = 0
        self.types: dict[str, TVar] = {}
        self.grades: dict[str, GVar] = {}
        self.comps: dict[str, CVar] = {}
        self.tails: dict[str, RVar] = {}

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, token: str = "") -> str:
        found = self.peek()
        if token and found != token:
            raise AssertionError(f"signature: expected {token}, found {found} in {' '.join(self.tokens)}")
        self.at += 1
        return found

    def comp(self) -> Comp:
        if self.peek() == "!":
            self.take()
            return COMMAND
        if self.peek() == "%":
            self.take()
            name = self.take()
            grade = self.grades.setdefault(name, GVar(1))
            return CF(grade, self.type())
        if self.peek() == "?":
            self.take()
            return self.comps.setdefault(self.take(), CVar(1))
        t = self.type()
        if self.peek() == "->":
            self.take()
            return CFun(t, self.comp())
        return CF("p", t)

    def type(self) -> Type:
        token = self.take()
        if token == "{":
            comp = self.comp()
            self.take("}")
            return TThunk(comp)
        if token == "[":
            return self.bracket()
        if token == "<":
            return self.variant()
        if token in BY_NAME:
            return BY_NAME[token]
        if token == "Map":
            return TMap(self.type())
        if token == "Handle":
            return THandle(self.type())
        kind = ""
        if self.peek() == ":" and self.tokens[self.at + 1] in ("data", *KINDS):
            self.take()
            kind = self.take()
        var = self.types.get(token)
        if var is None:
            var = self.types[token] = TVar(1)
        if kind == "data":
            var.kind, var.deep = DATA, True
        elif kind:
            var.kind = KINDS.get(kind, ANY)
        return var

    def bracket(self) -> Type:
        if self.tokens[self.at + 1] != ":" or self.tokens[self.at + 2] in ("data", *KINDS):
            elem = self.type()
            self.take("]")
            return TList(elem)
        fields: dict[str, Type] = {}
        tail: RVar | None = None
        while self.peek() != "]":
            if self.peek() == "*":
                self.take()
                tail = self.tails.setdefault("*", RVar(1))
            else:
                label = self.take()
                self.take(":")
                fields[label] = self.type()
            if self.peek() == ",":
                self.take()
        self.take("]")
        return TRecord(Row(fields, tail))

    def variant(self) -> Type:
        fields: dict[str, Type] = {}
        while True:
            self.take("`")
            tag = self.take()
            fields[tag] = T_UNIT if self.peek() in ("|", ">") else self.type()
            if self.take() == ">":
                return TVariant(Row(fields, None))


def scan(text: str) -> "list[str]":
    tokens: list[str] = []
    at = 0
    while at < len(text):
        ch = text[at]
        if ch == " ":
            at += 1
        elif text.startswith("->", at):
            tokens.append("->")
            at += 2
        elif ch in PUNCTUATION or ch == "?":
            tokens.append(ch)
            at += 1
        else:
            end = at
            while (
                end < len(text)
                and text[end] not in PUNCTUATION
                and text[end] not in " ?"
                and not (text.startswith("->", end))
            ):
                end += 1
            tokens.append(text[at:end])
            at = end
    return tokens
