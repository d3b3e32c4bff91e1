"""Rows and columns of named values -> the lines of their derivative, and a matrix printed of them.

Columns without axes share one seed axis, so a line stands for all of them at once; columns on axes
keep to their neighbours where they can.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ingot.execute.torch_source import TorchPrinter
from ingot.program import Axis, Builder, Node, Variable, is_batch_independent
from ingot.program.differentiate import Tangent, Unstructured, push, seed_axis, seed_column

__all__ = ["Derivative", "differentiate_rows"]

_SCALARS = (-1, ())


@dataclass(frozen=True, slots=True)
class Derivative:
    """The derivative of rows by columns; `columns` stand in the order of the matrix.

    tangents: for each row variable and component; dense: whether columns on axes have seed axes.
    """

    builder: Builder
    rows: tuple[Variable, ...]
    columns: tuple[Variable, ...]
    seed: Axis
    dense: bool
    tangents: tuple[tuple[Tangent, ...], ...]

    def nodes(self) -> list[Node]:
        """Every line of the matrix."""
        return [n for row in self.tangents for t in row for n in t.values()]

    def is_constant(self, row: Variable) -> bool:
        """Whether a row variable's derivative is the same for all points."""
        nodes = [n for t in self.tangents[self.rows.index(row)] for n in t.values()]
        return is_batch_independent(replace(row, nodes=tuple(nodes)))

    def axes(self) -> set[Axis]:
        """All axes that printing needs."""
        found = {self.seed} | {a for v in (*self.rows, *self.columns) for a in v.axes}
        return found | {seed_axis(a) for v in self.columns for a in v.axes if self.dense}

    def write_matrix(self, printer: TorchPrinter) -> str:
        """All rows, (rows, columns, batch)."""
        if not any(v.axes for v in (*self.rows, *self.columns)):
            nodes = [t.get(_SCALARS, self.builder.zero) for row in self.tangents for t in row]
            return printer.write_stack(nodes, (), self.seed)
        blocks = [self.write_block(printer, row) for row in self.rows]
        return printer.write(f"torch.cat([{', '.join(blocks)}])")

    def write_block(self, printer: TorchPrinter, row: Variable, batch: str = "batch") -> str:
        """The rows of one variable, (rows, columns, batch)."""
        tangents = self.tangents[self.rows.index(row)]
        parts = []
        if not all(v.axes for v in self.columns):
            nodes = [t.get(_SCALARS, self.builder.zero) for t in tangents]
            parts.append(printer.write_stack(nodes, row.axes, self.seed, batch))
        at = 0
        for column in self.columns:
            if column.axes:
                parts.append(self._gather(printer, row, tangents, column, at, batch))
            at += len(column.nodes)
        if len(parts) == 1:
            return parts[0]
        return printer.write(f"torch.cat([{', '.join(parts)}], 1)")

    def _gather(
        self, printer: TorchPrinter, row: Variable, tangents: Sequence[Tangent], column: Variable,
        first: int, batch: str,
    ) -> str:  # fmt: skip
        """The block of a column on axes: its entries laid end to end, then put in their places."""
        b = self.builder
        seeds = tuple(seed_axis(a) for a in column.axes) if self.dense else ()
        own = [b.extent(a) for a in row.axes]
        theirs = [b.extent(a) for a in column.axes]
        entries, others = math.prod(own), math.prod(theirs)
        size = entries * (others if self.dense else 1)
        place = np.zeros((entries, len(tangents), others, len(column.nodes)), dtype=np.int64)
        parts = [printer.write(f"tables.new_zeros(1, 1).expand(1, {batch})")]
        at = 1
        for i, tangent in enumerate(tangents):
            for (j, shifts), node in tangent.items():
                if not first <= j < first + len(column.nodes):
                    continue
                name = printer.spread(node, (*row.axes, *seeds), batch)
                parts.append(printer.write(f"{name}.reshape({size}, {batch})"))
                if self.dense:
                    place[:, i, :, j - first] = at + np.arange(size).reshape(entries, others)
                else:
                    here, there = _find_neighbours(row.axes, own, column.axes, theirs, shifts)
                    place[here, i, there, j - first] = at + here
                at += size
        flat = printer.write(f"torch.cat([{', '.join(parts)}])")
        shape = f"{entries * len(tangents)}, {others * len(column.nodes)}, {batch}"
        return printer.write(
            f"{flat}.index_select(0, {printer.write_index(place)}).reshape({shape})"
        )


def _find_neighbours(
    row: Sequence[Axis], own: Sequence[int], column: Sequence[Axis], theirs: Sequence[int],
    shifts: Sequence[int],
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Flat entries of the row, and those of the column that they read, where both exist."""
    at = dict(zip([a.key for a in row], np.indices(own).reshape(len(own), -1), strict=True))
    read = [at[a.key] + s for a, s in zip(column, shifts, strict=True)]
    inside = np.all([(r >= 0) & (r < n) for r, n in zip(read, theirs, strict=True)], axis=0)
    here = np.nonzero(inside)[0]
    return here, np.ravel_multi_index([r[inside] for r in read], theirs)


def differentiate_rows(
    builder: Builder, rows: Sequence[Variable], columns: Sequence[Variable], seed: str
) -> Derivative:
    """The derivative of rows by columns, those without axes first, along a seed axis so named."""
    columns = (*(v for v in columns if not v.axes), *(v for v in columns if v.axes))
    nodes = [n for v in columns for n in v.nodes]
    axis = Axis(seed, seed=1)
    scalars = [n for n in nodes if not n.axes]
    builder.add_axis(seed, max(len(scalars), 1))
    one = np.eye(builder.extent(axis))
    together: dict[int, Tangent] = {
        n.id: {_SCALARS: builder.table(one[j], (axis,))} for j, n in enumerate(scalars)
    }
    roots = [n for v in rows for n in v.nodes]

    def push_columns(dense: bool) -> list[Tangent]:
        apart = {
            n.id: seed_column(builder, j, n, dense=dense) for j, n in enumerate(nodes) if n.axes
        }
        return push(builder, roots, {**together, **apart}, nodes)

    try:
        dense = False
        found = push_columns(dense)
    except Unstructured:
        dense = True
        found = push_columns(dense)
    left = iter(found)
    tangents = tuple(tuple(next(left) for _ in v.nodes) for v in rows)
    return Derivative(builder, tuple(rows), columns, axis, dense, tangents)
