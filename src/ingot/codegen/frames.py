"""What stands around the lines of a point: blocks of lanes on CPUs, a thread a point on GPUs."""

from collections.abc import Callable
from dataclasses import dataclass

from ingot.codegen import compiler
from ingot.codegen.lines import LANE_REGISTERS
from ingot.program import Program
from ingot.program.schedule import Registers

__all__ = ["LANES", "THREADS", "PointFrame", "count_rows", "write_definitions"]


@dataclass(frozen=True, slots=True)
class PointFrame:
    """How a device runs the lines of a point.

    headers: the files that a source includes, in order, by the name they go under; max_pivoted: the
    unknowns of a system up to which there is a second routine; write_entry: the function that runs
    the lines of a section over points; spills: whether what is too much for registers is spilled
    on purpose, as compilers for CPUs do well enough; registers: those of the device.
    """

    device: str
    headers: dict[str, str]
    max_pivoted: int
    write_entry: Callable[[Program, str], list[str]]
    spills: bool = False
    registers: Registers = LANE_REGISTERS

    def read_headers(self) -> dict[str, str]:
        """The texts of all headers by the names they go under."""
        folder = compiler.HEADER_FOLDER
        return {name: (folder / file).read_text() for name, file in self.headers.items()}

    def join_headers(self) -> str:
        """All headers as one text."""
        return compiler.join_headers(tuple(self.headers.values()))


def _write_loop(program: Program, entry: str) -> list[str]:
    """The function of a library that runs a section in blocks of points."""
    first, count = len(program.inputs), len(program.given)
    return [
        "namespace {", "",
        f"INGOT_CALL void {entry}(const Given* in, const Gives* out, const Knobs* knobs,",
        "    const Reports::One* reports, int64_t points, int64_t first_step, int64_t steps,",
        "    int64_t begin, int64_t end) {",
        f"  const auto point = [](auto&&... all) {{ {entry}_lines::point(all...); }};",
        f"  const auto hoist = [](auto&&... all) {{ {entry}_lines::hoist(all...); }};",
        f"  each_point<{entry}_lines::hoisted, {first}, {count}>(point, hoist, in, out, knobs,",
        "      reports, points, first_step, steps, begin, end);",
        "}", "",
        "}  // namespace",
    ]  # fmt: skip


def count_rows(program: Program) -> tuple[int, int, int]:
    """How many inputs and parameters, outputs and solves a kernel is told of."""
    return len(program.given), len(program.outputs), len(program.solves)


def write_definitions(real: str, prefix: str) -> str:
    """What stands before the unit of kernels of a GPU: their numbers, and how names begin."""
    return f"#define INGOT_REAL {real}\n#define INGOT_NAME(entry) {prefix}_##entry\n"


def _write_kernel(program: Program, entry: str) -> list[str]:
    """The kernel that runs a section by a thread a point."""
    first, count = len(program.inputs), len(program.given)
    rows = ", ".join(str(max(n, 1)) for n in count_rows(program))
    bounds = f"threads_of_block, blocks_at_once<{entry}_lines::slots>"
    return [
        f"INGOT_SHARED_BYTES({entry}) = shared_slots<{entry}_lines::slots> * slot_bytes;",
        f'extern "C" __global__ void __launch_bounds__({bounds})',
        f"INGOT_NAME({entry})(const __grid_constant__ Task<{rows}> task) {{",
        "  const auto point = [](const Inputs& in, const Outputs& out, const Knobs* knobs,",
        "      Reports& reports, const V* h) {",
        f"    {entry}_lines::point(in, out, knobs, reports, h);",
        "  };",
        f"  const auto hoist = [](const Inputs& in, V* h) {{ {entry}_lines::hoist(in, h); }};",
        f"  each_point<{entry}_lines::hoisted, {first}, {count}>(task, point, hoist);",
        "}", "",
    ]  # fmt: skip


_SHARED = ("powers.h", "newton.h", "parts.h", "band.h", "entry.h")

LANES = PointFrame(
    "cpu", {name: name for name in ("lanes.h", *_SHARED, "steps.h")}, 512, _write_loop
)
"""A dense matrix of 512 unknowns takes 16 MB of lanes."""

THREADS = PointFrame(
    "cuda", {"lanes.h": "lane_cuda.h"} | {name: name for name in (*_SHARED, "threads.h")}, 96,
    _write_kernel, spills=True, registers=Registers(held=70, tried_lines=20_000),
)  # fmt: skip
"""Two dense matrices of 96 unknowns take 150 kB of the 512 kB of local memory that a thread has. Of
the 127 numbers that its registers hold, unknowns and residuals take some, and what is begun ahead.
On 20 000 lines orders are tried for half a second: a crystal has 292 values alive by the first and
272 by the best, and is 12 % faster on an H200."""
