"""Packages as user materials, called from Fortran, against the same packages called from Python."""

import re
import shutil
import struct
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingot
from ingot import compile_model, read
from ingot.codegen.cpu_levels import choose_levels
from ingot.errors import IngotError
from ingot.hit import read_text
from ingot.package.stages import advance, load
from ingot.package.target import Target
from tests.execute.test_single_precision import MODELS
from tests.hosts.called import call_apart, call_umat, call_vumat

HERE = Path(__file__).parent
EXAMPLE = HERE.parents[1] / "examples" / "viscoplastic.i"
FORTRAN = shutil.which("gfortran")
needs_fortran = pytest.mark.skipif(FORTRAN is None, reason="gfortran is not installed")
ROOT = 0.70710678118654752440
UMAT_ORDER, VUMAT_ORDER = [0, 1, 2, 5, 4, 3], [0, 1, 2, 5, 3, 4]
PROMOTED = ("yield.yield_stress", "hardening.saturated_hardening")
PROPS = (210.0, 90.0)

FINITE = """
[Models]
  [finite]
    type = LogarithmicStrain
    model = 'model'
    jaumann_tangent = 'jaumann_tangent'
  []
[]
"""

FIELDS = """
[Models]
  [thermal]
    type = ThermalEigenstrain
    reference_temperature = 300
    CTE = 1e-5
  []
  [elastic_strain]
    type = SR2LinearCombination
    from = 'strain eigenstrain'
    to = 'elastic_strain'
    weights = '1 -1'
  []
  [elasticity]
    type = LinearIsotropicElasticity
    coefficients = '200000 0.3'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
    strain = 'elastic_strain'
  []
  [stored]
    type = ScalarLinearCombination
    from = 'temperature phase phase~1 age~1'
    to = 'SSE'
    weights = '1 2 4 8'
  []
  [dissipated]
    type = ScalarLinearCombination
    from = 'SPD~1 phase'
    to = 'SPD'
    weights = '1 1'
  []
  [grow]
    type = ScalarLinearCombination
    from = 'age~1 phase'
    to = 'age'
    weights = '1 1'
  []
  [model]
    type = ComposedModel
    models = 'thermal elastic_strain elasticity stored dissipated grow'
    additional_outputs = 'age SPD'
  []
[]
"""


@dataclass(frozen=True)
class Material:
    """A package and its library."""

    folder: Path

    @property
    def library(self) -> Path:
        return self.folder / f"{self.folder.parent.name}-{choose_levels()[0]}.so"

    def load(self) -> Any:
        return ingot.load(self.folder.parent)


def compile_material(text: str, name: str, folder: Path, **options: Any) -> Material:
    place = folder / "material.i"
    place.write_text(text)
    target = Target(output_dir=folder, umat=True, baseline=False, **options)
    return Material(compile_model(read(place), name, target).folder)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Material:
    folder = tmp_path_factory.mktemp("small")
    return compile_material(EXAMPLE.read_text(), "model", folder, parameter=PROMOTED)


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Material:
    folder = tmp_path_factory.mktemp("single")
    text = EXAMPLE.read_text().replace("abs_tol = 1e-10", "abs_tol = 1e-5")
    return compile_material(text, "model", folder, parameter=PROMOTED, dtype="float32")


