"""Verdict: how many values were checked and what is wrong; and the comparison all checks share."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ingot.errors import Problem, Span
from ingot.keywords import check_keywords

__all__ = ["Mismatch", "Tolerance", "Verdict", "compare", "judge"]

LISTED = 10


@check_keywords
@dataclass(frozen=True, slots=True)
class Verdict:
    """What a self-checking driver found: the number of comparisons, and why it fails if it does."""

    checks: int
    problems: tuple[Problem, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether something was checked and nothing was wrong."""
        return self.checks > 0 and not self.problems


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Two numbers are equal if they differ by at most `atol + rtol * |expected|`."""

    rtol: float = 1e-5
    atol: float = 1e-8


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A value that is not as expected, and how far it is off."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"


def compare(
    name: str, found: Tensor, expected: Tensor, base: tuple[int, ...], tolerance: Tolerance
) -> Mismatch | None:
    """Compare after broadcasting both to their common batch shape; components must be the same."""
    if found.dtype != expected.dtype:
        return Mismatch(name, f"is {plain(found.dtype)}, expected {plain(expected.dtype)}")
    shapes = tuple(found.shape), tuple(expected.shape)
    if any(shape[len(shape) - len(base) :] != base for shape in shapes):
        return Mismatch(name, f"has shape {shapes[0]}, expected {shapes[1]}")
    try:
        ours, theirs = torch.broadcast_tensors(found, expected)
    except RuntimeError:
        return Mismatch(name, f"has shape {shapes[0]}, which does not go with {shapes[1]}")
    if torch.allclose(ours, theirs, rtol=tolerance.rtol, atol=tolerance.atol):
        return None
    return Mismatch(name, describe_errors(ours, theirs))


def describe_errors(found: Tensor, expected: Tensor) -> str:
    """The largest absolute and relative error, in words."""
    lost = int((~torch.isfinite(found)).sum())
    if lost:
        return f"{lost} of {found.numel()} numbers are not finite"
    gap = (found - expected).abs()
    size = torch.where(expected == 0, torch.full_like(gap, float("nan")), expected.abs())
    relative = torch.nan_to_num(gap / size, nan=0.0).max()
    return f"max abs error {gap.max():.1e}, max rel error {relative:.1e}"


def judge(checks: int, mismatches: Sequence[Mismatch], what: str, span: Span | None) -> Verdict:
    """The verdict over all comparisons; of many mismatches the first are listed."""
    if checks == 0:
        problem = Problem("nothing-checked", f"{what}: there is nothing to compare", span)
        return Verdict(0, (problem,))
    if not mismatches:
        return Verdict(checks)
    rows = [f"    {mismatch}" for mismatch in mismatches[:LISTED]]
    if len(mismatches) > LISTED:
        rows.append(f"    and {len(mismatches) - LISTED} more")
    head = f"{len(mismatches)} of {checks} values differ from {what}"
    return Verdict(checks, (Problem("values-differ", "\n".join([head, *rows]), span),))


def plain(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
