"""The library of computes, one file per family; importing this declares them all."""

import ingot.fields.lbm  # noqa: F401  declares computes of lattices
from ingot.fields.computes import (
    basic,
    boundary,
    elasticity,
    galerkin,
    mechanics,
    models,
    parsed,
    spectral,
)

__all__ = [
    "basic",
    "boundary",
    "elasticity",
    "galerkin",
    "mechanics",
    "models",
    "parsed",
    "spectral",
]
