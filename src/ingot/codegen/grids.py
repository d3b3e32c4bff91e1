"""Lines at the points of a grid -> C++ or CUDA: what stands around them on each device.

On CPUs they run in blocks of lanes along rows, on GPUs a thread has a point.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ingot.codegen.compiler import HEADER_FOLDER

__all__ = ["GRID_DEVICES", "THREADS_PER_GROUP", "GridLoop", "write_grid_unit"]

GRID_DEVICES = ("cpu", "cuda")
THREADS_PER_GROUP = 256
"""How many threads of a GPU work together."""


@dataclass(frozen=True, slots=True)
class GridLoop:
    """A loop over the points of a grid, the same on every device.

    kinds: of its operands, those it reads before those it gives; numbers, axes: how many it has;
    lines: those that are the same for all points, for a row, and those of a point, stores last.
    They read `number`, and through `get` and `put` the places `at` of operands.
    """

    name: str
    kinds: tuple[str, ...]
    numbers: int
    axes: int
    lines: tuple[list[str], list[str], list[str]]


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
    """What a row shares is computed once a row, the rest in blocks of W points."""
    return [
        "namespace ingot {", "namespace {",
        f"struct {loop.name}_loop {{",
        f"  static constexpr int operands = {len(loop.kinds)};",
        f"  static constexpr int bytes[] = {{{', '.join(f'bytes_of<{k}>' for k in loop.kinds)}}};",
        "  template <bool unit> static void row(const Place* at, const double* number,",
        "                                       int64_t begin, int64_t end) {",
        *(f"    {line}" for level in loop.lines[:2] for line in level),
        "    const auto block = [&](int64_t j, int n, auto whole)"
        " __attribute__((always_inline)) {",
        "      constexpr bool full = decltype(whole)::value;",
        *(f"      {line}" for line in loop.lines[2]),
        "    };",
        "    int64_t j = begin;",
        "    for (; j + W <= end; j += W) block(j, W, std::true_type{});",
        "    if (j < end) block(j, int(end - j), std::false_type{});",
        "  }", "};", "}  // namespace", "}  // namespace ingot",
        f'extern "C" void {loop.name}(char* const* operands, const double* numbers,',
        "    const int64_t* layout) {",
        f"  ingot::run_all<ingot::{loop.name}_loop>(operands, numbers, layout);", "}", "",
    ]  # fmt: skip


def _write_threads(loop: GridLoop) -> list[str]:
    """A thread computes all of a point, then of the point as far on as there are threads."""
    sizes = f"{len(loop.kinds)}, {max(loop.numbers, 1)}, {loop.axes}"
    return [
        "namespace ingot {",
        f'extern "C" __global__ void __launch_bounds__({THREADS_PER_GROUP})',
        f"{loop.name}(const Task<{sizes}> task) {{",
        "  constexpr bool unit = true, full = true;",
        "  constexpr int j = 0, n = 1;",
        "  const double* const number = task.number;",
        "  const long long threads = (long long)gridDim.x * blockDim.x;",
        "  long long point = (long long)blockIdx.x * blockDim.x + threadIdx.x;",
        "  for (; point < task.points; point += threads) {",
        f"    long long index[{loop.axes}];",
        "    task.locate(point, index);",
        "    const Place at[] = {",
        *(f"      task.place<{kind}>({k}, index)," for k, kind in enumerate(loop.kinds)),
        "    };",
        *(f"    {line}" for level in loop.lines for line in level),
        "  }", "}", "}  // namespace ingot", "",
    ]  # fmt: skip
