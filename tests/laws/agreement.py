"""How results are compared: each point's block within a tolerance of its largest entry, no nan."""

import itertools
from collections.abc import Mapping
from functools import cache

import torch
from torch import Tensor
from torch.func import jacfwd

from ingot.execute.interpret import Interpreter
from ingot.program import Program, verify, with_adjoint, with_jacobian
from tests.laws.samples import Case, corners
from tests.laws.together import draw_bars

TOLERANCE = 1e-10


def difference(
    ours: Tensor, theirs: Tensor, tolerance: float = TOLERANCE, noise: float = 1e-15
) -> str | None:
    """Where two blocks differ by more than a part of the point's largest entry, in words."""
    if ours.shape != theirs.shape:
        return f"shapes {tuple(ours.shape)} and {tuple(theirs.shape)}"
    sizes = torch.nan_to_num(theirs, nan=0.0, posinf=0.0, neginf=0.0).abs()
    point = sizes.flatten(1).amax(1) if sizes.ndim > 1 else sizes
    # what is left of a sum that cancels is noise of the other points' size
    allowed = tolerance * point + noise * float(sizes.max())
    allowed = allowed.reshape(-1, *(1,) * (theirs.ndim - 1))
    same = (ours == theirs) | ((ours - theirs).abs() <= allowed)
    wrong = ~same
    if not wrong.any():
        return None
    place = tuple(wrong.nonzero()[0].tolist())
    return f"{ours[place].item()!r} is not {theirs[place].item()!r} at {place}"


def differences(
    ours: Mapping[str, Tensor], theirs: Mapping[str, Tensor], tolerance: float = TOLERANCE,
    noise: float = 1e-15,
) -> list[str]:  # fmt: skip
    """Every block that differs."""
    found = [(name, difference(ours[name], theirs[name], tolerance, noise)) for name in theirs]
    return [f"{name}: {told}" for name, told in found if told is not None]


def with_derivatives(program: Program) -> Program:
    """The program with the derivative of every output by every input, and all adjoints."""
    names = [y.name for y in program.outputs], [x.name for x in program.inputs]
    return with_adjoint(with_jacobian(program, list(itertools.product(*names))), *names)


@cache
def interpret(case: Case) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Random points, then corners, with adjoints of outputs; and what the program gives there."""
    ends = corners(case)
    inputs = {name: torch.cat([x, ends[name]]) for name, x in case.draw(3, 5).items()}
    batch = len(next(iter(inputs.values()))) if inputs else None
    given = {**inputs, **draw_bars(case, batch)}
    program = verify(with_derivatives(case.program()))
    return given, Interpreter(program)(given)[0]


def blocks(case: Case, results: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The derivatives of `with_derivatives` as torch shapes them: axes before the base."""
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


def plain_adjoints(slopes: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The adjoints of inputs from those of outputs, by these derivatives."""
    found: dict[str, Tensor] = {}
    for pair, block in slopes.items():
        y, x = pair.split(":")
        bar = given[f"a.{y}"]
        flat = block.reshape(len(block), bar[0].numel(), -1)
        part = (bar.reshape(len(bar), 1, -1) @ flat).reshape(given[x].shape)
        found[f"a.{x}"] = found.get(f"a.{x}", 0.0) + part
    return found


def along_directions(
    slopes: Mapping[str, Tensor], along: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """The slopes of outputs along directions of inputs, by these derivatives."""
    found: dict[str, Tensor] = {}
    for pair, block in slopes.items():
        y, x = pair.split(":")
        direction = along[x].reshape(len(block), -1, 1)
        shape = block.shape[: block.ndim - along[x].ndim + 1]
        part = (block.reshape(len(block), -1, direction.shape[1]) @ direction).reshape(shape)
        found[y] = found.get(y, 0.0) + part
    return found
