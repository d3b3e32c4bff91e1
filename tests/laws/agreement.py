"""How results are compared: each point's block within a tolerance of its largest entry, no nan."""

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.func import jacfwd

from ingot.program import Program, with_jacobian
from tests.laws.samples import Case

TOLERANCE = 1e-10


def difference(ours: Tensor, theirs: Tensor, tolerance: float = TOLERANCE) -> str | None:
    """Where two blocks differ by more than a part of the largest entry, in words."""
    if ours.shape != theirs.shape:
        return f"shapes {tuple(ours.shape)} and {tuple(theirs.shape)}"
    sizes = torch.nan_to_num(theirs, nan=0.0, posinf=0.0, neginf=0.0).abs()
    point = sizes.flatten(1).amax(1) if sizes.ndim > 1 else sizes
    # what is left of a sum that cancels is noise of the other points' size
    allowed = tolerance * point + 1e-15 * float(sizes.max())
    allowed = allowed.reshape(-1, *(1,) * (theirs.ndim - 1))
    same = (ours == theirs) | ((ours - theirs).abs() <= allowed)
    wrong = ~same
    if not wrong.any():
        return None
    place = tuple(wrong.nonzero()[0].tolist())
    return f"{ours[place].item()!r} is not {theirs[place].item()!r} at {place}"


def differences(
    ours: Mapping[str, Tensor], theirs: Mapping[str, Tensor], tolerance: float = TOLERANCE
) -> list[str]:
    """Every block that differs."""
    found = [(name, difference(ours[name], theirs[name], tolerance)) for name in theirs]
    return [f"{name}: {told}" for name, told in found if told is not None]


def with_blocks(program: Program) -> Program:
    """The program with the derivative of every output by every input."""
    pairs = [(y.name, x.name) for y in program.outputs for x in program.inputs]
    return with_jacobian(program, pairs)


def blocks(case: Case, results: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The derivatives of `with_blocks` as torch shapes them: axes before the base on each side."""
    found = {}
    for y in case.program().outputs:
        for x in case.program().inputs:
            parts = [len(y.axes), len(x.axes), len(y.kind.base), len(x.kind.base)]
            start = [1 + sum(parts[:i]) for i in range(4)]
            axes_y, axes_x, base_y, base_x = (
                range(first, first + count) for first, count in zip(start, parts, strict=True)
            )
            block = results[f"{y.name}:{x.name}"]
            found[f"{y.name}:{x.name}"] = block.permute(0, *axes_y, *base_y, *axes_x, *base_x)
    return found


def plain_blocks(case: Case, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same derivatives by torch, of the law's own function."""
    if not inputs:
        return {}
    slopes = torch.vmap(jacfwd(case.point))(dict(inputs))
    return {f"{y}:{x}": block for y, row in slopes.items() for x, block in row.items()}
