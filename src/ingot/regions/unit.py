"""A piece -> a unit that runs, compiled in process, once for all pieces of its key."""

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import msgspec
import torch
from torch import Tensor

from ingot.graphs import torch_private
from ingot.regions import operation
from ingot.regions.capture import LOCK, translated
from ingot.regions.plan import UnitInfo
from ingot.regions.sizes import Sizes
from ingot.regions.split import Piece

__all__ = ["UNITS", "Unit", "fakes_of", "jit"]


@dataclass(frozen=True, slots=True)
class Unit:
    """Compiled code for one kind of block; `run` takes lifted tensors, then inputs, unchecked.

    settled: a faster `run` for tensors that lie as those it is given, in the same mode.
    """

    info: UnitInfo
    run: Callable[..., Sequence[Tensor]]
    seconds: float
    settled: Callable[..., Callable[..., Sequence[Tensor]]] | None = None


UNITS: dict[Hashable, list[Unit]] = {}
"""What this process has compiled: for each key one unit, and others for sizes it does not take."""


def jit(piece: Piece, *, grad: bool) -> Unit:
    """Compile a piece."""
    begun = time.perf_counter()
    sizes = Sizes(piece.hints)
    graph = piece.graph()
    with LOCK, translated(piece.info.name):
        run = torch_private.compile_now(graph, sizes.mode, fakes_of(piece, sizes, grad), grad=grad)
    operation.forget(graph)
    info = msgspec.structs.replace(piece.info, guards=sizes.guards())
    return Unit(info, run, time.perf_counter() - begun)


def fakes_of(piece: Piece, sizes: Sizes, grad: bool) -> list[Tensor]:
    """Tensors without numbers for a piece: values between units may all need a gradient."""
    state = [sizes.state(t, grad=grad and t.requires_grad) for t in piece.state]
    inputs = []
    for info in piece.info.inputs:
        dtype: torch.dtype = getattr(torch, info.dtype)
        needs = grad and (dtype.is_floating_point or dtype.is_complex)
        inputs.append(sizes.tensor(info.shape, dtype, info.device, grad=needs))
    return [*state, *inputs]
