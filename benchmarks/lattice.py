"""A lattice Boltzmann channel: Ingot compiled and direct, torch.compile by hand, the memory alone.

In: nothing. Out: a table of million cells a second and of the share of what memory allows, and
`results/lattice.json`, or `results/lattice-gpu.json`. Ways alternate, calls are timed by
themselves, and medians count.
`python -m benchmarks.lattice`; `--device cuda --stencil D3Q19 --size 256` on a GPU.
"""

import argparse
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.figures import RESULTS, format_table, read_result, write_result
from ingot.errors import IngotWarning
from ingot.fields import build, prepared
from ingot.fields.lbm.stencils import STENCILS, Stencil
from ingot.hit import read

TAU, FORCE = 0.8, 1e-4


def channel(stencil: Stencil, size: int) -> str:
    """The input file of a channel along x, driven by a force, with walls across y."""
    kinds = {"f": "df", "feq": "df", "fpc": "df", "velocity": "mv", "density": "ms"}
    buffers = "".join(
        f"[{name}]\ntype = LBMTensorBuffer\nbuffer_type = {kind}\n[]\n"
        for name, kind in kinds.items()
    )
    equilibrium = "type = LBMEquilibrium\nbulk = density\nvelocity = velocity\n"
    walls = "".join(
        f"[{face}]\ntype = LBMBounceBack\nbuffer = f\nf_old = fpc\nboundary = {face}\n[]\n"
        for face in ("top", "bottom")
    )
    return f"""
[Domain]
dim = {stencil.dim}
nx = {size}
ny = {size}
nz = {size if stencil.dim == 3 else 1}
[]
[Stencil]
[lattice]
type = LBM{stencil.name}
[]
[]
[TensorBuffers]
{buffers}
[]
[TensorComputes]
[Initialize]
[density]
type = LBMConstantTensor
buffer = density
constants = 1
[]
[f]
buffer = f
{equilibrium}
[]
[fpc]
buffer = fpc
{equilibrium}
[]
[]
[Solve]
[density]
type = LBMComputeDensity
buffer = density
f = f
[]
[velocity]
type = LBMComputeVelocity
buffer = velocity
f = f
rho = density
add_body_force = true
body_force_x = {FORCE}
[]
[feq]
buffer = feq
{equilibrium}
[]
[collision]
type = LBMBGKCollision
buffer = fpc
f = f
feq = feq
tau0 = {TAU}
[]
[]
[Boundary]
{walls}
[]
[]
[TensorSolver]
type = LBMStream
buffer = f
f_old = fpc
[]
[Problem]
type = LatticeBoltzmannProblem
marlin_compatible = false
[]
[Executioner]
type = Transient
num_steps = 1
[]
[Postprocessors]
[mean]
type = TensorAveragePostprocessor
buffer = velocity
execute_on = FINAL
[]
[]
"""