@pytest.fixture(scope="module")
def finite(tmp_path_factory: pytest.TempPathFactory) -> Material:
    folder = tmp_path_factory.mktemp("finite")
    return compile_material(EXAMPLE.read_text() + FINITE, "finite", folder)


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A driver linked with the library of a material."""
    folder = tmp_path_factory.mktemp("drivers")

    def link(material: Material, source: str, kind: int = 8) -> Path:
        library = material.library.resolve()
        program = folder / f"{source}-{abs(hash(library))}-{kind}"
        if not program.exists():
            subprocess.run(
                [str(FORTRAN), "-O0", "-w", f"-DWP={kind}", str(HERE / source), str(library),
                 f"-Wl,-rpath,{library.parent}", "-o", str(program)], check=True, cwd=folder,
            )  # fmt: skip
        return program

    return link


def to_bits(numbers: Iterable[float]) -> list[str]:
    return [f"{struct.unpack('<Q', struct.pack('<d', float(x)))[0]:016X}" for x in numbers]


def from_bits(words: Sequence[str]) -> np.ndarray:
    return np.array([struct.unpack("<d", struct.pack("<Q", int(w, 16)))[0] for w in words])


@dataclass(frozen=True, kw_only=True)
class Path1D:
    """A path of one point."""

    shape: tuple[int, int] = (3, 3)
    states: int = 7
    begin: tuple[float, ...] = ()
    props: tuple[float, ...] = PROPS
    dtime: float = 0.5
    temperature: tuple[float, ...] = ()
    first_temperature: float = 0.0
    fields: Any = None
    gradients: Any = None
    rotations: Any = None


def drive(program: Path, path: Path1D, strains: np.ndarray) -> dict[str, np.ndarray]:
    """What the steps of a path give, by name and step."""
    ntens, steps = sum(path.shape), len(strains)
    count = 0 if path.fields is None else path.fields.shape[1]
    head = [*path.shape, path.states, len(path.props), count, steps]
    words = to_bits([path.dtime])
    words += to_bits(path.begin or [0.0] * path.states) + to_bits(path.props)
    words += to_bits([path.first_temperature])
    unit = np.eye(3)
    for k in range(steps):
        gradient = unit if path.gradients is None else path.gradients[k]
        turn = unit if path.rotations is None else path.rotations[k]
        heat = path.temperature[k] if path.temperature else 0.0
        words += to_bits(strains[k]) + to_bits(gradient.T.ravel()) + to_bits(turn.T.ravel())
        words += to_bits([heat]) + to_bits([] if path.fields is None else path.fields[k])
    text = " ".join(map(str, head)) + "\n" + "\n".join(words) + "\n"
    done = subprocess.run([str(program)], input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    rows = from_bits(done.stdout.split()).reshape(steps, -1)
    sizes = {"stress": ntens, "ddsdde": ntens * ntens, "ddsddt": ntens, "statev": path.states,
             "rest": 4}  # fmt: skip
    found, at = {}, 0
    for name, size in sizes.items():
        found[name] = rows[:, at : at + size]
        at += size
    found["ddsdde"] = found["ddsdde"].reshape(steps, ntens, ntens).transpose(0, 2, 1)
    return found


def voigt_of(stress: np.ndarray, order: Sequence[int]) -> np.ndarray:
    return np.array([stress[m] * (1.0 if m < 3 else ROOT) for m in order])


def ddsdde_of(block: np.ndarray, order: Sequence[int]) -> np.ndarray:
    factor = [[(1.0, ROOT, 0.5)[(a > 2) + (b > 2)] for b in order] for a in order]
    return np.asarray(block)[np.ix_(order, order)] * np.array(factor)


def mandel_of(strain: np.ndarray, order: Sequence[int]) -> np.ndarray:
    found = np.zeros(6)
    for m, x in zip(order, strain, strict=True):
        found[m] = x * (1.0 if m < 3 else ROOT)
    return found


def draw_strains(seed: int, steps: int, ntens: int, size: float = 1.5e-3) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(steps, ntens)) * size


def step_in_python(model: Any, inputs: Mapping[str, Any]) -> tuple[Any, Any]:
    given = {n: np.asarray(x, dtype=float) for n, x in inputs.items()}
    return model(given), model.jacobian(given)


@needs_fortran
@pytest.mark.parametrize(("shape", "order"), [((3, 3), UMAT_ORDER), ((3, 1), [0, 1, 2, 5])])
def test_a_point_has_the_bits_of_python(
    small: Material, build: Any, shape: tuple[int, int], order: list[int]
) -> None:
    steps = 12
    strains = draw_strains(1, steps, len(order))
    found = drive(build(small, "umat_driver.f90"), Path1D(shape=shape), strains)
    model = small.load()
    for name, value in zip(PROMOTED, PROPS, strict=True):
        model.set_parameter(name, value)
    plastic, equivalent, total, t = np.zeros(6), 0.0, np.zeros(len(order)), 0.0
    for k in range(steps):
        total = total + strains[k]
        outputs, blocks = step_in_python(model, {
            "strain": mandel_of(total, order), "plastic_strain~1": plastic,
            "equivalent_plastic_strain~1": equivalent, "t": t + 0.5, "t~1": t,
        })  # fmt: skip
        plastic, equivalent, t = (
            outputs["plastic_strain"],
            outputs["equivalent_plastic_strain"],
            t + 0.5,
        )
        assert np.array_equal(found["stress"][k], voigt_of(outputs["stress"], order))
        assert np.array_equal(found["ddsdde"][k], ddsdde_of(blocks["stress"]["strain"], order))
        assert np.array_equal(found["statev"][k], [*plastic, float(equivalent)])
        assert found["rest"][k, 3] == 1.0
    assert float(equivalent) > 1e-3


@needs_fortran
def test_plane_stress_has_none_across_and_a_consistent_tangent(small: Material, build: Any) -> None:
    program, order, steps = build(small, "umat_driver.f90"), [0, 1, 5], 8
    strains = draw_strains(2, steps, 3)
    path = Path1D(shape=(2, 1), states=8)
    found = drive(program, path, strains)
    model = small.load()
    for name, value in zip(PROMOTED, PROPS, strict=True):
        model.set_parameter(name, value)
    old, total, t = np.zeros(8), np.zeros(3), 0.0
    for k in range(steps):
        total = total + strains[k]
        strain = mandel_of(total, order)
        strain[2] = found["statev"][k, 7]
        outputs, blocks = step_in_python(model, {
            "strain": strain, "plastic_strain~1": old[:6],
            "equivalent_plastic_strain~1": old[6], "t": t + 0.5, "t~1": t,
        })  # fmt: skip
        old, t = found["statev"][k], t + 0.5
        stress = outputs["stress"]
        size = np.abs(stress).max()
        assert abs(stress[2]) <= 1e-9 * size
        np.testing.assert_allclose(
            found["stress"][k], voigt_of(stress, order), rtol=1e-13, atol=1e-13 * size
        )
        c = np.asarray(blocks["stress"]["strain"])
        condensed = c - np.outer(c[:, 2], c[2]) / c[2, 2]
        np.testing.assert_allclose(
            found["ddsdde"][k], ddsdde_of(condensed, order), rtol=1e-12, atol=1e-7
        )
    for column in range(3):
        h = 1e-7
        moved = [strains.copy() for _ in range(2)]
        moved[0][-1, column] += h
        moved[1][-1, column] -= h
        up, down = (drive(program, path, m)["stress"][-1] for m in moved)
        np.testing.assert_allclose(
            found["ddsdde"][-1][:, column], (up - down) / (2 * h), rtol=2e-5, atol=2e-5 * 2e5
        )


@pytest.mark.parametrize("which", ["small", pytest.param("finite", marks=pytest.mark.exhaustive)])
def test_plane_stress_in_single_precision_is_near_double_and_seldom_cut(
    which: str, single: Material, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Strains are off by units in their last place, stresses by what such strains make of them."""
    exact: Material = request.getfixturevalue(which)
    rounded, props = single, PROPS
    if which == "finite":
        text = EXAMPLE.read_text().replace("abs_tol = 1e-10", "abs_tol = 1e-5")
        rounded = compile_material(text + FINITE, "finite", tmp_path, dtype="float32")
        props = ()
    source = np.random.default_rng(8)
    cut = steps = 0
    for _ in range(150):
        size, dtime = 10 ** source.uniform(-4, -2), 10 ** source.uniform(-2, 2)
        statev, stran, before = np.zeros(8), np.zeros(3), np.eye(3)
        for _ in range(4):
            dstran, after = source.normal(size=3) * size, before.copy()
            after[:2, :2] += source.normal(size=(2, 2)) * size @ before[:2, :2]
            given = {"statev": statev, "props": props, "dtime": dtime, "stran": stran}
            given |= {"dfgrd0": before, "dfgrd1": after, "dstran": dstran}
            found, near = (call_umat(m.library, (2, 1), **given) for m in (exact, rounded))
            assert found["pnewdt"] == 1.0
            steps, cut = steps + 1, cut + int(near["pnewdt"] != 1.0)
            if near["pnewdt"] == 1.0:
                lost = 2.0**-23 * (1.0 if which == "finite" else np.abs(stran + dstran).max())
                assert abs(near["statev"][7] - found["statev"][7]) < 32 * lost
                bound = 64 * lost * np.abs(found["ddsdde"]).max()
                bound += 2.0**-15 * np.abs(found["stress"]).max()
                assert np.abs(near["stress"] - found["stress"]).max() < bound
            statev, stran, before = found["statev"], stran + dstran, after
    assert cut < 0.06 * steps  # most of them where the model's own solve wants digits, as in solids


