"""The operation floor that times are printed beside."""

import pytest

from benchmarks.bench import Cost, Row, peer_table
from benchmarks.floor import OPERATIONS, Machine, find_floor, measure_processor, read_counts
from benchmarks.load_paths import CASES


def test_a_floor_is_what_committed_operations_take() -> None:
    none = dict.fromkeys(OPERATIONS, 0.0)
    plain = 24 + 101 * 2.819 + 219 * 1.819
    assert find_floor("isoharden", Machine(1e9, none)) == pytest.approx(plain * 1e-9)
    divisions = 1 * 2.819 + 6 * 1.819
    by_division = find_floor("isoharden", Machine(1e30, none | {"div": 1e-9}))
    assert by_division == pytest.approx(divisions * 1e-9)
    assert find_floor("no such case", Machine(1e9, none)) is None


def test_every_count_is_of_a_case_and_of_operations_that_are_measured() -> None:
    for name, counts in read_counts().items():
        assert name in CASES
        for rows in (counts.once, counts.residual, counts.update):
            assert rows.keys() <= {"plain", *OPERATIONS}


def test_the_processor_takes_longer_for_rarer_operations() -> None:
    machine = measure_processor()
    assert 2 / machine.flops < machine.seconds["div"] < machine.seconds["pow"]


def test_the_table_tells_the_part_of_the_floor() -> None:
    row = Row("isoharden", 8, {"ingot": Cost(0.05, 0.05, [])}, {}, {}, 0.02)
    assert row.percent_of_floor == pytest.approx(40)
    assert "| 0.02 | 40 |" in peer_table([row])
