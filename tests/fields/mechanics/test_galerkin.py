"""Bodies in equilibrium, against dense solves, closed forms and published numbers."""

import math
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from ingot.errors import IngotError, IngotWarning
from ingot.fields import COMPUTES, Narrow, Result, Space, compute, space
from ingot.fields.computes.elasticity import (
    STRESSES,
    HyperElasticIsotropic,
    SmallStrainIsotropic,
)
from ingot.fields.computes.mechanics import smooth_waves
from ingot.fields.computes.projection import projected
from ingot.fields.computes.slopes import response
from ingot.fields.duals import derivative_along
from ingot.fields.matrices import ROOT2, entries, joined

from .cases import DE_GEUS, SOLVE, dense, simulated


def random_tangent(shape: tuple[int, ...], side: int, seed: int) -> Tensor:
    """A symmetric positive matrix over the entries of a gradient, at every point."""
    dice = torch.Generator().manual_seed(seed)
    roots = torch.randn(*shape, side**2, side**2, generator=dice, dtype=torch.float64)
    return roots @ roots.mT / side**2 + torch.eye(side**2, dtype=torch.float64)


@pytest.fixture
def linear_law() -> Iterator[str]:
    """A law of random numbers at every point, which a file may name while a test runs."""

    @compute(gives=("buffer", "tangent_operator"), unless={"tangent_operator": "dstressdstrain"})
    def RandomLaw(F: Narrow, space: Space, *, seed: int) -> tuple[Tensor, Tensor]:
        """A linear law.

        F: the deformation gradient
        seed: where its numbers start
        """
        side = F.shape[-1]
        slope = random_tangent(tuple(space.shape), side, seed)
        moved = F - torch.eye(side, dtype=F.dtype)
        stress = (slope @ moved.reshape(*space.shape, -1, 1)).reshape(F.shape)
        return stress, slope.reshape(*space.shape, *[side] * 4)

    yield "RandomLaw"
    del COMPUTES["RandomLaw"]


def text_of(sizes: tuple[int, ...], side: int, law: str, rate: np.ndarray, start: str = "") -> str:
    cells = "\n".join(f"n{axis} = {n}" for axis, n in zip("xyz", sizes, strict=False))
    numbers = " ".join(map(repr, rate.reshape(-1).tolist()))
    return SOLVE.format(dim=len(sizes), sizes=cells, side=side, law=law, rate=numbers, start=start)


SIZES = [(4,), (5,), (1,), (5, 4), (3, 3), (1, 6), (4, 1), (2, 2), (3, 4, 3), (2, 1, 5), (1, 1, 4)]


@pytest.mark.parametrize("preconditioner", ["NONE", "GREEN"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_a_solve_agrees_with_a_dense_one(
    sizes: tuple[int, ...], preconditioner: str, linear_law: str, tmp_path: Path
) -> None:
    for seed, side in enumerate({len(sizes), 3}):
        rate = np.random.default_rng(seed).normal(size=(side, side))
        law = f"[law]\ntype = {linear_law}\nbuffer = stress\nF = Fnew\nseed = {seed}\n[]"
        options = (
            f"TensorComputes/Solve/root/mech/preconditioner={preconditioner}",
            "TensorComputes/Solve/root/mech/tangent_convention=DERIVATIVE",
        )
        found = simulated(text_of(sizes, side, law, rate), tmp_path, *options)
        wanted = dense(random_tangent(sizes, side, seed), rate, sizes)
        moved = found.state.buffers["F"] - torch.eye(side, dtype=torch.float64)
        torch.testing.assert_close(moved, wanted, rtol=0, atol=1e-9)
        assert not [name for name in found.state.buffers if "#" in name]


@pytest.mark.parametrize("side", [1, 2, 3])
@pytest.mark.parametrize("law", [HyperElasticIsotropic, SmallStrainIsotropic])
def test_a_tangent_is_the_slope_of_the_stress(law: object, side: int) -> None:
    dice = torch.Generator().manual_seed(side)
    box = space((4, 3, 2)[:side])

    def drawn(*sizes: int) -> Tensor:
        return torch.rand(*box.shape, *sizes, generator=dice, dtype=torch.float64)

    bulk, shear = 1 + drawn(), 0.5 + drawn()
    start = torch.eye(side, dtype=torch.float64) + 0.3 * (drawn(side, side) - 0.5)
    along, other = drawn(side, side) - 0.5, drawn(side, side) - 0.5

    def stress(F: Tensor) -> Tensor:
        found = law(F=F, K=bulk, mu=shear, space=box)[0]  # type: ignore[operator]
        return found if found.shape[-1] != 6 else matrix(found, side)

    tangent = law(F=start, K=bulk, mu=shear, space=box)[1]  # type: ignore[operator]

    def slope(along: Tensor) -> Tensor:
        parts = response(tangent, entries(along, box), box, "TRANSPOSED")
        return joined(parts, (side, side), box)

    step = 1e-6
    difference = (stress(start + step * along) - stress(start - step * along)) / (2 * step)
    torch.testing.assert_close(slope(along), difference, rtol=1e-8, atol=1e-8)
    exact = derivative_along(
        lambda f: STRESSES[law](f, bulk, shear),  # type: ignore[index]
        entries(start, box), entries(along, box),
    )  # fmt: skip
    torch.testing.assert_close(
        joined(exact, (side, side), box), slope(along), rtol=1e-13, atol=1e-13
    )
    forth, back = (slope(along) * other).sum(), (slope(other) * along).sum()
    torch.testing.assert_close(forth, back, rtol=1e-12, atol=1e-12)


def matrix(six: Tensor, side: int) -> Tensor:
    """A symmetric matrix of six numbers in Mandel order."""
    xx, yy, zz, yz, xz, xy = six.unbind(-1)
    yz, xz, xy = yz / ROOT2, xz / ROOT2, xy / ROOT2
    rows = [torch.stack(row, -1) for row in ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))]
    return torch.stack(rows, -2)[..., :side, :side]


