"""String literals: single-quoted, fenced, and double-quoted with escapes and splices."""

from ral.syntax import tree as t
from ral.syntax.scanner import NAME_START, Scanner

ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "0": "\0", "e": "\x1b", '"': '"', "$": "$", "!": "!"}
HEX = frozenset("0123456789abcdefABCDEF")


class Strings(Scanner):
    """The string part of the parser; splices call back into it."""

    def splice(self) -> "t.Node":
        raise NotImplementedError

    def raw_string(self) -> t.Lit:
        """`'…'` or `#'…'#` at the position."""
        start = self.pos
        while self.peek() == "#":
            self.pos += 1
        fence = "'" + "#" * (self.pos - start)
        self.open.append((self.text[start : self.pos] + "'", start))
        end = self.text.find(fence, self.pos + 1)
        if end < 0:
            self.incomplete("a string is not closed")
        value = self.text[self.pos + 1 : end]
        self.open.pop()
        self.pos = end + len(fence)
        return t.Lit(start, self.pos, value)

    def string(self) -> t.Node:
        """`"…"` at the position: a `Lit` without splices, else an `Interp`."""
        start = self.pos
        self.open.append(('"', start))
        self.pos += 1
        parts: list[t.Node] = []
        buffer: list[str] = []
        text = self.text
        while True:
            at = self.pos
            while at < self.size and text[at] not in '"\\$!':
                at += 1
            if at > self.pos:
                buffer.append(text[self.pos : at])
                self.pos = at
            if at >= self.size:
                self.incomplete("a string is not closed")
            ch = text[at]
            if ch == '"':
                self.pos += 1
                break
            if ch == "\\":
                buffer.append(self.escape())
            elif self.opens_splice():
                if buffer:
                    parts.append(t.Lit(at, at, "".join(buffer)))
                    buffer = []
                parts.append(self.splice())
            else:
                buffer.append(ch)
                self.pos += 1
        self.open.pop()
        if not parts:
            return t.Lit(start, self.pos, "".join(buffer))
        if buffer:
            parts.append(t.Lit(self.pos, self.pos, "".join(buffer)))
        return t.Interp(start, self.pos, parts)

    def opens_splice(self) -> bool:
        """Whether the `$` or `!` at the position opens a splice; else it is text."""
        text, pos = self.text, self.pos
        after = text[pos + 1] if pos + 1 < self.size else ""
        if text[pos] == "$":
            return after in NAME_START or after == "[" or (after == "(" and self.text[pos + 2 : pos + 3] in NAME_START)
        if after == "$":
            return self.text[pos + 2 : pos + 3] in NAME_START
        return after == "{"

    def escape(self) -> str:
        """The text of the escape at the position."""
        text, start = self.text, self.pos
        ch = text[start + 1] if start + 1 < self.size else ""
        if not ch:
            self.incomplete("a string is not closed")
        if ch == "\n":
            self.pos += 2
            return ""
        if ch in ESCAPES:
            self.pos += 2
            return ESCAPES[ch]
        if ch == "x":
            digits = text[start + 2 : start + 4]
            if len(digits) < 2 and start + 2 + len(digits) >= self.size:
                self.incomplete("a string is not closed")
            if len(digits) == 2 and all(c in HEX for c in digits) and int(digits, 16) < 0x80:
                self.pos += 4
                return chr(int(digits, 16))
            self.fail(
                "L0003",
                "`\\x` takes two hexadecimal digits from 00 to 7F",
                start,
                start + 4,
                "write other characters as \\u{…}",
            )
        if ch == "u":
            close = text.find("}", start)
            if close < 0:
                self.incomplete("a string is not closed")
            digits = text[start + 3 : close]
            if text[start + 2 : start + 3] == "{" and 1 <= len(digits) <= 6 and all(c in HEX for c in digits):
                number = int(digits, 16)
                if number < 0x110000 and not 0xD800 <= number < 0xE000:
                    self.pos = close + 1
                    return chr(number)
            self.fail("L0004", "`\\u{…}` takes one to six hexadecimal digits of a Unicode character", start, close + 1)
        self.fail(
            "L0002",
            f"unknown escape `\\{ch}`",
            start,
            start + 2,
            "use \\\\ for a backslash, or single quotes for literal text",
        )
