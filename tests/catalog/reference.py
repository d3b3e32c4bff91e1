"""Laws run as models are, to be held against numbers of NEML2 3.1.0 in float64."""

from typing import Any

import torch
from torch import Tensor

from ingot.catalog import load
from ingot.catalog.crystal import CubicCrystal
from ingot.execute import executor
from ingot.model import bind
from ingot.program import prepared
from ingot.types import MillerIndex, Scalar

SHEAR = 2.0**0.5


def tensor(*numbers: float) -> Tensor:
    """Numbers in double precision."""
    return torch.tensor(numbers, dtype=torch.float64)


STRESS = tensor(100, -50, 25, 30 * SHEAR, -75 * SHEAR, 125 * SHEAR)
STRAIN = tensor(1e-3, -4e-4, -5e-4, 2e-4, 1e-4, -3e-4)
ROTATION = tensor(0.1, -0.2, 0.3)
BACK_STRESS = tensor(10, -4, -6, 3, 2, -1)
DIRECTION = tensor(0.8, -0.4, -0.4, 0.1, 0, 0.2)
STIFFNESS = 120000.0 * torch.eye(6, dtype=torch.float64)
STIFFNESS[:3, :3] = 50000.0 + 100000.0 * torch.eye(3, dtype=torch.float64)


def face_centred() -> CubicCrystal:
    """The twelve systems of {111}<110>."""
    return CubicCrystal(Scalar(1.0), MillerIndex(tensor(1, 1, 0)), MillerIndex(tensor(1, 1, 1)))


def outputs(kind: str, options: dict[str, Any], **inputs: Tensor | float) -> dict[str, Tensor]:
    """What a law gives; `_old` at the end of an input stands for `~1`."""
    model = bind(load()[kind], options, None)
    given = {
        name.replace("_old", "~1"): torch.as_tensor(x, dtype=torch.float64)
        for name, x in inputs.items()
    }
    assert set(given) == set(model.inputs)
    shapes = {name: x.shape[: x.ndim - len(model.inputs[name].base)] for name, x in given.items()}
    return executor(prepared(model, {n: s for n, s in shapes.items() if s}))(given)[0]


def output(kind: str, options: dict[str, Any], **inputs: Tensor | float) -> Tensor:
    """The one output of a law."""
    (value,) = outputs(kind, options, **inputs).values()
    return value


def assert_agrees(ours: Tensor, *theirs: float) -> None:
    """To the 15 digits that are told; noise of the largest entry apart."""
    expected = tensor(*theirs).reshape(ours.shape)
    tolerance = 2e-14 * max(abs(x) for x in theirs)
    torch.testing.assert_close(ours, expected, rtol=4e-15, atol=tolerance)
