"""The stub: an input file in which the compiled package stands for the model."""

import os
from dataclasses import replace
from pathlib import Path

from ingot.errors import Span
from ingot.hit import Block, Field, Tree
from ingot.model.settings import LEGACY
from ingot.package.stages import Partitioned

__all__ = ["stub"]

KNOBS = (
    "type", "abs_tol", "rel_tol", "max_its", "stop", "linesearch_type",
    "max_linesearch_iterations", "linesearch_cutback", "linesearch_stopping_criteria",
)  # fmt: skip
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
    solver = _solver(stage)
    if solver is not None:
        sections.append(_section("Solvers", [solver]))
    fields = {"type": "AOTIModel", "artifact_path": name}
    if solver is not None:
        fields["solver"] = solver.name
    model = _section("Models", [_block(loaded.model.name, fields)])
    comments = [
        f"# Generated from {tree.file.name if tree.file else 'a text'} by Ingot.",
        f"# Drop-in for [Models/{loaded.model.name}].",
        f"# Do not edit; regenerate with: {command}",
    ]
    return "\n".join([*comments, str(Tree(tree.fields, (*sections, model)))])


def _solver(stage: Partitioned) -> Block | None:
    """The nonlinear solver of the model's first implicit update, with what acts at load."""
    solves = stage.program.solves()
    if not solves:
        return None
    tree = stage.shaped.loaded.tree
    update = tree.require("Models", solves[0].name)
    found = tree.require("Solvers", update.require("solver").string())
    return replace(found, fields=tuple(f for f in found.fields if f.name in KNOBS), blocks=())


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


def _block(name: str, fields: dict[str, str]) -> Block:
    nowhere = Span("", 0)
    made = tuple(Field(k, v, nowhere, nowhere) for k, v in fields.items())
    return Block(name, f"Models/{name}", made, (), nowhere)
