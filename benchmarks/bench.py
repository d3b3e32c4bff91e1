"""The benchmark: shared cases through the peer, JAX and Ingot, checked equal, timed in turns.

In: the interpreters of the peer and of JAX, and the input files. Out: markdown tables,
`results/bench.json` and, with --out, the tables for the pages (benchmarks/figures.py).
"""

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from math import exp, log
from pathlib import Path
from statistics import mean, median

import numpy as np

from benchmarks import ours
from benchmarks.figures import write_result
from benchmarks.floor import find_floor, measure_processor
from benchmarks.load_paths import CASES, IN_JAX, STEPS, Array, Case, Folders
from benchmarks.processes import ONE_THREAD, ROOT, Side, start_side

SIDES = ("peer", "jax", "ingot")
MAX_RUNS = 31  # of each side: a median of more moves by less than the machine's noise

Run = Callable[[], tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What to measure, with what, and how long; each field is a flag."""

    peer_python: Path = ROOT / ".peer" / "bin" / "python"
    jax_python: Path = ROOT / ".jax" / "bin" / "python"
    cases: Path = ROOT.parent / "shared" / "cases"
    packages: Path = ROOT / ".peer" / "packages"
    output: Path = ROOT / "results" / "bench.json"
    out: Path | None = None
    only: tuple[str, ...] = tuple(CASES)
    batches: tuple[int, ...] = (1, 100, 1000, 10000)
    seconds: float = 20.0
    least: int = 3
    tolerance: float = 1e-8
    core: int | None = None
    eager: bool = False
    without: tuple[str, ...] = ()
    join: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Cost:
    """One side at one case and batch; microseconds are medians per point and step."""

    cpu_microseconds: float
    wall_microseconds: float
    runs: list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Row:
    """One case at one batch: the costs by side and route, and how far apart the results are.

    Sides: `peer`, `eager` (the peer uncompiled), `ingot` (a driver's run), `ingot steps` (a call a
    step), `jax steps`, `jax scan`. Seconds of compiling are CPU seconds. The floor is that of
    benchmarks/floor.py, on the machine as it was beside the runs.
    """

    case: str
    batch: int
    costs: dict[str, Cost]
    compile_seconds: dict[str, float]
    differences: dict[str, float] = field(default_factory=dict)
    floor_microseconds: float | None = None

    @property
    def percent_of_floor(self) -> float | None:
        """How much of the peak Ingot's run reaches: of the CPU time, what the floor is."""
        spent = self.microseconds("ingot")
        return 100 * self.floor_microseconds / spent if self.floor_microseconds and spent else None

    def microseconds(self, side: str) -> float | None:
        """The CPU time of a side, per point and step."""
        cost = self.costs.get(side)
        return cost.cpu_microseconds if cost else None

    def ratio(self, other: str, side: str = "ingot") -> float | None:
        """How many times the CPU time of one side another takes."""
        theirs, ours = self.microseconds(other), self.microseconds(side)
        return theirs / ours if theirs and ours else None


@dataclass(frozen=True, slots=True)
class Sides:
    """The processes that are measured beside this one."""

    peer: Side | None
    jax: Side | None


def measure(sides: Sides, case: Case, batch: int, options: Options, folders: Folders) -> Row:
    """Prepare all sides, check that they agree, then time them in turns."""
    runs: dict[str, Run] = {}
    compiling: dict[str, float] = {}
    first = [options.seconds / MAX_RUNS]
    timed: dict[str, list[tuple[float, float]]] = {}
    mine = None if "ingot" in options.without else ours.prepare(case, batch, folders)
    if mine is not None:
        compiling["ingot"] = mine.compile_cpu_seconds
        runs["ingot"] = lambda: ours.run(mine)
    differences: dict[str, float] = {}
    if (peer := sides.peer) is not None:
        if options.eager:
            timed["eager"] = [run_eager(peer, case, batch)]
        made = peer.ask(case, batch, "prepare")
        compiling["peer"] = made["compile"]["cpu_seconds"]
        first.append(made["first_run_seconds"])
        theirs = peer.results(case, batch, "compiled", folders.scratch)
        in_step = None if mine is None else ours.results(mine.in_step)
        differences |= check(f"{case.name} at batch {batch}", "peer", theirs, in_step, options)
        runs["peer"] = lambda: peer.run(case, batch, "compiled")
    if (jax := sides.jax) is not None and case.name in IN_JAX:
        for route in ("steps", "scan"):
            made = jax.ask(case, batch, "prepare", route=route)
            compiling[f"jax {route}"] = made["compile_seconds"]
            first.append(made["first_run_seconds"])
            theirs = jax.results(case, batch, route, folders.scratch)
            last = None if mine is None else ours.results(mine.driver)
            what = f"{case.name} at batch {batch}"
            differences |= check(what, f"jax {route}", theirs, last, options)
            runs[f"jax {route}"] = lambda route=route: jax.run(case, batch, route)
        if mine is not None:
            steps = ours.prepare_steps(mine)
            runs["ingot steps"] = lambda: ours.run_steps(steps)
    repetitions = min(MAX_RUNS, max(options.least, int(options.seconds / max(first))))
    for _ in range(repetitions):
        for name, run in runs.items():
            timed.setdefault(name, []).append(run())
    costs = {name: cost(each, batch) for name, each in timed.items()}
    floor = find_floor(case.name, measure_processor())
    least = None if floor is None else 1e6 * floor
    return Row(case.name, batch, costs, compiling, differences, least)


def run_eager(peer: Side, case: Case, batch: int) -> tuple[float, float]:
    """One run of the peer without compilation, not warmed up: it is slow and only indicative."""
    peer.ask(case, batch, "prepare", route="eager", warm=False)
    return peer.run(case, batch, "eager")


def cost(runs: list[tuple[float, float]], batch: int) -> Cost:
    """Medians over runs, per point and per step that is evaluated."""
    evaluated = batch * (STEPS - 1) / 1e6
    wall, cpu = (median(side) / evaluated for side in zip(*runs, strict=True))
    return Cost(cpu, wall, runs)


def check(
    what: str, side: str, theirs: dict[str, Array], mine: dict[str, Array] | None, options: Options
) -> dict[str, float]:
    """The difference of each output, relative to its largest entry, none above the tolerance."""
    for name, value in theirs.items():
        assert np.isfinite(value).all(), f"{what}: {name} of {side} is not finite"
    if mine is None:
        return {}
    assert set(theirs) <= set(mine), f"{what}: no {sorted(set(theirs) - set(mine))}"
    differences = {name: difference(value, mine[name]) for name, value in theirs.items()}
    worst = max(differences, key=lambda name: differences[name])
    print(f"{what}: {worst} of {side} differs by {differences[worst]:.1e}", file=sys.stderr)
    assert differences[worst] <= options.tolerance, (
        f"{what}: results of {side} differ, relative to the largest entry: "
        + ", ".join(f"{name} {value:.2e}" for name, value in differences.items())
    )
    return {f"{side} {name}": value for name, value in differences.items()}


def difference(theirs: Array, mine: Array) -> float:
    """Largest difference relative to the largest entry; NaN counts as infinite."""
    # An output that the peer accepts at its predictor lacks the batch axis.
    theirs, mine = np.broadcast_arrays(theirs, mine)
    largest = np.abs(theirs).max()
    gap = np.abs(theirs - mine).max() / (largest if largest > 0 else 1.0)
    return float(gap) if np.isfinite(gap) else float("inf")


def peer_table(rows: list[Row]) -> str:
    """Markdown: µs of CPU time per point and step, and compile seconds, of the peer and Ingot."""
    lines = [
        "| case | batch | peer µs | Ingot µs | ratio | floor µs | % of floor | peer compile s "
        "| ours s | eager µs |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        entries = (
            row.microseconds("peer"),
            row.microseconds("ingot"),
            row.ratio("peer"),
            row.floor_microseconds,
            row.percent_of_floor,
            row.compile_seconds.get("peer"),
            row.compile_seconds.get("ingot"),
            row.microseconds("eager"),
        )
        lines.append(line(row, entries))
    ratios = [ratio for row in rows if (ratio := row.ratio("peer")) is not None]
    if ratios:
        lines += ["", f"Geometric mean of the ratios: {exp(mean(map(log, ratios))):.3g}."]
    return "\n".join(lines)


def jax_table(rows: list[Row]) -> str:
    """Markdown: µs of CPU time per point and step of JAX and Ingot, by steps and all at once."""
    lines = [
        "| case | batch | JAX by steps µs | JAX scan µs | Ingot µs | Ingot by steps µs "
        "| JAX by steps / Ingot | JAX scan / Ingot | both by steps | JAX compile s |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        entries = (
            *(row.microseconds(s) for s in ("jax steps", "jax scan", "ingot", "ingot steps")),
            row.ratio("jax steps"),
            row.ratio("jax scan"),
            row.ratio("jax steps", "ingot steps"),
            row.compile_seconds.get("jax steps"),
        )
        lines.append(line(row, entries))
    return "\n".join(lines)


def line(row: Row, entries: tuple[float | None, ...]) -> str:
    """A line of a table."""
    shown = ("-" if entry is None else f"{entry:.3g}" for entry in entries)
    return f"| {row.case} | {row.batch} | {' | '.join(shown)} |"


def tables(rows: list[Row]) -> str:
    """The table of the peer, and that of JAX where it was measured."""
    in_jax = [row for row in rows if "jax steps" in row.costs]
    return "\n\n".join([peer_table(rows), *([jax_table(in_jax)] if in_jax else [])])


def store(rows: list[Row], folder: Path) -> None:
    """Write the tables of docs/speed.md."""
    command, machine = "python -m benchmarks.bench", processor()
    ratios = [ratio for row in rows if (ratio := row.ratio("peer")) is not None]
    if ratios:
        columns = ("case", "batch", "peer µs", "Ingot µs", "ratio", "peer compile s", "ours s")
        body = [
            (row.case, row.batch, row.microseconds("peer"), row.microseconds("ingot"),
             row.ratio("peer"), row.compile_seconds.get("peer"), row.compile_seconds.get("ingot"))
            for row in rows
        ]  # fmt: skip
        values = {"mean": exp(mean(map(log, ratios)))}
        write_result(folder, "neml2", command, columns, body, values, machine)
    if in_jax := [row for row in rows if "jax steps" in row.costs]:
        head, _, *body = jax_table(in_jax).splitlines()
        cells = [split_cells(each) for each in (head, *body)]
        write_result(folder, "jax", command, cells[0], cells[1:], machine=machine)
    if floors := [row for row in rows if row.floor_microseconds and row.batch >= 1000]:
        columns = ("case", "batch", "Ingot µs", "floor µs", "% of floor")
        body = [
            (row.case, row.batch, row.microseconds("ingot"), row.floor_microseconds,
             row.percent_of_floor)
            for row in floors
        ]  # fmt: skip
        peak = measure_processor()
        values = {"gflops": f"{peak.flops / 1e9:.2g}"}
        values |= {name: f"{1e9 * each:.2g}" for name, each in peak.seconds.items()}
        write_result(folder, "floor", command, columns, body, values, machine)


def split_cells(row: str) -> list[str]:
    """The cells of a line of a table."""
    return [cell.strip() for cell in row.strip("|").split("|")]


def record(rows: list[Row], options: Options) -> None:
    """Write runs, medians and the machine; after each row, so that a stop loses nothing."""
    content = {
        "machine": {
            "processor": processor(),
            "system": f"{platform.system()} {platform.machine()}",
            "load_average": os.getloadavg(),
        },
        "unit": "microseconds per point and step, medians over runs; runs are (wall, CPU) seconds",
        "tolerance": options.tolerance,
        "rows": [asdict(row) | {"ratio": row.ratio("peer")} for row in rows],
    }
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(content, indent=1) + "\n")


