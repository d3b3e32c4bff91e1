"""Program -> torch operations on component tensors: no compiler, any device and precision."""

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cache, partial
from types import MappingProxyType
from typing import Any

import torch
from msgspec.structs import replace
from torch import Tensor

from ingot.errors import IngotError, Problem
from ingot.execute.batch_shape import find_slopes, flatten_batch, shape_of
from ingot.execute.interpret_parts import Parts, Record
from ingot.execute.newton import run_newton
from ingot.execute.newton_path import Part, PathRecorder
from ingot.execute.status import Status, spoil_slopes
from ingot.execute.transient import History, Transient, step_calls
from ingot.program import Axis, Node, Program, Solve, Space, operation, sort_lines
from ingot.program.arrays import ArrayLayout
from ingot.program.differentiate import differentiate_along
from ingot.program.guards import Guards, find_guards, sort_guarded
from ingot.program.opaque import Opaque, find_opaque
from ingot.program.points import find_reduced
from ingot.program.program import find_dependent, find_solves
from ingot.types.batches import find_dims, remove_axes
from ingot.types.elementwise import ELEMENTWISE

__all__ = ["Interpreter"]

Values = dict[int, Any]
NO_GUARDS: Guards = MappingProxyType({})


class Interpreter:
    """Runs a program on torch tensors; recorder: keeps one point's way through Newton's method."""

    def __init__(
        self, program: Program, *, dtype: torch.dtype = torch.float64,
        recorder: PathRecorder | None = None,
    ) -> None:  # fmt: skip
        self.program = program
        self.dtype = dtype
        self.recorder = recorder
        given = [n for v in program.given for n in v.nodes]
        self._lines = sort_lines(program.roots, given)
        laid_out = [a for v in (*program.given, *program.outputs) for a in v.axes]
        self._layout = ArrayLayout(program, (*given, *self._lines), laid_out)
        nodes = {n.attr: n for n in self._lines if n.op == "solve"}
        self._equations = {s: _Equations(program, s, nodes.get(s)) for s in program.solves}
        self._opaque = find_opaque(program)
        self._slopes = find_slopes(program)
        self._couples_points = any(operation(n.op).couples_points for n in self._lines)
        self._guards: Guards = {}
        if not self._couples_points:
            self._guards = find_guards(self._lines, program.roots)
            self._lines = sort_guarded(self._lines, self._guards)

    def __call__(
        self, inputs: Mapping[str, Tensor]
    ) -> tuple[dict[str, Tensor], tuple[Status, ...]]:
        """The outputs `(*batch, *axes, *base)` and the status of every solve."""
        program = self.program
        given = [(v, inputs[v.name]) for v in program.inputs]
        given += [(p.variable, p.value.data) for p in program.parameters]
        flat, batch = flatten_batch([(shape_of(v, program), x) for v, x in given])
        points = math.prod(batch)
        if points == 0:
            return self._call_empty(batch)
        call = _CallContext(self._equations, self.dtype, flat[0].device if flat else None, points)
        call.recorder = self.recorder
        if self._couples_points:
            own = [(v, x.shape[: x.ndim - shape_of(v, program).rank]) for v, x in given]
            known = {n.id: find_dims(shape, batch) for v, shape in own for n in v.nodes}
            call.batch, call.reduced = batch, find_reduced(self._lines, known, batch)
        on = _TorchArrays(self._layout, call)
        values: Values = {}
        for (variable, _), x in zip(given, flat, strict=True):
            components = x.to(self.dtype).reshape(*x.shape[: 1 + len(variable.axes)], -1)
            for i, node in enumerate(variable.nodes):
                values[node.id] = on.place(components[..., i], variable.axes)
        on.run(self._lines, values, self._guards)
        outputs = {}
        for v in program.outputs:
            left = call.batch_of(v.nodes, batch)
            parts = [on.take(values[n.id], v.axes, math.prod(left)) for n in v.nodes]
            sizes = [program.extent(a) for a in v.axes]
            outputs[v.name] = torch.stack(parts, dim=-1).reshape((*left, *sizes, *v.kind.base))
        for node in self._lines if self._couples_points else ():
            if operation(node.op).is_block and call.reduced[node.id] != ():
                call.spread(node)
        told = [status for each in self._opaque for status in call.reports.get(each, ())]
        statuses = (*(call.statuses[s] for s in program.solves), *told)
        return spoil_slopes(outputs, statuses, self._slopes), statuses

    def _call_empty(self, batch: tuple[int, ...]) -> tuple[dict[str, Tensor], tuple[Status, ...]]:
        """What a call without points gives."""
        if self._couples_points:
            message = "a model that sums over points is given none"
            raise IngotError([Problem("batch-reduction", message, None, "give it a point or more")])
        outputs = {}
        for v in self.program.outputs:
            sizes = [self.program.extent(a) for a in v.axes]
            outputs[v.name] = torch.empty((*batch, *sizes, *v.kind.base), dtype=self.dtype)
        names = [s.name for s in self.program.solves]
        names += [f"{each.name}.{n}" for each in self._opaque for n in each.function.solves]
        return outputs, tuple(Status.without_points(name, self.dtype) for name in names)

    def transient(self, transient: Transient) -> History:
        """All steps, one after another."""
        given = {v.name: shape_of(v, self.program) for v in self.program.inputs}
        gives = [v.name for v in self.program.outputs]
        return step_calls(self, given, gives, transient, self.dtype)

    def arrange(self, transient: Transient) -> Callable[[], History]:
        """The run of a transient."""
        return partial(self.transient, transient)


