"""Lines in an order that keeps few values alive: the same lines, each behind what it reads."""

import random

import pytest

from ingot.program import Node
from ingot.program.schedule import Registers, find_peak, shorten_lives

FEW = Registers(held=4, tried_lines=2000)


def make_line(number: int, *args: Node) -> Node:
    return Node(number, "add" if args else "input", args, None, ())


def list_operands(lines: list[Node]) -> dict[int, list[int]]:
    return {n.id: [*{a.id for a in n.args}] for n in lines}


def draw(seed: int) -> tuple[list[Node], list[Node]]:
    """A random program: some inputs, lines that read two of those before them, and results."""
    chance = random.Random(seed)
    lines = [make_line(i) for i in range(chance.randint(1, 100))]
    for i in range(len(lines), len(lines) + chance.randint(1, 400)):
        reach = chance.choice([5, 50, 500])
        lines.append(make_line(i, *chance.choices(lines[-reach:], k=2)))
    read = {a.id for n in lines for a in n.args}
    return lines, [n for n in lines if n.id not in read] + chance.sample(lines, min(len(lines), 3))


def count_excess(lines: list[Node], roots: list[Node]) -> int:
    """The values alive beyond four, line by line: a value is from where it is given to its last
    reader.
    """
    place = {n.id: i for i, n in enumerate(lines)}
    last = {n.id: len(lines) for n in roots}
    for i, n in enumerate(lines):
        last |= {a.id: max(i, last.get(a.id, 0)) for a in n.args}
    spans = [(place[n.id], max(place[n.id], last.get(n.id, 0))) for n in lines]
    alive = [sum(a <= i <= b for a, b in spans) for i in range(len(lines))]
    return sum(max(0, n - FEW.held) for n in alive)


@pytest.mark.parametrize("seed", range(60))
def test_drawn_lines_stand_behind_what_they_read(seed: int) -> None:
    lines, roots = draw(seed)
    found = shorten_lives(lines, list_operands(lines), {n.id for n in roots}, FEW)
    place = {n.id: i for i, n in enumerate(found)}
    assert sorted(place) == sorted(n.id for n in lines)
    assert len(found) == len(lines)
    assert all(place[a.id] < place[n.id] for n in found for a in n.args)
    assert count_excess(found, roots) <= count_excess(lines, roots)


def test_sums_that_were_all_begun_first_are_ended_one_by_one() -> None:
    count = 128
    source = make_line(0)
    begun = [make_line(1 + i, source, source) for i in range(count)]
    total, lines = source, [source, *begun]
    for i, each in enumerate(begun):
        total = make_line(1 + count + i, total, each)
        lines.append(total)
    assert find_peak(lines, [total]) > count
    found = shorten_lives(lines, list_operands(lines), [total.id], FEW)
    assert find_peak(found, [total]) <= 4


def test_no_lines_are_no_lines() -> None:
    assert shorten_lives([], {}, [], FEW) == []
