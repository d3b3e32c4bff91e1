"""`[Solvers]` blocks -> the rules of Newton; linear solvers are checked, and none is chosen.

Every linear system is eliminated exactly by compiled code, whatever block names its solver.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ingot.errors import IngotError, Problem, did_you_mean, raise_if
from ingot.hit import Block, Field, unknown_blocks, unknown_fields
from ingot.model import Factory
from ingot.program.program import Newton

__all__ = ["linear_problems", "newton_of"]

_NEWTON: dict[str, tuple[str, ...]] = {
    "Newton": ("abs_tol", "rel_tol", "max_its", "stop", "linear_solver", "substep_del_tol"),
}
_NEWTON["NewtonWithLineSearch"] = (
    *_NEWTON["Newton"], "linesearch_type", "max_linesearch_iterations", "linesearch_cutback",
    "linesearch_stopping_criteria", "check_negative_criterion",
)  # fmt: skip

_GROUPS = ("residual_primary_group", "unknown_primary_group")
_INNER = ("primary_solver", "schur_solver")
_KRYLOV = ("max_its", "abs_tol", "rel_tol", "preconditioner", "cache_strategy", "cache_max_its")
_LINEAR: dict[str, tuple[str, ...]] = {
    "DenseLU": (),
    "SchurComplement": (*_GROUPS, *_INNER),
    "GMRES": ("restart", *_KRYLOV),
    "BiCGStab": _KRYLOV,
}
_PRECONDITIONERS: dict[str, tuple[str, ...]] = {
    "NoPreconditioner": (),
    "JacobiPreconditioner": (),
    "BlockJacobiPreconditioner": (),
    "FullPreconditioner": (),
}


def newton_of(factory: Factory, asked: Field, groups: int | None = None) -> Newton:
    """The rules of a `[Solvers]` block for unknowns in so many groups, where that is known."""
    block = factory.tree.require("Solvers", asked.string(), asked.span)
    raise_if(_unlike(block.require("type"), _NEWTON, "nonlinear solver"))
    kind = block.require("type").string()
    problems = list(_unknown(block, _NEWTON[kind]))
    linear = block.field("linear_solver")
    if linear is not None:
        problems += linear_problems(factory, linear, groups)
    raise_if(problems)
    chosen: dict[str, Any] = {}
    for name in ("abs_tol", "rel_tol", "linesearch_cutback", "linesearch_stopping_criteria"):
        field = block.field(name)
        if field is not None:
            chosen[name] = field.number()
    for name in ("max_its", "max_linesearch_iterations"):
        field = block.field(name)
        if field is not None:
            chosen[name] = field.integer()
    for name, choices in (
        ("stop", ("point", "batch")),
        ("linesearch_type", ("BACKTRACKING", "STRONG_WOLFE")),
    ):
        field = block.field(name)
        if field is not None:
            raise_if(_no_choice(field, choices))
            chosen["linesearch" if name == "linesearch_type" else name] = field.string()
    if kind == "NewtonWithLineSearch":
        chosen.setdefault("linesearch", "BACKTRACKING")
    return Newton(**chosen)


def linear_problems(factory: Factory, asked: Field, groups: int | None) -> list[Problem]:
    """What is wrong with the block of a linear solver, for unknowns in so many groups."""
    return _problems(factory, asked, _LINEAR, "linear solver", groups)


def _problems(
    factory: Factory, asked: Field, known: Mapping[str, tuple[str, ...]], what: str,
    groups: int | None = None,
) -> list[Problem]:  # fmt: skip
    """What is wrong with a block that should be one of the known types."""
    found: list[Problem] = []
    with _noted(found):
        block = factory.tree.require("Solvers", asked.string(), asked.span)
        kind = block.require("type")
        raise_if(_unlike(kind, known, what))
        found += _unknown(block, known[kind.string()])
        if kind.string() == "SchurComplement":
            found += _schur_problems(block, groups)
        for field in block.fields:
            with _noted(found):
                if field.name in known[kind.string()]:
                    _check(factory, field)
    return found


def _check(factory: Factory, field: Field) -> None:
    """Read the value of an option of a linear solver."""
    if field.name in _GROUPS and field.integer() not in (0, 1):
        raise field.wrong("the number of a group, 0 or 1", fix="write 0 or 1")
    if field.name in _INNER:
        raise_if(linear_problems(factory, field, 1))
    if field.name in ("restart", "max_its", "cache_max_its") and field.integer() < 1:
        raise field.wrong("at least 1")
    if field.name in ("abs_tol", "rel_tol") and not field.number() >= 0.0:
        raise field.wrong("a number that is not negative")
    if field.name == "cache_strategy":
        raise_if(_no_choice(field, ("none", "chord", "max_its")))
    if field.name == "preconditioner":
        raise_if(_problems(factory, field, _PRECONDITIONERS, "preconditioner"))


def _schur_problems(block: Block, groups: int | None) -> Iterator[Problem]:
    if groups not in (None, 2):
        raise IngotError([Problem(
            "wrong-value", f"SchurComplement solves 2 groups of unknowns, not {groups}",
            block.require("type").span, "part the unknowns by one ';', or use DenseLU",
        )])  # fmt: skip
    for name in _INNER:
        if block.field(name) is None:
            message = f"SchurComplement needs the option '{name}'"
            yield Problem("missing-option", message, block.span, f"add '{name} = ...'")


@contextmanager
def _noted(problems: list[Problem]) -> Iterator[None]:
    """Put the problems that are raised into the list."""
    try:
        yield
    except IngotError as error:
        problems += error.problems


def _unlike(kind: Field, known: Iterable[str], what: str) -> Iterator[Problem]:
    if kind.string() not in known:
        fix = did_you_mean(kind.string(), known) or f"one of: {', '.join(known)}"
        yield Problem("unknown-type", f"no {what} '{kind.string()}'", kind.span, fix)


def _unknown(block: Block, known: tuple[str, ...]) -> Iterator[Problem]:
    yield from unknown_fields(block, ("type", *known))
    yield from unknown_blocks(block)


def _no_choice(field: Field, choices: tuple[str, ...]) -> Iterator[Problem]:
    if field.string() not in choices:
        message = f"'{field.name}' is one of {', '.join(choices)}, not '{field.string()}'"
        yield Problem("wrong-value", message, field.span, did_you_mean(field.string(), choices))
