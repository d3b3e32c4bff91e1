"""Lines that one side of a selection alone reads: where no point takes that side, none needs them.

Only loops are worth the question; a first guess that is for the first step alone is one.
"""

from collections.abc import Iterable, Mapping, Sequence

from ingot.program.builder import Node
from ingot.program.operations import operation
from ingot.types.elementwise import ELEMENTWISE

__all__ = ["Guards", "find_guards", "sort_guarded"]

Guards = Mapping[int, frozenset[tuple[int, bool]]]
"""Of a line, by its id: conditions, by theirs, and what each must be at some point."""


def find_guards(lines: Sequence[Node], roots: Iterable[Node]) -> Guards:
    """What must hold somewhere for a line to be needed, where that spares a loop."""
    never: frozenset[tuple[int, bool]] = frozenset()
    found = {n.id: never for n in roots}
    for node in reversed(lines):
        if operation(node.op).is_block and node.op != "repeat":
            found[node.id] = never  # a solve reports of every point, needed or not
        own = found[node.id]
        row = ELEMENTWISE.get(node.op)
        for place, arg in enumerate(node.args):
            side = {(node.args[0].id, place == 1)}
            more = own | side if row is not None and row.is_selection and place > 0 else own
            found[arg.id] = found[arg.id] & more if arg.id in found else more
    plain = {n.id for n in lines if not found[n.id]}
    guards = {n.id: frozenset(g for g in found[n.id] if g[0] in plain) for n in lines}
    spared = any(guards[n.id] for n in lines if n.op == "repeat")
    return {i: guard for i, guard in guards.items() if guard} if spared else {}


def sort_guarded(lines: Sequence[Node], guards: Guards) -> list[Node]:
    """The lines in their order, but conditions of a line's guard, and what these need, before it.

    That is no circle: all that reads a guarded line passes a selection by the condition, which
    therefore comes after the condition.
    """
    by_id = {n.id: n for n in lines}
    placed: dict[int, Node] = {}
    stack = [n.id for n in reversed(lines)]
    while stack:
        node = by_id[stack[-1]]
        asked = (c for c, _ in sorted(guards.get(node.id, ())))
        needs = [i for i in (*asked, *(a.id for a in node.args)) if i in by_id and i not in placed]
        if not needs:
            placed.setdefault(stack.pop(), node)
        stack.extend(reversed(needs))
    return list(placed.values())
