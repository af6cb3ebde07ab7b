"""The surface tree as text, for `--dump-ast`."""

from ral.syntax.tree import Node


def dump(node: Node) -> str:
    """One node a line, indented by depth."""
    lines: list[str] = []
    walk(node, 0, "", lines)
    return "\n".join(lines) + "\n"


def walk(node: object, depth: int, label: str, lines: list[str]) -> None:
    pad = "  " * depth + (f"{label}: " if label else "")
    if isinstance(node, Node):
        names = getattr(type(node), "__match_args__", ())
        plain = [f"{n}={getattr(node, n)!r}" for n in names if not isinstance(getattr(node, n), Node | list)]
        lines.append(f"{pad}{type(node).__name__} {node.start}..{node.end} {' '.join(plain)}".rstrip())
        for n in names:
            value = getattr(node, n)
            if isinstance(value, Node):
                walk(value, depth + 1, n, lines)
            elif isinstance(value, list):
                for item in value:
                    walk(item, depth + 1, n, lines)