@pytest.mark.parametrize("sizes", [(5, 4), (3, 4, 5), (6, 1, 3)], ids=str)
def test_the_operator_is_symmetric_and_positive_on_gradients(sizes: tuple[int, ...]) -> None:
    side, box = len(sizes), space(sizes)
    dice = torch.Generator().manual_seed(1)
    tangent = random_tangent(sizes, side, 5).reshape(*sizes, *[side] * 4)

    def gradient() -> list[Tensor]:
        drawn = torch.randn(side**2, *sizes, generator=dice, dtype=torch.float64)
        return projected(list(drawn), smooth_waves(box), box)

    p, q = gradient(), gradient()
    again = projected(p, smooth_waves(box), box)
    for one, two in zip(p, again, strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=1e-13)

    def product(a: list[Tensor], b: list[Tensor]) -> float:
        stress = response(tangent, b, box, "DERIVATIVE")
        image = projected(stress, smooth_waves(box), box)
        return float(sum((x * y).sum() for x, y in zip(a, image, strict=True)))

    assert product(p, q) == pytest.approx(product(q, p), rel=1e-12)
    assert product(p, p) > 0


LAMINATE = """
    [thick]
      type = ParsedCompute
      buffer = inside
      expression = 'if(x < 3/7, 1, 0)'
      extra_symbols = true
      expand = REAL
    []
    [K]
      type = ParsedCompute
      buffer = K
      inputs = inside
      expression = '3 + 20*inside'
    []
    [mu]
      type = ParsedCompute
      buffer = mu
      inputs = inside
      expression = '1 + 7*inside'
    []
"""
SMALL_STRAIN = """
    [law]
      type = SmallStrainIsotropic
      buffer = stress
      F = Fnew
      K = K
      mu = mu
    []
"""


def backus() -> np.ndarray:
    """The stiffness of a stack of isotropic layers along x, in Mandel order, in closed form."""
    share = np.array([3 / 7, 4 / 7])
    bulk, shear = np.array([23.0, 3.0]), np.array([8.0, 1.0])
    lame = bulk - 2 * shear / 3
    normal = lame + 2 * shear

    def mean(x: np.ndarray) -> float:
        return float((share * x).sum())

    c11 = 1 / mean(1 / normal)
    c12 = c11 * mean(lame / normal)
    extra = c11 * mean(lame / normal) ** 2
    c22 = mean(normal - lame**2 / normal) + extra
    c23 = mean(lame - lame**2 / normal) + extra
    across, along = 1 / mean(1 / shear), mean(shear)
    found = np.diag([c11, c22, c22, 2 * along, 2 * across, 2 * across])
    found[0, 1:3] = found[1:3, 0] = c12
    found[1, 2] = found[2, 1] = c23
    return found


