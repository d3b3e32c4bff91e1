"""`[Solvers]` blocks -> the rules of Newton; linear solvers are checked, and none is chosen.

Every linear system is eliminated exactly by compiled code, whatever block names its solver.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, Literal

from ingot.errors import IngotError, Problem, did_you_mean, raise_if
from ingot.hit import Block, Field, unknown_blocks, unknown_fields
from ingot.messages import tell
from ingot.model import Factory
from ingot.options import Count, Meta, Newton, NotNegative, knobs_of

__all__ = [
    "REMARKS",
    "SOLVERS",
    "SYSTEMS",
    "find_linear_problems",
    "find_unknown_type",
    "read_newton",
]

_SEARCH = tuple(k for k in knobs_of(Newton) if "linesearch" in k.name)
_NEWTON: dict[str, dict[str, Any]] = {
    "Newton": {
        **{k.option: k.kind for k in knobs_of(Newton) if k not in _SEARCH},
        "linear_solver": Annotated[str, Meta(description="a linear solver, without effect")],
    }
}
_NEWTON["NewtonWithLineSearch"] = {
    **_NEWTON["Newton"],
    **{k.option: k.kind for k in _SEARCH},
    "linesearch_type": Literal["BACKTRACKING", "STRONG_WOLFE"],
    "check_negative_criterion": Annotated[
        Literal["true", "false", "0", "1"], Meta(description="without effect")
    ],
}
"""Options of nonlinear solvers; the last of each are read and checked, and have no effect."""

_INNER = ("primary_solver", "schur_solver")
_GROUP = Annotated[int, Meta(ge=0, le=1)]
_KRYLOV: dict[str, Any] = {
    "max_its": Count, "abs_tol": NotNegative, "rel_tol": NotNegative, "preconditioner": str,
    "cache_strategy": Literal["none", "chord", "max_its"], "cache_max_its": Count,
}  # fmt: skip
_LINEAR: dict[str, dict[str, Any]] = {
    "DenseLU": {},
    "SchurComplement": {
        "residual_primary_group": _GROUP, "unknown_primary_group": _GROUP,
        **dict.fromkeys(_INNER, str),
    },
    "GMRES": {"restart": Count, **_KRYLOV},
    "BiCGStab": _KRYLOV,
}  # fmt: skip
_PRECONDITIONERS: dict[str, dict[str, Any]] = {
    "NoPreconditioner": {},
    "JacobiPreconditioner": {},
    "BlockJacobiPreconditioner": {},
    "FullPreconditioner": {},
}
SOLVERS = {**_NEWTON, **_LINEAR, **_PRECONDITIONERS}
"""The types of `[Solvers]`, each with the kinds of its options."""

REMARKS = {
    **dict.fromkeys(_NEWTON, "Newton's method: when it stops, and how far it steps."),
    **dict.fromkeys(
        (*_LINEAR, *_PRECONDITIONERS),
        "Read and checked, without effect: every linear system is eliminated exactly.",
    ),
}
"""What each of them is."""

SYSTEMS = {
    "NonlinearSystem": {
        "model": "gives the residuals",
        "unknowns": "variables to solve for; a ';' parts them into groups",
        "residuals": "what must vanish, by the unknowns' order: u_residual for u unless given",
        "structure": "how groups are stored, read and without effect",
    }
}
"""The types of `[EquationSystems]`, each with its options and what they say."""


def read_newton(factory: Factory, asked: Field, groups: int | None = None) -> Newton:
    """The rules of a `[Solvers]` block for unknowns in so many groups, where that is known."""
    block = factory.block_of(asked, "Solvers", (Newton,))
    if isinstance(block, Newton):
        return block
    raise_if(find_unknown_type(block.require("type"), _NEWTON, "nonlinear solver"))
    kind = block.require("type").string()
    problems = list(_find_unknown(block, _NEWTON[kind]))
    linear = block.field("linear_solver")
    if linear is not None:
        problems += find_linear_problems(factory, linear, groups)
    chosen: dict[str, Any] = {}
    for option, hint in _NEWTON[kind].items():
        field = block.field(option)
        if field is not None:
            with _collect(problems):
                chosen[option] = field.option(hint)
    raise_if(problems)
    if kind == "NewtonWithLineSearch":
        chosen.setdefault("linesearch_type", "BACKTRACKING")
    chosen.setdefault("stop", factory.stop)
    return Newton(**{k.name: chosen[k.option] for k in knobs_of(Newton) if k.option in chosen})


def find_linear_problems(factory: Factory, asked: Field, groups: int | None) -> list[Problem]:
    """What is wrong with the block of a linear solver, for unknowns in so many groups."""
    return _find_problems(factory, asked, _LINEAR, "linear solver", groups)


def _find_problems(
    factory: Factory, asked: Field, known: Mapping[str, Mapping[str, Any]], what: str,
    groups: int | None = None,
) -> list[Problem]:  # fmt: skip
    """What is wrong with a block that should be one of the known types."""
    found: list[Problem] = []
    with _collect(found):
        block = factory.block_of(asked, "Solvers")
        kind = block.require("type")
        raise_if(find_unknown_type(kind, known, what))
        found += _find_unknown(block, known[kind.string()])
        if kind.string() == "SchurComplement":
            found += _find_schur_problems(block, groups)
        for field in block.fields:
            with _collect(found):
                if field.name in known[kind.string()]:
                    _check(factory, field, known[kind.string()][field.name])
    return found


def _check(factory: Factory, field: Field, kind: Any) -> None:
    """Read the value of an option of a linear solver."""
    field.option(kind)
    if field.name in _INNER:
        raise_if(find_linear_problems(factory, field, 1))
    if field.name == "preconditioner":
        raise_if(_find_problems(factory, field, _PRECONDITIONERS, "preconditioner"))


def _find_schur_problems(block: Block, groups: int | None) -> Iterator[Problem]:
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
def _collect(problems: list[Problem]) -> Iterator[None]:
    """Put the problems that are raised into the list."""
    try:
        yield
    except IngotError as error:
        problems += error.problems


def find_unknown_type(kind: Field, known: Iterable[str], what: str) -> Iterator[Problem]:
    """A problem where a block's type is none of the known ones."""
    if kind.string() not in known:
        fix = did_you_mean(kind.string(), known) or f"one of: {', '.join(known)}"
        yield tell("unknown type", kind.span, what=what, name=kind.string(), fix=fix)


def _find_unknown(block: Block, known: Iterable[str]) -> Iterator[Problem]:
    yield from unknown_fields(block, ("type", *known))
    yield from unknown_blocks(block)
