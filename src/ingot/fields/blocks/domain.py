"""[Domain] -> Domain: the box, how it is shared, and the numbers it holds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch

from ingot.errors import IngotError, Problem
from ingot.fields.blocks.options import Reader
from ingot.fields.blocks.sections import Sections
from ingot.fields.shares import Mode, deal, parts_of, share_of
from ingot.fields.spaces import Space, space
from ingot.hit import Block
from ingot.options import Count, NotNegativeCount

__all__ = ["Domain", "World", "check_domain", "precision_of", "ranks_of", "read_domain", "space_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """The grid, its box, and where it lives.

    dim: the number of axes
    nx: cells along x
    ny: cells along y
    nz: cells along z
    xmin: where the box begins along x
    ymin: where the box begins along y
    zmin: where the box begins along z
    xmax: where the box ends along x
    ymax: where the box ends along y
    zmax: where the box ends along z
    parallel_mode: how the box is shared among ranks, and with it the layout of spectra
    periodic_directions: the axes that wrap around where there are no transforms
    mesh_mode: the mesh for Exodus output: one element, one for each cell, or a [Mesh] block
    device_names: the devices of the ranks
    device_weights: the relative widths of their parts
    floating_precision: the type of real numbers
    debug: whether to print what is compiled
    gpu_aware_mpi: accepted: torch.distributed moves what ranks exchange
    """

    dim: Literal["1", "2", "3"]
    nx: Count = 1
    ny: NotNegativeCount = 1
    nz: NotNegativeCount = 1
    xmin: float = 0.0
    ymin: float = 0.0
    zmin: float = 0.0
    xmax: float = 1.0
    ymax: float = 1.0
    zmax: float = 1.0
    parallel_mode: Literal["NONE", "REAL_SPACE", "FFT_SLAB", "FFT_PENCIL"] = "NONE"
    periodic_directions: tuple[Literal["X", "Y", "Z"], ...] = ()
    mesh_mode: Literal["DUMMY", "DOMAIN", "MANUAL"] = "DUMMY"
    device_names: tuple[str, ...] = ()
    device_weights: tuple[Count, ...] = ()
    floating_precision: Literal["DEVICE_DEFAULT", "SINGLE", "DOUBLE"] = "DEVICE_DEFAULT"
    debug: bool = False
    gpu_aware_mpi: bool = False

    @property
    def sizes(self) -> tuple[int, ...]:
        """The cells along each axis in use."""
        return (self.nx, self.ny, self.nz)[: int(self.dim)]

    @property
    def lower(self) -> tuple[float, float, float]:
        """The corner where the box begins."""
        return self.xmin, self.ymin, self.zmin

    @property
    def upper(self) -> tuple[float, float, float]:
        """The corner where the box ends."""
        return self.xmax, self.ymax, self.zmax


def check_domain(domain: Domain, block: Block) -> Iterator[Problem]:
    """What is wrong with a domain."""
    for axis, low, high in zip("xyz", domain.lower, domain.upper, strict=True):
        if not -math.inf < low < high < math.inf:
            message = f"{axis}max = {high:g} does not lie above {axis}min = {low:g}"
            yield Problem("wrong-value", message, block.span, f"give a larger {axis}max")
    for axis, count in zip("xyz", domain.sizes, strict=False):
        if count < 1:
            message = f"n{axis} = {count} is no number of cells"
            yield Problem("wrong-value", message, block.span, "give 1 or more")
    wrapped = set("XYZ"[: int(domain.dim)]) - set(domain.periodic_directions)
    if domain.parallel_mode == "REAL_SPACE" and wrapped:
        message = f"parallel_mode = REAL_SPACE needs periodic_directions to hold {min(wrapped)}"
        yield Problem("wrong-value", message, block.span, "list all axes: 'X Y Z'")
    least = {"FFT_SLAB": 2, "FFT_PENCIL": 3}.get(domain.parallel_mode, 1)
    if int(domain.dim) < least:
        message = f"parallel_mode = {domain.parallel_mode} cuts no box of dim = {domain.dim}"
        yield Problem("wrong-value", message, block.span, "use parallel_mode = NONE")
    elif domain.parallel_mode == "FFT_SLAB" and 0 < domain.ny < ranks_of(domain):
        message = f"ny = {domain.ny} rows cannot be shared among {ranks_of(domain)} ranks"
        yield Problem("wrong-value", message, block.span, "use parallel_mode = NONE")
    if domain.device_weights and len(domain.device_weights) != len(domain.device_names):
        message = "device_weights and device_names are not of one length"
        yield Problem("wrong-value", message, block.span, "give a weight for each device")


def ranks_of(domain: Domain) -> int:
    """Among how many ranks the box is shared: one for each device, two at least for a slab."""
    shared = domain.parallel_mode in ("FFT_SLAB", "FFT_PENCIL")
    return max(len(domain.device_names), 2 if shared else 1) if shared else 1


@dataclass(frozen=True, slots=True)
class World:
    """This process among those that share a box; `local` counts those of one machine."""

    rank: int
    count: int
    local: int = 0


def precision_of(domain: Domain, device: str) -> torch.dtype:
    """The type of real numbers of a run on a device."""
    single = domain.floating_precision == "SINGLE" or device.startswith("mps")
    return torch.float32 if single else torch.float64


def space_of(domain: Domain, device: str, ranks: int, world: World | None = None) -> Space:
    """The space of a domain: the whole of it, or the part of this process in a world of them."""
    weights = domain.device_weights if len(domain.device_weights) == ranks else (1,) * ranks
    slabs = deal(domain.ny, weights) if ranks > 1 and domain.parallel_mode == "FFT_SLAB" else ()
    mode: Mode = domain.parallel_mode
    try:
        whole = space(
            domain.sizes,
            domain.lower,
            domain.upper,
            mode=mode,
            slabs=slabs,
            dtype=precision_of(domain, device),
            device=device,
        )
    except (RuntimeError, ValueError) as error:
        sizes = " x ".join(map(str, domain.sizes))
        message = f"a grid of {sizes} cells cannot be made: {str(error).splitlines()[0]}"
        raise IngotError([Problem("wrong-value", message, fix="give fewer cells")]) from error
    if world is None:
        return whole
    given = domain.device_weights if len(domain.device_weights) == world.count else ()
    parts = parts_of(domain.sizes, mode, given or (1,) * world.count)
    return whole.part(share_of(parts, world.rank))


def read_domain(whole: Sections, reader: Reader) -> Domain | None:
    """The domain of a file; None where something is wrong, which the reader knows."""
    block = whole.one("Domain")
    if block is None:
        message = "a simulation needs a [Domain]"
        raise IngotError([Problem("missing-block", message, fix="add a [Domain] block")])
    domain = reader.made(block, Domain, ())
    if domain is not None:
        reader.problems += check_domain(domain, block)
        axes = "xyz"[int(domain.dim) :]
        idle = [name for a in axes for name in (f"n{a}", f"{a}min", f"{a}max")]
        idle += [] if domain.parallel_mode == "REAL_SPACE" else ["periodic_directions"]
        reader.tell_idle_fields(block, domain, idle)
        mesh = whole.one("Mesh")
        if mesh is not None and domain.mesh_mode != "MANUAL":
            message = f"a [Mesh] block needs mesh_mode = MANUAL, not {domain.mesh_mode}"
            reader.problems.append(Problem("wrong-value", message, mesh.span, "remove [Mesh]"))
    return domain
