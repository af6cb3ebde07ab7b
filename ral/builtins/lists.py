"""Collections and comparison.

Callbacks are called by position in Python loops, never through C (`map`, `sorted(key=)`): a program's recursion may pass
through them. Every element polls. No single C call is long: sorting works in runs and merges.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ral.machine.calls import Fn
    from ral.machine.shell import Shell

from ral.cancel import check
from ral.diag import Fault
from ral.machine.calls import run
from ral.machine.faults import checked
from ral.machine.values import Variant, equal

RUN = 20_000  # elements sorted in one C call: about 10 ms
PIECE = 1_000_000  # elements copied in one C call


def map_(sh: "Shell", fn: "Fn", xs: "list[Any]") -> "list[Any]":
    f = fn.a1  # type: ignore[attr-defined]
    flag = sh.flag
    out: list[Any] = []
    add = out.append
    for x in xs:
        if flag:
            check(sh)
        r = f(sh, x)
        if type(r) is tuple:
            r = run(sh, r)
        add(r)
    return out


def filter_(sh: "Shell", fn: "Fn", xs: "list[Any]") -> "list[Any]":
    f = fn.a1  # type: ignore[attr-defined]
    out: list[Any] = []
    for x in xs:
        if sh.flag:
            check(sh)
        r = f(sh, x)
        if type(r) is tuple:
            r = run(sh, r)
        if r:
            out.append(x)
    return out


def each_(sh: "Shell", fn: "Fn", xs: "list[Any]") -> None:
    f = fn.a1  # type: ignore[attr-defined]
    for x in xs:
        if sh.flag:
            check(sh)
        r = f(sh, x)
        if type(r) is tuple:
            run(sh, r)


def for_(sh: "Shell", xs: "list[Any]", fn: "Fn") -> None:
    each_(sh, fn, xs)


def fold_(sh: "Shell", fn: "Fn", acc: "Any", xs: "list[Any]") -> "Any":
    f = fn.a2  # type: ignore[attr-defined]
    flag = sh.flag
    for x in xs:
        if flag:
            check(sh)
        acc = f(sh, acc, x)
        if type(acc) is tuple:
            acc = run(sh, acc)
    return acc


def reduce_(sh: "Shell", fn: "Fn", xs: "list[Any]") -> "Any":
    return fold_(sh, fn, some("reduce", xs)[0], xs[1:])


def some(name: str, xs: "list[Any]") -> "list[Any]":
    """A list that is not empty."""
    if not xs:
        raise Fault(f"`{name}` of an empty list", 1, name, hint="test it with is-empty first", code="R0100")
    return xs


def range_(sh: "Shell", start: int, end: int) -> list[int]:
    if end - start <= PIECE:
        return list(range(start, end))
    if end - start > 200_000_000:
        raise Fault(
            f"range of {end - start} elements does not fit in memory",
            1,
            "range",
            hint="count with a recursive function instead",
            code="R0101",
        )
    out: list[int] = []
    for at in range(start, end, PIECE):
        if sh.flag:
            check(sh)
        out += range(at, min(at + PIECE, end))
    return out


def length_(sh: "Shell", x: "Any") -> int:
    return len(x)


def is_empty_(sh: "Shell", x: "Any") -> bool:
    return not x


def keys_(sh: "Shell", m: "dict[str, Any]") -> list[str]:
    return sorted(m)


def has_(sh: "Shell", m: "dict[str, Any]", key: str) -> bool:
    return key in m


def get_(sh: "Shell", m: "dict[str, Any]", key: str, default: "Any") -> "Any":
    return m.get(key, default)


def reverse_(sh: "Shell", xs: "list[Any]") -> "list[Any]":
    return xs[::-1]


def first_(sh: "Shell", xs: "list[Any]") -> Variant:
    return Variant("just", xs[0]) if xs else Variant("none")


def last_(sh: "Shell", xs: "list[Any]") -> Variant:
    return Variant("just", xs[-1]) if xs else Variant("none")


def option_or_(sh: "Shell", default: "Any", option: Variant) -> "Any":
    return option.payload if option.tag == "just" else default


def take_(sh: "Shell", n: int, xs: "list[Any]") -> "list[Any]":
    return xs[: max(0, n)]


def drop_(sh: "Shell", n: int, xs: "list[Any]") -> "list[Any]":
    return xs[max(0, n) :]


def prefix_length(sh: "Shell", fn: "Fn", xs: "list[Any]") -> int:
    f = fn.a1  # type: ignore[attr-defined]
    count = 0
    for x in xs:
        if sh.flag:
            check(sh)
        r = f(sh, x)
        if type(r) is tuple:
            r = run(sh, r)
        if not r:
            break
        count += 1
    return count


def take_while_(sh: "Shell", fn: "Fn", xs: "list[Any]") -> "list[Any]":
    return xs[: prefix_length(sh, fn, xs)]


def drop_while_(sh: "Shell", fn: "Fn", xs: "list[Any]") -> "list[Any]":
    return xs[prefix_length(sh, fn, xs) :]


def elem_(sh: "Shell", x: "Any", xs: "list[Any]") -> bool:
    for y in xs:
        if sh.flag:
            check(sh)
        if equal(x, y):
            return True
    return False


def nub_(sh: "Shell", xs: "list[Any]") -> "list[Any]":
    out: list[Any] = []
    seen: set[Any] = set()
    for x in xs:
        if sh.flag:
            check(sh)
        if isinstance(x, str | int | float | bytes):
            if x not in seen:
                seen.add(x)
                out.append(x)
        elif not elem_(sh, x, out):
            out.append(x)
    return out


def zip_(sh: "Shell", xs: "list[Any]", ys: "list[Any]") -> "list[Any]":
    out: list[Any] = []
    for i in range(min(len(xs), len(ys))):
        if sh.flag:
            check(sh)
        out.append({"left": xs[i], "right": ys[i]})
    return out


def flat_map_(sh: "Shell", fn: "Fn", xs: "list[Any]") -> "list[Any]":
    return concat_(sh, map_(sh, fn, xs))


def concat_(sh: "Shell", xss: "list[list[Any]]") -> "list[Any]":
    out: list[Any] = []
    for xs in xss:
        if sh.flag:
            check(sh)
        out += xs
    return out


def cross_(sh: "Shell", xs: "list[Any]", ys: "list[Any]") -> "list[Any]":
    out: list[Any] = []
    for x in xs:
        for y in ys:
            if sh.flag:
                check(sh)
            out.append({"left": x, "right": y})
    return out


def enumerate_(sh: "Shell", xs: "list[Any]") -> "list[Any]":
    out: list[Any] = []
    for i, x in enumerate(xs):
        if sh.flag:
            check(sh)
        out.append({"index": i, "item": x})
    return out


def group_by_(sh: "Shell", fn: "Fn", xs: "list[Any]") -> "dict[str, Any]":
    keys = map_(sh, fn, xs)
    out: dict[str, Any] = {}
    for key, x in zip(keys, xs, strict=True):
        out.setdefault(key, []).append(x)
    return out


def sort_list_(sh: "Shell", xs: "list[Any]") -> "list[Any]":
    """Sorted in runs that are then merged, so that no C call is long and each step polls."""
    if len(xs) <= RUN:
        return sorted(xs)
    runs = []
    for at in range(0, len(xs), RUN):
        if sh.flag:
            check(sh)
        runs.append(sorted(xs[at : at + RUN]))
    while len(runs) > 1:
        merged = []
        for i in range(0, len(runs) - 1, 2):
            merged.append(merge(sh, runs[i], runs[i + 1]))
        if len(runs) % 2:
            merged.append(runs[-1])
        runs = merged
    return runs[0]


def merge(sh: "Shell", a: "list[Any]", b: "list[Any]") -> "list[Any]":
    """Two sorted lists as one, in pieces: a piece of `a` with the part of `b` that belongs before its end."""
    out: list[Any] = []
    at = low = 0
    while at < len(a):
        if sh.flag:
            check(sh)
        piece = a[at : at + RUN]
        at += RUN
        if at >= len(a):
            cut = len(b)
        else:
            end = piece[-1]
            left, right = low, len(b)
            while left < right:  # the elements of b below a's next piece; equal ones come later, as a sort keeps order
                middle = (left + right) // 2
                if b[middle] < end:
                    left = middle + 1
                else:
                    right = middle
            cut = left
        while cut - low > RUN:
            part = b[low : low + RUN]
            low += RUN
            limit = part[-1]
            inside = sum(1 for x in piece if x <= limit) if len(piece) < 2 else upper(piece, limit)
            out += sorted(piece[:inside] + part)
            piece = piece[inside:]
            if sh.flag:
                check(sh)
        out += sorted(piece + b[low:cut])
        low = cut
    while low < len(b):
        out += b[low : low + RUN]
        low += RUN
    return out


def upper(xs: "list[Any]", limit: "Any") -> int:
    """How many elements of a sorted list are not above a limit."""
    left, right = 0, len(xs)
    while left < right:
        middle = (left + right) // 2
        if limit < xs[middle]:
            right = middle
        else:
            left = middle + 1
    return left


class Keyed:
    """An element with its sort key, ordered by the key and then by position."""

    __slots__ = ("at", "key")

    def __init__(self, key: "Any", at: int) -> None:
        self.key = key
        self.at = at

    def __lt__(self, other: "Keyed") -> bool:
        return bool(self.key < other.key or (self.key == other.key and self.at < other.at))

    def __le__(self, other: "Keyed") -> bool:
        return not other < self


def sort_list_by_(sh: "Shell", fn: "Fn", xs: "list[Any]") -> "list[Any]":
    keys = map_(sh, fn, xs)
    return [xs[k.at] for k in sort_list_(sh, [Keyed(key, i) for i, key in enumerate(keys)])]


def sum_(sh: "Shell", xs: "list[Any]") -> "Any":
    total: Any = 0
    for x in xs:
        if sh.flag:
            check(sh)
        total = checked(total + x)
    return total


def max_(sh: "Shell", a: "Any", b: "Any") -> "Any":
    return b if a < b else a


def min_(sh: "Shell", a: "Any", b: "Any") -> "Any":
    return b if b < a else a


def maximum_(sh: "Shell", xs: "list[Any]") -> "Any":
    return max(some("maximum", xs))


def minimum_(sh: "Shell", xs: "list[Any]") -> "Any":
    return min(some("minimum", xs))


def median_(sh: "Shell", xs: "list[Any]") -> "Any":
    return sort_list_(sh, some("median", xs))[(len(xs) - 1) // 2]


def median_by_(sh: "Shell", fn: "Fn", xs: "list[Any]") -> "Any":
    return sort_list_by_(sh, fn, some("median-by", xs))[(len(xs) - 1) // 2]


def equal_(sh: "Shell", a: "Any", b: "Any") -> bool:
    return equal(a, b)


def lt_(sh: "Shell", a: "Any", b: "Any") -> bool:
    return bool(a < b)


def gt_(sh: "Shell", a: "Any", b: "Any") -> bool:
    return bool(a > b)
