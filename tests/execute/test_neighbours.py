"""What becomes of a point does not depend on the points beside it, however hard those are."""

from functools import cache

import pytest
import torch
from torch import Tensor

from ingot.execute import Backend, executor
from ingot.execute.status import Status
from ingot.hit import read_text
from ingot.model import build
from ingot.program import Program, prepared, with_jacobian

from .test_single_precision import MODELS
from .test_substeps import CUBIC, LEVEL, filled

Tensors = dict[str, Tensor]

LATE: tuple[tuple[Backend, int, int], ...] = (
    ("kernel", 27, 58), ("kernel", 157, 54), ("interpret", 74, 8), ("interpret", 1389, 10),
)  # fmt: skip
"""A seed, and of it a point of which a part runs out of updates while others confirm theirs."""
POINTS = 64
HARD = 0.4
"""The part of the points that strain a hundred times as much as others, in steps of days."""


@cache
def program_of_preset(name: str) -> Program:
    text = f"[Models]\n[model]\n{MODELS[name]}[]\n[]"
    program = prepared(build(read_text(text, f"{name}.i"), "model"))
    return with_jacobian(program, [("stress", "strain")])


def draw(program: Program, seed: int) -> Tensors:
    """Points of all sorts: elastic, flowing, and such as no step should ask for."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    hard = torch.rand(POINTS, 1, generator=generator, dtype=torch.float64) < HARD
    inputs: Tensors = {}
    for v in program.inputs:
        size = 1.0 if "stress" in v.name else 3e-3
        x = normal(POINTS, *v.kind.base).reshape(POINTS, -1) * size
        x = torch.where(hard, 100 * x, x).reshape(POINTS, *v.kind.base)
        inputs[v.name] = x.abs() if "equivalent" in v.name or "void" in v.name else x
    if "t" in inputs:
        inputs["t~1"] = torch.zeros(POINTS, dtype=torch.float64)
        inputs["t"] = 10.0 ** torch.where(hard[:, 0], 5.0 + normal(POINTS), normal(POINTS))
    return inputs


def bits(outputs: Tensors, statuses: tuple[Status, ...], i: int) -> list[object]:
    """All that is told of a point, by its bits; NaN is one NaN."""
    values = [x[i].nan_to_num(nan=1e300).flatten().tolist() for _, x in sorted(outputs.items())]
    told = [
        (int(s.reason[i]), int(s.iterations[i]), float(s.residual[i].nan_to_num()))
        for s in statuses
    ]
    return [values, told]


@pytest.mark.parametrize("precision", [torch.float64, torch.float32], ids=["double", "single"])
@pytest.mark.parametrize("name", ["voce", "moving", "both", "perzyna", "chaboche", "gurson"])
def test_a_point_is_the_same_alone_and_among_others(name: str, precision: torch.dtype) -> None:
    program = program_of_preset(name)
    run = executor(program, "kernel", dtype=precision)
    for seed in range(4):
        inputs = {n: x.to(precision) for n, x in draw(program, seed).items()}
        outputs, statuses = run(inputs)
        for i in range(POINTS):
            alone, said = run({n: x[i : i + 1] for n, x in inputs.items()})
            assert bits(alone, tuple(said), 0) == bits(outputs, tuple(statuses), i)


@pytest.mark.parametrize(("backend", "seed", "late"), LATE)
def test_a_part_that_failed_is_not_accepted_while_others_go_on(
    backend: Backend, seed: int, late: int
) -> None:
    program = prepared(build(read_text(filled(CUBIC, {"level": LEVEL}), "cubic.i"), "model"))
    run = executor(program, backend, dtype=torch.float32)
    generator, inputs = torch.Generator().manual_seed(seed), dict[str, Tensor]()
    for v in program.inputs:
        x = torch.randn(POINTS, generator=generator)
        inputs[v.name] = x * 10 ** (3 * torch.rand(POINTS, generator=generator) - 1)
    inputs["t"] = inputs["t~1"] + inputs["t"].abs()
    found, _ = run(inputs)
    alone, _ = run({name: x[late : late + 1] for name, x in inputs.items()})
    assert alone["x"].isfinite().all() and torch.equal(alone["x"][0], found["x"][late])
