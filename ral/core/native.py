"""The registry of builtins: name, type signature, implementation. The builtins room fills it lazily."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Loader = Callable[[], dict[str, Callable[..., Any]]]

SIGNATURES: dict[str, str] = {}
ARITIES: dict[str, int] = {}


def mangle(name: str) -> str:
    """A builtin's name inside generated code."""
    return name.replace("-", "_")


def arity_of(name: str) -> int:
    """How many arguments a builtin's code takes: the arrows of its signature outside braces."""
    known = ARITIES.get(name)
    if known is None:
        depth = count = 0
        text = SIGNATURES[name]
        for i, ch in enumerate(text):
            if ch in "{[":
                depth += 1
            elif ch in "}]":
                depth -= 1
            elif ch == "-" and depth == 0 and text[i + 1] == ">":
                count += 1
        known = ARITIES[name] = count
    return known
