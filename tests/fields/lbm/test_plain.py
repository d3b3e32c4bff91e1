"""Whole runs of random lattices: direct, compiled, and by a program of plain NumPy."""

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch

from ingot.errors import IngotWarning
from ingot.fields import Run, build, prepared
from ingot.fields.checkpoint import restore, store
from ingot.fields.lbm.stencils import STENCILS, Stencil
from ingot.fields.quirks import quirks
from ingot.hit import read
from tests.fields.lbm.cases import (
    COLLISION,
    DENSITY,
    FLOW,
    VELOCITY,
    Blocks,
    advance,
    lattice_input,
    started,
)
from tests.fields.lbm.cases import equilibrium as equilibrium_block
from tests.fields.lbm.plain import Plain

COLLISIONS = ("LBMBGKCollision", "LBMMRTCollision", "LBMSmagorinskyCollision",
              "LBMSmagorinskyMRTCollision")  # fmt: skip
FACES = ("left", "right", "bottom", "top", "front", "back")
KINDS = ("LBMBounceBack", "LBMMicroscopicZeroGradientBC", "LBMFixedFirstOrderBC",
         "LBMFixedZerothOrderBC", "LBMDirichletBC", "LBMNeumannBC")  # fmt: skip


@dataclass(frozen=True)
class Case:
    """An input, what its distributions start with, and its medium."""

    stencil: str
    sizes: tuple[int, ...]
    compatible: bool
    solve: Blocks
    boundary: Blocks
    buffers: dict[str, str]
    streams: tuple[tuple[str, str], ...]
    start: dict[str, Any]
    media: Any
    more: str = ""

    def text(self, *extra: str) -> str:
        to, source = (" ".join(names) for names in zip(*self.streams, strict=True))
        shown = "\n".join(
            f"[of_{name}]\ntype = TensorAveragePostprocessor\nbuffer = {name}\n[]"
            for name in self.buffers
        )
        made = lattice_input(
            self.sizes, self.stencil, initialize={}, solve=self.solve, boundary=self.boundary,
            buffers=self.buffers, streams=(to, source), compatible=self.compatible,
            problem={} if self.media is None else {"binary_media": "media"},
            more="\n".join((f"[Postprocessors]\n{shown}\n[]", self.more, *extra)),
        )  # fmt: skip
        declared = "[media]\ntype = 'LBMTensorBuffer'\nbuffer_type = 'ms'\n"
        return made.replace(declared, declared + "file = media.h5\nis_integer = true\n")

    def run(self, folder: Path, *extra: str, jit: bool, kind: torch.dtype = torch.float64) -> Run:
        if self.media is not None:
            with h5py.File(folder / "media.h5", "w") as file:
                file["media"] = self.media
        run = started(self.text(*extra), folder, jit=jit)
        for name, value in self.start.items():
            run.state.buffers[name] = torch.from_numpy(value.copy()).to(kind)
        return run

    def plain(self, noise: int | None = None) -> Plain:
        q, dim = STENCILS[self.stencil].q, len(self.sizes)
        sizes = {"df": (q,), "mv": (dim,), "ms": ()}
        fields = {n: np.zeros((*self.sizes, *sizes[k])) for n, k in self.buffers.items()}
        fields |= {name: value.copy() for name, value in self.start.items()}
        if self.media is not None:
            fields["media"] = self.media
        return Plain(self.stencil, self.sizes, self.compatible, self.solve, self.boundary,
                     self.streams, fields, self.media,
                     noise=None if noise is None else np.random.default_rng(noise))  # fmt: skip


def flag(dice: Any, chance: float = 0.5) -> str:
    return str(dice.random() < chance).lower()