@pytest.mark.parametrize("preconditioner", ["NONE", "GREEN"])
@pytest.mark.parametrize("sizes", [(7,), (7, 3), (7, 1, 3)], ids=str)
def test_a_laminate_is_as_stiff_as_the_closed_form(
    sizes: tuple[int, ...], preconditioner: str, tmp_path: Path
) -> None:
    wanted, chosen = backus(), f"TensorComputes/Solve/root/mech/preconditioner={preconditioner}"
    for column, (i, j) in enumerate([(0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1)]):
        rate = np.zeros((3, 3))
        rate[i, j] += 0.5
        rate[j, i] += 0.5
        text = text_of(sizes, 3, SMALL_STRAIN, rate, LAMINATE)
        stress = simulated(text, tmp_path, chosen).state.buffers["stress"]
        mean = stress.mean(tuple(range(len(sizes)))).numpy() * (1 if i == j else ROOT2)
        np.testing.assert_allclose(mean, wanted[:, column], rtol=1e-8, atol=1e-9)


DIGEST = {
    "F_0": (0.997627836444, 1.00248826859, 1, 1.00082739508),
    "F_1": (0.0180317297271, 0.0570097837917, 0.029, 0.0335433806969),
    "F_3": (-0.0109748057013, 0.0280292182416, 0, 0.00465065101782),
    "F_5": (-0.00547344381268, 0.00547362702277, 0, 0.00378639002054),
    "F_8": (0.998500804176, 1.00172885786, 1, 1.00053432454),
    "disp_0": (0.00352859532617, 0.178683778582, 0.0911061869541, 0.0495022971425),
    "disp_2": (-0.0012475768276, 0.0012475768276, 0, -0.00122812847406),
    "sV": (0.0146358404061, 0.0638479596252, 0.0399758887718, 0.037071218184),
}
"""Least, largest and mean entry, and one entry, of Marlin's `mechanics_3d`."""


def check_digest(found: Result) -> None:
    fields = dict(found.state.buffers)
    for name, wanted in DIGEST.items():
        buffer, _, at = name.partition("_")
        value = fields[buffer]
        value = value.flatten(3)[..., int(at)] if at else value
        told = (value.min(), value.max(), value.mean(), value[5, 5, 5])
        assert list(map(float, told)) == pytest.approx(wanted, rel=1e-10, abs=1e-12), name


def test_a_hyperelastic_cube_is_as_published(tmp_path: Path) -> None:
    check_digest(simulated(DE_GEUS, tmp_path))


@pytest.mark.exhaustive
def test_a_compiled_cube_is_as_published(tmp_path: Path) -> None:
    check_digest(simulated(DE_GEUS, tmp_path, jit=True))


CUBE = ("Problem/marlin_compatible=false", "Executioner/num_steps=1", "TensorSolver/substeps=2",
        *(f"Domain/n{axis}=5" for axis in "xyz"), "Executioner/dt=0.4",
        *(f"TensorComputes/Solve/root/mech/{each}" for each in (
            "l_tol=1e-12", "nl_rel_tol=1e-11", "nl_abs_tol=1e-11", "l_max_its=500")))  # fmt: skip


def projector(sizes: tuple[int, ...]) -> np.ndarray:
    """The operator of de Geus et al. (2017), as its own fourth-order array over frequencies."""
    waves = np.meshgrid(*[np.fft.fftfreq(n, 1 / n) for n in sizes], indexing="ij")
    q = np.stack(waves)
    square = (q * q).sum(0)
    square[0, 0, 0] = 1
    unit = np.einsum("jxyz,lxyz->jlxyz", q, q) / square
    return np.einsum("im,jlxyz->ijlmxyz", np.eye(3), unit)


