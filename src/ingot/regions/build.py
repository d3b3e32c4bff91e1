"""`compile`: a module, an example and its blocks -> a module that runs compiled blocks."""

import time
from collections.abc import Callable, Hashable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import msgspec
import torch
from torch import Tensor, nn

from ingot.errors import IngotError, Problem, raise_if
from ingot.graphs import torch_private
from ingot.graphs.torch_private import pytree
from ingot.regions.call import Dynamic, example_of, holds
from ingot.regions.capture import LOCK, Example, captured, nested
from ingot.regions.mark import Blocks, selected
from ingot.regions.plan import Plan, check
from ingot.regions.report import BlockReport, Report
from ingot.regions.run import Compiled, Planned, autocast_told
from ingot.regions.split import Piece, split
from ingot.regions.state import state_of, unliftable
from ingot.regions.unit import UNITS, Unit, jit

__all__ = ["compile", "whole_seconds"]


def compile(
    module: nn.Module,
    example: object,
    blocks: Blocks = "auto",
    mode: Literal["jit", "aot"] = "jit",
    *,
    dynamic: Dynamic = {},  # noqa: B006 nothing writes it
    grad: bool | None = None,
    output: str | Path | None = None,
    measure: bool = False,
    cuda_graphs: bool = True,
) -> Compiled:
    """Compile each distinct block of a module once, and what lies between them.

    example: a tensor, a tuple of arguments, or a dictionary of keyword arguments.
    dynamic: names of the axes that may vary, `{0: "batch", 1: "length"}`, for all tensors or each.
    grad: whether for training; by default if gradients are on and a parameter wants one.
    output: with "aot" the folder of the package, which `load` reads without the source.
    measure: also compile the whole with torch.compile, both from empty caches, for the report.
    cuda_graphs: on GPUs, whether calls without gradients that lie alike are recorded and replayed;
        a recording keeps the memory that a call needs.
    """
    job = _Job(module, example_of(example, dynamic), blocks, Report(mode=mode))
    learns = any(p.requires_grad for p in module.parameters())
    wanted = torch.is_grad_enabled() and learns if grad is None else grad
    if mode == "aot":
        if output is None:
            raise IngotError([Problem(
                "region-argument", 'mode="aot" writes a package and was given no place for it',
                None, "add output=FOLDER",
            )])  # fmt: skip
        return job.packaged(Path(output), grad=wanted, measure=measure, cuda_graphs=cuda_graphs)
    with torch_private.fresh_cache() if measure else nullcontext():
        result = Compiled(module, job.report, job.make, cuda_graphs=cuda_graphs)
        result.prepare(job.make(wanted, autocast_told(), None))
    if measure:
        job.report.whole_seconds = whole_seconds(module, job.example, grad=wanted)
    return result


