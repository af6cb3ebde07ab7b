"""The character level: blanks, comments, words, names, and the errors that point at them.

The language's lexical mode depends on the innermost open delimiter, so the parser calls the scanner with the mode it is in
instead of reading a token stream made beforehand.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

from ral.diag import Incomplete, Problem, Source, StaticError

WORD_END = frozenset(" \t\n|{}[]$^!~<>\"'`();")
EXPR_END = WORD_END | frozenset("+-*/%=&")
NAME_START = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_")
NAME_REST = NAME_START | frozenset("0123456789-")
RESERVED = frozenset(
    ["if", "elsif", "else", "let", "return", "case", "within", "grant", "try", "guard", "audit", "true", "false"]
)
MAX_DEPTH = 64


class Scanner:
    """A source and a position in it, with the delimiters that are open."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.size = len(source.text)
        self.pos = 0
        self.depth = 0
        self.open: list[tuple[str, int]] = []  # open delimiters: spelling and place

    def fail(self, code: str, message: str, start: int, end: int | None = None, hint: str = "") -> "NoReturn":
        """Refuse the program; what is wrong only because the text ends is `Incomplete`."""
        if start >= self.size:
            self.incomplete(message)
        stop = start + 1 if end is None else max(end, start + 1)
        raise StaticError([Problem(code, message, self.source, start, stop, hint)], 2)

    def incomplete(self, message: str) -> "NoReturn":
        if self.open:
            spelling, start = self.open[-1]
            problem = Problem("P0001", f"`{spelling}` is never closed", self.source, start, start + len(spelling))
        else:
            at = max(0, len(self.text.rstrip()) - 1)
            problem = Problem("P0002", message + ", but the program ends here", self.source, at, at + 1)
        raise Incomplete(problem)

    def enter(self, spelling: str, start: int) -> None:
        """Count one more open form; 64 pass, so that no later stage recurses deeper."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail("P0003", f"more than {MAX_DEPTH} nested forms", start, hint="bind the inner part with let first")
        self.open.append((spelling, start))

    def leave(self) -> None:
        self.depth -= 1
        self.open.pop()

    def peek(self) -> str:
        """The character at the position, or an empty text at the end."""
        return self.text[self.pos] if self.pos < self.size else ""

    def at(self, spelling: str) -> bool:
        return self.text.startswith(spelling, self.pos)

    def blanks(self) -> None:
        """Skip spaces and tabs."""
        text, pos, size = self.text, self.pos, self.size
        while pos < size and (text[pos] == " " or text[pos] == "\t"):
            pos += 1
        self.pos = pos

    def comment(self) -> bool:
        """Skip a comment, if one starts here. A run of # before a quote is a raw string instead."""
        text = self.text
        pos = self.pos
        while pos < self.size and text[pos] == "#":
            pos += 1
        if pos == self.pos or (pos < self.size and text[pos] == "'"):
            return False
        end = text.find("\n", pos)
        self.pos = self.size if end < 0 else end
        return True

    def line_rest(self) -> None:
        """Skip blanks and a comment, up to the line's end."""
        self.blanks()
        if self.peek() == "#":
            self.comment()

    def lines(self) -> None:
        """Skip blanks, comments and newlines."""
        while True:
            self.line_rest()
            if self.peek() != "\n":
                return
            self.pos += 1

    def word_end(self, ends: "frozenset[str]", bracket: bool) -> int:
        """Where the word that starts here ends; commas end it in brackets, a colon where it is punctuation."""
        text, pos, size = self.text, self.pos, self.size
        while pos < size:
            ch = text[pos]
            if ch in ends or (bracket and ch == ","):
                break
            if ch == ":" and bracket:
                after = text[pos + 1] if pos + 1 < size else "\n"
                if after in " \t\n]":
                    break
            pos += 1
        return pos

    def name(self) -> str:
        """A binding name at the position, or an empty text."""
        text, pos, size = self.text, self.pos, self.size
        if pos >= size or text[pos] not in NAME_START:
            return ""
        start = pos
        while pos < size and text[pos] in NAME_REST:
            pos += 1
        self.pos = pos
        return text[start:pos]

    def keyword(self) -> str:
        """The plain word at the position, without moving: what a statement's first word is compared with."""
        text, pos, size = self.text, self.pos, self.size
        start = pos
        while pos < size and text[pos].isascii() and text[pos].isalpha():
            pos += 1
        if pos < size and text[pos] not in WORD_END:
            return ""
        return text[start:pos]
