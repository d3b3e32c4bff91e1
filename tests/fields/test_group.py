"""The order in which computes run."""

import pytest

from ingot.errors import IngotError
from ingot.fields.group import Group, steps_of
from ingot.fields.step import Buffer, Step


def step(name: str, reads: str = "", gives: str = "") -> Step:
    sources = {f"a{k}": Buffer(word) for k, word in enumerate(reads.split())}
    return Step(name, lambda **_: None, sources, tuple((gives or name).split()))


def order(*parts: Step | Group) -> str:
    return " ".join(each.name for each in steps_of(parts))


def test_writers_come_before_readers() -> None:
    assert order(step("d", "c"), step("c", "b"), step("b", "a"), step("a")) == "a b c d"


def test_strangers_keep_their_order() -> None:
    assert order(step("b"), step("a"), step("d", "c"), step("c")) == "b a c d"


def test_two_writers_both_come_before_a_reader() -> None:
    assert order(step("r", "x"), step("w1", "", "x"), step("w2", "", "x")) == "w1 w2 r"


def test_a_compute_may_read_what_it_writes() -> None:
    assert order(step("c", "c", "c"), step("d", "c")) == "c d"


def test_groups_are_opened() -> None:
    inner = Group("inner", (step("q", "p y"), step("p", "x")))
    assert order(inner, step("y", "p"), step("x")) == "x p y q"
    assert Group("outer", (inner, step("z"))).groups == ("outer", "inner")


def test_a_group_runs_as_a_whole_where_its_steps_go_in_circles() -> None:
    inner = Group("inner", (step("p", "c", "x"), step("q", "x", "c2")))
    assert order(inner, step("s", "c2", "x")) == "p q s"


def test_a_circle_is_named() -> None:
    with pytest.raises(IngotError, match="wait for each other: a <- b <- a"):
        order(step("a", "b"), step("b", "a"))


def test_what_a_group_reads_from_outside_is_known() -> None:
    group = Group("g", (step("p", "c", "x"), step("q", "x d", "y")))
    assert group.reads == ("c", "d")
    assert group.writes == ("x", "y")
