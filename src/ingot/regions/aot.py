"""Pieces compiled ahead of time, a folder that holds them, and the module that loads from it.

A package is native code: load only packages you trust as you trust a program.
"""

import io
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
import torch
from torch import Tensor, nn

from ingot.codegen.cpu_levels import find_supported_levels
from ingot.errors import IngotError, Problem, raise_if
from ingot.graphs.capture import adopt
from ingot.graphs.torch_private import children_of
from ingot.package.seal import (
    BLANK,
    Digest,
    find_other_level,
    find_other_torch,
    open_metadata,
    read_files,
    read_torch_version,
    write_sealed,
)
from ingot.package.write import open_scratch, put, save_tensors
from ingot.regions.capture import LOCK, Example, captured, translated
from ingot.regions.mark import Blocks, selected
from ingot.regions.plan import Plan, StateInfo, check
from ingot.regions.report import BlockReport, Report
from ingot.regions.run import Loaded, Planned, autocast_told
from ingot.regions.split import Cutout, split
from ingot.regions.state import state_of, unliftable
from ingot.regions.unit import AheadUnit
from ingot.train import Half, Joint, Saved, Signature, joint
from ingot.train.compile import inductor

__all__ = ["Packaged", "aot", "load", "save"]

FORMAT = "ingot-regions"
SCHEMA = 3
"""The version of this layout; loaders refuse any other."""

NAME = "regions.json"
STATE = "state.pt"
AGAIN = 'compile it again: ingot.regions.compile(..., mode="aot", output=FOLDER)'


