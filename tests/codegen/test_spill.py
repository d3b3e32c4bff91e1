"""Spills: every statement finds what it reads, and few values are held."""

import random
import re

import pytest

from ingot.codegen.spill import MAX_HELD, MIN_PEAK_TO_SPILL, spill
from ingot.codegen.statements import Let, Row

PUT = re.compile(r"a\[(\d+)\] = (\w+);")
FETCH = re.compile(r"(\w+) = a\[(\d+)\];")


def draw(seed: int, count: int = 900) -> tuple[list[list[Row]], list[set[str]]]:
    """Two phases of random statements, each reading some before it, and what each must keep."""
    chance = random.Random(seed)
    names = ["x0"]
    phases: list[list[Row]] = [[Let("V", "x0", "1")], []]
    for i in range(1, count):
        reach = chance.choice([5, 400, count])
        reads = tuple(chance.choices(names[-reach:], k=chance.randint(0, 3)))
        kind = "M" if chance.random() < 0.1 else "V"
        phases[i > count // 3].append(Let(kind, f"x{i}", "", reads=reads))
        names.append(f"x{i}")
    first = {r.name for r in phases[0] if isinstance(r, Let)}
    return phases, [set(chance.sample(sorted(first), 9)), set(chance.sample(names, 9))]


def follow(phases: list[list[Row]], kept: list[set[str]], most: int) -> None:
    """Follow statements: each reads what is there, a slot gives back what was put into it."""
    slots: dict[int, str] = {}
    constants: set[str] = set()
    defined: set[str] = set()
    for rows, ends in zip(phases, kept, strict=True):
        for row in rows:
            if isinstance(row, Let):
                assert set(row.reads) <= defined, f"{row} reads too early"
                defined.add(row.name)
                constants |= {row.name} if row.is_constant else set()
            elif put := PUT.fullmatch(str(row)):
                assert put[2] in defined
                slots[int(put[1])] = put[2]
            else:
                fetch = FETCH.fullmatch(str(row))
                assert fetch and slots[int(fetch[2])] == fetch[1]
                assert fetch[1] not in constants
        assert ends <= defined
    assert len(slots) == most


@pytest.mark.parametrize("seed", range(30))
def test_a_value_is_reloaded_from_where_it_was_stored(seed: int) -> None:
    phases, kept = draw(seed)
    found, slots = spill(phases, kept, "a")
    assert slots > 0
    assert [[r for r in rows if isinstance(r, Let)] for rows in found] != phases
    for before, after in zip(phases, found, strict=True):
        lets = [r for r in after if isinstance(r, Let)]
        assert [(r.kind, r.name, r.reads) for r in lets] == [
            (r.kind, r.name, r.reads) for r in before if isinstance(r, Let)
        ]
    follow(found, kept, slots)
    assert find_most_held(found, kept) <= MAX_HELD + 3 + 9  # operands, and what is kept


def find_most_held(phases: list[list[Row]], kept: list[set[str]]) -> int:
    """The most values between being computed or reloaded and being stored or read last."""
    flat = [row for rows in phases for row in [*rows, None]]
    events: list[tuple[list[str], list[str]]] = []  # begins to be held, is read
    last: dict[str, int] = {}
    phase = 0
    for i, row in enumerate(flat):
        reads: list[str]
        begins: list[str]
        if row is None:
            reads, begins = sorted(kept[phase]), []
            phase += 1
        elif isinstance(row, Let):
            reads, begins = [*row.reads], [row.name] if row.kind == "V" else []
        else:
            put, fetch = PUT.fullmatch(str(row)), FETCH.fullmatch(str(row))
            reads, begins = ([put[2]], []) if put else ([], [fetch[1]] if fetch else [])
        events.append((begins, reads))
        last |= dict.fromkeys(reads, i)
    spans: list[tuple[int, int]] = []
    begun: dict[str, tuple[int, int]] = {}
    for i, (begins, reads) in enumerate(events):
        for name in reads:
            if name in begun:
                begun[name] = begun[name][0], i
        for name in begins:
            if name in begun:
                spans.append(begun[name])
            begun[name] = i, i
    spans += begun.values()
    change = [0] * (len(flat) + 1)
    for begin, end in spans:
        change[begin] += end > begin
        change[end] -= end > begin
    most = alive = 0
    for step in change:
        alive += step
        most = max(most, alive)
    return most


def test_where_registers_hold_all_nothing_is_spilled() -> None:
    chain: list[Row] = [Let("V", "x0", "1")]
    chain += [Let("V", f"x{i}", "", reads=(f"x{i - 1}",)) for i in range(1, 999)]
    assert spill([chain], [{"x998"}], "a") == ([chain], 0)
    wide: list[Row] = [Let("V", f"y{i}", "1") for i in range(MIN_PEAK_TO_SPILL)]
    kept = {f"y{i}" for i in range(MIN_PEAK_TO_SPILL)}
    assert spill([wide], [kept], "a") == ([wide], 0)


def test_what_is_not_straight_is_as_it_was() -> None:
    wide: list[Row] = [Let("V", f"y{i}", "1") for i in range(300)]
    kept = {f"y{i}" for i in range(300)}
    assert spill([wide], [kept], "a")[1] > 0
    assert spill([[*wide, "f();"]], [kept], "a") == ([[*wide, "f();"]], 0)
