"""What a graph must give at sample points, by the interpreter; and whether it did.

Random points are no physical states: what matters is that both compute the same.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ingot.execute.batch_shape import ValueShape, shape_of
from ingot.execute.inductor_graphs import (
    STEP_LENGTH,
    Pair,
    open_guesses,
    open_residuals,
)
from ingot.execute.interpret import Interpreter
from ingot.execute.torch_source import PrintedGraph
from ingot.program import Program, with_jacobian
from ingot.program.partition import Segment
from ingot.types import lag

__all__ = ["TRIAL_BATCHES", "Arrays", "Trial"]

TRIAL_BATCHES = (1, 3, 8)
"""Batches that graphs are tried at, none of them the traced one."""

POINT_SCALES = (1.0, 0.3, 1e-2, 3.0, 1e-5, 30.0, 0.1, 0.0)
"""Of the points in turn: ordinary, tiny and large ones, and zero."""

Arrays = list[Tensor]


@dataclass(frozen=True, slots=True)
class Trial:
    """Sample points of a segment, and the interpreter's word on them."""

    segment: Segment
    dtype: torch.dtype

    def draw_points(self, graph: PrintedGraph, batch: int) -> Arrays:
        """The arguments of a graph at a batch of points."""
        random = torch.Generator().manual_seed(batch)
        scale = torch.tensor([POINT_SCALES[i % len(POINT_SCALES)] for i in range(batch)])
        given = {p.variable.name: p.value for p in self.segment.program.parameters}
        clocks = self.segment.solve.clocks if self.segment.kind == "implicit" else ()
        found = []
        for name, rows in graph.arguments:
            x = scale * torch.randn(max(rows, 1), batch, generator=random)
            x[:, ::2] = x[:, ::2].abs()
            if name == STEP_LENGTH:
                x = torch.tensor([(1.0, 0.5, 0.0)[i % 3] for i in range(batch)])
            elif name in given:
                data = given[name].data.detach().reshape(-1, max(rows, 1))[0]
                x = data[:, None] * (1.0 + 0.1 * torch.rand(rows, batch, generator=random))
            elif lag(name)[0] in clocks:
                x = torch.rand(max(rows, 1), batch, generator=random) - lag(name)[1]
            found.append(x.to(self.dtype).contiguous())
        return found

    # the interpreter's answers, in the layout of graphs

    def _evaluate(self, program: Program, x: Arrays) -> Arrays:
        """The outputs as (components, batch), where parameters are given as inputs are."""
        program = replace(program, inputs=program.given, parameters=())
        inputs = {}
        for v, rows in zip(program.inputs, x, strict=True):
            shape = shape_of(v, program)
            inputs[v.name] = rows.T.reshape(rows.shape[-1], *shape.sizes, *shape.base)
        found, _ = Interpreter(program, dtype=self.dtype)(inputs)
        return [found[v.name].reshape(len(found[v.name]), -1).T for v in program.outputs]

    def _differentiate(self, program: Program, pairs: Sequence[Pair], x: Arrays) -> Arrays:
        """The blocks of derivatives, (rows, columns, batch)."""
        wide = with_jacobian(program, pairs)
        only = replace(wide, outputs=wide.outputs[len(program.outputs) :], value_count=0)
        shapes = {v.name: shape_of(v, program) for v in (*program.given, *program.outputs)}
        found = zip(pairs, self._evaluate(only, x), strict=True)
        return [_reorder_block(rows, shapes[y], shapes[by]) for (y, by), rows in found]

    def _compute_residual(self, u: Tensor, x: Arrays) -> Tensor:
        """The residuals laid end to end."""
        return torch.cat(self._evaluate(open_residuals(self.segment), self._split(u, x)))

    def _split(self, u: Tensor, x: Arrays) -> Arrays:
        segment = self.segment
        return [*u.split([shape_of(v, segment.program).width for v in segment.solve.unknowns]), *x]

    def _compute_matrix(self, u: Tensor, x: Arrays, by: Sequence[str] | None = None) -> Tensor:
        """The residuals' derivative by the unknowns, or by values read, (rows, columns, batch)."""
        program = open_residuals(self.segment)
        columns = by or [v.name for v in program.given[: len(self.segment.solve.unknowns)]]
        pairs = [(r.name, c) for r in program.outputs for c in columns]
        blocks = iter(self._differentiate(program, pairs, self._split(u, x)))
        rows = [torch.cat([next(blocks) for _ in columns], 1) for _ in program.outputs]
        return torch.cat(rows)

    # verdicts: what is wrong, or None

    def judge_values(self, x: Arrays, gives: Arrays) -> str | None:
        """A forward graph gives the interpreter's values."""
        return self._compare(lambda *y: self._evaluate(self.segment.program, [*y]), x, gives)

    def judge_tangents(self, x: Arrays, gives: Arrays, pairs: Sequence[Pair]) -> str | None:
        """`_jvp` gives the interpreter's blocks."""
        program = self.segment.program
        return self._compare(lambda *y: self._differentiate(program, pairs, [*y]), x, gives)

    def judge_residual(self, x: Arrays, gives: Arrays) -> str | None:
        r"""`_rhs` gives $-r$."""
        return self._compare(lambda u, *y: [-self._compute_residual(u, [*y])], x, gives)

    def judge_step(self, x: Arrays, gives: Arrays) -> str | None:
        r"""`_step` solves $A \Delta u = -r$, moves by it, and gives $-r$ there."""
        u, alpha, *rest = x
        moved, after = gives
        still = alpha == 0
        if not torch.equal(moved[:, still], u[:, still]):
            return "points of step length 0 move"
        there = self.judge_residual([moved, *rest], [after])
        if there is not None:
            return there
        going = ~still
        update = ((moved - u) / alpha)[:, going]
        right = -self._compute_residual(u, rest)[:, going]
        # the update is read off the difference of unknowns, which rounds by their size
        noise = u.abs().amax(0)[going]
        matrix = self._compute_matrix(u, rest)[..., going]
        return self._check_solution(matrix, update[:, None], right[:, None], noise)

    def judge_sensitivity(self, x: Arrays, gives: Arrays, by: Sequence[str]) -> str | None:
        """`_ift` solves $A X = -B$."""
        u, *rest = x
        right = -self._compute_matrix(u, rest, by)
        return self._check_solution(
            self._compute_matrix(u, rest), gives[0], right, torch.zeros(u.shape[-1])
        )

    def judge_guess(self, x: Arrays, gives: Arrays) -> str | None:
        """`_predictor` gives the guesses."""
        program = open_guesses(self.segment)
        return self._compare(lambda *y: [torch.cat(self._evaluate(program, [*y]))], x, gives)

    def _compare(self, expected: Callable[..., Arrays], x: Arrays, gives: Arrays) -> str | None:
        """Compared within what a change of the arguments by rounding makes of the results."""
        eps = torch.finfo(self.dtype).eps
        signs = [torch.where(torch.arange(a.numel()).reshape(a.shape) % 2 == 0, 1, -1) for a in x]
        want = expected(*x)
        near = expected(*(a * (1 + 4 * eps * s) for a, s in zip(x, signs, strict=True)))
        for k, (a, b, c) in enumerate(zip(gives, want, near, strict=True)):
            b, c = (b, c) if a.ndim == b.ndim else (b[..., 0], c[..., 0])
            if a.shape != b.shape or a.dtype != self.dtype:
                found = f"{tuple(a.shape)} {a.dtype}"
                return f"result {k} is {found}, not {tuple(b.shape)} {self.dtype}"
            over = tuple(range(b.ndim - 1)) if b.ndim > 1 else (0,)
            finite = b.isfinite() & c.isfinite()
            scale = torch.where(finite, b.abs(), 0.0).amax(over, keepdim=True)
            allowed = math.sqrt(eps) * 0.1 * scale + 1e3 * (c - b).abs()
            wrong = finite & ~((a - b).abs() <= allowed)
            if wrong.any():
                worst = torch.where(wrong, (a - b).abs().nan_to_num(nan=math.inf), 0).max()
                return f"result {k} is off by {float(worst):.1e} at {int(wrong.sum())} places"
        return None

    def _check_solution(self, a: Tensor, x: Tensor, b: Tensor, noise: Tensor) -> str | None:
        """Whether $A x = b$ fails by more than rounding in some point that is finite."""
        a, x, b = (t.permute(2, 0, 1).double() for t in (a, x, b))
        finite = a.isfinite().all((1, 2)) & b.isfinite().all((1, 2)) & x.isfinite().all((1, 2))
        sizes = a.abs().sum(2).amax(1)
        scale = sizes * (x.abs().amax((1, 2)) + noise) + b.abs().amax((1, 2))
        error = (a @ x - b).abs().amax((1, 2))
        wrong = finite & (error > 1e4 * a.shape[1] * torch.finfo(self.dtype).eps * scale)
        if wrong.any():
            return f"the linear system is off by {float((error / scale)[wrong].max()):.1e}"
        if len(finite) and not finite.any() and a.isfinite().all():
            return "no solution is finite"
        return None


def _reorder_block(rows: Tensor, y: ValueShape, by: ValueShape) -> Tensor:
    """A block (*axes, *axes, *base, *base, batch) as (rows, columns, batch)."""
    own, other, base = (math.prod(shape) for shape in (y.sizes, by.sizes, y.base))
    parts = rows.reshape(own, other, base, -1, rows.shape[-1]).transpose(1, 2)
    return parts.reshape(y.width, by.width, -1)