class _CallContext:
    """What one call has to do with: its equations, precision, device, points; and its statuses."""

    def __init__(
        self, equations: "Mapping[Solve, _Equations]", dtype: torch.dtype,
        device: torch.device | None, points: int,
    ) -> None:  # fmt: skip
        self.equations = equations
        self.dtype, self.device, self.points = dtype, device, points
        self.statuses: dict[Solve, Status] = {}
        self.records: dict[Solve, Record] = {}
        self.reports: dict[Opaque, Sequence[Status]] = {}
        self.recorder: PathRecorder | None = None
        self.batch: tuple[int, ...] = (points,)
        self.reduced: Mapping[int, tuple[int, ...] | None] = {}

    def inside(self, batch: tuple[int, ...]) -> "_CallContext":
        """The same for lines of a block's own, which are numbered anew, at the points it has."""
        if not self.reduced:
            return self
        inner = copy(self)
        inner.batch, inner.points, inner.reduced = batch, math.prod(batch), {}
        return inner

    def spread(self, node: Node) -> None:
        """Let all points of the call have what a block of fewer points reported."""
        dims = self.reduced[node.id]
        for solve in find_solves([node]):
            self.statuses[solve] = self.statuses[solve].spread(dims, self.batch)
        if node.attr in self.reports:
            told = self.reports[node.attr]
            self.reports[node.attr] = [s.spread(dims, self.batch) for s in told]

    def batch_of(self, nodes: Sequence[Node], batch: tuple[int, ...]) -> tuple[int, ...]:
        """The batch of a result, of which some axes may have been reduced."""
        dims = {self.reduced.get(n.id) for n in nodes} - {None}
        return remove_axes(batch, dims.pop() or ()) if len(dims) == 1 else batch