def drawn(seed: int) -> Case:
    """A lattice with a flow, perhaps with heat in it, solid cells, forces, and boundaries."""
    dice = np.random.default_rng(seed)
    stencil = str(dice.choice(list(STENCILS)))
    lattice = STENCILS[stencil]
    sizes = tuple(int(n) for n in dice.choice((1, 2, 3, 4, 5, 7), lattice.dim))
    compatible = bool(dice.random() < 0.5)
    media = None
    if dice.random() < 0.6:
        media = dice.choice((0, 1, 2), sizes, p=(0.25, 0.5, 0.25)).astype(np.int64)
        media[(0,) * lattice.dim] = 1
    heat, forces = dice.random() < 0.5, dice.random() < 0.5
    tau = float(dice.uniform(0.55, 1.5))
    solve: dict[str, dict[str, Any]] = {"rho": DENSITY}
    buffers = {**FLOW, "speed": "ms", **({} if media is None else {"media": "ms"})}
    if heat:
        solve["T"] = {**DENSITY, "buffer": "T", "f": "g"}
        buffers |= {"T": "ms", "g": "df", "geq": "df", "gpc": "df"}
    if forces:
        solve["force"] = {
            "type": "LBMComputeForces", "buffer": "force", "gravity": dice.uniform(-0.01, 0.01),
            "gravity_direction": dice.integers(lattice.dim), "enable_gravity": flag(dice),
            "enable_buoyancy": flag(dice) if heat else "false", "rho0": 1.2, "T0": 0.9,
        }  # fmt: skip
        buffers["force"] = "mv"
    solve["u"] = {
        **VELOCITY, "enable_forces": str(forces).lower(), "forces": "force",
        "add_body_force": flag(dice), "body_force_x": 1e-3, "body_force_y": -2e-3,
        "body_force_z": 5e-4,
    }  # fmt: skip
    solve["feq"] = equilibrium_block("feq")
    solve["collide"] = {
        **COLLISION, "type": str(dice.choice(COLLISIONS)), "tau0": tau, "projection": flag(dice),
        "Cs": float(dice.choice((0.0, 0.1, 0.3))),
    }  # fmt: skip
    if forces:
        own = {"velocity": "u"} if dice.random() < 0.5 else {}
        solve["push"] = {"type": "LBMApplyForces", "buffer": "fpc", "rho": "rho",
                         "forces": "force", "tau0": tau, **own}  # fmt: skip
    if heat:
        solve["geq"] = equilibrium_block("geq", "T")
        solve["spread"] = {**COLLISION, "buffer": "gpc", "f": "g", "feq": "geq", "tau0": 0.7,
                           "projection": flag(dice, 0.3)}  # fmt: skip
    solve["speed"] = {"type": "LBMComputeVelocityMagnitude", "buffer": "speed", "velocity": "u"}
    moved = [("f", "fpc"), *([("g", "gpc")] if heat else [])]
    boundary = {
        f"b{at}": condition(dice, lattice.dim, sizes, compatible, media, heat)
        for at in range(dice.integers(0, 6))
    }
    start = {}
    for _, name in moved:
        f = np.array(lattice.weights) * (1 + 0.1 * dice.standard_normal((*sizes, lattice.q)))
        if media is not None:
            f[media == 0] = 0
        start[name] = f
    return Case(stencil, sizes, compatible, solve, boundary, buffers, tuple(moved), start, media)


