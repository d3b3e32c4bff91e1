"""What a gradient costs: one `vjp` of a scalar by all inputs and all promotable parameters.

Out: a markdown table of microseconds a point, alternating, medians, on one thread, for a call of
values, for a `vjp` (its kernel gives the adjoints of inputs and parameters alike), and for values
and all gradients through autograd. `python -m benchmarks.adjoint [CASES]`.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from ingot.drivers import TransientDriver, transient_driver
from ingot.hit import read
from ingot.model import Factory
from ingot.package import compile_model
from ingot.package.target import Target
from ingot.program import trace
from ingot.runtime import Artifact, load

FILES = (
    "regression/solid_mechanics/viscoplasticity/chaboche/model.i",
    "regression/solid_mechanics/crystal_plasticity/single_crystal_coupled/model.i",
)
POINTS = 1000
ROUNDS = 31


def main(cases: Path) -> None:
    """Print one row a model."""
    torch.set_num_threads(1)
    print(
        "| model | inputs | parameters | forward µs | vjp µs | vjp / forward | autograd / forward |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|")
    for file in FILES:
        print(row(cases / "neml2" / file), flush=True)


def row(file: Path) -> str:
    """What the gradient of a sum over all outputs of all points costs."""
    driver = transient_driver(Factory(read(file)), "driver")
    with tempfile.TemporaryDirectory() as folder:
        artifact = compiled(file, driver, Path(folder))
    inputs = states(driver, artifact)
    with torch.no_grad():
        cotangents = {n: torch.ones_like(x) for n, x in artifact(inputs).items()}
        assert all(bool(s.converged.all()) for s in artifact.status)
    leaves = {n: x.clone().requires_grad_() for n, x in inputs.items()}
    by = [*leaves.values(), *(x for _, x in artifact.named_parameters())]

    def forward() -> object:
        with torch.no_grad():
            return artifact.forward(inputs)

    def vjp() -> object:
        return artifact.vjp(inputs, cotangents)

    def backward() -> object:
        outputs = artifact.forward(leaves)
        return torch.autograd.grad([*outputs.values()], by, [*cotangents.values()])

    plain, pulled, both = alternating(forward, vjp, backward)
    count = len(artifact.metadata.parameters)
    return (
        f"| {file.parent.name} | {len(inputs)} | {count} | {plain:.2f} | {pulled:.2f} |"
        f" {pulled / plain:.2f} | {both / plain:.2f} |"
    )


def compiled(file: Path, driver: TransientDriver, folder: Path) -> Artifact:
    """The driver's model with every parameter promoted that has one value for all points."""
    shapes = dict(driver.shapes)
    traced = trace(driver.model, shapes)
    names = tuple(p.variable.name for p in traced.parameters if not p.batched)
    target = Target(output_dir=folder, parameter=names, train=True, stub=False, baseline=False)
    package = compile_model(
        Factory(read(file)), driver.model.name, target, driver="driver", shapes=shapes
    )
    return load(package.folder)


def states(driver: TransientDriver, artifact: Artifact) -> Mapping[str, Tensor]:
    """States that the driver goes through, steps and points alike, as many as are measured."""
    result = driver.run("kernel")
    found = {}
    for v in artifact.metadata.inputs:
        rows = []
        for step in range(1, result.steps):
            x = result.flat.given(v.name, step)
            x = torch.zeros((), dtype=torch.float64) if x is None else x
            x = x.expand((*result.batch, *v.sub_batch, *v.base))
            rows.append(x.reshape(-1, *v.sub_batch, *v.base))
        every = torch.cat(rows)
        found[v.name] = every[torch.arange(POINTS) * 7919 % len(every)].contiguous()
    return found


def alternating(*calls: Callable[[], object]) -> list[float]:
    """Microseconds a point of calls, one after the other, the median of each."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(ROUNDS):
        for call, to in zip(calls, times, strict=True):
            start = time.process_time()
            call()
            to.append(time.process_time() - start)
    return [1e6 * statistics.median(row) / POINTS for row in times]


if __name__ == "__main__":
    here = Path(__file__).resolve().parent.parent
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else here.parent / "shared" / "cases")
