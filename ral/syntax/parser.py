"""Statements, chains, pipelines, forms and redirects."""

from ral.diag import Source
from ral.syntax import tree as t
from ral.syntax.atoms import Atoms
from ral.syntax.scanner import NAME_REST, NAME_START, RESERVED, WORD_END

OPTIONS = ("dir", "env", "handlers", "handler", "timeout", "grace")
STREAMS = ("standard input", "standard output", "standard error")
LATER = ("grant", "audit")


def parse(source: Source) -> t.Program:
    """The tree of a whole source. Raises `StaticError` with status 2, or `Incomplete`."""
    parser = Parser(source)
    program = parser.program("")
    if parser.pos < parser.size:
        parser.fail("P0004", f"`{parser.peek()}` closes nothing", parser.pos)
    return program


class Parser(Atoms):
    """The statement part of the parser."""

    def program(self, closer: str) -> t.Program:
        start = self.pos
        statements: list[t.Node] = []
        while True:
            while True:
                self.lines()
                if self.peek() != ";":
                    break
                self.pos += 1
            ch = self.peek()
            if not ch:
                if closer:
                    self.incomplete("a block is open")
                break
            if ch == closer or ch in ")]}":
                break
            statements.append(self.statement())
            self.line_rest()
            ch = self.peek()
            if ch and ch not in "\n;)]}":
                self.unexpected(ch)
        return t.Program(start, self.pos, statements)

    def unexpected(self, ch: str) -> None:
        if ch == "&":
            self.ampersand()
        self.fail("P0050", f"unexpected `{ch}` after a statement", self.pos, hint="end it with a newline or `;`")

    def ampersand(self) -> None:
        """Refuse the shell spellings that ral has other words for."""
        if self.at("&&"):
            self.fail(
                "P0051",
                "`&&` is an operator only inside `$[…]`",
                self.pos,
                self.pos + 2,
                "failures stop a program, so write `a; b`; for a fallback write `a ? b`",
            )
        if self.at("||"):
            self.fail(
                "P0051",
                "`||` is an operator only inside `$[…]`",
                self.pos,
                self.pos + 2,
                "for a fallback write `a ? b`; to go on whatever happens, `try { a } { |_| () }; b`",
            )
        self.fail("P0052", "`&` ends its pipeline: only a newline, `;` or `}` may follow", self.pos)

    def statement(self) -> t.Node:
        start = self.pos
        if self.keyword() != "let":
            return self.chain()
        self.pos += 3
        self.blanks()
        if self.peek() in ("", "\n"):
            self.fail("P0053", "expected a name or a pattern after `let`", self.pos)
        pattern = self.pattern({})
        self.blanks()
        if self.peek() != "=":
            self.fail("P0053", "expected `=` after the pattern of `let`", self.pos, hint="write let name = value")
        self.pos += 1
        if self.peek() not in ("", " ", "\t", "\n"):
            self.fail("P0053", "leave a space after `=`", self.pos)
        self.lines()
        return t.Let(start, self.pos, pattern, self.chain())

    def chain(self) -> t.Chain:
        start = self.pos
        arms: list[t.Node] = [self.pipeline()]
        while True:
            save = self.pos
            self.line_rest()
            if self.peek() == "\n":
                self.pos += 1
                self.blanks()
            if self.peek() != "?":
                self.pos = save
                break
            mark = self.pos
            self.pos += 1
            self.line_rest()
            if self.peek() in ("\n", ";", "}"):
                self.fail("P0054", "the next alternative must start on the line of `?`", mark)
            if self.keyword() == "let":
                self.fail("P0055", "`let` is a statement and can't follow `?`", self.pos, self.pos + 3)
            arms.append(self.pipeline())
        return t.Chain(start, arms[-1].end, arms)

    def pipeline(self) -> t.Pipeline:
        start = self.pos
        stages: list[t.Node] = [self.stage()]
        background = False
        while True:
            save = self.pos
            self.lines()
            if self.at("||"):
                self.ampersand()
            if self.peek() != "|":
                self.pos = save
                break
            self.pos += 1
            self.lines()
            if self.keyword() == "let":
                self.fail("P0055", "`let` is a statement and can't follow `|`", self.pos, self.pos + 3)
            stages.append(self.stage())
        self.blanks()
        end = stages[-1].end
        if self.peek() == "&":
            if self.at("&&"):
                self.ampersand()
            background = True
            self.pos += 1
            end = self.pos
            self.line_rest()
            if self.peek() not in ("", "\n", ";", "}"):
                self.ampersand()
        return t.Pipeline(start, end, stages, background)

    def stage(self) -> t.Node:
        word = self.keyword()
        start = self.pos
        if word in RESERVED:
            if word in LATER:
                self.fail("P0060", f"`{word}` is not yet supported", start, start + len(word), "the name is reserved")
            if word in ("elsif", "else"):
                self.fail("P0056", f"`{word}` without an `if`", start, start + len(word))
            if word == "let":
                self.fail("P0055", "`let` can't stand here", start, start + 3)
            form = {
                "return": self.return_form, "if": self.if_form, "case": self.case_form,
                "try": self.two_blocks, "guard": self.two_blocks, "within": self.within_form,
            }.get(word)  # fmt: skip
            if form is not None:
                node = form()
                self.end_stage()
                return node
        return self.command()

    def end_stage(self) -> None:
        self.line_rest()
        ch = self.peek()
        if ch and ch not in "\n;|?&)]}":
            self.fail("P0050", "expected the end of the statement", self.pos, hint="end it with a newline or `;`")

    def return_form(self) -> t.Node:
        start = self.pos
        self.pos += 6
        self.blanks()
        value = self.atom() if self.starts_atom(False) else None
        return t.Return(start, value.end if value else start + 6, value)

    def if_form(self) -> t.Node:
        start = self.pos
        arms: list[t.Node] = []
        orelse: t.Node | None = None
        word = "if"
        while True:
            at = self.pos
            self.pos += len(word)
            self.lines()
            if not self.starts_atom(False):
                self.fail("P0022", f"expected a condition after `{word}`", self.pos)
            cond = self.atom()
            self.lines()
            body = self.arm_block(False, f"the body of `{word}`")
            arms.append(t.Arm(at, self.pos, cond, body))
            save = self.pos
            self.lines()
            word = self.keyword()
            if word == "elsif":
                continue
            if word == "else":
                self.pos += 4
                self.lines()
                orelse = self.arm_block(False, "the body of `else`")
            else:
                self.pos = save
            break
        return t.If(start, self.pos, arms, orelse)

    def case_form(self) -> t.Node:
        start = self.pos
        self.pos += 4
        self.lines()
        if not self.starts_atom(False):
            self.fail("P0022", "expected a value after `case`", self.pos)
        scrutinee = self.atom()
        self.lines()
        if self.peek() != "[":
            self.fail("P0057", "the arms of `case` are written out: [`tag: { |x| … }, …]", self.pos)
        opened = self.pos
        self.enter("[", opened)
        self.pos += 1
        self.lines()
        arms: list[t.Field] = []
        while self.peek() != "]":
            at = self.pos
            if self.peek() != "`":
                self.fail("P0057", "an arm of `case` starts with a tag", at, hint="write `tag: { |x| … }")
            self.pos += 1
            tag = self.name()
            if not tag:
                self.fail("P0020", "expected a tag's name after `` ` ``", self.pos)
            if any(a.key == tag for a in arms):
                self.fail("P0058", f"two arms for `` `{tag} ``", at, self.pos)
            end = self.pos
            self.lines()
            self.expect(":", "after an arm's tag")
            self.lines()
            arms.append(t.Field(at, end, tag, self.arm_block(True, "an arm of `case`")))
            self.comma()
        self.pos += 1
        self.leave()
        if not arms:
            self.fail("P0057", "`case` needs at least one arm", opened, self.pos)
        return t.Case(start, self.pos, scrutinee, arms)

    def two_blocks(self) -> t.Node:
        start = self.pos
        word = self.keyword()
        second = "a handler" if word == "try" else "a cleanup"
        self.pos += len(word)
        self.blanks()
        if not self.starts_atom(False):
            self.fail("P0022", f"expected a block after `{word}`", self.pos)
        body = self.atom()
        self.blanks()
        if not self.starts_atom(False):
            self.fail("P0022", f"`{word}` takes a body and {second}", self.pos, hint=f"write {word} {{ … }} {{ … }}")
        other = self.atom()
        end = self.pos
        redirects = self.redirects()
        if word == "try":
            return t.Try(start, end, body, other, redirects)
        return t.Guard(start, end, body, other, redirects)

    def within_form(self) -> t.Node:
        start = self.pos
        self.pos += 6
        self.blanks()
        if self.peek() != "[":
            self.fail(
                "P0061",
                "the options of `within` are written in its own bracket",
                self.pos,
                hint="write within [dir: $d] { … }",
            )
        self.enter("[", self.pos)
        self.pos += 1
        self.lines()
        options: list[t.Field] = []
        while self.peek() != "]":
            at = self.pos
            if self.peek() == ":":
                self.fail("P0061", "`[:]` names no options", at, hint="the empty option set is []")
            if self.at("..."):
                self.fail("P0061", "options can't be spread", at, at + 3, "write each option out")
            end = self.word_end(WORD_END, True)
            word = self.text[at:end]
            self.pos = end
            self.lines()
            if not word or self.peek() != ":":
                if end >= self.size:
                    self.incomplete("an option is missing")
                self.fail("P0061", "expected `option: value`", at, end)
            if word not in OPTIONS:
                self.fail("P0062", f"`within` has no option `{word}`", at, end, "it has " + ", ".join(OPTIONS))
            if any(o.key == word for o in options):
                self.fail("P0062", f"the option `{word}` is written twice", at, end)
            self.pos += 1
            self.lines()
            value = self.atom(True)
            if word == "handlers" and not (
                (isinstance(value, t.RecordLit) and value.base is None)
                or (isinstance(value, t.ListLit) and not value.items)
            ):
                self.fail("P0063", "handlers are written out: [name: { |args| … }]", value.start, value.end)
            options.append(t.Field(at, end, word, value))
            self.comma()
        self.pos += 1
        self.leave()
        self.blanks()
        if not self.starts_atom(False):
            self.fail("P0022", "expected the body of `within`", self.pos)
        body = self.atom()
        end = self.pos
        return t.Within(start, end, options, body, self.redirects())

    # Commands

    def command(self) -> t.Node:
        start = self.pos
        caret = False
        if self.peek() == "^":
            caret = True
            self.pos += 1
            end = self.word_end(WORD_END, False)
            word = self.text[self.pos : end]
            if not word or "/" in word:
                self.fail(
                    "P0064",
                    "`^` takes a plain command name",
                    self.pos,
                    end,
                    "a path runs a program directly and needs no `^`",
                )
            head: t.Node = t.Word(self.pos, end, word)
            self.pos = end
            self.check_glue(start, False)
        else:
            if self.peek() in ("<", ">"):
                self.fail("P0065", "a redirect needs a command before it", self.pos)
            if self.peek() == "&":
                self.ampersand()
            if self.peek() == "?":
                self.fail("P0054", "`?` follows a command, at most one newline after it", self.pos)
            if self.peek() == "|":
                self.fail("P0066", "`|` needs a stage before it", self.pos)
            head = self.atom()
        args: list[t.Node] = []
        redirects: list[t.Redirect] = []
        end = self.pos
        while True:
            self.line_rest()
            at = self.pos
            redirect = self.redirect(redirects)
            if redirect is not None:
                redirects.append(redirect)
            elif self.at("...") and self.text[at + 3 : at + 4] not in ("", " ", "\t", "\n"):
                self.pos += 3
                args.append(t.Spread(at, self.pos, self.atom()))
            elif self.peek() == "^":
                self.fail("P0064", "`^` stands only before a command's name", at, hint="quote it: '^'")
            elif self.starts_atom(False):
                args.append(self.atom())
            else:
                break
            end = self.pos
        return t.Command(start, end, head, caret, args, redirects)

    def redirects(self) -> list[t.Redirect]:
        found: list[t.Redirect] = []
        while True:
            self.line_rest()
            redirect = self.redirect(found)
            if redirect is None:
                return found
            found.append(redirect)

    def redirect(self, before: list[t.Redirect]) -> t.Redirect | None:
        """A redirect at the position, or None."""
        text, start = self.text, self.pos
        pos = start
        while pos < self.size and text[pos] in "0123456789":
            pos += 1
        mark = text[pos : pos + 1]
        if mark not in ("<", ">") or not mark:
            return None
        digits = text[start:pos]
        fd = int(digits[:4]) if digits else (0 if mark == "<" else 1)
        if fd > 2:
            self.fail(
                "P0070",
                f"there is no descriptor {digits}",
                start,
                pos + 1,
                "standard input (0), output (1) and error (2) are the only three",
            )
        self.pos = pos + 1
        if mark == "<":
            if self.peek() == "<":
                self.pos += 1
                return self.here_string(start, fd, before)
            op = "<"
            if fd != 0:
                self.fail("P0071", "`<` redirects standard input only", start, self.pos)
        elif self.peek() == "&":
            return self.duplicate(start, fd, before)
        elif self.peek() in ("~", ">"):
            op = ">" + self.peek()
            self.pos += 1
        else:
            op = ">"
        if mark == ">" and fd == 0:
            self.fail("P0071", "standard input can't be written", start, self.pos)
        self.blanks()
        if not self.starts_atom(False):
            self.fail("P0072", "a redirect needs a file", self.pos)
        target = self.atom()
        return self.bind_stream(t.Redirect(start, self.pos, fd, op, target), before)

    def here_string(self, start: int, fd: int, before: list[t.Redirect]) -> t.Redirect:
        if fd != 0:
            self.fail("P0071", "`<<` feeds standard input only", start, self.pos)
        if self.peek() not in (" ", "\t"):
            self.fail("P0073", "a space must follow `<<`", start, self.pos + 1, "write cmd << 'text'")
        self.blanks()
        if not self.starts_atom(False):
            self.fail("P0073", "`<<` needs a text", self.pos)
        target = self.atom()
        if isinstance(target, t.Word):
            self.fail(
                "P0073",
                "`<<` takes a string, not a heredoc delimiter",
                target.start,
                target.end,
                f"quote it: << '{target.text}'",
            )
        return self.bind_stream(t.Redirect(start, self.pos, 0, "<<", target), before)

    def duplicate(self, start: int, fd: int, before: list[t.Redirect]) -> t.Redirect:
        self.pos += 1
        at = self.pos
        while self.pos < self.size and self.text[self.pos] in "0123456789":
            self.pos += 1
        other = self.text[at : self.pos]
        if fd == 1 and other == "2":
            self.fail(
                "P0074",
                "standard output can't be sent to standard error",
                start,
                self.pos,
                "write a diagnostic with `warn`; `2>&1` sends standard error to standard output",
            )
        if not (fd == 2 and other == "1"):
            self.fail(
                "P0070",
                "only `2>&1` joins two streams",
                start,
                self.pos,
                "standard input, output and error are the only three",
            )
        self.check_glue(start, False)
        return self.bind_stream(t.Redirect(start, self.pos, 2, ">&1", None), before)

    def bind_stream(self, redirect: t.Redirect, before: list[t.Redirect]) -> t.Redirect:
        for other in before:
            if other.fd == redirect.fd:
                self.fail(
                    "P0075",
                    f"{STREAMS[redirect.fd]} is redirected twice; which one do you mean?",
                    redirect.start,
                    redirect.end,
                )
        return redirect


def is_name(word: str) -> bool:
    """Whether a word has the shape of a binding name."""
    return bool(word) and word[0] in NAME_START and all(c in NAME_REST for c in word)
