"""The benchmark: shared cases through the peer and through Ingot, checked equal, timed in turns.

In: the peer's interpreter and the input files. Out: a markdown table and `results/bench.json`.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks import ours
from benchmarks.load_paths import CASES, STEPS, Array, Case, Folders

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What to measure, with what, and how long; each field is a flag."""

    peer_python: Path = ROOT / ".peer" / "bin" / "python"
    cases: Path = ROOT.parent / "shared" / "cases"
    packages: Path = ROOT / ".peer" / "packages"
    output: Path = HERE / "results" / "bench.json"
    only: tuple[str, ...] = tuple(CASES)
    batches: tuple[int, ...] = (1, 100, 1000, 10000)
    seconds: float = 20.0
    least: int = 3
    tolerance: float = 1e-8
    core: int | None = None
    eager: bool = False
    peer_only: bool = False


@dataclass(frozen=True, slots=True)
class Cost:
    """One side at one case and batch; microseconds are medians per point and step."""

    cpu_microseconds: float
    wall_microseconds: float
    compile_cpu_seconds: float | None
    compile_wall_seconds: float | None
    runs: list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Row:
    """One case at one batch: both costs, and how far apart the results are."""

    case: str
    batch: int
    peer: Cost
    ingot: Cost | None = None
    eager: Cost | None = None
    differences: dict[str, float] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """How many times less CPU time Ingot takes."""
        return self.peer.cpu_microseconds / self.ingot.cpu_microseconds if self.ingot else None


class PeerFailed(RuntimeError):
    """The peer answered with an error, or not at all."""


class PeerProcess:
    """The peer in its own process, one JSON line each way."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def ask(self, case: Case, batch: int, action: str, **more: Any) -> dict[str, Any]:
        """Send one command and wait for its answer."""
        assert self.process.stdin and self.process.stdout
        command = {"case": case.name, "batch": batch, "action": action, **more}
        print(json.dumps(command), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        answer = json.loads(line) if line else {"error": "the process ended"}
        if "error" in answer:
            raise PeerFailed(f"peer, {case.name} at batch {batch}, {action}: {answer['error']}")
        return answer

    def run(self, case: Case, batch: int, route: str = "compiled") -> tuple[float, float]:
        """Wall and CPU seconds of one transient."""
        answer = self.ask(case, batch, "run", route=route)
        return answer["wall_seconds"], answer["cpu_seconds"]


@contextmanager
def started(options: Options, scratch: Path) -> Iterator[PeerProcess]:
    """The peer's process, ended with the block; it inherits this process's core."""
    if not options.peer_python.exists():
        raise SystemExit(f"no interpreter at {options.peer_python}; `make bench` creates it")
    folders = {"--cases": options.cases, "--scratch": scratch, "--packages": options.packages}
    arguments = [text for flag, path in folders.items() for text in (flag, path.absolute())]
    process = subprocess.Popen(
        [options.peer_python.absolute(), "-m", "benchmarks.peer", *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        | ONE_THREAD,
    )
    try:
        yield PeerProcess(process)
    finally:
        assert process.stdin
        process.stdin.close()
        process.wait()


def measure(peer: PeerProcess, case: Case, batch: int, options: Options, folders: Folders) -> Row:
    """Prepare both sides, check that they agree, then time them in turns."""
    eager = eager_cost(peer, case, batch) if options.eager else None
    made = peer.ask(case, batch, "prepare")
    theirs = peer_results(peer, case, batch, folders.scratch)
    mine = None if options.peer_only else ours.prepare(case, batch, folders)
    differences = check(case, batch, theirs, mine, options.tolerance)
    repetitions = min(31, max(options.least, int(options.seconds / made["first_run_seconds"])))
    peer_runs: list[tuple[float, float]] = []
    our_runs: list[tuple[float, float]] = []
    for _ in range(repetitions):
        peer_runs.append(peer.run(case, batch))
        if mine is not None:
            our_runs.append(ours.run(mine))
    compiled = made["compile"]
    return Row(
        case.name,
        batch,
        cost(peer_runs, batch, compiled["wall_seconds"], compiled["cpu_seconds"]),
        cost(our_runs, batch, *ours.compile_seconds(mine)) if mine is not None else None,
        eager,
        differences,
    )


def eager_cost(peer: PeerProcess, case: Case, batch: int) -> Cost:
    """One run of the peer without compilation, not warmed up: it is slow and only indicative."""
    peer.ask(case, batch, "prepare", route="eager", warm=False)
    return cost([peer.run(case, batch, "eager")], batch)


def cost(
    runs: list[tuple[float, float]],
    batch: int,
    compile_wall: float | None = None,
    compile_cpu: float | None = None,
) -> Cost:
    """Medians over runs, per point and per step that is evaluated."""
    evaluated = batch * (STEPS - 1) / 1e6
    wall, cpu = (median(side) / evaluated for side in zip(*runs, strict=True))
    return Cost(cpu, wall, compile_cpu, compile_wall, runs)


def peer_results(peer: PeerProcess, case: Case, batch: int, scratch: Path) -> dict[str, Array]:
    """The peer's outputs at the last step."""
    path = scratch / "peer.npz"
    peer.ask(case, batch, "results", path=str(path))
    with np.load(path) as stored:
        return {name: stored[name] for name in stored.files}


