"""Nested values: flattened, compared and filled again."""

import enum
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from ingot.graphs import tree as trees
from ingot.graphs.tree import (
    Tree,
    TreeMismatch,
    flatten,
    leaves_like,
    reorder,
    set_free,
    unflatten,
)

Pair = namedtuple("Pair", "one two")


@dataclass(frozen=True)
class Point:
    x: Any
    y: Any


class Way(enum.IntEnum):
    SLOW = 1
    FAST = 2


VALUE = (1, [2, {"a": 3, 5: (4,)}], Pair(5, Point(6, [])), OrderedDict(z=7, b=8), (), Way.FAST)


def test_what_is_flattened_is_filled_again() -> None:
    leaves, tree = flatten(VALUE)
    found = unflatten(tree, [leaf for _, leaf in leaves])
    assert found == VALUE
    assert [type(x) for x in found] == [type(x) for x in VALUE]
    assert len(leaves) == 9


def test_paths_are_as_python_writes_them() -> None:
    leaves, _ = flatten(VALUE)
    for path, leaf in leaves:
        assert eval(f"value{path}", {"value": VALUE}) == leaf


def test_a_tree_is_data() -> None:
    _, tree = flatten(VALUE)
    assert msgspec.json.decode(msgspec.json.encode(tree), type=Tree) == tree


def test_a_dict_may_be_in_another_order_where_that_is_free() -> None:
    _, tree = flatten({"a": 1, "b": (2, 3)})
    other = {"b": (2, 3), "a": 1}
    assert [*leaves_like(set_free(tree), other)] == [1, 2, 3]
    with pytest.raises(TreeMismatch):
        [*leaves_like(tree, other)]
    assert [*reorder((tree, {"a": 1, "b": 2}), lambda x: x[::-1])[1]] == ["b", "a"]


@pytest.mark.parametrize("other", [1, (1,), {"a": 1}, {"a": 1, "b": [2, 3]}, {"a": (1,), "b": 2}])
def test_another_nesting_is_noticed(other: Any) -> None:
    _, tree = flatten({"a": 1, "b": (2, 3)})
    with pytest.raises(TreeMismatch):
        [*leaves_like(tree, other)]


def test_a_class_that_is_not_there_is_stood_in_for(monkeypatch: pytest.MonkeyPatch) -> None:
    leaves, tree = flatten((Pair(1, 2), Point(3, 4), Way.FAST))
    text = msgspec.json.encode(tree).replace(__name__.encode(), b"nowhere")
    monkeypatch.setattr(trees, "_CLASSES", {})
    pair, point, way = unflatten(msgspec.json.decode(text, type=Tree), [x for _, x in leaves])
    assert (pair.one, pair.two, point.x, point.y) == (1, 2, 3, 4)
    assert type(point).__name__ == "Point" and way == 2