def draw_gradients(seed: int, steps: int) -> np.ndarray:
    source = np.random.default_rng(seed)
    rate = source.normal(size=(3, 3)) * 0.02
    gradients, f = [], np.eye(3)
    for _ in range(steps):
        f = (np.eye(3) + rate + source.normal(size=(3, 3)) * 0.005) @ f
        gradients.append(f)
    return np.array(gradients)


@needs_fortran
def test_finite_strain_reads_deformation_gradients(finite: Material, build: Any) -> None:
    steps, order = 8, UMAT_ORDER
    gradients = draw_gradients(3, steps)
    turns = np.array(
        [np.linalg.qr(np.random.default_rng(k).normal(size=(3, 3)))[0] for k in range(steps)]
    )
    path = Path1D(props=(), gradients=gradients, rotations=turns)
    found = drive(build(finite, "umat_driver.f90"), path, np.zeros((steps, 6)))
    model = finite.load()
    plastic, equivalent, t = np.zeros(6), 0.0, 0.0
    for k in range(steps):
        given = {
            "deformation_gradient": gradients[k], "plastic_strain~1": plastic,
            "equivalent_plastic_strain~1": np.asarray(equivalent), "t": np.asarray(t + 0.5),
            "t~1": np.asarray(t),
        }  # fmt: skip
        outputs = model(given)
        plastic, equivalent, t = (
            outputs["plastic_strain"],
            outputs["equivalent_plastic_strain"],
            t + 0.5,
        )
        volume = np.linalg.det(gradients[k])
        stress = voigt_of(outputs["kirchhoff_stress"], order) / volume
        np.testing.assert_allclose(found["stress"][k], stress, rtol=1e-13, atol=1e-12)
        tangent = ddsdde_of(outputs["jaumann_tangent"], order) / volume
        np.testing.assert_allclose(found["ddsdde"][k], tangent, rtol=1e-11, atol=1e-6)
        assert np.array_equal(found["statev"][k, :6], plastic)
    assert float(equivalent) > 0.01


@needs_fortran
def test_finite_plane_stress_finds_the_thickness(finite: Material, build: Any) -> None:
    steps = 6
    gradients = draw_gradients(4, steps)
    gradients[:, 2, :2] = gradients[:, :2, 2] = 0.0
    gradients[:, 2, 2] = 7.0  # which no host has to know
    path = Path1D(shape=(2, 1), states=8, props=(), gradients=gradients)
    found = drive(build(finite, "umat_driver.f90"), path, np.zeros((steps, 3)))
    model = finite.load()
    old, t = np.zeros(8), 0.0
    for k in range(steps):
        f = gradients[k].copy()
        f[2, 2] = 1 + found["statev"][k, 7]
        outputs = model({
            "deformation_gradient": f, "plastic_strain~1": old[:6],
            "equivalent_plastic_strain~1": np.asarray(old[6]), "t": np.asarray(t + 0.5),
            "t~1": np.asarray(t),
        })  # fmt: skip
        old, t = found["statev"][k], t + 0.5
        stress = outputs["kirchhoff_stress"]
        assert abs(stress[2]) <= 1e-7 * np.abs(stress).max()
        expected = voigt_of(stress, [0, 1, 5]) / np.linalg.det(f)
        np.testing.assert_allclose(found["stress"][k], expected, rtol=1e-13, atol=1e-12)


@needs_fortran
def test_rotations_of_a_host_turn_the_states(small: Material, build: Any) -> None:
    program = build(small, "umat_driver.f90")
    turn = np.linalg.qr(np.random.default_rng(9).normal(size=(3, 3)))[0]
    turn *= np.linalg.det(turn)
    stretched = draw_strains(5, 1, 6, 4e-3)[0]
    still = drive(program, Path1D(dtime=1e-9), np.array([stretched, 0 * stretched]))
    full = np.array([[0, 3, 4], [3, 1, 5], [4, 5, 2]])
    scale = np.where(full > 2, 0.5, 1.0)
    tensor = stretched[full] * scale
    moved = turn @ tensor @ turn.T
    engineering = np.array(
        [moved[0, 0], moved[1, 1], moved[2, 2], *(2 * moved[i] for i in ((0, 1), (0, 2), (1, 2)))]
    )
    # the host turns its own strain between the two steps
    path = Path1D(dtime=1e-9, rotations=np.array([np.eye(3), turn]))
    turned = drive(program, path, np.array([stretched, engineering - stretched]))
    stress = still["stress"][1][full]
    expected = turn @ stress @ turn.T
    np.testing.assert_allclose(turned["stress"][1][full], expected, rtol=1e-7, atol=1e-5)


@needs_fortran
def test_temperature_fields_energies_and_initial_states(tmp_path: Path, build: Any) -> None:
    material = compile_material(FIELDS, "model", tmp_path, umat_initial=("age=3",))
    steps = 3
    fields = np.array([[0.5], [0.25], [1.0]])
    path = Path1D(
        states=1, props=(), temperature=(10.0, 20.0, -5.0), first_temperature=300.0, fields=fields
    )
    strains = draw_strains(6, steps, 6)
    program = build(material, "umat_driver.f90")
    found = drive(program, path, strains)
    lame, shear = 200000 * 0.3 / (1.3 * 0.4), 200000 / 2.6
    total, heat, phase, age, spent = np.zeros(6), 300.0, 0.0, 3.0, 0.0
    for k in range(steps):
        total, before = total + strains[k], phase
        heat, phase = heat + path.temperature[k], phase + fields[k, 0]
        elastic = total.copy()
        elastic[:3] -= 1e-5 * (heat - 300.0)
        stress = 2 * shear * np.where(np.arange(6) < 3, elastic, elastic / 2)
        stress[:3] += lame * elastic[:3].sum()
        np.testing.assert_allclose(found["stress"][k], stress, rtol=1e-12, atol=1e-10)
        expected = [-1e-5 * (3 * lame + 2 * shear)] * 3 + [0.0] * 3
        np.testing.assert_allclose(found["ddsddt"][k], expected, rtol=1e-12, atol=1e-12)
        sse = heat + 2 * phase + 4 * before + 8 * age
        age, spent = age + phase, spent + phase
        np.testing.assert_allclose(found["rest"][k, :2], [sse, spent], rtol=1e-13)
        assert found["statev"][k, 0] == age
    kept = drive(program, Path1D(**{**path.__dict__, "begin": (7.0,)}), strains)
    assert kept["statev"][0, 0] == 7.0 + fields[0, 0]


