"""Every option of a lattice acts on some field, or it is told: types are walked by declaration."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import h5py
import numpy as np
import pytest
import torch
from torch import Tensor

from ingot.errors import IngotError, IngotWarning
from ingot.fields import build, prepared
from ingot.fields.declare import BOUNDARIES, COMPUTES, REQUIRED, ComputeOption, DeclaredCompute
from ingot.fields.lbm.stencils import STENCILS
from ingot.hit import read
from tests.fields.lbm.cases import lattice_input

MODULES = ("ingot.fields.lbm", "ingot.fields.computes.basic")
TYPES = {
    name: each
    for name, each in {**BOUNDARIES, **COMPUTES}.items()
    if each.function.__module__.startswith(MODULES)
}
READS = {"f": "df", "feq": "df", "f_old": "df", "buffer": "df", "velocity": "mv", "forces": "mv",
         "grad_phi": "mv"}  # fmt: skip
"""The kind of buffer that options read, where it is no scalar."""

BEFORE = {"f_old0": "df", "feq0": "df", "velocity0": "mv"}
"""What the boundary that stands before the one that is walked reads."""

VALUES = {
    "gravity_direction": ("0", "1", "2"), "region_id": ("1", "2", "7", "0"), "seed": ("1", "2"),
    "size": ("2", "3"), "int_width": ("0", "0.3"), "function": ("one", "two"),
    **{f"{axis}{end}": numbers for axis in "xyz"
       for end, numbers in ((1, ("0.1", "0.3")), (2, ("0.6", "0.8")))},
    "min": ("0.1", "0.3"), "max": ("0.6", "0.8"), "outside": ("0.2", "0.4"),
}  # fmt: skip
"""What options are set to whose numbers are not free."""

ON_A_GPU = ("generate_on_cpu",)
"""Options that act on other devices."""

FUNCTIONS = """
[Functions]
[one]
type = ParsedFunction
expression = 'x + t'
[]
[two]
type = ParsedFunction
expression = 'y + 2 * t'
[]
[]
"""


def choices(declared: DeclaredCompute, option: ComputeOption) -> tuple[str, ...]:
    """Values that an option may have, at least two; one where it only names what is written."""
    roles = {each.option.name: each.role for each in declared.arguments}
    match roles.get(option.name):
        case None if option.name != "marlin_compatible":
            return ("out",)
        case "grid" | "former":
            return f"{option.name}1", f"{option.name}2"
        case "grids":
            return f"{option.name}1 {option.name}2", f"{option.name}2 {option.name}1"
        case _:
            pass
    if option.name in VALUES:
        return VALUES[option.name]
    kinds = [option.type, *get_args(option.type)]
    literal = next((kind for kind in kinds if get_origin(kind) is Literal), None)
    if literal is not None:
        return get_args(literal)
    return ("true", "false") if bool in kinds else ("0.7", "0.9")


def buffers_of(declared: DeclaredCompute) -> dict[str, str]:
    """Two buffers for each option that names one, that of its default, and the medium."""
    found = {"media": "ms", **(BEFORE if declared.name in BOUNDARIES else {})}
    for each in declared.arguments:
        if each.role in ("grid", "grids", "former"):
            name, kind = each.option.name, READS.get(each.option.name, "ms")
            own = [each.option.default] if isinstance(each.option.default, str) else []
            found |= dict.fromkeys((f"{name}1", f"{name}2", *own), kind)
    return found


@dataclass(frozen=True)
class Setting:
    """Where a block stands: the lattice, its medium, and whether it does as the reference does."""

    stencil: str
    solid: bool
    compatible: bool

    @property
    def sizes(self) -> tuple[int, ...]:
        return (5, 6, 4)[: STENCILS[self.stencil].dim]

    def outcome(self, name: str, options: Mapping[str, str], folder: Path) -> "Outcome":
        """What one turn of a block gives, of fields that are all different."""
        boundary: dict[str, Any] = {}
        block, buffers = {"type": name, **options}, buffers_of(TYPES[name])
        if name in BOUNDARIES:
            # of the wall's links the reference takes those that boundaries before leave empty
            before = {"type": "LBMDirichletBC", "buffer": options["buffer"], "f_old": "f_old0",
                      "feq": "feq0", "velocity": "velocity0", "value": 0.8,
                      "boundary": "wall" if self.solid else "left"}  # fmt: skip
            boundary = {"before": before, "walked": block}
        text = lattice_input(
            self.sizes, self.stencil, initialize={}, boundary=boundary, buffers=buffers,
            solve={} if name in BOUNDARIES else {"walked": block}, streams=None,
            problem={"binary_media": "media"} if self.solid else {}, more=FUNCTIONS,
            compatible=self.compatible,
        )  # fmt: skip
        declared = "[media]\ntype = 'LBMTensorBuffer'\nbuffer_type = 'ms'\n"
        text = text.replace(declared, f"{declared}file = media{self.stencil}.h5\n")
        file = folder / "walked.i"
        file.write_text(text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IngotWarning)
            try:
                simulation = build(read(file, moose=True))
                run = prepared(simulation, folder, jit=False)
                run.start()
            except IngotError as error:
                return Outcome({}, "", str(error))
        for seed in (1, 2):
            for at, (buffer, value) in enumerate(sorted(run.state.buffers.items())):
                if buffer in buffers and buffer != "media":
                    dice = torch.Generator().manual_seed(100 * seed + at)
                    drawn = torch.rand(value.shape, generator=dice, dtype=value.dtype)
                    run.state.buffers[buffer] = 0.1 + drawn
            if seed == 1:
                run.state.advance()
        run.state.time = 0.5
        run.executor.run(simulation.root.steps, run.state)
        doubts = "\n".join(doubt.message for doubt in simulation.doubts)
        return Outcome(dict(run.state.buffers), doubts)


@dataclass(frozen=True)
class Outcome:
    """All fields after a turn, what was doubted, and what was refused."""

    fields: dict[str, Tensor]
    doubts: str = ""
    error: str = ""

    def differs(self, other: "Outcome") -> bool:
        pairs = ((self.fields[name], other.fields.get(name)) for name in self.fields)
        return self.fields.keys() != other.fields.keys() or not all(
            b is not None and torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in pairs
        )


def settle(seed: int, declared: DeclaredCompute) -> tuple[Setting, dict[str, str]]:
    """A setting, and a value for each option of a type."""
    dice = np.random.default_rng(seed)
    solid, compatible = (bool(x) for x in dice.integers(0, 2, 2))
    setting = Setting(list(STENCILS)[seed % len(STENCILS)], solid, compatible)
    values: dict[str, str] = {}
    for option in declared.options:
        some = choices(declared, option)
        # of the numbers of regions and axes the first two are always there
        values[option.name] = str(dice.choice(some[:2] if option.name in VALUES else some))
    return setting, values


def walk(declared: DeclaredCompute, seed: int, folder: Path) -> set[str]:
    """Set each option to each other value than drawn; the options that were seen to act."""
    setting, values = settle(seed, declared)
    before = setting.outcome(declared.name, values, folder)
    acting: set[str] = set()
    for option in declared.options if not before.error else ():
        for other in {*choices(declared, option)} - {values[option.name]}:
            after = setting.outcome(declared.name, {**values, option.name: other}, folder)
            case = f"{option.name} = {other} in {declared.name}, {setting}, {values}"
            told = f"'{option.name}' of" in before.doubts + after.doubts
            if after.error:
                assert option.name in after.error, (case, after.error)
            elif before.differs(after):
                acting.add(option.name)
                assert not told, case
            else:
                silent = option.doc.startswith(("not read", "accepted:"))
                needed = option.default is REQUIRED
                assert told or silent or needed or option.name in ON_A_GPU, case
    return acting


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where media lie: two regions, and solid cells away from the corners."""
    made = tmp_path_factory.mktemp("walk")
    for stencil in STENCILS:
        sizes = Setting(stencil, True, True).sizes
        media = np.random.default_rng(0).integers(1, 3, sizes)
        media[(slice(1, 3), slice(2, 4), slice(1, 3))[: len(sizes)]] = 0
        with h5py.File(made / f"media{stencil}.h5", "w") as file:
            file[f"media{stencil}"] = media
    return made


def test_what_is_walked_is_there() -> None:
    assert len(TYPES) >= 30


NEVER = {("LBMComputeResidual", "buffer"), ("LBMComputeForces", "enable_surface_forces")}
"""Options that act nowhere: one that Marlin asks for, and one that is refused."""


@pytest.mark.parametrize("name", sorted(TYPES))
def test_an_option_acts_or_is_told(name: str, folder: Path) -> None:
    for seed in range(3):
        walk(TYPES[name], seed, folder)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", sorted(TYPES))
def test_every_option_acts_somewhere_and_is_told_elsewhere(name: str, folder: Path) -> None:
    declared, acting = TYPES[name], set[str]()
    for seed in range(100, 139):
        acting |= walk(declared, seed, folder)
    for option in declared.options:
        silent = option.doc.startswith(("not read", "accepted"))
        free = len(choices(declared, option)) > 1 and option.name not in ON_A_GPU
        if free and not silent and (name, option.name) not in NEVER:
            assert option.name in acting, f"no draw shows that {option.name} does anything"
