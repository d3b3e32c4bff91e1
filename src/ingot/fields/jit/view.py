"""How the nodes of a captured graph are seen: numbers, values handed on, point by point, other."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from ingot.fields.jit.capture import Captured
from ingot.fields.jit.operations import (
    CHEAP,
    CONSTANTS,
    OPERATIONS,
    THROUGH,
    kind_of,
    lower,
    name_of,
    placeholder,
    seen,
    sizes_of,
)
from ingot.fields.jit.schema import SMALLEST, TRACED
from ingot.graphs.torch_private import hint_of
from ingot.program import Builder

__all__ = ["View", "reads", "viewed"]


@dataclass(frozen=True, slots=True)
class View:
    """What each node of a graph is.

    constants: those that are one number everywhere
    points: those that work point by point
    whole: those whose values must lie in memory, for calls of torch and for those outside
    floating: those of `points` that every loop computes for itself
    shifted: those that loops alone read, as another value some cells away
    """

    constants: dict[Node, complex]
    points: frozenset[Node]
    whole: frozenset[Node]
    floating: frozenset[Node]
    shifted: frozenset[Node]

    def base(self, node: Node) -> Node:
        """The value in memory that a node is: of a shift the one that is shifted."""
        return node.all_input_nodes[0] if node in self.shifted else node


def viewed(captured: Captured) -> View:
    """How each node of a graph is seen."""
    real, device = captured.real, torch.device(captured.schema.device)
    constants: dict[Node, complex] = {}
    points: set[Node] = set()
    nodes = captured.module.graph.nodes
    for node in nodes:
        name = name_of(node)
        value = node.meta.get("val")
        if seen(node) in constants:
            constants[node] = constants[seen(node)]
        elif node.op == "get_attr":
            held = getattr(captured.module, str(node.target))
            if isinstance(held, Tensor) and held.numel() == 1:
                constants[node] = held.item()
        elif name in CONSTANTS:
            number = CONSTANTS[name](*node.args, **node.kwargs)
            if isinstance(number, bool | int | float | complex):
                constants[node] = bool(number) if value.dtype == torch.bool else number
        elif name in OPERATIONS and works(node, real) and is_on(node, device, constants):
            points.add(node)
    whole = needed_whole(nodes, constants, points)
    floating = {n for n in points - whole if is_part(n, captured) and name_of(n) in CHEAP}
    shifted = {n for n in nodes if is_shifted(n, captured, constants, points)}
    return View(constants, *map(frozenset[Node], (points, whole, floating, shifted)))


def is_shifted(
    node: Node, captured: Captured, constants: Container[Node], points: Container[Node]
) -> bool:
    """Whether a shift that wraps around is a matter of where loops read."""
    if name_of(node) != "roll.default" or len(node.args) < 3 or not node.users:
        return False
    source, value, args = node.all_input_nodes[0], node.meta["val"], list[Any](node.args)
    sizes = {axis % value.dim(): value.shape[axis] for axis in args[2]}
    open_axes = len(sizes) == len(args[2]) and not any(
        isinstance(n, int) or hint_of(n) not in TRACED.values() for n in sizes.values()
    )
    # up to the smallest box that is compiled, so that one wrap is enough
    near = all(abs(shift) <= SMALLEST for shift in args[1])
    kinds = (captured.real, captured.real.to_complex(), torch.bool)
    held = value.dtype in kinds and is_on(node, torch.device(captured.schema.device), ())
    memory = name_of(source) not in THROUGH and source not in constants
    alone = all(user in points for user in node.users)
    return near and open_axes and held and memory and alone


def works(node: Node, real: torch.dtype) -> bool:
    """Whether a loop can hold an operation: its types, its sizes and its arguments."""
    if not any(isinstance(each.meta.get("val"), Tensor) for each in node.all_input_nodes):
        return False
    # sizes are those of the box, of its spectrum, or fixed
    shape = node.meta["val"].shape
    if not all(isinstance(n, int) or hint_of(n) in TRACED.values() for n in shape):
        return False
    b = Builder()
    try:
        lower(b, node, lambda each: placeholder(b, kind_of(each, real), each.name), real)
    except (KeyError, TypeError):
        return False
    return True


def is_on(node: Node, device: torch.device, constants: Container[Node]) -> bool:
    """Whether a node and all that it reads, but what is one number, lie on a device."""
    near = (each for each in node.all_input_nodes if each not in constants)
    values = [node.meta["val"], *(each.meta.get("val") for each in near)]
    return all(value.device == device for value in values if isinstance(value, Tensor))


def needed_whole(nodes: Any, constants: Container[Node], points: Container[Node]) -> set[Node]:
    """The nodes whose values must lie in memory."""
    found: set[Node] = set()
    for node in reversed(nodes):
        free = node in constants or name_of(node) in THROUGH
        calls = node.op in ("call_function", "output") and node not in points
        if node in found if free else calls:
            found.update(node.all_input_nodes)
    return found


def is_part(node: Node, captured: Captured) -> bool:
    """Whether a value lacks one of the axes of space."""
    sizes = sizes_of(node)
    return len(sizes) < captured.schema.dim or 1 in sizes


def reads(node: Node, view: View) -> Iterator[Node]:
    """The values that a node takes from outside its loop or call, or from its own loop."""
    if node not in view.points:
        yield from node.all_input_nodes
        return
    for found in map(seen, node.all_input_nodes):
        if found in view.floating:
            yield from reads(found, view)
        elif found not in view.constants:
            yield found