@needs_fortran
def test_a_point_that_fails_asks_for_a_shorter_step(small: Material, build: Any) -> None:
    strains = np.concatenate(
        [draw_strains(7, 1, 6), np.full((1, 6), np.inf), draw_strains(8, 1, 6)]
    )
    found = drive(build(small, "umat_driver.f90"), Path1D(), strains)
    assert list(found["rest"][:, 3]) == [1.0, 0.25, 1.0]
    for name in ("stress", "statev", "ddsdde"):
        assert np.array_equal(found[name][1], found[name][0])
        assert np.isfinite(found[name]).all()


@needs_fortran
@pytest.mark.parametrize(
    ("path", "told"),
    [
        (Path1D(props=(1.0,)), "is given NPROPS = 1, and has 2"),
        (Path1D(states=6), "is given NSTATV = 6, and needs 7"),
        (Path1D(shape=(2, 1), states=7), "is given NSTATV = 7, and needs 8"),
        (Path1D(shape=(1, 0)), "is for NDI = 3 with NSHR = 3 or 1"),
    ],
)
def test_wrong_sizes_end_the_job_with_words(
    small: Material, build: Any, path: Path1D, told: str
) -> None:
    with pytest.raises(RuntimeError, match=told):
        drive(build(small, "umat_driver.f90"), path, np.zeros((1, sum(path.shape))))


@needs_fortran
@pytest.mark.parametrize("kind", [8, 4])
@pytest.mark.parametrize("shape", [(3, 3), (3, 1)])
def test_blocks_of_points_are_those_of_umat(
    small: Material, single: Material, build: Any, kind: int, shape: tuple[int, int]
) -> None:
    material = small if kind == 8 else single
    order = VUMAT_ORDER[: sum(shape)]
    points, steps, ntens = 150, 4, len(order)
    strains = np.random.default_rng(11).normal(size=(steps, points, ntens)) * 1e-3
    numbers = [*PROPS, 0.5]
    stretch = np.repeat([[1.0] * 3 + [0.0] * (ntens - 3)], points, 0)
    for k in range(steps):
        numbers += [*strains[k].T.ravel(), *stretch.T.ravel()]
    states = 13 if kind == 8 else 19
    head = [points, *shape, states, 0, 2, steps]
    text = " ".join(map(str, head)) + "\n" + "\n".join(f"{x:.17g}" for x in numbers) + "\n"
    program = build(material, "vumat_driver.F90", kind)
    done = subprocess.run([str(program)], input=text, capture_output=True, text=True, check=True)
    rows = np.array(done.stdout.split(), dtype=float).reshape(steps, -1)
    model = material.load()
    real = np.float64 if kind == 8 else np.float32
    for name, value in zip(PROMOTED, PROPS, strict=True):
        model.set_parameter(name, value)
    plastic, equivalent, t = np.zeros((points, 6), real), np.zeros(points, real), 0.0
    total, before, energy = np.zeros((points, 6), real), np.zeros((points, ntens)), np.zeros(points)
    scale = np.array([1.0 if m < 3 else 2**0.5 for m in order])
    exact = 1e-12 if kind == 8 else 1e-5
    for k in range(steps):
        given = strains[k].astype(real).astype(float) * scale
        total[:, order] = (total[:, order].astype(float) + given).astype(real)
        outputs = model({
            "strain": total, "plastic_strain~1": plastic,
            "equivalent_plastic_strain~1": equivalent, "t": np.full(points, t + 0.5, real),
            "t~1": np.full(points, t, real),
        })  # fmt: skip
        plastic, equivalent, t = (
            outputs["plastic_strain"],
            outputs["equivalent_plastic_strain"],
            t + 0.5,
        )
        stress = outputs["stress"][:, order] / scale
        found = rows[k][: points * ntens].reshape(ntens, points).T
        np.testing.assert_allclose(found, stress, rtol=0, atol=exact * np.abs(stress).max())
        energy += (0.5 * (before + stress) * strains[k] * scale**2).sum(1) / 2.0
        before = stress
        np.testing.assert_allclose(
            rows[k][-points:], energy, rtol=0, atol=exact * np.abs(energy).max()
        )
        state = rows[k][points * ntens : -points].reshape(states, points).T
        np.testing.assert_allclose(state[:, 6], equivalent, rtol=0, atol=exact)
    assert float(equivalent.max()) > 1e-3


