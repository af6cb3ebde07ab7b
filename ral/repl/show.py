"""How the REPL shows a value: strings quoted, collections laid out to fit the width."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

from ral.machine.values import Variant, text

SHOWN_DEPTH = 40  # levels that are laid out; what is deeper is marked
MAP_STRING = 2000  # characters of a string directly under a map key


def show(value: "Any", width: int) -> str:
    """The display form of a value within a width in columns."""
    return layout(value, max(20, width), 0)


def quoted(s: str) -> str:
    """A string as a literal that reads back."""
    if any(ord(c) < 32 or ord(c) == 127 for c in s):
        return '"' + "".join(escape(c) for c in s) + '"'
    fence = ""
    while "'" + fence in s:
        fence += "#"
    return f"{fence}'{s}'{fence}"


def escape(c: str) -> str:
    known = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\x1b": "\\e", '"': '\\"', "\\": "\\\\", "$": "\\$", "!": "\\!"}
    if c in known:
        return known[c]
    return c if c.isprintable() else f"\\u{{{ord(c):x}}}"


def layout(value: "Any", width: int, depth: int) -> str:
    if depth > SHOWN_DEPTH:
        return "…"
    if isinstance(value, str):
        return quoted(value)
    if value is None:
        return "()"
    if type(value) is list:
        return collect([layout(x, width - 2, depth + 1) for x in value], width)
    if type(value) is dict:
        if not value:
            return "[:]"
        parts = []
        for key in sorted(value):
            item = value[key]
            if isinstance(item, str) and len(item) > MAP_STRING:
                item = item[:MAP_STRING] + "…"
            parts.append(f"{key}: {layout(item, width - len(key) - 4, depth + 1)}")
        return collect(parts, width)
    if type(value) is Variant:
        if value.payload is None:
            return f"`{value.tag}"
        return f"`{value.tag} {layout(value.payload, width - len(value.tag) - 2, depth + 1)}"
    return text(value)


def collect(parts: list[str], width: int) -> str:
    line = "[" + ", ".join(parts) + "]"
    if len(line) <= width and "\n" not in line:
        return line
    return "[\n" + "".join("  " + p.replace("\n", "\n  ") + ",\n" for p in parts) + "]"
