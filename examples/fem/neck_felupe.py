"""A bar that necks in FElupe, of steel and of a copper crystal, at finite strain."""

import sys
from pathlib import Path
from typing import Any

import common
import felupe
import neck
import numpy as np

from ingot.hosts import State


class FiniteMaterial:
    """A compiled model of deformation gradients as FElupe calls one; components come first."""

    x = (np.eye(3), np.zeros(0))

    def __init__(self, state: State, record: common.Record) -> None:
        self.state, self.record = state, record
        self.given: dict[str, Any] = {}
        self.has_failed = False

    def gradient(self, x: list[np.ndarray], **_: Any) -> list[np.ndarray]:
        """The first Piola-Kirchhoff stress."""
        gradient = np.ascontiguousarray(np.moveaxis(x[0], (0, 1), (-2, -1)))
        with self.record.measure("material"):
            self.update = self.state.update({neck.GRADIENT: gradient, **self.given})
        self.has_failed = self.update.has_failed
        return [np.moveaxis(self.update[neck.PIOLA], (-2, -1), (0, 1)), x[-1]]

    def hessian(self, x: list[np.ndarray], **_: Any) -> list[np.ndarray]:
        """Its slope, of the last call of `gradient`."""
        block = self.update.tangent(neck.PIOLA, neck.GRADIENT)
        return [np.moveaxis(block, (-4, -3, -2, -1), (0, 1, 2, 3))]


def stretch(name: str, size: tuple[int, int]) -> tuple[common.Record, State, np.ndarray]:
    """Pull at one end; size: elements across and along."""
    points, cells = neck.mesh_bar(*size)
    mesh = felupe.Mesh(points, cells, "hexahedron20")
    rule = felupe.GaussLegendre(order=1, dim=3)
    field = felupe.FieldContainer(
        [felupe.Field(felupe.RegionQuadraticHexahedron(mesh, quadrature=rule), dim=3)]
    )
    shape = (rule.npoints, len(cells))
    state = neck.begin(name, shape)
    record = common.Record(shape[0] * shape[1])
    material = FiniteMaterial(state, record)
    solid = felupe.SolidBody(material, field)
    given = neck.give(name, shape)

    def assemble(u: np.ndarray, end: float) -> common.Assembled:
        material.given = {"t": 100 * end, **given}
        field[0].values[:] = u.reshape(-1, 3)
        force = solid.assemble.vector(field).toarray()[:, 0]
        if material.has_failed:
            return None
        with record.measure("assembly"):
            return force, solid.assemble.matrix(field).tocsr()

    problem = common.Problem(assemble, points.size, *neck.hold(points), state, record)
    return record, state, problem.stretch(neck.STRETCH[name], steps=neck.STEPS)


def main(folder: Path, size: tuple[int, int] = (2, 10)) -> dict[str, common.Record]:
    """Both materials."""
    return neck.stretch_bars("FElupe", stretch, folder, size)


if __name__ == "__main__":
    main(common.find_folder(sys.argv))