class _TorchArrays:
    """Lines as tensors, with one dimension for every axis of a layout and points last."""

    def __init__(self, layout: ArrayLayout, call: _CallContext) -> None:
        self.layout = layout
        self.call = call

    def over(self, layout: ArrayLayout, points: int) -> "_TorchArrays":
        """Arrays of another layout, for some of the points."""
        call = _CallContext(self.call.equations, self.call.dtype, self.call.device, points)
        call.recorder = self.call.recorder
        return _TorchArrays(layout, call)

    def run(self, lines: Sequence[Node], values: Values, guards: Guards = NO_GUARDS) -> None:
        """Evaluate lines in order; their operands are among the values, or before them.

        A line that no point needs, as guards tell, is not evaluated.
        """
        met: dict[tuple[int, bool], bool] = {}
        for node in lines:
            for condition, wanted in guards.get(node.id, ()):
                if (condition, wanted) not in met:
                    found = bool((values[condition].bool() == wanted).any())
                    met[condition, wanted] = found
            if not all(met[guard] for guard in guards.get(node.id, ())):
                values[node.id] = self.fill(0.0)
                continue
            values[node.id] = self._evaluate(node, [values[a.id] for a in node.args])

    def _evaluate(self, node: Node, args: Sequence[Any]) -> Any:
        row = ELEMENTWISE.get(node.op)
        if row is None:
            return operation(node.op).evaluate(self._narrow(node), self.layout.space, node, args)
        chosen = [x.bool() if i in row.takes_conditions else x for i, x in enumerate(args)]
        result = row.function(*chosen)
        return result.to(self.call.dtype) if row.is_condition else result

    def _narrow(self, node: Node) -> "_TorchArrays":
        """These arrays, for a block of fewer points than the call has."""
        dims = self.call.reduced.get(node.id, ())
        if dims == () or not operation(node.op).is_block:
            return self
        left = () if dims is None else remove_axes(self.call.batch, dims)
        return _TorchArrays(self.layout, self.call.inside(left))

    def replay(self, roots: Sequence[Node], known: Mapping[int, Any]) -> list[Any]:
        """The lines inside an operation, given those they are over."""
        inner = _TorchArrays(self.layout, self.call.inside(self.call.batch))
        return inner.run_roots(roots, dict(known))

    def run_roots(self, roots: Sequence[Node], values: Values) -> list[Any]:
        """The roots, given what they are over; all lines that they take become known."""
        self.run([n for n in sort_lines(roots) if n.id not in values], values)
        return [values[r.id] for r in roots]

    def fill(self, number: float) -> Tensor:
        """One number everywhere; what single precision cannot hold is infinite, as in C."""
        shape = self.layout.shape((), 1)
        whole = torch.full(shape, number, dtype=torch.float64, device=self.call.device)
        return whole.to(self.call.dtype)

    def table(self, values: Any, axes: Sequence[Axis]) -> Tensor:
        """Numbers along axes."""
        data = torch.as_tensor(values, dtype=self.call.dtype, device=self.call.device)
        return self.place(data[None], axes)

    def epsilon(self) -> Tensor:
        """The machine epsilon of the precision."""
        return self.fill(torch.finfo(self.call.dtype).eps)

    def spell(
        self, torch: str, numpy: Any, args: Sequence[Tensor], axis: Axis | None = None
    ) -> Tensor:
        """The function that torch's spelling says."""
        dim = 0 if axis is None else self.layout.dim(axis)
        return _compile_spelling(torch, len(args))(*args, dim)

    def place(self, x: Tensor, axes: Sequence[Axis]) -> Tensor:
        """A tensor (points, *axes) with a dimension for every axis and the points last."""
        x = x.permute(*(1 + i for i in self.layout.order(axes)), 0)
        return x.reshape(self.layout.shape(axes, x.shape[-1]))

    def take(self, x: Tensor, axes: Sequence[Axis], points: int | None = None) -> Tensor:
        """The inverse of `place`, over all axes and points, also where the value is constant."""
        points = self.call.points if points is None else points
        order = self.layout.order(axes)
        sizes = [self.layout.space.extent(axes[i]) for i in order]
        x = x.expand(self.layout.shape(axes, points)).reshape([*sizes, points])
        return x.permute(len(axes), *(order.index(i) for i in range(len(axes))))

    def flatten(self, parts: Sequence[Tensor], axes: Sequence[tuple[Axis, ...]]) -> Tensor:
        """Values laid end to end: (rows, points)."""
        points = self.call.points
        rows = [self.take(x, a).reshape(points, -1) for x, a in zip(parts, axes, strict=True)]
        return torch.cat(rows or [self.fill(0.0).new_empty(points, 0)], dim=1).T

    def split(self, x: Tensor, axes: Sequence[tuple[Axis, ...]]) -> list[Tensor]:
        """The inverse of `flatten`."""
        sizes = [self.layout.space.size(a) for a in axes]
        shapes = [[self.layout.space.extent(i) for i in a] for a in axes]
        rows = x.T.split(sizes, dim=1)
        return [
            self.place(r.reshape(-1, *s), a) for r, s, a in zip(rows, shapes, axes, strict=True)
        ]

    def split_lines(self, x: Tensor, nodes: Sequence[Node]) -> Values:
        """Lines laid end to end, as arrays."""
        parts = self.split(x, [n.axes for n in nodes])
        return {n.id: part for n, part in zip(nodes, parts, strict=True)}

    def block(self, node: Node, args: Sequence[Any]) -> Mapping[Any, Tensor]:
        """The results of a solve, of linear systems at its solution, or through its parts."""
        solve: Solve = node.attr if node.op == "solve" else node.attr.solve
        equations = self.call.equations[solve]
        if node.op == "accumulate":
            assert equations.parts is not None
            return equations.parts.accumulate(self, node, args, self.call.records.get(solve))
        width = len(solve.columns)
        given = args[width : width + len(solve.given)]
        at = equations.start(self, given)
        if node.op == "solve":
            found, status = at.solve(self.flatten(args[:width], equations.axes))
            parts = equations.parts
            if parts is not None and not bool(status.converged.all()):
                found, status, self.call.records[solve] = parts.take(self, given, found, status)
            self.call.statuses[solve] = status
            return dict(enumerate(self.split(found, equations.axes)))
        at.evaluate(self.flatten(args[:width], equations.axes))
        return at.solve_linear(self, node, args)