@needs_fortran
def test_a_block_at_finite_strain_is_given_stretches(finite: Material, build: Any) -> None:
    points = 70
    source = np.random.default_rng(12)
    full = source.normal(size=(points, 3, 3)) * 0.05
    stretch = np.eye(3) + (full + full.transpose(0, 2, 1)) / 2
    planes = [(0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (2, 0)]
    columns = np.array([[u[i] for i in planes] for u in stretch])
    numbers = [0.5, *np.zeros(points * 6), *columns.T.ravel()]
    text = f"{points} 3 3 7 0 0 1\n" + "\n".join(f"{x:.17g}" for x in numbers) + "\n"
    program = build(finite, "vumat_driver.F90", 8)
    done = subprocess.run([str(program)], input=text, capture_output=True, text=True, check=True)
    found = np.array(done.stdout.split(), dtype=float)[: points * 6].reshape(6, points).T
    outputs = finite.load()({
        "deformation_gradient": stretch, "plastic_strain~1": np.zeros((points, 6)),
        "equivalent_plastic_strain~1": np.zeros(points), "t": np.full(points, 0.5),
        "t~1": np.zeros(points),
    })  # fmt: skip
    scale = np.array([1.0 if m < 3 else ROOT for m in VUMAT_ORDER])
    stress = outputs["kirchhoff_stress"][:, VUMAT_ORDER] * scale / np.linalg.det(stretch)[:, None]
    np.testing.assert_allclose(found, stress, rtol=1e-12, atol=1e-10)


LONG = (1.0, 100.0, 1e4, 1e12)  # a step of 1e-6 s is lost in the last three, in float32 or double


@pytest.mark.parametrize("seed", range(4))
def test_a_step_is_as_long_as_the_host_says_at_any_time(
    small: Material, single: Material, seed: int
) -> None:
    """Bit for bit the results at time zero: stress, tangent, states; UMAT and VUMAT."""
    source = np.random.default_rng(seed)
    step = 10.0 ** source.uniform(-7, -3)
    strain = source.normal(size=6) * 2e-2
    state = np.zeros(7)
    for material in (small, single):
        given = {"dstran": strain, "dtime": step, "props": PROPS, "statev": state}
        expected = call_umat(material.library, time=[0.0, 0.0], **given)
        assert expected["pnewdt"] == 1.0 and expected["statev"][6] > 0
        for time in LONG:
            found = call_umat(material.library, time=[time, time], **given)
            for name in ("stress", "ddsdde", "statev"):
                assert np.array_equal(found[name], expected[name]), (time, name)
    for material, real in ((small, np.float64), (single, np.float32)):
        given = {"strain_inc": np.tile(strain, (70, 1)), "props": PROPS, "dt": step}
        given["state_old"] = np.zeros((70, 13 if real is np.float64 else 19))
        expected = call_vumat(material.library, real, total_time=step, **given)
        for time in LONG:
            found = call_vumat(material.library, real, total_time=time + step, **given)
            for name in ("stress_new", "state_new"):
                assert np.array_equal(found[name], expected[name]), (time, name)


AGED = """
[Models]
  [rate]
    type = SR2VariableRate
    variable = 'strain'
  []
  [aged]
    type = ScalarLinearCombination
    from = 't'
    to = 'SSE'
  []
  [viscous]
    type = SR2LinearCombination
    from = 'strain_rate'
    to = 'stress'
    weights = '3'
  []
  [model]
    type = ComposedModel
    models = 'rate viscous aged'
  []
[]
"""


@pytest.mark.parametrize(("dtype", "longest"), [("float64", 1e9), ("float32", 10.0)])
def test_a_step_that_total_time_loses_is_told_by_what_reads_it(
    tmp_path: Path, dtype: str, longest: float
) -> None:
    library = compile_material(AGED, "model", tmp_path, dtype=dtype).library
    step = longest * (2e-13 if dtype == "float64" else 2e-4)
    strain = np.array([1e-3, 0.0, 0.0, 0.0, 0.0, 0.0])
    real = np.float64 if dtype == "float64" else np.float32
    block = {"strain_inc": strain[None], "state_old": np.zeros((1, 12))}
    found = call_umat(library, dstran=strain, time=[longest] * 2, dtime=step)
    np.testing.assert_allclose(found["stress"][0], 3e-3 / step, rtol=1e-3)
    np.testing.assert_allclose(found["sse"], longest, rtol=1e-3)
    found = call_vumat(library, real, total_time=real(longest), dt=real(step), **block)
    np.testing.assert_allclose(found["stress_new"][0, 0], 3e-3 / step, rtol=2e-3)
    for time in (1e3 * longest, 1e8 * longest):
        told = call_apart("call_umat", library, dstran=strain, time=[time] * 2, dtime=step)
        assert "error[wrong-umat]: 'model' reads total time, in whose precision a step of" in told
        told = call_apart("call_vumat", library, real, total_time=time, dt=step, **block)
        assert "compile it with --dtype float64, or let time begin at zero again" in told


def test_a_body_turned_inside_out_asks_for_a_shorter_step(finite: Material) -> None:
    statev = np.zeros(7)
    good = np.eye(3) + 0.02 * np.random.default_rng(1).normal(size=(3, 3))
    for bad in (np.diag([1.0, 1.0, -1.0]), -good, 0 * good, np.full((3, 3), np.nan)):
        found = call_umat(finite.library, statev=statev, dfgrd1=bad, stress=np.arange(6.0))
        assert found["pnewdt"] == 0.25
        assert np.array_equal(found["stress"], np.arange(6.0))
        assert not found["statev"].any() and not found["ddsdde"].any()
    assert call_umat(finite.library, statev=statev, dfgrd1=good)["pnewdt"] == 1.0
    stretch = np.tile([1.01, 1.0, 1.0, 0.0, 0.0, 0.0], (70, 1))
    stretch[66, 2] = -1.0
    told = call_apart("call_vumat", finite.library, stretch_new=stretch, total_time=1.0, dt=1.0,
                      state_old=np.zeros((70, 7)))  # fmt: skip
    assert "'finite' failed at 1 points of a block that begins at 64" in told


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_states_that_are_not_the_models_are_carried_on(
    small: Material, single: Material, kind: type
) -> None:
    material = small if kind is np.float64 else single
    source = np.random.default_rng(4)
    used = 13 if kind is np.float64 else 19
    old = np.zeros((70, used + 4))
    old[:, used:] = source.normal(size=(70, 4))
    strain = source.normal(size=(70, 6)) * 1e-3
    spent = source.uniform(size=70)
    found = call_vumat(material.library, kind, state_old=old, strain_inc=strain, props=PROPS,
                       total_time=0.5, dt=0.5, inelastic_old=spent)  # fmt: skip
    assert np.array_equal(found["state_new"][:, used:], old[:, used:].astype(kind))
    assert np.array_equal(found["inelastic_new"], spent.astype(kind))
    fewer = call_vumat(material.library, kind, state_old=old[:, :used], strain_inc=strain,
                       props=PROPS, total_time=0.5, dt=0.5)  # fmt: skip
    assert np.array_equal(found["state_new"][:, :used], fewer["state_new"])
    point = call_umat(material.library, statev=old[0], dstran=strain[0], props=PROPS)
    assert np.array_equal(point["statev"][used:], old[0, used:])


def test_increments_of_strain_are_not_lost_in_single_precision(single: Material) -> None:
    """Ten thousand of 1e-9, of which a strain of 0.05 in float32 would keep none."""
    state = np.zeros((1, 19), np.float32)
    state[0, 7:10], state[0, :3] = (0.05, -0.025, -0.025), (0.05, -0.025, -0.025)
    step = np.array([[1e-9, 0.0, 0.0, 5e-10, 0.0, 0.0]])
    found: dict[str, np.ndarray] = {}
    for k in range(10_000):
        found = call_vumat(single.library, np.float32, state_old=state, strain_inc=step,
                           props=PROPS, total_time=1 + k * 1e-6, dt=1e-6)  # fmt: skip
        state = found["state_new"]
    strain = state[0, 7:13].astype(float) + state[0, 13:19]
    begun = np.array([0.05, -0.025, -0.025], np.float32).astype(float)
    expected = [begun[0] + 1e-5, begun[1], begun[2], 0.0, 0.0, 5e-6 * 2**0.5]
    np.testing.assert_allclose(strain, expected, rtol=0, atol=1e-9)
    elastic = strain - np.r_[state[0, :6]]
    lame, shear = 200000 * 0.3 / (1.3 * 0.4), 200000 / 2.6
    stress = 2 * shear * elastic[0] + lame * elastic[:3].sum()
    np.testing.assert_allclose(found["stress_new"][0, 0], stress, rtol=2e-3)


WARM = FIELDS.replace("from = 'temperature phase phase~1 age~1'", "from = 'phase phase~1 age~1'")
WARM = (
    WARM.replace("weights = '1 2 4 8'", "weights = '2 4 8'")
    + """
[Models]
  [finite]
    type = LogarithmicStrain
    model = 'model'
  []
[]
"""
)


@pytest.mark.parametrize("host", ["abaqus", pytest.param("calculix", marks=pytest.mark.exhaustive)])
def test_finite_strain_gives_the_derivative_by_temperature(tmp_path: Path, host: str) -> None:
    """By differences; in plane stress those of the Kirchhoff stress, as DDSDDE has it."""
    library = compile_material(WARM, "finite", tmp_path, umat_host=host).library
    source = np.random.default_rng(2)
    gradient = np.eye(3) + 0.1 * source.normal(size=(3, 3))
    green = (gradient.T @ gradient - np.eye(3)) / 2
    pairs = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)]
    dstran = np.array([green[p] * (1 if p[0] == p[1] else 2) for p in pairs])
    plane = gradient.copy()
    plane[2, :2] = plane[:2, 2] = 0
    for shape, f in (((3, 3), gradient), ((3, 1), plane), ((2, 1), plane)):
        if host == "calculix" and shape != (3, 3):
            continue

        def call(temp: float, shape: tuple[int, int] = shape, f: np.ndarray = f) -> Any:
            found = call_umat(library, shape, dfgrd1=f, temp=temp, dtemp=7.0, statev=np.zeros(2),
                              dstran=dstran[: sum(shape)])  # fmt: skip
            assert found["pnewdt"] == 1.0
            thick = 1 + found["statev"][1] if shape == (2, 1) else 1.0
            return found, thick

        (middle, thick), (up, high), (down, low) = (call(t) for t in (350.0, 351.0, 349.0))
        slope = (up["stress"] * high - down["stress"] * low) / (2 * thick)
        size = np.abs(middle["ddsddt"]).max()
        assert size > 1
        np.testing.assert_allclose(middle["ddsddt"], slope, rtol=1e-5, atol=1e-6 * size)


