"""Lattice Boltzmann: stencils, what is computed of distributions, walls and faces, the step.

In: blocks of a file with a LatticeBoltzmannProblem. Out: steps on fields with a number for each
direction of a stencil.
"""

from ingot.fields.lbm import boundaries, collisions, forces, hydrodynamics, phases
from ingot.fields.lbm.setting import LatticeSetting, lattice_quirks, read_stencil
from ingot.fields.lbm.stencils import STENCILS

__all__ = [
    "STENCILS", "LatticeSetting", "boundaries", "collisions", "forces",
    "hydrodynamics", "lattice_quirks", "phases", "read_stencil",
]  # fmt: skip
