"""What compiling, loading and calling cost, cold: every command starts with empty caches.

In: the input files and the peer's interpreter. Out: a markdown table of seconds from command to
package, the peer's and ours in turns, medians; then what a new process pays until its first result,
and what a checked call costs beyond its kernel. `python -m benchmarks.compile [--help]`.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.cold import ROOT, spend
from ingot.execute.call_layout import Reports
from ingot.hit import read_text
from ingot.package import compile_model
from ingot.package.target import Target
from ingot.runtime import Artifact, load
from ingot.runtime.backends import KernelBackend
from tests.systems import plasticity

MECHANICS = Path("neml2/regression/solid_mechanics")
CASES = {
    "isoharden": MECHANICS / "rate_independent_plasticity/isoharden/model.i",
    "free_sintering": MECHANICS / "viscoplasticity/free_sintering/model.i",
    "chaboche": MECHANICS / "viscoplasticity/chaboche/model.i",
}
POINTS = 8
CALLS = 20_000

FIRST = """
import sys, time
start = time.perf_counter()
import torch
imported = time.perf_counter()
import ingot
artifact = ingot.load(sys.argv[1])
loaded = time.perf_counter()
inputs = {n: torch.zeros(3, *v.sub_batch, *v.base, dtype=torch.float64) + 0.1
          for n, v in artifact.inputs.items()}
artifact(inputs)
print(imported - start, loaded - imported, time.perf_counter() - loaded)
"""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to compile a case."""

    name: str
    words: Callable[[Path, Path], Sequence[str | Path]]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=Path, default=ROOT.parent / "shared" / "cases")
    parser.add_argument("--peer", type=Path, default=ROOT / ".peer" / "bin" / "neml2-compile")
    parser.add_argument("--only", nargs="+", default=["isoharden"], choices=CASES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("-j", "--jobs", type=int, default=2)
    chosen = parser.parse_args()
    ours = Path(sys.executable).with_name("ingot")
    shared = ("--driver", "driver", "-d", ":", "-j", str(chosen.jobs))
    ways = [
        Way("kernel", lambda f, o: (ours, "compile", f, *shared, "--output-dir", o)),
        Way("inductor", lambda f, o: (
            ours, "compile", f, *shared, "--output-dir", o, "--backend", "inductor",
        )),
    ]  # fmt: skip
    if chosen.peer.exists():
        ways.append(
            Way("peer", lambda f, o: (chosen.peer, f, *shared, "--output-dir", o, "--quiet"))
        )
    print(f"seconds from command to package with all derivatives, -j {chosen.jobs},"
          f" medians of {chosen.rounds}\n")  # fmt: skip
    print("| case |", " | ".join(w.name for w in ways), "| inductor / peer |")
    print("|---|" + "--:|" * (len(ways) + 1))
    for name in chosen.only:
        file = (chosen.cases / CASES[name]).resolve()
        runs = [[seconds(way, file) for way in ways] for _ in range(chosen.rounds)]
        found = {w.name: statistics.median(col) for w, col in zip(ways, zip(*runs, strict=True),
                                                                  strict=True)}  # fmt: skip
        ratio = f"{found['inductor'] / found['peer']:.2f}" if "peer" in found else "-"
        print(f"| {name} |", " | ".join(f"{x:.1f}" for x in found.values()), f"| {ratio} |")
    first_results()
    checked_call()


def seconds(way: Way, file: Path) -> float:
    """One cold compile; homes and caches are new and empty."""
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        spent = spend(way.words(file, home / "out"), home)
    if spent.code != 0:
        raise RuntimeError(f"{way.name} failed:\n{spent.told}")
    return spent.wall


def packaged(folder: Path, *backends: str) -> Path:
    """A plasticity model with one solve, as a package."""
    text = plasticity("FBComplementarity", isotropic=True, kinematic=False)
    chosen = ["kernel" if b == "kernel" else "inductor" for b in backends]
    target = Target(output_dir=folder, stub=False, backend=tuple(chosen))  # pyright: ignore[reportArgumentType]
    return compile_model(read_text(text), "update", target).folder


def first_results() -> None:
    """What a new process pays, by part."""
    print("\nseconds of a new process until its first result: import torch, load, first call")
    with tempfile.TemporaryDirectory() as scratch:
        for backend in ("kernel", "inductor"):
            place = packaged(Path(scratch) / backend, backend)
            rows = []
            for _ in range(5):
                start = time.perf_counter()
                done = subprocess.run(
                    [sys.executable, "-c", FIRST, str(place)], capture_output=True, text=True,
                    check=True,
                )  # fmt: skip
                rows.append([*map(float, done.stdout.split()), time.perf_counter() - start])
            imported, loaded, called, whole = map(statistics.median, zip(*rows, strict=True))
            print(f"{backend}: {imported:.2f} + {loaded:.3f} + {called:.3f}, process {whole:.2f}")


def checked_call() -> None:
    """Medians of single calls and of the kernel alone, taken in turns."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        artifact = load(packaged(Path(scratch), "kernel"))
    inputs = {
        n: torch.zeros(POINTS, *v.base, dtype=torch.float64) for n, v in artifact.inputs.items()
    }
    inputs["t"] += 1.0
    artifact(inputs)
    kernel = alone(artifact, list(inputs.values()))
    calls, kernels = [], []
    for _ in range(CALLS):
        calls.append(nanoseconds(lambda: artifact(inputs)))
        kernels.append(nanoseconds(kernel))
    call, least = statistics.median(calls) / 1e3, statistics.median(kernels) / 1e3
    print(f"\nchecked call, {len(inputs)} inputs, {len(artifact.outputs)} outputs, {POINTS} points:"
          f" {call:.1f} µs, kernel {least:.1f} µs, beyond {call - least:.1f} µs")  # fmt: skip


def alone(artifact: Artifact, values: list[torch.Tensor]) -> Callable[[], None]:
    """The native call of an artifact, everything laid out."""
    backend = artifact._backend
    assert isinstance(backend, KernelBackend)
    native = backend._forward
    (ready,) = native._calls.values()
    held, given = ready.pack_given(values)
    outputs, gives = ready.allocate_outputs()
    reports = Reports.allocate(native._solves, (ready.points,), native.dtype)
    task = native.run.make_task(native._knobs, given, gives, reports.pack_rows(), POINTS)

    def call() -> None:
        assert held and outputs and reports
        task.start()

    return call


def nanoseconds(work: Callable[[], object]) -> int:
    """What one call takes."""
    start = time.perf_counter_ns()
    work()
    return time.perf_counter_ns() - start


if __name__ == "__main__":
    main()