@cache
def _compile_spelling(spelled: str, arity: int) -> Callable[..., Tensor]:
    """A function of operands and a dimension, from its spelling."""
    names = [f"x{i}" for i in range(arity)]
    body = spelled.format(*names, dim="dim")
    return eval(f"lambda {', '.join(names)}, dim: {body}", {"torch": torch})


class _Equations:
    """The lines of a solve: residuals, and their derivative by all unknowns at once."""

    def __init__(self, space: Space, solve: Solve, node: Node | None = None) -> None:
        self.solve = solve
        self.parts = None
        if node is not None and solve.substeps is not None:
            self.parts = Parts(space, node, self)
        self.axes = [c.axes for c in solve.columns]
        builder = solve.builder(space.extents)
        self.size = builder.count_entries(solve.columns)
        self.seed = Axis(f"unknowns of {solve.name}", 0, 1)
        builder.add_axis(self.seed.name, self.size)
        self.seeded = [(*axes, self.seed) for axes in self.axes]
        self.seeds = builder.components("unknown", ("direction",), self.seeded)
        self.slopes = differentiate_along(builder, solve.rows, solve.columns, self.seeds)
        known = [*solve.columns, *solve.given, *self.seeds]
        varying = find_dependent((*solve.rows, *self.slopes), solve.columns)
        lines = sort_lines((*solve.rows, *self.slopes), known)
        rows = {n.id for n in sort_lines(solve.rows)}
        self.fixed = [n for n in lines if n.id not in varying]
        self.row_lines = [n for n in lines if n.id in varying and n.id in rows]
        self.slope_lines = [n for n in lines if n.id in varying and n.id not in rows]
        self.layout = ArrayLayout(builder, (*known, *lines))

    def start(self, around: _TorchArrays, given: Sequence[Tensor]) -> "_EquationsAt":
        """The lines that do not change with the unknowns, given what the solve reads."""
        on = _TorchArrays(self.layout, around.call.inside(around.call.batch))
        values: Values = {}
        for node, x in zip(self.solve.given, given, strict=True):
            values[node.id] = on.place(around.take(x, node.axes, x.shape[-1]), node.axes)
        eye = torch.eye(self.size, dtype=around.call.dtype, device=around.call.device)
        values |= on.split_lines(eye.reshape(-1, 1), self.seeds)
        on.run(self.fixed, values)
        return _EquationsAt(self, on, values)


