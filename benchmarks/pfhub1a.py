"""PFHub benchmark 1a converged: its free energy by a solver of its own, at several cells and steps.

In: nothing. Out: a row of energies at times 1, 10, 100 and 1000 for each cells a side, step and
start, and `results/pfhub1a.json`. Spectra in space, ETDRK4 (Cox and Matthews, 2002) in time; of
Ingot nothing is used. `python -m benchmarks.pfhub1a --end 100` is done in a minute.
"""

import argparse
import math
import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.figures import RESULTS, format_table, read_result, write_result

LENGTH, MOBILITY, STIFFNESS, HEIGHT = 200.0, 5.0, 2.0, 5.0
LOW, HIGH = 0.3, 0.7
SHIFT = 0.8
"""How much of the chemical stiffness is linear: its largest value at the two phases' compositions
is 1.6, and half of it lets steps of 0.2 stay stable."""

TIMES = (1.0, 10.0, 100.0, 1000.0)


class Case(NamedTuple):
    """Cells a side, the size of steps, whether the start is sampled at corners of cells."""

    cells: int
    dt: float
    corners: bool = False


CASES = (
    Case(100, 0.1), Case(128, 0.1), Case(200, 0.2), Case(200, 0.1), Case(200, 0.05),
    Case(256, 0.1), Case(200, 0.1, corners=True), Case(256, 0.1, corners=True),
)  # fmt: skip


def published_start(case: Case) -> Tensor:
    """The composition at time 0, which is not periodic: its edges depend on where it is sampled."""
    places = torch.arange(case.cells, dtype=torch.float64) + (0.0 if case.corners else 0.5)
    x, y = torch.meshgrid(*[places * (LENGTH / case.cells)] * 2, indexing="ij")
    waves = (0.105 * x).cos() * (0.11 * y).cos() + ((0.13 * x).cos() * (0.087 * y).cos()) ** 2
    waves += (0.025 * x - 0.15 * y).cos() * (0.07 * x - 0.02 * y).cos()
    return 0.5 + 0.01 * waves


class Solver:
    r"""Steps of one size of $\dot c = M \nabla^2 (f'(c) - \kappa \nabla^2 c)$."""

    def __init__(self, case: Case) -> None:
        n, self.dt = case.cells, case.dt
        self.cells = n
        kx = 2 * math.pi * torch.fft.fftfreq(n, LENGTH / n, dtype=torch.float64)
        ky = 2 * math.pi * torch.fft.rfftfreq(n, LENGTH / n, dtype=torch.float64)
        self.k2 = kx[:, None] ** 2 + ky**2
        linear = self.dt * -MOBILITY * self.k2 * (SHIFT + STIFFNESS * self.k2)
        self.whole, self.half = linear.exp(), (linear / 2).exp()
        # means over a circle around each number, where the formulas would cancel near 0
        circle = torch.exp(1j * math.pi * (torch.arange(32, dtype=torch.float64) + 0.5) / 32)
        at = linear[..., None] + circle
        to, cube = at.exp(), at**3

        def mean(values: Tensor) -> Tensor:
            return self.dt * values.mean(-1).real

        self.middle = mean(((at / 2).exp() - 1) / at)
        self.first = mean((-4 - at + to * (4 - 3 * at + at**2)) / cube)
        self.second = mean((2 + at + to * (at - 2)) / cube)
        self.third = mean((-4 - 3 * at - at**2 + to * (4 - at)) / cube)

    def rest(self, spectrum: Tensor) -> Tensor:
        """What of the rate is not linear, as a spectrum."""
        c = torch.fft.irfft2(spectrum, s=(self.cells, self.cells))
        return -MOBILITY * self.k2 * torch.fft.rfft2(chemical_slope(c) - SHIFT * c)

    def step(self, spectrum: Tensor) -> Tensor:
        """The spectrum a step later."""
        now = self.rest(spectrum)
        a = self.half * spectrum + self.middle * now
        at_a = self.rest(a)
        at_b = self.rest(self.half * spectrum + self.middle * at_a)
        at_c = self.rest(self.half * a + self.middle * (2 * at_b - now))
        change = self.first * now + 2 * self.second * (at_a + at_b) + self.third * at_c
        return self.whole * spectrum + change

    def energy(self, spectrum: Tensor) -> float:
        """The free energy of the box, its gradients by wavenumbers."""
        c = torch.fft.irfft2(spectrum, s=(self.cells, self.cells))
        chemical = HEIGHT * (c - LOW) ** 2 * (HIGH - c) ** 2
        twice = torch.full((self.cells // 2 + 1,), 2.0, dtype=torch.float64)
        twice[0] = twice[-1] = 1.0  # every other wavenumber stands for its conjugate as well
        slopes = (self.k2 * spectrum.abs() ** 2 * twice).sum() / self.cells**2
        return float(chemical.sum() + STIFFNESS / 2 * slopes) * (LENGTH / self.cells) ** 2


def chemical_slope(c: Tensor) -> Tensor:
    """The derivative of the chemical energy density."""
    return 2 * HEIGHT * (c - LOW) * (HIGH - c) * (LOW + HIGH - 2 * c)


def energies(case: Case, end: float) -> Iterator[float]:
    """The energies at the times up to an end."""
    solver = Solver(case)
    spectrum = torch.fft.rfft2(published_start(case))
    for begin, until in pairwise((0.0, *(time for time in TIMES if time <= end))):
        for _ in range(round((until - begin) / case.dt)):
            spectrum = solver.step(spectrum)
        yield solver.energy(spectrum)


def main() -> None:
    """Compute and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--end", type=float, default=TIMES[-1])
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for case in CASES:
        found = list(energies(case, options.end))
        place = "corners" if case.corners else "centres"
        rows.append([case.cells, case.dt, place, *(f"{energy:.2f}" for energy in found)])
        print(*rows[-1], flush=True)
    times = [f"time {time:g}" for time in TIMES if time <= options.end]
    columns = ("cells a side", "step", "start at", *times)
    command = f"python -m benchmarks.pfhub1a {' '.join(sys.argv[1:])}".strip()
    write_result(RESULTS, "pfhub1a", command, columns, rows)
    print(format_table(read_result("pfhub1a")))


if __name__ == "__main__":
    main()
