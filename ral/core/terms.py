"""Core terms: call-by-push-value, with computations in value positions kept as `Run`.

The checker writes `ty` on values and computations and `capture` where a command's output is the value; nothing else changes
once the tree is built.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ral.check.types import Comp as CompType
    from ral.check.types import Type


class Var:
    """A binding: its name in the program, its unique name in generated code, and its type scheme once checked."""

    __slots__ = ("end", "name", "owner", "py", "scheme", "start", "thunk")

    def __init__(self, name: str, py: str, start: int, end: int) -> None:
        self.name = name
        self.py = py
        self.start = start
        self.end = end
        self.scheme: object = None  # check.types.Scheme
        self.thunk: Thunk | None = None  # the literal block that it names, when it names one
        self.owner: object = None  # the generated function that holds it


class Term:
    """Any core term; `start` and `end` are offsets in its source."""

    __slots__ = ("end", "start")

    start: int
    end: int


class Value(Term):
    """A value term."""

    __slots__ = ("ty",)

    ty: "Type"


class Pattern(Term):
    """A pattern."""

    __slots__ = ("ty",)

    ty: "Type"


class Comp(Term):
    """A computation term."""

    __slots__ = ("cty",)

    cty: "CompType"


class Item:
    """An element of a list or an argument: the value, and whether it is spread."""

    __slots__ = ("spread", "value")

    def __init__(self, value: Value, spread: bool) -> None:
        self.value = value
        self.spread = spread


class MapItem:
    """A map entry: key and value, or a spread map when there is no key."""

    __slots__ = ("key", "value")

    def __init__(self, key: Value | None, value: Value) -> None:
        self.key = key
        self.value = value


class Branch:
    """An arm that a form forces in place: a literal block, or a value that holds one. `capture` is the checker's."""

    __slots__ = ("body", "capture", "param", "value")

    def __init__(self, param: Pattern | None, body: "Seq | None", value: Value | None) -> None:
        self.param = param
        self.body = body
        self.value = value
        self.capture = False


class Redir:
    """One redirect: descriptor, operator, and its target value (None for `2>&1`)."""

    __slots__ = ("end", "fd", "op", "start", "target")

    def __init__(self, fd: int, op: str, target: Value | None, start: int, end: int) -> None:
        self.fd = fd
        self.op = op
        self.target = target
        self.start = start
        self.end = end


# Values


class Const(Value):
    """A written value; `bare` words are plain text by now."""

    __slots__ = ("value",)
    __match_args__ = ("value",)

    def __init__(self, start: int, end: int, value: object) -> None:
        self.start = start
        self.end = end
        self.value = value


class Tilde(Value):
    """A word that starts with `~`: the home directory is read when it is evaluated."""

    __slots__ = ("text",)
    __match_args__ = ("text",)

    def __init__(self, start: int, end: int, text: str) -> None:
        self.start = start
        self.end = end
        self.text = text


class Local(Value):
    """A reference to a binding."""

    __slots__ = ("var",)
    __match_args__ = ("var",)

    def __init__(self, start: int, end: int, var: "Var") -> None:
        self.start = start
        self.end = end
        self.var = var


class Native(Value):
    """A builtin held as a value."""

    __slots__ = ("name",)
    __match_args__ = ("name",)

    def __init__(self, start: int, end: int, name: str) -> None:
        self.start = start
        self.end = end
        self.name = name


class Ambient(Value):
    """`$ENV`, `$CWD`, `$USER`, `$NPROC`, `$ARGS`."""

    __slots__ = ("name",)
    __match_args__ = ("name",)

    def __init__(self, start: int, end: int, name: str) -> None:
        self.start = start
        self.end = end
        self.name = name


class ListOf(Value):
    """A list; spread items are lists."""

    __slots__ = ("items",)
    __match_args__ = ("items",)

    def __init__(self, start: int, end: int, items: "list[Item]") -> None:
        self.start = start
        self.end = end
        self.items = items


class RecordOf(Value):
    """A record, perhaps an update of one."""

    __slots__ = ("base", "fields")
    __match_args__ = ("base", "fields")

    def __init__(self, start: int, end: int, base: "Value | None", fields: "list[tuple[str, Value]]") -> None:
        self.start = start
        self.end = end
        self.base = base
        self.fields = fields


