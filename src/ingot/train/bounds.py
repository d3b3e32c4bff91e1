"""Indices are checked beside the graph's work, and read as 0 where they are out of bounds.

Compiled code cannot raise: 2.13 ends the process instead. The graph gives a status for the edge.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from ingot.train.call import Call
from ingot.train.cut import ahead

__all__ = ["guard"]

ATEN = torch.ops.aten
BY_DIMENSION = ("gather", "index_select", "scatter", "scatter_add", "scatter_reduce", "index_add")
BY_LIST = ("index", "index_put")


@dataclass(slots=True)
class _Guard:
    graph: GraphModule
    call: Call
    status: list[Node] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    safe: dict[tuple[Node, Any, bool], Node] = field(default_factory=dict)

    def add(self, operation: Any, *arguments: Any) -> Node:
        node = self.graph.graph.call_function(operation, arguments)
        values = [a.meta["val"] if isinstance(a, Node) else a for a in arguments]
        lists = [
            [x.meta["val"] if isinstance(x, Node) else x for x in v] if isinstance(v, list) else v
            for v in values
        ]
        with self.call.open.mode:
            node.meta["val"] = operation(*lists)
        return node


def guard(graph: GraphModule, call: Call, results: Sequence[Node]) -> tuple[Node | None, list[str]]:
    """Make the indices of a graph safe; one flag for each kind of index, and what they are."""
    made = _Guard(graph, call)
    before = ahead(results)
    for node in list(graph.graph.nodes):
        for place, index, size, table in _indices(node):
            if index.meta["val"].device.type != "cpu" or not _may_vary(index):
                continue
            key = index, size, table
            if key not in made.safe and node in before:
                with graph.graph.inserting_before(node):
                    made.safe[key] = _checked(made, node, index, size, table)
            if key in made.safe:
                _replace(node, place, made.safe[key])
    if not made.status:
        return None, []
    with graph.graph.inserting_before(graph.graph.output_node()):
        return made.add(ATEN.stack.default, made.status), made.told


def _indices(node: Node) -> Iterator[tuple[Any, Node, tuple[Node, int], bool]]:
    """The places of integer indices, what they index (tensor, axis), and whether -1 is an error."""
    name = str(node.target).removeprefix("aten.").split(".")[0]
    if node.op != "call_function" or not str(node.target).startswith("aten."):
        return
    arguments: Any = node.args
    if name == "embedding":
        yield 1, arguments[1], (arguments[0], 0), True
    elif name in BY_DIMENSION and arguments[0].meta["val"].dim():
        axis = arguments[1] % arguments[0].meta["val"].dim()
        yield 2, arguments[2], (arguments[0], axis), True
    elif name in BY_LIST:
        for axis, index in enumerate(arguments[1]):
            if index is not None and index.meta["val"].dtype != torch.bool:
                yield (1, axis), index, (arguments[0], axis), False


def _may_vary(index: Node) -> bool:
    """Whether an index depends on what a call is given, be it only a size."""
    return any(n.op == "placeholder" for n in ahead([index]))


def _checked(made: _Guard, node: Node, index: Node, size: tuple[Node, int], table: bool) -> Node:
    tensor, axis = size
    value: Tensor = tensor.meta["val"]
    count: Any = value.shape[axis]
    if not isinstance(count, int):
        count = made.add(ATEN.sym_size.int, tensor, axis)
    below = made.add(ATEN.lt.Scalar, index, count)
    if table:
        above = made.add(ATEN.ge.Scalar, index, 0)
    else:
        above = made.add(ATEN.le.Scalar, made.add(ATEN.neg.default, index), count)
    fits = made.add(ATEN.logical_and.default, below, above)
    made.status.append(made.add(ATEN.all.default, fits))
    text = made.call.open.text(value.shape[axis])
    made.told.append(f"{node.target} of an axis of {text}")
    return made.add(ATEN.mul.Tensor, index, fits)


def _replace(node: Node, place: Any, index: Node) -> None:
    arguments: list[Any] = list(node.args)
    if isinstance(place, tuple):
        listed = list(arguments[place[0]])
        listed[place[1]] = index
        arguments[place[0]] = listed
    else:
        arguments[place] = index
    node.args = tuple(arguments)
