"""[Postprocessors] and [VectorPostprocessors]: numbers taken off fields after a step."""

from __future__ import annotations

import itertools
import math
from typing import Literal

import torch
from torch import Tensor

from ingot.fields.declare import (
    Compatible,
    Dt,
    FunctionName,
    Nodal,
    Number,
    Past,
    Time,
    Variable,
    postprocessor,
)
from ingot.fields.spaces import Grid, Space, Spectrum
from ingot.options import NotNegative

__all__ = ["histogram"]


@postprocessor
def TensorAveragePostprocessor(buffer: Grid) -> Tensor:
    """The mean of all entries of a buffer.

    buffer: the buffer
    """
    return real(buffer).mean()


def real(field: Tensor) -> Tensor:
    """A field whose mean can be taken: that of whole numbers, as of a medium, is none of them."""
    return field if field.is_floating_point() or field.is_complex() else field.to(torch.float64)


@postprocessor
def TensorIntegralPostprocessor(buffer: Grid, space: Space) -> Tensor:
    """The integral of a field over the box.

    buffer: the field
    """
    return real(buffer).mean() * space.volume


@postprocessor
def TensorExtremeValuePostprocessor(buffer: Grid, *, value_type: Literal["MIN", "MAX"]) -> Tensor:
    """The smallest or the largest entry of a buffer.

    buffer: the buffer
    value_type: which of the two
    """
    return buffer.min() if value_type == "MIN" else buffer.max()


@postprocessor(history=1)
def TensorIntegralChangePostprocessor(buffer: Grid, past: Past, space: Space) -> Tensor:
    """The integral of how much a field has changed.

    buffer: the field
    """
    change = buffer - past[0] if past else buffer
    return change.abs().sum() * space.cell_volume


@postprocessor(history=1)
def TensorInterfaceVelocityPostprocessor(
    buffer: Grid, past: Past, space: Space, dt: Dt, *, gradient_threshold: NotNegative = 1e-3,
    compatible: Compatible,
) -> Tensor:  # fmt: skip
    """The largest speed at which a field's level lines move.

    buffer: the field
    gradient_threshold: slopes below this are not divided by
    """
    if not past:
        return buffer.new_zeros(())
    field = real(buffer)
    rate, spectrum = (field - past[0]) / dt, space.forward(field)
    slopes = [space.derivative(spectrum, axis) for axis in range(space.dim)]
    # the reference adds up speeds along the axes, which are larger than that of a level line
    sizes = slopes if compatible else [torch.stack(slopes).norm(dim=0)]
    squares = torch.zeros_like(field)
    for size in sizes:
        steep = size.abs() > gradient_threshold
        safe = torch.where(steep, size, torch.ones_like(size))
        squares = squares + torch.where(steep, rate / safe, torch.zeros_like(rate)) ** 2
    return squares.max().sqrt()


@postprocessor
def ReciprocalIntegral(buffer: Spectrum, space: Space) -> Tensor:
    """The integral of a field, from its spectrum.

    buffer: the spectrum
    """
    first = buffer[(0,) * space.dim]
    return first.real / math.prod(space.shape) * space.volume


@postprocessor
def SemiImplicitCriticalTimeStep(buffer: Spectrum, *, c: float = 1.0) -> Tensor:
    """The step size that the fastest mode of a linear operator sets.

    buffer: the operator
    c: accepted, without effect
    """
    largest = buffer.abs().max()
    return torch.where(largest > 0, 1 / largest, torch.full_like(largest, 1e30))


@postprocessor
def ComputeReynoldsNumber(buffer: Grid, *, tau: Number, diameter: Number) -> Tensor:
    r"""The Reynolds number of a lattice flow, $\bar u D / \nu$ with $\nu = (\tau - 1/2) / 3$.

    buffer: the speed
    tau: the relaxation time
    diameter: the length that the flow is measured by
    """
    return real(buffer).mean() * diameter / ((tau - 0.5) / 3)


