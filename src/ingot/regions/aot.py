"""Pieces compiled ahead of time, a folder that holds them, and the module that loads from it.

A package is native code: load only packages you trust as you trust a program.
"""

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import torch
from torch import Tensor, nn

from ingot.errors import raise_if
from ingot.graphs.capture import adopt
from ingot.graphs.torch_private import children_of
from ingot.regions.capture import LOCK, Example, captured, translated
from ingot.regions.mark import Blocks, selected
from ingot.regions.plan import Plan, StateInfo, check
from ingot.regions.report import BlockReport, Report
from ingot.regions.run import Loaded, Planned, autocast_told
from ingot.regions.split import Cutout, split
from ingot.regions.state import state_of, unliftable
from ingot.regions.unit import AheadUnit
from ingot.train import Joint, joint
from ingot.train.package import Described as Package
from ingot.train.package import read_codes, read_description, write

__all__ = ["Described", "aot", "load", "save"]


class Described(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a package of regions has besides its joints, one for each unit."""

    plan: Plan
    report: Report
    seconds: tuple[float, ...]


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
    return AheadUnit(info, made, time.perf_counter() - begun, made.codes[0].settle), made


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
    more = Described(plan, report, tuple(seconds))
    return write(folder, "regions", [j.codes[0] for j in joints], state, more)


def load(
    folder: str | Path, *, tensors: Sequence[Tensor] | None = None, cuda_graphs: bool = False
) -> Loaded:
    """The module of a package; `tensors` take the place of the parameters that are in it."""
    place = Path(folder)
    description = read_description(place, "regions", Package[Described])
    codes, values = read_codes(place, description)
    plan, seconds = description.more.plan, description.more.seconds
    if tensors is None:
        tensors = [_held(i, v) for i, v in zip(plan.state, values, strict=True)]
    units = [
        AheadUnit(info, Joint([code], ()), took, code.settle)
        for info, code, took in zip(plan.units, codes, seconds, strict=True)
    ]
    module = _tree(plan, tensors)
    return Loaded(module, description.more.report, Planned(plan, units), cuda_graphs=cuda_graphs)


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