def test_the_cube_of_de_geus_is_in_equilibrium(tmp_path: Path) -> None:
    """By the published operator, written here with NumPy alone, and however it was solved."""
    plain = simulated(DE_GEUS, tmp_path, *CUBE).state.buffers
    green = "TensorComputes/Solve/root/mech/preconditioner=GREEN"
    other = simulated(DE_GEUS, tmp_path, *CUBE, green).state.buffers
    torch.testing.assert_close(plain["F"], other["F"], rtol=0, atol=1e-9)
    torch.testing.assert_close(plain["stress"], other["stress"], rtol=0, atol=1e-9)
    mean = plain["F"].mean((0, 1, 2))
    wanted = torch.eye(3, dtype=torch.float64)
    wanted[0, 1] = 0.4
    torch.testing.assert_close(mean, wanted, rtol=0, atol=1e-12)
    f = np.moveaxis(plain["F"].numpy(), (-2, -1), (0, 1))
    k, mu = plain["K"].numpy(), plain["mu"].numpy()
    strain = (np.einsum("kixyz,kjxyz->ijxyz", f, f) - np.eye(3)[..., None, None, None]) / 2
    trace = (k - 2 * mu / 3) * np.einsum("iixyz->xyz", strain)
    second = 2 * mu * strain + np.eye(3)[..., None, None, None] * trace
    first = np.einsum("ikxyz,kjxyz->ijxyz", f, second)
    spectrum = np.fft.fftn(first, axes=(2, 3, 4))
    left = np.fft.ifftn(
        np.einsum("ijlmxyz,mlxyz->ijxyz", projector((5, 5, 5)), spectrum), axes=(2, 3, 4)
    )
    assert np.abs(left).max() < 1e-9 * np.abs(first).max()
    # a gradient: its curl vanishes, as that of every field the operator leaves alone
    moved = np.fft.fftn(f, axes=(2, 3, 4))
    kept = np.einsum("ijlmxyz,mlxyz->ijxyz", projector((5, 5, 5)), moved)
    moved[..., 0, 0, 0] = 0
    np.testing.assert_allclose(kept, moved, atol=1e-10)


def test_a_green_operator_needs_fewer_iterations(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mech, counts = "TensorComputes/Solve/root/mech", {}
    for chosen in ("NONE", "GREEN"):
        caplog.clear()
        more = (f"{mech}/preconditioner={chosen}", f"{mech}/verbose=true", f"{mech}/l_tol=1e-6")
        with caplog.at_level("INFO", logger="ingot"):
            simulated(DE_GEUS, tmp_path, *CUBE, *more)
        newton = [r.args for r in caplog.records if "Newton" in r.msg]
        counts[chosen] = sum(int(args[2]) for args in newton if isinstance(args, tuple))  # type: ignore[arg-type]
    assert counts["GREEN"] < 0.8 * counts["NONE"]


@pytest.mark.parametrize("compatible", ["true", "false"])
def test_conjugate_gradients_that_stop_early_are_told(compatible: str, tmp_path: Path) -> None:
    mech = "TensorComputes/Solve/root/mech"
    more = (*CUBE, f"Problem/marlin_compatible={compatible}", f"{mech}/nl_rel_tol=1e-4",
            f"{mech}/l_max_its=")  # fmt: skip
    limits = {"500": False, "4": True}
    for limit, short in limits.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            simulated(DE_GEUS, tmp_path, *more[:-1], more[-1] + limit)
        told = [str(each.message) for each in caught if "not-converged" in str(each.message)]
        assert bool(told) == short
        assert all("stop at l_max_its = 4, short of l_tol = 1e-12" in each for each in told)
        assert len(set(told)) == int(short)


@pytest.mark.parametrize("law", ["HyperElasticIsotropic", "SmallStrainIsotropic"])
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in (1, 2))]
)
def test_a_law_differentiated_in_loops_is_its_tangent(law: str, seed: int, tmp_path: Path) -> None:
    """Compiled, directions are put through the law; direct, through the tangent that it gives."""
    draw = np.random.default_rng(seed)
    sizes = tuple(int(n) for n in draw.integers(3, 7, size=2 + seed % 2))
    side = 3 if seed else len(sizes)
    rate = 0.1 * draw.normal(size=(side, side))
    text = text_of(sizes, side, SMALL_STRAIN.replace("SmallStrainIsotropic", law), rate, LAMINATE)
    chosen = f"TensorComputes/Solve/root/mech/preconditioner={['NONE', 'GREEN'][seed % 2]}"
    direct, compiled = (
        simulated(text, tmp_path, chosen, jit=jit).state.buffers for jit in (False, True)
    )
    for name in ("F", "stress", "dstressdstrain"):
        torch.testing.assert_close(compiled[name], direct[name], rtol=0, atol=1e-9)
    assert direct.keys() == compiled.keys()


