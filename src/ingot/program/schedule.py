"""Scheduling by liveness: each line runs just before it is first read, so few values are alive."""

from collections.abc import Container, Iterable, Mapping, Sequence
from heapq import heappop, heappush

from ingot.program.builder import Node

__all__ = ["find_peak", "schedule_lines", "shorten_lives"]

SETTLING_ROUNDS = 2
"""How often lines are moved one by one; of a crystal, more rounds change nothing."""


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
    operands = {n.id: [a.id for a in n.args if not a.is_number] for n in lines}
    return _find_peak([n.id for n in lines if not n.is_number], operands, [n.id for n in roots])


def _find_peak(
    lines: Sequence[int], operands: Mapping[int, Iterable[int]], kept: Iterable[int]
) -> int:
    """The most values alive at once; those that no line gives are alive from the start."""
    last = {value: i for i, line in enumerate(lines) for value in operands[line]}
    last |= dict.fromkeys(kept, len(lines))
    ends: dict[int, int] = {}
    for at in last.values():
        ends[at] = ends.get(at, 0) + 1
    alive = most = len(last.keys() - set(lines))
    for i, line in enumerate(lines):
        alive += 1
        most = max(most, alive)
        alive -= ends.pop(i, 0) + (line not in last)
    return most


def shorten_lives(
    lines: Sequence[Node], operands: Mapping[int, Sequence[int]], kept: Iterable[int]
) -> list[Node]:
    """The same lines in an order in which fewer values are alive at once, if there is one.

    From the last line to the first: of those whose readers all stand, the one that brings the
    fewest values to life, and of these the operand that was asked for last.
    operands: by line, the values it reads that need a register; kept: what is read afterwards.
    """
    kept = [*kept]
    peak = _find_peak([n.id for n in lines], operands, kept)
    found = {n.id: n for n in lines}
    place = {n.id: i for i, n in enumerate(lines)}
    readers: dict[int, list[int]] = {}
    for line in found:
        for value in operands[line]:
            readers.setdefault(value, []).append(line)
    waiting = {line: len(readers.get(line, ())) for line in found}
    dead = {line: len(operands[line]) for line in found}
    alive: set[int] = set()
    asked = dict.fromkeys(found, 0)
    ready: list[tuple[int, int, int, int]] = []

    def revive(value: int) -> None:
        alive.add(value)
        for line in readers.get(value, ()):
            dead[line] -= 1
            if waiting[line] == 0:
                heappush(ready, (dead[line], -asked[line], -place[line], line))

    for value in kept:
        revive(value)
    for line in found:
        if waiting[line] == 0:
            heappush(ready, (dead[line], 0, -place[line], line))
    order: dict[int, Node] = {}
    while ready:
        *_, line = heappop(ready)
        if line in order:
            continue
        order[line] = found[line]
        for value in operands[line]:
            if value not in alive:
                revive(value)
        for value in operands[line]:
            if value in found:
                waiting[value] -= 1
                asked[value] = len(order)
                if waiting[value] == 0:
                    heappush(ready, (dead[value], -asked[value], -place[value], value))
    found_order = _settle([*order][::-1], operands, {*kept})
    fewer = _find_peak(found_order, operands, kept) < peak
    return [found[line] for line in found_order] if fewer else [*lines]


def _settle(
    order: Sequence[int], operands: Mapping[int, Sequence[int]], kept: Container[int]
) -> Sequence[int]:
    """Lines moved one by one, so that values live shorter.

    A line that frees no operand is moved down to its first reader; one that frees some, up to the
    last of its operands, or of the other readers of those that it frees.
    """
    inside = {line: [value for value in operands[line] if value in operands] for line in order}
    readers: dict[int, list[int]] = {}
    for line in order:
        for value in inside[line]:
            readers.setdefault(value, []).append(line)
    for _ in range(SETTLING_ROUNDS):
        place = {line: (i, 0) for i, line in enumerate(order)}

        def find_freed(line: int, place: Mapping[int, tuple[int, int]] = place) -> list[int]:
            """The operands that no other line reads afterwards."""
            return [
                value for value in inside[line]
                if value not in kept and max(place[r] for r in readers[value]) == place[line]
            ]  # fmt: skip

        for line in reversed(order):
            if line in readers and not find_freed(line):
                before, shift = min(place[r] for r in readers[line])
                place[line] = before, shift - 1
        for line in sorted(order, key=place.__getitem__):
            if freed := find_freed(line):
                others = ([place[r] for r in readers[v] if r != line] for v in freed)
                last = min(max(found, default=(-1, 0)) for found in others)
                behind, shift = max(last, *(place[value] for value in inside[line]))
                place[line] = min(place[line], (behind, shift + 1))
        order = sorted(order, key=place.__getitem__)
    return order
