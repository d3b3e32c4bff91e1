"""Orientations -> pole figures: where the normals of a family of planes point, projected."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import Literal

import numpy as np
import torch

from ingot.drivers.result import Result
from ingot.drivers.series import Array
from ingot.errors import IngotError, Problem, did_you_mean
from ingot.types import MRP, R2, Quaternion, Value, euler_rodrigues

__all__ = ["ROTATIONS", "PoleFigure", "Projection", "find_pole_figures", "list_family", "project"]

Projection = Literal["equal-area", "stereographic"]
ROTATIONS: tuple[type[Value], ...] = (MRP, Quaternion, R2)


@dataclass(frozen=True, slots=True)
class PoleFigure:
    """Places (n, 2) within the unit circle: x to the right, y up, z towards the reader."""

    title: str
    places: Array
    projection: Projection


def find_pole_figures(
    result: Result, indices: Sequence[int], *, orientation: str | None = None,
    steps: Sequence[int] = (), points: Sequence[int] = (), projection: Projection = "equal-area",
) -> list[PoleFigure]:  # fmt: skip
    """A figure of the cubic family {hkl} for each step, the first and the last unless given."""
    if len(indices) != 3 or not any(indices):
        message = f"'{' '.join(map(str, indices))}' is no family of planes"
        raise IngotError(
            [Problem("wrong-value", message, None, "give three, such as --pole 1 1 1")]
        )
    name = orientation or find_orientation(result)
    matrices = find_matrices(result, name)
    if points:
        matrices = matrices[:, list(points)]
    family = list_family(indices)
    figures = []
    for step in steps or dict.fromkeys((0, result.steps - 1)):
        if not -result.steps <= step < result.steps:
            message, fix = f"there is no step {step}", f"choose 0 to {result.steps - 1}"
            raise IngotError([Problem("wrong-value", message, None, fix)])
        directions = np.einsum("...ij,nj->...ni", matrices[step], family).reshape(-1, 3)
        known = directions[np.isfinite(directions).all(1)]
        label = f"{{{''.join(map(str, indices))}}} of {name}, step {step % result.steps}"
        figures.append(PoleFigure(label, project(known, projection), projection))
    return figures


def find_orientation(result: Result) -> str:
    """The variable that is an orientation, where there is one."""
    names = [n for n in result.names if result.kinds[n] in ROTATIONS]
    best = [n for n in names if "orient" in n.lower()] or names
    if len(best) == 1 or (best and "orientation" in best):
        return "orientation" if "orientation" in best else best[0]
    some = f"name one with --orientation: {', '.join(best)}"
    message = "which variable is the orientation?" if best else "the result has no orientation"
    fix = some if best else "let the model give a rotation (MRP, Quaternion or R2)"
    raise IngotError([Problem("unknown-name", message, None, fix)])


def find_matrices(result: Result, name: str) -> Array:
    """Matrices from crystal to sample, (steps, points, 3, 3); entries of axes are points."""
    if name not in result.names or result.kinds[name] not in ROTATIONS:
        names = [n for n in result.names if result.kinds[n] in ROTATIONS]
        fix = did_you_mean(name, names) or f"choose one of: {', '.join(names) or 'none'}"
        message = f"the result has no orientation '{name}'"
        raise IngotError([Problem("unknown-name", message, None, fix)])
    series = result[name]
    flat = series.values.reshape(result.steps, *_count_rest(series.values, series.kind))
    if series.kind is R2:
        return flat
    if series.kind is MRP:
        return euler_rodrigues(MRP(torch.from_numpy(np.array(flat, dtype=float)))).data.numpy()
    return find_matrices_of_quaternions(flat)


def _count_rest(values: Array, kind: type[Value]) -> tuple[int, ...]:
    rank = values.ndim - len(kind.base)
    return (int(np.prod(values.shape[1:rank], dtype=int)), *kind.base)


def find_matrices_of_quaternions(values: Array) -> Array:
    """The matrices of unit quaternions (w, x, y, z)."""
    w, x, y, z = np.moveaxis(values, -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def list_family(indices: Sequence[int]) -> Array:
    """The unit normals of {hkl} under cubic symmetry, of each and its opposite one."""
    signed = {
        tuple(sign * index for sign, index in zip(signs, order, strict=True))
        for order in permutations(indices)
        for signs in product((1, -1), repeat=3)
    }
    # of a plane and its opposite the one whose first index that is not zero is positive
    chosen = sorted(p for p in signed if next(i for i in p if i) > 0)
    normals = np.array(chosen, dtype=float)
    return normals / np.linalg.norm(normals, axis=1, keepdims=True)


def project(directions: Array, projection: Projection) -> Array:
    """Unit vectors into the unit circle, those of the lower half by their opposites."""
    upper = np.where(directions[:, 2:] < 0, -directions, directions)
    height = 1 + upper[:, 2:]
    below = np.sqrt(height) if projection == "equal-area" else height
    return upper[:, :2] / below
