"""Text, numbers and regular expressions."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ral.machine.shell import Shell

from ral.diag import Fault
from ral.machine.values import INT_MAX, INT_MIN, Variant, text


def upper_(sh: "Shell", s: str) -> str:
    return s.upper()


def lower_(sh: "Shell", s: str) -> str:
    return s.lower()


def dedent_(sh: "Shell", s: str) -> str:
    import textwrap

    return textwrap.dedent(s)


def indent_(sh: "Shell", prefix: str, s: str) -> str:
    return "".join(prefix + line for line in s.splitlines(keepends=True))


def slice_(sh: "Shell", s: str, start: int, end: int) -> str:
    return s[max(0, start) : max(0, end)]


def repeat_(sh: "Shell", n: int, s: str) -> str:
    if len(s) * max(0, n) > 1 << 30:
        raise Fault("the repeated text is larger than 1 GiB", 1, "repeat", code="R0110")
    return s * n


def pad_left_(sh: "Shell", width: int, s: str) -> str:
    return s.rjust(min(width, 1 << 24))


def pad_right_(sh: "Shell", width: int, s: str) -> str:
    return s.ljust(min(width, 1 << 24))


def intercalate_(sh: "Shell", separator: str, parts: list[str]) -> str:
    return separator.join(parts)


def contains_(sh: "Shell", needle: str, s: str) -> bool:
    return needle in s


def words_(sh: "Shell", s: str) -> list[str]:
    return s.split()


def from_words_(sh: "Shell", parts: list[str]) -> str:
    return " ".join(parts)


def lines_(sh: "Shell", s: str) -> list[str]:
    return split_lines(s)


def split_lines(s: str) -> list[str]:
    """The line rule: LF or CRLF ends a line; a lone CR is text; the last line need not be ended."""
    parts = s.split("\n")
    last = parts.pop()
    out = [p[:-1] if p.endswith("\r") else p for p in parts]
    if last:
        out.append(last)
    return out


def string_replace_(sh: "Shell", old: str, new: str, s: str) -> str:
    count = s.count(old) if old else 0
    if count != 1:
        raise Fault(
            f"`{old}` occurs {count} times, not once",
            1,
            "string-replace",
            hint="for every match use re-replace-all",
            code="R0111",
        )
    return s.replace(old, new)


# Regular expressions. On the main thread a stop breaks into the match; elsewhere a large input is refused to hold the
# interpreter for long.


def compiled(pattern: str) -> "Any":
    import re

    try:
        return re.compile(pattern)
    except re.error as e:
        raise Fault(
            f"the pattern {pattern!r} is wrong: {e}", 1, "re", hint="quote a literal character with \\", code="R0112"
        ) from None


def guarded(sh: "Shell", work: "Any") -> "Any":
    from ral.cancel import interruptible

    if sh.place != "main":
        return work()
    with interruptible(sh.scope):
        return work()


def re_match_(sh: "Shell", pattern: str, s: str) -> bool:
    p = compiled(pattern)
    return guarded(sh, lambda: p.search(s)) is not None


def re_find_match_(sh: "Shell", pattern: str, s: str) -> Variant:
    p = compiled(pattern)
    found = guarded(sh, lambda: p.search(s))
    return Variant("none") if found is None else Variant("just", found.group(0))


def re_find_matches_(sh: "Shell", pattern: str, s: str) -> list[str]:
    p = compiled(pattern)
    return guarded(sh, lambda: [m.group(0) for m in p.finditer(s)])  # type: ignore[no-any-return]


def re_split_(sh: "Shell", pattern: str, s: str) -> list[str]:
    p = compiled(f"(?:{pattern})" if "(" not in pattern else pattern)
    if p.groups:
        raise Fault("a pattern to split at has no capturing groups", 1, "re-split", hint="write (?:…)", code="R0112")
    return guarded(sh, lambda: p.split(s))  # type: ignore[no-any-return]


def replaced(sh: "Shell", pattern: str, new: str, s: str, count: int) -> str:
    import re

    p = compiled(pattern)
    try:
        return guarded(sh, lambda: p.sub(new, s, count))  # type: ignore[no-any-return]
    except (re.error, IndexError) as e:
        raise Fault(f"the replacement {new!r} is wrong: {e}", 1, "re-replace", code="R0112") from None


def re_replace_(sh: "Shell", pattern: str, new: str, s: str) -> str:
    return replaced(sh, pattern, new, s, 1)


def re_replace_all_(sh: "Shell", pattern: str, new: str, s: str) -> str:
    return replaced(sh, pattern, new, s, 0)


SAFE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%+=:,./-_")


def shell_quote_(sh: "Shell", s: str) -> str:
    if s and all(c in SAFE for c in s):
        return s
    return "'" + s.replace("'", "'\"'\"'") + "'"


def shell_split_(sh: "Shell", s: str) -> list[str]:
    import shlex

    try:
        return shlex.split(s)
    except ValueError as e:
        raise Fault(f"the text is no shell command: {e}", 1, "shell-split", code="R0113") from None


# Numbers


def str_(sh: "Shell", x: "Any") -> str:
    return text(x)


def int_(sh: "Shell", x: "Any") -> int:
    if type(x) is int:
        return x
    if type(x) is float:
        if x != int(x):
            raise Fault(f"{text(x)} has a fraction", 1, "int", hint="choose floor, ceil or trunc", code="R0114")
        return whole(x, "int", int(x))
    from ral.syntax.numeral import numeral

    number = numeral(x.strip()) if x.strip() else None
    if type(number) is int:
        return number
    raise Fault(
        f"{x!r} is no Int", 1, "int", hint="an Int has an optional sign and digits, within 64 bits", code="R0114"
    )


def float_(sh: "Shell", x: "Any") -> float:
    if type(x) is float:
        return x
    if type(x) is int:
        return float(x)
    try:
        number = float(x.strip().replace("_", "x"))
    except ValueError:
        raise Fault(f"{x!r} is no Float", 1, "float", hint="write digits with a decimal point", code="R0114") from None
    if number - number != 0.0:
        raise Fault(f"{x!r} is no finite number", 1, "float", code="R0114")
    return number


def round_(sh: "Shell", x: "Any", places: int) -> float:
    if not 0 <= places <= 308:
        raise Fault(f"round takes 0 to 308 places, found {places}", 1, "round", code="R0115")
    import decimal

    exact = decimal.Decimal(repr(float(x)))
    step = decimal.Decimal(1).scaleb(-places)
    with decimal.localcontext() as context:
        context.prec = 700
        return float(exact.quantize(step, rounding=decimal.ROUND_HALF_UP))


def whole(x: float, name: str, number: int) -> int:
    if not INT_MIN <= number <= INT_MAX:
        raise Fault(f"{text(x)} does not fit an Int", 1, name, hint="an Int has 64 bits", code="R0114")
    return number


def floor_(sh: "Shell", x: float) -> int:
    import math

    return whole(x, "floor", math.floor(x))


def ceil_(sh: "Shell", x: float) -> int:
    import math

    return whole(x, "ceil", math.ceil(x))


def trunc_(sh: "Shell", x: float) -> int:
    return whole(x, "trunc", int(x))
