"""A bar that necks in torch-fem, of steel and of a copper crystal, at finite strain."""

import sys
from pathlib import Path

import common
import neck
import numpy as np
import torch
from plate_torchfem import Elements
from torchfem.materials import IsotropicElasticity3D
from torchfem.solid import Solid

from ingot.hosts import State


def stretch(name: str, size: tuple[int, int]) -> tuple[common.Record, State, np.ndarray]:
    """Pull at one end; size: elements across and along."""
    points, cells = neck.mesh_bar(*size)
    unasked = IsotropicElasticity3D(E=1.0, nu=0.3)
    elements = Elements(Solid(torch.tensor(points), torch.tensor(cells), unasked))
    state = neck.begin(name, elements.shape)
    record = common.Record(elements.weights.numel())
    given = {n: torch.tensor(x) for n, x in neck.give(name, elements.shape).items()}

    def assemble(u: np.ndarray, end: float) -> common.Assembled:
        gradient = torch.eye(3) + elements.find_gradient(torch.tensor(u).view(-1, 3))
        with record.measure("material"):
            update = state.update({neck.GRADIENT: gradient, "t": 100 * end, **given})
        if update.has_failed:
            return None
        with record.measure("assembly"):
            return elements.assemble(update[neck.PIOLA], update.tangent(neck.PIOLA, neck.GRADIENT))

    problem = common.Problem(assemble, points.size, *neck.hold(points), state, record)
    return record, state, problem.stretch(neck.STRETCH[name], steps=neck.STEPS)


def main(folder: Path, size: tuple[int, int] = (2, 10)) -> dict[str, common.Record]:
    """Both materials."""
    torch.set_default_dtype(torch.float64)  # torch-fem computes in torch's default type
    return neck.stretch_bars("torch-fem", stretch, folder, size)


if __name__ == "__main__":
    main(common.find_folder(sys.argv))
