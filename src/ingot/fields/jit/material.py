"""Material: a program of one point as an operation of torch, which a compiled sequence can hold.

In: a program and the variables to give and take. Out: a function of whole fields.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ingot.errors import IngotError, Problem, warn_of
from ingot.execute import Executor, executor
from ingot.execute.batch_shape import shape_of
from ingot.execute.call_layout import lay_out_output
from ingot.execute.status import Reason, Status, failures
from ingot.graphs.torch_private import OpOverload
from ingot.program import Program, freeze

__all__ = ["Material", "material", "tell_failures"]


@dataclass(frozen=True, slots=True)
class Material:
    """A model by its name, which is the same in every process."""

    name: str

    def __call__(self, fields: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The outputs at every point, in their order."""
        return tuple(operation()(self.name, list(fields)))


@dataclass(slots=True)
class MaterialProgram:
    """What stands behind a name: a program, its variables in order, and what runs it."""

    program: Program
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    executors: dict[tuple[torch.dtype, torch.device], Executor] = field(default_factory=dict)
    worst: dict[tuple[str, torch.device], Tensor] = field(default_factory=dict)
    warned: bool = False

    def executor(self, dtype: torch.dtype, device: torch.device) -> Executor:
        """The kernel of the program; on other devices, or without a compiler, its operations."""
        key = (dtype, device)
        with LOCK:
            if key not in self.executors:
                self.executors[key] = made(self.program, dtype, device)
            return self.executors[key]

    def warn(self, statuses: Sequence[Status]) -> None:
        """Say once, not at every step, that points of a solve failed, whose outputs are NaN.

        On GPUs nobody waits to know: the largest reason is noted there, for `tell_failures`.
        """
        if self.warned:
            return
        # the largest reason is found without memory of the size of the grid
        largest = [(status, status.reason.max()) for status in statuses]
        for status, reason in largest:
            if not reason.is_cpu:
                key = (status.solve, reason.device)
                if key not in self.worst:
                    self.worst[key] = torch.zeros_like(reason)
                torch.maximum(self.worst[key], reason, out=self.worst[key])
        if any(reason.is_cpu and reason > Reason.CONVERGED for _, reason in largest):
            self.warned = True
            warn_of(failures(statuses))

    def read_failures(self) -> list[Problem]:
        """What calls on GPUs noted, unless it was told before."""
        if self.warned:
            return []
        noted = {solve: Reason(int(reason)) for (solve, _), reason in self.worst.items()}
        fix = "halve the time step, or raise max_its"
        found = [
            Problem("not-converged", f"'{solve}': points of the grid did not converge"
                    f" ({reason.name.lower().replace('_', ' ')}); their outputs are NaN", None, fix)
            for solve, reason in noted.items() if reason != Reason.CONVERGED
        ]  # fmt: skip
        self.warned = bool(found)
        return found

    def batch(self, fields: Sequence[Tensor]) -> tuple[int, ...]:
        """The sizes that all fields have in common before those of their components."""
        ranks = {v.name: shape_of(v, self.program).rank for v in self.program.inputs}
        firsts = [
            x[(..., *([0] * ranks[name]))] for name, x in zip(self.inputs, fields, strict=True)
        ]
        return tuple(torch.broadcast_tensors(*firsts)[0].shape)


LACKING = ("no-compiler", "no-cuda-compiler", "task-too-large")
"""Why a program may have no kernel on a device, where torch runs it instead."""

LOCK = threading.RLock()
MODELS: dict[str, MaterialProgram] = {}


def tell_failures(*, strict: bool = False) -> None:
    """Warn of the solves of materials that failed on GPUs since the last time."""
    found = [problem for model in list(MODELS.values()) for problem in model.read_failures()]
    warn_of(found, strict=strict)


def made(program: Program, dtype: torch.dtype, device: torch.device) -> Executor:
    """What runs a program best, its parameters being numbers of the precision."""
    program = freeze(program, torch.finfo(dtype).eps)
    if device.type in ("cpu", "cuda"):
        try:
            return executor(program, "kernel", dtype, device=device)
        except IngotError as error:
            if any(problem.code not in LACKING for problem in error.problems):
                raise
            if device.type == "cuda":
                warn_of(error.problems)
    return executor(program, "interpret", dtype)


def material(
    name: str, program: Program, inputs: Sequence[str], outputs: Sequence[str]
) -> Material:
    """A program as an operation; it takes and gives fields in the order of these variables."""
    MODELS[name] = MaterialProgram(program, tuple(inputs), tuple(outputs))
    operation()
    return Material(name)


@functools.cache
def operation() -> OpOverload:
    """The operation that runs materials, known to torch from the first use on."""

    @torch.library.custom_op("ingot::material", mutates_args=())
    def run(name: str, fields: list[Tensor]) -> list[Tensor]:
        model, first = MODELS[name], fields[0]
        given = dict(zip(model.inputs, fields, strict=True))
        outputs, statuses = model.executor(first.dtype, first.device)(given)
        model.warn(statuses)
        batch = model.batch(fields)
        return [spread(outputs[each], batch) for each in model.outputs]

    @run.register_fake
    def _(name: str, fields: list[Tensor]) -> list[Tensor]:
        model, batch = MODELS[name], MODELS[name].batch(fields)
        found = {v.name: shape_of(v, model.program) for v in model.program.outputs}
        shapes = (found[each] for each in model.outputs)
        return [fields[0].new_empty_strided(*lay_out_output(s, batch)) for s in shapes]

    return torch.ops.ingot.material.default


def spread(output: Tensor, batch: tuple[int, ...]) -> Tensor:
    """An output at every point; one that is given there stays as it lies."""
    rank = output.dim() - len(batch)
    if output.shape[: len(batch)] == batch and 0 not in output.stride():
        return output
    return output.expand((*batch, *output.shape[output.dim() - max(rank, 0) :])).contiguous()