class MapOf(Value):
    """A map; entries in order."""

    __slots__ = ("entries",)
    __match_args__ = ("entries",)

    def __init__(self, start: int, end: int, entries: "list[MapItem]") -> None:
        self.start = start
        self.end = end
        self.entries = entries


class Variant(Value):
    """A tagged value."""

    __slots__ = ("payload", "tag")
    __match_args__ = ("tag", "payload")

    def __init__(self, start: int, end: int, tag: str, payload: "Value | None") -> None:
        self.start = start
        self.end = end
        self.tag = tag
        self.payload = payload


class Text(Value):
    """An interpolated string."""

    __slots__ = ("parts",)
    __match_args__ = ("parts",)

    def __init__(self, start: int, end: int, parts: "list[Value]") -> None:
        self.start = start
        self.end = end
        self.parts = parts


class Index(Value):
    """One selection."""

    __slots__ = ("base", "key")
    __match_args__ = ("base", "key")

    def __init__(self, start: int, end: int, base: "Value", key: "Value") -> None:
        self.start = start
        self.end = end
        self.base = base
        self.key = key


class Binary(Value):
    """An infix operation."""

    __slots__ = ("left", "op", "right")
    __match_args__ = ("op", "left", "right")

    def __init__(self, start: int, end: int, op: str, left: "Value", right: "Value") -> None:
        self.start = start
        self.end = end
        self.op = op
        self.left = left
        self.right = right


class Unary(Value):
    """`-` or `not`."""

    __slots__ = ("op", "operand")
    __match_args__ = ("op", "operand")

    def __init__(self, start: int, end: int, op: str, operand: "Value") -> None:
        self.start = start
        self.end = end
        self.op = op
        self.operand = operand


class Thunk(Value):
    """A block or function."""

    __slots__ = ("body", "name", "params")
    __match_args__ = ("params", "body")

    def __init__(self, start: int, end: int, params: "list[Pattern]", body: "Seq") -> None:
        self.start = start
        self.end = end
        self.params = params
        self.body = body
        self.name: str = ""


class Run(Value):
    """A computation run where a value is wanted; `capture` is set by the checker."""

    __slots__ = ("capture", "comp")
    __match_args__ = ("comp",)

    def __init__(self, start: int, end: int, comp: "Comp") -> None:
        self.start = start
        self.end = end
        self.comp = comp
        self.capture: bool = False


# Patterns


class Bind(Pattern):
    """Binds the value."""

    __slots__ = ("var",)
    __match_args__ = ("var",)

    def __init__(self, start: int, end: int, var: "Var") -> None:
        self.start = start
        self.end = end
        self.var = var


class Ignore(Pattern):
    """Binds nothing."""

    __slots__ = ()
    __match_args__ = ()

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end


class ListPattern(Pattern):
    """A list."""

    __slots__ = ("items", "rest")
    __match_args__ = ("items", "rest")

    def __init__(self, start: int, end: int, items: "list[Pattern]", rest: "Pattern | None") -> None:
        self.start = start
        self.end = end
        self.items = items
        self.rest = rest


class FieldPattern(Pattern):
    """Named fields of a record or map."""

    __slots__ = ("fields",)
    __match_args__ = ("fields",)

    def __init__(self, start: int, end: int, fields: "list[tuple[str, Pattern]]") -> None:
        self.start = start
        self.end = end
        self.fields = fields


# Computations


class Return(Comp):
    """Produces the value."""

    __slots__ = ("value",)
    __match_args__ = ("value",)

    def __init__(self, start: int, end: int, value: "Value") -> None:
        self.start = start
        self.end = end
        self.value = value


class Force(Comp):
    """Runs a thunk."""

    __slots__ = ("value",)
    __match_args__ = ("value",)

    def __init__(self, start: int, end: int, value: "Value") -> None:
        self.start = start
        self.end = end
        self.value = value


class Apply(Comp):
    """Application, one argument at a time."""

    __slots__ = ("args", "fn", "head")
    __match_args__ = ("fn", "args", "head")

    def __init__(self, start: int, end: int, fn: "Value", args: "list[Value]", head: str) -> None:
        self.start = start
        self.end = end
        self.fn = fn
        self.args = args
        self.head = head


