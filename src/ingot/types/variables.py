"""What a variable of a model is, told of live models and of packages alike."""

from dataclasses import dataclass

from ingot.types.value import Value

__all__ = ["VariableSpec"]


@dataclass(frozen=True, slots=True)
class VariableSpec:
    """A variable: arrays of it are `(*batch, *axes, *base)`.

    axes: the extents of its structural axes, None where nothing gives them; history: of how many
    steps ago it is
    """

    name: str
    kind: type[Value]
    axes: tuple[int, ...] | None
    history: int

    @property
    def base(self) -> tuple[int, ...]:
        """The shape of its kind."""
        return self.kind.base
