"""What is wrong with a lattice Boltzmann file is told at its line, and quirks are told once."""

import warnings
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from ingot.errors import IngotError, IngotWarning
from ingot.fields import build, prepared
from ingot.fields.declare import BOUNDARIES, COMPUTES, REQUIRED
from ingot.fields.lbm.setting import QUIRKS, SPATIAL
from ingot.fields.quirks import quirks
from ingot.hit import read
from tests.fields.lbm.cases import (
    COLLISION,
    DENSITY,
    FLOW,
    VELOCITY,
    advance,
    lattice_input,
    started,
)

WALL = {"type": "LBMBounceBack", "buffer": "f", "f_old": "fpc", "boundary": "wall"}


def told(text: str, folder: Path) -> str:
    file = folder / "lattice.i"
    file.write_text(text)
    with pytest.raises(IngotError) as error:
        build(read(file, moose=True))
    return str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("type = LBMD2Q9", "type = LBMD3Q19"), "D3Q19 has 3 axes, the [Domain] has 2"),
        (("type = LBMD2Q9", "type = LBMD2Q7"), "no type 'LBMD2Q7'"),
        (("'LatticeBoltzmannProblem'", "'TensorProblem'"), "[Stencil] needs a lattice Boltzmann"),
        (("'LBMStream'", "'ForwardEulerSolver'"), "f_old"),
        (("[lattice]", "[one]\ntype = LBMD2Q9\n[]\n[lattice]"), "there is already a stencil"),
        (("buffer_type = 'df'", "buffer_type = 'dg'"), "df, mv, ms"),
        (("tau0 = '0.8'", "tau0 = 'tau'"), "Constant tau was requested but never declared"),
        (("'LBMStream'", "'LBMStream'\nroot_compute = rot"), "[Solve] has no compute 'rot'"),
        (("f_old = 'fpc'", "f_old = 'rho'"), "LBMStream moves 'rho', which is no distribution"),
        (("constants = '1'", "constants = '1 2'"), "'rho' has 1 components, and 'constants' 2"),
        (("marlin_compatible", "binary_media = rh\nmarlin_compatible"),
         "binary_media names 'rh', which nothing writes"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_told(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    text = lattice_input((6, 5), "D2Q9")
    assert change[0] in text
    assert message in told(text.replace(*change), tmp_path)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (WALL, "needs a medium"),
        ({**WALL, "boundary": "front"}, "a box of two axes has no front"),
        ({**WALL, "boundary": "regional"}, "does not work on boundary = regional"),
        ({**WALL, "boundary": "ceiling"}, "ceiling"),
        ({**WALL, "type": "LBMSpecularReflectionBoundary"}, "no type"),
    ],
)
def test_a_wrong_boundary_is_told(condition: dict[str, str], message: str, tmp_path: Path) -> None:
    assert message in told(lattice_input((6, 5), "D2Q9", boundary={"b": condition}), tmp_path)


def test_a_wall_after_another_boundary_needs_a_medium_too(tmp_path: Path) -> None:
    both = {"a": {**WALL, "boundary": "left"}, "b": WALL}
    text = lattice_input((6, 5), "D2Q9", boundary=both, compatible=True)
    assert "needs a medium" in told(text, tmp_path)


def test_a_media_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    text = lattice_input((6, 5), "D2Q9", buffers={**FLOW, "media": "ms"})
    text = text.replace("[media]\n", "[media]\nfile = nothing.h5\n")
    assert "there is no file 'nothing.h5'" in told(text, tmp_path)


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        ({"other": np.ones((6, 5))}, "'media.h5' has no set 'media'; it has other"),
        ({"media": np.ones((5, 6))}, "'media.h5' has 5 x 6 numbers, the buffer 6 x 5"),
        ({"media": np.ones((6, 5, 2))}, "'media.h5' has 6 x 5 x 2 numbers, the buffer 6 x 5"),
        (None, "'media.h5' is not an HDF5 file"),
    ],
)
def test_a_media_file_that_does_not_fit_is_told(
    stored: dict[str, Any] | None, message: str, tmp_path: Path
) -> None:
    text = lattice_input((6, 5), "D2Q9", buffers={**FLOW, "media": "ms"})
    (tmp_path / "media.h5").write_text("no numbers")
    if stored is not None:
        with h5py.File(tmp_path / "media.h5", "w") as file:
            for name, values in stored.items():
                file[name] = values
    with pytest.raises(IngotError) as error:
        started(text.replace("[media]\n", "[media]\nfile = media.h5\n"), tmp_path)
    assert message in str(error.value) and "lattice.i:" in str(error.value)


