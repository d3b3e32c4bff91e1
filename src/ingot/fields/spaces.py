"""Space: the grid of a domain as tensors, its wavenumbers, and the transforms between the two.

In: sizes and bounds. Out: a bundle of tensors that computes receive like any other input.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from torch import Tensor

from ingot.errors import IngotError, Problem

__all__ = ["Grid", "Mode", "Narrow", "Space", "Spectrum", "space"]

Mode = Literal["NONE", "FFT_SLAB", "FFT_PENCIL", "REAL_SPACE"]

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
        """The product of the lengths in use."""
        return self.cell_volume * math.prod(self.shape)

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
        return Space(axes, waves, tensors[6], spacing, lower, self.dim, self.mode, self.slabs)


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
