"""The surface tree. Every node carries the offsets `start` and `end` of its text."""


class Node:
    """Any part of the tree."""

    __slots__ = ("end", "start")

    start: int
    end: int


# Value nodes


class Word(Node):
    """A bare word: text, unless its place makes it a name."""

    __slots__ = ("text",)
    __match_args__ = ("text",)

    def __init__(self, start: int, end: int, text: str) -> None:
        self.start = start
        self.end = end
        self.text = text


class Lit(Node):
    """A written value: Int, Float, Bool, String or `None` for ()."""

    __slots__ = ("value",)
    __match_args__ = ("value",)

    def __init__(self, start: int, end: int, value: object) -> None:
        self.start = start
        self.end = end
        self.value = value


class Interp(Node):
    """A string with splices; text parts are `Lit`."""

    __slots__ = ("parts",)
    __match_args__ = ("parts",)

    def __init__(self, start: int, end: int, parts: "list[Node]") -> None:
        self.start = start
        self.end = end
        self.parts = parts


class Var(Node):
    """`$name`."""

    __slots__ = ("name",)
    __match_args__ = ("name",)

    def __init__(self, start: int, end: int, name: str) -> None:
        self.start = start
        self.end = end
        self.name = name


class Index(Node):
    """`base[key]…`, keys from left to right."""

    __slots__ = ("base", "keys")
    __match_args__ = ("base", "keys")

    def __init__(self, start: int, end: int, base: "Node", keys: "list[Node]") -> None:
        self.start = start
        self.end = end
        self.base = base
        self.keys = keys


class Binary(Node):
    """An infix operation inside `$[…]`; chains lean left."""

    __slots__ = ("left", "op", "right")
    __match_args__ = ("op", "left", "right")

    def __init__(self, start: int, end: int, op: str, left: "Node", right: "Node") -> None:
        self.start = start
        self.end = end
        self.op = op
        self.left = left
        self.right = right


class Unary(Node):
    """`-` or `not`."""

    __slots__ = ("op", "operand")
    __match_args__ = ("op", "operand")

    def __init__(self, start: int, end: int, op: str, operand: "Node") -> None:
        self.start = start
        self.end = end
        self.op = op
        self.operand = operand


class Force(Node):
    """`!value`."""

    __slots__ = ("target",)
    __match_args__ = ("target",)

    def __init__(self, start: int, end: int, target: "Node") -> None:
        self.start = start
        self.end = end
        self.target = target


class Tag(Node):
    """A variant."""

    __slots__ = ("name", "payload")
    __match_args__ = ("name", "payload")

    def __init__(self, start: int, end: int, name: str, payload: "Node | None") -> None:
        self.start = start
        self.end = end
        self.name = name
        self.payload = payload


class Block(Node):
    """`{ … }` or `{ |p …| … }`."""

    __slots__ = ("body", "params")
    __match_args__ = ("params", "body")

    def __init__(self, start: int, end: int, params: "list[Node]", body: "Program") -> None:
        self.start = start
        self.end = end
        self.params = params
        self.body = body


class Spread(Node):
    """`...value` in a list, map or argument list."""

    __slots__ = ("value",)
    __match_args__ = ("value",)

    def __init__(self, start: int, end: int, value: "Node") -> None:
        self.start = start
        self.end = end
        self.value = value


class ListLit(Node):
    """`[a, ...b]`."""

    __slots__ = ("items",)
    __match_args__ = ("items",)

    def __init__(self, start: int, end: int, items: "list[Node]") -> None:
        self.start = start
        self.end = end
        self.items = items


class RecordLit(Node):
    """`[k: v]` or `[...base, k: v]`."""

    __slots__ = ("base", "fields")
    __match_args__ = ("base", "fields")

    def __init__(self, start: int, end: int, base: "Node | None", fields: "list[Field]") -> None:
        self.start = start
        self.end = end
        self.base = base
        self.fields = fields


class MapLit(Node):
    """`[:, …]` or `[$k: v]`; entries are `Entry` or `Spread`."""

    __slots__ = ("entries",)
    __match_args__ = ("entries",)

    def __init__(self, start: int, end: int, entries: "list[Node]") -> None:
        self.start = start
        self.end = end
        self.entries = entries


class Field(Node):
    """A record field with a static key."""

    __slots__ = ("key", "value")
    __match_args__ = ("key", "value")

    def __init__(self, start: int, end: int, key: str, value: "Node") -> None:
        self.start = start
        self.end = end
        self.key = key
        self.value = value


class Entry(Node):
    """A map entry."""

    __slots__ = ("key", "value")
    __match_args__ = ("key", "value")

    def __init__(self, start: int, end: int, key: "Node", value: "Node") -> None:
        self.start = start
        self.end = end
        self.key = key
        self.value = value


# Patterns


class PName(Node):
    """Binds the whole value; `_` is `PWild`."""

    __slots__ = ("name",)
    __match_args__ = ("name",)

    def __init__(self, start: int, end: int, name: str) -> None:
        self.start = start
        self.end = end
        self.name = name


class PWild(Node):
    """Ignores the value."""

    __slots__ = ()
    __match_args__ = ()

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end


