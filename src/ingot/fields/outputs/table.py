"""[Outputs]: tables of numbers as CSV files, written as the reference writes them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ingot.errors import Problem
from ingot.fields.blocks.options import Reader
from ingot.hit import Block
from ingot.options import Count

__all__ = [
    "Event",
    "Outputs",
    "TableTarget",
    "read_outputs",
    "write_table",
]

Event = Literal["INITIAL", "TIMESTEP_END", "FINAL", "NONE"]
BOTH: tuple[Event, ...] = ("INITIAL", "TIMESTEP_END")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """What is written.

    csv: whether numbers go to CSV files
    exodus: whether fields mapped to variables go to an Exodus file
    checkpoint: whether the run is stored after every step, for `ingot run --restart`
    perf_graph: accepted: there is no such graph
    console: accepted: the command line tells of progress either way
    file_base: the name of the files without their endings
    execute_on: when to write
    time_step_interval: of how many steps one is written
    """

    csv: bool = False
    exodus: bool = False
    checkpoint: bool = False
    perf_graph: bool = False
    console: bool = True
    file_base: str = ""
    execute_on: tuple[Event, ...] = BOTH
    time_step_interval: Count = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OneOutput:
    """One output by itself.

    file_base: the name of the files without their endings
    execute_on: when to write
    time_step_interval: of how many steps one is written
    execute_vector_postprocessors_on: when to write tables of vectors, as the others unless given
    """

    file_base: str = ""
    execute_on: tuple[Event, ...] | None = None
    time_step_interval: Count | None = None
    execute_vector_postprocessors_on: tuple[Event, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Stores the run on its way, for `ingot run --restart`.

    file_base: the name of the folder without its ending .checkpoint
    time_step_interval: after how many steps to store, and at the end
    num_files: accepted: each checkpoint replaces the last
    execute_on: accepted, without effect: a run is stored after its steps
    """

    file_base: str = ""
    time_step_interval: Count = 1
    num_files: Count = 1
    execute_on: tuple[Event, ...] = ("TIMESTEP_END",)


@dataclass(frozen=True, slots=True)
class TableTarget:
    """A file to write to: its kind, its name without ending, when, at one of how many steps."""

    kind: Literal["CSV", "Exodus"]
    base: str
    events: tuple[Event, ...]
    interval: int = 1
    vectors: tuple[Event, ...] | None = None
    """When tables of vectors are written, if not with the others."""


@dataclass(frozen=True, slots=True)
class Outputs:
    """All files that numbers and mapped variables go to; after how many steps to store, where."""

    targets: tuple[TableTarget, ...] = ()
    stored: tuple[tuple[int, str], ...] = ()
    options: OutputOptions = field(default_factory=OutputOptions)


def read_outputs(block: Block | None, stem: str, reader: Reader) -> Outputs:
    """The outputs of an [Outputs] block; consoles and performance graphs write nothing."""
    if block is None:
        return Outputs()
    common = reader.made(block, OutputOptions, (), None)
    if common is None:
        return Outputs()
    base = common.file_base or f"{stem}_out"
    wanted: list[tuple[Literal["CSV", "Exodus"], bool]] = [
        ("CSV", common.csv),
        ("Exodus", common.exodus),
    ]
    steps = common.time_step_interval
    targets = [TableTarget(kind, base, common.execute_on, steps) for kind, asked in wanted if asked]
    stored = {common.file_base or stem: steps} if common.checkpoint else {}
    kinds = {"CSV": OneOutput, "Exodus": OneOutput, "Checkpoint": Checkpoint,
             "Console": OneOutput, "PerfGraphOutput": OneOutput}  # fmt: skip
    for each in block.blocks:
        kind = reader.type_of(each, kinds)
        one = None if kind is None else reader.made(each, kind)
        if isinstance(one, OneOutput) and (each.type == "CSV" or each.type == "Exodus"):
            own = one.file_base or common.file_base or f"{stem}_{each.name}"
            often = steps if one.time_step_interval is None else one.time_step_interval
            vectors = one.execute_vector_postprocessors_on
            events = one.execute_on or common.execute_on
            targets.append(TableTarget(each.type, own, events, often, vectors))
        if isinstance(one, Checkpoint):
            own = one.file_base or common.file_base or stem
            if own in stored:
                message = "two checkpoints are stored in one folder"
                fix = "give one of them a file_base"
                reader.problems.append(Problem("duplicate-block", message, each.span, fix))
            stored[own] = one.time_step_interval
    pairs = tuple((steps, f"{own}.checkpoint") for own, steps in stored.items())
    return Outputs(tuple(targets), pairs, common)


def write_table(
    path: Path, columns: Sequence[str], rows: Iterable[Sequence[float]], *, append: bool = False
) -> None:
    """A table with 14 digits a number, or more rows of one."""
    if not append:
        path.parent.mkdir(parents=True, exist_ok=True)
    lines = [] if append else [",".join(columns)]
    lines += [",".join(f"{value:.14g}" for value in row) for row in rows]
    # a table that was removed on the way is not begun again without its first line
    with path.open("r+" if append else "w") as file:
        file.seek(0, os.SEEK_END)
        file.write("\n".join(lines) + "\n")