def write_sources(text: str, **options: Any) -> dict[str, str]:
    """The files of a material that is not compiled."""
    return dict(advance(load(read_text(text), "model", Target(umat=True, **options))).sources)


def test_the_prefix_of_c_names_is_that_of_the_include() -> None:
    files = write_sources(EXAMPLE.read_text(), c_prefix="a_steel")
    assert "integer, parameter :: a_steel_nstatv = 7" in files["model-umat.inc"]
    assert "model_nstatv" not in files["model-umat.inc"]
    assert "void a_steel_umat(" in files["model.h"]


@needs_fortran
def test_an_include_of_odd_names_compiles_in_either_form(tmp_path: Path) -> None:
    """States whose names differ in case, in a mark, or in their last letters alone."""
    long = "a_name_that_is_so_long_that_fortran_would_not_take_it_at_all"
    states = ("Age", "a.ge", "a_ge", f"{long}_1", f"{long}_2")
    grow = "".join(
        f"  [grow{i}]\n    type = ScalarLinearCombination\n    from = '{s}~1'\n    to = '{s}'\n"
        "    weights = '1'\n  []\n" for i, s in enumerate(states)
    )  # fmt: skip
    text = FIELDS.replace("  [model]\n", f"{grow}  [model]\n").replace(
        "dissipated grow", " ".join(["dissipated grow", *(f"grow{i}" for i in range(len(states)))])
    )
    text = text.replace("'age SPD'", f"'age SPD {' '.join(states)}'")
    include = tmp_path / "model-umat.inc"
    include.write_text(write_sources(text)[include.name])
    assert sum("_sdv_" in line for line in include.read_text().splitlines()) == 1 + len(states)
    source = tmp_path / "program.f"
    source.write_text(f"      program main\n      include '{include.name}'\n      end program\n")
    for form in ("fixed", "free"):
        command = [str(FORTRAN), f"-f{form}-form", "-fsyntax-only", f"-I{tmp_path}", str(source)]
        subprocess.run(command, check=True)


