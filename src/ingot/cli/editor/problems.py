"""What is wrong with a text, as commands would tell it, without running or compiling anything."""

import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ingot.errors import IngotError, IngotWarning, Problem, did_you_mean, warn_of

if TYPE_CHECKING:
    from ingot.hit import Tree

__all__ = ["Finding", "find_problems"]

Severity = Literal["error", "warning", "information"]
NOT_EVALUATED = ("untrusted-code",)
"""What is no mistake: Python that is not evaluated here, but would be where the file is run."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem and how bad it is."""

    problem: Problem
    severity: Severity


def find_problems(text: str, file: Path) -> list[Finding]:
    """All that is wrong with the text of a file; paths in it are relative to the file."""
    errors: list[Problem] = []
    before = Path.cwd()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", IngotWarning)
        try:
            if file.parent.is_dir():
                os.chdir(file.parent)
            for problem in _problems(text, file):
                if problem not in errors:
                    errors.append(problem)
        finally:
            os.chdir(before)
    doubts = [each.message.problem for each in caught if isinstance(each.message, IngotWarning)]
    found = [
        Finding(each, "information" if each.code in NOT_EVALUATED else "error") for each in errors
    ]
    return found + [Finding(each, "warning") for each in dict.fromkeys(doubts)]


def _problems(text: str, file: Path) -> Iterator[Problem]:
    from ingot.hit import read_text, sections_in

    simulation = "Domain" in sections_in(text)
    try:
        tree = replace(read_text(text, file.name, moose=simulation), file=file)
    except IngotError as error:
        yield from error.problems
        return
    if simulation:
        yield from _find_in_simulation(tree)
    else:
        yield from _find_in_materials(tree)


def _find_in_materials(tree: "Tree") -> Iterator[Problem]:
    """Problems of models and drivers, which are built but neither traced nor run."""
    from ingot.drivers import TransientDriver, build_driver
    from ingot.hit import unknown_sections
    from ingot.model import SECTIONS, Factory

    yield from unknown_sections(tree, SECTIONS)
    if any(part.name not in SECTIONS for part in tree.blocks):
        return
    factory = Factory(tree, untrusted=True)
    for name in tree.names("Models"):
        try:
            factory.model(name)
        except IngotError as error:
            yield from error.problems
    for name in tree.names("Drivers"):
        try:
            driver = build_driver(factory, name)
            if isinstance(driver, TransientDriver):
                warn_of(driver.doubts)
        except IngotError as error:
            yield from error.problems


def _find_in_simulation(tree: "Tree") -> Iterator[Problem]:
    """Types and options of a simulation that are not known, and options that are missing."""
    from ingot.cli.editor.types_of_blocks import known_types, sections, types_of
    from ingot.fields.blocks.measure import ALSO
    from ingot.hit import activate, unknown_fields, unknown_sections

    try:
        tree = activate(tree)
    except IngotError as error:
        yield from error.problems
        return
    known_sections = {*sections(), "GlobalParams", "Mesh"}
    yield from unknown_sections(tree, known_sections)
    waiting = [(part, (part.name,)) for part in tree.blocks if part.name in known_types()]
    shared = {field.name for part in tree.section("GlobalParams") for field in part.fields}
    while waiting:
        block, path = waiting.pop()
        waiting += [(inner, (*path, inner.name)) for inner in block.blocks]
        kind, known = block.field("type"), types_of(path)
        if kind is None:
            continue
        if kind.string() not in known:
            fix = did_you_mean(kind.string(), known) or "`ingot syntax` lists all types"
            message = f"no type '{kind.string()}' in [{path[0]}]"
            yield Problem("unknown-type", message, kind.value_span, fix)
            continue
        options = known[kind.string()].options
        yield from unknown_fields(block, (*ALSO, *options))
        given = {field.name for field in block.fields} | shared
        for option in options.values():
            if option.required and option.name not in given:
                message = f"{kind.string()} needs the option '{option.name}'"
                fix = f"add '{option.name} = ...'"
                yield Problem("missing-option", message, block.span, fix)
