"""What became of every point of a call: converged or why not, iterations, residual."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

import torch
from torch import Tensor

from ingot.errors import Problem, raise_if
from ingot.execute.batch_shape import ValueShape
from ingot.messages import tell
from ingot.options import Newton
from ingot.types.batches import Dims, remove_axes, spread_points
from ingot.types.history import TIMES

__all__ = [
    "STATUS_ROWS",
    "AcceptedResidual",
    "Criterion",
    "Reason",
    "Status",
    "failures",
    "find_criteria",
    "find_no_length",
    "find_times",
    "may_be",
    "require",
    "spoil_rows",
    "spoil_slopes",
]


class Reason(IntEnum):
    """Why a point's solve ended."""

    CONVERGED = 0
    OUT_OF_STEPS = 1
    NOT_FINITE = 2


class Criterion(IntEnum):
    """What accepted a point's residual; rounding does in single precision (newton.py)."""

    NONE = 0
    ABS_TOL = 1
    REL_TOL = 2
    ROUNDING = 3


def find_criteria(reason: Tensor, size: Tensor, first: Tensor, rules: Newton) -> Tensor:
    """What accepted each point, of its last residual and its first; newton.h does the same."""
    found = torch.full_like(reason, Criterion.ROUNDING)
    found[size < rules.rel_tol * first] = Criterion.REL_TOL
    found[size < rules.abs_tol] = Criterion.ABS_TOL
    found[reason != Reason.CONVERGED] = Criterion.NONE
    return found


STATUS_ROWS = ("reason", "iterations", "residual", "pivoted", "accepted")
"""What a status tells of every point."""


@dataclass(frozen=True, slots=True)
class AcceptedResidual:
    """The largest residual that was accepted: by what, and at which step and point."""

    residual: float
    criterion: Criterion
    step: int
    point: int


@dataclass(frozen=True, slots=True)
class Status:
    """Per point and solve: `reason`, `iterations`, `residual`, ..., each (B,) or (steps, B).

    pivoted counts the updates that the second, pivoted routine supplied; accepted is the
    `Criterion` of what converged; begin is the step that the first row belongs to.
    """

    solve: str
    reason: Tensor
    iterations: Tensor
    residual: Tensor
    pivoted: Tensor
    accepted: Tensor
    begin: int = 0

    @staticmethod
    def without_points(solve: str, dtype: torch.dtype) -> "Status":
        """That of a call at no point."""
        kinds = (torch.int8, torch.int32, dtype)
        flag, count, residual = (torch.empty(0, dtype=k, device="cpu") for k in kinds)
        return Status(solve, flag, count, residual, count, flag)

    def spread(self, dims: Dims | None, batch: tuple[int, ...]) -> "Status":
        """The same for every point of a batch of which those that were solved have lost axes."""
        if dims == ():
            return self
        left = () if dims is None else remove_axes(batch, dims)
        return self.change(lambda row: spread_points(row.reshape(left), dims, batch).reshape(-1))

    def to(self, device: torch.device | str) -> "Status":
        """The same on a device."""
        return self.change(lambda row: row.to(device))

    def change(self, rows: Callable[[Tensor], Tensor]) -> "Status":
        """The same with other rows."""
        return replace(self, **{name: rows(getattr(self, name)) for name in STATUS_ROWS})

    @property
    def converged(self) -> Tensor:
        """Whether each point converged."""
        return self.reason == Reason.CONVERGED

    @property
    def mean_iterations(self) -> float:
        """Of all points and steps; 0 where there is none."""
        return float(self.iterations.double().mean()) if self.iterations.numel() else 0.0

    @property
    def most_iterations(self) -> int:
        """Of any point and step; 0 where there is none."""
        return int(self.iterations.max()) if self.iterations.numel() else 0

    def find_worst_accepted(self, by: Criterion | None = None) -> AcceptedResidual | None:
        """The largest residual that any criterion accepted, or that one did."""
        chosen = torch.atleast_2d(self.converged if by is None else self.accepted == by)
        if not bool(chosen.any()):
            return None
        sizes = torch.atleast_2d(self.residual).masked_fill(~chosen, -1.0)
        row, point = divmod(int(sizes.argmax()), sizes.shape[1])
        criterion = Criterion(int(torch.atleast_2d(self.accepted)[row, point]))
        return AcceptedResidual(float(sizes[row, point]), criterion, row + self.begin, point)

    @property
    def has_failed(self) -> bool:
        """Whether any point failed; few do, and finding which costs ten times as much."""
        # NumPy: the first reduction of torch costs 0.2 ms where caches are cold, as much as a run
        return bool((self.reason.numpy() if self.reason.is_cpu else self.reason).any())

    def find_first_failures(self) -> Tensor:
        """Rows and points of each point that failed, at its first failing step."""
        failed = torch.atleast_2d(~self.converged)
        return (failed & (failed.cumsum(0) == 1)).nonzero()

    def worst(self) -> tuple[int, int] | None:
        """The step and point of the largest residual at a first failure, if any failed."""
        if not self.has_failed:
            return None
        rows = self.find_first_failures()
        sizes = torch.atleast_2d(self.residual)[rows[:, 0], rows[:, 1]]
        row, point = rows[int(sizes.nan_to_num(nan=math.inf).argmax())].tolist()
        return row + self.begin, point

    def problem(
        self, saved: str | None = None, *, in_parts: bool = True, times: Tensor | None = None
    ) -> Problem | None:
        """What to tell the user where points failed: how many, the worst, and a way on.

        saved: a file that repeats the worst, and flags that it needs; in_parts: whether steps that
        fail are taken in parts, or cannot be; times: of every step, (steps, *batch), or of the two
        ends of one, where they are known.
        """
        worst = self.worst()
        if worst is None:
            return None
        step, point = worst
        row = step - self.begin
        residual = torch.atleast_2d(self.residual)[row, point]
        reason = Reason(int(torch.atleast_2d(self.reason)[row, point]))
        when = f" at step {step}" if self.reason.ndim == 2 else ""
        more = "" if in_parts else ", or let the update halve it: max_substepping_level"
        if saved:
            more += f"; the point is saved: ingot run {saved}; why: ingot diagnose {saved}"
        elif when:
            more += "; why: ingot diagnose FILE DRIVER"
        found = tell(
            "not converged", solve=self.solve, failed=len(self.find_first_failures()),
            points=self.reason.shape[-1], point=point, when=when, residual=f"{residual:.1e}",
            reason=reason.name.lower().replace("_", " "), more=more,
        )  # fmt: skip
        fix = find_no_length(times, step if when else 1, point, self.reason.shape[-1])
        return found if fix is None else replace(found, fix=fix)


