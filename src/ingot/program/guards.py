"""Lines that one side of a selection alone reads: where no point takes that side, none needs them.

Only loops are worth the question; a first guess that is for the first step alone is one.
"""

from collections.abc import Container, Iterable, Mapping, Sequence

from ingot.program.builder import Node, sort_until
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


def sort_guarded(lines: Sequence[Node], guards: Guards, known: Container[int]) -> list[Node]:
    """The lines, conditions of guards and what these need first."""
    asked = {condition for guard in guards.values() for condition, _ in guard}
    first = sort_until([n for n in lines if n.id in asked], known)
    before = {n.id for n in first}
    return [*first, *(n for n in lines if n.id not in before)]
