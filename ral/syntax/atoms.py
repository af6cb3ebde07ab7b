"""Atoms: words, variables, collections, blocks, `$[…]` expressions, and patterns."""

from ral.syntax import tree as t
from ral.syntax.numeral import DIGITS, numeral
from ral.syntax.scanner import EXPR_END, NAME_REST, NAME_START, RESERVED, WORD_END
from ral.syntax.strings import Strings

# What may follow an atom; anything else is glued to it.
AFTER_ATOM = frozenset(" \t\n|;<>}])")
LEVELS = (("||",), ("&&",), ("==", "!=", "<=", ">=", "<", ">"), ("+", "-"), ("*", "/", "%"))
TEXT_REFUSED = frozenset(("<=", ">=", "<", ">", "+", "-", "*", "/", "%"))


class Atoms(Strings):
    """The value part of the parser. `bracket` says that the innermost open delimiter is a bracket."""

    def program(self, closer: str) -> t.Program:
        raise NotImplementedError

    # Atoms

    def starts_atom(self, bracket: bool) -> bool:
        """Whether an atom can start at the position."""
        ch = self.peek()
        if not ch or ch in "|}])<>;\n^":
            return False
        if ch in "?&" or (bracket and ch in ",:"):
            return False
        return not (ch == "#" and not self.raw_ahead())

    def raw_ahead(self) -> bool:
        pos = self.pos
        while pos < self.size and self.text[pos] == "#":
            pos += 1
        return self.text[pos : pos + 1] == "'"

    def atom(self, bracket: bool = False) -> t.Node:
        """One atom with the `[key]` groups written directly after it."""
        start = self.pos
        if self.at("..."):
            self.fail("P0010", "`...` spreads into a list, a map or an argument list, not here", start, start + 3)
        node = self.indexed(self.primary(bracket))
        self.check_glue(start, bracket)
        return node

    def check_glue(self, start: int, bracket: bool) -> None:
        ch = self.peek()
        if ch == "" or ch in AFTER_ATOM or (bracket and ch in ",:"):
            return
        self.fail(
            "P0011",
            "two values are glued together",
            start,
            self.pos + 1,
            'leave a space between them, or write one string: "…$name…"',
        )

    def indexed(self, node: t.Node) -> t.Node:
        if self.peek() != "[":
            return node
        keys: list[t.Node] = []
        while self.peek() == "[":
            keys.append(self.key())
        return t.Index(node.start, self.pos, node, keys)

    def key(self) -> t.Node:
        start = self.pos
        self.enter("[", start)
        self.pos += 1
        self.lines()
        if self.peek() == "]":
            self.fail("P0012", "an index needs a key", start, self.pos + 1, "write $xs[0] or $r[name]")
        key = self.indexed(self.primary(True))
        self.lines()
        self.expect("]", "after an index key")
        self.leave()
        return key

    def expect(self, spelling: str, where: str) -> None:
        if not self.at(spelling):
            found = self.peek()
            shown = f"found `{found}`" if found != "\n" else "found the line's end"
            if spelling in ")]}" and found and found in ")]}":
                self.fail("P0004", f"`{found}` closes nothing: `{self.open[-1][0]}` is open", self.pos)
            self.fail("P0013", f"expected `{spelling}` {where}, {shown}", self.pos)
        self.pos += len(spelling)

    def primary(self, bracket: bool) -> t.Node:
        start = self.pos
        ch = self.peek()
        if ch == "'" or (ch == "#" and self.raw_ahead()):
            return self.raw_string()
        if ch == '"':
            return self.string()
        if ch == "$":
            return self.dollar()
        if ch == "!":
            return self.force(bracket)
        if ch == "{":
            return self.block()
        if ch == "[":
            return self.collection()
        if ch == "(":
            if self.at("()"):
                self.pos += 2
                return t.Lit(start, self.pos, None)
            self.fail("P0014", "parentheses group only inside `$[…]`", start, hint="use !{ … } to run a command here")
        if ch == "`":
            return self.tag(bracket)
        if ch == "~":
            self.pos += 1
            if self.peek() not in ("", "/") and self.peek() not in AFTER_ATOM:
                self.fail("P0015", "`~` stands for your home directory only before `/`", start, hint="quote it as text")
            end = self.word_end(WORD_END, bracket)
            return self.finish_word(start, end)
        return self.word(bracket)

    def word(self, bracket: bool) -> t.Node:
        start = self.pos
        end = self.word_end(WORD_END, bracket)
        if end == start:
            found = self.peek()
            if found in ")]}" and found:
                opened = f": `{self.open[-1][0]}` is open" if self.open else ""
                self.fail("P0004", f"`{found}` closes nothing{opened}", start)
            if not found:
                self.fail("P0016", "expected a value", start)
            shown = f"found `{found}`" if found != "\n" else "found the line's end"
            self.fail("P0016", f"expected a value, {shown}", start)
        return self.finish_word(start, end)

    def finish_word(self, start: int, end: int) -> t.Node:
        text = self.text[start:end]
        self.pos = end
        if end < self.size and self.text[end] == "~":
            self.fail("P0015", "a word can't hold `~` after its start", end, hint=f"quote it: '{text}~…'")
        if text[-1] == ":" and len(text) > 1:
            self.fail("P0017", "a word can't end in `:`", end - 1, hint=f"quote it: '{text}'")
        number = numeral(text)
        if number is not None:
            return t.Lit(start, end, number)
        if text == "true":
            return t.Lit(start, end, True)
        if text == "false":
            return t.Lit(start, end, False)
        return t.Word(start, end, text)

    def dollar(self) -> t.Node:
        """`$name`, `$(name)` or `$[…]`."""
        start = self.pos
        self.pos += 1
        ch = self.peek()
        if ch == "[":
            self.enter("$[", start)
            self.pos += 1
            self.lines()
            node = self.expression(0)
            self.lines()
            self.expect("]", "after an expression")
            self.leave()
            node.start, node.end = start, self.pos
            return node
        if ch == "(":
            self.pos += 1
            name = self.name()
            if not name:
                self.fail("P0018", "expected a name after `$(`", self.pos, hint="to run a command write !{ … }")
            self.expect(")", "after the name")
            return t.Var(start, self.pos, name)
        name = self.name()
        if name:
            return t.Var(start, self.pos, name)
        if ch and ch in DIGITS:
            self.fail("P0018", f"there is no `${ch}`", start, start + 2, "arguments are in $ARGS, as in $ARGS[0]")
        self.fail("P0018", "expected a name, `[` or `(` after `$`", self.pos, hint="quote a literal `$`: '$'")

    def force(self, bracket: bool) -> t.Node:
        start = self.pos
        block = self.text.startswith("!{", start)  # one form: the block counts
        if not block:
            self.enter("!", start)
        self.pos += 1
        if self.peek() == "$" and not self.at("$["):
            target: t.Node = self.indexed(self.dollar())
        elif self.peek() in ("{", "$", "!", "["):
            target = self.primary(bracket)
        else:
            self.fail(
                "P0019",
                "`!` runs a block: expected `{` or `$name` after it",
                self.pos,
                hint="inside $[…] negation is `not`; quote a literal `!`",
            )
        if not block:
            self.leave()
        return t.Force(start, self.pos, target)

    def tag(self, bracket: bool) -> t.Node:
        start = self.pos
        self.pos += 1
        name = self.name()
        if not name:
            self.fail("P0020", "expected a tag's name after `` ` ``", self.pos)
        after = self.pos
        self.lines() if bracket else self.blanks()
        payload: t.Node | None = None
        if self.starts_atom(bracket) and self.pos > after:
            self.enter("`" + name, start)
            payload = self.indexed(self.primary(bracket))
            self.leave()
        else:
            self.pos = after
        return t.Tag(start, self.pos, name, payload)

    def splice(self) -> t.Node:
        """A splice inside a double-quoted string."""
        if self.peek() == "!":
            if self.text[self.pos + 1] == "{":
                start = self.pos
                self.pos += 1
                target: t.Node = self.block()
                return t.Force(start, self.pos, target)
            start = self.pos
            self.pos += 1
            return t.Force(start, self.pos, self.indexed(self.dollar()))
        delimited = self.text[self.pos + 1] in "[("
        node = self.dollar()
        return node if delimited else self.indexed(node)

    # Blocks

    def block(self) -> t.Block:
        start = self.pos
        self.enter("{", start)
        self.pos += 1
        self.lines()
        params: list[t.Node] = []
        if self.peek() == "|":
            bar = self.pos
            self.pos += 1
            self.lines()
            while self.peek() != "|":
                if self.peek() == ",":
                    self.fail("P0021", "parameters are separated by spaces", self.pos, hint="leave the comma out")
                params.append(self.pattern({}))
                self.lines()
            self.pos += 1
            if not params:
                self.fail("P0021", "an empty parameter list", bar, self.pos, "a block without parameters is `{ … }`")
        body = self.program("}")
        self.expect("}", "after a block")
        self.leave()
        return t.Block(start, self.pos, params, body)

    def arm_block(self, bracket: bool, what: str) -> t.Node:
        """A branch: a block or a name, so that nothing runs before the form chooses."""
        start = self.pos
        if not self.starts_atom(bracket):
            self.fail("P0022", f"expected {what}: a block or a name", start)
        node = self.atom(bracket)
        if not isinstance(node, t.Block | t.Var):
            self.fail(
                "P0022",
                f"{what} is a block or a name holding one",
                start,
                node.end,
                "write `{ … }`, or bind the block first: let arm = …",
            )
        return node

    # Collections

    def collection(self) -> t.Node:
        start = self.pos
        self.enter("[", start)
        self.pos += 1
        self.lines()
        if self.peek() == ":" and self.text[self.pos + 1 : self.pos + 2] != ":":
            node = self.map_rest(start)
        else:
            node = self.items(start)
        self.leave()
        return node

    def map_rest(self, start: int) -> t.Node:
        self.pos += 1
        self.lines()
        entries: list[t.Node] = []
        if self.peek() == ",":
            self.pos += 1
            self.lines()
            while self.peek() != "]":
                entries.append(self.entry())
                self.comma()
        self.expect("]", "after a map")
        return self.settle(start, entries, True)

    def comma(self) -> None:
        self.lines()
        if self.peek() == ",":
            self.pos += 1
            self.lines()
        elif self.peek() != "]":
            if self.peek() in ("}", ")"):
                self.expect("]", "after a collection")
            self.fail(
                "P0023", "expected `,` or `]` between entries", self.pos, hint="a newline does not replace a comma"
            )

    def entry(self) -> t.Node:
        """One entry of a bracketed literal: a spread, `key: value`, or a plain item."""
        start = self.pos
        if self.at("..."):
            self.pos += 3
            value = self.atom(True)
            return t.Spread(start, self.pos, value)
        if self.at("`"):
            save = self.pos
            self.pos += 1
            if self.name() and self.peek() == ":":
                self.fail("P0024", "a tag keys nothing", start, self.pos, "write a plain key")
            self.pos = save
        first = self.atom(True)
        self.lines()
        if self.peek() != ":":
            return first
        if not isinstance(first, t.Word | t.Lit | t.Var | t.Interp) or (
            isinstance(first, t.Lit) and not isinstance(first.value, str | int | float)
        ):
            self.fail("P0025", "a key is a name, a string or `$name`", start, first.end)
        self.pos += 1
        self.lines()
        return t.Entry(start, self.pos, first, self.atom(True))

    def items(self, start: int) -> t.Node:
        entries: list[t.Node] = []
        while self.peek() != "]":
            if not self.peek():
                self.incomplete("a collection is open")
            entries.append(self.entry())
            self.comma()
        self.pos += 1
        return self.settle(start, entries, False)

    def settle(self, start: int, entries: list[t.Node], is_map: bool) -> t.Node:
        """List, record or map: the keys decide."""
        keyed = [e for e in entries if isinstance(e, t.Entry)]
        if not keyed and not is_map:
            return t.ListLit(start, self.pos, entries)
        seen: set[str] = set()
        for e in keyed:
            key = self.static_key(e.key)
            if key is None:
                is_map = True
            elif key in seen:
                self.fail("P0026", f"the key `{key}` is written twice", e.key.start, e.key.end)
            else:
                seen.add(key)
        for node in entries:
            if not isinstance(node, t.Entry | t.Spread):
                self.fail("P0027", "a list item between keyed entries", node.start, node.end, "give it a key")
        if is_map:
            return t.MapLit(start, self.pos, entries)
        base: t.Node | None = None
        fields: list[t.Field] = []
        for i, node in enumerate(entries):
            if isinstance(node, t.Spread):
                if i:
                    self.fail(
                        "P0028",
                        "in a record the one spread comes first",
                        node.start,
                        node.end,
                        "for a map write [:, ...$m, k: v]",
                    )
                base = node.value
            elif isinstance(node, t.Entry):
                fields.append(t.Field(node.key.start, node.key.end, self.static_key(node.key) or "", node.value))
        return t.RecordLit(start, self.pos, base, fields)

    def static_key(self, key: t.Node) -> str | None:
        if isinstance(key, t.Word):
            return key.text
        if isinstance(key, t.Lit):
            return key.value if isinstance(key.value, str) else self.text[key.start : key.end]
        return None

    # Patterns

    def pattern(self, bound: dict[str, int]) -> t.Node:
        start = self.pos
        if self.peek() == "[":
            return self.bracket_pattern(bound)
        end = self.word_end(WORD_END, True)
        word = self.text[start:end]
        if word == "_":
            self.pos = end
            return t.PWild(start, end)
        self.bind(word, start, end, bound)
        return t.PName(start, end, word)

    def bind(self, word: str, start: int, end: int, bound: dict[str, int]) -> None:
        if word in RESERVED:
            self.fail("P0030", f"`{word}` is a reserved word", start, end, "choose another name")
        if not word or word[0] not in NAME_START or any(c not in NAME_REST for c in word):
            if not word and start >= self.size:
                self.incomplete("a pattern is missing")
            self.fail(
                "P0031",
                "expected a name, `_` or `[…]` in a pattern",
                start,
                end,
                "patterns take values apart; test them with if or case",
            )
        if word in bound:
            self.fail("P0032", f"the pattern binds `{word}` twice", start, end)
        bound[word] = start
        self.pos = end

    def bracket_pattern(self, bound: dict[str, int]) -> t.Node:
        start = self.pos
        self.enter("[", start)
        self.pos += 1
        self.lines()
        items: list[t.Node] = []
        fields: list[t.Field] = []
        rest: str | None = None
        while self.peek() != "]":
            at = self.pos
            if rest is not None:
                self.fail("P0033", "`...rest` ends a list pattern", at)
            if self.at("..."):
                self.pos += 3
                name_at = self.pos
                end = self.word_end(WORD_END, True)
                rest = self.text[name_at:end]
                if rest == "_":
                    self.pos = end
                else:
                    self.bind(rest, name_at, end, bound)
            else:
                key = self.pattern_key()
                if key is not None:
                    if any(f.key == key for f in fields):
                        self.fail("P0026", f"the key `{key}` is written twice", at, self.pos)
                    fields.append(t.Field(at, self.pos, key, self.pattern(bound)))
                else:
                    items.append(self.pattern(bound))
            if fields and (items or rest is not None):
                self.fail("P0034", "a pattern mixes a list with fields", at, self.pos)
            self.comma()
        self.pos += 1
        self.leave()
        if fields:
            return t.PRecord(start, self.pos, fields)
        return t.PList(start, self.pos, items, rest)

    def pattern_key(self) -> str | None:
        """`key:` of a field pattern, if one stands here."""
        save = self.pos
        if self.peek() in ("'", "#", '"'):
            node = self.raw_string() if self.peek() != '"' else self.string()
            key = node.value if isinstance(node, t.Lit) and isinstance(node.value, str) else None
        else:
            if self.peek() == "`":
                self.fail("P0024", "a tag keys nothing", save, hint="take a variant apart with case")
            end = self.word_end(WORD_END, True)
            key = self.text[save:end]
            self.pos = end
        self.lines()
        if key is not None and self.peek() == ":":
            self.pos += 1
            self.lines()
            return key
        self.pos = save
        return None

    # Expressions

    def expression(self, level: int) -> t.Node:
        """Precedence climbing over `LEVELS`; every level leans left."""
        if level == len(LEVELS):
            return self.operand()
        left = self.expression(level + 1)
        while True:
            self.lines()
            op = self.operator(level)
            if not op:
                return left
            self.pos += len(op)
            self.lines()
            if self.peek() == "]":
                self.fail("P0040", f"`{op}` needs a right operand", self.pos - 1)
            right = self.expression(level + 1)
            for side in (left, right):
                if isinstance(side, t.Word) and op in TEXT_REFUSED:
                    self.refuse_word(side, op)
            left = t.Binary(left.start, right.end, op, left, right)

    def refuse_word(self, word: t.Word, op: str) -> None:
        self.fail(
            "P0041",
            f"the bare word `{word.text}` is text, and `{op}` can't take it",
            word.start,
            word.end,
            f"did you mean ${word.text}?",
        )

    def operator(self, level: int) -> str:
        for op in LEVELS[level]:
            if self.at(op):
                return op
        if level == 2 and self.peek() == "=":
            self.fail("P0042", "`=` is no operator", self.pos, hint="compare with `==`")
        return ""

    def operand(self) -> t.Node:
        start = self.pos
        ch = self.peek()
        if ch == "(" and not self.at("()"):
            self.enter("(", start)
            self.pos += 1
            self.lines()
            node = self.expression(0)
            self.lines()
            self.expect(")", "after an expression")
            self.leave()
            return node
        after = self.text[start + 1 : start + 2]
        if ch == "-" or (ch == "+" and after and after in "0123456789."):
            number = self.number()
            if number is not None:
                return number
            self.enter("-", start)
            self.pos += 1
            self.lines()
            operand = self.operand()
            if isinstance(operand, t.Word):
                self.refuse_word(operand, "-")
            self.leave()
            return t.Unary(start, self.pos, "-", operand)
        if ch and ch in "'\"$!{[(`#":
            return self.indexed(self.primary(True))
        number = self.number()
        if number is not None:
            return number
        end = self.word_end(EXPR_END, True)
        word = self.text[start:end]
        if not word:
            shown = f"found `{ch}`" if ch else "found the end"
            if ch == "&" or ch == "|":
                self.fail("P0040", f"expected an operand, {shown}", start, hint="the operators are && and ||")
            self.fail("P0040", f"expected an operand, {shown}", start)
        self.pos = end
        if word == "not":
            self.enter("not", start)
            self.lines()
            operand = self.operand()
            self.leave()
            return t.Unary(start, self.pos, "not", operand)
        return self.finish_word(start, end)

    def number(self) -> t.Lit | None:
        """A numeral at the position, read whole with its sign and exponent."""
        text, start = self.text, self.pos
        pos = start + 1 if text[start : start + 1] in ("+", "-") else start
        while pos < self.size and (text[pos] in DIGITS or text[pos] == "."):
            pos += 1
        if pos < self.size and text[pos] in "eE" and pos > start:
            at = pos + 1
            if text[at : at + 1] in ("+", "-"):
                at += 1
            if text[at : at + 1] in DIGITS and text[at : at + 1]:
                while at < self.size and text[at] in DIGITS:
                    at += 1
                if numeral(text[start:at]) is not None:
                    pos = at
        word = text[start:pos]
        if not word or (pos < self.size and text[pos] not in EXPR_END and text[pos] not in ",]"):
            return None
        value = numeral(word)
        if value is None:
            return None
        self.pos = pos
        return t.Lit(start, pos, value)