def condition(
    dice: Any, dim: int, sizes: tuple[int, ...], compatible: bool, media: Any, heat: bool
) -> dict[str, Any]:
    """A boundary condition of any kind, where it may stand."""
    kind = str(dice.choice(KINDS))
    faces = [face for at, face in enumerate(FACES[: 2 * dim]) if sizes[at // 2] > 1
             or kind != "LBMMicroscopicZeroGradientBC"]  # fmt: skip
    fixed = kind in ("LBMFixedFirstOrderBC", "LBMFixedZerothOrderBC")
    if fixed and compatible and dim == 3:
        faces = ["left", "right"]
    if media is not None and not fixed and kind != "LBMMicroscopicZeroGradientBC":
        faces += ["wall"] * 2 + ["regional"] * (0 if kind == "LBMBounceBack" else 2)
    if not faces:
        return condition(dice, dim, sizes, compatible, media, heat)
    of = "g" if heat and dice.random() < 0.4 else "f"
    face = str(dice.choice(faces))
    block: dict[str, Any] = {"type": kind, "buffer": of, "boundary": face}
    number = float(dice.uniform(-0.1, 0.1))
    if kind == "LBMBounceBack":
        if face != "wall":
            tangents = [a for a in range(dim) if a != FACES.index(face) // 2]
            block |= {f"exclude_corners_{'xyz'[a]}": flag(dice, 0.4) for a in tangents}
        return {**block, "f_old": f"{of}pc"}
    if kind in ("LBMDirichletBC", "LBMNeumannBC"):
        block |= {"f_old": f"{of}pc", "feq": f"{of}eq", "velocity": "u",
                  "rho": "T" if of == "g" else "rho"}  # fmt: skip
        if face == "regional":
            block["region_id"] = int(dice.choice([n for n in (1, 2) if (media == n).any()]))
        return {**block, **({"value": 1 + number} if "Dirichlet" in kind else {"gradient": number})}
    if fixed:
        ripple = kind == "LBMFixedFirstOrderBC" and dim == 2 and face == "left"
        block |= {"perturb": flag(dice)} if ripple else {}
        return {**block, "f": of, "value": number + (kind == "LBMFixedZerothOrderBC")}
    return block


NOISY = 6
"""How many runs of plain NumPy show what rounding may do."""

ROUNDINGS = 4 * np.finfo(float).eps
"""What a chain of operations rounds off numbers of size 1 that no noise moves, as x - x."""

SAFETY = 8
"""How much further than the noisy runs a run may lie; of 800 drawn the furthest is at 1.34."""


def check(case: Case, folder: Path, *, jit: bool, steps: int = 3) -> None:
    """After each of some steps all fields of a run are those of plain NumPy, up to rounding.

    How far that may take them apart is seen in runs of plain NumPy in which every number that is
    written moves by a unit in its last place: much, where a density nearly vanishes.
    """
    run, plain = case.run(folder, jit=jit), case.plain()
    noisy = [case.plain(noise) for noise in range(NOISY)]
    for number in range(steps):
        advance(run)
        for each in (plain, *noisy):
            each.step()
        for name in case.buffers:
            found, expected = run.state.buffers[name].numpy(), plain.fields[name]
            others = np.stack([each.fields[name] for each in noisy])
            finite = np.isfinite(expected)
            sure = (np.isfinite(others) == finite).all(0)
            at = (number, name, case)
            assert (np.isfinite(found) == finite)[sure].all(), at
            sure &= finite
            with np.errstate(invalid="ignore"):
                miss, spread = np.abs(found - expected), np.abs(others - expected).max(0)
            spread, size = (np.where(sure, x, 0) for x in (spread, np.abs(expected)))
            if expected.ndim > len(case.sizes):  # the components of a cell are of one size
                spread, size = (x.max(-1, keepdims=True) for x in (spread, size))
            allowed = SAFETY * (spread + ROUNDINGS * np.maximum(size, 1))
            assert (miss <= allowed)[sure].all(), (miss[sure].max(), spread.max(), at)


@pytest.mark.parametrize("seed", [*range(30), 159, 201, 1544])  # in 1544 a density nearly vanishes
def test_a_run_is_that_of_plain_numpy(seed: int, tmp_path: Path) -> None:
    check(drawn(seed), tmp_path, jit=False)


@pytest.mark.exhaustive
def test_five_hundred_runs_are_those_of_plain_numpy(tmp_path: Path) -> None:
    for seed in range(1000, 1500):
        check(drawn(seed), tmp_path, jit=False)


@pytest.mark.parametrize(
    "seed", [201, *(pytest.param(each, marks=pytest.mark.exhaustive) for each in range(12))]
)
def test_a_compiled_run_is_that_of_plain_numpy(seed: int, tmp_path: Path) -> None:
    check(drawn(seed), tmp_path, jit=True)


@pytest.mark.parametrize("jit", [False, True], ids=["direct", "jit"])
@pytest.mark.parametrize("seed", [3, 201])
def test_a_stored_run_goes_on_bit_for_bit(seed: int, jit: bool, tmp_path: Path) -> None:
    case = drawn(seed)
    whole = case.run(tmp_path, jit=jit)
    for number in range(5):
        whole.step()
        if number == 2:
            store(whole, tmp_path / "half.checkpoint")
    simulation = build(read(tmp_path / "lattice.i", moose=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IngotWarning)
        rest = prepared(simulation, tmp_path, jit=jit)
    restore(rest, tmp_path / "half.checkpoint")
    for _ in range(2):
        rest.step()
    assert rest.number == whole.number == 5
    assert rest.state.buffers.keys() == whole.state.buffers.keys()
    for name, value in whole.state.buffers.items():
        assert torch.equal(value, rest.state.buffers[name]), (name, case)


@pytest.mark.parametrize(
    ("seed", "jit"), [*((each, False) for each in range(200, 212)), (201, True)]
)
def test_single_precision_is_single_throughout(seed: int, jit: bool, tmp_path: Path) -> None:
    case, single = drawn(seed), "[Domain]\nfloating_precision = SINGLE\n[]"
    run, plain = case.run(tmp_path, single, jit=jit, kind=torch.float32), case.plain()
    for _ in range(2):
        advance(run)
        plain.step()
        if not all(np.isfinite(value).all() for value in plain.fields.values()):
            break
        for name in case.buffers:
            found, expected = run.state.buffers[name], plain.fields[name]
            assert found.dtype == (torch.int64 if name == "media" else torch.float32), name
            miss = np.abs(found.numpy() - expected).max()
            assert miss < 5e-6 * max(1.0, np.abs(expected).max()), (name, miss, case)


@pytest.mark.parametrize(
    "seed", [5009, *(pytest.param(n, marks=pytest.mark.exhaustive) for n in range(5010, 5100))]
)
def test_where_the_reference_differs_from_the_mathematics_it_is_told(
    seed: int, tmp_path: Path
) -> None:
    case = drawn(seed)
    fixed = ("LBMFixedFirstOrderBC", "LBMFixedZerothOrderBC")
    both = {  # the reference has these on two faces of a box
        name: block for name, block in case.boundary.items()
        if len(case.sizes) == 2 or block["type"] not in fixed
        or block["boundary"] in ("left", "right")
    }  # fmt: skip
    case = replace(case, boundary=both)
    first, second = (
        replace(case, compatible=flag).run(tmp_path, jit=False) for flag in (True, False)
    )
    advance(first, 3)
    advance(second, 3)
    pairs = ((first.state.buffers[n], second.state.buffers[n]) for n in case.buffers)
    same = all(torch.allclose(a, b, rtol=1e-11, atol=1e-12, equal_nan=True) for a, b in pairs)
    told = [each for each in quirks(first.simulation) if "first step" not in each.message]
    assert same or told, case
    assert not list(quirks(second.simulation))


@pytest.mark.parametrize("compatible", [False, True])
@pytest.mark.parametrize("collision", COLLISIONS)
@pytest.mark.parametrize("stencil", list(STENCILS))
def test_a_closed_box_keeps_its_mass(
    stencil: str, collision: str, compatible: bool, tmp_path: Path
) -> None:
    dice, dim = np.random.default_rng(5), STENCILS[stencil].dim
    sizes = (4, 5, 3)[:dim]
    media = dice.choice((0, 1), sizes, p=(0.2, 0.8)).astype(np.int64)
    faces = {
        face: {"type": "LBMBounceBack", "buffer": "f", "f_old": "fpc", "boundary": face}
        for face in ("wall", *FACES[: 2 * dim])
    }
    solve = {"rho": DENSITY, "u": VELOCITY, "feq": equilibrium_block("feq"),
             "collide": {**COLLISION, "type": collision}}  # fmt: skip
    f = np.array(STENCILS[stencil].weights) * (
        1 + 0.1 * dice.standard_normal((*sizes, STENCILS[stencil].q))
    )
    f[media == 0] = 0
    case = Case(stencil, sizes, compatible, solve, faces, {**FLOW, "media": "ms"},
                (("f", "fpc"),), {"fpc": f}, media)  # fmt: skip
    run = case.run(tmp_path, jit=False)
    advance(run, 20)
    for name in ("f", "fpc"):
        assert float(run.state.buffers[name].sum()) == pytest.approx(f.sum(), rel=1e-13)


@dataclass(frozen=True)
class Turn:
    """A permutation of the axes of a box, some of them reversed."""

    axes: tuple[int, ...]
    signs: tuple[int, ...]

    def field(self, value: Any, lattice: Stencil) -> Any:
        """A field of a lattice as it lies after the turn."""
        dim, rest = len(self.axes), tuple(range(len(self.axes), value.ndim))
        value = value.transpose(*self.axes, *rest)
        value = np.flip(value, tuple(a for a in range(dim) if self.signs[a] < 0))
        if not rest:
            return value.copy()
        if value.shape[-1] == dim:
            return value[..., list(self.axes)] * np.array(self.signs)
        at: dict[tuple[int, ...], int] = {e: i for i, e in enumerate(lattice.directions)}
        order = [0] * lattice.q
        for i, e in enumerate(lattice.directions):
            turned = [s * e[a] for a, s in zip(self.axes, self.signs, strict=True)]
            order[at[tuple([*turned, 0][:3])]] = i
        return value[..., order]

    def block(self, block: Any) -> dict[str, Any]:
        """A block of a file as it reads after the turn."""
        turned = {k: v for k, v in block.items() if k != "perturb"}
        if block.get("boundary") in FACES:
            axis, upper = divmod(FACES.index(block["boundary"]), 2)
            to = self.axes.index(axis)
            turned["boundary"] = FACES[2 * to + (upper if self.signs[to] > 0 else 1 - upper)]
            if block["type"] == "LBMFixedFirstOrderBC":
                turned["value"] = self.signs[to] * block["value"]
        for to, (axis, sign) in enumerate(zip(self.axes, self.signs, strict=True)):
            for name, factor in (("body_force_", sign), ("exclude_corners_", None)):
                found = block.get(f"{name}{'xyz'[axis]}")
                turned.pop(f"{name}{'xyz'[to]}", None)
                if found is not None:
                    turned[f"{name}{'xyz'[to]}"] = found if factor is None else factor * found
        if "gravity_direction" in block:
            to = self.axes.index(int(block["gravity_direction"]))
            turned |= {"gravity_direction": to, "gravity": self.signs[to] * block["gravity"]}
        return turned

    def case(self, case: Case) -> Case:
        """A run that is another, turned."""
        lattice = STENCILS[case.stencil]
        return replace(
            case, sizes=tuple(case.sizes[a] for a in self.axes),
            solve={name: self.block(block) for name, block in case.solve.items()},
            boundary={name: self.block(block) for name, block in case.boundary.items()},
            start={name: self.field(value, lattice) for name, value in case.start.items()},
            media=None if case.media is None else self.field(case.media, lattice),
        )  # fmt: skip


@pytest.mark.parametrize("seed", range(300, 330))
def test_a_turned_box_gives_turned_fields(seed: int, tmp_path: Path) -> None:
    case, dice = drawn(seed), np.random.default_rng(seed)
    # the reference's sums along faces, and its eddies and moments in 3D, know one direction
    case = replace(case, compatible=case.compatible and len(case.sizes) == 2)
    axes = tuple(int(a) for a in dice.permutation(len(case.sizes)))
    turn = Turn(axes, tuple(int(s) for s in dice.choice((-1, 1), len(axes))))
    still = Turn(tuple(range(len(axes))), (1,) * len(axes))
    first, second = (each.case(case).run(tmp_path, jit=False) for each in (still, turn))
    advance(first, 3)
    advance(second, 3)
    for name in case.buffers:
        expected = turn.field(first.state.buffers[name].numpy(), STENCILS[case.stencil])
        found = second.state.buffers[name].numpy()
        assert (np.isfinite(found) == np.isfinite(expected)).all()
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12, err_msg=str(case))


PHASE = {
    "phi": {**DENSITY, "buffer": "phi", "f": "h"},
    "slope": {"type": "LBMIsotropicGradient", "buffer": "slope", "scalar_field": "phi"},
    "lap": {"type": "LBMIsotropicLaplacian", "buffer": "lap", "scalar_field": "phi"},
    "mu": {"type": "LBMComputeChemicalPotential", "buffer": "mu", "phi": "phi",
           "laplacian_phi": "lap", "thickness": 3.0, "sigma": 0.02},
    "force": {"type": "LBMComputeSurfaceForces", "buffer": "force", "chemical_potential": "mu",
              "grad_phi": "slope"},
    "heq": {"type": "LBMPhaseEquilibrium", "buffer": "heq", "phi": "phi", "grad_phi": "slope",
            "tau_phi": 0.9, "thickness": 3.0},
    "collide": {**COLLISION, "buffer": "hpc", "f": "h", "feq": "heq", "tau0": 0.9},
    "push": {"type": "LBMApplyForces", "buffer": "hpc", "rho": "phi", "forces": "force",
             "tau0": 0.9},
}  # fmt: skip


def phases(seed: int) -> Case:
    """A phase field of random numbers, with solid cells or without."""
    dice = np.random.default_rng(seed)
    stencil = str(dice.choice(list(STENCILS)))
    lattice, dim = STENCILS[stencil], STENCILS[stencil].dim
    sizes = tuple(int(n) for n in dice.choice((1, 2, 3, 5, 6), dim))
    media = None
    if dice.random() < 0.5:
        media = dice.choice((0, 1), sizes, p=(0.2, 0.8)).astype(np.int64)
        media[(0,) * dim] = 1
    h = np.array(lattice.weights) * dice.uniform(0.1, 0.9, (*sizes, 1))
    h = h * (1 + 0.1 * dice.standard_normal(h.shape))
    if media is not None:
        h[media == 0] = 0
    buffers = {"h": "df", "heq": "df", "hpc": "df", "phi": "ms", "slope": "mv", "lap": "ms",
               "mu": "ms", "force": "mv", **({} if media is None else {"media": "ms"})}  # fmt: skip
    compatible = dim == 2 and bool(dice.random() < 0.5)
    return Case(stencil, sizes, compatible, PHASE, {}, buffers, (("h", "hpc"),), {"hpc": h}, media)


@pytest.mark.parametrize("seed", range(30))
def test_a_phase_field_is_that_of_plain_numpy(seed: int, tmp_path: Path) -> None:
    check(phases(seed), tmp_path, jit=False)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(each, marks=pytest.mark.exhaustive) for each in range(1, 8))]
)
def test_a_compiled_phase_field_is_that_of_plain_numpy(seed: int, tmp_path: Path) -> None:
    check(phases(seed), tmp_path, jit=True)
