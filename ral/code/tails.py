"""Tail calls, found before code is written: which blocks loop, and which may hand a call to the trampoline."""

from ral.core import terms as c


def tails(comp: c.Comp) -> "list[c.Apply | c.Force | c.Branch]":
    """The calls in tail position; a `Branch` stands for a block that is forced there."""
    found: list[c.Apply | c.Force | c.Branch] = []
    stack: list[c.Comp] = [comp]
    while stack:
        m = stack.pop()
        if isinstance(m, c.Seq):
            if m.items:
                stack.append(m.items[-1])
        elif isinstance(m, c.Apply | c.Force):
            found.append(m)
        elif isinstance(m, c.If):
            if m.orelse is not None:
                for b in [b for _, b in m.arms] + [m.orelse]:
                    follow(b, stack, found)
        elif isinstance(m, c.Case):
            for _, b in m.arms:
                follow(b, stack, found)
        elif isinstance(m, c.Try):
            follow(m.handler, stack, found)
        elif isinstance(m, c.Choose):
            follow(m.arms[-1], stack, found)
    return found


def follow(b: c.Branch, stack: list[c.Comp], found: "list[c.Apply | c.Force | c.Branch]") -> None:
    if b.capture:
        return
    if b.body is not None:
        stack.append(b.body)
    else:
        found.append(b)


def known(m: "c.Apply | c.Force | c.Branch") -> c.Thunk | None:
    """The literal block that a call certainly runs, with all its parameters given."""
    if isinstance(m, c.Apply):
        if isinstance(m.fn, c.Local) and m.fn.var.thunk is not None and len(m.fn.var.thunk.params) == len(m.args):
            return m.fn.var.thunk
        return None
    value = m.value
    if isinstance(value, c.Local) and value.var.thunk is not None and not value.var.thunk.params:
        if isinstance(m, c.Force) or m.param is None:
            return value.var.thunk
    return None


class Tails:
    """Facts about blocks, computed once each."""

    def __init__(self) -> None:
        self.memo: dict[int, bool] = {}

    def loops(self, thunk: c.Thunk) -> bool:
        """Whether the block calls itself in tail position."""
        return any(known(m) is thunk for m in tails(thunk.body))

    def bounces(self, thunk: c.Thunk) -> bool:
        """Whether running the block may return a tail call instead of a value."""
        key = id(thunk)
        if key in self.memo:
            return self.memo[key]
        self.memo[key] = True  # a cycle through other blocks needs the trampoline
        result = False
        for m in tails(thunk.body):
            target = known(m)
            if target is thunk:
                continue
            if isinstance(m, c.Apply) and isinstance(m.fn, c.Native):
                continue
            if isinstance(m, c.Force) and isinstance(m.value, c.Thunk):
                continue
            if target is None or self.bounces(target):
                result = True
                break
        self.memo[key] = result
        return result
