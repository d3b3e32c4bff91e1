"""Computes that fill a buffer: constants, random numbers, functions, smooth shapes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import torch
from torch import Tensor

from ingot.errors import Problem
from ingot.fields.blocks.options import place
from ingot.fields.declare import Compatible, FunctionName, Number, Time, compute
from ingot.fields.spaces import Grid, Space, Spectrum
from ingot.hit import Block
from ingot.options import Count, NotNegative

__all__ = [
    "ConstantReciprocalTensor", "ConstantTensor", "MooseFunctionTensor", "RandomTensor",
    "RankTwoIdentity", "SmoothRectangleCompute",
]  # fmt: skip


@compute
def ConstantTensor(space: Space, *, real: Number = 0.0, full: bool = False) -> Grid:
    """The same number everywhere.

    real: the number, or the name of a constant
    full: accepted: the buffer is always filled
    """
    return space.full(real)


@compute
def ConstantReciprocalTensor(
    space: Space, *, real: Number = 0.0, imaginary: Number = 0.0, full: bool = False
) -> Spectrum:
    """The same complex number at every wavenumber.

    real: its real part, or the name of a constant
    imaginary: its imaginary part, or the name of a constant
    full: accepted: the buffer is always filled
    """
    like = {"dtype": space.k2.dtype, "device": space.k2.device}
    parts = (torch.as_tensor(part, **like) for part in (real, imaginary))
    return torch.complex(*parts).expand(space.spectrum_shape).contiguous()


def check_bounds(block: Block, options: dict[str, Any]) -> Iterator[Problem]:
    """Two numbers between which there are others; named constants are not known yet."""
    low, high = options["min"], options["max"]
    if isinstance(low, float) and isinstance(high, float) and not low <= high:
        message = f"min = {low:g} does not lie below max = {high:g}"
        yield Problem("wrong-value", message, place(block, "min"), "swap the two")


@compute(jit=False, reason="it draws random numbers", check=check_bounds)
def RandomTensor(
    space: Space,
    *,
    min: Number,
    max: Number,
    seed: int | None = None,
    generate_on_cpu: bool = True,
) -> Grid:
    """Random numbers between two bounds, the same on every device.

    min: the lower bound
    max: the upper bound
    seed: where the sequence of numbers starts, at every evaluation; none goes on with the last
    generate_on_cpu: whether to draw on the CPU, which makes the numbers independent of the device
    """
    device = "cpu" if generate_on_cpu else space.k2.device
    drawn: list[Tensor] = []
    # every rank draws the whole box, so that its numbers do not depend on how many there are
    sizes = space.whole_shape
    for width in space.slabs or sizes[1:2] or (1,):
        if seed is not None:
            torch.manual_seed(seed)
        shape = (*sizes[:1], *((width,) if space.dim > 1 else ()), *sizes[2:])
        drawn.append(torch.rand(shape, dtype=space.k2.dtype, device=device))
    field = torch.cat(drawn, dim=1) if space.dim > 1 else drawn[0]
    field = field if space.share is None else space.share.own(field)
    return field.to(space.k2.device) * (max - min) + min


def misplaced(sizes: tuple[int, ...], given: Mapping[str, Any]) -> str:
    """The reference takes the time for 0 and the lower corner of the box for the origin."""
    corner = {axis for axis, low in zip("xyz", given["lower"][: len(sizes)], strict=False) if low}
    shifted = [axis for axis in sorted(given["function"].names) if axis in corner]
    late = given["later"] and "t" in given["function"].names
    told = [f"{', '.join(shifted)} from the lower corner of the box"] * bool(shifted)
    told += ["the time as 0"] * late
    return f"its function sees {' and '.join(told)}" if told else ""


@compute(
    jit=False, reason="a function of the input file is not part of a graph", quirk=misplaced
)  # fmt: skip
def MooseFunctionTensor(
    space: Space, time: Time, *, function: FunctionName, compatible: Compatible
) -> Grid:
    """A function of the input file at the centre of every cell.

    function: its name in [Functions]
    """
    corner = space.lower if compatible else tuple(torch.zeros_like(each) for each in space.lower)
    points = [axis - low for axis, low in zip(space.axes[: space.dim], corner, strict=False)]
    points += space.axes[space.dim :]
    value = function.value(torch.zeros_like(time) if compatible else time, *points)
    return value.to(space.k2.dtype).expand(space.shape).contiguous()


@compute
def RankTwoIdentity(space: Space, *, size: Count | None = None) -> Grid:
    """The identity matrix at every point.

    size: its number of rows, that of axes unless given
    """
    rows = space.dim if size is None else size
    eye = torch.eye(rows, dtype=space.k2.dtype, device=space.k2.device)
    return eye.expand(*space.shape, rows, rows).contiguous()


def check_rectangle(block: Block, options: dict[str, Any]) -> Iterator[Problem]:
    """A smooth edge has a profile, and a box begins before it ends."""
    for axis in "xyz":
        low, high = options[f"{axis}1"], options[f"{axis}2"]
        if not low <= high:
            message = f"{axis}1 = {low:g} does not lie below {axis}2 = {high:g}"
            yield Problem("wrong-value", message, place(block, f"{axis}1"), "swap the two")
    if options["int_width"] > 0 and options["profile"] is None:
        message = f"{block.title} needs 'profile' where int_width is above 0"
        yield Problem("missing-option", message, block.span, "add 'profile = COS' or TANH")


def idle_edge(values: dict[str, Any]) -> set[str]:
    """The form of an edge that is sharp, and edges along axes that the box has not."""
    sharp = set() if values["int_width"] > 0 else {"profile"}
    return sharp | {f"{axis}{end}" for axis in "xyz"[values["dim"] :] for end in (1, 2)}


@compute(check=check_rectangle, idle=idle_edge)
def SmoothRectangleCompute(
    space: Space,
    *,
    x1: float,
    x2: float,
    y1: float,
    y2: float,
    z1: float = 0.0,
    z2: float = 0.0,
    inside: float = 1.0,
    outside: float = 0.0,
    int_width: NotNegative = 0.0,
    profile: Literal["COS", "TANH"] | None = None,
) -> Grid:
    """A box in which a field has one value, outside another, with a sharp or smooth edge.

    x1: where it begins along x
    x2: where it ends along x
    y1: where it begins along y
    y2: where it ends along y
    z1: where it begins along z
    z2: where it ends along z
    inside: the value inside
    outside: the value outside
    int_width: the width of the edge, 0 being sharp
    profile: the form of a smooth edge
    """
    bounds = ((x1, x2), (y1, y2), (z1, z2))
    share = space.full(1.0)
    for axis, (low, high) in zip(space.axes, bounds[: space.dim], strict=False):
        share = share * edge(axis, low, high, int_width, profile)
    return share * inside + (1 - share) * outside


def edge(axis: Tensor, low: float, high: float, width: float, profile: str | None) -> Tensor:
    """1 between two coordinates, 0 outside."""
    if width <= 0:
        return ((axis >= low) & (axis <= high)).to(axis.dtype)
    depth = torch.minimum(axis - low, high - axis)
    if profile == "COS":
        return 0.5 + 0.5 * torch.sin(math.pi * depth.clamp(-width / 2, width / 2) / width)
    return 0.5 + 0.5 * torch.tanh(4 * depth / width)
