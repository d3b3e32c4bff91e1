"""Kernels on a GPU: transients of 99 steps, one point of one step, the time to the first result.

Then Cahn-Hilliard on grids: a substep replayed as a CUDA graph, launched plainly, run by torch.

    python -m benchmarks.gpu ../shared/cases

Float64, CUDA events, medians. 64 points are drawn as benchmarks.bench draws them, and repeated.
Beside it: the operation floor (benchmarks.floor), committed counts at the measured peak of the GPU.
"""

import argparse
import ctypes
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

from benchmarks.fields import SUBSTEPS, begun
from benchmarks.figures import write_result
from benchmarks.floor import OPERATIONS, Machine, find_floor, measure_gpu
from benchmarks.load_paths import CASES, Folders, overrides
from ingot.codegen.cuda import open_driver
from ingot.drivers.transient import TransientDriver, transient_driver
from ingot.execute import Transient
from ingot.execute.kernel import Kernel
from ingot.execute.kernel_cuda import DeviceRunner
from ingot.fields.jit import Jit
from ingot.fields.jit.planner import private_of
from ingot.fields.step import Eager
from ingot.hit import read
from ingot.model import Factory

DRAWN = 64
CUDA = torch.device("cuda")
ATTRIBUTES = {"registers": 4, "local_bytes": 3, "shared_bytes": 1}
"""What CUDA's driver tells of a kernel, by its numbers of it."""


def timed(run: Callable[[], object], rounds: int = 7) -> float:
    """The median time of a run on the GPU, in milliseconds."""
    found = []
    for _ in range(rounds + 2):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        found.append(begin.elapsed_time(end))
    return median(found[2:])


def drawn(name: str, folders: Folders) -> TransientDriver:
    """The driver of a benchmark's case."""
    case = CASES[name]
    more = overrides(case, DRAWN, folders.scratch)
    return transient_driver(Factory(read(folders.cases / case.file, more)), case.driver)


