"""Random distributions through boundaries and collisions, against plain NumPy."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis.strategies import integers, sampled_from

from ingot.fields.lbm.stencils import STENCILS, moments
from tests.fields.lbm import oracle
from tests.fields.lbm.cases import COLLISION, DENSITY, VELOCITY, advance, lattice_input, started
from tests.fields.lbm.cases import equilibrium as equilibrium_block

SIZES = {"D2Q9": (5, 4), "D3Q19": (4, 3, 5), "D3Q27": (3, 4, 3)}
FACES = ("left", "right", "bottom", "top", "front", "back")


def draw(stencil: str, seed: int) -> tuple[Any, Any]:
    dice = np.random.default_rng(seed)
    e = np.array([way[: STENCILS[stencil].dim] for way in STENCILS[stencil].directions])
    w = np.array(STENCILS[stencil].weights)
    return e, w * (1 + 0.1 * dice.standard_normal((*SIZES[stencil], len(e))))


def faces_of(stencil: str, dice: Any) -> list[str]:
    known = FACES[: 2 * STENCILS[stencil].dim]
    return list(dice.permutation(known)[: dice.integers(1, 4)])


def boundary(kind: str, face: str, number: float) -> dict[str, Any]:
    common = {"buffer": "f", "boundary": face}
    match kind:
        case "bounce":
            return {"type": "LBMBounceBack", "f_old": "fpc", **common}
        case "open":
            return {"type": "LBMMicroscopicZeroGradientBC", **common}
        case "speed":
            return {"type": "LBMFixedFirstOrderBC", "f": "f", "value": number, **common}
        case _:
            return {"type": "LBMFixedZerothOrderBC", "f": "f", "value": 1 + number, **common}


def expected(stencil: str, e: Any, f: Any, conditions: list[tuple[str, str, float]]) -> Any:
    arrived = oracle.stream(e, f)
    for kind, face, number in conditions:
        match kind:
            case "bounce":
                arrived = oracle.bounce_back(e, arrived, f, face)
            case "open":
                arrived = oracle.zero_gradient(arrived, face)
            case "speed":
                arrived = oracle.fixed(stencil, e, arrived, face, speed=number, rho=None)
            case _:
                arrived = oracle.fixed(stencil, e, arrived, face, speed=None, rho=1 + number)
    rho = arrived.sum(-1)
    u = arrived @ e / rho[..., None]
    feq = oracle.equilibrium(stencil, e, rho, u)
    return arrived, rho, u, feq + (1 - 1 / 0.8) * (arrived - feq)


def check(stencil: str, seed: int, folder: Path, *, jit: bool) -> None:
    dice = np.random.default_rng(seed)
    e, f = draw(stencil, seed)
    kinds = ("bounce", "open", "speed", "density")
    conditions = [
        (str(dice.choice(kinds)), face, float(dice.uniform(-0.1, 0.1)))
        for face in faces_of(stencil, dice)
    ]
    blocks = {f"b{at}": boundary(*each) for at, each in enumerate(conditions)}
    more = "[Postprocessors]\n[mean]\ntype = TensorAveragePostprocessor\nbuffer = f\n[]\n[]"
    run = started(lattice_input(SIZES[stencil], stencil, boundary=blocks, more=more), folder,
                  jit=jit)  # fmt: skip
    run.state.buffers["fpc"] = torch.from_numpy(f.copy())
    advance(run)
    arrived, rho, u, collided = expected(stencil, e, f, conditions)
    found = run.state.buffers
    for name, value in (("f", arrived), ("fpc", collided)):
        assert np.abs(found[name].numpy() - value).max() < 1e-13, (name, conditions)
    if not jit:
        assert np.abs(found["rho"].numpy() - rho).max() < 1e-13
        assert np.abs(found["u"].numpy() - u).max() < 1e-13


@given(seed=integers(0, 2**31), stencil=sampled_from(list(STENCILS)))
@settings(max_examples=25, deadline=None)
def test_a_step_with_random_boundaries_is_that_of_plain_loops(
    seed: int, stencil: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    check(stencil, seed, tmp_path_factory.mktemp("lattice"), jit=False)


@pytest.mark.parametrize(("stencil", "seed"), [("D2Q9", 3), ("D2Q9", 11), ("D3Q19", 5)])
def test_a_compiled_step_is_that_of_plain_loops(stencil: str, seed: int, tmp_path: Path) -> None:
    check(stencil, seed, tmp_path, jit=True)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("stencil", list(STENCILS))
def test_every_compiled_step_is_that_of_plain_loops(
    stencil: str, seed: int, tmp_path: Path
) -> None:
    check(stencil, seed, tmp_path, jit=True)


@pytest.mark.parametrize("compatible", [False, True])
@pytest.mark.parametrize("projection", [False, True])
@pytest.mark.parametrize("stencil", list(STENCILS))
def test_moments_relax_as_their_matrices_say(
    stencil: str, projection: bool, compatible: bool, tmp_path: Path
) -> None:
    e, f = draw(stencil, 7)
    lattice, tau = STENCILS[stencil], 0.7
    collision = {**COLLISION, "type": "LBMMRTCollision", "tau0": tau,
                 "projection": str(projection).lower()}  # fmt: skip
    solve = {"rho": DENSITY, "u": VELOCITY, "feq": equilibrium_block("feq"), "c": collision}
    run = started(lattice_input(SIZES[stencil], stencil, solve=solve, compatible=compatible),
                  tmp_path)  # fmt: skip
    run.state.buffers["fpc"] = torch.from_numpy(f.copy())
    advance(run)
    arrived = oracle.stream(e, f)
    rho = arrived.sum(-1)
    feq = oracle.equilibrium(stencil, e, rho, arrived @ e / rho[..., None])
    rest = arrived - feq
    rest = oracle.projected(stencil, e, rest) if projection else rest
    m = moments(lattice, compatible=compatible)
    rates = np.array(lattice.rates)
    rates[list(lattice.shear)] = 1 / tau
    if not compatible:
        rates[list(lattice.momentum)] = 1 / tau
    expected = feq + rest - np.einsum("ij,...j->...i", np.linalg.inv(m) @ np.diag(rates) @ m, rest)
    assert np.abs(run.state.buffers["fpc"].numpy() - expected).max() < 1e-13


@pytest.mark.parametrize("kind", ["LBMSmagorinskyCollision", "LBMSmagorinskyMRTCollision"])
@pytest.mark.parametrize("compatible", [False, True])
def test_eddies_solve_for_their_relaxation_time(
    kind: str, compatible: bool, tmp_path: Path
) -> None:
    e, f = draw("D2Q9", 2)
    lattice, tau0, strength = STENCILS["D2Q9"], 0.6, 0.1
    collision = {**COLLISION, "type": kind, "tau0": tau0, "Cs": strength}
    solve = {"rho": DENSITY, "u": VELOCITY, "feq": equilibrium_block("feq"), "c": collision}
    run = started(lattice_input(SIZES["D2Q9"], "D2Q9", solve=solve, compatible=compatible),
                  tmp_path)  # fmt: skip
    run.state.buffers["fpc"] = torch.from_numpy(f.copy())
    advance(run)
    arrived = oracle.stream(e, f)
    rho = arrived.sum(-1)
    feq = oracle.equilibrium("D2Q9", e, rho, arrived @ e / rho[..., None])
    rest, collided = arrived - feq, np.empty_like(f)
    m = moments(lattice, compatible=compatible)
    for cell in itertools.product(*map(range, SIZES["D2Q9"])):
        stress = np.einsum("i,ia,ib->ab", rest[cell], e, e)
        size = abs(stress[0, 1]) if compatible else np.sqrt((stress * stress).sum() / 2)
        mean = rho.mean() if compatible else rho[cell]
        tau = tau0
        for _ in range(200):  # the viscosity of eddies is strength times the strain rate
            tau = tau0 + 3 * strength * 3 * size / (mean * tau)
        rates = np.array(lattice.rates)
        rows = (*lattice.shear, *(() if compatible else lattice.momentum))
        rates[list(rows)] = 1 / tau
        matrix = np.linalg.inv(m) @ np.diag(rates) @ m if "MRT" in kind else np.eye(9) / tau
        collided[cell] = feq[cell] + rest[cell] - matrix @ rest[cell]
    assert np.abs(run.state.buffers["fpc"].numpy() - collided).max() < 1e-12
