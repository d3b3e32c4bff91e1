"""How much memory each way to partition keeps from forward to backward."""

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import msgspec
import torch
from torch.fx import Node

from ingot.graphs.sizes import Dynamic, evaluated
from ingot.keywords import check_keywords
from ingot.train.call import prepare
from ingot.train.cut import count_operations
from ingot.train.partitioner import STRATEGIES, Halves, Partition, partition
from ingot.train.signature import Shaped
from ingot.train.tracer import trace
from ingot.train.views import root

__all__ = ["Comparison", "Row", "compare_partitions", "described"]


class Row(msgspec.Struct, frozen=True):
    """One partition: what it saves, and the operations of each half.

    `saved` counts what is kept for the backward alone, `held` inputs and results kept alive.
    """

    partition: str
    saved: int
    held: int
    tensors: int
    forward: int
    backward: int


class Comparison(msgspec.Struct, frozen=True):
    """Bytes saved per call by each partition, at given sizes."""

    name: str
    sizes: dict[str, int]
    rows: tuple[Row, ...]

    def __getitem__(self, partition: str) -> Row:
        return next(row for row in self.rows if row.partition == partition)

    def __str__(self) -> str:
        at = ", ".join(f"{name} = {size}" for name, size in self.sizes.items())
        head = f"{self.name}{f' at {at}' if at else ''}: bytes saved per call"
        form = "{:<12} {:>12} {:>8} {:>12} {:>12} {:>13}"
        heads = ("partition", "saved", "tensors", "also held", "forward ops", "backward ops")
        lines = [form.format(*heads)]
        lines += [
            form.format(r.partition, r.saved, r.tensors, r.held, r.forward, r.backward)
            for r in self.rows
        ]
        return "\n".join([head, *lines])


@check_keywords
def compare_partitions(
    function: Callable[..., Any],
    example: Any,
    *,
    dynamic: Dynamic = None,
    partitions: tuple[Partition, ...] = STRATEGIES,
    sizes: Mapping[str, int] | None = None,
) -> Comparison:
    """Partition one joint graph in several ways; sizes are the example's unless given."""
    traced = trace(prepare(function, example, dynamic))
    at = {**traced.call.open.hints, **(sizes or {})}
    rows = tuple(described(partition(traced, way), at) for way in partitions)
    return Comparison(traced.call.name, at, rows)


def described(halves: Halves, sizes: Mapping[str, int]) -> Row:
    """What a partition saves at given sizes."""
    signature, saved = halves.signature, halves.saved
    given = [*(h.tensor for h in signature.held), *signature.tensors]
    drawn = [signature.draws[i - len(given)].like for i in saved.primals if i >= len(given)]
    nodes = {n.name: n for n in halves.traced.graph.graph.nodes}
    shared: dict[Any, int] = {}
    for one in saved.extra:
        origin = root(nodes[one.name])
        whole = _whole(origin, halves, sizes)
        shared[origin] = min(shared.get(origin, 0) + _bytes(one, sizes), whole)
    held = [given[i] for i in saved.primals if i < len(given)]
    held += [signature.results[i] for i in saved.results]
    return Row(
        halves.strategy,
        sum(shared.values()) + sum(_bytes(s, sizes) for s in drawn),
        sum(_bytes(s, sizes) for s in held),
        len(saved.extra) + len(drawn),
        count_operations(halves.forward),
        count_operations(halves.backward) if halves.backward is not None else 0,
    )


def _whole(origin: Node, halves: Halves, sizes: Mapping[str, int]) -> int:
    """The bytes of what several saved values may be views of."""
    value = origin.meta["val"]
    text = halves.traced.call.open.text
    return value.dtype.itemsize * prod(evaluated(text(n), sizes) for n in value.shape)


def _bytes(shaped: Shaped, sizes: Mapping[str, int]) -> int:
    count = prod(evaluated(size, sizes) for size in shaped.sizes)
    return count * getattr(torch, shaped.dtype).itemsize
