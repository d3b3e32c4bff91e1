"""How hosts lay out symmetric tensors, and the components that `SR2` stores: both ways."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ingot.keywords import check_keywords
from ingot.errors import IngotError, Problem, caller
from ingot.types.kinds import SQRT2

__all__ = ["ABAQUS", "PLANE", "TENSOR", "VOIGT", "Convention"]

_PLACES = ((0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1))


@check_keywords
@dataclass(frozen=True, slots=True)
class Convention:
    r"""A layout of strain, with that of the stress that does work on it, and of the tangent.

    One matrix $M$ says all: stored strain is $M e$, a host's stress is $M^T \sigma$, its tangent
    $M^T C M$. Arrays are NumPy's or torch's, `(*points, *shape)`; where a host lays components
    `first`, `(*shape, *points)`.
    """

    name: str
    shape: tuple[int, ...]
    rows: tuple[tuple[float, ...], ...]
    """$M$: six rows, a column for each component of the host."""

    def strain(self, components: Any, *, first: bool = False) -> Any:
        """The six stored components of a host's strain, `(*points, 6)`."""
        return self._map(components, self.shape, (6,), self._matrix(), first, False)

    def stress(self, stored: Any, *, first: bool = False) -> Any:
        """A host's stress of `(*points, 6)`."""
        return self._map(stored, (6,), self.shape, self._matrix().T, False, first)

    def tangent(self, stored: Any, *, first: bool = False) -> Any:
        """A host's tangent of `(*points, 6, 6)`: its shape twice."""
        matrix = np.kron(self._matrix(), self._matrix()).T
        return self._map(stored, (6, 6), self.shape * 2, matrix, False, first)

    def _matrix(self) -> np.ndarray:
        return np.array(self.rows)

    def _map(
        self, x: Any, before: tuple[int, ...], after: tuple[int, ...], matrix: np.ndarray,
        comes_first: bool, goes_first: bool,
    ) -> Any:  # fmt: skip
        if not isinstance(x, np.ndarray | torch.Tensor):
            x = np.asarray(x)
        place = slice(None, len(before)) if comes_first else slice(x.ndim - len(before), None)
        if x.ndim < len(before) or tuple(x.shape[place]) != before:
            where = "first" if comes_first else "last"
            told = f"{self.name} components have shape {before} {where}, not {tuple(x.shape)}"
            fix = f"give an array of shape {_spell(before, comes_first)}"
            raise IngotError([Problem("wrong-shape", told, caller(), fix)])
        points = tuple(x.shape[len(before) :] if comes_first else x.shape[: x.ndim - len(before)])
        factor: Any = matrix
        if isinstance(x, torch.Tensor):
            factor = torch.tensor(matrix, dtype=x.dtype, device=x.device)
        elif x.dtype.kind == "f":
            factor = matrix.astype(x.dtype)
        rows, count = matrix.shape[1], int(np.prod(points, dtype=int))
        flat = x.reshape(rows, count) if comes_first else x.reshape(count, rows).T
        # one product of matrices with points outermost or innermost, as the result shall lie
        if goes_first:
            return (factor @ flat).reshape(*after, *points)
        return (flat.T @ factor.T).reshape(*points, *after)


def _spell(shape: tuple[int, ...], comes_first: bool) -> str:
    words = [str(n) for n in shape]
    return f"({', '.join([*words, '*points'] if comes_first else ['*points', *words])})"


def _full(size: int) -> tuple[tuple[float, ...], ...]:
    """Of a symmetric tensor with all its components, those beyond `size` being zero."""
    matrix = np.zeros((6, size, size))
    for row, (i, j) in zip(matrix, _PLACES, strict=True):
        if max(i, j) < size:
            row[i, j] += 1 if i == j else 1 / SQRT2
            row[j, i] += 0 if i == j else 1 / SQRT2
    return tuple(map(tuple, matrix.reshape(6, -1).tolist()))


def _voigt(order: Sequence[int]) -> tuple[tuple[float, ...], ...]:
    """Of six components in some order, shear strains being twice those of the tensor."""
    matrix = np.zeros((6, 6))
    for column, stored in enumerate(order):
        matrix[stored, column] = 1 if stored < 3 else 1 / SQRT2
    return tuple(map(tuple, matrix.tolist()))


TENSOR = Convention("tensor", (3, 3), _full(3))
"""All components, 3x3."""

PLANE = Convention("plane", (2, 2), _full(2))
"""Plane strain: 2x2, with no strain across the plane; stress across it is left out."""

VOIGT = Convention("Voigt", (6,), _voigt((0, 1, 2, 3, 4, 5)))
"""xx yy zz yz xz xy, engineering shear strains."""

ABAQUS = Convention("Abaqus", (6,), _voigt((0, 1, 2, 5, 4, 3)))
"""xx yy zz xy xz yz, engineering shear strains."""
