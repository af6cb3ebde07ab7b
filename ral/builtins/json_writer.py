"""Values to JSON text: compact, keys sorted, with a stack of its own, so depth and length neither recurse nor stall."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ral.machine.shell import Shell

from ral.cancel import check
from ral.diag import Fault
from ral.machine.values import DEEPEST, Variant, print_float


class Raw:
    """Punctuation on the stack; `step` counts brackets opened."""

    __slots__ = ("step", "text")

    def __init__(self, text: str, step: int = 0) -> None:
        self.text = text
        self.step = step


COMMA = Raw(",")


def json_text(sh: "Shell", value: "Any", name: str) -> str:
    """The JSON of a value. Variants are `{"payload":…,"tag":…}`, bytes an array of numbers."""
    from json.encoder import encode_basestring

    parts: list[str] = []
    stack: list[Any] = [value]
    level = steps = 0
    while stack:
        steps += 1
        if not steps & 0xFF and sh.flag:
            check(sh)
        x = stack.pop()
        if type(x) is Raw:
            parts.append(x.text)
            level += x.step
            if level > DEEPEST:
                raise Fault(
                    f"the value is nested deeper than {DEEPEST} levels", 1, name.partition(":")[0], code="R0136"
                )
        elif x is None:
            parts.append("null")
        elif x is True or x is False:
            parts.append("true" if x else "false")
        elif type(x) is str:
            parts.append(encode_basestring(x.encode("utf-8", "replace").decode() if has_surrogate(x) else x))
        elif type(x) is int:
            parts.append(str(x))
        elif type(x) is float:
            parts.append(print_float(x))
        elif type(x) is bytes:
            parts.append("[" + ",".join(map(str, x)) + "]")
        elif type(x) is list:
            stack.append(Raw("]", -1))
            for i in range(len(x) - 1, -1, -1):
                stack.append(x[i])
                if i:
                    stack.append(COMMA)
            stack.append(Raw("[", 1))
        elif isinstance(x, dict | Variant):
            pairs = sorted(x.items()) if isinstance(x, dict) else variant_pairs(x)
            stack.append(Raw("}", -1))
            for i in range(len(pairs) - 1, -1, -1):
                key, item = pairs[i]
                stack.append(item)
                stack.append(Raw(encode_basestring(key) + ":"))
                if i:
                    stack.append(COMMA)
            stack.append(Raw("{", 1))
        else:
            raise Fault(
                f"{name}: a block, function or handle has no JSON form", 1, name.partition(":")[0], code="R0137"
            )
    return "".join(parts)


def has_surrogate(s: str) -> bool:
    return not s.isascii() and any("\ud800" <= c <= "\udfff" for c in s)


def variant_pairs(v: Variant) -> "list[tuple[str, Any]]":
    return [("tag", v.tag)] if v.payload is None else [("payload", v.payload), ("tag", v.tag)]
