"""First guesses for implicit updates, by the names of their unknowns."""

from collections.abc import Mapping
from dataclasses import dataclass

from ingot.hit import Block
from ingot.model import Factory, Model
from ingot.program.combinators import check_fields
from ingot.program.tracer import Placed, Tracer
from ingot.types import KINDS

__all__ = ["ConstantExtrapolationPredictor"]


@dataclass(frozen=True, slots=True)
class ConstantExtrapolationPredictor:
    """Every listed unknown starts at its old value, $u = u_n$.

    unknowns_SR2, unknowns_Scalar, unknowns_MRP, unknowns_R2: the unknowns of each kind
    """

    @staticmethod
    def build(block: Block, factory: Factory) -> Model:
        """The guess as a model from old values to values."""
        kinds = ("SR2", "Scalar", "MRP", "R2")
        check_fields(block, tuple(f"unknowns_{k}" for k in kinds))
        outputs = {
            name: KINDS[k]
            for k in kinds
            if (field := block.field(f"unknowns_{k}")) is not None
            for name in field.words()
        }
        inputs = {f"{name}~1": kind for name, kind in outputs.items()}
        body = ConstantExtrapolationPredictor()
        kind = "ConstantExtrapolationPredictor"
        return Model(block.name, kind, block.span, inputs, outputs, body)

    def emit(self, model: Model, values: Mapping[str, Placed], tracer: Tracer) -> dict[str, Placed]:
        """The old values under the names of the new."""
        return {name: values[f"{name}~1"] for name in model.outputs}
