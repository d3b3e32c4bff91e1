"""Sums and means over points: models that read the whole batch, and the operation they are.

Points are independent otherwise, so that only `interpret` holds them, outside of any solve.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from ingot.errors import IngotError, Problem, Span
from ingot.hit import Block
from ingot.model import Factory, Model
from ingot.program.builder import Node, Slopes, Space, sort_lines
from ingot.program.combinators import check_fields
from ingot.program.operations import Bars, Operation, Tangent, operation
from ingot.program.tracer import Placed, Tracer
from ingot.types import SR2

__all__ = ["SR2DynamicMean", "SR2DynamicSum", "find_reduced", "remove_axes"]

Dims = tuple[int, ...]


class _Reduction(NamedTuple):
    """Over which axis of the batch, and whether the sum is divided by its entries."""

    dim: int
    is_mean: bool
    name: str
    span: Span | None

    @property
    def digest(self) -> tuple[int, bool]:
        """What tells reductions apart."""
        return self.dim, self.is_mean


@dataclass(frozen=True, slots=True)
class SR2DynamicSum:
    """The sum over an axis of the batch, which is gone afterwards.

    from: what is summed; to: the sum; dim: the axis, counted from the left, or from the right
    where it is negative.
    """

    reduction: _Reduction

    @staticmethod
    def build(block: Block, factory: Factory) -> Model:
        """The sum as a model."""
        return _build(block, is_mean=False)

    def emit(self, model: Model, values: Mapping[str, Placed], tracer: Tracer) -> dict[str, Placed]:
        """One line for each component."""
        (read,), (gives,) = model.inputs, model.outputs
        given = values[read]
        nodes = tuple(
            tracer.builder.node("batch_sum", (n,), self.reduction, given.axes) for n in given.nodes
        )
        return {gives: Placed(given.kind, nodes, given.axes)}


class SR2DynamicMean:
    """The mean over an axis of the batch, which is gone afterwards.

    from: what is averaged; to: the mean; dim: the axis, counted from the left, or from the right
    where it is negative.
    """

    @staticmethod
    def build(block: Block, factory: Factory) -> Model:
        """The mean as a model."""
        return _build(block, is_mean=True)


def _build(block: Block, *, is_mean: bool) -> Model:
    check_fields(block, ("from", "to", "dim"))
    read, gives = (
        name if (field := block.field(name)) is None else field.string() for name in ("from", "to")
    )
    reduction = _Reduction(block.require("dim").integer(), is_mean, block.name, block.span)
    body = SR2DynamicSum(reduction)
    kind = "SR2DynamicMean" if is_mean else "SR2DynamicSum"
    return Model(block.name, kind, block.span, {read: SR2}, {gives: SR2}, body)


def _problem(reduction: _Reduction, told: str, fix: str) -> Problem:
    what = "mean" if reduction.is_mean else "sum"
    message = f"[{reduction.name}] is a {what} over points, {told}"
    return Problem("batch-reduction", message, reduction.span, fix)


class _BatchSum(Operation):
    """The sum over an axis of the batch."""

    name = "batch_sum"
    is_whole = True
    couples_points = True

    def push(
        self, d: Slopes, node: Node, known: Mapping[int, Any], columns: Sequence[Node]
    ) -> Tangent:
        held = known.get(node.args[0].id, {})
        return {
            key: d.builder.node("batch_sum", (t,), node.attr, t.axes) for key, t in held.items()
        }

    def pull(self, d: Slopes, node: Node, bar: Node) -> Bars:
        raise IngotError([self.refuse_points(node, "which has no adjoint at one point")])

    def unroll(self, to: Any, node: Node, entry: tuple[int, ...]) -> NoReturn:
        raise IngotError([self.refuse(node, "generated C++")])

    def evaluate(self, on: Any, space: Space, node: Node, args: Sequence[Any]) -> Any:
        (x,) = args
        reduction: _Reduction = node.attr
        batch = remove_axes(on.call.batch, on.call.reduced[node.args[0].id] or ())
        whole = x.expand(*x.shape[:-1], math.prod(batch)).reshape(*x.shape[:-1], *batch)
        at = reduction.dim % len(batch) - len(batch)
        total = whole.mean(at) if reduction.is_mean else whole.sum(at)
        return total.reshape(*x.shape[:-1], -1)

    def refuse(self, node: Node, what: str) -> Problem:
        """The problem of an executor that runs points apart."""
        return _problem(
            node.attr, f"and {what} runs points apart", "run it with --backend interpret"
        )

    def refuse_points(self, node: Node, why: str) -> Problem:
        """The problem where something is asked of every point by itself."""
        return _problem(node.attr, why, "take the sum outside, of what the model gives")

    def write_text(self, node: Node, args: Sequence[str]) -> str:
        what = "mean" if node.attr.is_mean else "sum"
        return f"{what}({args[0]} over axis {node.attr.dim} of the batch)"


def remove_axes(batch: Sequence[int], dims: Iterable[int]) -> tuple[int, ...]:
    """A batch shape without the axes that were reduced, one after another."""
    left = list(batch)
    for dim in dims:
        del left[dim]
    return tuple(left)


def find_reduced(
    lines: Sequence[Node], given: Mapping[int, Dims | None], batch: Sequence[int]
) -> dict[int, Dims | None]:
    """Of each line the axes of the batch that it was reduced over; None where it has no batch.

    A reduced value that meets values of every point has one at every point, where it has no batch
    of its own left; otherwise the two do not go together.
    """
    found: dict[int, Dims | None] = dict(given)
    for node in lines:
        dims = {found[a.id] for a in node.args} - {None}
        if operation(node.op).couples_points:
            held = found[node.args[0].id] or ()
            found[node.id] = (*held, _fit(node.attr, remove_axes(batch, held)))
        elif operation(node.op).is_block or len(dims) > 1:
            for left in filter(None, dims):
                _require_single(node, remove_axes(batch, left), batch)
            found[node.id] = ()
        else:
            found[node.id] = dims.pop() if dims else None
    return found


def _fit(reduction: _Reduction, batch: Sequence[int]) -> int:
    if not -len(batch) <= reduction.dim < len(batch):
        told = f"and the batch {tuple(batch)} has no axis {reduction.dim}"
        raise IngotError([_problem(reduction, told, "choose another 'dim'")])
    return reduction.dim


def _require_single(node: Node, left: tuple[int, ...], batch: Sequence[int]) -> None:
    if left:
        reduction = next(n.attr for n in sort_lines([node]) if operation(n.op).couples_points)
        told = f"of batch {left}, and meets values of batch {tuple(batch)}"
        raise IngotError([_problem(reduction, told, "sum over all axes of the batch before")])
