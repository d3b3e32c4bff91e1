"""What stands around the lines of a loop: blocks of lanes on CPUs, a thread a point on GPUs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from ingot.codegen.compiler import HEADER_FOLDER
from ingot.fields.jit.operations import Kind

__all__ = ["FRAMES", "THREADS", "Body", "Frame", "unit"]

THREADS = 256
"""How many threads of a GPU work together."""


@dataclass(frozen=True, slots=True)
class Body:
    """The lines of a loop by level, stores last: the same on every device.

    They read `number`, and through `get` and `put` the places `at` of operands of these kinds.
    """

    name: str
    kinds: tuple[Kind, ...]
    numbers: int
    axes: int
    lines: tuple[list[str], list[str], list[str]]


@dataclass(frozen=True, slots=True)
class Frame:
    """How a device runs a loop: the headers of a library, and what stands around each body."""

    headers: tuple[str, ...]
    around: Callable[[Body], list[str]]


def in_lanes(body: Body) -> list[str]:
    """What a row shares is computed once a row, the rest in blocks of W points."""
    width = ", ".join(f"Kind<{kind}>::bytes" for kind in body.kinds)
    return [
        "namespace ingot {", "namespace {",
        f"struct {body.name}_loop {{",
        f"  static constexpr int operands = {len(body.kinds)};",
        f"  static constexpr int bytes[] = {{{width}}};",
        "  template <bool unit> static void row(const Place* at, const double* number,",
        "                                       int64_t begin, int64_t end) {",
        *(f"    {line}" for level in body.lines[:2] for line in level),
        "    const auto block = [&](int64_t j, int n, auto whole)"
        " __attribute__((always_inline)) {",
        "      constexpr bool full = decltype(whole)::value;",
        *(f"      {line}" for line in body.lines[2]),
        "    };",
        "    int64_t j = begin;",
        "    for (; j + W <= end; j += W) block(j, W, std::true_type{});",
        "    if (j < end) block(j, int(end - j), std::false_type{});",
        "  }", "};", "}  // namespace", "}  // namespace ingot",
        f'extern "C" void {body.name}(char* const* operands, const double* numbers,',
        "    const int64_t* layout) {",
        f"  ingot::run_all<ingot::{body.name}_loop>(operands, numbers, layout);", "}", "",
    ]  # fmt: skip


def in_threads(body: Body) -> list[str]:
    """A thread computes all of a point, then of the point as far on as there are threads."""
    sizes = f"{len(body.kinds)}, {max(body.numbers, 1)}, {body.axes}"
    places = (f"task.place<{kind}>({k}, index)," for k, kind in enumerate(body.kinds))
    return [
        "namespace ingot {",
        f'extern "C" __global__ void __launch_bounds__({THREADS})',
        f"{body.name}(const Task<{sizes}> task) {{",
        "  constexpr bool unit = true, full = true;",
        "  constexpr int j = 0, n = 1;",
        "  const double* const number = task.number;",
        "  const long long threads = (long long)gridDim.x * blockDim.x;",
        "  long long point = (long long)blockIdx.x * blockDim.x + threadIdx.x;",
        "  for (; point < task.points; point += threads) {",
        f"    long long index[{body.axes}];",
        "    task.locate(point, index);",
        "    const Place at[] = {",
        *(f"      {place}" for place in places),
        "    };",
        *(f"    {line}" for level in body.lines for line in level),
        "  }", "}", "}  // namespace ingot", "",
    ]  # fmt: skip


FRAMES = {
    "cpu": Frame(('#include "lanes.h"', "points.h", "grid.h"), in_lanes),
    "cuda": Frame(("lane_cuda.h", "points.h", "grid_cuda.h"), in_threads),
}
"""By the kind of the device."""


def unit(kernels: list[str], real: torch.dtype, frame: Frame) -> str:
    """The source of a library of kernels."""
    name = "double" if real == torch.float64 else "float"
    texts = (h if h.startswith("#") else (HEADER_FOLDER / h).read_text() for h in frame.headers)
    head = [f"#define INGOT_REAL {name}", *texts]
    return "\n".join([*head, *kernels]) if kernels else ""
