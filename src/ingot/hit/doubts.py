"""unused: overrides that change nothing, for their variable or block is one that nothing reads.

In: a resolved draft, and what stood in it before the overrides. Out: problems, to be warned of.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from ingot.errors import Problem, did_you_mean, nearest
from ingot.hit.resolve import Resolved
from ingot.hit.source import Draft, Written, list_fields

__all__ = ["find_unused", "list_paths"]

NAMED = ("Tensors", "Data", "Models", "EquationSystems", "Solvers", "Drivers")
"""Sections of blocks that are read only where a value names them, or the user does."""

LISTS = (
    *NAMED, "TensorBuffers", "TensorComputes", "TensorOutputs", "Functions", "Postprocessors",
    "VectorPostprocessors", "UserObjects", "AuxVariables", "AuxKernels",
)  # fmt: skip
"""Sections that hold blocks; a field of their own is a variable for ${...}, as at the top."""

GROUPS = ("Initialize", "Solve", "Postprocess")
"""The lists that [TensorComputes] holds."""

CHOICES = ("active", "inactive")
"""What MOOSE reads in any list: which of its blocks count."""

WORD = re.compile(r"[^\s;,()]+|\w+")


def list_paths(draft: Draft) -> Iterator[str]:
    """The paths of the fields of a draft and, with a / at the end, of its blocks."""
    yield from ("/".join((*draft.path, name)) for name in draft.fields)
    for block in draft.blocks:
        yield "/".join((*block.path, ""))
        yield from list_paths(block)


def find_unused(
    root: Draft, there: Collection[str], given: Iterable[Written], resolved: Resolved
) -> Iterator[Problem]:
    """A problem for each field, or new block, of the overrides `given` that nothing reads."""
    told: set[str] = set()
    for written in given:
        section, *inner = written.block or ("",)
        block = "/".join((*written.block[:2], ""))
        if written.path in there or written.path in resolved.referred:
            continue
        if resolved.moose and written.name in CHOICES:
            continue
        if not section or (section in LISTS and (not inner or (*inner,) in find_groups(section))):
            yield describe_unused_variable(written, there)
        elif section in NAMED and block not in there and block not in told:
            told.add(block)
            if not is_read(root, written.block[:2], resolved):
                yield describe_unused_block(written, there)


def find_groups(section: str) -> list[tuple[str, ...]]:
    """The lists inside a section."""
    return [(name,) for name in GROUPS] if section == "TensorComputes" else []


def describe_unused_variable(written: Written, there: Collection[str]) -> Problem:
    """What to tell of a variable that no ${...} refers to."""
    message = f"this override changes nothing: no ${{{written.path}}} refers to it"
    if f"{written.path}/" in there:
        fix = f"'{written.path}' is a block: write {written.path}/option:=..."
    else:
        fix = find_meant(written.path, there) or "mend the name, or leave it out"
    return Problem("unused-override", message, written.span, fix)


def describe_unused_block(written: Written, there: Collection[str]) -> Problem:
    """What to tell of a block that the file does not have and no value names."""
    block = "/".join(written.block[:2])
    message = (
        f"this override changes nothing: the file has no block '{block}', and nothing names it"
    )
    fix = find_meant(block, there) or "mend the name, or leave it out"
    return Problem("unused-override", message, written.span, fix)


def find_meant(path: str, there: Collection[str]) -> str | None:
    """The near name among those of the same depth; of a section that is new, the near section."""
    *around, name = path.split("/")
    paths = [each.strip("/").split("/") for each in there]
    if around and f"{around[0]}/" not in there:
        return did_you_mean(around[0], [first for first, *inner in paths if not inner])
    siblings = [each for each in paths if each[:-1] == around]
    found = nearest(name, [each[-1] for each in siblings])
    return None if found is None else f"did you mean '{'/'.join((*around, found))}'?"


def is_read(root: Draft, path: tuple[str, ...], resolved: Resolved) -> bool:
    """Whether a ${...} or a value outside a new block names it, or the user may by its type."""
    prefix = "/".join(path) + "/"
    if any(each.startswith(prefix) for each in resolved.referred):
        return True
    if path[0] in ("Models", "Drivers") and any("type" in b.fields for b in root.at(path)):
        return True
    outside = (each for each in list_fields(root) if not each.path.startswith(prefix))
    return any(path[-1] in WORD.findall(resolved.text(each)) for each in outside)
