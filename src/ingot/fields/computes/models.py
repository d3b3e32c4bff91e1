"""Computes that run a model at every point: an energy from a TorchScript file, or a material."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ingot.errors import IngotError, Problem, did_you_mean, raise_if
from ingot.execute.batch_shape import shape_of
from ingot.fields.declare import Loaded, More, Names, compute
from ingot.fields.jit.material import Material, material
from ingot.fields.spaces import Grid, Narrow, Space
from ingot.fields.step import Ambient, Buffer, Source
from ingot.hit import Block, Field, Tree, read
from ingot.model import build, lag
from ingot.program import Program, is_shift_invariant, trace, with_jacobian

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


@dataclasses.dataclass(frozen=True, slots=True)
class PointModel:
    """A material of a file, and what it takes and gives beyond the buffers that options name.

    feeds: for each variable that no option names: the time at the end of a substep ("end"), the
    time at its beginning ("begin"), or an old value ("old"), in the order of the material's inputs
    reads: the clock, and the buffers of old values; gives: buffers that old inputs are kept in
    starts: the components of buffers that hold zeros before the first step; follows: the inputs
    that buffers of old inputs start from, where those are there before it
    is_autonomous: whether time enters by the length of a substep alone, so that none is lost in it
    """

    material: Material
    feeds: tuple[str, ...] = ()
    kept: tuple[int, ...] = ()
    reads: tuple[Source, ...] = ()
    gives: tuple[str, ...] = ()
    starts: Mapping[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)
    follows: Mapping[str, str] = dataclasses.field(default_factory=dict)
    is_autonomous: bool = False

    def __call__(self, inputs: Sequence[Tensor], more: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The outputs at every point, and the inputs that are kept for the next step."""
        if not self.feeds:
            return self.material(inputs)
        end, dt, *old = more
        values = iter(old)
        end = dt if self.is_autonomous else end
        clock = {"end": end, "begin": end - dt}
        fed = [clock[each] if each in clock else next(values) for each in self.feeds]
        gives = self.material([*inputs, *fed])
        return (*gives, *(inputs[at] for at in self.kept))


CLOCK = {"t": "end", "forces/t": "end", "t~1": "begin", "old_forces/t": "begin"}
"""The times that a material may ask for, as NEML2 3 and 2 spell them."""

OLD = (("old_state/", "state/"), ("old_forces/", "forces/"))
"""How NEML2 2 spells an old value."""


def present(name: str) -> str | None:
    """The variable that a name asks the old value of."""
    if name.endswith("~1"):
        return name.removesuffix("~1")
    return next((new + name[len(old) :] for old, new in OLD if name.startswith(old)), None)


def load_model(
    block: Block, options: dict[str, Any], folder: Path, *, untrusted: bool = False
) -> PointModel:
    """The model of a material file, ready to run on fields."""
    path = existing(block.require("neml2_input_file"), folder)
    tree = modernised(read(path, options["cli_args"]))
    program = trace(build(tree, options["neml2_model"], untrusted=untrusted))
    inputs = {variable.name: variable for variable in program.inputs}
    outputs = {variable.name for variable in program.outputs}
    words = options["neml2_derivatives"]
    pairs = tuple(zip(words[::2], words[1::2], strict=False))
    feeds = {n: feed_of(n, options) for n in inputs if n not in options["neml2_inputs"]}
    raise_if(
        [
            *unpaired(block, options, "marlin_inputs", "neml2_inputs"),
            *unpaired(block, options, "marlin_outputs", "neml2_outputs"),
            *odd_pairs(block, options),
            *strangers(block, "neml2_inputs", options["neml2_inputs"], inputs),
            *strangers(block, "neml2_outputs", options["neml2_outputs"], outputs),
            *strangers(block, "neml2_derivatives", [y for y, _ in pairs], outputs),
            *strangers(block, "neml2_derivatives", [x for _, x in pairs], inputs),
            *ungiven(block, {n for n, feed in feeds.items() if not feed}),
        ]
    )
    if pairs:
        program = with_jacobian(program, pairs)
    takes = (*options["neml2_inputs"], *feeds)
    gives = (*options["neml2_outputs"], *(f"{y}:{x}" for y, x in pairs))
    # by what is computed, since laws, tables and included files change under their names
    values = [p.value.data.contiguous() for p in program.parameters]
    parts = (program.digest, *(f"{x.shape} {x.numpy().tobytes().hex()}" for x in values))
    parts += (*takes, "->", *gives)
    name = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    found = material(name, program, takes, gives)
    return fed_model(block, options, found, program, feeds)


