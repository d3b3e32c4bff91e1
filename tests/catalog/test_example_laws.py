"""The laws of `examples/`: values and slopes in both modes by everything, against plain torch."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from ingot.catalog import CATALOG, laws_of
from ingot.execute import executor
from ingot.program import Program, prepared, with_adjoint, with_jacobian
from tests.laws.together import joined
from tests.program.declared import model_of

EXAMPLES = Path(__file__).parents[2] / "examples" / "laws"
HIDDEN, INNER, KNOTS, POINTS = 4, 3, 5, 6


def network(**p: Tensor) -> Tensor:
    """Two hidden layers at one point, by torch's own names."""
    silu, at = (
        torch.nn.functional.silu,
        torch.stack([p["stress"], p["temperature"], p["creep_strain"]]),
    )
    into = torch.stack([p["by_stress"], p["by_temperature"], p["by_strain"]], dim=1)
    return p["result"] @ silu(p["weights"] @ silu(into @ at + p["first"]) + p["second"])


def polynomial(**p: Tensor) -> Tensor:
    """Coefficients between two knots at one point, then powers."""
    knots, at = p["knots"], p["temperature"]
    i = torch.searchsorted(knots.detach(), at.detach()).clamp(1, KNOTS - 1)
    take = lambda row: row.index_select(0, i.reshape(1)).squeeze(0)  # noqa: E731
    low, high = knots.index_select(0, (i - 1).reshape(1)).squeeze(0), take(knots)
    share = (at - low) / (high - low)
    powers = [p["argument"] ** k for k in range(3)]
    rows = [p["c0"], p["c1"], p["c2"]]
    before = [row.index_select(0, (i - 1).reshape(1)).squeeze(0) for row in rows]
    return sum(
        x * (a + share * (take(r) - a)) for x, r, a in zip(powers, rows, before, strict=True)
    )


LAWS: dict[str, tuple[str, dict[str, str], Callable[..., Tensor]]] = {
    "network": ("NetworkCreepRate", {}, network),
    "polynomial": (
        "TabulatedPolynomial", {"temperatures": "knots", "coefficients": "c0 c1 c2"}, polynomial,
    ),
}  # fmt: skip
SHAPES = {
    "by_stress": (HIDDEN,), "by_temperature": (HIDDEN,), "by_strain": (HIDDEN,),
    "first": (HIDDEN,), "weights": (INNER, HIDDEN), "second": (INNER,), "result": (INNER,),
    "knots": (KNOTS,), "c0": (KNOTS,), "c1": (KNOTS,), "c2": (KNOTS,),
}  # fmt: skip


@pytest.fixture(scope="module")
def programs() -> Iterator[dict[str, Program]]:
    """Both laws with their parameters open, and what is between a file and the catalogue."""
    with laws_of([EXAMPLES / f"{name}.py" for name in LAWS]):
        yield {
            name: prepared(model_of(CATALOG[law].function, **options), SHAPES)
            for name, (law, options, _) in LAWS.items()
        }


def sample(program: Program) -> dict[str, Tensor]:
    """Random points, negative ones and such outside of the table too; knots ascend."""
    draw = torch.Generator().manual_seed(5)
    point = {
        v.name: torch.randn(POINTS, *SHAPES.get(v.name, ()), generator=draw, dtype=torch.float64)
        for v in program.inputs
    }
    if "knots" in point:
        point["knots"] = point["knots"].abs().cumsum(1) - 2
        point["argument"][0] = 0.0
    return point


@pytest.mark.parametrize("backend", ["interpret", "kernel"])
def test_example_laws_agree_with_torch(programs: dict[str, Program], backend: str) -> None:
    points = {name: sample(program) for name, program in programs.items()}
    bar = torch.linspace(-1, 1, POINTS, dtype=torch.float64)
    sloped, given = {}, {}
    for name, program in programs.items():
        names, (output,) = [v.name for v in program.inputs], program.outputs
        blocks = with_jacobian(program, [(output.name, n) for n in names])
        sloped[name] = with_adjoint(blocks, [output.name], names)
        given |= {f"{name}/{n}": x for n, x in points[name].items()}
        given[f"{name}/a.{output.name}"] = bar
    found, _ = executor(joined(sloped), backend)(given)
    for name, (_, _, plain) in LAWS.items():
        point, output = points[name], programs[name].outputs[0].name
        want = torch.vmap(lambda p, f=plain: f(**p))(point)
        torch.testing.assert_close(found[f"{name}/{output}"], want, rtol=1e-12, atol=1e-12)
        slopes = torch.vmap(torch.func.jacrev(lambda p, f=plain: f(**p)))(point)
        for n, slope in slopes.items():
            block, adjoint = found[f"{name}/{output}:{n}"], found[f"{name}/a.{n}"]
            torch.testing.assert_close(block, slope, rtol=1e-11, atol=1e-11)
            shaped = bar.reshape(-1, *[1] * (slope.ndim - 1))
            torch.testing.assert_close(adjoint, shaped * slope, rtol=1e-11, atol=1e-11)
            assert np.any(slope.numpy() != 0), f"{n} does not matter here"
