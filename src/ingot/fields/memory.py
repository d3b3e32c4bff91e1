"""too_large: a Simulation and a device -> a problem where its fields cannot fit into memory.

Only what surely lies in memory at one time is counted, so that a run that fits is never refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch

from ingot.errors import Problem
from ingot.fields.blocks.domain import Domain, World, precision_of
from ingot.fields.computes.basic import RandomTensor
from ingot.fields.computes.spectral import ForwardFFT
from ingot.fields.jit.planner import private_of
from ingot.fields.step import Step
from ingot.fields.wiring import solver_reads
from ingot.platform import read_free_memory

if TYPE_CHECKING:
    from ingot.fields.simulation import Simulation

__all__ = ["free_memory", "needed_memory", "too_large"]


def too_large(
    simulation: Simulation, device: str, *, jit: bool, world: World | None = None
) -> Iterator[Problem]:
    """A problem with both figures where the fields of a run take more than there is."""
    needed, free = needed_memory(simulation, device, jit=jit, world=world), free_memory(device)
    if free is not None and needed > free:
        sizes = " x ".join(map(str, simulation.domain.sizes))
        message = (
            f"the fields of {sizes} cells take at least {in_units(needed)}, and"
            f" {in_units(free)} of memory are free on {device}"
        )
        fix = "give fewer cells, or floating_precision = SINGLE, or share the box by --ranks"
        yield Problem("too-much-memory", message, simulation.span("Domain", "nx"), fix)


def needed_memory(
    simulation: Simulation, device: str, *, jit: bool, world: World | None = None
) -> int:
    """The bytes of all fields that a process holds between steps, and of the wavenumbers."""
    domain = simulation.domain
    size = precision_of(domain, device).itemsize
    cells, numbers = math.prod(domain.sizes), spectrum_cells(domain)
    spectra, histories = simulation.spectra, simulation.histories
    real = set(solver_reads(simulation.solver, ("linear_reciprocal",)))
    total = 0
    for name in kept_fields(simulation, jit=jit):
        entries = numbers * (1 if name in real else 2) if name in spectra else cells
        states = 1 + histories.get(name, 0)
        declared = simulation.buffers.get(name)
        components = math.prod(declared.sizes) if declared is not None else 1
        total += entries * size * states * components
    share = 1 if world is None else world.count
    return total // share + numbers * size


def kept_fields(simulation: Simulation, *, jit: bool) -> set[str]:
    """The buffers that surely have a value in every cell, and outlast a compiled sequence."""
    readers: dict[str, list[Step]] = {}
    pending = [*simulation.buffers, *getattr(simulation.solver, "buffer", ())]
    for step in (*simulation.initialize, *simulation.root.steps, *simulation.postprocess):
        if step.function in (ForwardFFT, RandomTensor):
            pending += step.gives
        for name in step.reads:
            readers.setdefault(name, []).append(step)
    full: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in full:
            full.add(name)
            pending += (given for step in readers.get(name, ()) for given in step.gives)
    return full - (private_of(simulation) if jit else frozenset())


def spectrum_cells(domain: Domain) -> int:
    """The entries of a spectrum, of which one axis may be halved."""
    sizes = list(domain.sizes)
    halved = {"NONE": len(sizes) - 1, "FFT_PENCIL": 0}.get(domain.parallel_mode)
    if halved is not None:
        sizes[halved] = sizes[halved] // 2 + 1
    return math.prod(sizes)


def free_memory(device: str) -> int | None:
    """The bytes that a device can still give, None where it does not tell."""
    if device.startswith("cuda"):
        return torch.cuda.mem_get_info(device)[0]
    return read_free_memory()


def in_units(count: int) -> str:
    """A number of bytes as a person reads it."""
    value, units = float(count), ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:.3g} {units[0]}" if value < 1000 else f"{value:.0f} {units[0]}"
