"""What a transient gave: one array per variable, and the flat dictionary of the save format."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ingot.drivers.series import Array, Series, find_unknown_name, unscale
from ingot.execute import Status
from ingot.keywords import check_keywords
from ingot.model import lag
from ingot.types import Scalar, Value

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

__all__ = ["Flat", "Result"]


@check_keywords
@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Result:
    """The histories of a run, (steps, *batch, *axes, *base) each, and how every solve went.

    inputs: what was prescribed; initial: step 0 as it was given; read: the model's inputs; times:
    (steps, *batch); kinds, shapes: of the variables, their structural extents where they have any;
    axes: the names of these; units: what curves are labelled with, by variable.

    `result.stress.xx` and `result["stress"]["xx"]` are the components of a tensor as NumPy arrays.
    """

    steps: int
    batch: tuple[int, ...]
    inputs: Mapping[str, Tensor]
    initial: Mapping[str, Tensor]
    outputs: Mapping[str, Tensor]
    read: tuple[str, ...]
    statuses: Sequence[Status]
    seconds: float
    times: Tensor
    kinds: Mapping[str, type[Value]]
    shapes: Mapping[str, tuple[int, ...]]
    axes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # an output of one step has a kind, but no values yet
        known = dict.fromkeys((*self.names, *self.kinds, "time"))
        for name in self.units:
            if name not in known:
                raise find_unknown_name(name, tuple(known))

    @property
    def points(self) -> int:
        """How many points the batch holds."""
        return torch.Size(self.batch).numel()

    @property
    def failed(self) -> int:
        """How many points a solve failed for, at any step."""
        return sum(len(s.find_first_failures()) for s in self.statuses if s.has_failed)

    @property
    def microseconds(self) -> float:
        """Wall time per point and computed step; 0 where none is computed."""
        computed = self.points * (self.steps - 1)
        return 1e6 * self.seconds / computed if computed else 0.0

    @property
    def flat(self) -> "Flat":
        """The values as `input.<step>.<variable>`, `output.<step>.<variable>`, made when read."""
        return Flat(self)

    def at(self, name: str, step: int) -> Tensor | None:
        """A variable at a step, as an output if it is one, or None where it has no value there."""
        if not 0 <= step < self.steps:
            return None
        if step == 0 and name in self.initial:
            return self.initial[name]
        if step > 0 and name in self.outputs:
            return self.outputs[name][step]
        return self.inputs[name][step] if name in self.inputs else None

    # by label

    @property
    def names(self) -> tuple[str, ...]:
        """The variables that have values: inputs, then outputs."""
        return tuple(dict.fromkeys((*self.inputs, *self.initial, *self.outputs)))

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def keys(self) -> tuple[str, ...]:
        """The same as `names`, so that `dict(result)` has every variable."""
        return self.names

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, name: str) -> Series:
        """A variable over all steps and points; `time` is the time where no variable is called so.

        Step 0 is not computed: it holds what was given, zero where the model took a history for
        zero, and NaN elsewhere.
        """
        if name not in self.names:
            if name == "time":
                return Series("time", Scalar, self.spread(self.times, 0).numpy())
            raise find_unknown_name(name, (*self.names, "time"))
        kind = self.kinds[name]
        rank = len(self.shapes.get(name, ())) + len(kind.base)
        stored = self.spread(self._history(name), rank).detach().numpy()
        axes = self.axes.get(name) or [f"{name}.{i}" for i in range(rank - len(kind.base))]
        return Series(name, kind, unscale(kind, stored), tuple(axes), self.units.get(name, ""))

    def __getattr__(self, name: str) -> Series:
        if name.startswith("_") or name in type(self).__dataclass_fields__:
            raise AttributeError(name)  # what Python asks of any object, also of one half made
        return self[name]

    def __dir__(self) -> list[str]:
        names = dict.fromkeys((*self.names, "time"))
        return [*object.__dir__(self), *(name for name in names if name.isidentifier())]

    def _history(self, name: str) -> Tensor:
        if name in self.outputs:
            rows = self.outputs[name]
            kept = {lag(read)[0] for read in self.read if lag(read)[1]}
            if name not in self.initial and name not in kept:
                rows = rows.clone()
                rows[0] = torch.nan
            return rows
        if name in self.inputs:
            return self.inputs[name]
        first = self.initial[name]
        missing = torch.full_like(first, torch.nan).expand(self.steps - 1, *first.shape)
        return torch.cat([first[None], missing])

    def spread(self, values: Tensor, rank: int) -> Tensor:
        """Values (steps, ...) on all of the batch, whose last `rank` axes are not of it."""
        inner = values.shape[values.ndim - rank :]
        batch = values.shape[1 : values.ndim - rank]
        ones = [1] * (len(self.batch) - len(batch))
        whole = values.reshape(self.steps, *ones, *batch, *inner)
        return whole.expand(self.steps, *self.batch, *inner)

    def to_numpy(self) -> dict[str, Array]:
        """Every variable, (steps, *batch, *axes, *base) of the tensor's own components."""
        return {name: self[name].to_numpy() for name in self.names}

    def to_xarray(self) -> "xr.Dataset":
        """Every variable over `time`, `batch` and its components, and how every solve went.

        Components lie along a dimension that is called by the kind: `.stress.sel(SR2="xx")`. Where
        points have times of their own, the first dimension is `step`.
        """
        from ingot.drivers.result_dataset import make_dataset

        return make_dataset(self)

    def __repr__(self) -> str:
        from ingot.drivers.result_text import describe

        return describe(self)

    def _repr_html_(self) -> str:
        from ingot.drivers.result_text import describe_html

        return describe_html(self)

    def plot(self, *words: str, points: int | Sequence[int] = ()) -> "Figure":
        """A figure of matplotlib: what is most telling, or words such as `strain.xx:stress.xx`.

        points: the only one or ones to show; see `ingot plot --help`.
        """
        from ingot.drivers.charts import draw
        from ingot.drivers.curves import find_panels

        chosen = (points,) if isinstance(points, int) else points
        return draw(find_panels(self, words, chosen))

    def save(self, path: str | Path) -> None:
        """Write what the ending says, in one step; `ingot.read_result` reads it back.

        .csv, .parquet: a table, a row for each step and point; .npz, .h5, .zarr: an array for each
        variable; .pt, .pth: every value by its name and step, for `torch.load`.
        """
        from ingot.drivers.formats.choice import save

        save(self, Path(path))


