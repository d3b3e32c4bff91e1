"""Finite elements around compiled models: closed forms, patches, hosts' own plasticity, rates."""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

import ingot
from ingot.hosts import PLANE, TENSOR, State

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "fem"
SIZE = 6
"""Elements along an edge of the plate."""


def load_example(name: str) -> ModuleType:
    """An example, and its neighbours that it imports, as a script would find them."""
    pytest.importorskip("scipy", reason="the examples solve by SciPy: install ingot[fem]")
    pytest.importorskip("matplotlib", reason="the examples plot: install ingot[plot]")
    host = {"skfem": "skfem", "felupe": "felupe", "torchfem": "torchfem"}.get(name.split("_")[-1])
    if host:
        pytest.importorskip(host, reason=f"{host} is not installed: install ingot[fem]")
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    return importlib.import_module(name)


def set_double(host: str) -> None:
    """torch-fem computes in torch's default type."""
    if host == "torchfem":
        torch.set_default_dtype(torch.float64)


@pytest.fixture(autouse=True)
def _default_dtype() -> Any:
    kept = torch.get_default_dtype()
    yield
    torch.set_default_dtype(kept)


@cache
def stretch_and_keep(host: str, material: str) -> Any:
    set_double(host)
    return load_example(f"plate_{host}").stretch(material, SIZE)


def stretch_plate(host: str, material: str) -> Any:
    return stretch_and_keep(host, material)[0]


HOSTS = ["skfem", "felupe", "torchfem"]
MATERIALS = ["steel", "crystal"]


def assert_quadratic(residuals: list[list[float]]) -> None:
    """The logarithm of the residual doubles; of a linear rate it would grow by a constant."""
    common = load_example("common")
    orders = common.find_orders(residuals)
    assert len(orders) >= len(residuals) / 3
    assert np.median(orders) > 1.75
    assert max(map(len, residuals)) < common.MAX_ITERATIONS


@pytest.mark.parametrize("material", MATERIALS)
@pytest.mark.parametrize("host", HOSTS)
def test_newton_converges_quadratically(host: str, material: str) -> None:
    record = stretch_plate(host, material)
    assert all(sizes[-1] < 1e-8 for sizes in record.residuals)
    assert_quadratic(record.residuals)