class Exec(Comp):
    """A command: mode `bare`, `caret`, `path` or `base`."""

    __slots__ = ("args", "mode", "name")
    __match_args__ = ("name", "mode", "args")

    def __init__(self, start: int, end: int, name: str, mode: str, args: "list[Item]") -> None:
        self.start = start
        self.end = end
        self.name = name
        self.mode = mode
        self.args = args


class Quit(Comp):
    """`exit`."""

    __slots__ = ("value",)
    __match_args__ = ("value",)

    def __init__(self, start: int, end: int, value: "Value | None") -> None:
        self.start = start
        self.end = end
        self.value = value


class If(Comp):
    """Conditional choice."""

    __slots__ = ("arms", "orelse")
    __match_args__ = ("arms", "orelse")

    def __init__(self, start: int, end: int, arms: "list[tuple[Value, Branch]]", orelse: "Branch | None") -> None:
        self.start = start
        self.end = end
        self.arms = arms
        self.orelse = orelse


class Case(Comp):
    """Elimination of a variant."""

    __slots__ = ("arms", "scrutinee")
    __match_args__ = ("scrutinee", "arms")

    def __init__(self, start: int, end: int, scrutinee: "Value", arms: "list[tuple[str, Branch]]") -> None:
        self.start = start
        self.end = end
        self.scrutinee = scrutinee
        self.arms = arms


class Try(Comp):
    """Recovery; the handler takes the error record."""

    __slots__ = ("body", "handler")
    __match_args__ = ("body", "handler")

    def __init__(self, start: int, end: int, body: "Branch", handler: "Branch") -> None:
        self.start = start
        self.end = end
        self.body = body
        self.handler = handler


class Choose(Comp):
    """A `?` chain."""

    __slots__ = ("arms",)
    __match_args__ = ("arms",)

    def __init__(self, start: int, end: int, arms: "list[Branch]") -> None:
        self.start = start
        self.end = end
        self.arms = arms


class Guard(Comp):
    """Cleanup on every way out."""

    __slots__ = ("body", "cleanup")
    __match_args__ = ("body", "cleanup")

    def __init__(self, start: int, end: int, body: "Branch", cleanup: "Branch") -> None:
        self.start = start
        self.end = end
        self.body = body
        self.cleanup = cleanup


class Within(Comp):
    """A dynamic scope."""

    __slots__ = ("arms", "body", "options")
    __match_args__ = ("options", "arms", "body")

    def __init__(
        self, start: int, end: int, options: "list[tuple[str, Value]]", arms: "list[tuple[str, Value]]", body: "Branch"
    ) -> None:
        self.start = start
        self.end = end
        self.options = options
        self.arms = arms
        self.body = body


class Redirect(Comp):
    """Streams bound for the body."""

    __slots__ = ("body", "redirects")
    __match_args__ = ("body", "redirects")

    def __init__(self, start: int, end: int, body: "Comp", redirects: "list[Redir]") -> None:
        self.start = start
        self.end = end
        self.body = body
        self.redirects = redirects


class Pipeline(Comp):
    """Two or more stages over byte pipes."""

    __slots__ = ("stages",)
    __match_args__ = ("stages",)

    def __init__(self, start: int, end: int, stages: "list[Comp]") -> None:
        self.start = start
        self.end = end
        self.stages = stages


class Spawn(Comp):
    """A trailing `&`."""

    __slots__ = ("body", "text")
    __match_args__ = ("body", "text")

    def __init__(self, start: int, end: int, body: "Comp", text: str) -> None:
        self.start = start
        self.end = end
        self.body = body
        self.text = text


class Let(Comp):
    """A binding statement."""

    __slots__ = ("capture", "pattern", "rhs")
    __match_args__ = ("pattern", "rhs")

    def __init__(self, start: int, end: int, pattern: "Pattern", rhs: "Comp") -> None:
        self.start = start
        self.end = end
        self.pattern = pattern
        self.rhs = rhs
        self.capture: bool = False


class Rec(Comp):
    """Named blocks that may refer to each other."""

    __slots__ = ("group",)
    __match_args__ = ("group",)

    def __init__(self, start: int, end: int, group: "list[tuple[Var, Thunk]]") -> None:
        self.start = start
        self.end = end
        self.group = group


class Seq(Comp):
    """Statements; its result is the last one's."""

    __slots__ = ("items",)
    __match_args__ = ("items",)

    def __init__(self, start: int, end: int, items: "list[Comp]") -> None:
        self.start = start
        self.end = end
        self.items = items
