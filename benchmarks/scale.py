"""A sweep by one worker and by two: speed-up, and what a point costs.

    python -m benchmarks.scale [--points 200000] [--ray]

Out: lines of text. A sweep of a parameter over a transient, written as Parquet by processes of this
machine (or of a Ray cluster on it), one and two of them in turns, medians; beside it the seconds of
starting, and what computing and writing take of a part.
"""

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

import torch

from ingot.drivers import TransientDriver, build_driver, sweep
from ingot.hit import read
from ingot.runtime.sweep_part import Planned, compute_part
from ingot.runtime.sweep_store import put_part

FILE = Path(__file__).parent.parent / "examples" / "crystal.i"


def make_driver(batch: int) -> TransientDriver:
    """A hundred crystals, stretched over a hundred steps."""
    driver = build_driver(read(FILE, [f"crystals:={batch}"]), "stretch")
    assert isinstance(driver, TransientDriver)
    return driver


def time_sweep(points: int, workers: int, *, ray: bool) -> float:
    """Wall seconds of a sweep, its compile included, which is found in the cache but once."""
    with tempfile.TemporaryDirectory() as folder:
        values = torch.linspace(1e5, 3e5, points // 100, dtype=torch.float64)
        start = time.perf_counter()
        driver, place = make_driver(100), Path(folder, "s.parquet")
        sweep(driver, {"E": values}, place, steps="last", workers=workers, ray=ray)
        return time.perf_counter() - start


def find_shares(points: int) -> tuple[float, float]:
    """Seconds of computing a part, and of writing it."""
    with tempfile.TemporaryDirectory() as folder:
        values = torch.linspace(1e5, 3e5, points // 100, dtype=torch.float64)
        place = Path(folder, "s.parquet")
        sweep(make_driver(100), {"E": values[:1]}, place, steps="last")
        planned = Planned(place.with_name("s.parquet.plan"))
        start = time.perf_counter()
        rows = compute_part(planned, 0)
        computed = time.perf_counter()
        put_part(planned, 0, rows)
        return computed - start, time.perf_counter() - computed


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="A sweep by one worker and by two.")
    parser.add_argument("--points", type=int, default=200_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--ray", action="store_true")
    asked = parser.parse_args()
    time_sweep(100, 1, ray=False)  # compiles
    seconds: dict[tuple[int, int], list[float]] = {}
    for _ in range(asked.turns):
        for workers in (1, 2):
            for points in (100, asked.points):
                taken = time_sweep(points, workers, ray=asked.ray and workers > 1)
                seconds.setdefault((workers, points), []).append(taken)
    for workers in (1, 2):
        whole, start = (median(seconds[workers, n]) for n in (asked.points, 100))
        cost = 1e6 * (whole - start) / asked.points
        took = f"{whole:.2f} s, of them {start:.2f} s to start"
        print(f"{workers} worker{'s' * (workers > 1)}: {took}; {cost:.1f} µs a point")
    one, two = (median(seconds[w, asked.points]) - median(seconds[w, 100]) for w in (1, 2))
    print(f"two workers are {one / two:.2f} times as fast as one, starting left out")
    computed, written = find_shares(100)
    print(f"a part of 100 points: {1e3 * computed:.1f} ms computed, {1e3 * written:.1f} ms written")


if __name__ == "__main__":
    main()
