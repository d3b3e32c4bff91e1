"""Every option of a simulation's file acts on what comes out, or it is told: types are walked."""

import hashlib
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
import torch
from torch import Tensor

from ingot.errors import IngotError, IngotWarning
from ingot.fields import build, run
from ingot.fields.declare import REQUIRED, ComputeOption, DeclaredCompute, options_of
from ingot.fields.schema import sections
from ingot.hit import Block, Tree, read
from ingot.options import fits, plain

INPUT = (Path(__file__).parent / "inputs" / "every_compute.i").read_text()

SOLVER = """
[TensorSolver]
  type = AdamsBashforthMoulton
  buffer = c
  reciprocal_buffer = cbar
  linear_reciprocal = stiffness
  nonlinear_reciprocal = rate
  substeps = 2
[]
"""
STEPPER = "dt = 0.1\n"
OUTPUTS = "[Outputs]\n  csv = true\n[]\n"


def solve_by(kind: str, **options: Any) -> tuple[str, str]:
    """Another solver in the place of the file's own."""
    return SOLVER, SOLVER.replace("AdamsBashforthMoulton", kind).replace(
        "substeps = 2", "\n".join(f"{name} = '{value}'" for name, value in options.items())
    )


def step_by(kind: str, **options: Any) -> tuple[str, str]:
    """A stepper of its own."""
    rows = "\n".join(f"{name} = '{value}'" for name, value in options.items())
    return STEPPER, f"{STEPPER}[TimeStepper]\ntype = {kind}\n{rows}\n[]\n"


def write_by(text: str) -> tuple[str, str]:
    return OUTPUTS, text