class _EquationsAt:
    """The equations of a solve at given arguments, and at the unknowns last evaluated."""

    def __init__(self, equations: _Equations, on: _TorchArrays, values: Values) -> None:
        self.equations = equations
        self.on = on
        self.values = values
        self.evaluated: Tensor | None = None

    def evaluate(self, u: Tensor) -> None:
        """The residuals' lines at unknowns (unknowns, points)."""
        self.evaluated = u
        self.values |= self.on.split_lines(u, self.equations.solve.columns)
        self.on.run(self.equations.row_lines, self.values)

    def rhs(self, u: Tensor) -> Tensor:
        """The residuals with their sign changed, (unknowns, points)."""
        self.evaluate(u)
        rows = [self.values[r.id] for r in self.equations.solve.rows]
        return -self.on.flatten(rows, self.equations.axes)

    def step(self, u: Tensor, right: Tensor, active: Tensor) -> tuple[Tensor, Tensor]:
        """The unknowns after an update of the active points, and the right-hand side there."""
        if self.evaluated is not u:
            self.evaluate(u)
        update = torch.linalg.solve_ex(self.matrix(), right.T[..., None])[0][..., 0].T
        moved = torch.where(active, u + update, u)
        return moved, self.rhs(moved)

    def matrix(self) -> Tensor:
        """The Jacobian (points, unknowns, unknowns) where the lines were evaluated last."""
        e, on = self.equations, self.on
        on.run(e.slope_lines, self.values)
        rows = on.flatten([self.values[n.id] for n in e.slopes], e.seeded)
        return rows.T.reshape(on.call.points, e.size, e.size)

    def solve(self, start: Tensor, part: Part | None = None) -> tuple[Tensor, Status]:
        """The unknowns that make the residuals zero, NaN where there are none, and the status.

        part: of a step that is taken in parts, which this is.
        """
        solve, recorder = self.equations.solve, self.on.call.recorder
        watch = None if recorder is None else recorder.follow(self, part)
        rules = solve.newton if recorder is None else recorder.choose_rules(solve.newton)
        if solve.substeps is not None:
            # points that need no parts do not wait for those that do
            rules = replace(rules, stop="point")
        widths = [self.on.layout.space.count_entries(v.nodes) for v in solve.unknowns]
        return run_newton(
            solve.name, start, self.rhs, self.step, rules, widths,
            in_parts=part is not None, watch=watch,
        )  # fmt: skip

    def solve_linear(
        self, around: _TorchArrays, node: Node, args: Sequence[Tensor]
    ) -> dict[tuple[int, int], Tensor]:
        """The solutions of linear systems here: (unknown, side) -> tensor of the lines around."""
        e, linear, points = self.equations, node.attr, self.on.call.points
        matrix = self.matrix()
        factors = torch.linalg.lu_factor_ex(matrix.mT if linear.is_transposed else matrix)
        assert self.evaluated is not None
        # a solve that failed has no slopes, also where its Jacobian is the same everywhere
        failed = self.evaluated.isnan().any(0)
        found: dict[tuple[int, int], Tensor] = {}
        width = len(e.solve.columns)
        first = len(args) - width * linear.sides
        for side in range(linear.sides):
            seeds = linear.seeds(node, side)
            axes = [(*a, *seeds) for a in e.axes]
            given = args[first + side * width : first + (side + 1) * width]
            right = around.flatten(given, axes).T.reshape(points, e.size, -1)
            solved = torch.linalg.lu_solve(factors[0], factors[1], right)
            solved = solved.masked_fill(failed[:, None, None], math.nan)
            blocks = around.split(solved.reshape(points, -1).T, axes)
            found |= {(slot, side): x for slot, x in enumerate(blocks)}
        return found
