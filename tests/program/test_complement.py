"""Multipliers of complementarity are scaled where rounding would choose the branch."""

from unittest.mock import patch

import numpy as np
import pytest
import torch
from torch import Tensor

import ingot
from ingot.execute import executor
from ingot.hit import read_text
from ingot.model import build
from ingot.program import Program, combinators, prepared, with_jacobian
from ingot.program.builder import Builder, Node
from ingot.program.complement import Surroundings, balance_complements
from tests.systems import plasticity

LAWS = ("FBComplementarity", "MinMapComplementarity")


def trace_plastic(law: str, dtype: torch.dtype, *, kinematic: bool = True) -> Program:
    text = plasticity(law, isotropic=True, kinematic=kinematic)
    return prepared(build(read_text(text), "update"), dtype=dtype)


def draw_strains(program: Program, dtype: torch.dtype, count: int = 100) -> dict[str, Tensor]:
    rng = torch.Generator().manual_seed(5)
    inputs = {v.name: torch.zeros(count, *v.kind.base, dtype=dtype) for v in program.inputs}
    inputs["E"] = (2e-2 * torch.randn(count, 6, generator=rng)).to(dtype)
    return inputs


@pytest.mark.parametrize("law, near", [("FBComplementarity", 1e-13), ("MinMapComplementarity", 0)])
@pytest.mark.parametrize("duration", [1e-3, 1.0, 1e4])
def test_doubles_of_common_units_are_as_they_were(law: str, near: float, duration: float) -> None:
    """A minimum to the last bit; a product by 1 more is fused otherwise with sums of the root."""
    with patch.object(combinators, "balance_complements", lambda b, rows, *_: rows):
        plain = trace_plastic(law, torch.float64)
    scaled = trace_plastic(law, torch.float64)
    assert scaled.solves[0].digest != plain.solves[0].digest
    inputs = draw_strains(plain, torch.float64)
    inputs["t"] = torch.full_like(inputs["t"], duration)
    (found, statuses), (expected, known) = (
        executor(program, "kernel")(inputs) for program in (scaled, plain)
    )
    assert torch.equal(statuses[0].iterations, known[0].iterations)
    for name, value in expected.items():
        one, other = torch.as_tensor(found[name]), torch.as_tensor(value)
        torch.testing.assert_close(one, other, rtol=0, atol=near * float(other.abs().max()))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("dtype, near, slopes_near", [
    (torch.float32, 1e-6, 2e-2), (torch.float64, 1e-9, 1e-7),
])  # fmt: skip
def test_the_length_of_a_step_changes_nothing_where_nothing_depends_on_it(
    law: str, dtype: torch.dtype, near: float, slopes_near: float
) -> None:
    """Flow rates of 1e-9 among stresses of 1e3 flow as those of 1 do, and so do their tangents."""
    program = with_jacobian(trace_plastic(law, dtype), [("plastic_strain", "E")])
    run = executor(program, "interpret", dtype)
    inputs = draw_strains(program, dtype)
    found, slopes = [], []
    for duration in (1e-3, 1.0, 1e7, 1e12, 1e15):
        inputs["t"] = torch.full_like(inputs["t"], duration)
        outputs, (status,) = run(inputs)
        assert bool(status.converged.all())
        found.append(outputs["plastic_strain"])
        slopes.append(outputs["plastic_strain:E"])
    assert float(found[0].abs().max()) > 1e-2
    assert float(slopes[0].abs().max()) > 0.5
    for other, slope in zip(found[1:], slopes[1:], strict=True):
        torch.testing.assert_close(other, found[0], rtol=0, atol=near)
        torch.testing.assert_close(slope, slopes[0], rtol=0, atol=slopes_near)


def is_scaled(write: str) -> bool:
    """Whether the last row of a system of the unknowns x and m, and the line a, is rewritten."""
    b = Builder({})
    x, m = (b.node("unknown", (), (i,)) for i in range(2))
    a = b.emit("sub", b.emit("mul", 1e5, x), 3.0)
    known: dict[str, Node | float] = {"x": x, "m": m, "a": a}

    def emit(op: str, *names: str | float | Node) -> Node:
        return b.emit(op, *(known[n] if isinstance(n, str) else n for n in names))

    rows = [b.emit("sub", x, b.emit("mul", 2e-3, m)), eval(write, {"emit": emit})]
    new = balance_complements(b, rows, [x, m], Surroundings(None, (), {"x": [x], "m": [m]}, {}))
    assert new[0] is rows[0]
    return new[1] is not rows[1]


SMALLER = "emit('where', emit('ge', 'a', 'm'), 'm', {})"
SQUARES = "emit('add', emit('mul', {0}, {0}), emit('mul', 'm', 'm'))"
FISCHER = "emit('sub', emit('add', 'a', 'm'), emit('sqrt', " + SQUARES + "))"


@pytest.mark.parametrize("row, expected", [
    (SMALLER.format("'a'"), True),
    (SMALLER.format("'x'"), False),
    ("emit('where', emit('ge', 'a', 'x'), 'x', 'a')", False),
    ("emit('where', emit('ge', emit('add', 'a', 'm'), 'm'), 'm', emit('add', 'a', 'm'))", False),
    ("emit('sub', 'a', 'm')", False),
    (FISCHER.format("'a'"), True),
    (FISCHER.format("'x'"), False),
    (FISCHER.format("emit('neg', 'a')"), True),
])  # fmt: skip
def test_only_complementarity_with_an_unknown_is_scaled(row: str, expected: bool) -> None:
    assert is_scaled(row) == expected


STEEL = """
[Models]
  [saturated]
    type = ScalarLinearInterpolation
    argument = 'temperature'
    abscissa = '300 900'
    ordinate = '{0} {1}'
  []
  [steel]
    type = J2Plasticity
    E = 200e9
    nu = 0.3
    yield_stress = 250e6
    isotropic_hardening = voce
    saturated_hardening = {2}
    saturation_rate = 20
  []
[]
"""


def test_a_parameter_that_a_table_gives_is_as_its_number() -> None:
    """Long steps in Pa, where multipliers are scaled."""
    found = []
    for parameter in ("saturated", "60e6"):
        program = prepared(build(read_text(STEEL.format("80e6", "40e6", parameter)), "steel"))
        inputs = {v.name: torch.zeros(50, *v.kind.base).double() for v in program.inputs}
        rng = torch.Generator().manual_seed(3)
        inputs["strain"] = 1e-2 * torch.randn(50, 6, generator=rng).double()
        inputs["t"] += 1e6
        if "temperature" in inputs:
            inputs["temperature"] += 600.0
        outputs, (status,) = executor(with_jacobian(program, [("stress", "strain")]), "kernel")(
            inputs
        )
        assert bool(status.converged.all())
        found.append(outputs)
    for name in ("stress", "stress:strain"):
        one, other = (torch.as_tensor(each[name]) for each in found)
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9 * float(other.abs().max()))


def test_an_update_inside_another_and_behind_it_is_one() -> None:
    """Where it stands must not decide its scale: the same equations are solved once."""
    time = np.linspace(0.0, 1.0, 3)
    steel = ingot.from_hit(STEEL.format("80e6", "40e6", "60e6"), "steel")
    driver = ingot.transient(steel, time=time, strain=1e-3 * time, control="uniaxial")
    assert len(driver.run("interpret").statuses) == 2
