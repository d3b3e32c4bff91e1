"""Spec: one test of a MOOSE `tests` file.

In: the path of a `tests` file. Out: its specs; one that is wrong carries its problems.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ingot.errors import IngotError, Problem, Span, did_you_mean, raise_if
from ingot.fields.compare.csvdiff import compare_csv
from ingot.fields.compare.difference import Compared, Limits
from ingot.fields.compare.exodiff import compare_exodus
from ingot.fields.compare.hdf5diff import compare_hdf5
from ingot.fields.compare.xmldiff import compare_xml
from ingot.hit import Block, activate, read, unknown_blocks, unknown_fields

__all__ = ["DIFFS", "TYPES", "Spec", "read_specs"]

# What compares each kind of file, and the option that lists the files.
DIFFS: Mapping[str, tuple[str, Callable[[Path, Path, Limits], Compared]]] = {
    "CSVDiff": ("csvdiff", compare_csv),
    "HDF5Diff": ("hdf5diff", compare_hdf5),
    "XMLDiff": ("xmldiff", compare_xml),
    "Exodiff": ("exodiff", compare_exodus),
}
TYPES = (*DIFFS, "RunApp", "RunException")
ACTING = {
    "type", "input", "cli_args", "skip", "deleted", "prereq", "should_execute", "gold_dir",
    "expect_out", "absent_out", "match_literal", "min_parallel",
}  # fmt: skip
OF_TYPE = {
    "CSVDiff": {"csvdiff", "rel_err", "abs_zero", "override_columns", "override_rel_err",
                "override_abs_zero"},
    "HDF5Diff": {"hdf5diff", "abs_tol"},
    "XMLDiff": {"xmldiff", "rel_err", "abs_zero"},
    "Exodiff": {"exodiff", "rel_err", "abs_zero"},
    "RunApp": {"should_crash"},
    "RunException": {"expect_err"},
}  # fmt: skip
# For readers, and for the machine and build that MOOSE needs: nothing a run here depends on.
TOLD = {
    "ad_indexing_type", "allow_deprecated", "allow_deprecated_until", "allow_unused",
    "allow_warnings", "asio", "boost", "capabilities", "classification", "collections",
    "compiler", "compute_devices", "delete_output_before_running", "design", "detail",
    "display_required", "documentation", "dof_id_bytes", "dtk", "executable_pattern",
    "fparser_jit", "hdf5", "heavy", "installation_type", "issues", "library_mode", "libtorch",
    "machine", "max_buffer_size", "max_parallel", "max_threads", "max_time", "mesh_mode",
    "method", "min_ad_size", "min_threads", "mumps", "neml2", "parmesh", "petsc_debug",
    "petsc_version", "petsc_version_release", "platform", "recover", "required_applications",
    "required_objects", "required_python_packages", "required_submodule", "requirement",
    "restep", "slepc", "slot", "superlu", "tecplot", "threading", "timing", "unique_id",
    "unique_ids", "valgrind", "validation", "verification", "vtk", "xdr",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Spec:
    """What to run, what to compare with what, and what must be so for the test to pass."""

    name: str
    type: str
    file: Path
    span: Span
    input: Path | None = None
    overrides: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    columns: Mapping[str, Limits] = field(default_factory=dict)
    gold: str = "gold"
    error: str | None = None
    fails: bool = False
    says: str | None = None
    says_not: str | None = None
    literal: bool = False
    skip: str | None = None
    after: tuple[str, ...] = ()
    executes: bool = True
    ranks: int | None = None
    problems: tuple[Problem, ...] = ()


def read_specs(path: Path) -> tuple[Spec, ...]:
    """The specs of a file in order; `group/name` is the name of one in a group."""
    tree = activate(read(path, moose=True))
    sections = tree.section("Tests")
    if not sections:
        message = f"'{path}' has no block [Tests]"
        fix = "write the specs into [Tests] ... []"
        raise IngotError([Problem("nothing-checked", message, fix=fix)])
    raise_if(problem for part in sections for problem in unknown_fields(part, TOLD))
    specs = [spec for part in sections for spec in specs_of(part, path, "")]
    names = [spec.name for spec in specs]
    return tuple(checked(spec, names) for spec in specs)


def specs_of(group: Block, path: Path, above: str) -> Iterator[Spec]:
    """The specs of a group and of the groups in it."""
    for block in group.blocks:
        name = f"{above}{block.name}"
        if block.field("type") is None and block.blocks:
            raise_if(unknown_fields(block, TOLD))
            yield from specs_of(block, path, f"{name}/")
        else:
            yield spec_of(block, path, name)


def spec_of(block: Block, path: Path, name: str) -> Spec:
    """One block as a spec; what is wrong with it is kept with it."""
    try:
        kind = block.require("type")
        if kind.string() not in TYPES:
            fix = did_you_mean(kind.string(), TYPES) or f"use one of: {', '.join(TYPES)}"
            message = f"there is no test type '{kind.string()}'"
            raise IngotError([Problem("unknown-type", message, kind.value_span, fix)])
        known = ACTING | TOLD | OF_TYPE[kind.string()]
        raise_if([*unknown_fields(block, known), *unknown_blocks(block)])
        return filled(block, path, name, kind.string())
    except IngotError as error:
        return Spec(name, block.type or "", path, block.span, problems=error.problems)


def filled(block: Block, path: Path, name: str, kind: str) -> Spec:
    """A spec whose options are all known."""
    files = block.require(DIFFS[kind][0]) if kind in DIFFS else None
    if files is not None and not files.words():
        raise files.wrong("the names of files to compare", fix="name a file of gold/")
    executes = flag(block, "should_execute", default=True)
    error = block.require("expect_err").string() if kind == "RunException" else None
    return Spec(
        name=name,
        type=kind,
        file=path,
        span=block.span,
        input=path.parent / block.require("input").string() if executes else None,
        overrides=arguments(block),
        outputs=() if files is None else files.words(),
        limits=limits_of(block, kind),
        columns=columns_of(block, kind),
        gold=text(block, "gold_dir") or "gold",
        error=error,
        fails=kind == "RunException" or flag(block, "should_crash", default=False),
        says=text(block, "expect_out"),
        says_not=text(block, "absent_out"),
        literal=flag(block, "match_literal", default=False),
        skip=skipped(block),
        after=words(block, "prereq"),
        executes=executes,
        ranks=count(block, "min_parallel"),
    )


def checked(spec: Spec, names: list[str]) -> Spec:
    """A spec whose prerequisites are named in full, or are a problem."""
    group = spec.name.rpartition("/")[0]
    after: list[str] = []
    problems: list[Problem] = []
    for word in spec.after:
        near = f"{group}/{word}" if group else word
        found = next((each for each in (near, word) if each in names and each != spec.name), None)
        if word == "ALL":
            after += [name for name in names if name != spec.name]
        elif found is None:
            message = f"'{spec.name}' waits for '{word}', which is no test of this file"
            fix = did_you_mean(word, names) or "remove it from 'prereq'"
            problems.append(Problem("missing-block", message, spec.span, fix))
        else:
            after.append(found)
    if not spec.executes and len(after) != 1 and not spec.problems and not problems:
        message = f"'{spec.name}' runs nothing, and does not say whose results it compares"
        fix = "name one test in 'prereq'"
        problems.append(Problem("missing-option", message, spec.span, fix))
    return replace(spec, after=tuple(after), problems=(*spec.problems, *problems))


def limits_of(block: Block, kind: str) -> Limits:
    """How far numbers may be apart: as MOOSE's testers have it unless the spec says otherwise."""
    if kind == "HDF5Diff":
        return Limits(0.0, 0.0, number(block, "abs_tol", 1e-15))
    default = Limits()
    relative = number(block, "rel_err", default.relative)
    return Limits(relative, number(block, "abs_zero", default.zero))


