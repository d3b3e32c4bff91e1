"""Ingot's side of the benchmark: a case and a batch -> a driver, its timed runs, its results."""

import os
import resource
import tempfile
import time
from dataclasses import dataclass
from unittest import mock

import torch

from benchmarks.load_paths import STEPS, Array, Case, Folders, overrides
from ingot.drivers import TransientDriver, build_driver
from ingot.hit import read


@dataclass(frozen=True, slots=True)
class Prepared:
    """A driver over one batch, the same with points in step, and what compiling took."""

    driver: TransientDriver
    in_step: TransientDriver
    compile_wall_seconds: float
    compile_cpu_seconds: float


def prepare(case: Case, batch: int, folders: Folders) -> Prepared:
    """Build the case's driver over the same load paths as the peer, compile, run it once.

    The compilation is cold: from the file to a loaded kernel, with an empty cache.
    """
    torch.set_num_threads(1)
    tree = read(folders.cases / case.file, overrides(case, batch, folders.scratch))
    driver = build_driver(tree, case.driver)
    together = [*overrides(case, batch, folders.scratch), "Solvers/newton/stop:=batch"]
    in_step = build_driver(read(folders.cases / case.file, together), case.driver)
    with tempfile.TemporaryDirectory(dir=folders.scratch) as cache:
        empty = mock.patch.dict(os.environ, {"XDG_CACHE_HOME": cache})
        wall, cpu = time.perf_counter(), cpu_seconds()
        with empty:
            driver.prepare("kernel")
        wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
    driver.run("kernel")
    return Prepared(driver, in_step, wall, cpu)


def cpu_seconds() -> float:
    """CPU seconds of this process and of the compilers it has started."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def run(prepared: Prepared) -> tuple[float, float]:
    """Wall and CPU seconds of one whole transient."""
    wall, cpu = time.perf_counter(), time.process_time()
    prepared.driver.run("kernel")
    return time.perf_counter() - wall, time.process_time() - cpu


def results(prepared: Prepared) -> dict[str, Array]:
    """All outputs of the last step, by variable, of points that stop as the peer's do.

    The peer updates every point until the last has converged; timed runs let each point stop.
    """
    outputs = prepared.in_step.run("kernel").outputs
    return {name: value[STEPS - 1].numpy() for name, value in outputs.items()}


def compile_seconds(prepared: Prepared) -> tuple[float, float]:
    """Wall and CPU seconds that compiling took, whether now or when the package was cached."""
    return prepared.compile_wall_seconds, prepared.compile_cpu_seconds
