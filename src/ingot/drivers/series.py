"""Series: one variable of a Result over all steps and points, its components by name."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ingot.errors import IngotError, Problem, did_you_mean
from ingot.extras import require_extra
from ingot.types import Value
from ingot.types.components import list_component_names, list_scales

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Array", "Series", "find_unknown_name", "name_batch_axes", "unscale"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Series:
    """A variable over time, (steps, *batch, *axes, *base), as the tensor's own components.

    `series.xx` is one of them, (steps, *batch, *axes); shear is divided by what Mandel's order
    multiplies it with. values: all of them; axes: the names of the structural ones.
    """

    name: str
    kind: type[Value]
    values: Array
    axes: tuple[str, ...] = ()
    unit: str = ""

    @property
    def components(self) -> tuple[str, ...]:
        """The names of its components, none of a Scalar's."""
        names = list_component_names(self.kind)
        return () if names == ("",) else names

    @property
    def shape(self) -> tuple[int, ...]:
        """(steps, *batch, *axes, *base)."""
        return self.values.shape

    def component(self, name: str) -> Array:
        """One component, (steps, *batch, *axes)."""
        if name not in self.components:
            message = f"'{self.name}' has no component '{name}': it is a {self.kind.__name__}"
            fix = f"choose one of: {', '.join(self.components)}" if self.components else None
            fix = did_you_mean(name, self.components) or fix or f"write '{self.name}' alone"
            raise IngotError([Problem("unknown-name", message, None, fix)])
        place = np.unravel_index(self.components.index(name), self.kind.base)
        return self.values[(..., *place)]

    def __getattr__(self, name: str) -> Array:
        if name.startswith("_"):  # what Python and notebooks ask of any object
            raise AttributeError(name)
        try:
            return self.component(name)
        except IngotError as error:
            raise UnknownName(error.problems) from None

    def __getitem__(self, at: Any) -> Array:
        """A component by its name, or entries as NumPy counts them."""
        return self.component(at) if isinstance(at, str) else self.values[at]

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.values, dtype, copy=copy)

    def __dir__(self) -> list[str]:
        return [*object.__dir__(self), *self.components]

    def __repr__(self) -> str:
        unit = f" in {self.unit}" if self.unit else ""
        shape = "x".join(map(str, self.shape))
        parts = f", components {' '.join(self.components)}" if self.components else ""
        return f"<Series {self.name}{unit}: {self.kind.__name__}, {shape}{parts}>"

    def to_numpy(self) -> Array:
        """All numbers, (steps, *batch, *axes, *base)."""
        return self.values

    def to_xarray(self, times: Array) -> "xr.DataArray":
        """The same with its dimensions named; see `Result.to_xarray`."""
        array = require_extra("xarray", "labelled arrays")
        count = len(self.kind.base)
        outer = self.values.shape[: self.values.ndim - count]
        batch = len(outer) - 1 - len(self.axes)
        steps = "time" if times.ndim == 1 else "step"
        places = name_batch_axes(batch)
        dims = [steps, *places, *self.axes]
        coordinates: dict[str, Any] = {"time": ((steps, *places)[: times.ndim], times)}
        values = self.values
        if self.components:
            values = values.reshape(*outer, len(self.components))
            dims.append(self.kind.__name__)
            coordinates[self.kind.__name__] = list(self.components)
        told = {"kind": self.kind.__name__} | ({"units": self.unit} if self.unit else {})
        return array.DataArray(values, coordinates, dims, name=self.name, attrs=told)


def name_batch_axes(count: int) -> list[str]:
    """What the axes of a batch are called."""
    return ["batch"] if count == 1 else [f"batch{i}" for i in range(count)]


class UnknownName(IngotError, AttributeError):
    """A variable that a result has not; an AttributeError too, so that `hasattr` works."""


def find_unknown_name(name: str, known: Iterable[str], more: Iterable[str] = ()) -> UnknownName:
    """The error to raise where a result has no variable of a name; more: what else is close."""
    names = list(known)
    fix = did_you_mean(name, (*names, *more)) or f"choose one of: {', '.join(names)}"
    return UnknownName([Problem("unknown-name", f"the result has no '{name}'", None, fix)])


def unscale(kind: type[Value], stored: Array) -> Array:
    """The tensor's own components of stored ones, in their precision."""
    scales = list_scales(kind).astype(stored.dtype)
    return stored if np.all(scales == 1) else stored / scales
