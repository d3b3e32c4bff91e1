"""The stub: an input file in which the compiled package stands for the model."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from ingot.errors import Span
from ingot.hit import Block, Field, Tree
from ingot.model.settings import LEGACY
from ingot.options import Newton, knobs_of
from ingot.package.stages import Partitioned

__all__ = ["stub"]

FILES = ("csv_file", "reference")
"""Options whose values are names of files, relative to the file that holds them."""


def stub(stage: Partitioned, name: str, place: Path, command: str) -> str:
    """The text of the stub that is to stand at `place`, beside the package's folder."""
    loaded = stage.shaped.loaded
    tree = loaded.tree
    source = tree.file.parent if tree.file else Path()
    sections: list[Block] = []
    for found in tree.blocks:
        if found.name == "Settings":
            sections.append(_without_legacy(found))
        elif found.name == "Tensors" or (found.name == "Drivers" and loaded.driver):
            sections.append(_moved(found, source, place.parent))
    solvers = dict(_solvers(stage))
    fields = {"type": "AOTIModel", "artifact_path": name}
    if solvers:
        blocks = {block.name: block for block in solvers.values()}
        sections.append(_section("Solvers", [*blocks.values()]))
        pairs = (f"{update}:{block.name}" for update, block in solvers.items())
        fields["solvers"] = " ".join(pairs)
    model = _section("Models", [_block(f"Models/{loaded.model.name}", fields)])
    comments = [
        f"# Generated from {tree.file.name if tree.file else 'a text'} by Ingot.",
        f"# Drop-in for [Models/{loaded.model.name}].",
        f"# Do not edit; regenerate with: {command}",
    ]
    return "\n".join([*comments, str(Tree(tree.fields, (*sections, model)))])


def _solvers(stage: Partitioned) -> Iterator[tuple[str, Block]]:
    """The implicit updates by name, each with its solver and all the rules that act at load."""
    tree = stage.shaped.loaded.tree
    for solve in stage.program.solves():
        found = tree.require("Solvers", tree.require("Models", solve.name).require("solver").text)
        searches = solve.newton.linesearch != "NONE"
        wanted = {"type": "NewtonWithLineSearch" if searches else "Newton"}
        for knob in knobs_of(Newton):
            if searches or "linesearch" not in knob.name:
                written = found.field(knob.option)
                value = getattr(solve.newton, knob.name)
                wanted[knob.option] = str(value) if written is None else written.text
        yield solve.name, _block(found.path, wanted)


def _without_legacy(block: Block) -> Block:
    return replace(block, fields=tuple(f for f in block.fields if f.name not in LEGACY))


def _moved(block: Block, old: Path, new: Path) -> Block:
    """A section whose relative file names are written so that they still resolve."""

    def field(f: Field) -> Field:
        if f.name in FILES and not Path(f.string()).is_absolute():
            return replace(f, text=os.path.relpath(old / f.string(), new))
        return f

    return replace(
        block,
        fields=tuple(field(f) for f in block.fields),
        blocks=tuple(_moved(b, old, new) for b in block.blocks),
    )


def _section(name: str, blocks: list[Block]) -> Block:
    span = blocks[0].span
    return Block(name, name, (), tuple(blocks), span)


def _block(path: str, fields: Mapping[str, str]) -> Block:
    nowhere = Span("", 0)
    made = tuple(Field(k, v, nowhere, nowhere) for k, v in fields.items())
    return Block(path.rpartition("/")[2], path, made, (), nowhere)