def repeated(x: Tensor, dim: int, points: int) -> Tensor:
    """The drawn points again and again."""
    if x.ndim <= dim or x.shape[dim] != DRAWN:
        return x
    return x.repeat(*(1,) * dim, points // DRAWN, *(1,) * (x.ndim - dim - 1))


def describe(kernel: Kernel) -> dict[str, int]:
    """Registers and memory of a thread."""
    found = {}
    assert isinstance(kernel.entry.run, DeviceRunner)
    for name, number in ATTRIBUTES.items():
        value, handle = ctypes.c_int(), kernel.entry.run.function.handle
        open_driver().cuFuncGetAttribute(ctypes.byref(value), number, handle)
        found[name] = value.value
    return found


def latency(kernel: Kernel, transient: Transient) -> dict[str, float]:
    """Microseconds until a call of one point returns, and until its result stands."""
    shapes = {v.name: (*v.sizes, *v.base) for v in kernel.entry.inputs}
    inputs = {n: torch.zeros(1, *s, dtype=torch.float64, device=CUDA) for n, s in shapes.items()}
    for n, x in transient.prescribed.items():
        if n in inputs:
            inputs[n] += x[1].reshape(-1, *shapes[n])[:1]
    returns, stands = [], []
    for _ in range(300):
        torch.cuda.synchronize()
        start = time.perf_counter()
        kernel(inputs)
        returns.append(time.perf_counter() - start)
        torch.cuda.synchronize()
        stands.append(time.perf_counter() - start)
    return {"returns_us": median(returns) * 1e6, "stands_us": median(stands) * 1e6}


def fields(sizes: tuple[int, ...]) -> dict[str, Any]:
    """Microseconds of a substep of Cahn-Hilliard, from one wait for the GPU to the next."""
    ways = {
        "replayed_us": lambda made: Jit(private=private_of(made)),
        "launched_us": lambda made: Jit(private=private_of(made), cuda_graphs=False),
        "torch_us": lambda made: Eager(),
    }
    runs = {way: begun(sizes, jit=True, device="cuda", executor=make) for way, make in ways.items()}
    found: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(9):
        for way, run in runs.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(10):
                run.step()
            torch.cuda.synchronize()
            found[way].append((time.perf_counter() - start) / (10 * SUBSTEPS) * 1e6)
    box = "x".join(map(str, sizes))
    return {"case": f"Cahn-Hilliard {box}"} | {way: median(t[2:]) for way, t in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--names", nargs="*", default=["isoharden", "chaboche", "crystal", "gtn"])
    parser.add_argument("--points", nargs="*", type=int, default=[65_536, 1 << 20])
    parser.add_argument("--boxes", nargs="*", default=["512x512", "96x96x96"])
    parser.add_argument("--output", type=Path)
    parser.add_argument("--out", type=Path, help="folder for the tables of the pages")
    options = parser.parse_args()
    rows = []
    machine = measure_gpu()
    print(machine, flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        for name in options.names:
            driver = drawn(name, Folders(options.cases, Path(scratch)))
            first = driver.transient.to(CUDA)
            start = time.perf_counter()
            kernel = Kernel(driver.program, device=CUDA)
            kernel.transient(first)
            torch.cuda.synchronize()
            told = {"case": name, "first_result_s": time.perf_counter() - start}
            told |= describe(kernel) | latency(kernel, first)
            for points in options.points:
                prescribed = {n: repeated(x, 1, points) for n, x in first.prescribed.items()}
                initial = {n: repeated(x, 0, points) for n, x in first.initial.items()}
                took = timed(kernel.arrange(Transient(first.steps, prescribed, initial)))
                steps = first.steps - 1
                rate = points * steps / took * 1e3
                floor = (find_floor(name, machine) or 0) * points * steps * 1e3
                row = {"points": points, "ms": took, "point_steps_per_s": rate, "floor_ms": floor}
                rows.append(told | row)
                print(json.dumps(rows[-1]), flush=True)
                del prescribed, initial
                torch.cuda.empty_cache()
    for box in options.boxes:
        rows.append(fields(tuple(map(int, box.split("x")))))
        print(json.dumps(rows[-1]), flush=True)
    if options.output:
        options.output.write_text(json.dumps(rows, indent=1))
    if options.out:
        store(rows, options.out, torch.cuda.get_device_name(), machine)


def store(rows: list[dict[str, Any]], folder: Path, name: str, peak: Machine) -> None:
    """Write the tables of docs/speed.md."""
    command, body = "python -m benchmarks.gpu ../shared/cases", []
    kernels = [row for row in rows if "points" in row]
    points = sorted({row["points"] for row in kernels})
    for case in dict.fromkeys(row["case"] for row in kernels):
        by = {row["points"]: row for row in kernels if row["case"] == case}
        last = by[points[-1]]
        body.append((
            case, *(float(by[n]["ms"]) for n in points), f"{last['point_steps_per_s']:.2g}",
            f"{last['ms'] / last['floor_ms']:.1f}" if last["floor_ms"] else "",
            f"{last['first_result_s']:.1f}", f"{last['returns_us']:.0f}",
            f"{last['stands_us']:.0f}", last["local_bytes"],
        ))  # fmt: skip
    sizes = (f"{n:,} points ms".replace(",", " ") for n in points)
    tail = ("point-steps/s", "floors", "first result s", "returns µs", "stands µs", "local bytes")
    write_result(folder, "gpu", command, ("case", *sizes, *tail), body, machine=name)
    grids = [row for row in rows if "replayed_us" in row]
    ways = ("replayed", "launched", "torch")
    body = [(str(row["case"]).split()[1], *(f"{row[f'{way}_us']:.0f}" for way in ways))
            for row in grids]  # fmt: skip
    write_result(folder, "gpu-fields", command, ("grid", *ways), body, machine=name)
    times = {each: f"{peak.seconds[each] * 1e12:.2g}" for each in OPERATIONS}
    values = {"tflops": f"{peak.flops / 1e12:.3g}", **times}
    write_result(folder, "gpu-floor", command, values=values, machine=name)


if __name__ == "__main__":
    main()
