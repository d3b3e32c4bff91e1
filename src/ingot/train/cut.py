"""A part of a graph as a graph of its own, and the tensors without numbers that it takes."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node, Proxy
from torch.fx.proxy import GraphAppendingTracer

from ingot.graphs.layout import is_arranged, order_of
from ingot.graphs.sizes import Open
from ingot.graphs.torch_private import expression_of, substitute_sizes

__all__ = ["ahead", "constants_of", "copied", "count_operations", "cut", "inputs_of"]

ATEN = torch.ops.aten

# sizes read from tensors; the backward may not have those tensors
READS = frozenset(f"aten.{n}" for n in ("sym_size.int", "sym_numel.default", "sym_stride.int"))


def copied(module: GraphModule) -> GraphModule:
    """A copy whose nodes have the same names."""
    graph = Graph()
    known: dict[Node, Node] = {}
    end = graph.graph_copy(module.graph, known)
    graph.output(end)
    return GraphModule(module, graph)


def cut(
    module: GraphModule, sources: Sequence[Node], targets: Sequence[Node], shapes: Open,
    *, carry: bool = False,
) -> GraphModule:  # fmt: skip
    """The graph from some nodes to others.

    With `carry` its first input is an empty tensor whose shape tells the open sizes. Checks that
    depend on the sources alone are kept otherwise.
    """
    graph = Graph()
    known: dict[Node, Node] = {}
    size: Callable[[Any], Any] | None = None
    if carry and shapes.symbols:
        carrier = graph.placeholder("sizes")
        device = sources[0].meta["val"].device
        with shapes.mode:
            carrier.meta["val"] = torch.empty([*shapes.symbols.values(), 0], device=device)
        size = _sizes(graph, carrier, shapes)
    for source in sources:
        place = graph.placeholder(source.name)
        # without the gaps there were when traced: callers arrange what they pass
        place.meta["val"] = shapes.blank_like(source.meta["val"])
        known[source] = place
    # what was traced with other strides is passed in order, and a view of it may need a copy
    values = [source.meta["val"] for source in sources]
    restrided = any(not is_arranged(x, order_of(x)) for x in values)
    wanted = [*targets, *([] if carry else _checks(module, sources))]

    def is_known(node: Node) -> bool:
        return node in known or (size is not None and str(node.target) in READS)

    needed = ahead(wanted, is_known)
    for node in module.graph.nodes:
        if node in known or node not in needed:
            continue
        if size is not None and str(node.target) in READS:
            known[node] = size(node.meta["val"])
        else:
            known[node] = graph.node_copy(node, known.__getitem__)
            if restrided and node.target is ATEN.view.default:
                known[node].target = ATEN.reshape.default
    graph.output(tuple(known[t] for t in targets))
    return GraphModule(module, graph)


def _checks(module: GraphModule, sources: Sequence[Node]) -> list[Node]:
    """What a graph computes for its effect alone, as far as the sources suffice."""
    known = {*sources, *module.graph.find_nodes(op="get_attr")}
    found = []
    for node in module.graph.nodes:
        if node.op == "call_function" and known.issuperset(node.all_input_nodes):
            known.add(node)
            if node.is_impure() and not node.users:
                found.append(node)
    return found


def _sizes(graph: Graph, carrier: Node, shapes: Open) -> Callable[[Any], Any]:
    """Sizes in terms of the open ones."""
    tracer = GraphAppendingTracer(graph)
    read: dict[Any, Proxy] = {}
    for axis, symbol in enumerate(shapes.symbols.values()):
        node = graph.call_function(torch.ops.aten.sym_size.int, (carrier, axis))
        node.meta["val"] = symbol
        read[expression_of(symbol)] = Proxy(node, tracer)

    def size(value: Any) -> Any:
        if isinstance(value, int):
            return value
        found = substitute_sizes(expression_of(value), read)
        return found.node if isinstance(found, Proxy) else found

    return size


def ahead(results: Sequence[Node], stop: Callable[[Node], bool] = lambda _: False) -> set[Node]:
    """What nodes are computed from, themselves included, up to and with those that stop it."""
    found: set[Node] = set()
    left = list(results)
    while left:
        node = left.pop()
        if node not in found:
            found.add(node)
            left.extend(() if stop(node) else node.all_input_nodes)
    return found


def inputs_of(module: GraphModule) -> list[Tensor]:
    """The tensors without numbers that a graph takes."""
    return [n.meta["val"] for n in module.graph.find_nodes(op="placeholder")]


def count_operations(graph: GraphModule) -> int:
    """How many operations a graph has."""
    return len([n for n in graph.graph.nodes if n.op == "call_function"])


def constants_of(graph: GraphModule) -> dict[str, Tensor]:
    """The tensors that a graph holds, by name."""
    names = [str(node.target) for node in graph.graph.find_nodes(op="get_attr")]
    return {name: getattr(graph, name) for name in names}
