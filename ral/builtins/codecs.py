"""Encoders and decoders: the named boundary between bytes and values."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ral.machine.shell import Shell

from ral.builtins.words import split_lines
from ral.cancel import check
from ral.diag import Fault
from ral.machine.values import Variant, text
from ral.pipeline.streams import read_all


def strict(data: bytes, name: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as e:
        raise Fault(
            f"the input is not UTF-8 (byte {e.start})", 1, name, hint="keep the bytes with from-bytes", code="R0130"
        ) from None


def from_bytes_(sh: "Shell") -> bytes:
    return read_all(sh)


def from_string_(sh: "Shell") -> str:
    return strict(read_all(sh), "from-string")


def from_line_(sh: "Shell") -> str:
    data = read_all(sh)
    if data.endswith(b"\n"):
        data = data[:-2] if data.endswith(b"\r\n") else data[:-1]
    return strict(data, "from-line")


def from_lines_(sh: "Shell") -> list[str]:
    from ral.builtins.lines import blocks

    out: list[str] = []
    for lines in blocks(sh, None):
        out += lines
    return out


def from_json_(sh: "Shell") -> "Any":
    from ral.builtins.json_reader import decode

    return decode(sh, strict(read_all(sh), "from-json"), "from-json")


def from_jsonl_(sh: "Shell") -> "list[Any]":
    from ral.builtins.json_reader import decode

    out: list[Any] = []
    for number, line in enumerate(split_lines(strict(read_all(sh), "from-jsonl")), 1):
        if sh.flag:
            check(sh)
        if line.strip(" \t\r"):
            out.append(decode(sh, line, f"from-jsonl: line {number}"))
    return out


def from_json_at_(sh: "Shell", tokens: list[str]) -> "Any":
    value = from_json_(sh)
    at = ""
    for token in tokens:
        if isinstance(value, dict):
            if token not in value:
                keys = ", ".join(sorted(value)) or "none"
                raise Fault(
                    f"`{at or '/'}` has no member {token!r}; its keys are {keys}", 1, "from-json-at", code="R0131"
                )
            value = value[token]
        elif isinstance(value, list):
            canonical = token.isascii() and token.isdigit() and (token == "0" or token[0] != "0")
            if not canonical or int(token) >= len(value):
                raise Fault(
                    f"`{at or '/'}` has no element {token!r}; its length is {len(value)}",
                    1,
                    "from-json-at",
                    code="R0131",
                )
            value = value[int(token)]
        else:
            raise Fault(f"`{at or '/'}` is neither an object nor an array", 1, "from-json-at", code="R0131")
        at += "/" + token.replace("~", "~0").replace("/", "~1")
    return value


def from_csv_(sh: "Shell") -> "list[dict[str, str]]":
    import csv
    import io

    rows = csv.reader(io.StringIO(strict(read_all(sh), "from-csv"), newline=""), strict=True)
    out: list[dict[str, str]] = []
    try:
        header = next(rows, None)
        if header is None:
            return out
        if len(set(header)) != len(header):
            raise Fault("a header occurs twice", 1, "from-csv", hint="rename one of the columns", code="R0132")
        for row in rows:
            if sh.flag:
                check(sh)
            if not row:
                continue
            if len(row) != len(header):
                raise Fault(
                    f"line {rows.line_num} has {len(row)} fields, and the header has {len(header)}",
                    1,
                    "from-csv",
                    code="R0132",
                )
            out.append(dict(zip(header, row, strict=True)))
    except csv.Error as e:
        raise Fault(f"line {rows.line_num}: {e}", 1, "from-csv", code="R0132") from None
    return out


# Encoders


def to_bytes_(sh: "Shell", data: bytes) -> None:
    sh.out.write(data, sh)


def ints_to_bytes_(sh: "Shell", numbers: list[int]) -> None:
    for n in numbers:
        if not 0 <= n <= 255:
            raise Fault(f"{n} is no byte", 1, "ints-to-bytes", hint="a byte is 0 through 255", code="R0133")
    sh.out.write(bytes(numbers), sh)


def encode(s: str) -> bytes:
    return s.encode("utf-8", "surrogateescape")


def to_string_(sh: "Shell", x: "Any") -> None:
    sh.out.write(encode(text(x)), sh)


def to_line_(sh: "Shell", x: "Any") -> None:
    sh.out.write(encode(text(x) + "\n"), sh)


def to_lines_(sh: "Shell", xs: "list[Any]") -> None:
    for at in range(0, len(xs), 1000):
        sh.out.write(encode("".join([text(x) + "\n" for x in xs[at : at + 1000]])), sh)


def to_json_(sh: "Shell", x: "Any") -> None:
    from ral.builtins.json_writer import json_text

    sh.out.write(encode(json_text(sh, x, "to-json") + "\n"), sh)


def to_jsonl_(sh: "Shell", xs: "list[Any]") -> None:
    from ral.builtins.json_writer import json_text

    rows = [json_text(sh, x, f"to-jsonl: element {i}") + "\n" for i, x in enumerate(xs)]
    sh.out.write(encode("".join(rows)), sh)


def to_csv_(sh: "Shell", rows: "list[dict[str, str]]") -> None:
    import csv
    import io

    if not rows:
        return
    header = sorted(rows[0])
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    for number, row in enumerate(rows):
        if sh.flag:
            check(sh)
        if sorted(row) != header:
            raise Fault(f"row {number} has other keys than the first", 1, "to-csv", code="R0132")
        writer.writerow([row[key] for key in header])
    sh.out.write(encode(buffer.getvalue()), sh)


# Admission: a decoded value against the type that its uses fixed.

NAMES = {
    dict: "a record",
    list: "a list",
    str: "text",
    int: "an Int",
    float: "a Float",
    bool: "a Bool",
    type(None): "null",
}
WANTED = {"Int": int, "Float": float, "String": str, "Bool": bool, "Unit": type(None), "Bytes": bytes}
KINDS = {
    "number": (int, float),
    "comparable": (int, float, str),
    "scalar": (bool, int, float, str),
    "sized": (str, bytes, list, dict),
    "keyed": (dict,),
}


def admit(value: "Any", spec: "Any", name: str) -> "Any":
    """The value itself, or a failure that names the position, what was found and what the program uses it as."""
    stack: list[tuple[Any, Any, str, tuple[Any, ...]]] = [(value, spec, "", ())]
    while stack:
        x, want, at, around = stack.pop()
        if want is None:
            continue
        if want[0] == "up":
            around, want = around[: -want[1]], around[-want[1]]
        inside = (*around, want)
        if isinstance(want, str):
            kinds = KINDS.get(want)
            if kinds is not None:
                if not isinstance(x, kinds) or (isinstance(x, bool) and bool not in kinds):
                    mismatch(x, at, f"as a {want} value", name)
            elif type(x) is not WANTED.get(want):
                mismatch(x, at, f"as {'an' if want == 'Int' else 'a'} {want}", name)
        elif want[0] == "list":
            if type(x) is not list:
                mismatch(x, at, "as a list", name)
            stack += [(y, want[1], f"{at}/{i}", inside) for i, y in enumerate(x)]
        elif want[0] == "map":
            if type(x) is not dict:
                mismatch(x, at, "as a map", name)
            stack += [(y, want[1], f"{at}/{pointer(k)}", inside) for k, y in x.items()]
        elif want[0] == "record":
            if type(x) is not dict:
                mismatch(x, at, "as a record", name)
            for key, part in want[1].items():
                if key not in x:
                    keys = ", ".join(sorted(x)) or "none"
                    raise Fault(
                        f"{name}: the value at `{at or '/'}` has no field `{key}`, which this program reads; "
                        f"its fields are {keys}",
                        1,
                        name,
                        code="R0134",
                    )
                stack.append((x[key], part, f"{at}/{pointer(key)}", inside))
            if not want[2] and len(x) != len(want[1]):
                extra = ", ".join(sorted(k for k in x if k not in want[1]))
                raise Fault(
                    f"{name}: the value at `{at or '/'}` has more fields than this program's record: {extra}",
                    1,
                    name,
                    code="R0134",
                )
        elif want[0] == "variant":
            if type(x) is not Variant or x.tag not in want[1]:
                mismatch(x, at, "as a variant", name)
            stack.append((x.payload, want[1][x.tag], at, inside))
        elif want[0] == "fn" and not hasattr(x, "arity"):
            mismatch(x, at, "as a function", name)
    return value


def pointer(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def mismatch(x: "Any", at: str, use: str, name: str) -> None:
    found = NAMES.get(type(x), "a function" if hasattr(x, "arity") else "a value")
    shown = text(x)
    if len(shown) > 40:
        shown = shown[:40] + "…"
    sample = f" ({shown!r})" if isinstance(x, str) else f" ({shown})" if isinstance(x, int | float) else ""
    hint = "for a Float that may be whole use !{float $x}" if use == "as a Float" and type(x) is int else ""
    raise Fault(
        f"{name}: the value at `{at or '/'}` is {found}{sample}, but this program uses it {use}",
        1,
        name,
        hint=hint,
        code="R0134",
    )
