"""What one point's way through Newton's method tells: residuals by equation, and the Jacobian.

In: a NewtonPath. Out: norms and a Conditioning, in the names of the user's variables.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from ingot.execute.newton_path import Iterate, NewtonPath
from ingot.program import Variable
from ingot.types.components import list_component_suffixes

__all__ = [
    "SINGULAR", "Conditioning", "equilibrate", "find_conditioning", "find_history", "find_norms",
    "find_rounding", "name_entries",
]  # fmt: skip

SINGULAR = 1e13  # of a scaled Jacobian: an update then has less than three digits
MAX_NAMES = 5  # of a null vector: more say nothing
EPSILON = torch.finfo(torch.float64).eps


@dataclass(frozen=True, slots=True)
class Conditioning:
    """The Jacobian at the last iterate where it is finite; names are of its rows and columns.

    number, scaled: its condition number, and that of its rows and columns scaled to one size;
    largest, smallest: its rows by their largest entry, and those entries; equations, unknowns:
    which of them are dependent where it is singular; inert: unknowns that no equation depends on;
    idle: equations that depend on no unknown.
    """

    number: float
    scaled: float
    largest: tuple[str, float]
    smallest: tuple[str, float]
    equations: tuple[str, ...] = ()
    unknowns: tuple[str, ...] = ()
    inert: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()


def find_conditioning(path: NewtonPath) -> Conditioning | None:
    """The Jacobian where it was finite last."""
    finite = [i.jacobian for i in path.iterates if bool(i.jacobian.isfinite().all())]
    if not finite:
        return None
    matrix, solve = finite[-1], path.solve
    rows, columns = name_entries(solve.residuals, path), name_entries(solve.unknowns, path)
    largest = matrix.abs().amax(1)
    top, low = int(largest.argmax()), int(largest.argmin())
    scaled = equilibrate(matrix)
    balanced = _find_condition(scaled)
    ends = (rows[top], float(largest[top])), (rows[low], float(largest[low]))
    if balanced <= SINGULAR:
        return Conditioning(_find_condition(matrix), balanced, *ends)
    left, _, right = torch.linalg.svd(scaled)
    both = torch.stack([matrix, path.nearby]).abs()  # NaN is not zero
    inert = (both.amax((0, 1)) == 0).nonzero()[:, 0].tolist()
    idle = (both.amax((0, 2)) == 0).nonzero()[:, 0].tolist()
    return Conditioning(
        _find_condition(matrix), balanced, *ends, _name_large(left[:, -1], rows),
        _name_large(right[-1], columns), tuple(columns[i] for i in inert),
        tuple(rows[i] for i in idle),
    )  # fmt: skip


def _find_condition(matrix: Tensor) -> float:
    values = torch.linalg.svdvals(matrix)
    return float(values[0] / values[-1]) if values[-1] > 0 else math.inf


def equilibrate(matrix: Tensor) -> Tensor:
    """Rows and columns scaled until the largest entry of each is about 1; zeros stay."""
    for dim in (1, 0, 1, 0):
        size = matrix.abs().amax(dim, keepdim=True)
        matrix = matrix / torch.where(size > 0, size, 1.0)
    return matrix


def _name_large(vector: Tensor, names: Sequence[str]) -> tuple[str, ...]:
    """The entries that a null vector is made of, the largest first."""
    order: list[int] = vector.abs().argsort(descending=True).tolist()
    large = [names[i] for i in order if abs(float(vector[i])) > 0.3]
    return tuple(large[:MAX_NAMES])


def find_rounding(at: Iterate) -> float:
    """What residuals cannot be told from zero below: the rounding of terms that make them up."""
    terms = at.jacobian.abs() @ at.unknowns.abs()
    return EPSILON * float(torch.linalg.vector_norm(terms))


def find_history(path: NewtonPath) -> dict[str, list[float]]:
    """The norms of all residuals and of those of each equation, by update."""
    history: dict[str, list[float]] = {"norm": [], "taken": []}
    for each in path.iterates:
        history["norm"].append(each.norm)
        history["taken"].append(each.taken)
        for name, norm in find_norms(each, path).items():
            history.setdefault(name, []).append(norm)
    return history


def find_norms(at: Iterate, path: NewtonPath) -> dict[str, float]:
    """The norm of the residuals of each equation."""
    sizes = [_count(v, path) for v in path.solve.unknowns]
    parts = at.residuals.split(sizes)
    names = [v.name for v in path.solve.residuals]
    return {n: float(torch.linalg.vector_norm(x)) for n, x in zip(names, parts, strict=True)}


def _count(variable: Variable, path: NewtonPath) -> int:
    """How many entries a variable has: those of its nodes along their axes."""
    return len(variable.nodes) * math.prod(path.extents[a.name] + a.offset for a in variable.axes)


def name_entries(variables: Sequence[Variable], path: NewtonPath) -> list[str]:
    """The name of every entry, as a table of results has it: `stress_xx`, `slip[3]`."""
    names = []
    for variable in variables:
        sites = [range(path.extents[a.name] + a.offset) for a in variable.axes]
        for suffix in list_component_suffixes(variable.kind):
            for site in product(*sites):
                where = f"[{' '.join(map(str, site))}]" if site else ""
                names.append(f"{variable.name}{where}{suffix}")
    return names
