"""Finite volumes in one dimension: cells, interior edges, boundary conditions, sources."""

import math
from typing import Literal

from ingot.catalog.declare import Fixed, Listed, Parameter, model, named
from ingot.types import Scalar, append, difference, exp, heaviside, positions, trim, where


@model(gives="edge_values")
def LinearlyInterpolateToCellEdges(
    *,
    cell_values: Parameter[Scalar["cell"]],
    cell_centers: Listed[Fixed[Scalar["cell"]]],
    cell_edges: Listed[Fixed[Scalar["cell+1"]]],
) -> Scalar["cell-1"]:
    r"""Values on interior edges, $q_e = ((x_{i+1} - e) q_i + (e - x_i) q_{i+1}) / (x_{i+1} - x_i)$.

    cell_values: values at the cell centres
    cell_centers: where the centres are
    cell_edges: where all edges are, boundaries included
    """
    edge = trim(cell_edges, "cell", first=1, last=1)
    left, right = trim(cell_centers, "cell", last=1), trim(cell_centers, "cell", first=1)
    below, above = trim(cell_values, "cell", last=1), trim(cell_values, "cell", first=1)
    return ((right - edge) * below + (edge - left) * above) / (right - left)


@model(gives="grad_u")
def FiniteVolumeGradient(
    u: Scalar["cell"],
    *,
    dx: Fixed[Scalar["cell-1"]],
    prefactor: Parameter[Scalar["cell-1"]] = 1.0,
) -> Scalar["cell-1"]:
    r"""The flux down a gradient, $g_e = -p_e (u_{e+1} - u_e) / \Delta x_e$.

    dx: distance between neighbours
    prefactor: conductivity, $p$
    """
    return -(prefactor / dx) * difference(u, "cell")


@model(gives="flux")
def FiniteVolumeUpwindedAdvectiveFlux(
    u: Scalar["cell"], v_edge: Scalar["cell-1"]
) -> Scalar["cell-1"]:
    r"""The advective flux of the upwind cell, $J_e = v_e (u_{e+1} + H(v_e)(u_e - u_{e+1}))$."""
    ahead = trim(u, "cell", first=1)
    return v_edge * (ahead - heaviside(v_edge) * difference(u, "cell"))


@model(gives=named("{input}_with_bc_{side}", option="output"))
def FiniteVolumeAppendBoundaryCondition(
    input: Scalar["cell"],
    *,
    bc_value: Listed[Fixed[Scalar]],
    side: Literal["left", "right"] = "left",
) -> Scalar["cell+1"]:
    """Edge values with one more at a boundary.

    bc_value: the value at the boundary
    side: which end it is put at
    """
    return append(input, bc_value, "cell", side=side)


@model(gives=named("state/dumped_source", option="dumped_source"))
def DumpInSmallestBin(
    magnitude: Scalar, *, cell_centers: Listed[Parameter[Scalar["cell"]]]
) -> Scalar["cell"]:
    r"""A source in the first cell alone, $s_0 = m$.

    cell_centers: where the centres are, of which the number counts
    """
    return where(positions(cell_centers, "cell") < 1.0, magnitude, 0.0)


@model(gives=named("state/smeared_source", option="smeared_source"))
def SmearedDeltaSource(
    magnitude: Scalar,
    location: Scalar,
    *,
    width: Parameter[Scalar],
    cell_centers: Listed[Parameter[Scalar["cell"]]],
) -> Scalar["cell"]:
    r"""A source around a point, $s_k = \frac{m}{w \sqrt{2 \pi}} e^{-((x_k - x_0) / w)^2 / 2}$.

    width: standard deviation, $w$
    cell_centers: where the centres are, $x_k$
    """
    distance = (cell_centers - location) / width
    return magnitude / (width * math.sqrt(2.0 * math.pi)) * exp(-0.5 * distance * distance)


@model(gives=named("state/x_hat", option="transformed_coordinate"))
def SemiInfiniteCoordinateTransform(coordinate: Scalar, *, shift: Parameter[Scalar]) -> Scalar:
    r"""Half a line mapped to the unit interval, $\hat x = x / (x + s)$.

    shift: coordinate that is mapped to one half, $s$
    """
    return coordinate / (coordinate + shift)
