"""Computes that run a model at every point: an energy from a TorchScript file, or a material."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ingot.errors import IngotError, Problem, did_you_mean, raise_if
from ingot.fields.declare import Loaded, Names, compute
from ingot.fields.jit.material import Material, material
from ingot.fields.spaces import Grid, Narrow, Space
from ingot.hit import Block, Field, Tree, read
from ingot.model import build
from ingot.program import trace

__all__ = ["LibtorchGibbsEnergy", "NEML2TensorCompute"]

DATA = "marlin:"


def existing(field: Field, folder: Path) -> Path:
    """The file that an option names; `marlin:` files lie in a folder `data` of a parent folder."""
    name = field.string().strip()
    if name.startswith(DATA):
        parents = [folder.resolve(), *folder.resolve().parents]
        places = [parent / "data" / name.removeprefix(DATA) for parent in parents]
    else:
        places = [folder / name]
    for place in places:
        if os.path.isfile(place):  # a path that cannot be is not one
            return place
    beside = [each.name for each in folder.iterdir()] if folder.is_dir() else []
    fix = did_you_mean(Path(name).name, beside) or f"put it beside the input file, in {folder}"
    message = f"there is no file '{name}'"
    raise IngotError([Problem("file-not-found", message, field.value_span, fix)])


def load_energy(block: Block, options: dict[str, Any], folder: Path) -> Any:
    """The module of a TorchScript file."""
    field = block.require("libtorch_model_file")
    path = existing(field, folder)
    lengths = (("phase_fractions", "domega_detas"), ("concentrations", "chem_pots"))
    raise_if(
        Problem(
            "wrong-value",
            f"{a} has {len(options[a])} entries, {b} {len(options[b])}",
            block.span,
            "give one derivative for each",
        )
        for a, b in lengths
        if len(options[a]) != len(options[b])
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return torch.jit.load(str(path), map_location="cpu").eval()
    except RuntimeError as error:
        message = f"'{path.name}' is not a TorchScript file: {str(error).splitlines()[0]}"
        raise IngotError([Problem("wrong-value", message, field.value_span)]) from error


@compute(
    gives=("buffer", "domega_detas", "chem_pots"),
    many=("domega_detas", "chem_pots"),
    load=load_energy,
    jit=False,
    reason="its energy is a TorchScript module",
)
def LibtorchGibbsEnergy(
    phase_fractions: tuple[Grid, ...],
    concentrations: tuple[Grid, ...],
    space: Space,
    *,
    module: Loaded,
    libtorch_model_file: str,
) -> tuple[Tensor, ...]:
    """An energy that a TorchScript module gives at every point, and its derivatives.

    phase_fractions: the first inputs of the module
    concentrations: its further inputs
    libtorch_model_file: the file of the module
    """
    columns = (*phase_fractions, *concentrations)
    points = torch.stack(columns, dim=-1).reshape(-1, len(columns))
    with torch.enable_grad():
        points = points.detach().requires_grad_()
        energy = module.to(points.device, points.dtype)(points).reshape(-1)
        (slopes,) = torch.autograd.grad(energy.sum(), points)
    spread = slopes.reshape(*space.shape, len(columns))
    return energy.detach().reshape(space.shape), *spread.unbind(-1)


OLD_OPTIONS = {"from_var": "from", "to_var": "to"}
"""Options as NEML2 2 spells them, and as version 3 does."""


def modernised(tree: Tree) -> Tree:
    """A material file with the options of NEML2 2 renamed, without [Settings] nothing reads."""

    def renamed(block: Block) -> Block:
        fields = tuple(
            dataclasses.replace(f, name=OLD_OPTIONS.get(f.name, f.name)) for f in block.fields
        )
        return dataclasses.replace(block, fields=fields, blocks=tuple(map(renamed, block.blocks)))

    kept = (block for block in tree.blocks if block.name != "Settings")
    return dataclasses.replace(tree, blocks=tuple(map(renamed, kept)))


def load_model(
    block: Block, options: dict[str, Any], folder: Path, *, untrusted: bool = False
) -> Material:
    """The model of a material file, ready to run on fields."""
    path = existing(block.require("neml2_input_file"), folder)
    tree = modernised(read(path, options["cli_args"]))
    program = trace(build(tree, options["neml2_model"], untrusted=untrusted))
    inputs = {variable.name for variable in program.inputs}
    outputs = {variable.name for variable in program.outputs}
    raise_if(
        [
            *unpaired(block, options, "marlin_inputs", "neml2_inputs"),
            *unpaired(block, options, "marlin_outputs", "neml2_outputs"),
            *strangers(block, "neml2_inputs", options["neml2_inputs"], inputs),
            *strangers(block, "neml2_outputs", options["neml2_outputs"], outputs),
            *ungiven(block, inputs - set(options["neml2_inputs"])),
        ]
    )
    # by what is computed, since laws, tables and included files change under their names
    values = [p.value.data.contiguous() for p in program.parameters]
    parts = (program.digest, *(f"{x.shape} {x.numpy().tobytes().hex()}" for x in values))
    parts += (*options["neml2_inputs"], "->", *options["neml2_outputs"])
    name = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    return material(name, program, options["neml2_inputs"], options["neml2_outputs"])


def unpaired(block: Block, options: dict[str, Any], ours: str, theirs: str) -> Iterator[Problem]:
    if len(options[ours]) != len(options[theirs]):
        message = f"{ours} has {len(options[ours])} entries, {theirs} {len(options[theirs])}"
        yield Problem("wrong-value", message, block.span, "give as many of the one as of the other")


def strangers(
    block: Block, option: str, names: Sequence[str], known: set[str]
) -> Iterator[Problem]:
    for name in names:
        if name not in known:
            fix = did_you_mean(name, known) or f"choose one of: {', '.join(sorted(known))}"
            message = f"the model has no variable '{name}'"
            yield Problem("unknown-variable", message, block.require(option).value_span, fix)


def ungiven(block: Block, missing: set[str]) -> Iterator[Problem]:
    for name in sorted(missing):
        message = f"the model needs '{name}', which neml2_inputs does not name"
        yield Problem(
            "missing-option", message, block.span, "add it, and a buffer to marlin_inputs"
        )


@compute(
    gives=("marlin_outputs",),
    many=("marlin_outputs",),
    load=load_model,
)
def NEML2TensorCompute(
    marlin_inputs: tuple[Narrow, ...] = (),
    *,
    names: Names,
    model: Loaded,
    neml2_input_file: str,
    neml2_model: str,
    cli_args: tuple[str, ...] = (),
    neml2_inputs: tuple[str, ...] = (),
    neml2_outputs: tuple[str, ...] = (),
) -> tuple[Tensor, ...]:
    """A material model evaluated at every point.

    marlin_inputs: the buffers that are its inputs
    neml2_input_file: the file that holds it
    neml2_model: its name there
    cli_args: values that replace those of that file
    neml2_inputs: the variables that the buffers stand for
    neml2_outputs: the variables that are written to buffers
    """
    return model(marlin_inputs)
