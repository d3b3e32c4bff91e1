"""Scheduling by liveness: each line runs just before it is first read, so few values are alive."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random

from ingot.program.builder import Node

__all__ = ["Registers", "count_alive", "find_peak", "schedule_lines", "shorten_lives"]

MAX_TRIES = 24
"""How many orders of lines are tried at most; later ones are seldom better."""
SETTLING_ROUNDS = 2
"""How often lines are moved one by one; of a crystal, more rounds change nothing."""


@dataclass(frozen=True, slots=True)
class Registers:
    """How many values registers hold while lines run, and how many lines orders are tried on."""

    held: int
    tried_lines: int


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
    ids = [n.id for n in lines if not n.is_number]
    return max(count_alive(ids, operands, [n.id for n in roots]), default=0)


def count_alive(
    lines: Sequence[int], operands: Mapping[int, Iterable[int]], kept: Iterable[int]
) -> Iterator[int]:
    """The values alive at each line; those that no line gives are alive from the start."""
    last = {value: i for i, line in enumerate(lines) for value in operands[line]}
    last |= dict.fromkeys(kept, len(lines))
    ends: dict[int, int] = {}
    for at in last.values():
        ends[at] = ends.get(at, 0) + 1
    alive = len(last.keys() - set(lines))
    for i, line in enumerate(lines):
        alive += 1
        yield alive
        alive -= ends.pop(i, 0) + (line not in last)


def shorten_lives(
    lines: Sequence[Node], operands: Mapping[int, Sequence[int]], kept: Iterable[int],
    registers: Registers,
) -> list[Node]:  # fmt: skip
    """The same lines in an order in which fewer values are alive, if one is found.

    Ties between lines are settled in several ways, by chance of fixed seeds; that order is taken in
    which the fewest values are beyond what is held, line by line, and of these the one in which
    values live shortest. operands: by line, the values it reads that need a register; kept: what is
    read afterwards.
    """
    kept = {*kept}
    found = {n.id: n for n in lines}

    def measure(order: Sequence[int]) -> tuple[int, int]:
        alive = [*count_alive(order, operands, kept)]
        return sum(max(0, n - registers.held) for n in alive), sum(alive)

    def build(seed: int) -> Sequence[int]:
        chance = Random(seed)
        noise = {line: chance.random() / 2 if seed else 0.0 for line in found}
        return _settle(_order_backward([*found], operands, kept, noise), operands, kept)

    tries = max(1, min(MAX_TRIES, registers.tried_lines // max(len(lines), 1)))
    best = min(([*found], *map(build, range(tries))), key=measure)
    return [found[line] for line in best]


def _order_backward(
    lines: Sequence[int], operands: Mapping[int, Sequence[int]], kept: Iterable[int],
    noise: Mapping[int, float],
) -> list[int]:  # fmt: skip
    """From the last line to the first: of those whose readers all stand, always the one that brings
    the fewest values to life, and of these the operand that was asked for last.

    noise: by line, what is added to the values that it brings to life.
    """
    readers: dict[int, list[int]] = {}
    for line in lines:
        for value in operands[line]:
            readers.setdefault(value, []).append(line)
    waiting = {line: len(readers.get(line, ())) for line in lines}
    dead = {line: len(operands[line]) for line in lines}
    place = {line: i for i, line in enumerate(lines)}
    alive: set[int] = set()
    asked = dict.fromkeys(lines, 0)
    ready: list[tuple[float, int, int, int]] = []

    def offer(line: int) -> None:
        if waiting[line] == 0:
            heappush(ready, (dead[line] + noise[line], -asked[line], -place[line], line))

    def revive(value: int) -> None:
        alive.add(value)
        for line in readers.get(value, ()):
            dead[line] -= 1
            offer(line)

    for value in kept:
        revive(value)
    for line in lines:
        offer(line)
    order: dict[int, None] = {}
    while ready:
        *_, line = heappop(ready)
        if line in order:
            continue
        order[line] = None
        for value in operands[line]:
            if value not in alive:
                revive(value)
        for value in operands[line]:
            if value in waiting:
                waiting[value] -= 1
                asked[value] = len(order)
                offer(value)
    return [*order][::-1]


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
