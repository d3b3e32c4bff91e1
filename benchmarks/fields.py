"""Cahn-Hilliard side by side: Ingot compiled and direct, torch.compile by hand, the FFTs alone.

In: nothing. Out: tables of milliseconds a step, of memory and of a material inside a sequence, and
`results/fields.json`. Ways alternate; medians count. `python -m benchmarks.fields --quick`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
SIZES = {"512x512": (512, 512), "96^3": (96, 96, 96)}
QUICK = {"256x256": (256, 256), "48^3": (48, 48, 48)}
SUBSTEPS = 5
INPUT = """
[Domain]
  dim = {dim}
  nx = {nx}
  ny = {ny}
  nz = {nz}
  xmax = 30
  ymax = 30
  zmax = 30
[]
[TensorComputes]
  [Initialize]
    [c]
      type = RandomTensor
      buffer = c
      min = 0.44
      max = 0.56
      seed = 0
    []
    [M]
      type = ReciprocalLaplacianFactor
      buffer = M
      factor = 0.2
    []
    [kappa]
      type = ReciprocalLaplacianSquareFactor
      buffer = kappa
      factor = -0.001
    []
  []
  [Solve]
    [mu]
      type = ParsedCompute
      buffer = mu
      expression = '0.1*c^2*(c-1)^2'
      derivatives = c
      inputs = c
    []
    [mubar]
      type = ForwardFFT
      buffer = mubar
      input = mu
    []
    [rate]
      type = ParsedCompute
      buffer = rate
      expression = 'M*mubar'
      inputs = 'M mubar'
    []
    [cbar]
      type = ForwardFFT
      buffer = cbar
      input = c
    []
  []
[]
[TensorSolver]
  type = AdamsBashforthMoulton
  buffer = c
  reciprocal_buffer = cbar
  linear_reciprocal = kappa
  nonlinear_reciprocal = rate
  substeps = {substeps}
[]
[Executioner]
  type = Transient
  num_steps = 1000000
  dt = 1e-3
[]
"""


def begun(sizes: tuple[int, ...], *, jit: bool, device: str = "", executor: Any = None) -> Any:
    """A run past its first steps, compiled or direct, or by an executor."""
    from ingot.fields import build, prepared
    from ingot.hit import read_text

    nx, ny, nz = (*sizes, 1)[:3]
    text = INPUT.format(dim=len(sizes), nx=nx, ny=ny, nz=nz, substeps=SUBSTEPS)
    text = text if len(sizes) == 3 else text.replace("  nz = 1\n", "").replace("  zmax = 30\n", "")
    made, folder = build(read_text(text, moose=True)), tempfile.gettempdir()
    executor = executor and executor(made)
    run = prepared(made, folder, executor=executor, jit=jit, device=device)
    run.start()
    for _ in range(2):
        run.step()
    return run


def by_hand(sizes: tuple[int, ...]) -> Callable[[], None]:
    """The same steps as one function, compiled by torch."""
    import torch
    from torch import Tensor

    run = begun(sizes, jit=False)
    mobility, kappa = run.state.buffers["M"], run.state.buffers["kappa"]
    dt = torch.tensor(1e-3 / SUBSTEPS, dtype=torch.float64)
    axes = list(range(len(sizes)))

    @torch.compile(dynamic=False)
    def step(c: Tensor, old: Tensor) -> tuple[Tensor, Tensor]:
        mu = 2 * c * 0.1 * (c - 1) ** 2 + c**2 * 0.1 * 2 * (c - 1)
        rate = mobility * torch.fft.rfftn(mu, dim=axes)
        side = torch.fft.rfftn(c, dim=axes) + dt * (1.5 * rate - 0.5 * old)
        return torch.fft.irfftn(side / (1 - dt * kappa), s=sizes, dim=axes), rate

    now = {"c": run.state.buffers["c"], "rate": run.state.buffers["rate"]}

    def steps() -> None:
        with torch.no_grad():
            for _ in range(SUBSTEPS):
                now["c"], now["rate"] = step(now["c"], now["rate"])

    steps()
    return steps


def transforms(sizes: tuple[int, ...]) -> Callable[[], None]:
    """The transforms of these steps and nothing else."""
    import torch

    field = torch.rand(sizes, dtype=torch.float64)
    spectrum, axes = torch.fft.rfftn(field), list(range(len(sizes)))

    def steps() -> None:
        for _ in range(SUBSTEPS):
            torch.fft.rfftn(field, dim=axes)
            torch.fft.rfftn(field, dim=axes)
            torch.fft.irfftn(spectrum, s=sizes, dim=axes)

    return steps


def timed(ways: dict[str, Callable[[], object]], rounds: int, share: int = 1) -> dict[str, float]:
    """Milliseconds of each way, the median of rounds in which all take turns."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            found[name].append((time.perf_counter() - start) / share * 1e3)
    return {name: median(times) for name, times in found.items()}