def ours(stencil: Stencil, size: int, device: str, *, jit: bool) -> Callable[[], Tensor]:
    """A step of the lattice by Ingot; gives the velocity."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "channel.i"
        file.write_text(channel(stencil, size))
        simulation = build(read(file, moose=True))
        run = prepared(simulation, folder, jit=jit, device=device)
        run.start()

    def step() -> Tensor:
        run.state.advance()
        run.executor.run(simulation.root.steps, run.state)
        return run.state.buffers["velocity"]

    return step


def by_hand(stencil: Stencil, size: int, device: str, compiler: Any) -> Callable[[], Tensor]:
    """The same step as someone would write it for torch.compile, every direction by itself."""
    axes = tuple(range(stencil.dim))
    shift = [each[: stencil.dim] for each in stencil.directions]
    body = (0.5 * FORCE, 0.0, 0.0)

    def move(old: Tensor) -> tuple[Tensor, Tensor]:
        f = [torch.roll(old[i], by, axes) for i, by in enumerate(shift)]
        rows = torch.arange(size, device=device).reshape((1, -1, 1)[: stencil.dim])
        for upper in (True, False):
            at = size - 1 if upper else 0
            for d in stencil.entering(1, upper=upper):
                f[d] = torch.where(rows == at, old[stencil.opposite[d]], f[d])
        rho = sum(f[1:], f[0])
        u = [
            (sum(by[a] * f[i] for i, by in enumerate(shift) if by[a]) + body[a]) / rho for a in axes
        ]
        square, gives = 1.5 * sum(v * v for v in u), []
        for i, by in enumerate(shift):
            along = 3 * sum(by[a] * u[a] for a in axes if by[a])
            feq = stencil.weights[i] * rho * (1 - square + along + 0.5 * along * along)
            gives.append(feq + (1 - 1 / TAU) * (f[i] - feq))
        return torch.stack(gives), torch.stack(u)

    moved = compiler(move)
    w = torch.tensor(stencil.weights, dtype=torch.float64, device=device)
    rest = w.reshape(-1, *(1,) * stencil.dim).expand(-1, *(size,) * stencil.dim)
    state = [rest.contiguous()]

    def step() -> Tensor:
        state[0], u = moved(state[0])
        return u.movedim(0, -1)

    return step


def triad(device: str, count: int) -> Callable[[], Tensor]:
    """The sum of two arrays, one of them times a number."""
    a, b = (torch.rand(count, dtype=torch.float64, device=device) for _ in range(2))
    c = torch.empty_like(a)
    return lambda: torch.add(a, b, alpha=3.0, out=c)


def seconds(call: Callable[[], Tensor], device: str) -> float:
    """How long one call takes; on a GPU in a row of them, which a run does not wait between."""
    count = 10 if device == "cuda" else 1
    start = time.perf_counter()
    for _ in range(count):
        call()
    if device == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / count


def measure(stencil: Stencil, size: int, device: str, repeats: int) -> dict[str, Any]:
    """The median time of each way, and what memory alone would take."""
    count = 2**28 if device == "cuda" else 2**22
    ways: dict[str, Callable[[], Tensor]] = {"triad": triad(device, count)}
    ways["compiled"] = ours(stencil, size, device, jit=True)
    ways["direct"] = ours(stencil, size, device, jit=False)
    ways["torch.compile"] = by_hand(stencil, size, device, torch.compile)
    fields = {name: way() for name, way in ways.items()}
    for _ in range(4):
        fields = {name: way() for name, way in ways.items()}
    apart = max(
        float((fields["compiled"] - fields[name]).abs().max())
        for name in ("direct", "torch.compile")
    )
    assert apart < 1e-12, f"the ways differ by {apart}"
    del fields
    rounds = [[seconds(way, device) for way in ways.values()] for _ in range(repeats)]
    median = dict(zip(ways, map(statistics.median, zip(*rounds, strict=True)), strict=True))
    cells, bandwidth = size**stencil.dim, 24 * count / median["triad"]
    # a distribution is read and written, and the velocity is put out
    bound = cells * 8 * (2 * stencil.q + stencil.dim) / bandwidth
    rows = {
        name: {"mlups": cells / t / 1e6, "share": bound / t, "ms": 1e3 * t}
        for name, t in median.items() if name != "triad"
    }  # fmt: skip
    return {
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "stencil": stencil.name, "size": size, "threads": torch.get_num_threads(),
        "triad_gb_s": bandwidth / 1e9, "bound_mlups": cells / bound / 1e6, "ways": rows,
    }  # fmt: skip


def main() -> None:
    """Measure, print and keep."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--device", default="cpu")
    asked.add_argument("--stencil", default="D2Q9", choices=list(STENCILS))
    asked.add_argument("--size", type=int, default=512)
    asked.add_argument("--threads", type=int, default=2)
    asked.add_argument("--repeats", type=int, default=60)
    given = asked.parse_args()
    torch.set_num_threads(given.threads)
    warnings.simplefilter("ignore", IngotWarning)
    found = measure(STENCILS[given.stencil], given.size, given.device, given.repeats)
    print(f"triad {found['triad_gb_s']:.0f} GB/s, bound {found['bound_mlups']:.0f} MLUPS")
    columns = ("way", "million cells a second", "% of what memory allows", "ms a step")
    rows = [(name, row["mlups"], 100 * row["share"], row["ms"])
            for name, row in found["ways"].items()]  # fmt: skip
    kind, more = (
        ("lattice-gpu", " ".join(sys.argv[1:])) if given.device == "cuda" else ("lattice", "")
    )
    machine = f"{found['device']}, {found['threads']} threads, {found['triad_gb_s']:.0f} GB/s"
    command = f"python -m benchmarks.lattice {more}".strip()
    write_result(RESULTS, kind, command, columns, rows, machine=machine)
    print(format_table(read_result(kind)))


if __name__ == "__main__":
    main()