class PList(Node):
    """A list of this length, or at least, with `...rest`."""

    __slots__ = ("items", "rest")
    __match_args__ = ("items", "rest")

    def __init__(self, start: int, end: int, items: "list[Node]", rest: str | None) -> None:
        self.start = start
        self.end = end
        self.items = items
        self.rest = rest


class PRecord(Node):
    """Named fields; each field's value is a pattern."""

    __slots__ = ("fields",)
    __match_args__ = ("fields",)

    def __init__(self, start: int, end: int, fields: "list[Field]") -> None:
        self.start = start
        self.end = end
        self.fields = fields


# Statements and stages


class Program(Node):
    """A statement list."""

    __slots__ = ("statements",)
    __match_args__ = ("statements",)

    def __init__(self, start: int, end: int, statements: "list[Node]") -> None:
        self.start = start
        self.end = end
        self.statements = statements


class Let(Node):
    """`let pattern = chain`."""

    __slots__ = ("chain", "pattern")
    __match_args__ = ("pattern", "chain")

    def __init__(self, start: int, end: int, pattern: "Node", chain: "Chain") -> None:
        self.start = start
        self.end = end
        self.pattern = pattern
        self.chain = chain


class Chain(Node):
    """Pipelines joined by `?`."""

    __slots__ = ("arms",)
    __match_args__ = ("arms",)

    def __init__(self, start: int, end: int, arms: "list[Node]") -> None:
        self.start = start
        self.end = end
        self.arms = arms


class Pipeline(Node):
    """Stages joined by `|`, perhaps with a trailing `&`."""

    __slots__ = ("background", "stages")
    __match_args__ = ("stages", "background")

    def __init__(self, start: int, end: int, stages: "list[Node]", background: bool) -> None:
        self.start = start
        self.end = end
        self.stages = stages
        self.background = background


class Return(Node):
    """`return value`."""

    __slots__ = ("value",)
    __match_args__ = ("value",)

    def __init__(self, start: int, end: int, value: "Node | None") -> None:
        self.start = start
        self.end = end
        self.value = value


class If(Node):
    """Arms are `Arm`; `orelse` is a block or a name."""

    __slots__ = ("arms", "orelse")
    __match_args__ = ("arms", "orelse")

    def __init__(self, start: int, end: int, arms: "list[Node]", orelse: "Node | None") -> None:
        self.start = start
        self.end = end
        self.arms = arms
        self.orelse = orelse


class Arm(Node):
    """One condition and its body."""

    __slots__ = ("body", "cond")
    __match_args__ = ("cond", "body")

    def __init__(self, start: int, end: int, cond: "Node", body: "Node") -> None:
        self.start = start
        self.end = end
        self.cond = cond
        self.body = body


class Case(Node):
    """Arms keyed by tag."""

    __slots__ = ("arms", "scrutinee")
    __match_args__ = ("scrutinee", "arms")

    def __init__(self, start: int, end: int, scrutinee: "Node", arms: "list[Field]") -> None:
        self.start = start
        self.end = end
        self.scrutinee = scrutinee
        self.arms = arms


class Try(Node):
    """`try body handler`."""

    __slots__ = ("body", "handler", "redirects")
    __match_args__ = ("body", "handler", "redirects")

    def __init__(self, start: int, end: int, body: "Node", handler: "Node", redirects: "list[Redirect]") -> None:
        self.start = start
        self.end = end
        self.body = body
        self.handler = handler
        self.redirects = redirects


class Guard(Node):
    """`guard body cleanup`."""

    __slots__ = ("body", "cleanup", "redirects")
    __match_args__ = ("body", "cleanup", "redirects")

    def __init__(self, start: int, end: int, body: "Node", cleanup: "Node", redirects: "list[Redirect]") -> None:
        self.start = start
        self.end = end
        self.body = body
        self.cleanup = cleanup
        self.redirects = redirects


class Within(Node):
    """`within [options] body`."""

    __slots__ = ("body", "options", "redirects")
    __match_args__ = ("options", "body", "redirects")

    def __init__(self, start: int, end: int, options: "list[Field]", body: "Node", redirects: "list[Redirect]") -> None:
        self.start = start
        self.end = end
        self.options = options
        self.body = body
        self.redirects = redirects


class Command(Node):
    """A head with arguments."""

    __slots__ = ("args", "caret", "head", "redirects")
    __match_args__ = ("head", "caret", "args", "redirects")

    def __init__(
        self, start: int, end: int, head: "Node", caret: bool, args: "list[Node]", redirects: "list[Redirect]"
    ) -> None:
        self.start = start
        self.end = end
        self.head = head
        self.caret = caret
        self.args = args
        self.redirects = redirects


class Redirect(Node):
    """op: `>` `>~` `>>` `>&1` `<` `<<`."""

    __slots__ = ("fd", "op", "target")
    __match_args__ = ("fd", "op", "target")

    def __init__(self, start: int, end: int, fd: int, op: str, target: "Node | None") -> None:
        self.start = start
        self.end = end
        self.fd = fd
        self.op = op
        self.target = target
