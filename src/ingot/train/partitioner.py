"""Traced -> Halves: which values travel from forward to backward, and the graph of each.

A strategy is a name, or any callable with torch's protocol: joint graph in, two graphs out.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node

from ingot.errors import IngotError, Problem, did_you_mean
from ingot.graphs.torch_private import partition_by_torch, tracing_context
from ingot.train.call import describe_tensor
from ingot.train.cut import ahead, copied, cut
from ingot.train.signature import Saved, Signature
from ingot.train.tracer import Traced
from ingot.train.views import parent, root

__all__ = ["STRATEGIES", "Halves", "Partition", "partition"]

Partition = str | Callable[..., Any]
STRATEGIES = ("default", "min-cut", "save-all", "save-none")


@dataclass(frozen=True, slots=True)
class Halves:
    """Forward: primals -> results and extra. Backward: sizes, saved, tangents -> gradients."""

    traced: Traced
    strategy: str
    saved: Saved
    forward: GraphModule
    backward: GraphModule | None

    @property
    def signature(self) -> Signature:
        """What a call takes and gives."""
        return self.traced.signature

    def __str__(self) -> str:
        lines = [f"# forward, saving by {self.strategy}", self.forward.code.strip()]
        if self.backward is not None:
            lines += ["# backward", self.backward.code.strip()]
        return "\n".join(lines)


def partition(traced: Traced, strategy: Partition = "min-cut") -> Halves:
    """Cut the joint graph in two where the strategy says."""
    name = strategy if isinstance(strategy, str) else getattr(strategy, "__name__", "callable")
    known = strategy in STRATEGIES if isinstance(strategy, str) else callable(strategy)
    if not known:
        fix = did_you_mean(str(strategy), STRATEGIES) or f"choose among {', '.join(STRATEGIES)}"
        told = f"there is no way to partition called '{strategy}'"
        raise IngotError([Problem("wrong-argument", told, None, fix)])
    joint = copied(traced.graph)
    results, gradients = _outputs(joint, traced.count)
    primals = [n for n in joint.graph.find_nodes(op="placeholder") if "tangents" not in n.name]
    tangents = [n for n in joint.graph.find_nodes(op="placeholder") if "tangents" in n.name]
    if not gradients:
        forward = cut(joint, primals, _apart(joint.graph, results, []), traced.call.open)
        return Halves(traced, name, Saved((), (), (), ()), forward, None)
    kept = set(_chosen(traced, joint, strategy))
    reached = _settled(kept, primals, tangents, results, gradients)
    every = strategy == "save-all"
    extra = [
        n for n in joint.graph.nodes
        if n not in primals and n not in results and (n in reached or (every and n in kept))
    ]  # fmt: skip
    from_primals = [p for p in primals if p in reached]
    from_results = [r for r in results if r in reached]
    sources = [*from_primals, *from_results, *extra, *tangents]
    backward = cut(joint, sources, gradients, traced.call.open, carry=True)
    saved = Saved(
        sizes=tuple(traced.call.open.symbols),
        primals=tuple(primals.index(p) for p in from_primals),
        results=tuple(results.index(r) for r in from_results),
        extra=tuple(
            describe_tensor(n.name, n.meta["val"], traced.call.open, differ=False) for n in extra
        ),
    )
    given = [*_apart(joint.graph, results, extra), *extra]
    return Halves(traced, name, saved, cut(joint, primals, given, traced.call.open), backward)


def _outputs(joint: GraphModule, count: int) -> tuple[list[Node], list[Node]]:
    outputs: Any = joint.graph.output_node().args[0]
    return list(outputs[:count]), list(outputs[count:])


def _chosen(traced: Traced, joint: GraphModule, strategy: Partition) -> Iterable[Node]:
    """The nodes that a strategy saves."""
    forward = ahead(_outputs(joint, traced.count)[0])
    if strategy == "save-none":
        return []
    if strategy == "save-all":
        return [n for n in joint.graph.nodes if n in forward and _is_new_tensor(n)]
    by_name = {n.name: n for n in joint.graph.nodes}
    found = _by_torch(traced, strategy, {n.name for n in forward})
    unknown = [n for n in found if n not in by_name]
    if unknown:
        told = f"the partition saves '{unknown[0]}', which the joint graph does not hold"
        fix = "save nodes of the graph that the partition was given, by their names"
        raise IngotError([Problem("wrong-partition", told, None, fix)])
    return [by_name[n] for n in found if isinstance(by_name[n].meta.get("val"), Tensor)]


def _by_torch(traced: Traced, strategy: Partition, forward: set[str]) -> list[str]:
    joint = copied(traced.graph)
    for node in joint.graph.nodes:
        if node.name in forward:
            node.meta["partitioner_tag"] = "is_forward"
    inputs = [n.meta["val"] for n in joint.graph.find_nodes(op="placeholder")]
    count = sum("tangents" not in n.name for n in joint.graph.find_nodes(op="placeholder"))
    chosen = partition_by_torch(strategy) if isinstance(strategy, str) else strategy
    mode = traced.call.open.mode
    with mode, tracing_context(mode):
        found = chosen(joint, [inputs[:count], inputs[count:]], num_fwd_outputs=traced.count)
    if isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], GraphModule):
        places = found[1].graph.find_nodes(op="placeholder")
        return [n.name for n in places if "tangents" not in n.name]
    return [str(name) for name in found]


def _is_new_tensor(node: Node) -> bool:
    computed = node.op == "call_function" and isinstance(node.meta.get("val"), Tensor)
    return computed and parent(node) is None


def _reached(gradients: Sequence[Node], stops: set[Node]) -> set[Node]:
    """Where a walk from the gradients stops; sizes are known to the backward anyway."""

    def is_size(node: Node) -> bool:
        return isinstance(node.meta.get("val"), torch.SymInt | torch.SymFloat)

    found = ahead(gradients, lambda node: node in stops or is_size(node))
    return {node for node in found & stops if not is_size(node)}


def _settled(
    kept: set[Node], primals: list[Node], tangents: list[Node],
    results: list[Node], gradients: list[Node],
) -> set[Node]:  # fmt: skip
    """What the backward reads. Of a view of an input, of a result or of another saved value it
    reads that instead: it costs nothing, and autograd notices what is written to in between.
    """
    whole = {*primals, *results}
    while True:
        reached = _reached(gradients, {*kept, *primals, *tangents}) - set(tangents)
        known = whole | reached
        views = {k: _above(k, known) for k in reached - whole}
        again = {k: origin for k, origin in views.items() if origin is not None}
        if not again:
            return reached
        kept -= set(again)
        kept |= {origin for origin in again.values() if origin in results}


def _above(node: Node, known: set[Node]) -> Node | None:
    """What a node is a view of among those known, if it is."""
    above = parent(node)
    while above is not None and above not in known:
        above = parent(above)
    return above


def _apart(graph: Graph, results: list[Node], extra: list[Node]) -> list[Node]:
    """Results that share memory neither with one another nor with what is saved."""
    taken = {root(k) for k in extra}
    given = []
    for node in results:
        origin = root(node)
        if origin in taken:
            with graph.inserting_after(node):
                copy = graph.call_function(torch.ops.aten.clone.default, (node,))
            copy.meta["val"] = node.meta["val"]
            node = copy
        taken.add(origin)
        given.append(node)
    return given
