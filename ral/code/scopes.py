"""Branches and scopes: `if`, `case`, `try`, `?`, `guard`, `within`, redirects, captures, pipelines.

A scope form that would be the sixteenth in its function goes into a function of its own: Python nests at most 20 blocks
that need cleanup in one.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

from ral.code.buffer import mark
from ral.code.tails import Tails, known
from ral.code.values import Values
from ral.core import terms as c

MAX_SCOPES = 15


class Scopes(Values):
    """The part of the generator that writes forms which force a block in place."""

    tails: Tails

    def run(self, m: c.Comp, dest: str) -> None:
        raise NotImplementedError

    def run_seq(self, seq: c.Seq, dest: str) -> None:
        raise NotImplementedError

    def finish(self, expr: str, dest: str, start: int, end: int) -> None:
        raise NotImplementedError

    def ready(self, call: str, bounces: bool, start: int, end: int) -> str:
        raise NotImplementedError

    def code_of(self, m: c.Comp, prefix: str) -> str:
        raise NotImplementedError

    def destructure(self, pattern: c.Pattern, name: str) -> None:
        raise NotImplementedError

    def branch(self, b: c.Branch, payload: str | None, dest: str, node: c.Term) -> None:
        """Force an arm in place."""
        if b.capture:
            name = self.temp()
            self.captured_branch(b, payload, name, node)
            self.finish(name, dest, node.start, node.end)
            return
        if b.body is not None:
            if b.param is not None:
                assert payload is not None
                if isinstance(b.param, c.Bind):
                    b.param.var.owner = self.fn
                    self.emit(f"{b.param.var.py} = {payload}", node.start, node.end)
                else:
                    self.destructure(b.param, payload)
            self.run_seq(b.body, dest)
            return
        assert b.value is not None
        head = self.value(b.value)
        target = known(b)
        if target is not None and target is self.fn.thunk and self.fn.loop and dest == "return":
            self.emit("continue", node.start, node.end)
        elif dest == "return":
            self.emit(
                f"return ({head}.a{1 if payload else 0}{', ' + payload if payload else ''},)", node.start, node.end
            )
        else:
            call = f"{head}.a1(sh, {payload})" if payload else f"{head}.a0(sh)"
            self.finish(self.ready(call, True, node.start, node.end), dest, node.start, node.end)

    def captured_branch(self, b: c.Branch, payload: str | None, name: str, node: c.Term) -> None:
        token = self.open_capture(node)
        self.branch(Plain(b), payload, "", node)
        self.close_capture(token, name, node)

    def choice(self, m: c.If, dest: str) -> None:
        inner = dest if m.orelse is not None else ""
        pending = ""
        if not all(self.simple(cond) for cond, _ in m.arms[1:]):
            # A later condition needs statements of its own: a flag keeps the arms side by side, however many there are.
            pending = self.temp()
            self.emit(f"{pending} = True", m.start, m.end)
        for number, (cond, body) in enumerate(m.arms):
            depth = self.fn.depth
            if number and pending:
                self.emit(f"if {pending}:", cond.start, cond.end)
                self.fn.depth += 1
            self.emit(f"{'elif' if number and not pending else 'if'} {self.value(cond)}:", cond.start, cond.end)
            self.fn.depth += 1
            if pending:
                self.emit(f"{pending} = False", cond.start, cond.end)
            self.branch(body, None, inner, m)
            self.emit("pass", m.start, m.end)
            self.fn.depth = depth
        if m.orelse is None:
            self.finish("None", dest, m.start, m.end)
            return
        self.emit(f"if {pending}:" if pending else "else:", m.start, m.end)
        self.fn.depth += 1
        self.branch(m.orelse, None, dest, m)
        self.emit("pass", m.start, m.end)
        self.fn.depth -= 1

    def case(self, m: c.Case, dest: str) -> None:
        name, tag, payload = self.temp(), self.temp(), self.temp()
        self.emit(f"{name} = {self.value(m.scrutinee)}", m.start, m.end)
        self.emit(f"{tag} = {name}.tag; {payload} = {name}.payload", m.start, m.end)
        for number, (label, arm) in enumerate(m.arms):
            self.emit(f"{'elif' if number else 'if'} {tag} == {label!r}:", m.start, m.end)
            self.fn.depth += 1
            self.branch(arm, payload, dest, m)
            self.emit("pass", m.start, m.end)
            self.fn.depth -= 1
        self.emit("else:", m.start, m.end)
        self.emit(f" no_arm({tag})", m.start, m.end)

    def try_(self, m: c.Try, dest: str) -> None:
        if self.hoist(m, dest):
            return
        err, name = self.temp(), self.temp()
        self.emit(f"{err} = None", m.start, m.end)
        self.protected(lambda: self.branch(m.body, None, name if dest else "", m), m)
        self.emit(f"except FAILS as e: {err} = e", m.start, m.end)
        self.emit(f"if {err} is not None:", m.start, m.end)
        self.fn.depth += 1
        payload = self.temp()
        self.emit(f"{payload} = error_record({err}); {err} = None", m.start, m.end)
        # A handler sees a cancellation but can't recover from it: nothing that follows it may run.
        self.protected(lambda: self.branch(m.handler, payload, dest, m), m)
        self.emit("finally:", m.start, m.end)
        self.emit(" if sh.flag: check(sh)", m.start, m.end)
        self.fn.depth -= 1
        if dest:
            self.emit("else:", m.start, m.end)
            self.fn.depth += 1
            self.finish(name, dest, m.start, m.end)
            self.emit("pass", m.start, m.end)
            self.fn.depth -= 1

    def choose(self, m: c.Choose, arms: list[c.Branch], dest: str) -> None:
        if self.hoist(m, dest):
            return
        done, name = self.temp(), self.temp()
        self.emit(f"{done} = False", m.start, m.end)
        for number, arm in enumerate(arms[:-1]):
            if number:
                self.emit(f"if not {done}:", m.start, m.end)
                self.fn.depth += 1
            self.protected(lambda arm=arm: self.branch(arm, None, name, m), m)  # type: ignore[misc]
            self.emit("except FAILS as e: next_arm(sh, e)", m.start, m.end)
            self.emit(f"else: {done} = True", m.start, m.end)
            if number:
                self.fn.depth -= 1
        self.emit(f"if not {done}:", m.start, m.end)
        self.fn.depth += 1
        self.branch(arms[-1], None, dest, m)
        self.emit("pass", m.start, m.end)
        self.fn.depth -= 1
        if dest:
            self.emit("else:", m.start, m.end)
            self.fn.depth += 1
            self.finish(name, dest, m.start, m.end)
            self.emit("pass", m.start, m.end)
            self.fn.depth -= 1

    def protected(self, body: "Callable[[], None]", m: c.Term) -> None:
        """`try:` and a body."""
        self.emit("try:", m.start, m.end)
        self.fn.depth += 1
        self.fn.scopes += 1
        body()
        self.emit("pass", m.start, m.end)
        self.fn.scopes -= 1
        self.fn.depth -= 1

    def hoist(self, m: c.Comp, dest: str) -> bool:
        """Give a scope that is too deep for its function a function of its own."""
        if self.fn.scopes < MAX_SCOPES:
            return False
        name = self.code_of(m, "deep")
        self.finish(self.ready(f"{name}(sh)", True, m.start, m.end), dest, m.start, m.end)
        return True

    def scope(self, m: "c.Guard | c.Within | c.Redirect", dest: str) -> None:
        if self.hoist(m, dest):
            return
        token = self.temp()
        name = self.temp() if dest else ""
        if isinstance(m, c.Guard):
            body, cleanup = m.body, m.cleanup
            self.emit(f"{token} = guard_open(sh)", m.start, m.end)
            self.protected(lambda: self.branch(body, None, name, m), m)
            self.emit(f"except BaseException as e: {token} = e", m.start, m.end)
            held = self.temp()
            self.emit(f"{held} = guard_enter(sh, {token})", m.start, m.end)
            self.emit(f"if {held} is not None:", m.start, m.end)
            self.fn.depth += 1
            self.protected(lambda: self.branch(cleanup, None, "", m), m)
            self.emit(f"finally: guard_leave(sh, {held})", m.start, m.end)
            self.fn.depth -= 1
            self.emit(f"if {token} is not None: raise {token}", 0, 0)
        elif isinstance(m, c.Within):
            options = self.within_options(m)
            self.emit(f"{token} = {mark(m.start, m.end, f'within_enter(sh, {options})')}", m.start, m.end)
            inner = m.body
            self.protected(lambda: self.branch(inner, None, name, m), m)
            self.emit(f"except BaseException as e: within_fail(sh, {token}, e)", m.start, m.end)
            self.emit(f"else: within_leave(sh, {token})", m.start, m.end)
        else:
            streams: list[str] = []
            values = self.values([r.target for r in m.redirects if r.target is not None])
            for r in m.redirects:
                target = values.pop(0) if r.target is not None else "None"
                streams.append(f"({r.fd}, {r.op!r}, {target})")
            inner_comp = m.body
            self.emit(
                f"{token} = {mark(m.start, m.end, f'redirect_open(sh, [{chr(44).join(streams)}])')}", m.start, m.end
            )
            self.protected(lambda: self.run(inner_comp, name), m)
            self.emit(f"except BaseException: redirect_fail(sh, {token}); raise", m.start, m.end)
            self.emit(f"else: redirect_close(sh, {token})", m.start, m.end)
        if dest:
            self.finish(name, dest, m.start, m.end)

    def within_options(self, m: c.Within) -> str:
        values = self.values([v for _, v in m.options] + [v for _, v in m.arms])
        parts = [f"{key!r}: {values[i]}" for i, (key, _) in enumerate(m.options)]
        if m.arms:
            named = values[len(m.options) :]
            arms = ", ".join(f"{name!r}: {named[i]}" for i, (name, _) in enumerate(m.arms))
            parts.append(f"'handlers': {{{arms}}}")
        return "{" + ", ".join(parts) + "}"

    def capture(self, m: c.Comp, name: str) -> None:
        """Run a command; the name gets its decoded output."""
        if self.fn.scopes >= MAX_SCOPES:
            code = self.code_of(m, "deep")
            token = self.open_capture(m)
            self.emit(self.ready(f"{code}(sh)", True, m.start, m.end), m.start, m.end)
            self.close_capture(token, name, m)
            return
        token = self.open_capture(m)
        self.run(m, "")
        self.close_capture(token, name, m)

    def open_capture(self, m: c.Term) -> str:
        token = self.temp()
        self.emit(f"{token} = capture_open(sh)", m.start, m.end)
        self.emit("try:", m.start, m.end)
        self.fn.depth += 1
        self.fn.scopes += 1
        return token

    def close_capture(self, token: str, name: str, m: c.Term) -> None:
        self.emit("pass", m.start, m.end)
        self.fn.depth -= 1
        self.fn.scopes -= 1
        self.emit(f"except BaseException: capture_fail(sh, {token}); raise", m.start, m.end)
        self.emit(f"{name} = {mark(m.start, m.end, f'capture_close(sh, {token})')}", m.start, m.end)

    def pipeline(self, m: c.Pipeline, stages: list[c.Comp], dest: str) -> None:
        """Stages in order: (name, mode, arguments, redirects) for a command, else the code of a stage."""
        parts: list[str] = []
        for stage in stages:
            core, redirects = (stage.body, stage.redirects) if isinstance(stage, c.Redirect) else (stage, [])
            if isinstance(core, c.Exec) and core.mode != "base":
                args = self.argument_list(core.args)
                streams = []
                for r in redirects:
                    target = self.value(r.target) if r.target is not None else "None"
                    streams.append(f"({r.fd}, {r.op!r}, {target})")
                span = self.source.text[stage.start : stage.end]
                part = self.temp("s")
                call = f"[{core.name!r}, {core.mode!r}, {args}, [{', '.join(streams)}], {span!r}]"
                self.emit(f"{part} = {call}", m.start, m.end)
                parts.append(part)
            else:
                parts.append(self.code_of(stage, "st"))
        self.finish(mark(m.start, m.end, f"pipeline_(sh, [{', '.join(parts)}])"), dest, m.start, m.end)


class Plain(c.Branch):
    """A branch seen without its capture, while the capture around it is being written."""

    __slots__ = ()

    def __init__(self, b: c.Branch) -> None:
        super().__init__(b.param, b.body, b.value)
