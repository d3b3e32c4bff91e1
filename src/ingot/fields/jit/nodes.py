"""Nodes of a captured graph: their names, the sizes they had, and what they cost."""

from __future__ import annotations

from torch import Tensor
from torch.fx import Node

from ingot.graphs.torch_private import OpOverload

__all__ = ["THROUGH", "costs", "name_of", "seen", "sizes_of"]

FREE = ("view", "reshape", "select", "slice", "unsqueeze", "squeeze", "permute", "transpose",
        "expand", "alias", "detach", "t", "unbind", "split", "view_as_real", "view_as_complex",
        "getitem", "sym_size", "lift_fresh_copy", "diagonal", "movedim", "as_strided")  # fmt: skip
"""Calls that touch no values."""

THROUGH = frozenset(("expand.default", "alias.default", "detach.default", "lift_fresh_copy.default",
                     "lift.default", "lift_fresh.default"))  # fmt: skip
"""Operations that leave values as they are."""


def name_of(node: Node) -> str:
    """The name of a node's operation, torch's own without their room."""
    if isinstance(node.target, OpOverload):
        return str(node.target).removeprefix("aten.")
    return getattr(node.target, "__name__", "") if node.op == "call_function" else node.op


def sizes_of(node: Node) -> tuple[int, ...]:
    """The sizes of a node's value while it was captured."""
    return tuple(int(getattr(getattr(n, "node", None), "hint", n)) for n in node.meta["val"].shape)


def seen(node: Node) -> Node:
    """The node whose values this one has, axes aside."""
    while name_of(node) in THROUGH:
        node = node.all_input_nodes[0]
    return node


def costs(node: Node) -> bool:
    """Whether a node passes over values."""
    return node.op == "call_function" and (
        isinstance(node.meta.get("val"), Tensor | tuple | list)
        and name_of(node).split(".")[0] not in FREE
    )