def test_the_include_tells_places(small: Material) -> None:
    text = (small.folder / "model-umat.inc").read_text()
    assert "! STATEV(1:6): plastic_strain, SR2 = 0" in text
    assert "! PROPS(2): hardening.saturated_hardening, Scalar = 100" in text
    assert "integer, parameter :: model_nstatv = 7" in text
    assert all(len(line) <= 72 for line in text.splitlines())


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"rename_input": ("strain:e",)}, "the model reads neither"),
        ({"rename_output": ("stress:s",)}, "which the model does not give"),
        ({"umat_initial": ("plastc_strain=1",)}, "no state of the model is called so"),
        ({"umat_initial": ("plastic_strain=1 2",)}, "2 numbers, and a SR2 has 6"),
        ({"umat_initial": ("plastic_strain",)}, "--umat-initial plastic_strain"),
        ({"rename_input": ("plastic_strain~1:plastic_strain~2",)}, "is of 2 steps before"),
        ({"rename_input": ("plastic_strain~1:ep~1",)}, "no output of the model was"),
        ({"backend": ("inductor",)}, "compiled into a kernel for CPUs"),
    ],
)
def test_what_no_host_gives_is_refused(tmp_path: Path, options: dict[str, Any], told: str) -> None:
    with pytest.raises(IngotError, match=told):
        compile_material(EXAMPLE.read_text(), "model", tmp_path, **options)


def list_fixes(text: str, **options: Any) -> list[str]:
    with pytest.raises(IngotError) as raised:
        write_sources(text, **options)
    return [f"{p.message} | {p.fix}" for p in raised.value.problems]


def test_names_are_proposed_for_what_is_of_their_kind() -> None:
    renamed = {"rename_input": ("strain:e",), "rename_output": ("stress:s",)}
    told = list_fixes(EXAMPLE.read_text(), **renamed)
    assert told[0].endswith("| rename what is meant: --rename-input e:strain")
    offered = told[1].partition("--rename-output ")[2].split(" or ")
    assert set(offered) == {"s:stress", "plastic_strain:stress"}
    assert told[2].endswith("| name it by what it is: --rename-input e:strain")
    scalar = "[Models]\n[model]\ntype = ScalarVariableRate\nvariable = 'x'\n[]\n[]"
    told = list_fixes(scalar)
    assert told[0].endswith("| choose a model that has one, of kind SR2 or R2")
    assert told[1].endswith("| choose a model that has one, of kind SR2")
    vector = "[Models]\n[model]\ntype = VecVariableRate\nvariable = 'x'\n[]\n[]"
    assert any("a host gives no 'x', Vec | give it a value in the file" in line
               for line in list_fixes(vector))  # fmt: skip


def test_what_a_host_means_by_a_name_is_of_its_kind() -> None:
    for old, new, kind in (("temperature", "strain", "SR2"), ("temperature", "stress~1", "SR2"),
                           ("strain", "t", "Scalar"), ("strain", "SPD~1", "Scalar")):  # fmt: skip
        told = list_fixes(FIELDS, rename_input=(f"{old}:{new}", *(
            ("strain:e",) if new == "strain" else ("SPD~1:w~1",) if new == "SPD~1" else ()
        )))  # fmt: skip
        found = {"temperature": "Scalar", "strain": "SR2"}[old]
        assert any(f"'{new}' of a host is of kind {kind}, that of the model {found}" in line
                   for line in told), told  # fmt: skip
    told = list_fixes(FIELDS, rename_output=("SSE:stress", "stress:s"))
    assert any("'stress' of a host is of kind SR2, that of the model Scalar" in t for t in told)


def test_finite_strain_gives_kirchhoff_stress(tmp_path: Path) -> None:
    renamed = {"rename_output": ("kirchhoff_stress:tau",)}
    with pytest.raises(IngotError, match="gives back 'kirchhoff_stress'"):
        compile_material(EXAMPLE.read_text() + FINITE, "finite", tmp_path, **renamed)


CHOOSER = """
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "model.h"
#include "other.h"

static double stress[8][6];

static void* call(void* at) {
  const long i = (long)at;
  double statev[7] = {0}, ddsdde[36], sse = 0, spd = 0, scd = 0, rest[6], pnewdt = 1;
  const double stran[6] = {0}, dstran[6] = {0.004, -0.002, -0.002, 0.001, 0, 0}, time[2] = {0};
  const double one = 1, zero = 0, props[2] = {210, 90}, unit[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  const int three = 3, six = 6, seven = 7, two = 2;
  const char* name = i % 2 ? "OTHER" : "MODEL";
  for (int k = 0; k < 200; ++k) {
    memset(statev, 0, sizeof statev);
    (strncmp(name, "OTHER", 5) == 0 ? other_umat : model_umat)(stress[i], statev, ddsdde, &sse,
      &spd, &scd, rest, rest, rest, rest, stran, dstran, time, &one, &zero, &zero, &zero, &zero,
      name, &three, &three, &six, &seven, props, &two, rest, unit, &pnewdt, &one, unit, unit,
      &six, &six, &six, &six, &six, &six);
  }
  return 0;
}

int main(void) {
  pthread_t threads[8];
  for (long i = 0; i < 8; ++i) pthread_create(threads + i, 0, call, (void*)i);
  for (int i = 0; i < 8; ++i) pthread_join(threads[i], 0);
  for (int i = 0; i < 8; ++i) printf("%.17g\\n", stress[i][0]);
  return 0;
}
"""