def columns_of(block: Block, kind: str) -> dict[str, Limits]:
    """The columns of a table that have limits of their own."""
    names = words(block, "override_columns") if kind == "CSVDiff" else ()
    if not names:
        return {}
    lists: list[tuple[float, ...]] = []
    for option in ("override_rel_err", "override_abs_zero"):
        values = block.require(option)
        if len(values.words()) != len(names):
            raise values.wrong(f"{len(names)} numbers, one for each of 'override_columns'")
        lists.append(values.numbers())
    return {name: Limits(*pair) for name, *pair in zip(names, *lists, strict=True)}


def arguments(block: Block) -> tuple[str, ...]:
    """The overrides of `cli_args`; flags of MOOSE's command line are refused by name."""
    given = block.field("cli_args")
    if given is None:
        return ()
    try:
        found = shlex.split(given.string())
    except ValueError as error:
        fix = "close every quote in it"
        raise given.wrong("words with their quotes closed", fix=fix) from error
    for word in found:
        if word.startswith("-") or "=" not in word:
            fix = "keep only overrides such as Domain/nx=9"
            raise given.wrong("a list of overrides", word, fix)
    return tuple(found)


def skipped(block: Block) -> str | None:
    """Why a spec is not to be run, if so."""
    reason = text(block, "skip") or text(block, "deleted")
    return None if reason in (None, "false") else reason


def text(block: Block, name: str) -> str | None:
    """An option as text."""
    found = block.field(name)
    return None if found is None else found.string()


def words(block: Block, name: str) -> tuple[str, ...]:
    """An option as words."""
    found = block.field(name)
    return () if found is None else found.words()


def flag(block: Block, name: str, *, default: bool) -> bool:
    """An option as true or false."""
    found = block.field(name)
    return default if found is None else found.flag()


def number(block: Block, name: str, default: float) -> float:
    """An option as a number."""
    found = block.field(name)
    return default if found is None else found.number()


def count(block: Block, name: str) -> int | None:
    """An option as a whole number."""
    found = block.field(name)
    return None if found is None else found.count()