class Flat(Mapping[str, Tensor]):
    """The values of a result under the keys of the save format, without their step axis.

    Step 0 is not computed: it holds what was given. A history is there once its variable was.
    """

    def __init__(self, result: Result) -> None:
        self.result = result

    def __getitem__(self, key: str) -> Tensor:
        side, step, name = (*key.split(".", 2), "", "")[:3]
        if not step.isdigit() or not 0 <= int(step) < self.result.steps:
            raise KeyError(key)
        look = {"input": self.given, "output": self.gave}.get(side)
        found = look(name, int(step)) if look is not None else None
        if found is None:
            raise KeyError(key)
        return found

    def given(self, name: str, step: int) -> Tensor | None:
        """An input at a step, as far as it was recorded."""
        base, back = lag(name)
        result = self.result
        if name not in result.read:
            return None
        if back:
            return result.at(base, step - back) if step >= back else None
        if step == 0 and name in result.initial:
            return result.initial[name]
        return result.inputs[name][step] if name in result.inputs else None

    def gave(self, name: str, step: int) -> Tensor | None:
        """An output at a step; at step 0 an initial value that is no input."""
        if step > 0:
            return self.result.outputs[name][step] if name in self.result.outputs else None
        return None if name in self.result.read else self.result.initial.get(name)

    def __iter__(self) -> Iterator[str]:
        outputs = dict.fromkeys((*self.result.initial, *self.result.outputs))
        for step in range(self.result.steps):
            yield from (
                f"input.{step}.{n}" for n in self.result.read if self.given(n, step) is not None
            )
            yield from (f"output.{step}.{n}" for n in outputs if self.gave(n, step) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)