def memory(name: str, sizes: tuple[int, ...], threads: int) -> dict[str, float]:
    """Megabytes that a run adds to its process at the most, compiled and direct."""
    found = {}
    # freed memory goes back at once, so that what is measured is what is in use
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "100000"}
    for way in ("jit", "direct"):
        command = [sys.executable, "-m", "benchmarks.fields", "--child", way]
        command += ["--sizes", *map(str, sizes), "--threads", str(threads)]
        done = subprocess.run(
            command, cwd=HERE.parent, env=environment, capture_output=True, text=True, check=True
        )
        found[way] = float(done.stdout.split()[-1])
    print(f"{name}: memory {found['jit']:.0f} MB compiled, {found['direct']:.0f} MB direct,"
          f" {100 * (1 - found['jit'] / found['direct']):.0f} % less")  # fmt: skip
    return found


def child(way: str, sizes: tuple[int, ...]) -> None:
    """Print how many megabytes a run adds at the most."""
    begun(tuple(12 for _ in sizes), jit=way == "jit")  # so that code and caches are there before
    Path("/proc/self/clear_refs").write_text("5")  # forget the most so far
    before = megabytes("VmRSS")
    run = begun(sizes, jit=way == "jit")
    run.step()
    print(megabytes("VmHWM") - before)


def megabytes(name: str) -> float:
    """What the system knows of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name}:")) / 1024


def materials(rounds: int, cells: int) -> dict[str, float]:
    """A viscoplastic material by its kernel alone, and inside a compiled sequence."""
    import torch

    from ingot.fields.jit import Jit
    from ingot.fields.jit.material import MODELS
    from tests.fields.jit.test_material import INPUTS, sequence, state_of_material

    steps, state, executor = sequence(), state_of_material((cells,) * 3), Jit()
    for _ in range(3):
        executor.run(steps, state)
    kernel = MODELS["viscoplastic"].executor(torch.float64, torch.device("cpu"))
    names = ("E", "E_old", "t", "t_old", "s_old", "p_old")
    given = dict(zip(INPUTS, (state.buffers[name] for name in names), strict=True))
    ways: dict[str, Callable[[], object]] = {
        "kernel": lambda: kernel(given), "sequence": lambda: executor.run(steps, state),
    }  # fmt: skip
    found = timed(ways, rounds)
    times = found["sequence"] / found["kernel"]
    told = (
        f"kernel {found['kernel']:.1f} ms, sequence {found['sequence']:.1f} ms, {times:.2f} times"
    )
    print(f"material on {cells}^3: {told}")
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller boxes, fewer rounds")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--child", choices=("jit", "direct"))
    parser.add_argument("--sizes", type=int, nargs="+")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(options.threads)
    if options.child:
        child(options.child, tuple(options.sizes))
        return
    rounds = 7 if options.quick else 21
    results: dict[str, Any] = {"threads": options.threads}
    for name, sizes in (QUICK if options.quick else SIZES).items():
        compiled, direct = begun(sizes, jit=True), begun(sizes, jit=False)
        ways = {
            "jit": compiled.step, "direct": direct.step, "by hand": by_hand(sizes),
            "transforms": transforms(sizes),
        }  # fmt: skip
        found = timed(ways, rounds, SUBSTEPS)
        share = found["transforms"] / found["direct"]
        print(name + ": " + ", ".join(f"{way} {ms:.2f} ms" for way, ms in found.items()))
        print(f"{name}: {found['direct'] / found['jit']:.2f} times direct,"
              f" {found['by hand'] / found['jit']:.2f} times torch.compile by hand,"
              f" transforms are {100 * share:.0f} % of direct")  # fmt: skip
        print(f"{name}: {compiled.executor.statistics}")
        results[name] = {**found, "memory": memory(name, sizes, options.threads)}
    results["material"] = materials(rounds, 24 if options.quick else 64)
    (HERE / "results").mkdir(exist_ok=True)
    (HERE / "results" / "fields.json").write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