class Packaged(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A unit of a package: its signature, and the stem of its files."""

    signature: Signature
    saved: Saved
    files: dict[Literal["forward", "backward"], str]
    seconds: float


class Description(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All that a loader needs to know."""

    format: str = FORMAT
    schema_version: int = SCHEMA
    torch_version: str
    level: str
    plan: Plan
    units: tuple[Packaged, ...]
    report: Report
    digests: dict[str, Digest]
    seal: Digest = BLANK

    @property
    def files(self) -> tuple[str, ...]:
        """The state, and the files of all units: archives, and their graphs for readers."""
        archives = [f for unit in self.units for f in unit.files.values()]
        return (STATE, *archives, *map(name_graph, archives))


def name_graph(archive: str) -> str:
    """The file that holds the graph of an archive as text."""
    return archive.replace(".pt2", "_graph.txt")


def aot(piece: Cutout, *, grad: bool) -> tuple[AheadUnit, Joint]:
    """Compile a piece, and its gradient if wanted, ahead of time."""
    begun = time.perf_counter()
    inputs = []
    for info in piece.info.inputs:
        dtype: torch.dtype = getattr(torch, info.dtype)
        sizes = [piece.hints[s] if isinstance(s, str) else s for s in info.shape]
        empty = torch.empty(sizes, dtype=dtype, device=info.device)
        inputs.append(empty.requires_grad_(grad and (dtype.is_floating_point or dtype.is_complex)))
    state = [t.detach().requires_grad_(grad and t.requires_grad) for t in piece.state]
    dynamic = {
        f"argument{len(state) + i}": {a: s for a, s in enumerate(x.shape) if isinstance(s, str)}
        for i, x in enumerate(piece.info.inputs)
    }
    with LOCK, torch.set_grad_enabled(grad), translated(piece.info.name):
        made = joint(adopt(piece.graph(), (*state, *inputs), dynamic, piece.info.name))
    guards = made.signature.constraints
    info = msgspec.structs.replace(piece.info, guards=guards)
    return AheadUnit(info, made, time.perf_counter() - begun, made.settled), made


def package(
    module: nn.Module, example: Example, blocks: Blocks, folder: Path, *, grad: bool
) -> Loaded:
    """A package that is loaded, and shares the tensors of the module."""
    raise_if(unliftable(module))
    report = Report(mode="aot")
    begun = time.perf_counter()
    with LOCK:
        found = captured(module, example, selected(module, blocks), grad=grad)
        plan, pieces = split(
            found, example, grad=grad, autocast=autocast_told(), training=module.training
        )
    check(plan)
    report.capture_seconds = time.perf_counter() - begun
    made = [aot(piece, grad=grad) for piece in pieces]
    for i, (unit, _) in enumerate(made):
        times = sum(step.unit == i for step in plan.steps)
        row = BlockReport(unit.info.name, unit.info.kind, times, unit.seconds, True, grad)
        report.blocks += (row,)
    report.seconds = time.perf_counter() - begun
    known = msgspec.structs.replace(plan, units=tuple(u.info for u, _ in made))
    state = [s.tensor for s in state_of(module)]
    save(known, [j for _, j in made], [u.seconds for u, _ in made], state, report, folder)
    return load(folder, tensors=state)


def save(
    plan: Plan, joints: Sequence[Joint], seconds: Sequence[float], state: Sequence[Tensor],
    report: Report, folder: str | Path,
) -> Path:  # fmt: skip
    """Write a package in one step: the old one, or the new one, is there at any moment."""
    place = Path(folder)
    with open_scratch(place) as made:
        units = tuple(
            _written(j, f"unit{i}", took, made)
            for i, (j, took) in enumerate(zip(joints, seconds, strict=True))
        )
        save_tensors([t.detach().clone() for t in state], made / STATE)
        description = Description(
            torch_version=read_torch_version(), level=find_supported_levels()[0], plan=plan,
            units=units, report=report, digests={},
        )  # fmt: skip
        write_sealed(description, made / NAME)
        put(made, place)
    return place


def _written(made: Joint, stem: str, seconds: float, folder: Path) -> Packaged:
    files = {}
    for name, half in (("forward", made.forward_half), ("backward", made.backward_half)):
        if half is not None:
            files[name] = f"{stem}_{name}.pt2"
            (folder / files[name]).write_bytes(half.archive)
            (folder / name_graph(files[name])).write_text(half.text)
    return Packaged(made.signature, made.saved, files, seconds)


def load(
    folder: str | Path, *, tensors: Sequence[Tensor] | None = None, cuda_graphs: bool = False
) -> Loaded:
    """The module of a package; `tensors` take the place of the parameters that are in it."""
    place = Path(folder)
    description = _checked(place)
    contents = read_files(description, place, AGAIN)
    plan = description.plan
    if tensors is None:
        values = torch.load(io.BytesIO(contents[STATE]), weights_only=True)
        tensors = [_held(i, v) for i, v in zip(plan.state, values, strict=True)]
    units = []
    for info, packaged in zip(plan.units, description.units, strict=True):
        archives = {k: contents[f] for k, f in packaged.files.items()}
        halves = {k: Half("inductor", inductor(each), each) for k, each in archives.items()}
        made = Joint(
            packaged.signature, packaged.saved, halves["forward"], halves.get("backward"), ()
        )
        units.append(AheadUnit(info, made, packaged.seconds, made.settled))
    module = _tree(plan, tensors)
    return Loaded(module, description.report, Planned(plan, units), cuda_graphs=cuda_graphs)


def _held(info: StateInfo, value: Tensor) -> Tensor:
    if info.kind == "parameter":
        return nn.Parameter(value, requires_grad=info.requires_grad)
    return value.requires_grad_(info.requires_grad)


def _tree(plan: Plan, tensors: Sequence[Tensor]) -> nn.Module:
    """Modules that hold the tensors under the names that they had."""
    root = nn.Module()
    for info, tensor in zip(plan.state, tensors, strict=True):
        for name in info.places:
            *path, leaf = name.split(".")
            owner = root
            for word in path:
                if word not in children_of(owner):
                    owner.add_module(word, nn.Module())
                owner = owner.get_submodule(word)
            if isinstance(tensor, nn.Parameter):
                owner.register_parameter(leaf, tensor)
            else:
                owner.register_buffer(leaf, tensor, persistent=info.kind == "buffer")
    return root


def _checked(folder: Path) -> Description:
    """The metadata of a package that can be loaded here."""
    file = folder / NAME
    if not file.is_file():
        told = f"no package of regions in '{folder}'"
        raise IngotError([Problem("file-not-found", told, None, AGAIN)])
    found = open_metadata(file, Description, FORMAT, SCHEMA, AGAIN)
    maker = [*find_other_torch(found.torch_version, AGAIN), *find_other_level(found.level)]
    raise_if(maker)
    return found
