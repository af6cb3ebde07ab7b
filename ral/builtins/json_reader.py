"""JSON text to values.

The standard decoder recurses in C and holds the interpreter for as long as its input is: seconds for 100 MB. So depth is
counted first, and a document above 1 MB is read one element at a time through the decoder's own scanner.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from ral.machine.shell import Shell

from ral.cancel import check
from ral.diag import Fault
from ral.machine.values import DEEPEST, INT_MAX, INT_MIN

WHOLE = 1_000_000  # characters that are decoded in one C call
BLANK = " \t\n\r"


def decode(sh: "Shell", s: str, name: str) -> "Any":
    """The value of a JSON document."""
    deep = depth(sh, s, name)
    if len(s) <= WHOLE and deep < 500:
        import json

        try:
            return json.loads(s, parse_int=integer, parse_float=real, parse_constant=constant)
        except json.JSONDecodeError as e:
            problem(s, e.pos, e.msg, name)
        except Wrong as e:
            raise Fault(f"{name}: {e}", 1, name.partition(":")[0], code="R0135") from None
    return Reader(sh, s, name).document()


class Wrong(Exception):
    """A number that no ral value holds."""


def integer(word: str) -> int:
    number = int(word) if len(word) < 25 else INT_MAX + 1
    if not INT_MIN <= number <= INT_MAX:
        raise Wrong(f"the number {word[:40]} does not fit an Int")
    return number


def real(word: str) -> float:
    number = float(word)
    if number - number != 0.0:
        raise Wrong(f"the number {word[:40]} is not finite")
    return number


def constant(word: str) -> "NoReturn":
    raise Wrong(f"{word} is no JSON")


def problem(s: str, at: int, what: str, name: str) -> "NoReturn":
    line = s.count("\n", 0, at) + 1
    column = at - (s.rfind("\n", 0, at) + 1) + 1
    raise Fault(
        f"{name}: malformed JSON at line {line}, column {column}: {what}", 1, name.partition(":")[0], code="R0135"
    )


def depth(sh: "Shell", s: str, name: str) -> int:
    """The deepest nesting, an upper bound: brackets inside strings count too unless they balance."""
    if s.count("[") + s.count("{") < 500:
        return 0
    level = deepest = 0
    inside = False
    i, size = 0, len(s)
    while i < size:
        ch = s[i]
        if inside:
            if ch == "\\":
                i += 1
            elif ch == '"':
                inside = False
        elif ch == '"':
            end = s.find('"', i + 1)
            if end < 0:
                break
            if s.find("\\", i + 1, end) < 0:
                i = end
            else:
                inside = True
        elif ch in "[{":
            level += 1
            if level > deepest:
                deepest = level
                if level > DEEPEST:
                    raise Fault(f"{name}: the document is nested deeper than {DEEPEST} levels", 1, name, code="R0136")
        elif ch in "]}":
            level -= 1
        i += 1
        if not i & 0xFFFF and sh.flag:
            check(sh)
    return deepest


class Reader:
    """A decoder with a stack of its own, for long and for deep documents."""

    def __init__(self, sh: "Shell", s: str, name: str) -> None:
        from json.decoder import scanstring  # type: ignore[attr-defined]

        self.sh = sh
        self.s = s
        self.name = name
        self.scan = scanstring

    def document(self) -> "Any":
        import json

        try:
            value, at = self.value(self.blank(0))
            at = self.blank(at)
        except json.JSONDecodeError as e:
            problem(self.s, e.pos, e.msg, self.name)
        except Wrong as e:
            raise Fault(f"{self.name}: {e}", 1, self.name.partition(":")[0], code="R0135") from None
        if at != len(self.s):
            problem(self.s, at, "more text after the document", self.name)
        return value

    def blank(self, at: int) -> int:
        s, size = self.s, len(self.s)
        while at < size and s[at] in BLANK:
            at += 1
        return at

    def value(self, at: int) -> "tuple[Any, int]":
        s = self.s
        stack: list[tuple[Any, str]] = []  # open containers, each with the key that waits for a value
        steps = 0
        while True:
            steps += 1
            if not steps & 0xFF and self.sh.flag:
                check(self.sh)
            ch = s[at : at + 1]
            value: Any
            if ch == "[":
                at = self.blank(at + 1)
                if s[at : at + 1] != "]":
                    stack.append(([], ""))
                    continue
                value, at = [], at + 1
            elif ch == "{":
                at = self.blank(at + 1)
                if s[at : at + 1] != "}":
                    key, at = self.key(at)
                    stack.append(({}, key))
                    continue
                value, at = {}, at + 1
            else:
                value, at = self.scalar(at, ch)
            while True:
                if not stack:
                    return value, at
                holder, key = stack[-1]
                if type(holder) is list:
                    holder.append(value)
                else:
                    holder[key] = value
                at = self.blank(at)
                ch = s[at : at + 1]
                if ch == ",":
                    at = self.blank(at + 1)
                    if type(holder) is dict:
                        key, at = self.key(at)
                        stack[-1] = (holder, key)
                    break
                if ch == ("]" if type(holder) is list else "}"):
                    stack.pop()
                    value, at = holder, at + 1
                    continue
                problem(s, at, "expected `,` or the closing bracket", self.name)

    def key(self, at: int) -> tuple[str, int]:
        if self.s[at : at + 1] != '"':
            problem(self.s, at, "expected a key", self.name)
        key, at = self.scan(self.s, at + 1)
        at = self.blank(at)
        if self.s[at : at + 1] != ":":
            problem(self.s, at, "expected `:`", self.name)
        return key, self.blank(at + 1)

    def scalar(self, at: int, ch: str) -> "tuple[Any, int]":
        s = self.s
        if ch == '"':
            return self.scan(s, at + 1)  # type: ignore[no-any-return]
        for word, value in (("true", True), ("false", False), ("null", None)):
            if s.startswith(word, at):
                return value, at + len(word)
        end = at
        while end < len(s) and s[end] in "+-0123456789.eE":
            end += 1
        word = s[at:end]
        digits = word[1:] if word[:1] == "-" else word
        if not digits[:1].isdigit() or (len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()):
            problem(s, at, "expected a value", self.name)
        try:
            return (real(word) if any(c in word for c in ".eE") else integer(word)), end
        except ValueError:
            problem(s, at, "expected a value", self.name)