@postprocessor
def FunctionElementIntegral(space: Space, time: Time, *, function: FunctionName) -> Tensor:
    """The integral of a function over the box, by two points along each axis of every cell.

    function: its name in [Functions]
    """
    total = torch.zeros_like(space.k2[(0,) * space.dim])
    for signs in itertools.product((-1, 1), repeat=space.dim):
        steps = (
            sign * step / math.sqrt(12) for sign, step in zip(signs, space.spacing, strict=False)
        )
        points = [axis + step for axis, step in zip(space.axes, steps, strict=False)]
        value = function.value(time, *points, *space.axes[space.dim :])
        total = total + value.expand(space.shape).sum()
    return total * space.cell_volume / 2**space.dim


@postprocessor
def ElementAverageValue(variable: Variable, space: Space) -> Tensor:
    """The mean over the mesh of a variable that shows a buffer.

    variable: its name in [AuxVariables]
    """
    # the last layer of nodes repeats the first, so that elements weigh every node alike
    return on_mesh(variable, space).mean()


@postprocessor
def ElementIntegralVariablePostprocessor(variable: Variable, space: Space) -> Tensor:
    """The integral over the mesh of a variable that shows a buffer.

    variable: its name in [AuxVariables]
    """
    return on_mesh(variable, space).mean() * space.volume


@postprocessor
def ElementExtremeValue(
    variable: Variable, nodal: Nodal, space: Space, *,
    value_type: Literal["MAX", "MIN", "MAX_ABS"] = "MAX",
) -> Tensor:  # fmt: skip
    """The largest or smallest value of a variable at the quadrature points of all elements.

    A variable at nodes is taken at two points along each axis, as MOOSE does, not at its nodes.

    variable: its name in [AuxVariables]
    value_type: the largest, the smallest, or the largest of the magnitudes
    """
    field, inner = on_mesh(variable, space), 0.5 - 0.5 / math.sqrt(3)
    fractions = itertools.product((inner, 1 - inner), repeat=space.dim) if nodal else ((),)
    found: list[Tensor] = []
    for each in fractions:
        value = field
        for axis, fraction in enumerate(each):
            value = value + fraction * (value.roll(-1, axis) - value)
        value = value.abs() if value_type == "MAX_ABS" else value
        found.append(value.min() if value_type == "MIN" else value.max())
    values = torch.stack(found)
    return values.min() if value_type == "MIN" else values.max()


@postprocessor
def PointValue(
    variable: Variable, nodal: Nodal, space: Space, *, point: tuple[float, ...]
) -> Tensor:
    """A variable at a point: that of its cell, or linear between the nodes around it.

    variable: its name in [AuxVariables]
    point: the point, x y z; on a face between two cells it belongs to the lower
    """
    value = on_mesh(variable, space)
    for place, low, step in zip(point, space.lower, space.spacing, strict=False):
        if value.dim() == 0:
            break
        along = (place - float(low)) / float(step)
        cell = min(max(math.ceil(along) - 1, 0), value.shape[0] - 1)
        first, second = value[cell], value[(cell + 1) % value.shape[0]]
        value = first + (along - cell) * (second - first) if nodal else first
    return value


def on_mesh(field: Tensor, space: Space) -> Tensor:
    """A field with one real number in every cell, as a variable of the mesh shows."""
    field = space.whole(field)
    if field.is_complex() or tuple(field.shape) != space.shape:
        has, needs = (" x ".join(map(str, each)) for each in (field.shape, space.shape))
        kind = "a spectrum" if field.is_complex() else f"a field of {has} numbers"
        raise ValueError(f"a variable shows a field of {needs} real numbers, not {kind}")
    return field if field.is_floating_point() else field.to(space.k2.dtype)


def histogram(field: Tensor, low: float, high: float, bins: int) -> tuple[list[float], list[float]]:
    """The middles of equal bins, and how many entries lie in each; the last bin is closed."""
    values = field.reshape(-1).cpu()
    whole = not values.is_floating_point() and not values.is_complex()
    values = values.to(torch.float64) if whole else values
    edges = torch.linspace(low, high, bins + 1, dtype=values.dtype)
    counts, _ = torch.histogram(values, edges)
    width = (high - low) / bins
    return [low + width / 2 + k * width for k in range(bins)], counts.tolist()
