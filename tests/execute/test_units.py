"""Units of stress and of time change units of results, and nothing else: values, states, tangents.

A flow rate beside a stress is 1e-16 of it where stresses are in Pa and steps are long.
"""

import re
from functools import cache

import pytest
import torch
from torch import Tensor

from ingot.execute import Backend, executor
from ingot.hit import read_text
from ingot.model import build
from ingot.program import Program, prepared, with_jacobian
from tests.execute.test_single_precision import MODELS

RATE_INDEPENDENT = [n for n, text in MODELS.items() if re.search("J2|GTN", text)]
STRESSES = ("E", "yield_stress", "hardening_modulus", "saturated_hardening", "kinematic_modulus",
            "C")  # fmt: skip
POINTS = 200
NEAR = {"stress": 1e-5, "plastic_strain": 1e-3, "stress:strain": 1e-3}
"""Of the largest entry. Residuals have one norm, in which strains are beside stresses, so that
Newton's method ends earlier in Pa; an elastic tangent at a point that flows is off by a tenth and
more."""
MAX_STRAIN = {"gurson": 3e-3}
"""Voids have a second root, which long steps may end at; others go up to 3e-2."""


def convert(name: str, stress: float) -> str:
    """The file of a model with its stresses in another unit."""
    text = MODELS[name]
    for option in STRESSES:
        found = re.search(rf"(?m)^{option} = '?([^'\n]+)'?$", text)
        if found:
            values = " ".join(repr(float(x) * stress) for x in found[1].split())
            text = text.replace(found[0], f"{option} = '{values}'")
    text = str(read_text(f"[Models]\n[m]\n{text}[]\n[]"))
    if name == "fischer":
        text = text.replace("MinMapComplementarity", "FBComplementarity")
    return text.replace("type = Newton\n", "type = Newton\nabs_tol = 1e-12\nrel_tol = 1e-13\n")


@cache
def slope_program(name: str, stress: float) -> Program:
    model = build(read_text(convert(name, stress)), "m")
    return with_jacobian(prepared(model), [("stress", "strain")])


@cache
def draw(name: str) -> tuple[dict[str, Tensor], ...]:
    """Three steps of random strains, each from the state that the last left, in MPa and s."""
    program = slope_program(name, 1.0)
    run = executor(program, "kernel")
    rng = torch.Generator().manual_seed(11)
    inputs = {v.name: torch.zeros(POINTS, *v.kind.base).double() for v in program.inputs}
    if "void_fraction~1" in inputs:
        inputs["void_fraction~1"] += 0.01
    steps: list[dict[str, Tensor]] = []
    for _ in range(3):
        size = MAX_STRAIN.get(name, 3e-2) * 10 ** (
            -3 * torch.rand(POINTS, 1, generator=rng).double()
        )
        along = torch.randn(POINTS, 6, generator=rng).double()
        inputs = inputs | {
            "strain": inputs["strain"] + size * along, "t~1": inputs["t"], "t": inputs["t"] + 1.0,
        }  # fmt: skip
        steps.append(inputs)
        outputs, (status,) = run(inputs)
        good = status.converged
        old = {f"{n}~1": torch.as_tensor(x) for n, x in outputs.items() if f"{n}~1" in inputs}
        inputs = inputs | {
            n: torch.where(good.reshape(-1, *(1,) * (x.ndim - 1)), x, inputs[n])
            for n, x in old.items()
        }
    return tuple(steps)


def find_size(x: Tensor) -> Tensor:
    return x.abs().reshape(len(x), -1).amax(1)


@pytest.mark.parametrize("backend", ["interpret", "kernel"])
@pytest.mark.parametrize("stress, time", [
    (1e6, 1e6),
    *(pytest.param(*units, marks=pytest.mark.exhaustive)
      for units in ((1e6, 1e3), (1e3, 1e9), (1e-3, 1e-6))),
])  # fmt: skip
@pytest.mark.parametrize("name", RATE_INDEPENDENT)
def test_units_change_nothing(name: str, stress: float, time: float, backend: Backend) -> None:
    plain, other = (executor(slope_program(name, unit), backend) for unit in (1.0, stress))
    for inputs in draw(name):
        units = {n: stress if "stress" in n else time if n in ("t", "t~1") else 1.0 for n in inputs}
        units |= {n: 1 / time for n in units if "rate" in n}
        expected, (known,) = plain(inputs)
        found, (status,) = other({n: x * units[n] for n, x in inputs.items()})
        both = known.converged & status.converged
        assert int(both.sum()) >= 0.95 * int(known.converged.sum()) > 0
        for n, near in NEAR.items():
            x = torch.as_tensor(expected[n])
            unit = stress if "stress" in n else 1.0
            off, size = find_size(torch.as_tensor(found[n]) / unit - x), find_size(x)
            wrong = both & ~(off <= near * size)
            assert not bool(wrong.any()), (n, int(wrong.sum()), float((off / size)[wrong].max()))
