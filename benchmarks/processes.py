"""Sides of the benchmark that run in interpreters of their own: one JSON line each way."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.load_paths import Array, Case

ROOT = Path(__file__).resolve().parents[1]
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


class SideFailed(RuntimeError):
    """A side answered with an error, or not at all."""


class Side:
    """A process that answers, and what it is called in messages."""

    def __init__(self, name: str, process: "subprocess.Popen[str]") -> None:
        self.name, self.process = name, process

    def ask(self, case: Case, batch: int, action: str, **more: Any) -> dict[str, Any]:
        """Send one command and wait for its answer."""
        assert self.process.stdin and self.process.stdout
        command = {"case": case.name, "batch": batch, "action": action, **more}
        print(json.dumps(command), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        answer = json.loads(line) if line else {"error": "the process ended"}
        if "error" in answer:
            told = f"{self.name}, {case.name} at batch {batch}, {action}: {answer['error']}"
            raise SideFailed(told)
        return answer

    def run(self, case: Case, batch: int, route: str) -> tuple[float, float]:
        """Wall and CPU seconds of one transient."""
        answer = self.ask(case, batch, "run", route=route)
        return answer["wall_seconds"], answer["cpu_seconds"]

    def results(self, case: Case, batch: int, route: str, scratch: Path) -> dict[str, Array]:
        """The outputs at the last step."""
        path = scratch / f"{self.name}.npz"
        self.ask(case, batch, "results", path=str(path), route=route)
        with np.load(path) as stored:
            return {name: stored[name] for name in stored.files}


@contextmanager
def start_side(name: str, module: str, python: Path, folders: Mapping[str, Path]) -> Iterator[Side]:
    """A side's process, ended with the block; it inherits this process's core."""
    if not python.exists():
        raise SystemExit(f"no interpreter of {name} at {python}; `make bench` creates it")
    arguments = [text for flag, path in folders.items() for text in (flag, path.absolute())]
    process = subprocess.Popen(
        [python.absolute(), "-m", module, *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        | ONE_THREAD,
    )
    try:
        yield Side(name, process)
    finally:
        assert process.stdin
        process.stdin.close()
        process.wait()
