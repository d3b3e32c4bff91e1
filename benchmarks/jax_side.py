"""JAX's side of the benchmark, run by the interpreter that has it.

Commands are those of `peer.py`. Routes: `steps`, one call of `jit(vmap(step))` a step, and `scan`,
all steps in one call of `jit(lax.scan(vmap(step)))`.
"""

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import jax  # pyright: ignore[reportMissingImports]  # in an environment of its own
import numpy as np
from jax import lax  # pyright: ignore[reportMissingImports]

from benchmarks.jax_models import JAX_MODELS, State
from benchmarks.load_paths import CASES, STEPS, Array, histories
from benchmarks.serve import serve

Run = Callable[[], tuple[State, ...]]


def prepare(name: str, batch: int, route: str) -> Run:
    """A transient over a case's load paths, put on the device; it gives the outputs of all steps.

    By steps these are a tuple of rows, by scan one state whose arrays have a row for each step.
    """
    model, path = JAX_MODELS[name], histories(CASES[name], batch)
    forces = {force: path[entry] for force, entry in model.forces.items()}
    zeros = {n: np.zeros((batch, *width)) for n, width in model.widths.items()}
    first = jax.device_put(zeros | {n: path[entry] for n, entry in model.initial.items()})
    step = jax.vmap(model.step)
    rows = [jax.device_put({n: x[k] for n, x in forces.items()}) for k in range(STEPS)]
    compiled_step = jax.jit(step)

    def run_steps() -> tuple[State, ...]:
        states = [first]
        for before, now in pairwise(rows):
            states.append(compiled_step(states[-1], before, now))
        return jax.block_until_ready(tuple(states[1:]))

    def advance(old: State, pair: tuple[State, State]) -> tuple[State, State]:
        new = step(old, *pair)
        return new, {n: new[n] for n in model.outputs}

    @jax.jit
    def compiled_scan(first: State, before: State, now: State) -> State:
        return lax.scan(advance, first, (before, now))[1]

    before = jax.device_put({n: x[:-1] for n, x in forces.items()})
    now = jax.device_put({n: x[1:] for n, x in forces.items()})

    def run_scan() -> tuple[State, ...]:
        return (jax.block_until_ready(compiled_scan(first, before, now)),)

    return {"steps": run_steps, "scan": run_scan}[route]


def last_step(name: str, states: tuple[State, ...]) -> dict[str, Array]:
    """The outputs of the last step, of a run by either route."""
    last = states[-1] if len(states) > 1 else {n: x[-1] for n, x in states[0].items()}
    return {n: np.asarray(last[n]) for n in JAX_MODELS[name].outputs}


class JaxSide:
    """Holds the runs in use, one for each route."""

    def __init__(self) -> None:
        self.runs: dict[tuple[str, int, str], Run] = {}

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        """Do what one command asks."""
        name, route = command["case"], command["route"]
        key = (name, int(command["batch"]), route)
        if command["action"] == "prepare":
            self.runs = {k: run for k, run in self.runs.items() if k[:2] == key[:2]}
            self.runs[key] = prepare(*key)
            wall, _, _ = timed(self.runs[key])
            first, _, _ = timed(self.runs[key])
            return {"compile_seconds": wall - first, "first_run_seconds": first}
        wall, cpu, states = timed(self.runs[key])
        if command["action"] == "results":
            np.savez(command["path"], **last_step(name, states))
        return {"wall_seconds": wall, "cpu_seconds": cpu}


def timed(run: Run) -> tuple[float, float, tuple[State, ...]]:
    """Wall and CPU seconds of one whole transient, and what it gives."""
    wall, cpu = time.perf_counter(), time.process_time()
    states = run()
    return time.perf_counter() - wall, time.process_time() - cpu, states


if __name__ == "__main__":
    serve(JaxSide().answer)
