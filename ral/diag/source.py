"""Source text with positions, and one problem found in it."""


class Source:
    """A named text. Offsets count characters; lines and columns count from one."""

    __slots__ = ("_starts", "name", "path", "text")

    def __init__(self, name: str, text: str, path: str | None = None) -> None:
        self.name = name
        self.text = text
        self.path = path  # absolute path of a script file, else None
        self._starts: list[int] | None = None

    def place(self, offset: int) -> tuple[int, int]:
        """The (line, column) of an offset."""
        starts = self._starts
        if starts is None:
            starts = [0]
            find = self.text.find
            at = find("\n")
            while at >= 0:
                starts.append(at + 1)
                at = find("\n", at + 1)
            self._starts = starts
        low, high = 0, len(starts)
        while high - low > 1:
            middle = (low + high) // 2
            if starts[middle] <= offset:
                low = middle
            else:
                high = middle
        return low + 1, offset - starts[low] + 1

    def line(self, number: int) -> str:
        """The text of a line, without its end."""
        self.place(0)
        assert self._starts is not None
        start = self._starts[number - 1]
        end = self.text.find("\n", start)
        return self.text[start:] if end < 0 else self.text[start:end]


class Problem:
    """One finding: a code (`P0012`), a message, a span in a source, and a hint or an empty text."""

    __slots__ = ("also", "code", "end", "hint", "message", "source", "start")

    def __init__(self, code: str, message: str, source: Source | None, start: int, end: int, hint: str = "") -> None:
        self.code = code
        self.message = message
        self.source = source
        self.start = start
        self.end = end
        self.hint = hint
        self.also: list[tuple[str, int, int]] = []  # further places: (label, start, end)


def normalise(text: str) -> str:
    """Line ends as LF: what a script, `-c`, stdin and a module go through before lexing."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text
