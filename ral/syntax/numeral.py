"""The numeral grammar, the one place that decides whether a word is a number, and how numbers print."""

INT_MIN = -(2**63)
INT_MAX = 2**63 - 1
DIGITS = frozenset("0123456789")


def numeral(word: str) -> int | float | None:
    """The number that a word denotes, or None when it is text.

    An Int must fit 64 bits; a Float carries a decimal point and is finite.
    """
    first = word[0]
    if first not in DIGITS and first not in "+-.":
        return None
    body = word[1:] if first in "+-" else word
    if not body or not body.isascii():
        return None
    if body.isdigit():
        value = int(body) if len(body) < 25 else int(body.lstrip("0")[:25] or "0")
        if first == "-":
            value = -value
        return value if INT_MIN <= value <= INT_MAX else None
    mantissa, mark, exponent = body, "", ""
    for letter in "eE":
        if letter in body:
            mantissa, mark, exponent = body.partition(letter)
            break
    if mark:
        digits = exponent[1:] if exponent[:1] in ("+", "-") else exponent
        if not digits.isdigit():
            return None
    whole, point, fraction = mantissa.partition(".")
    if not point or not (whole or fraction):
        return None
    if (whole and not whole.isdigit()) or (fraction and not fraction.isdigit()):
        return None
    number = float(word)
    if number in (float("inf"), float("-inf")):
        return None
    return number


def print_float(number: float) -> str:
    """The one spelling of a Float: shortest that reads back, with its decimal point."""
    text = repr(number)
    if "e" in text:
        mantissa, _, exponent = text.partition("e")
        if "." not in mantissa:
            mantissa += ".0"
        sign = "-" if exponent[0] == "-" else ""
        return f"{mantissa}e{sign}{exponent.lstrip('+-').lstrip('0') or '0'}"
    return text
