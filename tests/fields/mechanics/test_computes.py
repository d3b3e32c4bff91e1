"""Displacements, stresses, loads and homogeneous elasticity, against closed forms."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from ingot.fields import space
from ingot.fields.computes.mechanics import (
    ComputeDisplacements,
    ComputeVonMisesStress,
    FFTElasticChemicalPotential,
    FFTQuasistaticElasticity,
    MacroscopicShearTensor,
    PhaseMechanicsTest,
    TensorComponent,
)

from .cases import DE_GEUS, simulated


@pytest.mark.parametrize("sizes", [(8,), (7,), (6, 9), (5, 6, 7)], ids=str)
def test_displacements_of_nodes_are_those_of_the_field(sizes: tuple[int, ...]) -> None:
    dim = len(sizes)
    box = space(sizes, (0.5, -1.0, 0.0), (2.5, 2.0, 1.5))
    lengths = (2.0, 3.0, 1.5)[:dim]
    slope = torch.rand(dim, dim, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def phase(points: list[Tensor]) -> Tensor:
        lows = (0.5, -1.0, 0.0)
        return sum(
            (2 * math.pi * (x - low) / length for x, low, length in zip(points, lows, lengths)),  # noqa: B905
            torch.zeros(()).double(),
        )

    centres = [box.axes[axis].expand(box.shape) for axis in range(dim)]
    waves = torch.tensor([2 * math.pi / length for length in lengths], dtype=torch.float64)
    weights = torch.tensor([0.1, -0.2, 0.3][:dim], dtype=torch.float64)
    wavy = torch.cos(phase(centres))[..., None, None] * weights[:, None] * waves[None, :]
    unit = torch.eye(dim, dtype=torch.float64)
    found = ComputeDisplacements(F=unit + slope + wavy, space=box, compatible=False)
    ends = [(0.5, 2.5), (-1.0, 2.0), (0.0, 1.5)][:dim]
    nodes = [
        torch.linspace(a, b, n + 1, dtype=torch.float64).reshape(
            [-1 if at == axis else 1 for at in range(dim)]
        ).expand([each + 1 for each in sizes])
        for axis, ((a, b), n) in enumerate(zip(ends, sizes, strict=True))
    ]  # fmt: skip
    moved = torch.stack(nodes, -1) @ slope.T
    wanted = moved + torch.sin(phase(nodes))[..., None] * weights
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)
    stretched = ComputeDisplacements(F=unit + slope + wavy, space=box, compatible=True)
    assert stretched.shape == found.shape


def test_the_stress_of_von_mises_is_that_of_its_deviator() -> None:
    dice = torch.Generator().manual_seed(3)
    box = space((3, 2, 4))
    drawn = torch.randn(*box.shape, 3, 3, generator=dice, dtype=torch.float64)
    stress = (drawn + drawn.mT) / 2
    shape = (
        torch.eye(3, dtype=torch.float64)
        * stress.diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None]
    )
    wanted = torch.sqrt(1.5 * ((stress - shape) ** 2).sum((-2, -1)))
    for compatible in (True, False):
        found = ComputeVonMisesStress(space=box, stress=stress, compatible=compatible)
        torch.testing.assert_close(found, wanted)
    # the first stress of Piola and Kirchhoff of the same body
    gradient = torch.eye(3, dtype=torch.float64) + 0.2 * torch.randn(
        *box.shape, 3, 3, generator=dice, dtype=torch.float64
    )
    first = torch.linalg.det(gradient)[..., None, None] * stress @ torch.linalg.inv(gradient).mT
    found = ComputeVonMisesStress(space=box, stress=first, F=gradient, compatible=False)
    torch.testing.assert_close(found, wanted)
    root = math.sqrt(2)
    six = torch.stack([stress[..., i, j] * (1 if i == j else root) for i, j in (
        (0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1))], -1)  # fmt: skip
    torch.testing.assert_close(
        ComputeVonMisesStress(space=box, stress=six, compatible=True), wanted
    )


def test_in_the_plane_the_third_stress_counts() -> None:
    box = space((2, 2))
    stress = torch.tensor([[3.0, 1.0], [1.0, -2.0]], dtype=torch.float64).expand(2, 2, 2, 2)
    out = torch.full((2, 2), 0.5, dtype=torch.float64)
    right = math.sqrt(0.5 * (25 + 2.5**2 + 2.5**2 + 6))
    flat = math.sqrt(0.5 * (25 + 9 + 4 + 6))
    theirs = math.sqrt(0.5 * (25 + 6))
    cases = [
        (ComputeVonMisesStress(space=box, stress=stress, compatible=True), theirs),
        (ComputeVonMisesStress(space=box, stress=stress, compatible=False), flat),
        (ComputeVonMisesStress(space=box, stress=stress, stress_zz=out, compatible=True), right),
    ]
    for found, wanted in cases:
        torch.testing.assert_close(found, torch.full((2, 2), wanted, dtype=torch.float64))


def test_a_shear_is_reached_where_a_step_ends(tmp_path: Path) -> None:
    small = (*(f"Domain/n{axis}=3" for axis in "xyz"), "Executioner/num_steps=2",
             "TensorSolver/substeps=2")  # fmt: skip
    for compatible, wanted in (("true", 0.015), ("false", 0.02)):
        found = simulated(DE_GEUS, tmp_path, *small, f"Problem/marlin_compatible={compatible}")
        assert float(found.state.buffers["F"][..., 0, 1].mean()) == pytest.approx(wanted)


def test_a_shear_needs_two_rows() -> None:
    box = space((3,))
    one, time = torch.ones(3, 1, 1).double(), torch.tensor(0.1).double()
    with pytest.raises(ValueError, match="two rows"):
        MacroscopicShearTensor(space=box, time=time, end=time, F=one, compatible=True)


@pytest.mark.parametrize("sizes", [(31, 32), (12, 10, 11), (5, 4, 3)], ids=str)
def test_the_inclusion_lies_in_its_corner(sizes: tuple[int, ...]) -> None:
    width = 30 if len(sizes) == 2 else 9
    wanted = torch.zeros(sizes, dtype=torch.float64)
    corner = (slice(-width, None), slice(None, width), slice(-width, None))[: len(sizes)]
    wanted[corner] = 1
    assert torch.equal(PhaseMechanicsTest(space=space(sizes)), wanted)


def test_a_component_is_that_of_the_matrix() -> None:
    box = space((2, 3))
    field = torch.rand(2, 3, 2, 2, dtype=torch.float64)
    found = TensorComponent(input=field, space=box, row=1, column=0)
    assert torch.equal(found, field[..., 1, 0])
    with pytest.raises(ValueError, match="component 2, 0 of 2 x 2"):
        TensorComponent(input=field, space=box, row=2, column=0)


LAME = {"mu": 1.3, "lambda_": 2.1, "e0": 0.07}


def energy(c: Tensor, box: object) -> Tensor:
    """The elastic energy of a body that swells, its displacements being those in equilibrium."""
    spectrum = box.forward(c)  # type: ignore[attr-defined]
    moved = FFTQuasistaticElasticity(cbar=spectrum, space=box, compatible=False, **LAME)
    spectra = [box.forward(u) for u in moved]  # type: ignore[attr-defined]
    gradient = [[box.derivative(s, axis) for axis in range(3)] for s in spectra]  # type: ignore[attr-defined]
    strain = torch.stack(
        [torch.stack([(gradient[i][j] + gradient[j][i]) / 2 for j in range(3)], -1)
         for i in range(3)], -2
    )  # fmt: skip
    elastic = strain - LAME["e0"] * c[..., None, None] * torch.eye(3, dtype=torch.float64)
    trace = elastic.diagonal(dim1=-2, dim2=-1).sum(-1)
    density = LAME["lambda_"] / 2 * trace**2 + LAME["mu"] * (elastic**2).sum((-2, -1))
    return density.sum()


def test_the_chemical_potential_is_the_slope_of_the_energy() -> None:
    box = space((5, 3, 7))
    dice = torch.Generator().manual_seed(2)
    c, along = torch.randn(2, 5, 3, 7, generator=dice, dtype=torch.float64)
    moved = FFTQuasistaticElasticity(cbar=box.forward(c), space=box, compatible=False, **LAME)
    potential = box.inverse(
        FFTElasticChemicalPotential(
            displacements=moved, cbar=box.forward(c), space=box, compatible=False, **LAME
        )
    )
    h = 1e-5
    slope = (energy(c + h * along, box) - energy(c - h * along, box)) / (2 * h)
    assert float((potential * along).sum()) == pytest.approx(float(slope), rel=1e-8)
    other = FFTElasticChemicalPotential(
        displacements=moved, cbar=box.forward(c), space=box, compatible=True, **LAME
    )
    torch.testing.assert_close(box.inverse(other), -potential)


def test_compatible_displacements_are_the_published_formula() -> None:
    """The matrix of each wavevector solved by NumPy."""
    box, sizes = space((4, 3, 5)), (4, 3, 5)
    c = np.random.default_rng(0).normal(size=sizes)
    mu, lame, e0 = LAME["mu"], LAME["lambda_"], LAME["e0"]
    q = 2j * np.pi * np.stack(
        np.meshgrid(*[np.fft.fftfreq(n, 1 / n) for n in sizes[:2]],
                    np.fft.rfftfreq(5, 1 / 5), indexing="ij"), -1
    )  # fmt: skip
    matrix = (lame + mu) * q[..., :, None] * q[..., None, :]
    matrix += mu * (q * q).sum(-1)[..., None, None] * np.eye(3)
    matrix[0, 0, 0] = np.eye(3)
    right = q * (2 * e0 * (3 * lame + mu) * np.fft.rfftn(c))[..., None]
    wanted = np.fft.irfftn(np.linalg.solve(matrix, right[..., None])[..., 0], sizes, axes=(0, 1, 2))
    found = FFTQuasistaticElasticity(
        cbar=box.forward(torch.from_numpy(c)), space=box, compatible=True, **LAME
    )
    np.testing.assert_allclose(torch.stack(found, -1).numpy(), wanted, atol=1e-12)
