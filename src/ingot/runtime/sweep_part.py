"""A part of a sweep: its plan and a number in, the values of its points out; what a worker does."""

import os
from collections.abc import Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import torch
from torch import Tensor

from ingot.execute.transient import Transient
from ingot.runtime.artifact import Artifact
from ingot.runtime.loader import load

__all__ = [
    "GIVEN",
    "PACKAGE",
    "PLAN",
    "Column",
    "Plan",
    "Planned",
    "Rows",
    "compute_part",
    "make_part",
    "open_plan",
]

PLAN, GIVEN, PACKAGE = "plan.json", "given.pt", "model"
"""The files of a plan's folder: what is asked, the arrays that are given, and the package."""

Rows = dict[str, np.ndarray]
"""Of each variable its values (points, steps, *axes, *base), and how the solves went."""


class Column(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column of a table: the component of a variable."""

    name: str
    variable: str
    place: tuple[int, ...]


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a sweep computes and how it is cut.

    points: the product of the lengths of all axes and of the driver's batch, whose index varies
    fastest; size: points of a part, the last of which may have fewer; kept: the steps that are
    written; parameters, inputs: what the axes are; axis: which one a name moves along; labels: what
    its column is called; variables: the extents of each output that is written, without points and
    steps; scales: what its components are divided by, to be those of the tensor; begun: the outputs
    that have an initial value.
    """

    digest: str
    format: Literal["parquet", "zarr"]
    points: int
    size: int
    lengths: tuple[int, ...]
    batch: tuple[int, ...]
    steps: int
    kept: tuple[int, ...]
    parameters: tuple[str, ...]
    inputs: tuple[str, ...]
    axis: dict[str, int]
    labels: dict[str, str]
    columns: tuple[Column, ...]
    variables: dict[str, tuple[int, ...]]
    scales: dict[str, list[Any]]
    begun: tuple[str, ...]
    solves: int
    version: Literal[1] = 1

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return -(-self.points // self.size)

    def span(self, number: int) -> range:
        """The points of a part."""
        return range(self.size * number, min(self.size * (number + 1), self.points))


class Planned:
    """A plan with its arrays and its package, which is loaded once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plan = msgspec.json.decode((folder / PLAN).read_bytes(), type=Plan)
        with (folder / GIVEN).open("rb") as stream:
            given = torch.load(stream, weights_only=True)
        self.axes: dict[str, Tensor] = given["axes"]
        self.prescribed: dict[str, tuple[Tensor, int]] = given["prescribed"]
        self.initial: dict[str, tuple[Tensor, int]] = given["initial"]
        self.parameters: dict[str, tuple[Tensor, int]] = given["parameters"]
        self.times: Tensor = given["times"]

    @cached_property
    def artifact(self) -> Artifact:
        """The package."""
        return load(self.folder / PACKAGE)

    def find_axes(self, number: int) -> dict[str, Tensor]:
        """The value of every axis at the points of a part."""
        plan = self.plan
        points = np.arange(plan.span(number).start, plan.span(number).stop)
        places = np.unravel_index(points // _count(plan.batch), plan.lengths)
        return {name: x[torch.from_numpy(places[plan.axis[name]])] for name, x in self.axes.items()}

    def select(self, given: Mapping[str, tuple[Tensor, int]], number: int) -> dict[str, Tensor]:
        """Given arrays at the points of a part; one that is the same for all is left as it is."""
        plan = self.plan
        span = plan.span(number)
        inner = np.arange(span.start, span.stop) % _count(plan.batch)
        places = [torch.from_numpy(i) for i in np.unravel_index(inner, plan.batch or (1,))]
        return {name: _take(x, lead, plan.batch, places) for name, (x, lead) in given.items()}

    def label_axes(self, number: int) -> dict[str, np.ndarray]:
        """The same as arrays under the names of their columns."""
        return {self.plan.labels[n]: x.numpy() for n, x in self.find_axes(number).items()}

    def find_times(self, number: int) -> np.ndarray:
        """The time of each kept step, for all points of a part or (points, kept)."""
        lead = {"t": (self.times, 1)}
        times = self.select(lead, number)["t"][list(self.plan.kept)]
        return times.numpy() if times.ndim == 1 else times.T.numpy()


def _count(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=np.int64))


def _take(x: Tensor, lead: int, batch: tuple[int, ...], places: list[Tensor]) -> Tensor:
    """The entries of some points: (*lead, points, ...) of (*lead, *batch, ...), or x as it is.

    lead: how many axes come before those of the batch, which are as many as the driver's has.
    """
    own = x.shape[lead : lead + len(batch)]
    if all(n == 1 for n in own):
        return x.reshape((*x.shape[:lead], *x.shape[lead + len(own) :]))
    index = (i if n > 1 else torch.zeros_like(i) for n, i in zip(own, places, strict=True))
    return x[(*(slice(None) for _ in range(lead)), *index)]


def open_plan(folder: Path) -> Planned:
    """The plan in a folder; the last one that was opened is kept, package and all."""
    return _open(folder, os.stat(folder / PLAN).st_mtime_ns)


@lru_cache(maxsize=1)
def _open(folder: Path, changed: int) -> Planned:
    return Planned(folder)


def compute_part(planned: Planned, number: int) -> Rows:
    """The values at the points of a part; of points that failed NaN."""
    plan, artifact = planned.plan, planned.artifact
    axes = planned.find_axes(number)
    count = len(plan.span(number))
    held = planned.select(planned.parameters, number)
    for name, value in ({n: axes[n] for n in plan.parameters} | held).items():
        artifact.set_parameter(name, value)
    prescribed = planned.select(planned.prescribed, number)
    prescribed |= {name: axes[name].expand(plan.steps, count) for name in plan.inputs}
    initial = planned.select(planned.initial, number)
    history = artifact.arrange(Transient(plan.steps, prescribed, initial))()
    kept = list(plan.kept)
    rows: Rows = {}
    for name, inner in plan.variables.items():
        values = history.outputs[name]
        values = values.reshape(plan.steps, -1, *inner).expand(plan.steps, count, *inner)[kept]
        values = values.transpose(0, 1).contiguous()
        if name not in plan.begun and kept[0] == 0:
            values[:, 0] = torch.nan  # step 0 is given, not computed
        if name in plan.scales:
            values /= torch.tensor(plan.scales[name], dtype=values.dtype)
        rows[name] = values.numpy()
    if plan.solves:
        reasons, iterations = (
            sum(_each_step(getattr(s, row), plan.steps, count) for s in history.statuses)
            for row in ("reason", "iterations")
        )
        rows["converged"] = (reasons[kept] == 0).T.contiguous().numpy()  # pyright: ignore[reportIndexIssue, reportAttributeAccessIssue]
        rows["iterations"] = iterations[kept].T.to(torch.int32).contiguous().numpy()  # pyright: ignore[reportIndexIssue, reportAttributeAccessIssue]
    return rows


def _each_step(row: Tensor, steps: int, count: int) -> Any:
    """A row of a status (steps - 1, points), with zeros for the step that is given."""
    told = row.reshape(steps - 1, -1).expand(steps - 1, count).to(torch.int64)
    return torch.cat([told.new_zeros(1, count), told])


def make_part(job: Path) -> None:
    """Compute the part that a path names, the plan's folder and a number, and write it."""
    from ingot.runtime.sweep_store import put_part

    planned = open_plan(job.parent)
    put_part(planned, int(job.name), compute_part(planned, int(job.name)))