FIXED = {"type": "LBMFixedFirstOrderBC", "buffer": "f", "f": "f", "value": 0.1}
PUSH = {**VELOCITY, "add_body_force": "true"}
GRAVITY = {"type": "LBMComputeForces", "buffer": "force", "rho0": 2}
VALUE = {"type": "LBMDirichletBC", "buffer": "f", "f_old": "fpc", "feq": "feq", "velocity": "u",
         "rho": "rho", "value": 1}  # fmt: skip


@pytest.mark.parametrize(
    ("option", "boundary", "solve"),
    [
        ("perturb", {**FIXED, "boundary": "right", "perturb": "true"}, {}),
        ("exclude_corners_x", {**WALL, "boundary": "left", "exclude_corners_x": "true"}, {}),
        ("exclude_corners_z", {**WALL, "boundary": "left", "exclude_corners_z": "true"}, {}),
        ("region_id", {**VALUE, "boundary": "top", "region_id": 2}, {}),
        ("body_force_y", {}, {**VELOCITY, "body_force_y": 1e-3}),
        ("body_force_z", {}, {**PUSH, "body_force_z": 1e-3}),
        ("forces", {}, {**VELOCITY, "forces": "push"}),
        ("rho0", {}, {**GRAVITY, "enable_gravity": "true"}),
        ("Cs", {}, {**COLLISION, "Cs": 0.3}),
    ],
)
def test_an_option_that_changes_nothing_is_told_and_strictly_refused(
    option: str, boundary: dict[str, Any], solve: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "lattice.i"
    kinds = {**FLOW, "force": "mv"}
    blocks = {"b": boundary} if boundary else {}
    computes = {"rho": DENSITY, **({"c": solve} if solve else {})}
    text = lattice_input((6, 5), "D2Q9", boundary=blocks, solve=computes, buffers=kinds)
    file.write_text(text)
    simulation = build(read(file, moose=True))
    line = next(n for n, row in enumerate(text.splitlines(), 1) if row.startswith(f"{option} ="))
    (doubt,) = simulation.doubts
    assert doubt.code == "idle-option" and f"'{option}' of" in doubt.message
    assert doubt.span is not None and doubt.span.line == line
    with pytest.raises(IngotError, match="idle-option"):
        prepared(simulation, tmp_path, strict=True)


def test_options_that_count_are_not_doubted(tmp_path: Path) -> None:
    file = tmp_path / "lattice.i"
    blocks = {
        "a": {**FIXED, "boundary": "left", "perturb": "true"},
        "b": {**WALL, "boundary": "top", "exclude_corners_x": "true"},
        "c": {**VALUE, "boundary": "bottom"},
    }
    solve = {"rho": DENSITY, "u": {**PUSH, "body_force_y": 1e-3},
             "force": {**GRAVITY, "enable_gravity": "true", "rho0": 1}}  # fmt: skip
    kinds = {**FLOW, "force": "mv"}
    file.write_text(lattice_input((6, 5), "D2Q9", boundary=blocks, solve=solve, buffers=kinds))
    assert not build(read(file, moose=True)).doubts


MEDIUM = "[media]\ntype = 'LBMTensorBuffer'\nbuffer_type = 'ms'\n"


def with_medium(numbers: list[int], folder: Path, boundary: dict[str, Any]) -> str:
    """An input whose medium has some numbers along y."""
    with h5py.File(folder / "media.h5", "w") as file:
        file["media"] = np.broadcast_to(numbers, (6, len(numbers)))
    text = lattice_input(
        (6, len(numbers)), "D2Q9", buffers={**FLOW, "media": "ms"},
        boundary={"b": boundary} if boundary else {}, problem={"binary_media": "media"},
    )  # fmt: skip
    return text.replace(MEDIUM, f"{MEDIUM}file = media.h5\nis_integer = true\n")


@pytest.mark.parametrize(
    ("numbers", "region", "regions"),
    [([0, 1, 1, 2, 0], 7, "1, 2"), ([0, 1, 1, 2, 0], 0, "1, 2"), ([1, 1, 1], 2, "1")],
)
def test_a_region_without_open_cells_is_an_error(
    numbers: list[int], region: int, regions: str, tmp_path: Path
) -> None:
    wanted = {**VALUE, "boundary": "regional", "region_id": region}
    text = with_medium(numbers, tmp_path, wanted)
    with pytest.raises(IngotError) as error:
        started(text, tmp_path)
    line = text.splitlines().index(f"region_id = '{region}'") + 1
    assert f"region_id = {region} is no region of 'media'" in str(error.value)
    assert f"lattice.i:{line}:" in str(error.value) and f"it: {regions}" in str(error.value)


@pytest.mark.parametrize(
    ("numbers", "boundary", "found"),
    [
        ([1, 1, 1], WALL, ["boundary = wall", "binary_media"]),
        ([0, 0, 0], WALL, ["boundary = wall", "binary_media"]),
        ([1, 1, 2], {}, ["binary_media"]),
        ([0, 1, 1], WALL, []),
        ([1, 1, 2], {**VALUE, "boundary": "regional", "region_id": 2}, []),
    ],
)
def test_a_medium_that_changes_nothing_is_told(
    numbers: list[int], boundary: dict[str, Any], found: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "lattice.i"
    file.write_text(with_medium(numbers, tmp_path, boundary))
    run = prepared(build(read(file, moose=True)), tmp_path, jit=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", IngotWarning)
        run.start()
    assert sorted(str(each.message).split("'")[1] for each in caught) == sorted(found)
    assert all("idle-option" in str(each.message) for each in caught)
    strict = prepared(build(read(file, moose=True)), tmp_path, jit=False, strict=True)
    if found:
        with pytest.raises(IngotError, match="idle-option"):
            strict.start()


def test_options_around_a_lattice_that_change_nothing_are_told(tmp_path: Path) -> None:
    text = lattice_input((6, 5), "D2Q9", problem={"tolerance": 1e-3})
    text = text.replace("'LBMStream'", "'LBMStream'\nroot_compute = collide")
    file = tmp_path / "lattice.i"
    file.write_text(text.replace("dim = '2'", "dim = '2'\nnz = 4\nzmax = 2"))
    doubts = build(read(file, moose=True)).doubts
    names = [doubt.message.split("'")[1] for doubt in doubts]
    assert sorted(names) == ["nz", "root_compute", "tolerance", "zmax"]
    speed = {"type": "LBMComputeVelocityMagnitude", "buffer": "speed", "velocity": "u"}
    change = {"type": "LBMComputeResidual", "buffer": "change", "speed": "speed"}
    solve = {"rho": DENSITY, "u": VELOCITY, "speed": speed, "change": change}
    file.write_text(lattice_input((6, 5), "D2Q9", solve=solve, problem={"tolerance": 1e-3}))
    assert not build(read(file, moose=True)).doubts


def test_a_scalar_of_a_file_is_read_without_a_lattice_too(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "media.h5", "w") as file:
        file["media"] = np.arange(6)
    text = f"[Domain]\ndim = 1\nnx = 6\n[]\n[TensorBuffers]\n{MEDIUM}file = media.h5\n[]\n[]"
    assert started(text, tmp_path).state.buffers["media"].tolist() == list(range(6))


def test_a_box_of_one_layer_has_no_open_face(tmp_path: Path) -> None:
    face = {"type": "LBMMicroscopicZeroGradientBC", "buffer": "f", "boundary": "left"}
    run = started(lattice_input((1, 5), "D2Q9", boundary={"b": face}), tmp_path)
    with pytest.raises(IngotError, match="one layer of cells between left and its opposite"):
        advance(run)


def test_a_relaxation_time_of_nothing_is_told(tmp_path: Path) -> None:
    text = lattice_input((6, 5), "D2Q9", solve={"c": {**COLLISION, "tau0": 0}})
    with pytest.raises(IngotError, match=r"'c' cannot be computed: .*division by zero"):
        advance(started(text, tmp_path))


def test_gravity_needs_an_axis_of_the_box(tmp_path: Path) -> None:
    down = {**GRAVITY, "gravity_direction": 2, "enable_gravity": "true"}
    text = lattice_input((6, 5), "D2Q9", solve={"c": down}, buffers={**FLOW, "force": "mv"})
    assert "gravity_direction = 2 is no axis" in told(text, tmp_path)


def test_faces_across_the_reference_are_refused_in_three_dimensions(tmp_path: Path) -> None:
    condition = {"type": "LBMFixedZerothOrderBC", "buffer": "f", "f": "f", "value": "1",
                 "boundary": "top"}  # fmt: skip
    text = lattice_input((4, 4, 4), "D3Q19", boundary={"b": condition}, compatible=True)
    assert "left and right" in told(text, tmp_path)


def test_quirks_are_warned_of_and_strictly_refused(tmp_path: Path) -> None:
    eddies = {**COLLISION, "type": "LBMSmagorinskyCollision"}
    solve = {"c": eddies, "d": {**eddies, "buffer": "other"}}
    file = tmp_path / "lattice.i"
    file.write_text(lattice_input((6, 5), "D2Q9", solve=solve, compatible=True))
    simulation = build(read(file, moose=True))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", IngotWarning)
        prepared(simulation, tmp_path)
    texts = [str(each.message) for each in found]
    assert sum("first step" in each for each in texts) == 1
    assert sum("eddies" in each for each in texts) == 1
    with pytest.raises(IngotError, match="reference-quirk"):
        prepared(simulation, tmp_path, strict=True)


SCALARS = {"scalar_field": "rho", "phi": "rho", "laplacian_phi": "rho", "grad_phi": "u",
           "thickness": 3, "sigma": 0.1, "tau_phi": 0.9, "rho": "rho", "forces": "u"}  # fmt: skip
TOLD = [
    *((name, "D2Q9", text) for name, text in QUIRKS.items()),
    *((name, "D3Q27", text) for name, text in SPATIAL.items()),
]


@pytest.mark.parametrize(("name", "stencil", "text"), TOLD, ids=lambda each: str(each)[:20])
def test_every_quirk_of_a_type_is_told_once_and_not_where_the_block_is_right(
    name: str, stencil: str, text: str, tmp_path: Path
) -> None:
    declared = {**BOUNDARIES, **COMPUTES}[name]
    known = {**COLLISION, **SCALARS, "buffer": "fpc", "boundary": "left", "value": 1}
    block = {option.name: known[option.name] for option in declared.options
             if option.default is REQUIRED}  # fmt: skip
    file = tmp_path / "lattice.i"

    def found(**more: str) -> list[str]:
        one = {"b": {"type": name, **block, **more}}
        boundary = one if name in BOUNDARIES else {}
        sizes = (6, 5, 4)[: 2 if stencil == "D2Q9" else 3]
        file.write_text(
            lattice_input(sizes, stencil, boundary=boundary, solve={} if boundary else one,
                          compatible=True)
        )  # fmt: skip
        return [each.message for each in quirks(build(read(file, moose=True)))]

    assert sum(text in each for each in found()) == 1
    assert not any(text in each for each in found(marlin_compatible="false"))


def test_a_corrected_file_has_no_quirk(tmp_path: Path) -> None:
    file = tmp_path / "lattice.i"
    file.write_text(lattice_input((6, 5), "D2Q9"))
    prepared(build(read(file, moose=True)), tmp_path, strict=True)
