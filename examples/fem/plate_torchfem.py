"""A plate with a hole in torch-fem, of steel and of copper grains, and by its own plasticity."""

import sys
from pathlib import Path

import common
import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor
from torchfem.materials import IsotropicElasticityPlaneStrain, IsotropicPlasticityPlaneStrain
from torchfem.planar import Planar
from torchfem.solid import Solid

from ingot.hosts import PLANE, State


class Elements:
    """Gradients at all quadrature points of a torch-fem model, and forces of stresses there.

    torch-fem asks a material point of the rule by point; a State takes them all at once, as
    (quadrature, elements).
    """

    def __init__(self, model: Planar | Solid) -> None:
        self.model = model
        _, self.slopes, volume = model.eval_shape_functions(model.etype.ipoints)
        self.weights = model.etype.iweights[:, None] * volume * model.volume_scale
        self.shape = tuple(self.weights.shape)

    def find_gradient(self, u: Tensor) -> Tensor:
        """The displacement gradient, (quadrature, elements, d, d)."""
        return self.model.compute_h(u[self.model.elements], self.slopes)

    def assemble(self, stress: Tensor, tangent: Tensor) -> tuple[np.ndarray, csr_matrix]:
        """The forces, and their slopes by displacements."""
        weighted = self.weights[..., None, None] * self.slopes
        force = torch.einsum("geJp,geiJ->epi", weighted, stress)
        half = torch.einsum("geJp,geiJkL->gepikL", weighted, tangent)
        block = torch.einsum("gepikL,geLq->epiqk", half, self.slopes)
        none = torch.zeros(0, dtype=torch.long)
        matrix = self.model.assemble_matrix(block, none)
        parts = (matrix.values(), matrix.col_indices(), matrix.crow_indices())
        sparse = csr_matrix(tuple(x.numpy() for x in parts), shape=matrix.shape)
        return self.model.assemble_rhs(force.flatten(1)).numpy(), sparse


def constrain(size: int, model: Planar, pulled: float) -> Tensor:
    """Hold a model by its symmetries and pull at the top; the numbers of displacements there."""
    left, bottom = (model.nodes[:, i] < 1e-9 for i in (0, 1))
    top = model.nodes[:, 1] > 1 - 1e-9
    model.constraints = torch.stack([left, bottom | top], dim=-1)
    model.displacements = torch.stack([torch.zeros(len(top)), pulled * top], dim=-1)
    return 2 * top.nonzero()[:, 0] + 1


def stretch(name: str, size: int) -> tuple[common.Record, State]:
    """Pull at the upper edge."""
    points, quads = map(torch.tensor, common.grade_plate(size))
    model = Planar(points, quads, IsotropicElasticityPlaneStrain(E=1.0, nu=0.3))  # not asked
    elements = Elements(model)
    state = State(common.compile_material(name), elements.shape)
    record = common.Record(elements.weights.numel())
    grains = common.turn_grains(name, len(quads))
    given = {n: torch.tensor(x[:, 0, :]) for n, x in grains.items()}

    def assemble(u: np.ndarray, end: float) -> common.Assembled:
        gradient = elements.find_gradient(torch.tensor(u).view(-1, 2))
        strain = PLANE.strain((gradient + gradient.mT) / 2)
        with record.measure("material"):
            update = state.update({"strain": strain, "t": end, **given})
        if update.has_failed:
            return None
        with record.measure("assembly"):
            return elements.assemble(
                PLANE.stress(update["stress"]), PLANE.tangent(update.tangent("stress", "strain"))
            )

    top = constrain(size, model, common.STRETCH[name]).numpy()
    fixed = model.constraints.view(-1).nonzero()[:, 0].numpy()
    problem = common.Problem(assemble, model.n_dofs, fixed, top, state, record)
    problem.stretch(common.STRETCH[name])
    return record, state


def stretch_own(size: int) -> list[tuple[float, float]]:
    """The steel by torch-fem's own plasticity and its own solver: force over stretch."""
    points, quads = map(torch.tensor, common.grade_plate(size))
    own = IsotropicPlasticityPlaneStrain(
        E=200e3, nu=0.3, sigma_f=lambda q: 250 + 2000 * q,
        sigma_f_prime=lambda q: torch.full_like(q, 2000.0), tolerance=1e-10,
    )  # fmt: skip
    model = Planar(points, quads, own)
    top = constrain(size, model, common.STRETCH["steel"])
    steps = torch.linspace(0, 1, 17)
    _, forces, *_ = model.solve(increments=steps, rtol=1e-9, return_intermediate=True)
    pulled = forces.flatten(1)[:, top].sum(1)
    return list(zip((common.STRETCH["steel"] * steps).tolist(), pulled.tolist(), strict=True))


def main(folder: Path, size: int = 12) -> dict[str, common.Record]:
    """Both materials, and how far torch-fem's own steel is from ours."""
    torch.set_default_dtype(torch.float64)  # torch-fem computes in torch's default type
    records = common.stretch_plates("torch-fem", stretch, folder, size)
    gap = common.find_gap(records["steel"].curve, stretch_own(size))
    print(f"  torch-fem's own plasticity differs by {gap:.1e} of the force")
    return records


if __name__ == "__main__":
    main(common.find_folder(sys.argv))