def test_quirks_are_told_once_and_refused_where_strict(tmp_path: Path) -> None:
    small = ("Executioner/num_steps=1", "TensorSolver/substeps=1",
             *(f"Domain/n{axis}=4" for axis in "xyz"))  # fmt: skip
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        simulated(DE_GEUS, tmp_path, *small)
    told = [str(each.message) for each in caught if isinstance(each.message, IngotWarning)]
    quirks = [text for text in told if "reference-quirk" in text]
    assert len(quirks) == 3  # the shear, the Nyquist wavenumbers, the displacements
    with pytest.raises(IngotError, match="marlin_compatible = false"):
        simulated(DE_GEUS, tmp_path, *small, strict=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", IngotWarning)
        right = "Problem/marlin_compatible=false"
        simulated(DE_GEUS, tmp_path, *small, right, strict=True)


MISTAKES = {
    "constitutive_model=lwa": "[Solve] has no compute 'lwa'",
    "constitutive_model=mech": "'mech' contains itself",
    "stress=sress": "'law' does not write 'sress'",
    "tangent_operator=tangent": "'law' does not write 'tangent'",
    "buffer=Fother": "'law' does not read 'Fother'",
    "preconditioner=JACOBI": "one of NONE, GREEN",
    "l_tolerance=1": "no option 'l_tolerance'",
    "applied_macroscopic_strain=K": "the applied strain has",
    "nl_max_its=1": "finds no equilibrium",
}


@pytest.mark.parametrize("option", MISTAKES)
def test_a_mistake_is_told(option: str, tmp_path: Path) -> None:
    with pytest.raises(IngotError) as error:
        simulated(DE_GEUS, tmp_path, *CUBE, f"TensorComputes/Solve/root/mech/{option}")
    assert MISTAKES[option] in str(error.value)
    assert "mech]" in str(error.value)


def test_single_precision_is_single_throughout(tmp_path: Path) -> None:
    loose = [f"TensorComputes/Solve/root/mech/{each}" for each in (
        "l_tol=1e-3", "nl_rel_tol=1e-5", "nl_abs_tol=1e-5")]  # fmt: skip
    for green in ("NONE", "GREEN"):
        chosen = f"TensorComputes/Solve/root/mech/preconditioner={green}"
        exact = simulated(DE_GEUS, tmp_path, *CUBE).state.buffers
        single = ("Domain/floating_precision=SINGLE", *loose, chosen)
        found = simulated(DE_GEUS, tmp_path, *CUBE, *single).state.buffers
        assert {value.dtype for value in found.values()} == {torch.float32}
        torch.testing.assert_close(found["F"].double(), exact["F"], rtol=0, atol=2e-4)


@pytest.mark.parametrize("law", ["SmallStrainIsotropic", "HyperElasticIsotropic"])
@pytest.mark.parametrize("compatible", ["true", "false"])
@pytest.mark.parametrize("tolerance", ["1e-2", "1e-5", "1e-12"])
def test_single_precision_converges_where_only_rounding_is_left(
    law: str, compatible: str, tolerance: str, tmp_path: Path
) -> None:
    rate = np.array([[0.01, 0.003], [0.0, -0.01]])
    text = text_of((7, 5), 2, SMALL_STRAIN.replace("SmallStrainIsotropic", law), rate, LAMINATE)
    exact = simulated(text, tmp_path, f"Problem/marlin_compatible={compatible}").state.buffers
    options = ("Domain/floating_precision=SINGLE", f"Problem/marlin_compatible={compatible}",
               f"TensorComputes/Solve/root/mech/l_tol={tolerance}")  # fmt: skip
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*not-converged")
        single = simulated(text, tmp_path, *options).state.buffers
    torch.testing.assert_close(single["F"].double(), exact["F"], rtol=0, atol=2e-6)


def test_a_body_without_a_load_is_left_alone(tmp_path: Path) -> None:
    text = "\n".join(
        line for line in DE_GEUS.splitlines() if "applied_macroscopic_strain" not in line
    )
    found = simulated(text, tmp_path, *CUBE).state.buffers
    wanted = torch.eye(3, dtype=torch.float64).expand_as(found["F"])
    torch.testing.assert_close(found["F"], wanted, rtol=0, atol=0)
    assert math.isclose(float(found["stress"].abs().max()), 0)
