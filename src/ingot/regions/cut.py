"""Dynamo's graph of a call -> what runs in turn: pieces at the borders of blocks, and what stays.

Borders come from the modules that Dynamo notes on each node. Switches of modes, and what acts on
autograd's own graph, stay nodes of the whole: pieces run under the modes they were traced in.
"""

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from torch import SymInt, Tensor, fx
from torch.fx.node import map_arg

from ingot.graphs import torch_private
from ingot.regions.mark import enter_block, leave_block

__all__ = ["Piece", "cut", "graph_of", "merge_dear", "refuse_cut"]

ON_AUTOGRAD = frozenset({
    "register_hook", "register_post_accumulate_grad_hook", "requires_grad_", "retain_grad",
    "detach_",
})  # fmt: skip
"""Methods that act on the graph of autograd, which a compiled piece has for itself."""

REMADE = frozenset({"set_", "resize_", "resize_as_", "backward"})
"""Methods after which a tensor lies elsewhere, so that two pieces would not see one tensor."""

PASSED = (Tensor, SymInt, int, float, bool, type(None))
"""What one piece can give another."""

Label = tuple[str, str]
"""A call of a block: what tells it from other calls, and the name of its class or function."""

BETWEEN: Label = ("", "")


@dataclass(frozen=True, slots=True)
class Piece:
    """Nodes that are compiled together: one call of a block, or what lies between two."""

    label: Label
    nodes: tuple[fx.Node, ...]
    merged: int = 0

    @property
    def inputs(self) -> list[fx.Node]:
        """What the nodes read of others, in the order in which they do."""
        inside = set(self.nodes)
        read = (source for node in self.nodes for source in node.all_input_nodes)
        return list(dict.fromkeys(node for node in read if node not in inside))

    @property
    def outputs(self) -> list[fx.Node]:
        """Nodes that others read."""
        inside = set(self.nodes)
        return [node for node in self.nodes if not node.users.keys() <= inside]

    @property
    def name(self) -> str:
        """The class or function of a block; of what lies between blocks none."""
        return self.label[1]


def refuse_cut(graph: fx.Graph) -> str | None:
    """Why a graph is compiled whole: it holds what pieces would not see alike."""
    for node in graph.nodes:
        if node.op == "call_method" and node.target in REMADE:
            return f"it calls {node.target}()"
        if node.op == "call_function" and torch_private.is_transform(node.target):
            return "it runs a transform of torch.func"
    return None


def cut(module: fx.GraphModule, is_block: Callable[[str, type], bool]) -> Iterator[Piece | fx.Node]:
    """Pieces, and nodes that stay, in the order in which they run.

    is_block: of the id of a module, as Dynamo writes it, and its class.
    """
    graph = module.graph
    _take_apart_at_source(graph)
    held: list[fx.Node] = []
    functions: list[Label] = []
    label = BETWEEN
    for i, node in enumerate(graph.nodes):
        if node.op in ("placeholder", "output"):
            continue
        if node.target is enter_block:
            functions.append((f"call {i}", str(node.args[0])))
            continue
        if node.target is leave_block:
            del functions[-1:]  # the first half of a call may lie before a break of the graph
            continue
        stays = _stays(node, module)
        now = BETWEEN if stays else functions[-1] if functions else _label(node, is_block)
        if held and (stays or now != label):
            yield Piece(label, tuple(held))
            held = []
        label = now
        if stays:
            yield node
        else:
            held.append(node)
    if held:
        yield Piece(label, tuple(held))


def _label(node: fx.Node, is_block: Callable[[str, type], bool]) -> Label:
    """The innermost block that a node runs in; a constant runs where it is read."""
    if node.op == "get_attr" and node.users:
        node = next(iter(node.users))
    stack: dict[str, tuple[str, Any]] = node.meta.get("nn_module_stack") or {}
    for key, (_, kind) in reversed(stack.items()):
        if is_block(key.split("@")[0], kind):
            return key, getattr(kind, "__name__", str(kind))
    return BETWEEN


def _stays(node: fx.Node, module: fx.GraphModule) -> bool:
    """Whether a node must run outside of pieces."""
    if node.op == "get_attr":  # a body of a higher-order operator goes with it, a tensor is passed
        return not isinstance(getattr(module, str(node.target)), fx.GraphModule)
    if node.op == "call_method":
        return node.target in ON_AUTOGRAD
    if node.op != "call_function":
        return False
    if torch_private.is_mode_switch(node.target) or str(node.target) in ON_AUTOGRAD:
        return True
    # what reads no tensor and gives none is there for its effect
    reads = any(isinstance(_value(source), Tensor) for source in node.all_input_nodes)
    return not reads and node.target is not operator.getitem and _value(node) is None


def _take_apart_at_source(graph: fx.Graph) -> None:
    """Move items of what a call gives to that call: pieces pass on tensors and sizes, not lists."""
    for node in list(graph.nodes):
        if node.target is not operator.getitem or len(node.all_input_nodes) != 1:
            continue
        source = node.all_input_nodes[0]
        if source is node.args[0] and not isinstance(_value(source), Tensor):
            source.append(node)


def _value(node: fx.Node) -> Any:
    return node.meta.get("example_value")


def graph_of(piece: Piece, module: fx.GraphModule) -> fx.GraphModule:
    """A piece as a graph of its own, whose names do not tell where in which model it stands."""
    graph = fx.Graph()
    at: dict[fx.Node, fx.Node] = {}
    for node in piece.inputs:
        at[node] = graph.placeholder(f"a{len(at)}")
    for node in piece.nodes:
        at[node] = graph.create_node(
            node.op, node.target, map_arg(node.args, at.__getitem__),
            map_arg(node.kwargs, at.__getitem__), name=f"a{len(at)}",
        )  # fmt: skip
    for node, own in at.items():  # torch keeps methods of what is known as a tensor in its caches
        if isinstance(_value(node), Tensor) and not torch_private.is_open(_value(node)):
            own.meta["example_value"] = _value(node)
    graph.output(tuple(at[node] for node in piece.outputs))
    return fx.GraphModule(module, graph, "Unit")


CONVOLUTIONS = ("conv1d", "conv2d", "conv3d")


def merge_dear(parts: list[Piece | fx.Node]) -> list[Piece | fx.Node]:
    """Blocks that are dearer cut than whole joined with their neighbours.

    Convolutions want their own layout of memory: at a border it is changed back and forth, and
    statistics of a batch beside them are no longer fused into them.
    """
    found: list[Piece | fx.Node] = []
    for part in parts:
        last = found[-1] if found else None
        if isinstance(part, Piece) and isinstance(last, Piece) and (_dear(part) or _dear(last)):
            blocks = last.merged or bool(last.name)
            name = last.name or part.name
            label = (f"{last.label[0]} {part.label[0]}", name)
            found[-1] = Piece(label, last.nodes + part.nodes, blocks + bool(part.name))
        else:
            found.append(part)
    return found


def _dear(piece: Piece) -> bool:
    if not piece.name:
        return False
    names = {getattr(node.target, "__name__", "") for node in piece.nodes}
    return "batch_norm" in names and not names.isdisjoint(CONVOLUTIONS)
