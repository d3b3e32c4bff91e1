"""The operation floor: what a step of a point takes at least, at the peak of the machine.

    python -m benchmarks.floor [--device cuda]

In: counts of operations that are committed (floor.toml), never those of the program that is timed.
Out: seconds, by what the machine was measured to do in registers: additions and multiplications at
the peak of fused ones, two at a time; divisions, roots, exp, pow and sin one by one, as kernels
compute them. And the bandwidth of a triad, for what is bound by memory.
"""

import argparse
import ctypes
import struct
import time
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median

import torch

from ingot.codegen.build import NATIVE_FLAGS, load_library
from ingot.codegen.cuda import load_functions
from ingot.codegen.frames import THREADS

OPERATIONS = ("div", "sqrt", "exp", "pow", "sin")
CHAINS = 12  # independent sums: a fused operation takes 4 cycles, and two begin in each
ROUNDS = 9

PROBES = {
    "fma": "fma(x, splat(0.999), splat(1e-3))", "div": "splat(1.7) / x", "sqrt": "sqrt(x)",
    "exp": "exp(-x)", "pow": "pow(x, splat(0.7))", "sin": "sin(x)",
}  # fmt: skip

SOURCE = """
#include "lanes.h"
using namespace ingot;

// Chains of f, each by itself; unrolled, so that they lie in registers.
#define EACH _Pragma("GCC unroll 16") for (int i = 0; i < %(chains)d; ++i)
template <class F> static double spend(int64_t rounds, F f) {
  V x[%(chains)d], total{};
  EACH x[i] = splat(1.5 + i / 64.);
  for (int64_t k = 0; k < rounds; ++k) EACH x[i] = f(x[i]);
  EACH total += x[i];
  return total[0];
}

INGOT_EXPORT int lanes_of() { return W; }
#define PROBE(name, f) \\
  INGOT_EXPORT double run_##name(int64_t n) { return spend(n, [](V x) INGOT_LAMBDA { return f; }); }
%(probes)s
INGOT_EXPORT void triad(double* a, const double* b, const double* c, int64_t n) {
  for (int64_t i = 0; i < n; i += W)
    store(a + i, 1, W, fma(splat(3), load(c + i, 1, W), load(b + i, 1, W)));
}
"""


DEVICE_SOURCE = """
#define INGOT_REAL double
#include "lanes.h"
namespace ingot {
struct Task { double* out; int64_t rounds; };
#define EACH _Pragma("unroll") for (int i = 0; i < %(chains)d; ++i)
#define PROBE(name, f) \\
  extern "C" __global__ void run_##name(const Task task) { \\
    V x[%(chains)d], total{}; \\
    const auto each = [](V x) { return f; }; \\
    EACH x[i] = splat(1.5 + (i + threadIdx.x %% 7) / 64.); \\
    for (int64_t k = 0; k < task.rounds; ++k) EACH x[i] = each(x[i]); \\
    EACH total += x[i]; \\
    if (total == 1e300) task.out[0] = total; \\
  }
%(probes)s
}  // namespace ingot
"""
DEVICE_THREADS = 256
DEVICE_BLOCKS = 8
"""Of a multiprocessor: more threads than it can hold at once."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What a device does: sums and products a second; seconds of other operations, a point each."""

    flops: float
    seconds: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Counts:
    """Operations of one step of a point, by name, and the updates of its solve."""

    updates: float
    once: Mapping[str, int]
    residual: Mapping[str, int]
    update: Mapping[str, int]

    def total(self, operation: str) -> float:
        """How often a step of a point does an operation, on average."""
        evaluated = self.residual.get(operation, 0) * (self.updates + 1)
        return (
            self.once.get(operation, 0) + evaluated + self.update.get(operation, 0) * self.updates
        )


@cache
def read_counts() -> dict[str, Counts]:
    """The committed counts of every case that has them."""
    text = Path(__file__).with_suffix(".toml").read_text()
    return {name: Counts(**rows) for name, rows in tomllib.loads(text).items()}


