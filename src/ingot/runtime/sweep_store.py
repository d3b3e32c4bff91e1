"""The data set that a sweep writes, Parquet or Zarr: its parts put in, each whole or not at all."""

import io
from pathlib import Path
from typing import Any

import numpy as np

from ingot.codegen.disk import writable
from ingot.package.write import put_file
from ingot.runtime.sweep_part import Planned, Rows

__all__ = ["ENDING", "begin", "count_failed", "find_done", "put_part"]

ENDING = ".plan"
"""What the folder of a plan adds to the name of its data set."""


def _find_output(folder: Path) -> Path:
    """Where the data set of a plan lies: beside it."""
    return folder.with_name(folder.name.removesuffix(ENDING))


def begin(planned: Planned) -> None:
    """Make the data set ready to take parts."""
    output = _find_output(planned.folder)
    if planned.plan.format == "parquet":
        with writable(any_error=True):
            output.mkdir(parents=True, exist_ok=True)
        return
    import zarr

    (planned.folder / "done").mkdir(exist_ok=True)
    plan, steps = planned.plan, len(planned.plan.kept)
    group = zarr.open_group(output, mode="a")

    def add(name: str, inner: tuple[int, ...], dtype: Any, *names: str) -> None:
        if name in group:  # a sweep that was killed goes on
            return
        dims = [*names, *(f"{name}_{i}" for i in range(len(inner)))]
        shape = [{"point": plan.points, "step": steps}[n] for n in names]
        cut = [{"point": plan.size, "step": steps}[n] for n in names]
        group.create_array(
            name, shape=(*shape, *inner), chunks=(*cut, *inner), dtype=dtype,
            dimension_names=dims,
        )  # fmt: skip

    for name in plan.labels.values():
        add(name, (), "float64", "point")
    add("time", (), "float64", *(("point",) if planned.times[0].numel() > 1 else ()), "step")
    for name, inner in plan.variables.items():
        add(name, inner, planned.artifact.metadata.dtype, "point", "step")
    if plan.solves:
        add("converged", (), "bool", "point", "step")
        add("iterations", (), "int32", "point", "step")


def find_done(planned: Planned) -> set[int]:
    """The parts that are there."""
    if planned.plan.format == "parquet":
        names = (p.stem.removeprefix("part-") for p in _find_output(planned.folder).glob("part-*"))
    else:
        names = (p.name for p in (planned.folder / "done").glob("*"))
    return {int(name) for name in names if name.isdigit()}


def put_part(planned: Planned, number: int, rows: Rows) -> None:
    """Write the values of a part."""
    output = _find_output(planned.folder)
    if planned.plan.format == "parquet":
        put_file(_write_table(planned, number, rows), output / f"part-{number:06d}.parquet")
        return
    import zarr

    group: Any = zarr.open_group(output, mode="r+")
    span = planned.plan.span(number)
    axes = planned.label_axes(number)
    times = planned.find_times(number)
    if times.ndim == 1:
        group["time"][:] = times
    else:
        axes["time"] = times
    for name, values in (axes | rows).items():
        group[name][span.start : span.stop] = values
    put_file(b"", planned.folder / "done" / str(number))


def _write_table(planned: Planned, number: int, rows: Rows) -> bytes:
    """A row for each point and step."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    plan = planned.plan
    span, steps = plan.span(number), len(plan.kept)
    shape = (len(span), steps)

    def flat(values: np.ndarray) -> np.ndarray:
        return np.broadcast_to(values, shape).reshape(-1)

    columns = {
        "point": flat(np.arange(span.start, span.stop)[:, None]),
        "step": flat(np.array(plan.kept, dtype=np.int32)),
        "time": flat(planned.find_times(number)),
    }
    columns |= {n: flat(x[:, None]) for n, x in planned.label_axes(number).items()}
    for each in plan.columns:
        columns[each.name] = flat(rows[each.variable][(..., *each.place)])
    columns |= {n: flat(rows[n]) for n in ("converged", "iterations") if n in rows}
    content = io.BytesIO()
    pq.write_table(pa.table(columns), content)
    return content.getvalue()


def count_failed(planned: Planned) -> int:
    """How many points of a data set did not converge at some step."""
    if not planned.plan.solves:
        return 0
    output, size = _find_output(planned.folder), planned.plan.size
    if planned.plan.format == "parquet":
        import pyarrow.parquet as pq

        files = (output / f"part-{n:06d}.parquet" for n in range(planned.plan.parts))
        columns = (pq.read_table(file, columns=["converged"])["converged"] for file in files)
        rows = (c.to_numpy().reshape(-1, len(planned.plan.kept)) for c in columns)
        return sum(int((~row).any(1).sum()) for row in rows)
    import zarr

    values: Any = zarr.open_group(output, mode="r")["converged"]
    starts = range(0, planned.plan.points, size)
    return sum(int((~values[n : n + size]).any(1).sum()) for n in starts)