def feed_of(name: str, options: dict[str, Any]) -> str:
    """Where a variable comes from that no option names: the clock, or an old value; else ''."""
    if name in CLOCK:
        return CLOCK[name]
    known = (*options["neml2_outputs"], *options["neml2_inputs"])
    return "old" if present(name) in known else ""


def fed_model(
    block: Block, options: dict[str, Any], found: Material, program: Program,
    feeds: Mapping[str, str],
) -> PointModel:  # fmt: skip
    """A material with the buffers of its internal variables, and of inputs that it asks again."""
    shapes = {v.name: shape_of(v, program) for v in program.inputs}
    states = dict(zip(options["neml2_outputs"], options["marlin_outputs"], strict=True))
    reads: list[Source] = []
    kept: dict[str, str] = {}
    starts: dict[str, tuple[int, ...]] = {}
    for name in (n for n, feed in feeds.items() if feed == "old"):
        now = present(name)
        assert now is not None
        if now not in states:
            kept[now] = f"{block.path}#{now}"
        buffer = states[now] if now in states else kept[now]
        reads.append(Buffer(buffer))
        starts[buffer] = (*shapes[name].sizes, *shapes[name].base)
    clock = (Ambient("end"), Ambient("dt")) if feeds else ()
    places = tuple(options["neml2_inputs"].index(name) for name in kept)
    inputs = options["marlin_inputs"]
    follows = {kept[now]: inputs[at] for now, at in zip(kept, places, strict=True)}
    gives = tuple(kept.values())
    times = {lag(name)[0] for name in CLOCK}
    told = all(v.name in feeds for v in program.inputs if lag(v.name)[0] in times)
    return PointModel(
        found, tuple(feeds.values()), places, (*clock, *reads), gives, starts, follows,
        told and is_shift_invariant(program, times),
    )  # fmt: skip


def odd_pairs(block: Block, options: dict[str, Any]) -> Iterator[Problem]:
    """Derivatives are pairs of an output and an input, and each has a buffer."""
    count, buffers = len(options["neml2_derivatives"]), len(options["marlin_derivatives"])
    if count != 2 * buffers:
        message = f"neml2_derivatives has {count} entries, marlin_derivatives {buffers}"
        fix = "give an output and an input of the model for each buffer"
        yield Problem("wrong-value", message, block.span, fix)


def unpaired(block: Block, options: dict[str, Any], ours: str, theirs: str) -> Iterator[Problem]:
    if len(options[ours]) != len(options[theirs]):
        message = f"{ours} has {len(options[ours])} entries, {theirs} {len(options[theirs])}"
        yield Problem("wrong-value", message, block.span, "give as many of the one as of the other")


def strangers(
    block: Block, option: str, names: Sequence[str], known: Collection[str]
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
    gives=("marlin_outputs", "marlin_derivatives"),
    many=("marlin_outputs", "marlin_derivatives"),
    unless={"marlin_derivatives": ()},
    load=load_model,
)
def NEML2TensorCompute(
    marlin_inputs: tuple[Narrow, ...] = (),
    *,
    names: Names,
    model: Loaded,
    more: More,
    neml2_input_file: str,
    neml2_model: str,
    cli_args: tuple[str, ...] = (),
    neml2_inputs: tuple[str, ...] = (),
    neml2_outputs: tuple[str, ...] = (),
    neml2_derivatives: tuple[str, ...] = (),
) -> tuple[Tensor, ...]:
    """A material model evaluated at every point, its internal variables kept there.

    An old value (`x~1`) that `neml2_inputs` does not name is what the buffer of `x` held before,
    and the times `t` and `t~1` are those of the substep.

    marlin_inputs: the buffers that are its inputs
    marlin_outputs: the buffers that its outputs are written to
    marlin_derivatives: the buffers that derivatives are written to
    neml2_input_file: the file that holds it
    neml2_model: its name there
    cli_args: values that replace those of that file
    neml2_inputs: the variables that the buffers stand for
    neml2_outputs: the variables that are written to buffers
    neml2_derivatives: an output and an input for each derivative, such as 'stress strain'
    """
    return model(marlin_inputs, more)
