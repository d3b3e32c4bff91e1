"""The cube of de Geus side by side: Ingot compiled and direct, torch.compile by hand, FFTs alone.

In: nothing. Out: milliseconds of one solve (Newton's method and conjugate gradients), by which
preconditioner, and `results/fields-mechanics.json`. Ways alternate; medians count.
`--cells 32 64` measures several sizes, `--cpu` the processor's time, for a machine that is busy.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from benchmarks.fields import timed
from benchmarks.figures import RESULTS, write_result

WAYS = ("jit", "direct", "by hand", "green", "transforms")
SHEAR = 0.1
MECH = "TensorComputes/Solve/root/mech"
START = "TensorComputes/Initialize"
STIFF_CORNER = (
    *(f"Domain/{axis}max=1" for axis in "xyz"), "Problem/marlin_compatible=false",
    f"{START}/corner/type=PhaseMechanicsTest", f"{START}/corner/buffer=corner",
    f"{START}/K/inputs=corner", f"{START}/K/expression='0.833*(1 - corner) + 8.33*corner'",
    f"{START}/mu/inputs=corner", f"{START}/mu/expression='0.386*(1 - corner) + 3.86*corner'",
    f"{MECH}/l_tol=1e-4", f"{MECH}/nl_rel_tol=1e-4", f"{MECH}/nl_abs_tol=1e-8",
    f"{MECH}/l_max_its=1000000", "TensorComputes/Postprocess/active=''",
    "TensorSolver/forward_buffer=''", "TensorSolver/forward_buffer_new=''",
    "TensorSolver/substeps=1", "Executioner/num_steps=1", f"Executioner/dt={SHEAR}",
)  # fmt: skip
"""What makes the sheared cube of the tests that of de Geus, a corner of it stiff."""


def solves(cells: int, *, jit: bool, preconditioner: str = "NONE") -> Any:
    """A run, and a function that solves the first load from the beginning."""
    from ingot.fields import build, prepared
    from ingot.fields.solvers.solve import Substep
    from ingot.hit import read_text
    from tests.fields.mechanics.cases import DE_GEUS

    sizes = (f"Domain/n{axis}={cells}" for axis in "xyz")
    overrides = (*STIFF_CORNER, *sizes, f"{MECH}/preconditioner={preconditioner}")
    made = build(read_text(DE_GEUS, overrides=overrides, moose=True))
    run = prepared(made, tempfile.gettempdir(), jit=jit)
    run.start()
    state = run.state
    state.dt = state.ahead = SHEAR
    begun = dict(state.buffers)

    def solve() -> None:
        state.buffers = dict(begun)
        Substep(made.root, state, run.executor).evaluate()

    for _ in range(3 if jit else 1):  # the first two calls of a sequence are compared
        solve()
    return run, solve


def count_iterations(run: Any) -> tuple[int, int]:
    """How many iterations of Newton's method, and of conjugate gradients, a solve takes."""
    import logging

    found: list[tuple[Any, ...]] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "Newton" in record.msg and isinstance(record.args, tuple):
                found.append(record.args)

    log, listener = logging.getLogger("ingot"), Listener()
    step = next(each for each in run.simulation.root.steps if each.iteration is not None)
    step.options["verbose"] = True
    log.addHandler(listener)
    log.setLevel(logging.INFO)
    run.state.buffers = {k: v for k, v in run.state.buffers.items() if k not in ("Fnew", "stress")}
    step.iteration.solve(run.state, run.executor)
    log.removeHandler(listener)
    step.options["verbose"] = False
    return len(found), sum(args[2] for args in found)


