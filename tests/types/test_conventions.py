"""Layouts of hosts and the stored components are the same tensors."""

import numpy as np
import pytest
import torch

from ingot import IngotError
from ingot.hosts import ABAQUS, PLANE, TENSOR, VOIGT, Convention
from ingot.types import SR2, r2_from_sr2

CONVENTIONS = (TENSOR, PLANE, VOIGT, ABAQUS)
POINTS = [(), (0,), (4,), (2, 3)]
ORDERS = {"Voigt": ((0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1)),
          "Abaqus": ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))}  # fmt: skip


def full_from(stored: np.ndarray) -> np.ndarray:
    """The 3x3 tensor, by the algebra of kinds."""
    return np.asarray(r2_from_sr2(SR2(torch.tensor(stored))).data)


def host_strain(convention: Convention, full: np.ndarray) -> np.ndarray:
    """What a host has of a strain, written out."""
    if convention.shape == (6,):
        places = ORDERS[convention.name]
        return np.stack([full[..., i, j] * (1 if i == j else 2) for i, j in places], -1)
    size = convention.shape[0]
    return full[..., :size, :size]


def host_stress(convention: Convention, full: np.ndarray) -> np.ndarray:
    if convention.shape == (6,):
        return np.stack([full[..., i, j] for i, j in ORDERS[convention.name]], -1)
    size = convention.shape[0]
    return full[..., :size, :size]


def draw_strain(convention: Convention, points: tuple[int, ...], seed: int) -> np.ndarray:
    """Stored components, none across the plane where the convention knows none."""
    stored = np.random.default_rng(seed).normal(size=(*points, 6))
    if convention is PLANE:
        stored[..., 2:5] = 0
    return stored


@pytest.mark.parametrize("points", POINTS, ids=str)
@pytest.mark.parametrize("convention", CONVENTIONS, ids=lambda c: c.name)
def test_strain_and_stress_are_the_tensors(convention: Convention, points: tuple[int, ...]) -> None:
    stored = draw_strain(convention, points, 1)
    strain = host_strain(convention, full_from(stored))
    np.testing.assert_allclose(convention.strain(strain), stored, atol=1e-15)
    stress = np.random.default_rng(2).normal(size=(*points, 6))
    expected = host_stress(convention, full_from(stress))
    np.testing.assert_allclose(convention.stress(stress), expected, atol=1e-15)


@pytest.mark.parametrize("points", POINTS, ids=str)
@pytest.mark.parametrize("convention", CONVENTIONS, ids=lambda c: c.name)
def test_the_tangent_maps_host_strain_to_host_stress(
    convention: Convention, points: tuple[int, ...]
) -> None:
    stiffness = np.random.default_rng(3).normal(size=(*points, 6, 6))
    stored = draw_strain(convention, points, 4)
    strain = host_strain(convention, full_from(stored))
    count, rank = int(np.prod(points)), int(np.prod(convention.shape))
    tangent = convention.tangent(stiffness).reshape(count, rank, rank)
    stress = np.einsum("nij,nj->ni", tangent, strain.reshape(count, rank))
    expected = convention.stress(np.einsum("...ij,...j->...i", stiffness, stored))
    np.testing.assert_allclose(stress, expected.reshape(count, rank), atol=1e-13)


@pytest.mark.parametrize("convention", CONVENTIONS, ids=lambda c: c.name)
def test_work_is_the_same_in_every_layout(convention: Convention) -> None:
    strain, stress = draw_strain(convention, (5,), 5), np.random.default_rng(6).normal(size=(5, 6))
    theirs = host_strain(convention, full_from(strain)) * convention.stress(stress)
    work = theirs.reshape(5, -1).sum(-1)
    np.testing.assert_allclose(work, (strain * stress).sum(-1), atol=1e-13)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("points", POINTS, ids=str)
@pytest.mark.parametrize("convention", CONVENTIONS, ids=lambda c: c.name)
def test_torch_and_components_first_are_the_same(
    convention: Convention, points: tuple[int, ...], dtype: torch.dtype
) -> None:
    stored = torch.tensor(draw_strain(convention, points, 7), dtype=dtype)
    ours = np.asarray(stored)
    for name in ("stress", "strain", "tangent"):
        x = stored if name == "stress" else stored[..., None] * stored[..., None, :]
        if name == "strain":
            x = torch.tensor(host_strain(convention, full_from(ours)).copy())
        plain = getattr(convention, name)(x)
        assert plain.dtype == dtype
        rank = len(convention.shape) * (2 if name == "tangent" else 1)
        if name == "strain":
            turned = convention.strain(x.permute(*range(len(points), x.ndim), *range(len(points))),
                                       first=True)  # fmt: skip
        else:
            turned = getattr(convention, name)(x.numpy(), first=True)
            turned = torch.tensor(np.moveaxis(turned, range(rank), range(-rank, 0)).copy())
            assert turned.dtype == dtype
        torch.testing.assert_close(plain, turned, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("first", "shape"), [(False, (4, 3, 2)), (True, (3, 4, 3)), (False, (3,))])
def test_a_wrong_shape_is_told(first: bool, shape: tuple[int, ...]) -> None:
    with pytest.raises(IngotError, match=r"tensor components have shape \(3, 3\)"):
        TENSOR.strain(np.zeros(shape), first=first)


def test_lists_are_arrays_and_numbers_are_refused() -> None:
    six = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert np.array_equal(VOIGT.strain(six), VOIGT.strain(np.array(six)))
    for wrong in (3.0, "strain", None):
        with pytest.raises(IngotError, match="wrong-shape"):
            VOIGT.strain(wrong)
