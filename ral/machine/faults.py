"""Failures that generated code raises, and the record that `try` hands its handler."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, NoReturn

    from ral.machine.shell import Shell

from ral.cancel import Cancelled, message, status, tag
from ral.diag import Fault, Source
from ral.machine.values import INT_MAX, INT_MIN, Variant, text

# What `try` and `?` see; `Exit` passes them. The last two are the system saying that an operation can't complete.
FAILS = (Fault, Cancelled, RecursionError, OSError, MemoryError)


class Unit:
    """One compiled program: its source and, for each generated line, the span it stands for."""

    __slots__ = ("source", "spans")

    def __init__(self, source: Source, spans: list[tuple[int, int]]) -> None:
        self.source = source
        self.spans = spans


UNITS: dict[str, Unit] = {}  # by the file name of the generated code


def locate(fault: BaseException, trace: "TracebackType | None") -> "tuple[Source, int, int] | None":
    """The innermost program position on a traceback."""
    found: tuple[Source, int, int] | None = None
    while trace is not None:
        unit = UNITS.get(trace.tb_frame.f_code.co_filename)
        if unit is not None and trace.tb_lineno < len(unit.spans):
            start, end = unit.spans[trace.tb_lineno]
            if end:
                found = (unit.source, start, end)
        trace = trace.tb_next
    return found


def as_fault(error: BaseException) -> Fault:
    """Any failure as a `Fault` with its place filled in."""
    if isinstance(error, Fault):
        fault = error
    elif isinstance(error, Cancelled):
        cause = error.cause
        fault = Fault(message(cause), status(cause), "<runtime>", ("cancelled", tag(cause)), code="R0002")
    elif isinstance(error, RecursionError):
        fault = Fault(
            "the recursion limit is reached",
            hint="make the recursive call the last thing the function does, or raise --recursion-limit",
            code="R0003",
        )
    elif isinstance(error, OSError):
        what = f" ({error.filename})" if isinstance(error.filename, str) else ""
        fault = Fault(f"the system refuses: {error.strerror or error}{what}", code="R0004")
        if error.errno in (23, 24):
            fault.hint = "close what is open or run less at once; `ulimit -n` shows the limit"
    elif isinstance(error, MemoryError):
        fault = Fault("out of memory", hint="work on less at once, or line by line", code="R0005")
    else:
        raise error
    if fault.site is None:
        fault.site = locate(error, error.__traceback__)
    return fault


def error_record(error: BaseException) -> "dict[str, Any]":
    """The record a `try` handler receives."""
    fault = as_fault(error)
    kind, detail = fault.reason
    payload = Variant(str(detail)) if kind == "cancelled" else detail
    site = Variant("none")
    if fault.site is not None:
        source, start, _ = fault.site
        line, col = source.place(start)
        site = Variant("just", {"script": source.path or source.name, "line": line, "col": col})
    return {
        "cmd": fault.cmd,
        "status": fault.status,
        "reason": Variant(kind, payload),
        "message": fault.message,
        "site": site,
    }


def overflow() -> "NoReturn":
    raise Fault("integer overflow", hint="an Int has 64 bits; convert with float for larger numbers", code="R0010")


def infinite() -> "NoReturn":
    raise Fault("the result is no finite number", code="R0011")


def divide(a: "Any", b: "Any") -> "Any":
    """`/`: Ints truncate toward zero."""
    if b == 0:
        raise Fault("division by zero", code="R0012")
    if type(a) is float:
        r = a / b
        return r if r - r == 0.0 else infinite()
    q = a // b
    if q < 0 and q * b != a:
        q += 1
    return q if q <= INT_MAX else overflow()


def remainder(a: int, b: int) -> int:
    """`%`: the dividend's sign."""
    if b == 0:
        raise Fault("division by zero", code="R0012")
    r = abs(a) % abs(b)
    return -r if a < 0 else r


def add(a: "Any", b: "Any") -> "Any":
    return checked(a + b)


def subtract(a: "Any", b: "Any") -> "Any":
    return checked(a - b)


def multiply(a: "Any", b: "Any") -> "Any":
    return checked(a * b)


def negate(a: "Any") -> "Any":
    return checked(-a)


def checked(r: "Any") -> "Any":
    """A number in range, or the failure that says so."""
    if type(r) is int:
        return r if INT_MIN <= r <= INT_MAX else overflow()
    return r if r - r == 0.0 else infinite()


def index(container: "Any", key: "Any") -> "Any":
    """`container[key]` for a list, a map or a record."""
    if type(container) is list:
        if 0 <= key < len(container):
            return container[key]
        count = len(container)
        hint = "positions count from 0" if key >= 0 else "positions are not negative; for the end use last"
        items = "1 item" if count == 1 else f"{count} items"
        raise Fault(f"position {key} is outside a list of {items}", hint=hint, code="R0020")
    try:
        return container[key]
    except KeyError:
        raise missing_key(container, key) from None


def missing_key(container: "dict[str, Any]", key: str) -> Fault:
    keys = sorted(container)
    shown = ", ".join(keys[:8]) + (", …" if len(keys) > 8 else "")
    hint = f"the keys are {shown}" if keys else "the map is empty"
    return Fault(f"there is no key `{key}`", hint=hint + "; for a default use get $m key default", code="R0021")


def take_list(value: "Any", count: int, rest: bool) -> "Any":
    """A list of the length that a pattern wants."""
    if len(value) == count or (rest and len(value) > count):
        return value
    wanted = f"at least {count}" if rest else str(count)
    raise Fault(f"the pattern takes a list of {wanted}, and this one has {len(value)}", code="R0022")


def take_field(value: "Any", key: str) -> "Any":
    try:
        return value[key]
    except KeyError:
        raise missing_key(value, key) from None


def map_of(entries: "list[Any]", sh: "Shell") -> "dict[str, Any]":
    """A map literal: explicit entries win over spread ones, the first spread over later ones, the last computed key."""
    explicit: dict[str, Any] = {}
    spread: dict[str, Any] = {}
    for entry in entries:
        if len(entry) == 1:
            for key, value in entry[0].items():
                spread.setdefault(key, value)
        else:
            if entry[0] in explicit:
                sh.warn(f"the key `{entry[0]}` is written twice; the last entry wins")
            explicit[entry[0]] = entry[1]
    return {**spread, **explicit}


def scalar(value: "Any") -> str:
    """The text of a part of an interpolated string whose type only the run knows."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return text(value)
    raise Fault(f"{text(value)} can't stand in a string", hint="render it with !{to-json $x}", code="R0023")