def by_hand(run: Any) -> Callable[[], Any]:
    """The same solve written with torch alone, its two functions compiled."""
    import torch
    from torch import Tensor

    state = run.state
    bulk, shear, sizes = state.buffers["K"], state.buffers["mu"], state.space.shape
    unit = torch.eye(3, dtype=torch.float64)
    full = unit[:, :, None, None, None]
    axes = (2, 3, 4)
    one_axis = [torch.fft.fftfreq(n, 1 / n, dtype=torch.float64) for n in sizes[:2]]
    one_axis.append(torch.fft.rfftfreq(sizes[2], 1 / sizes[2], dtype=torch.float64))
    smooth = [torch.where(k.abs() == n / 2, 0.0, k) for k, n in zip(one_axis, sizes, strict=True)]
    q = torch.stack(torch.meshgrid(*smooth, indexing="ij"))
    square = (q * q).sum(0)
    inverse = torch.where(square == 0, 0.0, 1 / torch.where(square == 0, 1.0, square))
    lame = bulk - 2 * shear / 3

    def project(a: Tensor) -> Tensor:
        along = (torch.fft.rfftn(a, dim=axes) * q[None]).sum(1) * inverse
        return torch.fft.irfftn(along[:, None] * q[None], s=sizes, dim=axes)

    def apply(tangent: Tensor, p: Tensor) -> Tensor:
        return (tangent * p[None, None]).sum((2, 3))

    @torch.compile(dynamic=False)
    def law(f: Tensor) -> tuple[Tensor, Tensor]:
        strain = ((f[:, :, None] * f[:, None]).sum(0) - full) / 2
        trace = strain[0, 0] + strain[1, 1] + strain[2, 2]
        second = lame * trace * full + 2 * shear * strain
        first = (f[:, :, None] * second[None]).sum(1)
        left = shear * (f[:, None] * f[None]).sum(2)
        tangent = lame * f[:, :, None, None] * f[None, None]
        tangent = tangent + shear * f[:, None, None] * f.transpose(0, 1)[None, :, :, None]
        eye = unit[:, :, None, None, None]
        tangent = tangent + eye[:, None, :, None] * second.transpose(0, 1)[None, :, None]
        return first, tangent + left[:, None, :, None] * eye[None, :, None]

    @torch.compile(dynamic=False)
    def iterate(
        tangent: Tensor, p: Tensor, x: Tensor, r: Tensor, rr: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        pull = project(apply(tangent, p))
        share = rr / (p * pull).sum()
        x, r = x + share * p, r - share * pull
        now = (r * r).sum()
        return r + now / rr * p, x, r, now

    def conjugate(tangent: Tensor, b: Tensor) -> Tensor:
        p, x, r, rr = b, torch.zeros_like(b), b, (b * b).sum()
        limit = 1e-4 * float(rr) ** 0.5
        while float(rr) ** 0.5 > limit:
            p, x, r, rr = iterate(tangent, p, x, r, rr)
        return x

    def solve() -> Tensor:
        with torch.no_grad():
            f = full.expand(3, 3, *sizes).contiguous()
            _, tangent = law(f)
            load = torch.zeros_like(f)
            load[0, 1] = SHEAR
            b = -project(apply(tangent, load))
            f = f + load
            size, newton = float(f.norm()), 0
            while True:
                change = conjugate(tangent, b)
                f = f + change
                first, tangent = law(f)
                b = -project(first)
                if newton and float(change.norm()) < 1e-4 * size:
                    return f
                newton += 1

    solve()
    return solve


def transforms(cells: int, pairs: int) -> Callable[[], None]:
    """The transforms of so many projections and nothing else, one field after the other.

    Nine at a time they take longer at 64 cells a side: their memory is new every time. These are
    torch's own: inverse ones of compiled sequences take half of that (fields/jit/transforms.py).
    """
    import torch

    fields = torch.rand(9, cells, cells, cells, dtype=torch.float64).unbind()
    spectra = [torch.fft.rfftn(field) for field in fields]

    def all_pairs() -> None:
        for _ in range(pairs):
            for field, spectrum in zip(fields, spectra, strict=True):
                torch.fft.rfftn(field)
                torch.fft.irfftn(spectrum, s=field.shape)

    return all_pairs


def timed_by_processor(ways: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The median of the processor's milliseconds of each way, which take turns."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            start = time.process_time()
            way()
            taken[name].append(1e3 * (time.process_time() - start))
    return {name: median(times) for name, times in taken.items()}


def measure(cells: int, rounds: int, *, cpu: bool) -> dict[str, Any]:
    """The milliseconds of all ways at one size, printed."""
    run, compiled = solves(cells, jit=True)
    _, direct = solves(cells, jit=False)
    green_run, green = solves(cells, jit=True, preconditioner="GREEN")
    hand = by_hand(run)
    far = float((hand().permute(2, 3, 4, 0, 1) - run.state.buffers["Fnew"]).abs().max())
    newton, linear = count_iterations(run)
    pairs = linear + newton + 1
    ways: dict[str, Callable[[], object]] = {
        "jit": compiled, "direct": direct, "by hand": hand, "green": green,
        "transforms": transforms(cells, pairs),
    }  # fmt: skip
    found = (timed_by_processor if cpu else timed)(ways, rounds)
    counts = {"newton": newton, "linear": linear, "green linear": count_iterations(green_run)[1]}
    print(f"{cells}^3: " + ", ".join(f"{way} {ms:.0f} ms" for way, ms in found.items()))
    print(f"{cells}^3: {counts}, by hand differs by {far:.1e}")
    print(f"{cells}^3: {found['direct'] / found['jit']:.2f} times direct,"
          f" {found['by hand'] / found['jit']:.2f} times torch.compile by hand, transforms are"
          f" {100 * found['transforms'] / found['direct']:.0f} % of direct and"
          f" {100 * found['transforms'] / found['jit']:.0f} % of compiled", flush=True)  # fmt: skip
    return {"cells": cells, **found, "iterations": counts}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, nargs="+", default=[32, 64])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(options.threads)
    sizes = [measure(cells, options.rounds, cpu=options.cpu) for cells in options.cells]
    columns = ("cells a side", "compiled ms", "direct ms", "torch.compile by hand ms",
               "compiled, `GREEN` ms", "FFTs alone ms")  # fmt: skip
    rows = [[row["cells"], *(row[way] for way in WAYS)] for row in sizes]
    command = f"python -m benchmarks.fields_mechanics {' '.join(sys.argv[1:])}".strip()
    machine = f"{options.threads} threads{', processor time' if options.cpu else ''}"
    write_result(RESULTS, "fields-mechanics", command, columns, rows, machine=machine)


if __name__ == "__main__":
    main()
