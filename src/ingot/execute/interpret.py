"""Program -> torch operations on component tensors: no compiler, any device and precision.

A node is a tensor with one dimension for every axis of the program, and the batch last.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ingot.errors import IngotError, Problem
from ingot.execute.batch import flattened, restored, shape_of
from ingot.execute.newton import run_newton
from ingot.execute.status import Status
from ingot.execute.transient import History, Transient, step_through
from ingot.program.differentiate import directional
from ingot.program.graph import Axis, Graph, Node, ordered
from ingot.program.program import Program, Solve, dependent
from ingot.types.elementwise import ON_TENSORS

__all__ = ["Interpreter"]

_FLAGS = {"lt", "le", "gt", "ge", "eq", "and", "or", "not"}
Values = dict[int, Tensor]


class Interpreter:
    """Runs a program on torch tensors."""

    def __init__(self, program: Program, *, dtype: torch.dtype = torch.float64) -> None:
        self.program = program
        self.dtype = dtype
        self._lines = program.lines()
        self._solvers: dict[int, _Solver] = {}
        for node in self._lines:
            if node.op in ("solve", "linear"):
                self._solver(node.attr if node.op == "solve" else node.attr.solve)

    def __call__(
        self, inputs: Mapping[str, Tensor]
    ) -> tuple[dict[str, Tensor], tuple[Status, ...]]:
        """The outputs `(*batch, *axes, *base)` and the status of every solve."""
        given = [(v, inputs[v.name]) for v in self.program.inputs]
        given += [(p.variable, p.value.data) for p in self.program.parameters]
        graph = self.program.graph
        flat, batch = flattened([(shape_of(v, graph), x) for v, x in given])
        count = math.prod(batch)
        if count == 0:
            return self._nothing(batch)
        machine = _Machine(self.program.graph, self.dtype, flat[0].device if flat else None)
        values: Values = {}
        for (variable, _), x in zip(given, flat, strict=True):
            components = x.to(self.dtype).reshape(*x.shape[: 1 + len(variable.axes)], -1)
            for i, node in enumerate(variable.nodes):
                values[node.id] = machine.placed(components[..., i], variable.axes)
        statuses: list[Status] = []
        solved: dict[int, dict[Any, Tensor]] = {}
        for node in self._lines:
            if node.id in values:
                continue
            if node.op == "solve":
                found, status = self._solver(node.attr)(machine, values, node, count)
                solved[node.id] = dict(enumerate(found))
                statuses.append(status)
            elif node.op == "linear":
                solved[node.id] = self._solver(node.attr.solve).linear(machine, values, node)
            elif node.op == "item":
                values[node.id] = solved[node.args[0].id][node.attr]
            else:
                values[node.id] = machine.value(node, values)
        outputs = {}
        for v in self.program.outputs:
            parts = [machine.taken(values[n.id], v.axes, count) for n in v.nodes]
            stacked = torch.stack(parts, dim=-1)
            outputs[v.name] = restored(stacked, batch, shape_of(v, graph))
        return outputs, tuple(statuses)

    def _nothing(self, batch: tuple[int, ...]) -> tuple[dict[str, Tensor], tuple[Status, ...]]:
        """What a call without points gives."""
        outputs = {}
        for v in self.program.outputs:
            sizes = [self.program.graph.extent(a) for a in v.axes]
            outputs[v.name] = torch.empty((*batch, *sizes, *v.kind.base), dtype=self.dtype)
        none = torch.empty(0, dtype=torch.int32)
        rows = (none.to(torch.int8), none, none.to(self.dtype), none, none.to(torch.int8))
        return outputs, tuple(Status(s.name, *rows) for s in self.program.solves())

    def transient(self, transient: Transient) -> History:
        """All steps, one after another."""
        return step_through(self, self.program, transient, self.dtype)

    def arranged(self, transient: Transient) -> Callable[[], History]:
        """The run of a transient."""
        return partial(self.transient, transient)

    def _solver(self, solve: Solve) -> "_Solver":
        if id(solve) not in self._solvers:
            self._solvers[id(solve)] = _Solver(solve)
        return self._solvers[id(solve)]


class _Machine:
    """How nodes of a graph become tensors."""

    def __init__(self, graph: Graph, dtype: torch.dtype, device: torch.device | None) -> None:
        self.graph = graph
        self.dtype = dtype
        self.device = device
        self.names = list(graph.extents)

    def _shape(self, axes: Sequence[Axis], batch: int) -> list[int]:
        sizes = {a.name: self.graph.extent(a) for a in axes}
        return [*(sizes.get(n, 1) for n in self.names), batch]

    def placed(self, x: Tensor, axes: Sequence[Axis]) -> Tensor:
        """A tensor (batch, *axes) with a dimension for every axis and the batch last."""
        order = sorted(range(len(axes)), key=lambda i: self.names.index(axes[i].name))
        x = x.permute(*(1 + i for i in order), 0)
        return x.reshape(self._shape(axes, x.shape[-1]))

    def taken(self, x: Tensor, axes: Sequence[Axis], batch: int) -> Tensor:
        """The inverse of `placed`, spread over axes and batch along which the value is constant."""
        x = x.expand(self._shape(axes, batch)).reshape(
            [self.graph.extent(a) for a in sorted(axes, key=lambda a: self.names.index(a.name))]
            + [batch]
        )
        order = sorted(range(len(axes)), key=lambda i: self.names.index(axes[i].name))
        back = [order.index(i) for i in range(len(axes))]
        return x.permute(len(axes), *back)

    def of(self, node: Node, values: Values) -> Tensor:
        """The tensor of a node that is known, or constant."""
        if node.id not in values and node.op in ("const", "table", "eye"):
            values[node.id] = self.value(node, values)
        return values[node.id]

    def value(self, node: Node, values: Values) -> Tensor:
        """The tensor of a node whose arguments are known."""
        if node.op == "const":
            return torch.full(
                [1] * (len(self.names) + 1), node.attr, dtype=self.dtype, device=self.device
            )
        if node.op == "table":
            data = torch.as_tensor(self.graph.values(node), dtype=self.dtype, device=self.device)
            return data.reshape(self._shape(node.axes, 1))
        if node.op == "eye":
            n = self.graph.extent(node.axes[0])
            eye = torch.eye(n, dtype=self.dtype, device=self.device)
            return eye.reshape(self._shape(node.axes, 1))
        if node.op == "eps":
            return torch.full(
                [1], torch.finfo(self.dtype).eps, dtype=self.dtype, device=self.device
            )
        args = [self.of(a, values) for a in node.args]
        if node.op == "sum":
            return args[0].sum(dim=self.names.index(node.attr.name), keepdim=True)
        if node.op in ("window", "pad"):
            return self._shifted(node, args[0])
        if node.op == "where":
            return torch.where(args[0].bool(), args[1], args[2])
        if node.op not in ON_TENSORS:
            message = (
                "a solve stands inside the residual of another, which torch operations do not run"
            )
            fix = "run it with --backend kernel"
            raise IngotError([Problem("solves-in-series", message, None, fix)])
        result = ON_TENSORS[node.op](*args)
        return result.to(self.dtype) if node.op in _FLAGS else result

    def _shifted(self, node: Node, x: Tensor) -> Tensor:
        held, first = node.attr
        dim = self.names.index(held.name)
        now = next(a for a in node.axes if a.name == held.name)
        if node.op == "window":
            return x.narrow(dim, first, self.graph.extent(now))
        shape = list(x.shape)
        shape[dim] = self.graph.extent(now)
        result = x.new_zeros(shape)
        result.narrow(dim, first, x.shape[dim]).copy_(x)
        return result

    # linear systems

    def rows(
        self, nodes: Sequence[Node], axes: Sequence[tuple[Axis, ...]], values: Values, batch: int
    ) -> Tensor:
        """Values laid end to end: (batch, unknowns)."""
        parts = [
            self.taken(self.of(n, values), a, batch).reshape(batch, -1)
            for n, a in zip(nodes, axes, strict=True)
        ]
        return torch.cat(parts, dim=1)

    def split(self, x: Tensor, axes: Sequence[tuple[Axis, ...]]) -> list[Tensor]:
        """The inverse of `rows`."""
        parts, at = [], 0
        for a in axes:
            sizes = [self.graph.extent(i) for i in a]
            n = math.prod(sizes)
            parts.append(self.placed(x[:, at : at + n].reshape(-1, *sizes), a))
            at += n
        return parts


class _Solver:
    """The equations of a solve as tensors: residuals, Jacobian, linear systems, Newton's steps."""

    def __init__(self, solve: Solve) -> None:
        self.solve = solve
        graph = solve.rows[0].graph
        self.axes = [c.axes for c in solve.columns]
        sizes = [math.prod(graph.extent(a) for a in axes) for axes in self.axes]
        self.size = sum(sizes)
        seed = Axis(f"^{solve.name}")
        graph.extents[seed.name] = self.size
        self.seeds = [
            graph.node("unknown", (), (solve.name, "direction", i), (*c.axes, seed))
            for i, c in enumerate(solve.columns)
        ]
        self.slopes = directional(solve.rows, solve.columns, self.seeds)
        self.seed = seed
        inside = dependent(solve.rows, solve.columns)
        self.row_lines = [n for n in ordered(solve.rows) if n.id in inside and n.op != "unknown"]
        known = {n.id for n in (*self.row_lines, *solve.columns, *self.seeds)}
        reach = dependent(self.slopes, solve.columns)
        # of a solve that was done before, the unknowns (`item`) are among the values, not it itself
        self.slope_lines = [
            (n, n.id in reach)
            for n in ordered(self.slopes)
            if n.id not in known and n.op != "solve"
        ]

    def matrix(self, machine: _Machine, values: Values, batch: int) -> Tensor:
        """The Jacobian (batch, n, n) at the point whose lines `values` hold."""
        if self.seeds[0].id not in values:
            eye = torch.eye(self.size, dtype=machine.dtype, device=machine.device)
            at = 0
            for node, axes in zip(self.seeds, self.axes, strict=True):
                sizes = [machine.graph.extent(a) for a in axes]
                part = eye[at : at + math.prod(sizes)].reshape(1, *sizes, self.size)
                values[node.id] = machine.placed(part, (*axes, self.seed))
                at += math.prod(sizes)
        for node, varies in self.slope_lines:
            if varies or node.id not in values:
                values[node.id] = machine.value(node, values)
        blocks = [
            machine.taken(machine.of(n, values), (*axes, self.seed), batch)
            for n, axes in zip(self.slopes, self.axes, strict=True)
        ]
        return torch.cat([b.reshape(batch, -1, self.size) for b in blocks], dim=1)

    def linear(
        self, machine: _Machine, values: Values, node: Node
    ) -> dict[tuple[int, int], Tensor]:
        """The solutions of a linear block at the solution: (unknown, side) -> tensor."""
        width = len(self.solve.columns)
        held = {c.id: values[u.id] for c, u in zip(self.solve.columns, node.args, strict=False)}
        inner = {**values, **held}
        for line in self.row_lines:
            inner[line.id] = machine.value(line, inner)
        batch = max(machine.of(a, values).shape[-1] for a in node.args)
        # A failed point has NaN unknowns, and so NaN tangents, even where none reads an unknown.
        failed = machine.rows(node.args[:width], self.axes, values, batch)[:, :1, None].isnan()
        factor, pivots, _ = torch.linalg.lu_factor_ex(self.matrix(machine, inner, batch))
        sides = node.args[len(node.args) - width * node.attr.sides :]
        found: dict[tuple[int, int], Tensor] = {}
        for side in range(node.attr.sides):
            rows = sides[side * width : (side + 1) * width]
            seeds = tuple({a.name: a for n in rows for a in n.axes if "^" in a.name}.values())
            many = math.prod(machine.graph.extent(a) for a in seeds)
            parts = [
                machine.taken(machine.of(n, values), (*a, *seeds), batch).reshape(batch, -1, many)
                for n, a in zip(rows, self.axes, strict=True)
            ]
            solved = torch.linalg.lu_solve(factor, pivots, torch.cat(parts, dim=1))
            solved = torch.where(failed, math.nan, solved)
            at = 0
            for slot, axes in enumerate(self.axes):
                shape = [machine.graph.extent(a) for a in (*axes, *seeds)]
                n = math.prod(shape) // many
                block = solved[:, at : at + n].reshape(batch, *shape)
                found[slot, side] = machine.placed(block, (*axes, *seeds))
                at += n
        return found

    def __call__(
        self, machine: _Machine, values: Values, node: Node, batch: int
    ) -> tuple[list[Tensor], Status]:
        guesses = node.args[: len(self.solve.columns)]
        start = machine.rows(guesses, self.axes, values, batch).T
        evaluated = start  # the unknowns at which `values` hold the lines

        def rhs(u: Tensor) -> Tensor:
            nonlocal evaluated
            evaluated = u
            return -self._residual(machine, values, u.T).T

        def step(u: Tensor, right: Tensor, active: Tensor) -> tuple[Tensor, Tensor]:
            if evaluated is not u:
                rhs(u)
            dense = self.matrix(machine, values, batch)
            update = torch.linalg.solve_ex(dense, right.T[..., None])[0][..., 0].T
            moved = torch.where(active, u + update, u)
            return moved, rhs(moved)

        u, status = run_newton(self.solve.name, start, rhs, step, self.solve.newton)
        return machine.split(u.T, self.axes), status

    def _residual(self, machine: _Machine, values: Values, at: Tensor) -> Tensor:
        columns = machine.split(at, self.axes)
        for column, x in zip(self.solve.columns, columns, strict=True):
            values[column.id] = x
        for node in self.row_lines:
            values[node.id] = machine.value(node, values)
        return machine.rows(self.solve.rows, self.axes, values, at.shape[0])
