"""The way of one point through Newton's method, kept while `interpret` runs a program.

In: a point. Out: for each solve of a call its iterates: unknowns, residuals, the Jacobian, and the
line that gave a value that is no number.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from msgspec.structs import replace
from torch import Tensor

from ingot.execute.newton import Watch
from ingot.options import Newton
from ingot.program import Node, Solve, operation
from ingot.types.elementwise import ELEMENTWISE

__all__ = ["Iterate", "NewtonPath", "NotFinite", "Part", "PathRecorder"]


@dataclass(frozen=True, slots=True)
class NotFinite:
    """A line whose operands are numbers and whose value is none; text: the line in numbers.

    operation: `given` where what the solve reads is no number, `unknown` where an update is none,
    `solve` where one inside it failed, which text names.
    """

    operation: str
    text: str


@dataclass(frozen=True, slots=True)
class Iterate:
    """Where Newton's method stood, and the part of the last update that a line search had taken."""

    unknowns: Tensor
    residuals: Tensor
    jacobian: Tensor
    taken: float
    not_finite: NotFinite | None

    @property
    def norm(self) -> float:
        """The size of the residuals."""
        return float(torch.linalg.vector_norm(self.residuals))


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a step: which points of the call take it, from where to where in the step."""

    points: Tensor
    begin: Tensor
    end: Tensor


@dataclass(slots=True)
class NewtonPath:
    """The iterates of one solve: of a whole step, or of a part from `ends[0]` to `ends[1]`.

    extents: of the axes that its unknowns lie on; nearby: the Jacobian beside the first guess,
    which tells a slope that vanishes there from one that is zero everywhere
    """

    solve: Solve
    extents: Mapping[str, int]
    ends: tuple[float, float] | None
    nearby: Tensor
    iterates: list[Iterate] = field(default_factory=list)


class PathRecorder:
    """Keeps the way of one point of a call, through all solves; none where it is not solved for.

    max_its: as many are allowed, whatever the rules of the solves say
    """

    def __init__(self, point: int, points: int, max_its: int | None = None) -> None:
        self.point, self.points, self.max_its = point, points, max_its
        self.paths: list[NewtonPath] = []

    def choose_rules(self, rules: Newton) -> Newton:
        """The rules that a solve is to follow."""
        return rules if self.max_its is None else replace(rules, max_its=self.max_its)

    def follow(self, at: Any, part: Part | None) -> Watch | None:
        """What to tell of the equations of a solve, or nothing where the point is not among them.

        at: the equations at their arguments, evaluated at the unknowns that are told.
        """
        if part is None:
            if at.on.call.points != self.points:  # a solve for the sums over some of the batch
                return None
            column, ends = self.point, None
        else:
            columns = (part.points == self.point).nonzero()[:, 0]
            if len(columns) == 0:
                return None
            column = int(columns[0])
            ends = (float(part.begin[column]), float(part.end[column]))
        path = NewtonPath(
            at.equations.solve, at.on.layout.space.extents, ends, torch.empty(0, 0)
        )  # fmt: skip
        self.paths.append(path)

        def watch(u: Tensor, right: Tensor, active: Tensor, taken: Tensor) -> None:
            if not bool(active[column]):
                return
            if not path.iterates:
                path.nearby = _find_nearby(at, u, column)
            residuals = -right[:, column].clone()
            origin = None if bool(residuals.isfinite().all()) else _find_origin(at, column)
            jacobian = at.matrix()[column].clone()
            unknowns, part_taken = u[:, column].clone(), float(taken[column])
            path.iterates.append(Iterate(unknowns, residuals, jacobian, part_taken, origin))

        return watch


def _find_nearby(at: Any, u: Tensor, column: int) -> Tensor:
    """The Jacobian of a point at other unknowns: each a tenth of its size, and a tenth, away."""
    signs = torch.ones(len(u), 1, dtype=u.dtype, device=u.device)
    signs[1::2] = -1.0  # differences and sums of neighbours change both
    at.evaluate(u + 0.1 * signs * (1.0 + u.abs()))
    found = at.matrix()[column].clone()
    at.evaluate(u)
    return found


def _find_origin(at: Any, column: int) -> NotFinite | None:
    """The line at which numbers end for a point: back from a residual as far as operands are none.

    What a selection has not chosen is no number without harm, and is not led to.
    """
    values, leaves = at.values, {n.id: "given" for n in at.equations.solve.given}
    leaves |= {n.id: "unknown" for n in at.equations.solve.columns}
    rows = at.equations.solve.rows
    node = next((n for n in rows if not _is_finite(values[n.id], column)), None)
    while node is not None and node.id not in leaves:
        wrong = [a for a in node.args if not _is_finite(values[a.id], column)]
        if not wrong and node.op == "item":
            return NotFinite("solve", node.args[0].attr.name)
        if not wrong:
            return NotFinite(node.op, _spell(node, values, column))
        node = wrong[0]
    return None if node is None else NotFinite(leaves[node.id], "")


def _is_finite(x: Any, column: int) -> bool:
    """Whether all entries of one point are; the results of a solve inside are asked by items."""
    return not isinstance(x, Tensor) or bool(_column(x, column).isfinite().all())


def _column(x: Tensor, column: int) -> Tensor:
    """The entries of one point; what is the same for all has one column."""
    return x[..., column if x.shape[-1] > 1 else 0]


def _spell(node: Node, values: dict[int, Any], column: int) -> str:
    """An elementwise line in the numbers of its entry that is none, such as `(-0.1)**0.3`."""
    if node.op not in ELEMENTWISE:
        return node.op
    found = _column(values[node.id], column)
    place = (~found.isfinite()).nonzero()[0].tolist() if found.ndim else []
    numbers = []
    for arg in node.args:
        entries = _column(values[arg.id], column)
        at = tuple(min(i, n - 1) for i, n in zip(place, entries.shape, strict=True))
        number = float(entries[at])
        is_signed = number < 0 and len(node.args) > 1
        numbers.append(f"({number:.3g})" if is_signed else f"{number:.3g}")
    return operation(node.op).write_text(node, numbers)