class _Job:
    """A module, its blocks and an example, from which plans are made."""

    def __init__(self, module: nn.Module, example: Example, blocks: Blocks, report: Report) -> None:
        raise_if(unliftable(module))
        self.module = module
        self.example = example
        self.blocks = selected(module, blocks)
        self.report = report
        self.noted: set[Hashable] = set()

    def make(self, grad: bool, autocast: str, inputs: Sequence[Any] | None) -> Planned:
        """A plan whose units run, for the sizes of some inputs."""
        like = self.example if inputs is None else _sized(self.example, inputs)
        plan, pieces = self.planned(like, grad=grad, autocast=autocast)
        units = []
        for i, piece in enumerate(pieces):
            with LOCK:
                found = _fitting(piece)
                units.append(found or _new(piece, grad=grad))
            if found is None or piece.key not in self.noted:
                self.note(plan, i, 0.0 if found else units[-1].seconds, found=found is not None)
            self.noted.add(piece.key)
        known = msgspec.structs.replace(plan, units=tuple(u.info for u in units))
        return Planned(known, units, _other(pieces, grad=grad))

    def packaged(self, folder: Path, *, grad: bool, measure: bool, cuda_graphs: bool) -> Compiled:
        """A package that is loaded, and shares the tensors of the module."""
        from ingot.regions.aot import aot, load, save

        plan, pieces = self.planned(self.example, grad=grad, autocast=autocast_told())
        made = [aot(piece, grad=grad) for piece in pieces]
        for i, (unit, _) in enumerate(made):
            self.note(plan, i, unit.seconds, found=False)
        if measure:
            self.report.whole_seconds = whole_seconds(self.module, self.example, grad=grad)
        known = msgspec.structs.replace(plan, units=tuple(u.info for u, _ in made))
        state = [s.tensor for s in state_of(self.module)]
        seconds = [u.seconds for u, _ in made]
        save(known, [j for _, j in made], seconds, state, self.report, folder)
        return load(folder, tensors=state, cuda_graphs=cuda_graphs)

    def planned(self, example: Example, *, grad: bool, autocast: str) -> tuple[Plan, list[Piece]]:
        """The plan of the module, and the pieces to compile."""
        begun = time.perf_counter()
        with LOCK:
            found = captured(self.module, example, self.blocks, grad=grad)
            training = self.module.training
            plan, pieces = split(found, example, grad=grad, autocast=autocast, training=training)
        check(plan)
        took = time.perf_counter() - begun
        self.report.capture_seconds += took
        self.report.seconds += took
        return plan, pieces

    def note(self, plan: Plan, unit: int, seconds: float, *, found: bool) -> None:
        """Add a unit to the report."""
        info = plan.units[unit]
        times = sum(step.unit == unit for step in plan.steps)
        row = BlockReport(info.name, info.kind, times, seconds, not found, plan.grad)
        self.report.blocks += (row,)
        self.report.seconds += seconds


def whole_seconds(module: nn.Module, example: Example, *, grad: bool) -> float:
    """How long torch.compile takes for the whole module from empty caches, backward included."""
    args, kwargs = nested(example.tensors, example.constants, example.tree)
    torch.compiler.reset()
    begun = time.perf_counter()
    with torch_private.fresh_cache(), torch.set_grad_enabled(grad):
        found = torch.compile(module, dynamic=True if example.hints else None)(*args, **kwargs)
        if grad:
            learn = [p for p in module.parameters() if p.requires_grad]
            tensors = [x for x in pytree.tree_leaves(found) if isinstance(x, Tensor)]
            total = sum(x.sum() for x in tensors if x.requires_grad)
            if isinstance(total, Tensor):
                torch.autograd.grad(total, learn, allow_unused=True)
    took = time.perf_counter() - begun
    torch.compiler.reset()
    return took


def _fitting(piece: Piece) -> Unit | None:
    """A unit compiled before that takes the sizes of a piece."""
    known = UNITS.get(piece.key, [])
    return next((u for u in known if all(holds(g, piece.hints) for g in u.info.guards)), None)


def _new(piece: Piece, *, grad: bool) -> Unit:
    unit = jit(piece, grad=grad)
    UNITS.setdefault(piece.key, []).append(unit)
    return unit


def _other(pieces: Sequence[Piece], *, grad: bool) -> Callable[[int, Sequence[Tensor]], Unit]:
    """Compile a unit for sizes that the first one does not take."""

    def other(index: int, inputs: Sequence[Tensor]) -> Unit:
        piece = pieces[index]
        sizes = {b.name: max(inputs[b.input].shape[b.axis], 2) for b in piece.info.sizes}
        sized = replace(piece, hints=sizes)
        with LOCK:
            return _fitting(sized) or _new(sized, grad=grad)

    return other


def _sized(example: Example, inputs: Sequence[Tensor]) -> Example:
    """The example with the sizes of a call."""
    hints: dict[str, int] = {}
    for b in example.sizes:
        size = max(inputs[b.input].shape[b.axis], 2)
        hints[b.name] = size
    return replace(example, hints=hints)
