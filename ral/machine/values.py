"""Values and their text.

Unit None · Bool bool · Int int · Float float · String str · Bytes bytes · List list · record and map dict with str keys
· variant `Variant` · block and function `Fn` · handle `Handle`. Values are never changed once made.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

from ral.diag import Fault
from ral.machine.calls import Fn

DEEPEST = 10_000  # levels that a word which recurses over a value accepts
INT_MIN = -(2**63)
INT_MAX = 2**63 - 1


class Variant:
    """A tag with a payload; None is the payload of a nullary one."""

    __slots__ = ("payload", "tag")

    def __init__(self, tag: str, payload: "Any" = None) -> None:
        self.tag = tag
        self.payload = payload


class Handle:
    """A reference to concurrent work; the jobs room gives it meaning."""

    __slots__ = ("name", "worker")

    def __init__(self, name: str, worker: "Any") -> None:
        self.name = name
        self.worker = worker


def print_float(number: float) -> str:
    """The one spelling of a Float."""
    text = repr(number)
    if "e" not in text:
        return text
    mantissa, _, exponent = text.partition("e")
    if "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}e{int(exponent)}"


def text(value: "Any") -> str:
    """A value's text: strings bare, data with brackets and tags."""
    kind = type(value)
    if kind is str:
        return value  # type: ignore[no-any-return]
    if kind is int:
        return str(value)
    if value is True:
        return "true"
    if value is False:
        return "false"
    if kind is float:
        return print_float(value)
    if value is None:
        return "()"
    parts: list[str] = []
    write(value, parts)
    return "".join(parts)


def write(value: "Any", parts: list[str]) -> None:
    """Append a value's text, with a stack of its own: depth is the data's, not Python's."""
    stack: list[object] = [value]
    open_levels = 0
    while stack:
        x = stack.pop()
        if type(x) is Mark:
            parts.append(x.text)
            open_levels += x.step
            if open_levels > DEEPEST:
                raise Fault(f"a value nested deeper than {DEEPEST} levels can't be shown", code="R0030")
        elif type(x) is list:
            stack.append(CLOSE)
            for i in range(len(x) - 1, -1, -1):
                stack.append(x[i])
                if i:
                    stack.append(COMMA)
            stack.append(OPEN)
        elif type(x) is dict:
            if not x:
                parts.append("[:]")
                continue
            stack.append(CLOSE)
            keys = sorted(x)
            for i in range(len(keys) - 1, -1, -1):
                stack.append(x[keys[i]])
                stack.append(Mark(keys[i] + ": "))
                if i:
                    stack.append(COMMA)
            stack.append(OPEN)
        elif type(x) is Variant:
            parts.append("`" + x.tag)
            if x.payload is not None:
                parts.append(" ")
                stack.append(x.payload)
        elif type(x) is bytes:
            parts.append(x.decode("utf-8", "replace"))
        elif isinstance(x, Fn):
            parts.append(x.shown())
        elif type(x) is Handle:
            parts.append(f"<handle {x.name}>")
        else:
            parts.append(text(x))


class Mark:
    """Punctuation on the stack of `write`; `step` counts brackets opened."""

    __slots__ = ("step", "text")

    def __init__(self, text: str, step: int = 0) -> None:
        self.text = text
        self.step = step


OPEN, CLOSE, COMMA = Mark("[", 1), Mark("]", -1), Mark(", ")


def equal(a: "Any", b: "Any") -> bool:
    """Structural equality over data of one type, with a stack of its own."""
    stack = [(a, b)]
    while stack:
        x, y = stack.pop()
        if x is y:
            continue
        kind = type(x)
        if kind is list:
            if len(x) != len(y):
                return False
            stack += zip(x, y, strict=True)
        elif kind is dict:
            if x.keys() != y.keys():
                return False
            stack += [(v, y[k]) for k, v in x.items()]
        elif kind is Variant:
            if x.tag != y.tag:
                return False
            stack.append((x.payload, y.payload))
        elif type(y) is not kind or x != y:
            return False
    return True
