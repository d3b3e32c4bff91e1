"""Lines at the points of a grid -> C++ or CUDA: what stands around them on each device.

On CPUs they run in blocks of lanes along rows, on GPUs a thread has a point.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ingot.codegen.compiler import HEADER_FOLDER

__all__ = ["GRID_DEVICES", "THREADS_PER_GROUP", "GridLoop", "write_grid_unit"]

GRID_DEVICES = ("cpu", "cuda")
THREADS_PER_GROUP = 128
"""How many threads of a GPU work together."""

TILE = 1024
"""For how many points a stage of a loop runs before the next one: two pages of each field."""


@dataclass(frozen=True, slots=True)
class GridLoop:
    """A loop over the points of a grid, the same on every device.

    kinds: of its operands, those it reads before those it gives; inputs: how many it reads;
    numbers, axes: how many it has;
    lines: those that are the same for a row; stages: those of a point, stores last, which on a CPU
    run for some points before the next stage does. They read `number`, and through `get` and `put`
    the places `at` of operands.
    shifts: by how many cells along each axis each operand is read from elsewhere, wrapping around
    varying: the operands that change within a row
    """

    name: str
    kinds: tuple[str, ...]
    inputs: int
    numbers: int
    axes: int
    lines: list[str]
    stages: tuple[list[str], ...]
    shifts: tuple[tuple[int, ...], ...]
    varying: tuple[int, ...]

    @property
    def is_shifted(self) -> bool:
        """Whether it reads values some cells away, so that its axes must stay apart."""
        return any(map(any, self.shifts))

    @property
    def reach(self) -> int:
        """The most cells along a row that a value is read from elsewhere."""
        return max((abs(row[-1]) for row in self.shifts), default=0)


def write_grid_unit(loops: Sequence[GridLoop], real: str, device: str) -> str:
    """The source of a library of loops, nothing where there is none.

    What it includes are headers of the frame of its device.
    """
    grid, write = {"cpu": ("grid.h", _write_lanes), "cuda": ("grid_cuda.h", _write_threads)}[device]
    head = [f"#define INGOT_REAL {real}", '#include "lanes.h"', '#include "powers.h"']
    texts = ((HEADER_FOLDER / name).read_text() for name in ("points.h", grid))
    rows = [row for loop in loops for row in write(loop)]
    return "\n".join([*head, *texts, *rows]) if loops else ""


def _write_lanes(loop: GridLoop) -> list[str]:
    """The stages of a loop as functions, and what runs them over rows is told of it."""
    number, several = range(len(loop.stages)), len(loop.stages) > 1
    shifts = ", ".join(str(by) for row in loop.shifts for by in row)
    varying = ["true" if k in loop.varying else "false" for k in range(len(loop.kinds))]
    return [
        "namespace ingot {", "namespace {", f"namespace {loop.name}_loop {{",
        *(row for at in number for row in _write_stage(loop, at)),
        f"constexpr int bytes[] = {{{', '.join(f'bytes_of<{k}>' for k in loop.kinds)}}};",
        f"constexpr bool varying[] = {{{', '.join(varying)}}};",
        f"constexpr int shifts[] = {{{shifts}}};",
        f"constexpr Stage stages[] = {{{', '.join(f'stage_{at}' for at in number)}}};",
        f"constexpr Kernel kernel = {{{len(loop.kinds)}, {loop.inputs}, {loop.axes}, {loop.reach},",
        f"  {len(loop.stages)}, {TILE if several else 'INT64_MAX'},"
        f" {'true' if loop.is_shifted else 'false'}, bytes, varying, shifts, stages}};",
        "}  // namespace", "}  // namespace", "}  // namespace ingot",
        f'extern "C" void {loop.name}(char* const* operands, const double* numbers,',
        "    const int64_t* layout) {",
        f"  ingot::run_all(ingot::{loop.name}_loop::kernel, operands, numbers, layout);", "}", "",
    ]  # fmt: skip


def _write_stage(loop: GridLoop, number: int) -> list[str]:
    """One stage for whole blocks of a row; what the row shares is computed once a call."""
    return [
        f"__attribute__((noinline)) void stage_{number}(const Place* __restrict at,",
        "    [[maybe_unused]] const double* __restrict number, int64_t j, int64_t end) {",
        *(f"  {line}" for line in loop.lines),
        "  for (; j < end; j += W) {",
        *(f"    {line}" for line in loop.stages[number]),
        "  }", "}",
    ]  # fmt: skip


def _write_threads(loop: GridLoop) -> list[str]:
    """A thread computes all of a point, then of the point as far on as there are threads."""
    sizes = f"{len(loop.kinds)}, {max(loop.numbers, 1)}, {loop.axes}"
    return [
        "namespace ingot {",
        f'extern "C" __global__ void __launch_bounds__({THREADS_PER_GROUP})',
        f"{loop.name}(const Task<{sizes}> task) {{",
        "  constexpr int j = 0;",
        "  const double* const number = task.number;",
        "  const long long threads = (long long)gridDim.x * blockDim.x;",
        "  long long point = (long long)blockIdx.x * blockDim.x + threadIdx.x;",
        "  for (; point < task.points; point += threads) {",
        f"    int index[{loop.axes}];",
        "    task.locate(point, index);",
        "    const Place at[] = {",
        *(f"      {_write_place(loop, k, kind)}," for k, kind in enumerate(loop.kinds)),
        "    };",
        *(f"    {line}" for part in (loop.lines, *loop.stages) for line in part),
        "  }", "}", "}  // namespace ingot", "",
    ]  # fmt: skip


def _write_place(loop: GridLoop, number: int, kind: str) -> str:
    """Where a thread finds the value of its point."""
    by = loop.shifts[number]
    if not any(by):
        return f"task.place<{kind}>({number}, index)"
    return f"task.shifted<{kind}, {', '.join(map(str, by))}>({number}, index)"
