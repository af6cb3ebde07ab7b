"""Function values and the trampoline.

A function value keeps its code in slot `aK`, K being the number of parameters that the code takes; the other `aJ` are
partial or over-application. A call of J arguments to an unknown value is `f.aJ(shell, …)`: no arity test at the call.

A tail call that is not a self call returns the tuple (code, argument, …) to whoever runs it, so a value is never a tuple.

Every call on the path is by position and from Python to Python: `f(*args)`, `__call__`, generators and `functools.partial`
put a frame on the C stack, and a program's recursion would overrun it.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ral.machine.shell import Shell

    Code = Callable[..., Any]


def run(sh: "Shell", r: "Any") -> "Any":
    """Run tail calls until a value comes back."""
    while type(r) is tuple:
        n = len(r)
        if n == 2:
            r = r[0](sh, r[1])
        elif n == 3:
            r = r[0](sh, r[1], r[2])
        elif n == 1:
            r = r[0](sh)
        elif n == 4:
            r = r[0](sh, r[1], r[2], r[3])
        elif n == 5:
            r = r[0](sh, r[1], r[2], r[3], r[4])
        else:
            r = r[0](sh, *r[1:])
    return r


class Fn:
    """A block or a function."""

    __slots__ = ()

    def code(self) -> "Code":
        raise NotImplementedError

    def arity(self) -> int:
        raise NotImplementedError

    def shown(self) -> str:
        """The abbreviated form, `<|x| block>`."""
        return f"<{self.code().__doc__ or 'block'}>"


class Fn0(Fn):
    """A block: code without parameters. Applied to arguments, it is run and its value applied."""

    __slots__ = ("a0",)

    def __init__(self, a0: "Code") -> None:
        self.a0 = a0

    def code(self) -> "Code":
        return self.a0

    def arity(self) -> int:
        return 0

    def a1(self, sh: "Shell", x: "Any") -> "Any":
        r = self.a0(sh)
        if type(r) is tuple:
            r = run(sh, r)
        return r.a1(sh, x)

    def a2(self, sh: "Shell", x: "Any", y: "Any") -> "Any":
        r = self.a0(sh)
        if type(r) is tuple:
            r = run(sh, r)
        return r.a2(sh, x, y)

    def a3(self, sh: "Shell", x: "Any", y: "Any", z: "Any") -> "Any":
        r = self.a0(sh)
        if type(r) is tuple:
            r = run(sh, r)
        return r.a3(sh, x, y, z)


class Fn1(Fn):
    """A function of one parameter."""

    __slots__ = ("a1",)

    def __init__(self, a1: "Code") -> None:
        self.a1 = a1

    def code(self) -> "Code":
        return self.a1

    def arity(self) -> int:
        return 1

    def a0(self, sh: "Shell") -> "Any":
        return self

    def a2(self, sh: "Shell", x: "Any", y: "Any") -> "Any":
        r = self.a1(sh, x)
        if type(r) is tuple:
            r = run(sh, r)
        return r.a1(sh, y)

    def a3(self, sh: "Shell", x: "Any", y: "Any", z: "Any") -> "Any":
        r = self.a1(sh, x)
        if type(r) is tuple:
            r = run(sh, r)
        return r.a2(sh, y, z)


class Fn2(Fn):
    """A function of two parameters."""

    __slots__ = ("a2",)

    def __init__(self, a2: "Code") -> None:
        self.a2 = a2

    def code(self) -> "Code":
        return self.a2

    def arity(self) -> int:
        return 2

    def a0(self, sh: "Shell") -> "Any":
        return self

    def a1(self, sh: "Shell", x: "Any") -> "Any":
        code = self.a2

        def rest(sh: "Shell", y: "Any") -> "Any":
            return code(sh, x, y)

        rest.__doc__ = code.__doc__
        return Fn1(rest)

    def a3(self, sh: "Shell", x: "Any", y: "Any", z: "Any") -> "Any":
        r = self.a2(sh, x, y)
        if type(r) is tuple:
            r = run(sh, r)
        return r.a1(sh, z)


class Fn3(Fn):
    """A function of three parameters."""

    __slots__ = ("a3",)

    def __init__(self, a3: "Code") -> None:
        self.a3 = a3

    def code(self) -> "Code":
        return self.a3

    def arity(self) -> int:
        return 3

    def a0(self, sh: "Shell") -> "Any":
        return self

    def a1(self, sh: "Shell", x: "Any") -> "Any":
        code = self.a3

        def rest(sh: "Shell", y: "Any", z: "Any") -> "Any":
            return code(sh, x, y, z)

        rest.__doc__ = code.__doc__
        return Fn2(rest)

    def a2(self, sh: "Shell", x: "Any", y: "Any") -> "Any":
        code = self.a3

        def rest(sh: "Shell", z: "Any") -> "Any":
            return code(sh, x, y, z)

        rest.__doc__ = code.__doc__
        return Fn1(rest)


class FnN(Fn):
    """A function of four parameters or more; arguments gather until all are there."""

    __slots__ = ("count", "fn", "held")

    def __init__(self, fn: "Code", count: int, held: "list[Any] | None" = None) -> None:
        self.fn = fn
        self.count = count
        self.held: list[Any] = held or []

    def code(self) -> "Code":
        return self.fn

    def arity(self) -> int:
        return self.count - len(self.held)

    def gather(self, sh: "Shell", more: "list[Any]") -> "Any":
        held = self.held + more
        missing = self.count - len(held)
        if missing > 0:
            return FnN(self.fn, self.count, held)
        if missing == 0:
            return (self.fn, *held)
        r = run(sh, (self.fn, *held[: self.count]))
        rest = held[self.count :]
        return r.a1(sh, rest[0]) if len(rest) == 1 else r.a2(sh, rest[0], rest[1])

    def a0(self, sh: "Shell") -> "Any":
        return self

    def a1(self, sh: "Shell", x: "Any") -> "Any":
        return self.gather(sh, [x])

    def a2(self, sh: "Shell", x: "Any", y: "Any") -> "Any":
        return self.gather(sh, [x, y])

    def a3(self, sh: "Shell", x: "Any", y: "Any", z: "Any") -> "Any":
        return self.gather(sh, [x, y, z])


def function(code: "Code", arity: int) -> Fn:
    """The function value of some code."""
    if arity == 1:
        return Fn1(code)
    if arity == 2:
        return Fn2(code)
    if arity == 0:
        return Fn0(code)
    if arity == 3:
        return Fn3(code)
    return FnN(code, arity)
