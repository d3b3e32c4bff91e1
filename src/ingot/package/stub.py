"""The stub: an input file in which the compiled package stands for the model."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from ingot.errors import Span
from ingot.hit import Block, Field, Tree
from ingot.model.settings import LEGACY
from ingot.options import Newton, knobs_of
from ingot.package.compilation import Compilation, Names
from ingot.types import lag

__all__ = ["widen_stub", "write_stub"]

FILES = ("csv_file", "reference")
"""Options whose values are names of files, relative to the file that holds them."""

PROGRAM = re.compile(r"^(\s*program\s*=\s*)'?([0-9a-f]+(?: [0-9a-f]+)*)'?(\s*)$", re.MULTILINE)
"""Where a stub says which packages it takes."""

CLOCK = "t"
"""The variable that receives a TransientDriver's time where its block does not say."""


def write_stub(c: Compilation, place: Path, program: str = "") -> str:
    """The text of the stub that is to stand at `place`, beside the package's folder.

    program: what its metadata says that is computed, by which other packages are refused
    """
    tree, name = c.tree, c.model.name
    assert tree is not None, "only a file has a stub"
    source = tree.file.parent if tree.file else Path()
    sections: list[Block] = []
    for found in tree.blocks:
        if found.name == "Settings":
            sections.append(_write_settings(found, c))
        elif found.name == "Tensors":
            sections.append(_move_paths(found, source, place.parent))
        elif found.name == "Drivers" and c.driver:
            drivers = tuple(_write_driver(block, c) for block in found.blocks)
            sections.append(_move_paths(replace(found, blocks=drivers), source, place.parent))
    solvers = dict(_write_solvers(c, tree))
    fields = {"type": "AOTIModel", "artifact_path": name}
    if program:
        fields["program"] = program
    if solvers:
        blocks = {block.name: block for block in solvers.values()}
        sections.append(_write_section("Solvers", [*blocks.values()]))
        pairs = (f"{update}:{block.name}" for update, block in solvers.items())
        fields["solvers"] = " ".join(pairs)
    model = _write_section("Models", [_write_block(f"Models/{name}", fields)])
    comments = [
        f"# Generated from {tree.file.name if tree.file else 'a text'} by Ingot.",
        f"# Drop-in for [Models/{name}].",
        f"# Do not edit; regenerate with: {c.command}",
    ]
    return "\n".join([*comments, str(Tree(tree.fields, (*sections, model)))])


def widen_stub(file: Path, program: str) -> str:
    """The text of the stub that is there, taking another package too: the process may end between
    the folders and their new stub. Nothing where it takes that, or any.
    """
    try:
        text = file.read_text()
    except (OSError, ValueError):
        return ""
    wider = PROGRAM.sub(lambda found: f"{found[1]}'{found[2]} {program}'{found[3]}", text)
    return "" if program in text or wider == text else wider


def _write_solvers(c: Compilation, tree: Tree) -> Iterator[tuple[str, Block]]:
    """The implicit updates by name, each with its solver and all the rules that act at load."""
    for solve in c.program.solves:
        found = tree.require("Solvers", tree.require("Models", solve.name).require("solver").text)
        searches = solve.newton.linesearch != "NONE"
        wanted = {"type": "NewtonWithLineSearch" if searches else "Newton"}
        for knob in knobs_of(Newton):
            if searches or "linesearch" not in knob.name:
                written = found.field(knob.option)
                value = getattr(solve.newton, knob.name)
                wanted[knob.option] = str(value) if written is None else written.text
        yield solve.name, _write_block(found.path, wanted)


def _write_settings(block: Block, c: Compilation) -> Block:
    """The settings without keys of older files, and of the shapes those that the package shows."""

    def shapes(part: Block) -> Block:
        names = [*c.inputs.items(), *c.outputs.items()]
        fields = {
            lag(new)[0]: replace(f, name=lag(new)[0])
            for f in part.fields
            for old, new in names
            if lag(old)[0] == lag(f.name)[0]
        }
        return replace(part, fields=tuple(fields.values()))

    blocks = (shapes(b) if b.name == "example_batch_shape" else b for b in block.blocks)
    fields = (f for f in block.fields if f.name not in LEGACY)
    return replace(block, fields=tuple(fields), blocks=tuple(blocks))


def _write_driver(block: Block, c: Compilation) -> Block:
    """A driver's block with the names that the package shows in the place of the file's."""
    both = {**c.inputs, **c.outputs}
    sided = {f"input.{n}": f"input.{new}" for n, new in c.inputs.items()}
    sided |= {f"output.{n}": f"output.{new}" for n, new in c.outputs.items()}
    lists: dict[str, Names] = {
        "prescribed_": c.inputs, "input_": c.inputs, "output_": c.outputs, "ic_": both,
    }  # fmt: skip

    def field(f: Field) -> Field:
        if f.name == "time":
            return replace(f, text=c.inputs.get(f.text, f.text))
        if not f.name.endswith("_names"):
            return f
        names = next((lists[start] for start in lists if f.name.startswith(start)), sided)
        return replace(f, text=" ".join(names.get(word, word) for word in f.words()))

    model = block.field("model")
    if model is not None and model.string() != c.model.name:
        return block
    fields = [field(f) for f in block.fields]
    clock = c.inputs.get(CLOCK, CLOCK)
    if block.type == "TransientDriver" and clock != CLOCK and block.field("time") is None:
        fields.append(Field("time", clock, block.span, block.span))
    return replace(block, fields=tuple(fields))


def _move_paths(block: Block, old: Path, new: Path) -> Block:
    """A section whose relative file names are written so that they still resolve."""

    def field(f: Field) -> Field:
        if f.name in FILES and not Path(f.string()).is_absolute():
            return replace(f, text=os.path.relpath(old / f.string(), new))
        return f

    return replace(
        block,
        fields=tuple(field(f) for f in block.fields),
        blocks=tuple(_move_paths(b, old, new) for b in block.blocks),
    )


def _write_section(name: str, blocks: list[Block]) -> Block:
    span = blocks[0].span
    return Block(name, name, (), tuple(blocks), span)


def _write_block(path: str, fields: Mapping[str, str]) -> Block:
    nowhere = Span("", 0)
    made = tuple(Field(k, v, nowhere, nowhere) for k, v in fields.items())
    return Block(path.rpartition("/")[2], path, made, (), nowhere)
