"""[Outputs]: tables of numbers as CSV files, written as the reference writes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ingot.fields.blocks.options import Reader
from ingot.hit import Block

__all__ = ["Event", "Outputs", "Target", "read_outputs", "write_table"]

Event = Literal["INITIAL", "TIMESTEP_END", "FINAL", "NONE"]
BOTH: tuple[Event, ...] = ("INITIAL", "TIMESTEP_END")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """What is written.

    csv: whether numbers go to CSV files
    exodus: whether fields mapped to variables go to an Exodus file
    perf_graph: accepted, without effect
    console: accepted, without effect
    file_base: the name of the files without their endings
    execute_on: when to write
    """

    csv: bool = False
    exodus: bool = False
    perf_graph: bool = False
    console: bool = True
    file_base: str = ""
    execute_on: tuple[Event, ...] = BOTH


@dataclass(frozen=True, slots=True, kw_only=True)
class OneOutput:
    """One output by itself.

    file_base: the name of the files without their endings
    execute_on: when to write
    execute_vector_postprocessors_on: when to write tables of vectors
    """

    file_base: str = ""
    execute_on: tuple[Event, ...] | None = None
    execute_vector_postprocessors_on: tuple[Event, ...] | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """A file to write to: its kind, its name without ending, when."""

    kind: Literal["CSV", "Exodus"]
    base: str
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Outputs:
    """All files that numbers and mapped variables go to."""

    targets: tuple[Target, ...] = ()
    file_base: str = ""
    events: tuple[Event, ...] = field(default=BOTH)


def read_outputs(block: Block | None, stem: str, reader: Reader) -> Outputs:
    """The outputs of an [Outputs] block; other kinds than CSV and Exodus write nothing."""
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
    targets = [Target(kind, base, common.execute_on) for kind, asked in wanted if asked]
    silent = dict.fromkeys(("Console", "PerfGraphOutput", "Checkpoint"))
    for each in block.blocks:
        kind = reader.type_of(each, {"CSV": "CSV", "Exodus": "Exodus", **silent})
        one = reader.made(each, OneOutput) if kind is not None else None
        if one is not None and (kind == "CSV" or kind == "Exodus"):
            own = one.file_base or common.file_base or f"{stem}_{each.name}"
            targets.append(Target(kind, own, one.execute_on or common.execute_on))
    return Outputs(tuple(targets), common.file_base, common.execute_on)


def write_table(
    path: Path, columns: Sequence[str], rows: Iterable[Sequence[float]], *, append: bool = False
) -> None:
    """A table with 14 digits a number, or more rows of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [] if append else [",".join(columns)]
    lines += [",".join(f"{value:.14g}" for value in row) for row in rows]
    with path.open("a" if append else "w") as file:
        file.write("\n".join(lines) + "\n")
