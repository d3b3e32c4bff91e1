"""[Stencil] and media -> what computes of a lattice may ask for; and what is told of quirks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ingot.errors import IngotError, Problem, Span
from ingot.fields.blocks.options import Reader, place
from ingot.fields.blocks.problem import LatticeOptions, ProblemOptions
from ingot.fields.declare import DeclaredCompute
from ingot.fields.lbm.boundaries import bounce_links
from ingot.fields.lbm.hydrodynamics import LBMConstantTensor
from ingot.fields.lbm.media import region_cells, solid_cells, wall_cells
from ingot.fields.lbm.stencils import STENCILS, Stencil
from ingot.fields.lbm.streaming import stream
from ingot.fields.outputs.xdmf import library
from ingot.fields.spaces import Space
from ingot.fields.step import Ambient, Buffer, Source, Step
from ingot.hit import Block

if TYPE_CHECKING:
    from ingot.fields.simulation import Simulation

__all__ = [
    "LatticeSetting", "StencilOptions", "StoredField", "lattice_quirks", "read_stencil",
    "wrong_components",
]  # fmt: skip

TYPES = {f"LBM{name}": stencil for name, stencil in STENCILS.items()}
"""The stencils by the types that a file may name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StencilOptions:
    """The directions of a lattice."""


@dataclass(slots=True)
class LatticeSetting:
    """The stencil and the medium of a problem, and the cells that its boundaries ask for."""

    stencil: Stencil | None = None
    media: str = ""
    masks: dict[str, Step] = field(default_factory=dict)

    def missing(
        self, block: Block, declared: DeclaredCompute, values: dict[str, Any]
    ) -> Iterator[Problem]:
        """What a block needs that the file does not have."""
        roles = {argument.role for argument in declared.arguments}
        if self.stencil is None and "stencil" in roles:
            message = f"{declared.name} needs a [Stencil]"
            fix = "add [Stencil] with a block of type LBMD2Q9, LBMD3Q19 or LBMD3Q27"
            yield Problem("missing-block", message, block.span, fix)
        boundary = values.get("boundary")
        if not self.media and "cells" in roles and boundary in ("wall", "regional"):
            message = f"boundary = {boundary} of {block.title} needs a medium"
            fix = "name its buffer in [Problem]: binary_media = ..."
            yield Problem("missing-option", message, block.span, fix)

    def mask(self, role: str, values: dict[str, Any], block: Block | None = None) -> str | None:
        """The buffer that marks solid cells, or those that a boundary means, if it has any."""
        boundary = values.get("boundary") if role == "cells" else "solid"
        if not self.media or self.stencil is None:
            return None
        options: dict[str, Any] = {}
        match boundary:
            case "solid":
                name, function, said = "#solid", solid_cells, ""
            case "wall":
                name, function, said = "#wall", wall_cells, "boundary"
                options = {"stencil": self.stencil}
            case "regional":
                number = values["region_id"]
                name, function, said = f"#region{number}", region_cells, "region_id"
                options = {"number": number}
            case _:
                return None
        reads: dict[str, Source] = {"media": Buffer(self.media), "space": Ambient("space")}
        span = place(block, said) if block is not None and said else None
        self.masks.setdefault(name, Step(name, function, reads, (name,), options, span=span))
        return name


def read_stencil(
    blocks: Sequence[Block], problem: Block | None, options: ProblemOptions, dim: int,
    reader: Reader,
) -> LatticeSetting:  # fmt: skip
    """The setting of a lattice Boltzmann problem; that of another is empty."""
    lattice, problems = isinstance(options, LatticeOptions), reader.problems
    span = None if problem is None else problem.span
    for extra in blocks[1:]:
        message = f"there is already a stencil '{blocks[0].name}', and a problem has one"
        problems.append(Problem("duplicate-block", message, extra.span, "remove one of the two"))
    if blocks and not lattice:
        message = "[Stencil] needs a lattice Boltzmann problem"
        fix = "set 'type = LatticeBoltzmannProblem' in [Problem]"
        problems.append(Problem("wrong-value", message, blocks[0].span, fix))
    if lattice and not blocks:
        message = "a LatticeBoltzmannProblem needs a [Stencil]"
        fix = "add [Stencil] with a block of type LBMD2Q9, LBMD3Q19 or LBMD3Q27"
        problems.append(Problem("missing-block", message, span, fix))
    if not isinstance(options, LatticeOptions) or not blocks:
        return LatticeSetting()
    stencil = reader.type_of(blocks[0], TYPES)
    reader.made(blocks[0], StencilOptions)
    if stencil is not None and stencil.dim != dim:
        fits = " or ".join(name for name, each in TYPES.items() if each.dim == dim)
        message = f"{stencil.name} has {stencil.dim} axes, the [Domain] has {dim}"
        fix = f"use {fits}" if fits else "set dim = 2 or 3 in [Domain]"
        problems.append(Problem("wrong-value", message, blocks[0].span, fix))
    return LatticeSetting(stencil, options.binary_media)