@pytest.mark.parametrize("host", HOSTS)
def test_an_example_draws_and_tells(
    host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example = load_example(f"plate_{host}")
    kept = {name: stretch_and_keep(host, name) for name in MATERIALS}
    monkeypatch.setattr(example, "stretch", lambda name, size: kept[name])
    example.main(tmp_path, SIZE)
    drawn = {file.name: file.read_bytes()[:4] for file in tmp_path.iterdir()}
    assert drawn == {f"plate_{host}_{name}.png": b"\x89PNG" for name in MATERIALS}
    told = capsys.readouterr().out
    assert told.count("residuals of the last") == 2
    assert told.count("by point: material") == 2


def test_another_tangent_does_not_converge_quadratically(monkeypatch: pytest.MonkeyPatch) -> None:
    """The elastic tangent instead of the consistent one: the test of the rate can fail."""
    common, plate = load_example("common"), load_example("plate_skfem")
    monkeypatch.setattr(common, "MAX_ITERATIONS", 200)
    elastic = ingot.from_hit(STEEL_ALONE, "steel")
    block = (
        ingot.compile(elastic, derivative=("stress:strain",))
        .jacobian({"strain": torch.zeros(6, dtype=torch.float64)})["stress"]["strain"]
        .numpy()
    )
    kept = PLANE.tangent

    class Wrong:
        strain, stress = PLANE.strain, PLANE.stress

        @staticmethod
        def tangent(stored: np.ndarray, *, first: bool) -> np.ndarray:
            return kept(np.broadcast_to(block, stored.shape), first=first)

    monkeypatch.setattr(plate, "PLANE", Wrong)
    monkeypatch.setitem(common.STRETCH, "steel", 0.002)
    record, _ = plate.stretch("steel", 3)
    orders = [o for o in common.find_orders(record.residuals) if np.isfinite(o)]
    assert np.median(orders) < 1.3


STEEL_ALONE = "[Models]\n[steel]\ntype = IsotropicElasticity\nE = 200e3\nnu = 0.3\n[]\n[]"


@pytest.mark.parametrize("material", MATERIALS)
@pytest.mark.parametrize("host", HOSTS[1:])
def test_hosts_agree(host: str, material: str) -> None:
    ours = stretch_plate("skfem", material).curve
    gap = load_example("common").find_gap(stretch_plate(host, material).curve, ours)
    assert gap < 1e-8


@pytest.mark.parametrize("host", HOSTS[1:])
def test_own_plasticity_of_a_host_is_ours(host: str) -> None:
    set_double(host)
    own = load_example(f"plate_{host}").stretch_own(SIZE)
    assert load_example("common").find_gap(stretch_plate(host, "steel").curve, own) < 1e-8


BAR = (1, 4)
"""Elements across a bar and along it."""


@cache
def stretch_bar(host: str, material: str) -> tuple[Any, State, np.ndarray]:
    set_double(host)
    neck, example = load_example("neck"), load_example(f"neck_{host}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(neck.STRETCH, material, 5.5)
        # a crystal's path is so smooth that a short step leaves Newton's method nothing to show
        patch.setattr(neck, "STEPS", 20 if material == "bar" else 8)
        return example.stretch(material, BAR)


@pytest.mark.parametrize("material", ["bar", pytest.param("crystal", marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("host", ["felupe", "torchfem"])
def test_a_bar_converges_quadratically_at_finite_strain(host: str, material: str) -> None:
    assert_quadratic(stretch_bar(host, material)[0].residuals)


@pytest.mark.parametrize("host", ["felupe", "torchfem"])
def test_a_bar_necks(host: str) -> None:
    """The force passes its maximum, and the waist shrinks more than a uniform bar would."""
    record, _, u = stretch_bar(host, "bar")
    neck = load_example("neck")
    forces = [force for _, force in record.curve]
    assert forces[-1] < 0.97 * max(forces)
    uniform = (1 + 5.5 / neck.LENGTH) ** -0.5
    assert neck.measure_waist(u, neck.mesh_bar(*BAR)[0]) < 0.9 * uniform


@pytest.mark.parametrize("host", ["felupe", "torchfem"])
def test_a_bar_is_drawn(host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = load_example(f"neck_{host}")
    kept = {name: stretch_bar(host, name) for name in ("bar", "crystal")}
    monkeypatch.setattr(example, "stretch", lambda name, size: kept[name])
    example.main(tmp_path, BAR)
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        f"neck_{host}_{name}.png" for name in ("bar", "crystal")
    ]


@pytest.mark.parametrize("material", ["bar", "crystal"])
def test_bars_of_two_hosts_agree(material: str) -> None:
    ours, theirs = (stretch_bar(host, material)[0].curve for host in ("torchfem", "felupe"))
    assert load_example("common").find_gap(theirs, ours) < 1e-8


def test_a_step_is_cut_where_a_point_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With too few iterations at points, the plate gets where it should in shorter steps."""
    common, plate = load_example("common"), load_example("plate_skfem")
    weak = ingot.build(ingot.read(FOLDER / "crystal.i", ["Solvers/newton/max_its:=6"]), "crystal")
    material = ingot.compile(weak, derivative=("stress:strain",))
    monkeypatch.setattr(common, "compile_material", lambda _: material)
    kept, failures = State.update, []

    def update(self: State, inputs: Any, **options: Any) -> Any:
        found = kept(self, inputs, **options)
        failures.append(found.has_failed)
        return found

    monkeypatch.setattr(State, "update", update)
    kept_stretch = common.Problem.stretch
    monkeypatch.setattr(
        common.Problem, "stretch", lambda self, most: kept_stretch(self, most, steps=4)
    )
    with pytest.warns(ingot.IngotWarning, match="did not converge"):
        record, _ = plate.stretch("crystal", 3)
    assert any(failures)
    assert record.cuts > 0
    assert record.curve[-1][0] == common.STRETCH["crystal"]
    assert len(record.residuals) > 4


# closed forms


def solve_newton(
    assemble: Callable[[np.ndarray], tuple[np.ndarray, Any]], u: np.ndarray, fixed: np.ndarray,
    outer: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Displacements at which forces are those from outside."""
    from scipy.sparse.linalg import spsolve

    free = np.setdiff1d(np.arange(len(u)), fixed)
    for _ in range(15):
        force, matrix = assemble(u)
        rest = (outer - force)[free]
        if np.abs(rest).max() < 1e-9 * max(np.abs(force).max(), 1e-30):
            return u
        u = u.copy()
        u[free] += spsolve(matrix.tocsr()[free][:, free].tocsc(), rest)
    raise AssertionError("Newton's method did not converge")


def skfem_forces(plate: ModuleType, basis: Any, state: State, time: float) -> Any:
    """Forces and slopes of displacements, in plane strain."""
    from skfem.helpers import sym_grad

    def assemble(u: np.ndarray) -> tuple[np.ndarray, Any]:
        strain = PLANE.strain(np.asarray(sym_grad(basis.interpolate(u))), first=True)
        update = state.update({"strain": strain, "t": time})
        tangent = PLANE.tangent(update.tangent("stress", "strain"), first=True)
        stress = PLANE.stress(update["stress"], first=True)
        force = plate.internal.assemble(basis, stress=stress)
        return force, plate.stiffness.assemble(basis, tangent=tangent)

    return assemble


def steel_of(**values: Any) -> ingot.Artifact:
    lines = "\n".join(f"{name} = {value}" for name, value in values.items())
    text = f"[Models]\n[steel]\ntype = J2Plasticity\n{lines}\n[]\n[]"
    return ingot.compile(ingot.from_hit(text, "steel"), derivative=("stress:strain",))


def test_a_thick_cylinder_yields_as_in_the_books() -> None:
    r"""Nearly incompressible and without hardening, plastic from $a$ to $c$.

    The pressure is $p = k (2 \ln(c/a) + 1 - c^2/b^2)$; the outer radius grows by
    $2 k c^2 (1 - \nu^2) / (E b)$.
    """
    plate = load_example("plate_skfem")
    import skfem

    inner, middle, outer, young, nu, limit = 1.0, 1.5, 2.0, 200e3, 0.499, 250.0
    radius, angle = np.linspace(inner, outer, 13), np.linspace(0, np.pi / 2, 7)
    flat = skfem.MeshQuad.init_tensor(radius, angle)
    x = flat.p[0] * np.cos(flat.p[1]), flat.p[0] * np.sin(flat.p[1])
    nodes = np.stack(x)
    nodes[np.abs(nodes) < 1e-12] = 0
    mesh = skfem.MeshQuad(nodes, flat.t)
    basis = skfem.Basis(mesh, skfem.ElementVector(skfem.ElementQuadS2()), intorder=3)
    state = State(steel_of(E=young, nu=nu, yield_stress=limit), (mesh.nelements, basis.X.shape[-1]))
    shear = limit / np.sqrt(3)
    pressure = shear * (2 * np.log(middle / inner) + 1 - middle**2 / outer**2)
    hole = mesh.facets_satisfying(lambda x: np.hypot(*x) < inner + 0.05, boundaries_only=True)
    side = skfem.FacetBasis(mesh, skfem.ElementVector(skfem.ElementQuadS2()), facets=hole)
    push = skfem.LinearForm(lambda v, w: -(w.n[0] * v[0] + w.n[1] * v[1])).assemble(side)
    left = basis.get_dofs(lambda x: np.abs(x[0]) < 1e-9).all(["u^1", "u^1"])
    bottom = basis.get_dofs(lambda x: np.abs(x[1]) < 1e-9).all(["u^2", "u^2"])
    fixed = np.concatenate([left, bottom])
    u = np.zeros(basis.N)
    for time in np.linspace(0, 1, 6)[1:]:
        assemble = skfem_forces(plate, basis, state, float(time))
        u = solve_newton(assemble, u, fixed, time * pressure * push)
        state.commit()
    grown = u[basis.nodal_dofs[0][np.argmax(mesh.p[0])]]
    exact = 2 * shear * middle**2 * (1 - nu**2) / (young * outer)
    assert grown == pytest.approx(exact, rel=5e-3)
    places = np.hypot(*np.asarray(basis.global_coordinates()))
    plastic = state["plastic_strain"].norm(dim=-1).numpy() > 1e-7
    assert (places[plastic].max() - middle) < 0.1
    assert (middle - places[~plastic].min()) < 0.1


@pytest.mark.parametrize("amount", [5e-4, 5e-3], ids=["elastic", "plastic"])
def test_a_patch_of_elements_holds_a_uniform_strain(amount: float) -> None:
    """A linear displacement of the edge is one of the whole patch, however distorted."""
    plate = load_example("plate_skfem")
    import skfem

    mesh = skfem.MeshQuad.init_tensor(np.linspace(0, 1, 4), np.linspace(0, 1, 4))
    inside = mesh.interior_nodes()
    nodes = mesh.p.copy()
    nodes[:, inside] += np.random.default_rng(2).uniform(-0.08, 0.08, size=(2, len(inside)))
    mesh = skfem.MeshQuad(nodes, mesh.t)
    basis = skfem.Basis(mesh, skfem.ElementVector(skfem.ElementQuad1()), intorder=3)
    state = State(
        steel_of(E=200e3, nu=0.3, yield_stress=250, isotropic_hardening="linear",
                 hardening_modulus=2000), (mesh.nelements, basis.X.shape[-1]),
    )  # fmt: skip
    slope = amount * np.array([[1.0, 0.3], [-0.2, -0.5]])
    exact = np.zeros(basis.N)
    for axis in range(2):
        exact[basis.nodal_dofs[axis]] = slope[axis] @ mesh.p
    fixed = basis.nodal_dofs[:, mesh.boundary_nodes()].reshape(-1)
    start = np.zeros(basis.N)
    start[fixed] = exact[fixed]
    assemble = skfem_forces(plate, basis, state, 1.0)
    u = solve_newton(assemble, start, fixed, np.zeros(basis.N))
    np.testing.assert_allclose(u, exact, atol=1e-10 * amount / 5e-4)
    state.commit()
    plastic = state["equivalent_plastic_strain"]
    assert bool((plastic > 0).all()) == (amount > 1e-3)
    assert float(plastic.max() - plastic.min()) < 1e-12


@pytest.mark.parametrize("amount", [1e-3, 4e-3], ids=["elastic", "plastic"])
def test_one_element_is_the_tension_test(amount: float) -> None:
    r"""$\sigma = \sigma_y + E H / (E + H) (\varepsilon - \sigma_y / E)$, in FElupe and in 3D."""
    felupe = pytest.importorskip("felupe", reason="felupe is not installed: install ingot[fem]")
    example, common = load_example("plate_felupe"), load_example("common")
    young, hardening, limit = 200e3, 2000.0, 250.0
    mesh = felupe.Cube(n=2)
    field = felupe.FieldContainer([felupe.Field(felupe.RegionHexahedron(mesh), dim=3)])
    state = State(common.compile_material("steel"), (8, 1))
    material = example.Material(state, common.Record(8))
    material.given = {"t": 1.0}
    solid = felupe.SolidBody(material, field)

    def assemble(u: np.ndarray) -> tuple[np.ndarray, Any]:
        field[0].values[:] = u.reshape(-1, 3)
        force = solid.assemble.vector(field).toarray()[:, 0]
        return force, solid.assemble.matrix(field)

    nodes = np.arange(8)
    planes = [3 * nodes[mesh.points[:, i] < 1e-9] + i for i in range(3)]
    pulled = 3 * nodes[mesh.points[:, 0] > 1 - 1e-9]
    u = np.zeros(24)
    u[pulled] = amount
    u = solve_newton(assemble, u, np.concatenate([*planes, pulled]), np.zeros(24))
    stress = assemble(u)[0][pulled].sum()
    slope = young * hardening / (young + hardening)
    exact = min(young * amount, limit + slope * (amount - limit / young))
    assert stress == pytest.approx(exact, rel=1e-9)
    assert TENSOR.stress(material.update["stress"])[0, 0, 1, 1] == pytest.approx(0, abs=1e-7)


# FEniCSx, which Debian builds for its own Python


def test_the_plate_in_fenicsx_is_that_of_scikit_fem(tmp_path: Path) -> None:
    """In an environment of its own (`make hosts`), by the same example."""
    python = ROOT / ".hosts" / "dolfinx" / "bin" / "python"
    if not python.exists():
        pytest.skip("FEniCSx is not installed: apt-get install python3-dolfinx, then make hosts")
    code = (
        "import sys, json, pathlib; sys.path.insert(0, sys.argv[1]); import plate_dolfinx as p\n"
        "found = {n: p.stretch(n, int(sys.argv[2]))[0] for n in p.common.STRETCH}\n"
        "told = {n: [r.curve, r.residuals] for n, r in found.items()}\n"
        "pathlib.Path(sys.argv[3]).write_text(json.dumps(told))"
    )
    file = tmp_path / "plate.json"
    command = [str(python), "-c", code, str(FOLDER), str(SIZE), str(file)]
    source = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run(command, check=True, capture_output=True, env=source, cwd=tmp_path)
    told = json.loads(file.read_text())
    for material in MATERIALS:
        curve, residuals = told[material]
        assert_quadratic(residuals)
        gap = load_example("common").find_gap(
            [tuple(x) for x in curve], stretch_plate("skfem", material).curve
        )
        assert gap < 1e-8
