"""A plate with a hole in FElupe, of steel and of copper grains, and by FElupe's own plasticity."""

import sys
from pathlib import Path
from typing import Any

import common
import felupe
import numpy as np

from ingot.hosts import TENSOR, State


class Material:
    """A compiled model as FElupe calls one: stress, then slope, of a deformation gradient.

    FElupe lays components first, `(3, 3, quadrature, cells)`. Its own state variables stay empty.
    """

    x = (np.eye(3), np.zeros(0))

    def __init__(self, state: State, record: common.Record) -> None:
        self.state, self.record = state, record
        self.given: dict[str, Any] = {}
        self.has_failed = False

    def gradient(self, x: list[np.ndarray], **_: Any) -> list[np.ndarray]:
        """The stress of small strains."""
        slope = x[0] - np.eye(3)[:, :, None, None]
        strain = TENSOR.strain((slope + slope.swapaxes(0, 1)) / 2, first=True)
        with self.record.measure("material"):
            self.update = self.state.update({"strain": strain, **self.given})
        self.has_failed = self.update.has_failed
        return [TENSOR.stress(self.update["stress"], first=True), x[-1]]

    def hessian(self, x: list[np.ndarray], **_: Any) -> list[np.ndarray]:
        """The consistent tangent of the last call of `gradient`."""
        return [TENSOR.tangent(self.update.tangent("stress", "strain"), first=True)]


def mesh_plate(size: int) -> tuple[felupe.FieldContainer, np.ndarray, np.ndarray]:
    """The field of displacements, the numbers of prescribed ones, and of those at the top."""
    points, quads = common.grade_plate(size)
    region = felupe.RegionQuad(felupe.Mesh(points, quads, "quad"))
    field = felupe.FieldContainer([felupe.FieldPlaneStrain(region, dim=2)])
    nodes = np.arange(len(points))
    top = 2 * nodes[points[:, 1] > 1 - 1e-9] + 1
    left, bottom = 2 * nodes[points[:, 0] < 1e-9], 2 * nodes[points[:, 1] < 1e-9] + 1
    return field, np.concatenate([left, bottom, top]), top


def stretch(name: str, size: int) -> tuple[common.Record, State]:
    """Pull at the upper edge."""
    field, fixed, top = mesh_plate(size)
    quadrature, cells = field[0].grad().shape[-2:]
    state = State(common.compile_material(name), (quadrature, cells))
    record = common.Record(quadrature * cells)
    material = Material(state, record)
    grains = {n: x[:, 0, :] for n, x in common.turn_grains(name, cells).items()}
    solid = felupe.SolidBody(material, field)

    def assemble(u: np.ndarray, end: float) -> common.Assembled:
        material.given = {"t": end, **grains}
        field[0].values[:] = u.reshape(-1, 2)
        force = solid.assemble.vector(field).toarray()[:, 0]
        if material.has_failed:
            return None
        with record.measure("assembly"):
            return force, solid.assemble.matrix(field).tocsr()

    problem = common.Problem(assemble, field[0].values.size, fixed, top, state, record)
    problem.stretch(common.STRETCH[name])
    return record, state


def stretch_own(size: int) -> list[tuple[float, float]]:
    """The steel by FElupe's own plasticity and its own Newton's method: force over stretch."""
    field, _, _ = mesh_plate(size)
    own = felupe.LinearElasticPlasticIsotropicHardening(E=200e3, nu=0.3, sy=250, K=2000)
    solid = felupe.SolidBody(own, field)
    bounds = {
        "left": felupe.Boundary(field[0], fx=0, skip=(0, 1)),
        "bottom": felupe.Boundary(field[0], fy=0, skip=(1, 0)),
        "top": felupe.Boundary(field[0], fy=1, skip=(1, 0)),
    }
    curve = [(0.0, 0.0)]
    for pulled in np.linspace(0, common.STRETCH["steel"], 17)[1:]:
        bounds["top"].value = pulled
        dof0, dof1 = felupe.dof.partition(field, bounds)
        ext0 = felupe.dof.apply(field, bounds, dof0)
        felupe.newtonraphson(items=[solid], dof0=dof0, dof1=dof1, ext0=ext0, tol=1e-9, verbose=0)
        top = 2 * bounds["top"].points + 1
        curve.append((pulled, float(solid.results.force.toarray()[top, 0].sum())))
    return curve


def main(folder: Path, size: int = 12) -> dict[str, common.Record]:
    """Both materials, and how far FElupe's own steel is from ours."""
    records = common.stretch_plates("FElupe", stretch, folder, size)
    gap = common.find_gap(records["steel"].curve, stretch_own(size))
    print(f"  FElupe's own plasticity differs by {gap:.1e} of the force")
    return records


if __name__ == "__main__":
    main(common.find_folder(sys.argv))