@dataclass(frozen=True, slots=True)
class StoredField:
    """A field that a buffer starts with, from the set of an HDF5 file that is named like it."""

    path: Path
    integer: bool
    span: Span

    def read(self, space: Space, sizes: tuple[int, ...]) -> Tensor:
        """The field, on the device of the space."""
        name = self.path.stem
        try:
            with library().File(self.path, "r") as file:
                known = ", ".join(sorted(file)) or "none"
                values = torch.as_tensor(file[name][()]) if name in file else None
        except OSError as error:
            message = f"'{self.path.name}' is not an HDF5 file"
            fix = "write one: h5py.File(..., 'w') in Python"
            raise IngotError([Problem("wrong-value", message, self.span, fix)]) from error
        if values is None:
            message = f"'{self.path.name}' has no set '{name}'; it has {known}"
            fix = "name the set like the file, without its ending"
            raise IngotError([Problem("wrong-value", message, self.span, fix)])
        wanted = (*space.whole_shape, *sizes)
        # the reference's files may have a third axis of one cell
        plain = values.squeeze(2) if values.dim() > space.dim == 2 else values
        if tuple(plain.shape) != wanted:
            has, needs = (" x ".join(map(str, each)) for each in (values.shape, wanted))
            message = f"'{self.path.name}' has {has} numbers, the buffer {needs}"
            fix = "set nx, ny and nz of [Domain] to those of the file, x first"
            raise IngotError([Problem("wrong-value", message, self.span, fix)])
        kind = torch.int64 if self.integer else space.k2.dtype
        plain = plain if space.share is None else space.share.own(plain)
        return plain.to(dtype=kind, device=space.k2.device)


QUIRKS = {
    "LBMSmagorinskyCollision": "takes eddies from one product of velocities and the mean density",
    "LBMSmagorinskyMRTCollision": (
        "takes eddies from one product of velocities and the mean density"
    ),
    "LBMPhaseEquilibrium": "leaves out what keeps an interface thin",
    "LBMIsotropicGradient": "gives d/dy and -d/dx, and repeats the edges of the box",
    "LBMIsotropicLaplacian": "repeats the edges of the box, which wraps around elsewhere",
    "LBMComputeChemicalPotential": "has no minimum at either phase",
    "LBMApplyForces": "multiplies forces by the density",
}
"""What types do in the reference that they should not."""

SPATIAL = {
    "LBMMRTCollision": "takes the moments of D3Q27 from other directions",
    "LBMSmagorinskyMRTCollision": "takes the moments of D3Q27 from other directions",
    "LBMFixedFirstOrderBC": "adds up the wrong directions along the face",
    "LBMFixedZerothOrderBC": "adds up the wrong directions along the face",
}
"""The same on stencils with three axes."""

MOMENTUM = "relaxes momentum at rates of its own, which forces do not fit"
"""What moments of the reference do where the velocity has a share of forces."""


def wrong_components(made: Simulation, block: Block | None) -> Iterator[Problem]:
    """Buffers of a lattice that have other components than what writes or moves them."""
    counts = {name: math.prod(each.sizes) for name, each in made.buffers.items()}
    for step in (*made.initialize, *made.root.steps, *made.postprocess):
        wanted = counts.get(step.gives[0]) if step.function is LBMConstantTensor else None
        given = len(step.options["constants"]) if wanted is not None else wanted
        if given != wanted:
            message = f"'{step.gives[0]}' has {wanted} components, and 'constants' {given} numbers"
            yield Problem("wrong-value", message, step.span, "give a number for each component")
    solver = made.solver
    stencil = next((s.options["stencil"] for s in made.root.steps if s.function is stream), None)
    if stencil is None or block is None:
        return
    for option in ("buffer", "f_old"):
        for name in getattr(solver, option):
            if counts.get(name, stencil.q) != stencil.q:
                message = f"LBMStream moves '{name}', which is no distribution"
                fix = f"declare it in [TensorBuffers/{name}]: LBMTensorBuffer, buffer_type = df"
                yield Problem("wrong-value", message, place(block, option), fix)


def lattice_quirks(made: Simulation) -> Iterator[Problem]:
    """What a run does as the reference does, though it is not what the mathematics says."""
    fix = "set 'marlin_compatible = false' in {} for what the mathematics says"
    if not isinstance(made.problem, LatticeOptions):
        return
    if made.problem.marlin_compatible:
        block = made.tree.section("Problem")[0]
        message = "as in Marlin, the first step of a lattice Boltzmann run does nothing"
        yield Problem("reference-quirk", message, block.span, fix.format("[Problem]"))
    pushed = any(
        step.options.get("enable_forces") or step.options.get("add_body_force")
        for step in made.root.steps
    )
    for step in (*made.initialize, *made.root.steps, *made.postprocess):
        name, stencil = step.function.__name__, step.options.get("stencil")
        if step.function is bounce_links:
            message = "as in Marlin, a wall lets be what boundaries before it give at first"
            yield Problem("reference-quirk", message, step.span, fix.format("it or [Problem]"))
        if not step.options.get("compatible"):
            continue
        told = [QUIRKS.get(name), MOMENTUM if pushed and "MRT" in name else None]
        if stencil is not None and stencil.dim == 3:
            moments = "MRT" in name and stencil.name != "D3Q27"
            told.append(None if moments else SPATIAL.get(name))
        for each in filter(None, told):
            message = f"as in Marlin, {name} {each}"
            yield Problem("reference-quirk", message, step.span, fix.format("it or [Problem]"))
