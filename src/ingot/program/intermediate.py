"""Sums, means and differences along a structural axis of a value, whatever it is called."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from ingot.errors import IngotError, Problem
from ingot.hit import Block
from ingot.model import Factory, Model, read_name
from ingot.options import Count
from ingot.program.combinators import check_fields
from ingot.program.tracer import Placed, Tracer
from ingot.types import SR2, difference, total

__all__ = ["SR2IntermediateDiff", "SR2IntermediateMean", "SR2IntermediateSum"]


@dataclass(frozen=True, slots=True)
class SR2IntermediateSum:
    """The sum along the last structural axis, which is gone afterwards.

    from: what is summed
    to: the sum
    reduces: a name for the axis, without effect
    """

    what: Literal["sum", "mean", "difference"]
    dim: int = -1
    order: int = 1

    @staticmethod
    def build(block: Block, factory: Factory) -> Model:
        """The sum as a model."""
        return _build(block, SR2IntermediateSum("sum"))

    def emit(self, model: Model, values: Mapping[str, Placed], tracer: Tracer) -> dict[str, Placed]:
        """One line for each component."""
        (read,), (gives,) = model.inputs, model.outputs
        given = values[read]
        if not -len(given.axes) <= self.dim < len(given.axes):
            message = f"'{read}' has {len(given.axes)} structural axes, and no axis {self.dim}"
            fix = f"declare it, as in [Settings/example_batch_shape] {read} = '(2; 5)'"
            raise IngotError([Problem("unknown-axis", message, model.span, fix)])
        place = self.dim % len(given.axes)
        axis = given.axes[place]
        left, right = given.axes[:place], given.axes[place + 1 :]
        value = tracer.value(given, {axis.name: axis})
        if self.what == "difference":
            if self.order >= tracer.builder.extent(axis):
                message = f"'{read}' has too few entries to be differenced {self.order} times"
                raise IngotError([Problem("extents-differ", message, model.span, "lower 'n'")])
            for _ in range(self.order):
                value = difference(value, axis.name)
            left = (*left, axis._replace(offset=axis.offset - self.order))
        else:
            value = total(value, axis.name)
            value = value / tracer.builder.extent(axis) if self.what == "mean" else value
        nodes = tuple(a.node for a in value.data)
        return {gives: replace(given, nodes=nodes, axes=(*left, *right))}


class SR2IntermediateMean:
    """The mean along the last structural axis, which is gone afterwards.

    from: what is averaged
    to: the mean
    reduces: a name for the axis, without effect
    """

    @staticmethod
    def build(block: Block, factory: Factory) -> Model:
        """The mean as a model."""
        return _build(block, SR2IntermediateSum("mean"))


class SR2IntermediateDiff:
    """Differences of neighbours along a structural axis, which is shorter afterwards.

    from: what is differenced
    to: the differences
    dim: the axis, counted from the left, or from the right where it is negative
    n: how many times, once unless told
    reduces: a name for the axis, without effect
    """

    @staticmethod
    def build(block: Block, factory: Factory) -> Model:
        """The differences as a model."""
        times = block.field("n")
        order = 1 if times is None else times.option(Count)
        body = SR2IntermediateSum("difference", block.require("dim").integer(), order)
        return _build(block, body, "dim", "n")


def _build(block: Block, body: SR2IntermediateSum, *more: str) -> Model:
    check_fields(block, ("from", "to", "reduces", *more))
    block.require("reduces")
    read, gives = (read_name(block.field(name), name) for name in ("from", "to"))
    kind = block.require("type").string()
    return Model(block.name, kind, block.span, {read: SR2}, {gives: SR2}, body)
