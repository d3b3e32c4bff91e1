"""Kernels on CPUs beside what the machine can: memory, two threads, one point.

    python -m benchmarks.lanes ../shared/cases

Out: lines of text. Elasticity of 4 million points by the bandwidth of a triad, each byte that is
read or written counted once; transients of 10 000 points by one thread and by two, in turns, wall
time; a call of one point and step from Python; a transient of one point in lanes, and by code that
has one lane. Medians; turns in which others used the machine are left out, where that can be told.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from unittest.mock import patch

import torch

from benchmarks.floor import measure_triad
from benchmarks.load_paths import CASES, overrides
from ingot.drivers import TransientDriver, build_driver
from ingot.execute import kernel
from ingot.execute.kernel import Kernel
from ingot.hit import read, read_text
from ingot.model import build
from ingot.program import prepared

POINTS = 1 << 22
ELASTIC = """
[Models]
  [elastic]
    type = LinearIsotropicElasticity
    coefficients = '1e3 0.3'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
    strain = 'strain'
    stress = 'stress'
  []
[]
"""
MAX_OTHERS = 0.1  # of a core: what others may use during a turn that counts


def read_others(spent: Callable[[], object]) -> float:
    """Cores that other processes used while a function ran; 0 where the system does not tell."""
    if not Path("/proc/stat").exists():
        spent()
        return 0.0
    busy, own, start = _read_busy(), os.times(), time.perf_counter()
    spent()
    wall, now = time.perf_counter() - start, os.times()
    mine = now.user - own.user + now.system - own.system
    return (_read_busy() - busy - mine) / wall


def _read_busy() -> float:
    """Seconds that all cores have been busy."""
    row = [int(x) for x in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return (sum(row) - row[3] - row[4]) / os.sysconf("SC_CLK_TCK")


def take_turns(runs: Mapping[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """The median wall seconds of each, in turns."""
    taken: dict[str, list[float]] = {name: [] for name in runs}
    disturbed: dict[str, list[float]] = {name: [] for name in runs}
    end, turn = time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        turn += 1
        times = {}

        def once(times: dict[str, float] = times, turn: int = turn) -> None:
            for name in sorted(runs, reverse=turn % 2 == 0):
                start = time.perf_counter()
                runs[name]()
                times[name] = time.perf_counter() - start

        kept = taken if read_others(once) <= MAX_OTHERS else disturbed
        for name, took in times.items():
            kept[name].append(took)
    count = len(next(iter(taken.values())))
    if count < 3:
        print(f"  (others were busy: {count} of {turn} turns undisturbed, so all are taken)")
        taken = {name: taken[name] + disturbed[name] for name in runs}
    return {name: median(rows) for name, rows in taken.items()}


def compare_elasticity(seconds: float) -> None:
    """Print the bandwidth of elasticity beside that of a triad."""
    run = Kernel(prepared(build(read_text(ELASTIC), "elastic")))
    given = {
        "(B, 6)": torch.rand(POINTS, 6, dtype=torch.float64),
        "(6, B)": torch.rand(6, POINTS, dtype=torch.float64).t(),
    }
    calls = {name: (lambda x=x: run({"strain": x})) for name, x in given.items()}
    rates = [measure_triad()]
    took = take_turns(calls, seconds)
    triad = median([*rates, measure_triad(), measure_triad()])
    print(f"triad {triad / 1e9:.3g} GB/s")
    for name, wall in took.items():
        rate = 96 * POINTS / wall
        print(f"elasticity {name}: {rate / 1e9:.3g} GB/s, {100 * rate / triad:.0f} % of it")


def compare_threads(driver: TransientDriver, name: str, seconds: float) -> None:
    """Print how much faster two threads are."""
    run = Kernel(driver.program).arrange(driver.transient)

    def by(threads: int) -> Callable[[], None]:
        def call() -> None:
            torch.set_num_threads(threads)
            run()

        return call

    took = take_turns({"one": by(1), "two": by(2)}, seconds)
    torch.set_num_threads(1)
    print(
        f"{name}: one thread {1e3 * took['one']:.3g} ms, two {1e3 * took['two']:.3g} ms,"
        f" {took['one'] / took['two']:.2f} times"
    )


def time_one_point(driver: TransientDriver, name: str) -> None:
    """Print what a call of one point and step takes from Python."""
    run = Kernel(driver.program)
    shapes = {v.name: (1, *v.sizes, *v.base) for v in run.entry.inputs}
    inputs = {n: torch.full(s, 1e-4, dtype=torch.float64) for n, s in shapes.items()}
    times = []
    for _ in range(3000):
        start = time.perf_counter()
        run(inputs)
        times.append(time.perf_counter() - start)
    print(f"{name}: a call of one point {1e6 * median(times):.3g} µs")


def compare_one_lane(driver: TransientDriver, name: str, seconds: float) -> None:
    """Print what a transient of one point takes beside the same code of one lane."""
    steps = driver.transient.steps - 1
    lanes = Kernel(driver.program).arrange(driver.transient)
    with patch.object(kernel, "NATIVE_FLAGS", (*kernel.NATIVE_FLAGS, "-DW=1")):
        one = Kernel(driver.program).arrange(driver.transient)
    took = take_turns({"lanes": lanes, "one": one}, seconds)
    print(
        f"{name}: a step of one point {1e6 * took['lanes'] / steps:.3g} µs in lanes,"
        f" {1e6 * took['one'] / steps:.3g} by one lane"
    )


def main() -> None:
    """Measure all and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each comparison")
    options = parser.parse_args()
    torch.set_num_threads(1)
    compare_elasticity(options.seconds)
    with tempfile.TemporaryDirectory() as scratch:
        for name in ("isoharden", "chaboche"):
            driver, alone = (_build(name, n, options.cases, scratch) for n in (options.points, 1))
            time_one_point(driver, name)
            compare_one_lane(alone, name, options.seconds)
            compare_threads(driver, name, options.seconds)


def _build(name: str, points: int, cases: Path, scratch: str) -> TransientDriver:
    """The driver of a case on so many load paths."""
    case = CASES[name]
    more = overrides(case, points, Path(scratch))
    driver = build_driver(read(cases / case.file, more), case.driver)
    assert isinstance(driver, TransientDriver)
    return driver


if __name__ == "__main__":
    main()
