"""A plate with a hole in FEniCSx (dolfinx 0.5), of steel and of copper grains.

Stress and tangent are functions on quadrature elements, whose arrays a State fills.
"""

import sys
from pathlib import Path
from typing import Any

import basix
import common
import numpy as np
import ufl
from dolfinx import fem, mesh
from mpi4py import MPI
from petsc4py import PETSc
from scipy.sparse import csr_matrix

from ingot.hosts import PLANE, State

DEGREE = 2


def mesh_plate(size: int) -> mesh.Mesh:
    """The plate; corners of a quadrilateral are numbered row by row."""
    points, quads = common.grade_plate(size)
    corners = ufl.VectorElement("Lagrange", ufl.quadrilateral, 1)
    return mesh.create_mesh(MPI.COMM_SELF, quads[:, [0, 1, 3, 2]], points, ufl.Mesh(corners))


def flatten_strain(u: Any) -> Any:
    """The four components of a plane strain: quadrature elements hold vectors and matrices."""
    strain = ufl.sym(ufl.grad(u))
    return ufl.as_vector([strain[i, j] for i in (0, 1) for j in (0, 1)])


def stretch(name: str, size: int) -> tuple[common.Record, State, np.ndarray]:
    """Pull at the upper edge; also the number of every element before FEniCSx renumbered them."""
    plate = mesh_plate(size)
    space = fem.VectorFunctionSpace(plate, ("Lagrange", 1))
    cells = np.arange(plate.topology.index_map(2).size_local, dtype=np.int32)
    places, _ = basix.make_quadrature(basix.CellType.quadrilateral, DEGREE)
    scheme = {"degree": DEGREE, "quad_scheme": "default"}
    cell = plate.ufl_cell()
    four = ufl.VectorElement("Quadrature", cell, dim=4, **scheme)
    sixteen = ufl.TensorElement("Quadrature", cell, shape=(4, 4), **scheme)
    stress, tangent = (fem.Function(fem.FunctionSpace(plate, e)) for e in (four, sixteen))
    u, v, du = fem.Function(space), ufl.TestFunction(space), ufl.TrialFunction(space)
    dx = ufl.Measure("dx", plate, metadata={"quadrature_degree": DEGREE})
    force_form = fem.form(ufl.inner(stress, flatten_strain(v)) * dx)
    slope_form = fem.form(ufl.inner(tangent * flatten_strain(du), flatten_strain(v)) * dx)
    strain_at = fem.Expression(flatten_strain(u), places)

    shape = (len(cells), len(places))
    state = State(common.compile_material(name), shape)
    record = common.Record(shape[0] * shape[1])
    grains = common.turn_grains(name, len(cells))
    given = {n: x[plate.topology.original_cell_index] for n, x in grains.items()}

    def assemble(values: np.ndarray, end: float) -> common.Assembled:
        u.x.array[:] = values
        strain = PLANE.strain(strain_at.eval(cells).reshape(*shape, 2, 2))
        with record.measure("material"):
            update = state.update({"strain": strain, "t": end, **given})
        if update.has_failed:
            return None
        with record.measure("assembly"):
            stress.x.array[:] = PLANE.stress(update["stress"]).reshape(-1)
            tangent.x.array[:] = PLANE.tangent(update.tangent("stress", "strain")).reshape(-1)
            matrix: PETSc.Mat = fem.petsc.assemble_matrix(slope_form)
            matrix.assemble()
            rows, columns, entries = matrix.getValuesCSR()
            force = fem.petsc.assemble_vector(force_form).array.copy()
            return force, csr_matrix((entries, columns, rows))

    def find(axis: int, value: float) -> np.ndarray:
        part = space.sub(axis)
        whole, _ = part.collapse()
        found = fem.locate_dofs_geometrical((part, whole), lambda x: np.isclose(x[axis], value))
        return found[0]

    top = find(1, 1.0)
    fixed = np.concatenate([find(0, 0.0), find(1, 0.0), top])
    problem = common.Problem(assemble, len(u.x.array), fixed, top, state, record)
    problem.stretch(common.STRETCH[name])
    return record, state, np.asarray(plate.topology.original_cell_index)


def main(folder: Path, size: int = 12) -> dict[str, common.Record]:
    """Both materials."""
    return common.stretch_plates("FEniCSx", stretch, folder, size)


if __name__ == "__main__":
    main(common.find_folder(sys.argv))