def find_floor(case: str, machine: Machine) -> float | None:
    """Seconds of one step of a point at the peak of a machine; None where nothing is counted."""
    counts = read_counts().get(case)
    if counts is None:
        return None
    others = sum(counts.total(name) * seconds for name, seconds in machine.seconds.items())
    return counts.total("plain") / machine.flops + others


def _time(call: Callable[[], object]) -> float:
    """CPU seconds of the quickest of some calls: a peak is what nothing has disturbed."""
    found = []
    for _ in range(ROUNDS):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return min(found)


def _fill(source: str) -> str:
    """A source with its probes."""
    probes = "\n".join(f"PROBE({name}, {text})" for name, text in PROBES.items())
    return source % {"chains": CHAINS, "probes": probes}


@cache
def _open_probes() -> ctypes.CDLL:
    library = load_library(_fill(SOURCE), NATIVE_FLAGS)
    for name in ("fma", *OPERATIONS):
        getattr(library, f"run_{name}").argtypes = (ctypes.c_int64,)
    library.triad.argtypes = (*[ctypes.c_void_p] * 3, ctypes.c_int64)
    return library


@cache
def measure_processor() -> Machine:
    """The peak of one core, in double precision and the lanes of kernels."""
    library = _open_probes()
    points = CHAINS * library.lanes_of()

    def seconds(name: str, rounds: int) -> float:
        return _time(lambda: getattr(library, f"run_{name}")(rounds)) / (rounds * points)

    return Machine(2 / seconds("fma", 1_000_000), {n: seconds(n, 100_000) for n in OPERATIONS})


@cache
def measure_gpu() -> Machine:
    """The peak of a whole GPU: seconds of an operation are those of one point among many."""
    device = torch.device("cuda", torch.cuda.current_device())
    find = load_functions(_fill(DEVICE_SOURCE), device, THREADS.read_headers())
    blocks = DEVICE_BLOCKS * torch.cuda.get_device_properties(device).multi_processor_count
    out = torch.zeros(1, dtype=torch.float64, device=device)

    def seconds(name: str, rounds: int) -> float:
        run, found = find(f"run_{name}"), []
        for _ in range(ROUNDS):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            stream = torch.cuda.current_stream().cuda_stream
            run(blocks, DEVICE_THREADS, stream, struct.pack("2q", out.data_ptr(), rounds))
            end.record()
            torch.cuda.synchronize()
            found.append(begin.elapsed_time(end) / 1e3)
        return min(found) / (rounds * CHAINS * blocks * DEVICE_THREADS)

    return Machine(2 / seconds("fma", 20_000), {n: seconds(n, 1000) for n in OPERATIONS})


def measure_triad(numbers: int = 1 << 24) -> float:
    """Bytes a second of $a = b + 3 c$ on arrays far larger than caches: two read, one written."""
    a, b, c = (torch.ones(numbers, dtype=torch.float64) for _ in range(3))
    library = _open_probes()
    found = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        library.triad(a.data_ptr(), b.data_ptr(), c.data_ptr(), numbers)
        found.append(time.perf_counter() - start)
    return 24 * numbers / median(found)


def main() -> None:
    """Print what the machine does, and the floor of every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    is_gpu = parser.parse_args().device == "cuda"
    machine = measure_gpu() if is_gpu else measure_processor()
    triad = "" if is_gpu else f", triad {measure_triad() / 1e9:.3g} GB/s"
    print(f"{machine.flops / 1e9:.3g} GFLOP/s{triad}")
    print(", ".join(f"{n} {s * 1e9:.3g} ns" for n, s in machine.seconds.items()), "a point")
    for case in read_counts():
        print(f"{case}: {1e6 * (find_floor(case, machine) or 0):.3g} µs a step of a point")


if __name__ == "__main__":
    main()