def join(files: tuple[Path, ...]) -> list[Row]:
    """The rows of several recorded rounds, the runs of each case and batch taken together."""
    rows = [row for file in files for row in json.loads(file.read_text())["rows"]]
    joined = []
    for name, batch in sorted({(r["case"], r["batch"]) for r in rows}, key=place_in_tables):
        alike = [r for r in rows if (r["case"], r["batch"]) == (name, batch)]
        runs: dict[str, list[tuple[float, float]]] = {}
        for side, taken in (pair for row in alike for pair in row["costs"].items()):
            runs.setdefault(side, []).extend(taken["runs"])
        costs = {side: cost(taken, batch) for side, taken in runs.items()}
        compiling = {s: t for row in alike for s, t in row["compile_seconds"].items()}
        differences = {n: d for row in alike for n, d in row["differences"].items()}
        floors = [floor for row in alike if (floor := row.get("floor_microseconds"))]
        least = median(floors) if floors else None
        joined.append(Row(name, batch, costs, compiling, differences, least))
    return joined


def place_in_tables(key: tuple[str, int]) -> tuple[int, int]:
    """Cases in their order, and of each the small batches first."""
    return [*CASES].index(key[0]), key[1]


def processor() -> str:
    """The processor's name as the kernel gives it."""
    path = Path("/proc/cpuinfo")
    names = path.read_text().splitlines() if path.exists() else []
    return next((line.split(": ")[1] for line in names if "model name" in line), platform.machine())


