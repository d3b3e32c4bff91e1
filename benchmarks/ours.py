"""Ingot's side of the benchmark: a case and a batch -> a driver, its timed runs, its results."""

import os
import resource
import tempfile
import time
from dataclasses import dataclass
from unittest import mock

import torch
from torch import Tensor

import ingot
from benchmarks.load_paths import STEPS, Array, Case, Folders, overrides
from ingot.drivers import TransientDriver, build_driver
from ingot.hit import read
from ingot.runtime import Artifact
from ingot.types import lag


@dataclass(frozen=True, slots=True)
class Prepared:
    """A driver over one batch, the same with points in step, and what compiling took."""

    driver: TransientDriver
    in_step: TransientDriver
    compile_wall_seconds: float
    compile_cpu_seconds: float


@dataclass(frozen=True, slots=True)
class Steps:
    """A compiled model that is called once a step: forces by step, the first state, its inputs.

    inputs: of each its name, the variable that it is a value of, and how many steps back.
    """

    artifact: Artifact
    forces: list[dict[str, Tensor]]
    first: dict[str, Tensor]
    inputs: tuple[tuple[str, str, int], ...]


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


def prepare_steps(prepared: Prepared) -> Steps:
    """The same model compiled in process, and its load paths step by step."""
    driver = prepared.driver
    artifact = ingot.compile(driver.model)
    path = driver.transient
    forces = [{n: x[k].contiguous() for n, x in path.prescribed.items()} for k in range(STEPS)]
    outputs = driver.run("kernel").outputs
    first = {n: x[0].contiguous() for n, x in outputs.items()}
    return Steps(artifact, forces, first, tuple((n, *lag(n)) for n in artifact.inputs))


def run_steps(steps: Steps) -> tuple[float, float]:
    """Wall and CPU seconds of one whole transient, a call a step."""
    wall, cpu = time.perf_counter(), time.process_time()
    step_through(steps)
    return time.perf_counter() - wall, time.process_time() - cpu


def step_through(steps: Steps) -> list[dict[str, Tensor]]:
    """The states of all steps."""
    start = {**steps.first, **steps.forces[0]}
    states = [start, start]  # what lies before the first step is as the first
    for forces in steps.forces[1:]:
        states.append(forces)
        given = {n: states[-1 - back][variable] for n, variable, back in steps.inputs}
        states[-1] = {**forces, **steps.artifact(given)}
    return states


def cpu_seconds() -> float:
    """CPU seconds of this process and of the compilers it has started."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def run(prepared: Prepared) -> tuple[float, float]:
    """Wall and CPU seconds of one whole transient."""
    wall, cpu = time.perf_counter(), time.process_time()
    prepared.driver.run("kernel")
    return time.perf_counter() - wall, time.process_time() - cpu


def results(driver: TransientDriver) -> dict[str, Array]:
    """All outputs of the last step, by variable.

    The peer updates every point until the last has converged, as `in_step` does; timed runs let
    each point stop, as JAX's do.
    """
    outputs = driver.run("kernel").outputs
    return {name: value[STEPS - 1].numpy() for name, value in outputs.items()}