def find_no_length(
    times: Tensor | None, step: int = 1, point: int = 0, points: int = 0
) -> str | None:
    """How to mend a step that does not go forward in time, which no halving does.

    times: as `Status.problem` takes them; point: where that many are told apart.
    """
    if times is None or not times.numel() or step < 1:
        return None
    lengths = (times[step] - times[step - 1]).flatten()
    length = float(lengths[point] if len(lengths) == points else lengths.min())
    if length == 0:
        return "leave one of the two times out: they are equal, and the step has no length"
    return f"sort the times: the step goes back by {-length:g}" if length < 0 else None


def find_times(inputs: Mapping[str, Tensor]) -> Tensor | None:
    """The two ends of the step that a call is given, (2, *batch), where it is given both."""
    for name in TIMES:
        if name in inputs and f"{name}~1" in inputs:
            ends = (inputs[f"{name}~1"], inputs[name])
            return torch.stack(torch.broadcast_tensors(*(x.detach().cpu() for x in ends)))
    return None


def spoil_slopes(
    outputs: dict[str, Tensor],
    statuses: Iterable[Status],
    slopes: Sequence[tuple[ValueShape, ValueShape]],
) -> dict[str, Tensor]:
    """The outputs with derivatives that are NaN where points failed, as their values are there.

    slopes: the value and the derivative, of each that is asked for.
    """
    failed = [~s.converged for s in statuses] if slopes else ()
    if not failed or not may_be(points := torch.stack(failed).any(0)):
        return outputs
    for of, slope in slopes:
        into = ValueShape("", slope.sizes[len(of.sizes) :], slope.base[len(of.base) :])
        value, block = outputs[of.name], outputs[slope.name]
        outputs[slope.name] = spoil_rows(block, value, points, of, into)
    return outputs


def spoil_rows(
    block: Tensor, output: Tensor, failed: Tensor, out: ValueShape, into: ValueShape
) -> Tensor:
    """A block that is NaN in the rows in which its output is NaN, at the points that failed."""
    batch = output.shape[: output.ndim - out.rank]
    wrong = output.isnan()
    if math.prod(batch) == failed.numel():  # a sum over points is that of all
        wrong = wrong & failed.reshape((*batch, *(1,) * out.rank))
    spread = [(1,) * len(axes) for axes in (into.sizes, into.base)]
    rows = wrong.reshape((*batch, *out.sizes, *spread[0], *out.base, *spread[1]))
    return torch.where(rows, math.nan, block) if may_be(rows) else block


def may_be(conditions: Tensor) -> bool:
    """Whether any may be true; on GPUs nobody waits to know."""
    return not conditions.is_cpu or bool(conditions.any())


def failures(statuses: Iterable[Status], times: Tensor | None = None) -> tuple[Problem, ...]:
    """A problem for each solve that failed at a point; times: as `Status.problem` takes them."""
    found = (status.problem(times=times) for status in statuses)
    return tuple(problem for problem in found if problem is not None)


def require(statuses: Iterable[Status]) -> None:
    """Raise where any point of any solve failed."""
    raise_if(failures(statuses))
