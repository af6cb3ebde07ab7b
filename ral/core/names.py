"""Which names are in scope, and which binding a reference means.

Inside one statement list a reference means the nearest earlier `let`. Inside a named block it may also mean the block
itself or a named block that comes later in the same list; enclosing lists come after that, then the standard names.
"""

from ral.core.terms import Var


class Names:
    """The names that exist before the program: earlier turns' bindings, builtins, base commands."""

    __slots__ = ("bases", "bindings", "counter", "natives", "script")

    def __init__(
        self, bindings: dict[str, Var], natives: "frozenset[str]", bases: "frozenset[str]", script: str | None
    ) -> None:
        self.bindings = bindings
        self.natives = natives
        self.bases = bases
        self.script = script
        self.counter = 0

    def fresh(self, name: str, start: int, end: int) -> Var:
        """A new binding with a name of its own in generated code."""
        self.counter += 1
        plain = name.replace("-", "_")
        return Var(name, f"{plain}_{self.counter}", start, end)


class Frame:
    """One statement list, or the parameters of a block."""

    __slots__ = ("at", "blocks", "edges", "inside", "parent", "seen")

    def __init__(self, parent: "Frame | None") -> None:
        self.parent = parent
        self.seen: dict[str, Var] = {}  # bindings of the statements before the current one
        self.blocks: dict[str, list[tuple[int, Var]]] = {}  # named blocks of the list, by name
        self.at = 0  # the current statement
        self.inside = False  # elaborating the body of the named block at `at`
        self.edges: dict[int, set[int]] = {}  # named block -> named blocks of this list that it mentions

    def lookup(self, name: str) -> Var | None:
        """The binding that `name` means here, or None."""
        frame: Frame | None = self
        while frame is not None:
            var = frame.own(name)
            if var is not None:
                return var
            frame = frame.parent
        return None

    def own(self, name: str) -> Var | None:
        var = self.seen.get(name)
        if var is None and self.inside:
            for index, block in self.blocks.get(name, ()):
                if index >= self.at:
                    var = block
                    break
        if var is not None and self.inside:
            for index, block in self.blocks.get(name, ()):
                if block is var:
                    self.edges.setdefault(self.at, set()).add(index)
        return var

    def visible(self) -> list[str]:
        """Every name in scope, for suggestions."""
        names: list[str] = []
        frame: Frame | None = self
        while frame is not None:
            names += frame.seen
            names += frame.blocks
            frame = frame.parent
        return names


def nearest(name: str, candidates: list[str]) -> str:
    """The candidate within two edits of the name, or an empty text."""
    best, distance = "", 3
    for other in sorted(set(candidates)):
        if abs(len(other) - len(name)) < distance + 1:
            d = edits(name, other, distance + 1)
            if d < distance or (d == distance and sorted(other) == sorted(name)):
                best, distance = other, d
    return best if distance <= max(1, len(name) // 3) else ""


def edits(a: str, b: str, limit: int) -> int:
    """Edits from one name to the other, two letters swapped counting as one; given up at `limit`."""
    above: list[int] = []
    row = list(range(len(b) + 1))
    for i, ca in enumerate(a):
        below = [i + 1]
        for j, cb in enumerate(b):
            best = min(row[j + 1] + 1, below[j] + 1, row[j] + (ca != cb))
            if i and j and ca == b[j - 1] and a[i - 1] == cb:
                best = min(best, above[j - 1] + 1)
            below.append(best)
        above, row = row, below
        if min(row) >= limit:
            return limit
    return row[-1]


def components(group: list[int], edges: dict[int, set[int]]) -> list[list[int]]:
    """Strongly connected components of `group`, callees first (Tarjan, without recursion)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    found: list[list[int]] = []
    members = set(group)
    for root in group:
        if root in index:
            continue
        work: list[tuple[int, list[int]]] = [(root, sorted(edges.get(root, set()) & members))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, targets = work[-1]
            if targets:
                target = targets.pop()
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, sorted(edges.get(target, set()) & members)))
                elif target in on_stack:
                    low[node] = min(low[node], index[target])
                continue
            work.pop()
            if work:
                parent = work[-1][0]
                low[parent] = min(low[parent], low[node])
            if low[node] == index[node]:
                component: list[int] = []
                while True:
                    member = stack.pop()
                    on_stack.discard(member)
                    component.append(member)
                    if member == node:
                        break
                found.append(sorted(component))
    return found
