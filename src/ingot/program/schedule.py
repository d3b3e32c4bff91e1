"""Scheduling by liveness: each line runs just before it is first read, so few values are alive."""

from collections.abc import Container, Iterable, Sequence

from ingot.program.builder import Node

__all__ = ["find_peak", "schedule_lines"]


def schedule_lines(roots: Iterable[Node], known: Container[int] = ()) -> list[Node]:
    """The lines that the roots need beyond the known ones, in the order they run."""
    found: dict[int, Node] = {}
    stack = [*reversed(list(roots))]
    while stack:
        node = stack[-1]
        if node.id in found or node.id in known:
            stack.pop()
            continue
        missing = [a for a in node.args[::-1] if a.id not in found and a.id not in known]
        if missing:
            stack += missing
        else:
            found[node.id] = stack.pop()
    return list(found.values())


def find_peak(lines: Sequence[Node], roots: Iterable[Node]) -> int:
    """The largest number of values alive at once."""
    last = {n.id: len(lines) for n in roots}
    for i, node in enumerate(lines):
        for arg in node.args:
            last[arg.id] = max(last.get(arg.id, 0), i)
    ends: dict[int, int] = {}
    alive = most = 0
    for i, node in enumerate(lines):
        if not node.is_number:
            alive += 1
            ends[last.get(node.id, i)] = ends.get(last.get(node.id, i), 0) + 1
        most = max(most, alive)
        alive -= ends.pop(i, 0)
    return most