def options_from_command_line() -> Options:
    """Read the flags; defaults are those of `Options`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer-python", type=Path, help="the peer's interpreter")
    parser.add_argument("--jax-python", type=Path, help="an interpreter that has JAX")
    parser.add_argument("--cases", type=Path, help="folder of the shared input files")
    parser.add_argument("--packages", type=Path, help="folder that keeps the peer's packages")
    parser.add_argument("--output", type=Path, help="JSON file to write")
    parser.add_argument("--out", type=Path, help="folder for the tables of the pages")
    parser.add_argument("--only", nargs="+", choices=tuple(CASES), help="cases to measure")
    parser.add_argument("--batches", nargs="+", type=int, help="batch sizes")
    parser.add_argument("--seconds", type=float, help="time of the slowest side per row, about")
    parser.add_argument("--least", type=int, help="timed runs of each side, at least")
    parser.add_argument("--tolerance", type=float, help="largest relative difference of results")
    parser.add_argument(
        "--core", type=int, help="processor core of all sides; the last if not given"
    )
    parser.add_argument("--eager", action="store_true", help="also run the peer uncompiled, once")
    parser.add_argument("--join", nargs="+", type=Path, help="print recorded rounds, measure none")
    parser.add_argument("--without", nargs="+", choices=SIDES, help="sides to leave out")
    flags = vars(parser.parse_args()).items()
    given = {name: value for name, value in flags if value is not None}
    return Options(**given)


def main() -> None:
    """Measure what is asked and print the tables."""
    options = options_from_command_line()
    if options.join:
        rows = join(options.join)
        print(tables(rows))
        if options.out:
            store(rows, options.out)
        return
    os.environ.update(ONE_THREAD)
    os.sched_setaffinity(
        0, {max(os.sched_getaffinity(0)) if options.core is None else options.core}
    )
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        folders = Folders(options.cases, Path(scratch))
        peer = jax = None
        if "peer" not in options.without:
            told = {
                "--cases": options.cases,
                "--scratch": folders.scratch,
                "--packages": options.packages,
            }
            started = start_side("peer", "benchmarks.peer", options.peer_python, told)
            peer = stack.enter_context(started)
        if "jax" not in options.without and set(options.only) & set(IN_JAX):
            started = start_side("jax", "benchmarks.jax_side", options.jax_python, {})
            jax = stack.enter_context(started)
        for case in (CASES[name] for name in options.only):
            for batch in options.batches:
                rows.append(measure(Sides(peer, jax), case, batch, options, folders))
                record(rows, options)
                print(tables(rows[-1:]), file=sys.stderr, flush=True)
    print(tables(rows))
    if options.out:
        store(rows, options.out)


if __name__ == "__main__":
    main()
