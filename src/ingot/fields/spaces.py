"""Space: the grid of a domain as tensors, its wavenumbers, and the transforms between the two.

In: sizes and bounds. Out: a bundle of tensors that computes receive like any other input.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import torch
from torch import Tensor

from ingot.errors import IngotError, Problem
from ingot.fields.shares import ExchangeError, Mode, Share
from ingot.graphs import torch_private

__all__ = ["Grid", "Mode", "Narrow", "Space", "Spectrum", "space"]

Grid = Annotated[Tensor, "grid"]
"""A field on the grid: its leading axes are those of space, the rest are its components."""

Spectrum = Annotated[Tensor, "spectrum"]
"""A field over the stored wavenumbers, laid out like a Grid."""

Narrow = Annotated[Tensor, "narrow"]
"""A Grid or a Spectrum as it is stored: an axis along which it is constant may have one cell."""


@dataclass(frozen=True, slots=True)
class Space:
    """A periodic box: points, angular wavenumbers, their squares, spacings and lower corner.

    All are tensors, so that a graph can take them as inputs; sizes are read off the axes. Each
    axis has the rank of space and one extent; an unused one is a single zero.
    """

    axes: tuple[Tensor, Tensor, Tensor]
    waves: tuple[Tensor, Tensor, Tensor]
    k2: Tensor
    spacing: tuple[Tensor, Tensor, Tensor]
    lower: tuple[Tensor, Tensor, Tensor]
    dim: int
    mode: Mode
    slabs: tuple[int, ...] = ()
    """How many rows along y each rank would hold, where the box is shared among ranks."""
    share: Share | None = None
    """The part of the box that this space is, where ranks are processes."""

    def size(self, axis: int) -> int:
        """The number of cells along an axis; symbolic while a graph is captured."""
        return self.axes[axis].shape[axis]

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes in use."""
        return tuple(self.size(axis) for axis in range(self.dim))

    @property
    def spectrum_shape(self) -> tuple[int, ...]:
        """The sizes of a spectrum."""
        return tuple(self.waves[axis].shape[axis] for axis in range(self.dim))

    @property
    def cell_volume(self) -> Tensor:
        """The product of the spacings in use."""
        return math.prod(self.spacing[1 : self.dim], start=self.spacing[0])

    @property
    def volume(self) -> Tensor:
        """The product of the lengths in use, of the whole box."""
        return self.cell_volume * self.cells

    @property
    def whole_shape(self) -> tuple[int, ...]:
        """The sizes of the whole box, of which ranks hold parts."""
        return self.shape if self.share is None else self.share.parts.sizes

    @property
    def cells(self) -> int:
        """How many cells the whole box has."""
        return math.prod(self.whole_shape)

    def sum(self, field: Tensor) -> Tensor:
        """The sum of all entries, over all ranks."""
        if self.share is None:
            return field.sum()
        refuse_capture(field)
        return self.share.add(field.sum())

    def mean(self, field: Grid) -> Tensor:
        """The mean of all entries, over all ranks; a narrow field counts in every cell."""
        if self.share is None:
            return field.mean()
        refuse_capture(field)
        per_cell = math.prod(field.shape[self.dim :])
        return self.share.add(self.whole(field).sum()) / (self.cells * per_cell)

    def average(self, field: Narrow, *, keepdim: bool = False) -> Tensor:
        """The mean over all cells of every component; `keepdim` leaves one cell along each axis."""
        axes = tuple(range(self.dim))
        if self.share is None:
            return self.whole(field).mean(axes, keepdim=keepdim)
        refuse_capture(field)
        return self.share.add(self.whole(field).sum(axes, keepdim=keepdim)) / self.cells

    def norm(self, field: Tensor) -> Tensor:
        """The root of the sum of squares of all entries, over all ranks."""
        if self.share is None:
            return torch.linalg.vector_norm(field)
        refuse_capture(field)
        squares = field.real**2 + field.imag**2 if field.is_complex() else field**2
        return self.share.add(squares.sum()).sqrt()

    def largest(self, field: Tensor) -> Tensor:
        """The largest entry, over all ranks."""
        if self.share is None:
            return field.max()
        refuse_capture(field)
        return self.share.largest(field.max())

    def reaches(self, axis: int, *, upper: bool) -> bool:
        """Whether this part of the box has its first cells along an axis, or its last."""
        if self.share is None:
            return True
        part = self.share.box[axis]
        return part.stop == self.whole_shape[axis] if upper else part.start == 0

    def require_one(self, what: str) -> None:
        """Refuse what only a process that holds the whole box does."""
        if self.share is not None and self.share.parts.count > 1:
            message = f"{what} needs the whole box, and {self.share.parts.count} ranks share it"
            raise IngotError([Problem("wrong-ranks", message, fix="run it without --ranks")])

    def require_rows(self, axis: int, count: int) -> None:
        """Refuse a cut that leaves a rank fewer rows along an axis than it needs, on all ranks."""
        if self.share is not None:
            self.share.require_rows(axis, count)

    def roll(self, field: Grid, distances: Sequence[int], axes: Sequence[int]) -> Grid:
        """A periodic field moved by so many cells along each of these axes."""
        if self.share is None:
            return torch.roll(field, tuple(distances), tuple(axes))
        refuse_capture(field)
        for distance, axis in zip(distances, axes, strict=True):
            left, most = distance, self.share.thinnest(axis)
            while left:
                # neighbours alone are asked, so a part that is thin is crossed in several hops
                hop = max(-most, min(most, left))
                padded = self.share.pad(field, axis, abs(hop))
                field = padded.narrow(axis, abs(hop) - hop, field.shape[axis])
                left -= hop
        return field.contiguous()

    def full(self, value: float | Tensor) -> Grid:
        """A constant grid."""
        number = torch.as_tensor(value, dtype=self.k2.dtype, device=self.k2.device)
        return number.expand(self.shape).contiguous()

    def whole(self, field: Narrow, shape: tuple[int, ...] | None = None) -> Grid:
        """A field with a value in every cell, or of every wavenumber where that is the shape."""
        if field.dim() and 1 not in field.shape[: self.dim]:
            return field
        return field.expand(*(self.shape if shape is None else shape), *field.shape[self.dim :])

    def forward(self, field: Narrow) -> Spectrum:
        """The unnormalised transform over the axes of space."""
        field = fitting(self.whole(field), self.shape)
        if self.share is not None and self.mode != "REAL_SPACE":
            refuse_capture(field)
            return self.share.forward(field)
        axes = list(range(self.dim))
        match self.mode:
            case "NONE":
                return torch.fft.rfftn(field, dim=axes)
            case "FFT_SLAB":
                return torch.fft.fftn(field, dim=axes)
            case "FFT_PENCIL":
                return torch.fft.rfftn(field, dim=axes[::-1])
            case "REAL_SPACE":
                raise no_transform()

    def inverse(self, spectrum: Narrow) -> Grid:
        """The field of a spectrum."""
        shape = self.spectrum_shape
        spectrum = fitting(self.whole(spectrum, shape), shape)
        if self.share is not None and self.mode != "REAL_SPACE":
            refuse_capture(spectrum)
            return self.share.inverse(spectrum)
        axes = list(range(self.dim))
        match self.mode:
            case "NONE":
                return torch.fft.irfftn(spectrum, s=self.shape, dim=axes)
            case "FFT_SLAB":
                return torch.fft.ifftn(spectrum, dim=axes).real.contiguous()
            case "FFT_PENCIL":
                return torch.fft.irfftn(spectrum, s=self.shape[::-1], dim=axes[::-1])
            case "REAL_SPACE":
                raise no_transform()

    def derivative(self, spectrum: Spectrum, axis: int) -> Grid:
        """The slope along an axis of the field whose spectrum is given."""
        return self.inverse(1j * self.waves[axis] * spectrum)

    def tensors(self) -> tuple[Tensor, ...]:
        """All that changes with the box, in a fixed order: what a graph takes as inputs."""
        return (*self.axes, *self.waves, self.k2, *self.spacing, *self.lower)

    def rebuilt(self, tensors: Sequence[Tensor]) -> Space:
        """A space of the same rank and mode made of other tensors."""
        axes, waves, spacing, lower = (three(tensors[at : at + 3]) for at in (0, 3, 7, 10))
        return Space(
            axes, waves, tensors[6], spacing, lower, self.dim, self.mode, self.slabs, self.share
        )

    def part(self, share: Share) -> Space:
        """The part of a rank."""
        boxes = zip(share.box, share.spectrum_box, strict=True)
        axes, waves = list(self.axes), list(self.waves)
        for axis, (cells, numbers) in enumerate(boxes):
            axes[axis] = self.axes[axis].narrow(axis, *reach(cells)).contiguous()
            waves[axis] = self.waves[axis].narrow(axis, *reach(numbers)).contiguous()
        k2 = waves[0] ** 2 + waves[1] ** 2 + waves[2] ** 2
        return replace(self, axes=three(axes), waves=three(waves), k2=k2, share=share)


