"""CalculiX with our user material: against its own plasticity, against Python and FElupe."""

import importlib
from pathlib import Path

import numpy as np
import pytest

import ingot
from ingot.hosts import TENSOR, State
from tests.hosts import calculix

EXAMPLES = calculix.HERE.parents[1] / "examples" / "fem"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not calculix.is_there(), reason="CalculiX is not built: `make hosts` does that"
    ),
]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """CalculiX with our material, and as it is."""
    folder = tmp_path_factory.mktemp("calculix")
    package = calculix.compile_j2(folder)
    return calculix.link(package, folder / "ours"), calculix.FOLDER / f"ccx_{calculix.VERSION}"


@pytest.mark.parametrize(
    ("cells", "pull"),
    [
        ((1, 1, 1), (0.01, 0.0, 0.0)),
        ((1, 1, 1), (0.002, 0.006, -0.004)),
        ((6, 3, 3), (0.02, 0.05, 0.0)),
    ],
)
def test_results_are_those_of_built_in_plasticity(
    programs: tuple[Path, Path],
    tmp_path: Path,
    cells: tuple[int, int, int],
    pull: tuple[float, ...],
) -> None:
    jobs = []
    for name, program in zip(("ours", "theirs"), programs, strict=True):
        file = tmp_path / f"{name}.inp"
        calculix.write_bar(file, cells, (2.0, 1.0, 1.0), pull, ours=name == "ours")
        jobs.append(calculix.run(program, file, threads=2))
    ours, theirs = jobs
    largest = np.abs(theirs.stresses).max()
    assert largest > 200
    np.testing.assert_allclose(ours.stresses, theirs.stresses, rtol=0, atol=1e-5 * largest)
    moved = np.abs(theirs.displacements).max()
    np.testing.assert_allclose(ours.displacements, theirs.displacements, rtol=0, atol=1e-5 * moved)
    iterations = [job.text.count("iteration") for job in jobs]
    assert iterations[0] <= iterations[1] + 2


def test_wrong_constants_end_the_job(programs: tuple[Path, Path], tmp_path: Path) -> None:
    file = tmp_path / "wrong.inp"
    calculix.write_bar(file, (1, 1, 1), (1.0, 1.0, 1.0), (0.01, 0.0, 0.0), ours=True)
    file.write_text(file.read_text().replace("*DEPVAR\n8", "*DEPVAR\n7"))
    with pytest.raises(RuntimeError, match="ended with 1"):
        calculix.run(programs[0], file)


def turn_and_stretch() -> np.ndarray:
    """A third of a turn about a skew axis after a stretch of 20 %."""
    axis = np.array([1.0, 2.0, -0.5]) / np.linalg.norm([1.0, 2.0, -0.5])
    spin = np.cross(np.eye(3), axis)
    turn = np.eye(3) + np.sin(2.0) * spin + (1 - np.cos(2.0)) * spin @ spin
    return turn @ np.array([[1.2, 0.1, 0.0], [0.1, 0.95, 0.05], [0.0, 0.05, 0.9]])


def deform_block(program: Path, file: Path, material: str, gradient: np.ndarray) -> calculix.Job:
    """Eight elements whose outer nodes are moved as one gradient has it, in eight increments."""
    mesh = calculix.mesh_block((2, 2, 2), (1.0, 1.0, 1.0))
    goal = mesh.points @ (gradient - np.eye(3)).T
    outer = np.flatnonzero(((mesh.points == 0) | (mesh.points == 1)).any(1))
    moved = {(int(n), d): goal[n, d] for n in outer for d in range(3)}
    calculix.write_job(file, mesh, material, moved, increments=8, nlgeom=True)
    job = calculix.run(program, file, threads=2)
    np.testing.assert_allclose(job.displacements, goal, rtol=0, atol=1e-6)
    return job


def follow(package: Path, gradient: np.ndarray) -> np.ndarray:
    """The Cauchy stress of a package in Python after the same increments, 11 22 33 12 13 23."""
    state = State(ingot.load(package), 1)
    stress = np.zeros((3, 3))
    for k in range(1, 9):
        f = np.eye(3) + k / 8 * (gradient - np.eye(3))
        is_finite = "deformation_gradient" in state.material.input_spec
        green = TENSOR.strain(((f.T @ f - np.eye(3)) / 2)[None])
        given = {"deformation_gradient": f[None]} if is_finite else {"strain": green}
        update = state.update(given | {"t": k / 8})
        assert not update.has_failed
        state.commit()
        stored = np.asarray(update["kirchhoff_stress" if is_finite else "stress"])
        stress = np.asarray(TENSOR.stress(stored))[0]
        stress = (stress if is_finite else f @ stress @ f.T) / np.linalg.det(f)
    assert float(state["equivalent_plastic_strain"].max()) > 0.1
    return stress[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]


@pytest.fixture(scope="module")
def finite(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """CalculiX with J2 plasticity at finite strain, and the package."""
    folder = tmp_path_factory.mktemp("finite")
    package = calculix.compile_finite(calculix.HERE / "j2.i", "j2", folder)
    return calculix.link(package, folder / "ours"), package


def test_large_strain_and_rotation_are_those_of_python(
    finite: tuple[Path, Path], programs: tuple[Path, Path], tmp_path: Path
) -> None:
    """At finite strain, and of a model of small strain, which is given Green's and turns along."""
    gradient = turn_and_stretch()
    materials = {finite: calculix.FINITE, (programs[0], programs[0].parent / "j2"): calculix.OURS}
    for (program, package), material in materials.items():
        job = deform_block(program, tmp_path / "turned.inp", material, gradient)
        right = np.tile(follow(package, gradient), (64, 1))
        np.testing.assert_allclose(job.stresses, right, rtol=0, atol=2e-6 * np.abs(right).max())


def test_a_necking_bar_is_that_of_felupe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduced quadratic elements of both, the same steps: the same displacements."""
    pytest.importorskip("felupe")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    neck, neck_felupe = (importlib.import_module(name) for name in ("neck", "neck_felupe"))
    monkeypatch.setattr(neck, "STEPS", 20)
    size = (1, 5)
    record, _, u = neck_felupe.stretch("bar", size)
    assert record.cuts == 0
    points, cells = neck.mesh_bar(*size)
    fixed, pulled = neck.hold(points)
    moved = {divmod(int(n), 3): 0.0 for n in fixed}
    moved |= {divmod(int(n), 3): neck.STRETCH["bar"] for n in pulled}
    package = calculix.compile_finite(EXAMPLES / "bar.i", "bar", tmp_path)
    program = calculix.link(package, tmp_path / "ours")
    file = tmp_path / "neck.inp"
    mesh = calculix.Mesh(points, cells, "C3D20R")
    calculix.write_job(file, mesh, calculix.FINITE, moved, increments=20, nlgeom=True)
    job = calculix.run(program, file, threads=2)
    np.testing.assert_allclose(job.displacements, u.reshape(-1, 3), rtol=0, atol=1e-5)
    assert job.text.count("\n iteration ") <= 6 * 20  # to 1e-9, as a right slope has it
    assert neck.measure_waist(job.displacements.ravel(), points) < 0.95


def test_a_package_for_abaqus_is_refused_at_finite_strain(tmp_path: Path) -> None:
    package = calculix.compile_finite(EXAMPLES / "bar.i", "bar", tmp_path, umat_host="abaqus")
    program = calculix.link(package, tmp_path / "ours")
    with pytest.raises(RuntimeError, match="compile it with --umat-host calculix"):
        deform_block(program, tmp_path / "bar.inp", calculix.FINITE, np.diag([1.01, 1.0, 1.0]))
