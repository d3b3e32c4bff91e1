"""A plate with a hole in scikit-fem, of steel and of copper grains. Writes two pictures."""

import sys
from pathlib import Path
from typing import Any

import common
import numpy as np
import skfem
from skfem.helpers import ddot, sym_grad

from ingot.hosts import PLANE, State


@skfem.LinearForm
def internal(v: Any, w: Any) -> Any:
    """The forces of a stress."""
    return ddot(w.stress, sym_grad(v))


@skfem.BilinearForm
def stiffness(u: Any, v: Any, w: Any) -> Any:
    """The slope of the forces."""
    return np.einsum("ijkl...,kl...,ij...->...", w.tangent, sym_grad(u), sym_grad(v))


def stretch(name: str, size: int) -> tuple[common.Record, State]:
    """Pull at the upper edge."""
    points, quads = common.grade_plate(size)
    mesh = skfem.MeshQuad(points.T, quads.T)
    basis = skfem.Basis(mesh, skfem.ElementVector(skfem.ElementQuad1()), intorder=3)
    shape = (mesh.nelements, basis.X.shape[-1])
    state = State(common.compile_material(name), shape)
    grains = common.turn_grains(name, mesh.nelements)
    record = common.Record(shape[0] * shape[1])

    def assemble(u: np.ndarray, end: float) -> common.Assembled:
        field: Any = basis.interpolate(u)
        strain = PLANE.strain(np.asarray(sym_grad(field)), first=True)
        with record.measure("material"):
            update = state.update({"strain": strain, "t": end, **grains})
        if update.has_failed:
            return None
        with record.measure("assembly"):
            stress = PLANE.stress(update["stress"], first=True)
            tangent = PLANE.tangent(update.tangent("stress", "strain"), first=True)
            matrix = stiffness.assemble(basis, tangent=tangent)
            return internal.assemble(basis, stress=stress), matrix

    top = basis.get_dofs(lambda x: x[1] > 1 - 1e-9).all("u^2")
    left = basis.get_dofs(lambda x: x[0] < 1e-9).all("u^1")
    bottom = basis.get_dofs(lambda x: x[1] < 1e-9).all("u^2")
    fixed = np.concatenate([left, bottom, top])
    common.Problem(assemble, basis.N, fixed, top, state, record).stretch(common.STRETCH[name])
    return record, state


def main(folder: Path, size: int = 12) -> dict[str, common.Record]:
    """Both materials."""
    return common.stretch_plates("scikit-fem", stretch, folder, size)


if __name__ == "__main__":
    main(common.find_folder(sys.argv))
