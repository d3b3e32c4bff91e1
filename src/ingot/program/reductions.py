"""Models that read the whole batch: sums and means over points."""

from collections.abc import Mapping
from dataclasses import dataclass

from ingot.hit import Block
from ingot.model import Factory, Model, read_name
from ingot.program.combinators import check_fields
from ingot.program.points import Reduction
from ingot.program.tracer import Placed, Tracer
from ingot.types import SR2

__all__ = ["SR2DynamicMean", "SR2DynamicSum"]


@dataclass(frozen=True, slots=True)
class SR2DynamicSum:
    """The sum over an axis of the batch, which is gone afterwards.

    from: what is summed; to: the sum; dim: the axis, counted from the left, or from the right
    where it is negative.
    """

    reduction: Reduction

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
    read, gives = (read_name(block.field(name), name) for name in ("from", "to"))
    reduction = Reduction(block.require("dim").integer(), is_mean, block.name, block.span)
    body = SR2DynamicSum(reduction)
    kind = "SR2DynamicMean" if is_mean else "SR2DynamicSum"
    return Model(block.name, kind, block.span, {read: SR2}, {gives: SR2}, body)