def reach(part: slice) -> tuple[int, int]:
    """Where a part begins, and how long it is."""
    return part.start, part.stop - part.start


def refuse_capture(field: Tensor) -> None:
    """Keep exchanges among ranks out of compiled sequences: all ranks must take part in each."""
    if torch_private.is_fake(field):
        raise ExchangeError("it exchanges parts of the box among ranks")


def three(tensors: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    x, y, z = tensors
    return x, y, z


def fitting(field: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A field that has these sizes; torch would transform any other, padded or cut."""
    sizes = tuple(field.shape[: len(shape)])
    # the open sizes of a graph that is being captured are compared when it is checked
    known = all(isinstance(n, int) for n in (*sizes, *shape))
    if known and sizes != shape:
        has, needs = (" x ".join(map(str, each)) for each in (field.shape, shape))
        raise ValueError(f"a transform needs {needs} numbers, not {has or 'one'}")
    return field


def no_transform() -> IngotError:
    message = "parallel_mode = REAL_SPACE has no Fourier transform"
    return IngotError([Problem("no-transform", message, fix="use parallel_mode = NONE")])


def space(
    sizes: tuple[int, ...],
    lower: tuple[float, ...] = (0.0, 0.0, 0.0),
    upper: tuple[float, ...] = (1.0, 1.0, 1.0),
    *,
    mode: Mode = "NONE",
    slabs: tuple[int, ...] = (),
    dtype: torch.dtype = torch.float64,
    device: str = "cpu",
) -> Space:
    """The space of a box with `sizes` cells; points are the centres of cells."""
    dim = len(sizes)
    halved = {"NONE": dim - 1, "FFT_PENCIL": 0}.get(mode)
    none = torch.zeros(1, dtype=dtype, device=device)
    axes, waves = [none] * 3, [none] * 3
    steps = [(upper[a] - lower[a]) / (sizes[a] if a < dim else 1) for a in range(3)]
    for axis, (count, step) in enumerate(zip(sizes, steps, strict=False)):
        shape = [1] * axis + [-1] + [1] * (dim - axis - 1)
        ends = (lower[axis] + step / 2, upper[axis] - step / 2)
        points = torch.linspace(*ends, count, dtype=dtype, device=device)
        frequencies = torch.fft.rfftfreq if axis == halved else torch.fft.fftfreq
        wave = 2 * math.pi * frequencies(count, step, dtype=dtype, device=device)
        axes[axis], waves[axis] = points.reshape(shape), wave.reshape(shape)
    numbers = [torch.tensor(value, dtype=dtype, device=device) for value in (*steps, *lower)]
    k2 = waves[0] ** 2 + waves[1] ** 2 + waves[2] ** 2
    return Space(
        three(axes), three(waves), k2, three(numbers[:3]), three(numbers[3:]), dim, mode, slabs
    )