def check(
    case: Case,
    batch: int,
    theirs: dict[str, Array],
    mine: ours.Prepared | None,
    tolerance: float,
) -> dict[str, float]:
    """The difference of each output, relative to its largest entry, none above the tolerance."""
    for name, value in theirs.items():
        assert np.isfinite(value).all(), (
            f"{case.name} at batch {batch}: peer's {name} is not finite"
        )
    if mine is None:
        return {}
    results = ours.results(mine)
    assert set(theirs) <= set(results), f"{case.name}: no {sorted(set(theirs) - set(results))}"
    differences = {name: difference(value, results[name]) for name, value in theirs.items()}
    worst = max(differences, key=lambda name: differences[name])
    print(
        f"{case.name} at batch {batch}: {worst} differs by {differences[worst]:.1e}",
        file=sys.stderr,
    )
    assert differences[worst] <= tolerance, (
        f"{case.name} at batch {batch}: results differ, relative to the largest entry: "
        + ", ".join(f"{name} {value:.2e}" for name, value in differences.items())
    )
    return differences


def difference(theirs: Array, mine: Array) -> float:
    """Largest difference relative to the largest entry; NaN counts as infinite."""
    # An output that the peer accepts at its predictor lacks the batch axis.
    theirs, mine = np.broadcast_arrays(theirs, mine)
    largest = np.abs(theirs).max()
    gap = np.abs(theirs - mine).max() / (largest if largest > 0 else 1.0)
    return float(gap) if np.isfinite(gap) else float("inf")


def table(rows: list[Row]) -> str:
    """Markdown: µs of CPU time per point and step, and compile seconds, of both sides."""
    lines = [
        "| case | batch | peer µs | Ingot µs | ratio | peer compile s | ours s | eager µs |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        ingot, eager = row.ingot, row.eager
        entries = (
            row.peer.cpu_microseconds,
            ingot and ingot.cpu_microseconds,
            row.ratio,
            row.peer.compile_cpu_seconds,
            ingot and ingot.compile_cpu_seconds,
            eager and eager.cpu_microseconds,
        )
        shown = ("-" if entry is None else f"{entry:.3g}" for entry in entries)
        lines.append(f"| {row.case} | {row.batch} | {' | '.join(shown)} |")
    return "\n".join(lines)


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
        "rows": [asdict(row) | {"ratio": row.ratio} for row in rows],
    }
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(content, indent=1) + "\n")


def processor() -> str:
    """The processor's name as the kernel gives it."""
    path = Path("/proc/cpuinfo")
    names = path.read_text().splitlines() if path.exists() else []
    return next((line.split(": ")[1] for line in names if "model name" in line), platform.machine())


def options_from_command_line() -> Options:
    """Read the flags; defaults are those of `Options`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer-python", type=Path, help="the peer's interpreter")
    parser.add_argument("--cases", type=Path, help="folder of the shared input files")
    parser.add_argument("--packages", type=Path, help="folder that keeps the peer's packages")
    parser.add_argument("--output", type=Path, help="JSON file to write")
    parser.add_argument("--only", nargs="+", choices=tuple(CASES), help="cases to measure")
    parser.add_argument("--batches", nargs="+", type=int, help="batch sizes")
    parser.add_argument("--seconds", type=float, help="peer time per case and batch, about")
    parser.add_argument("--least", type=int, help="timed runs of each side, at least")
    parser.add_argument("--tolerance", type=float, help="largest relative difference of results")
    parser.add_argument(
        "--core", type=int, help="processor core of both sides; the last if not given"
    )
    parser.add_argument("--eager", action="store_true", help="also run the peer uncompiled, once")
    parser.add_argument("--peer-only", action="store_true", help="leave Ingot out")
    flags = vars(parser.parse_args()).items()
    given = {name: value for name, value in flags if value is not None}
    return Options(**given)


def main() -> None:
    """Measure what is asked and print the table."""
    options = options_from_command_line()
    os.environ.update(ONE_THREAD)
    os.sched_setaffinity(
        0, {max(os.sched_getaffinity(0)) if options.core is None else options.core}
    )
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as scratch, started(options, Path(scratch)) as peer:
        folders = Folders(options.cases, Path(scratch))
        for case in (CASES[name] for name in options.only):
            for batch in options.batches:
                rows.append(measure(peer, case, batch, options, folders))
                record(rows, options)
                print(table(rows).splitlines()[-1], file=sys.stderr, flush=True)
    print(table(rows))


if __name__ == "__main__":
    main()
