"""The peer's side of the benchmark, run by the peer's own interpreter.

One JSON command per line in, `{"case", "batch", "action", ...}`, one answer per line out. Actions:
`prepare` (compile unless cached, load, run once), `run` (timed), `results` (last step to a file).
"""

import argparse
import gc
import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import neml2  # pyright: ignore[reportMissingImports]  # in the peer's environment only
import numpy as np
import torch

from benchmarks.load_paths import CASES, STEPS, Case, overrides
from benchmarks.serve import serve

ROUTES = ("compiled", "eager")


@dataclass(frozen=True, slots=True)
class Options:
    """Folders of the input files, of the load paths, and of compiled packages kept between runs."""

    cases: Path
    scratch: Path
    packages: Path


@dataclass(frozen=True, slots=True)
class Prepared:
    """A driver over one batch, with what it cost to make."""

    key: tuple[str, int, str]
    driver: Any
    compile: dict[str, Any]
    load_seconds: float


class Peer:
    """Holds the one driver in use: results of a large batch are too big to keep many."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.prepared: Prepared | None = None

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        """Do what one command asks."""
        case, batch = CASES[command["case"]], int(command["batch"])
        route = command.get("route", "compiled")
        if route not in ROUTES:
            raise ValueError(f"route is one of {', '.join(ROUTES)}, not '{route}'")
        key = (case.name, batch, route)
        if command["action"] == "prepare":
            self.prepared = None
            gc.collect()
            self.prepared = prepare(case, batch, route, self.options)
            first, _ = timed(self.prepared.driver) if command.get("warm", True) else (None, None)
            return {
                "compile": self.prepared.compile,
                "load_seconds": self.prepared.load_seconds,
                "first_run_seconds": first,
            }
        if self.prepared is None or self.prepared.key != key:
            raise RuntimeError(f"{case.name} at batch {batch} ({route}) is not prepared")
        if command["action"] == "run":
            wall, cpu = timed(self.prepared.driver)
            return {"wall_seconds": wall, "cpu_seconds": cpu}
        if command["action"] == "results":
            last = last_step(self.prepared.driver)
            np.savez(command["path"], **last)
            return {"path": command["path"], "outputs": sorted(last)}
        raise ValueError(f"unknown action '{command['action']}'")


def prepare(case: Case, batch: int, route: str, options: Options) -> Prepared:
    """Load the driver of a case, over its package or over the model as written."""
    source = options.cases / case.file
    cost: dict[str, Any] = {}
    if route == "compiled":
        source, cost = package(case, options)
    snippets = overrides(case, batch, options.scratch)
    start = time.perf_counter()
    driver = neml2.load_input(source, post=snippets).get_driver(case.driver)
    return Prepared((case.name, batch, route), driver, cost, time.perf_counter() - start)


def timed(driver: Any) -> tuple[float, float]:
    """Wall and CPU seconds of one whole transient."""
    wall, cpu = time.perf_counter(), time.process_time()
    driver.run()
    return time.perf_counter() - wall, time.process_time() - cpu


def last_step(driver: Any) -> dict[str, Any]:
    """All outputs of the last step, by variable."""
    prefix = f"output.{STEPS - 1}."
    return {
        name.removeprefix(prefix): value.detach().numpy()
        for name, value in driver.result().items()
        if name.startswith(prefix)
    }


def package(case: Case, options: Options) -> tuple[Path, dict[str, Any]]:
    """The stub of a compiled case and what compiling cost when it was last done."""
    source = options.cases / case.file
    folder = options.packages / case.name
    record = folder.with_suffix(".json")
    made_from = {
        "source": hashlib.sha256(source.read_bytes()).hexdigest(),
        "peer": str(neml2.__version__),
        "torch": torch.__version__,
    }
    if case.axes:
        made_from["axes"] = str(case.axes)
    if record.exists():
        cost = json.loads(record.read_text())
        if cost["made_from"] == made_from:
            return next(folder.glob("*_aoti.i")), cost
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    wall, cpu = compile_seconds(source, case, folder)
    cost = {"wall_seconds": wall, "cpu_seconds": cpu, "made_from": made_from}
    record.write_text(json.dumps(cost, indent=2) + "\n")
    return next(folder.glob("*_aoti.i")), cost


def compile_seconds(source: Path, case: Case, folder: Path) -> tuple[float, float]:
    """Compile in one process from an empty Inductor cache; the wall and CPU seconds it took.

    Axes that are not told are lost: the package of a polycrystal then runs one grain for all.
    """
    axes = [f"--example-batch-shape={variable}=(2;{extent})" for variable, extent in case.axes]
    with tempfile.TemporaryDirectory() as cache:
        before, start = children_cpu(), time.perf_counter()
        done = subprocess.run(
            [
                Path(sys.executable).with_name("neml2-compile"),
                source,
                *("--driver", case.driver, "--output-dir", folder, "-j", "1", "--quiet"),
                *axes,
            ],
            env=os.environ
            | {"TORCHINDUCTOR_CACHE_DIR": cache, "TORCHINDUCTOR_COMPILE_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        wall, cpu = time.perf_counter() - start, children_cpu() - before
    if done.returncode != 0:
        raise RuntimeError(f"neml2-compile failed on {source.name}:\n{done.stderr}")
    return wall, cpu


def children_cpu() -> float:
    """CPU seconds of all finished child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Read the folders from the command line and serve on stdin and stdout."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--cases", type=Path, required=True, help="folder of the shared input files"
    )
    parser.add_argument("--scratch", type=Path, required=True, help="folder for load paths")
    parser.add_argument("--packages", type=Path, required=True, help="folder of compiled packages")
    options = Options(**{name: path.resolve() for name, path in vars(parser.parse_args()).items()})
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    serve(Peer(options).answer)


if __name__ == "__main__":
    main()