VARIATIONS: dict[str, tuple[tuple[str, str], ...]] = {
    "as it is": (),
    "correctors": (solve_by("AdamsBashforthMoulton", corrector_steps=2, predictor_order=3),),
    "coupled": (solve_by("AdamsBashforthMoultonCoupled"),),
    "exponential": (solve_by("ETDRK4Solver"),),
    "secant": (solve_by("SecantSolver"),),
    "Broyden": (solve_by("BroydenSolver", max_iterations=40),),
    "one size": (step_by("ConstantDT", dt=0.05),),
    "one size of the executioner": (step_by("ConstantDT"),),
    "growing": (step_by("IterationAdaptiveDT", dt=0.05),),
    "by iterations": (
        step_by("TensorSolveIterationAdaptiveDT", dt=0.05, min_iterations=1, max_iterations=2),
    ),
    "by a function": (step_by("FunctionDT", function="wave", min_dt=0.01),),
    "no outputs": (write_by("[Outputs]\n[]\n"),),
    "outputs by themselves": (
        write_by("[Outputs]\n[own]\ntype = CSV\n[]\n[kept]\ntype = Checkpoint\n[]\n[]\n"),
    ),
    "fields": (
        write_by("[TensorOutputs]\n[x]\ntype = XDMFTensorOutput\nbuffer = c\nenable_hdf5 = true\n"
                 "[]\n[v]\ntype = VTITensorOutput\nbuffer = c\n[]\n[]\n[Outputs]\n[]\n"),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What a run leaves: fields, tables, files; what was doubted, and what was refused."""

    fields: dict[str, Tensor]
    table: str = ""
    files: frozenset[tuple[str, str]] = frozenset()
    doubts: str = ""
    error: str = ""

    def differs(self, other: "Outcome") -> bool:
        return (
            (self.table, self.files) != (other.table, other.files)
            or self.fields.keys() != other.fields.keys()
            or any(not alike(x, other.fields[name]) for name, x in self.fields.items())
        )


def alike(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and torch.equal(a.nan_to_num(), b.nan_to_num())


def outcome(file: Path, overrides: list[str]) -> Outcome:
    """What a file leaves in a folder of its own."""
    made = Path(tempfile.mkdtemp(dir=file.parent))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IngotWarning)
        try:
            simulation = build(read(file, overrides, moose=True))
            result = run(simulation, made, jit=False)
        except IngotError as error:
            return Outcome({}, error=str(error))
    doubts = "\n".join(doubt.message for doubt in simulation.doubts)
    files = frozenset(
        (str(f.relative_to(made)), hashlib.md5(f.read_bytes()).hexdigest())
        for f in made.rglob("*") if f.is_file()
    )  # fmt: skip
    return Outcome(dict(result.state.buffers), repr((result.times, result.values)), files, doubts)


def typed_blocks(tree: Tree) -> Iterator[tuple[Block, Any]]:
    """Every block of a file with what declares its options."""
    for path, kinds in sections().items():
        for top in tree.section(path.partition("/")[0]):
            inner = [top, *walk_blocks(top)]
            for block in inner:
                kind = kinds.get(block.type or ("Transient" if path == "Executioner" else ""))
                if kind is not None and (block.path == path or block.path.startswith(f"{path}/")):
                    yield block, kind


def walk_blocks(block: Block) -> Iterator[Block]:
    for each in block.blocks:
        yield each
        yield from walk_blocks(each)


def choices(option: ComputeOption) -> tuple[str, ...]:
    """Values that an option may have; none where it names something."""
    kinds = [option.type, *get_args(option.type)]
    literal = next((kind for kind in kinds if get_origin(kind) is Literal), None)
    if literal is not None:
        return get_args(literal)
    if option.name == "file_base":
        return ("elsewhere",)
    if bool in kinds:
        return ("true", "false")
    numbers = (0.7, 3, 0.02, 1)
    if plain(option.type) in (int, float) and "function" not in str(option.type):
        return tuple(str(x) for x in numbers if fits(x, option.type))
    return ()


NOT_HERE = {
    "generate_on_cpu": "acts on GPUs",
    "debug": "prints",
    "verbose": "logs",
    "cutback_factor_at_failure": "acts where a step fails",
    "cutback_factor": "acts where a solve takes many iterations",
    "always_update_psi": "acts where the field changes",
    "expand": "acts where no input has the shape of a field",
    "extra_symbols": "acts where the expression uses them",
    "marlin_compatible": "is told as a quirk where it acts",
    "execute_vector_postprocessors_on": "acts where there are tables of vectors",
}
"""Options that act elsewhere, by what fields or runs are, not by other options."""

AFTER_A_CUT = ("ConstantDT", "growth_factor")


def find_faults(file: Path, block: Block, options: Iterable[ComputeOption]) -> Iterator[str]:
    """Options of a block that do nothing, and are not told, or are told, and do something."""
    before = outcome(file, [])
    assert not before.error, before.error
    for option in options:
        skipped = option.default is REQUIRED or option.name in NOT_HERE
        if skipped or (block.type, option.name) == AFTER_A_CUT:
            continue
        given = block.field(option.name)
        own = given.text if given is not None else str(option.default).lower()
        others = [each for each in choices(option) if each.lower() != own]
        silent = option.doc.startswith(("not read", "accepted"))
        acts = told = runs = False
        for other in others:
            after = outcome(file, [f"{block.path}/{option.name}:={other}"])
            told = told or f"'{option.name}' of" in after.doubts
            runs = runs or not after.error
            acts = acts or (not after.error and before.differs(after))
            if acts:
                break
        if acts and told and not silent:
            yield f"{block.path}/{option.name} acts, and is told to have no effect"
        elif runs and not (acts or told or silent):
            yield f"{block.path}/{option.name} = {others} does nothing, and is not told"


@pytest.mark.parametrize("variation", VARIATIONS)
def test_an_option_acts_or_is_told(variation: str, tmp_path: Path) -> None:
    changes = VARIATIONS[variation]
    text = INPUT
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    file = tmp_path / "walked.i"
    file.write_text(text)
    faults = []
    for block, kind in typed_blocks(read(file, moose=True)):
        options = kind.options if isinstance(kind, DeclaredCompute) else options_of(kind)
        # what a variation does not change is walked once
        if not changes or block.path.partition("/")[0] in "".join(new for _, new in changes):
            faults += find_faults(file, block, options)
    assert not faults, "\n".join(faults)


def test_stress_out_of_the_plane_is_idle_in_space(tmp_path: Path) -> None:
    for dim in (2, 3):
        sizes = " ".join(f"n{axis} = 2\n" for axis in "xyz"[:dim])
        rows = "type = {}\nbuffer = {}\n"
        computes = (
            f"[a]\n{rows.format('RankTwoIdentity', 'stress')}size = {dim}\n[]\n"
            f"[z]\n{rows.format('ConstantTensor', 'z')}full = true\n[]\n"
            f"[b]\n{rows.format('ComputeVonMisesStress', 'mises')}stress_zz = z\n[]\n"
        )
        file = tmp_path / f"plane{dim}.i"
        file.write_text(
            f"[Domain]\ndim = {dim}\n{sizes}[]\n[TensorComputes]\n[Initialize]\n{computes}[]\n[]\n"
        )
        doubts = [doubt.message for doubt in build(read(file, moose=True)).doubts]
        wanted = [] if dim == 2 else ["'stress_zz' of ComputeVonMisesStress has no effect here"]
        assert doubts == wanted