@pytest.mark.parametrize("watched", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_a_program_chooses_among_packages_from_several_threads(
    small: Material, tmp_path: Path, watched: bool
) -> None:
    """Watched: packages compiled from their sources, under ThreadSanitizer."""
    text = EXAMPLE.read_text().replace("saturation_rate = 50", "saturation_rate = 500")
    other = compile_material(
        text.replace("[model]", "[other]"), "other", tmp_path, parameter=PROMOTED
    )
    (tmp_path / "chooser.c").write_text(CHOOSER)
    libraries = [str(m.library.resolve()) for m in (small, other)]
    flags = ["-g", "-O0", "-fsanitize=thread"] if watched else []
    for i, m in enumerate((small, other) if watched else ()):
        libraries[i] = str(tmp_path / f"watched{i}.so")
        source = str(m.folder / f"{m.folder.parent.name}.cpp")
        command = ["g++", "-std=c++17", "-w", "-fPIC", "-shared", *flags, source]
        subprocess.run([*command, "-o", libraries[i]], check=True)
    folders = [f"-I{m.folder}" for m in (small, other)]
    program = tmp_path / "chooser"
    subprocess.run(
        ["gcc", "-Wall", "-Werror", *flags, *folders, str(tmp_path / "chooser.c"), *libraries,
         "-lpthread", "-o", str(program)], check=True,
    )  # fmt: skip
    # without random addresses: older sanitizers find no room beside them
    started = ["setarch", "-R", str(program)] if watched else [str(program)]
    done = subprocess.run(started, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = [float(x) for x in done.stdout.split()]
    strain = mandel_of(np.array([0.004, -0.002, -0.002, 0.001, 0, 0]), UMAT_ORDER)
    for place, material in enumerate((small, other)):
        model = material.load()
        for name, value in zip(PROMOTED, PROPS, strict=True):
            model.set_parameter(name, value)
        outputs, _ = step_in_python(model, {
            "strain": strain, "plastic_strain~1": np.zeros(6), "equivalent_plastic_strain~1": 0.0,
            "t": 1.0, "t~1": 0.0,
        })  # fmt: skip
        assert found[place::2] == [float(outputs["stress"][0])] * 4
    assert found[0] != found[1]


@pytest.mark.parametrize("calls", [1000, pytest.param(10_000, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("which", ["small", pytest.param("finite", marks=pytest.mark.exhaustive)])
def test_wrong_calls_end_in_words_or_shorter_steps(
    which: str, calls: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Sizes, arrays, numbers and pointers drawn at random: never a crash."""
    material: Material = request.getfixturevalue(which)
    # g++ does not end within minutes where it watches the long kernel of finite strain
    flags = ["-fsanitize=address,undefined"] if which == "small" else []
    told = build_campaign(material, tmp_path, *flags)(calls, 5)
    fine, cut, ended = (int(word) for word in told.replace(",", "").split() if word.isdigit())
    assert fine + cut + ended == calls
    assert fine > 0.2 * calls and cut > 0.005 * calls and ended > 0.2 * calls


def build_campaign(material: Material, folder: Path, *flags: str) -> Any:
    """A program of random calls, with the package compiled from its source."""
    name = material.folder.parent.name
    states = 7
    program = folder / "campaign"
    build = [
        "g++", "-std=c++17", "-O0", "-Wno-psabi", *flags, "-fno-sanitize-recover=all",
        f'-DNAME_H="{material.folder / name}.h"', f"-DSTATES={states}",
        str(HERE / "umat_campaign.cpp"), str(material.folder / f"{name}.cpp"),
        "-o", str(program), "-lpthread",
    ]  # fmt: skip
    subprocess.run(build, check=True)

    def run(*words: object) -> str:
        done = subprocess.run(
            [str(program), *map(str, words)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
        return done.stdout

    return run


def find_places(material: Material) -> dict[str, slice]:
    """Where STATEV holds each state, as the include tells it."""
    text = next(material.folder.glob("*-umat.inc")).read_text()
    found = re.findall(r"STATEV\((\d+)(?::(\d+))?\): ([\w.]+), \w+ =", text)
    return {name: slice(int(first) - 1, int(last or first)) for first, last, name in found}


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["voce", "both", "perzyna", "chaboche", "gurson"])
def test_drawn_steps_of_presets_are_those_of_python(name: str, dtype: str, tmp_path: Path) -> None:
    """Values as Python has them, in solids, plane strain and plane stress; in doubles DDSDDE by
    differences, of steps as long as rounding asks for.
    """
    material = compile_material(f"[Models]\n[m]\n{MODELS[name]}[]\n[]", "m", tmp_path, dtype=dtype)
    library, model, places = material.library, material.load(), find_places(material)
    count = sum(p.stop - p.start for p in places.values())
    real = np.dtype(dtype)
    source = np.random.default_rng(3)
    worst = []
    for shape, order in (((3, 3), UMAT_ORDER), ((3, 1), [0, 1, 2, 5]), ((2, 1), [0, 1, 5])) * 12:
        size, dtime, ntens = 10 ** source.uniform(-4, -2), 10 ** source.uniform(-2, 2), len(order)
        statev, stran, stress = np.zeros(count + 1), np.zeros(ntens), np.zeros(ntens)
        for _ in range(4):
            given = {"statev": statev, "stran": stran, "stress": stress, "dtime": dtime}
            given |= {"time": [1e6, 1e6], "shape": shape}
            dstran = source.normal(size=ntens) * size
            found = call_umat(library, dstran=dstran, **given)
            if found["pnewdt"] < 1.0:
                assert dtype == "float32"
                break
            inputs = {n: np.zeros(v.base, real) for n, v in model.inputs.items()}
            inputs |= {
                f"{n}~1": statev[at].reshape(inputs[f"{n}~1"].shape) for n, at in places.items()
            }
            now, before = mandel_of(stran + dstran, order), mandel_of(stran, order)
            if shape == (2, 1):
                now[2], before[2] = found["statev"][count], statev[count]
            old = mandel_of(stress, order)
            old[3:] *= 2.0  # of strains that order is half as large
            known = {"strain": now, "strain~1": before, "stress~1": old, "t": np.array(dtime)}
            inputs |= {n: x for n, x in known.items() if n in inputs}
            outputs = model({n: np.asarray(x, real) for n, x in inputs.items()})
            assert np.array_equal(found["stress"], voigt_of(outputs["stress"].astype(float), order))
            for state, at in places.items():
                assert np.array_equal(found["statev"][at], np.ravel(outputs[state]))
            if dtype == "float64":
                worst.append(min(
                    np.abs(differ(library, given, dstran, h) - found["ddsdde"]).max()
                    for h in (1e-6, 1e-7, 1e-8)
                ))  # fmt: skip
            statev, stran, stress = found["statev"], stran + dstran, found["stress"]
    assert all(error < 2e-5 * 3e5 for error in worst), max(worst)


def differ(library: Path, given: Mapping[str, Any], dstran: np.ndarray, h: float) -> np.ndarray:
    """DDSDDE by central differences."""
    columns = []
    for step in np.eye(len(dstran)) * h:
        up, down = (call_umat(library, dstran=dstran + s, **given)["stress"] for s in (step, -step))
        columns.append((up - down) / (2 * h))
    return np.array(columns).T
