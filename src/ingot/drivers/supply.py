"""A driver, its model and result -> what may not be meant: inputs that stay zero, histories lost.

Peers take all of these silently, and files rely on it; so they are warned of, not refused.
"""

import math
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ingot.drivers.result import Result
from ingot.drivers.values import Given
from ingot.errors import Problem, Span, nearest
from ingot.execute import Criterion, Status
from ingot.execute.status import find_no_length
from ingot.hit import Tree
from ingot.hit.tree import word_span
from ingot.model import Model, lag
from ingot.options import Newton
from ingot.program.combinators import ComposedModel, ImplicitUpdate
from ingot.runtime.stub import AOTIModel
from ingot.types import Scalar

__all__ = [
    "Supply", "crossed", "find_not_finite", "loosely_accepted", "not_finite", "unsupplied",
]  # fmt: skip

DANGLING = 0.6  # a name that nobody reads and one that nobody gives need not be very alike
LOOSE = 1000.0  # times abs_tol: what a residual may be by rel_tol and pass without a word
MIN_NUMBERS_FOR_TORCH = 10_000  # below, NumPy's sum is as fast, and ten times so in cold caches
MISSPELT = 0.85  # of other names only those that differ by a letter or two


@dataclass(frozen=True, slots=True)
class Supply:
    """What a driver gives to a model: the time, values at every step, and initial values."""

    model: Model
    tree: Tree
    clock: str
    forces: dict[str, Given]
    starts: dict[str, Given]


def unsupplied(supply: Supply) -> Iterator[Problem]:
    """A problem for each input that is zero, history that is lost and initial value not read."""
    yield from _zero_inputs(supply)
    yield from _lost_histories(supply)
    yield from _unread_starts(supply)


def crossed(
    batches: Iterable[tuple[int, ...]], batch: tuple[int, ...], span: Span
) -> Iterator[Problem]:
    """A problem where values for as many points meet each with each: (5, 1) and (5,)."""
    shapes = sorted({shape for shape in batches if math.prod(shape) > 1})
    sizes = {math.prod(shape) for shape in shapes}
    if len(sizes) == 1 and math.prod(batch) not in sizes:
        known = " and ".join(map(str, shapes))
        message = f"values of batch shapes {known} are combined each with each, to {batch}"
        yield Problem("batches-crossed", message, span, "give all values one batch shape, or none")


def find_not_finite(given: Iterable[Given], starts: Container[str]) -> Iterator[Problem]:
    """A problem for each value that is prescribed, or that a history starts from, and is NaN."""
    for each in given:
        rows = each.value.data
        if not rows.numel() or math.isfinite(rows.sum().item()):
            continue
        lost = ~rows.isfinite()
        if lost.any():  # and not only the sum
            step = int(lost.reshape(len(lost), -1).any(1).int().argmax()) if lost.ndim else 0
            where = "at the start" if each.name in starts else f"at step {step}"
            message = f"'{each.name}' is given, and not finite {where}"
            yield Problem("not-finite", message, each.value_span, "give finite numbers")


def not_finite(
    result: Result, rules: Mapping[str, tuple[Newton, Iterable[str]]], span: Span
) -> Iterator[Problem]:
    """A problem for each output that is not finite although every solve converged.

    rules: of each solve by name, and its unknowns, which are finite where it did.
    """
    if result.failed:
        return  # that points failed, and are NaN from there on, is told
    solved = {name for _, unknowns in rules.values() for name in unknowns}
    for name, rows in result.outputs.items():
        if name in solved:
            continue
        # NaN and infinity survive a sum, which costs a tenth of looking at every number
        few = rows.is_cpu and rows.numel() < MIN_NUMBERS_FOR_TORCH
        if math.isfinite(rows.numpy().sum() if few else rows.sum().item()):
            continue
        lost = ~rows.isfinite()
        if lost.any():
            step = int(lost.reshape(len(lost), -1).any(1).int().argmax())
            count = f"{int(lost.sum())} of {lost.numel()} numbers"
            message = f"'{name}' is not finite from step {step} on: {count}"
            fix = find_no_length(result.times, step)
            fix = fix or "look for a division by zero, a root or a power of what is negative"
            yield Problem("not-finite", message, span, fix)


def loosely_accepted(
    supply: Supply, rules: Mapping[str, tuple[Newton, Iterable[str]]], statuses: Iterable[Status]
) -> Iterator[Problem]:
    """Solves from a guess of zero where `rel_tol` accepted what is far above `abs_tol`.

    rules: of each solve by name, and its unknowns.
    """
    for status in statuses:
        newton, unknowns = rules[status.solve]
        from_zero = [u for u in unknowns if u in supply.model.inputs and u not in supply.forces]
        # the search through all points and steps comes last: it costs half as much as the others
        worst = status.find_worst_accepted(Criterion.REL_TOL) if from_zero else None
        if worst is None or worst.residual <= LOOSE * newton.abs_tol:
            continue
        message = (
            f"'{status.solve}' starts from zero, and rel_tol = {newton.rel_tol:g} of that first"
            f" residual accepted {worst.residual:.1e}, far above abs_tol = {newton.abs_tol:g}, at"
            f" step {worst.step}, point {worst.point}"
        )
        block = supply.tree.find("Models", status.solve)
        span = supply.model.span if block is None else block.span
        fix = "add 'guess = old' or a predictor to the update, or lower rel_tol"
        yield Problem("loose-convergence", message, span, fix)


def _zero_inputs(supply: Supply) -> Iterator[Problem]:
    """Inputs of this step that nothing prescribes; first guesses of a solve are none."""
    model = supply.model
    for name, kind in model.inputs.items():
        if lag(name)[1] or name in supply.forces or not _uses(model, name):
            continue
        message = f"nothing gives '{name}' of [{model.name}]: it is zero at every step"
        fix = f"list it in 'prescribed_{kind.__name__}_names' of a TransientDriver"
        if kind is Scalar:
            fix += ", or write a number if a parameter is meant"
        if supply.clock not in model.inputs and kind is Scalar:
            fix += f", or write 'time = {name}' if it is the time"
        if not supply.tree.blocks:  # of Python
            fix = f'give {name}=..., or inputs={{"{name}": ...}}'
            if supply.clock not in model.inputs and kind is Scalar:
                fix += f', or time_variable="{name}" if it is the time'
        meant = _meant(name, supply)
        yield Problem("unprescribed-input", message, _place(name, supply), meant or fix)


def _lost_histories(supply: Supply) -> Iterator[Problem]:
    """Old values whose variable the model does not give and the driver does not prescribe."""
    model = supply.model
    inner = set(_given_inside(model))
    for name in model.inputs:
        base, back = lag(name)
        if not back or base in supply.forces or base in model.outputs:
            continue
        if base in model.inputs and _uses(model, base):
            continue  # that the variable is zero is told, and its history follows
        if not _uses(model, name):
            continue  # a predictor alone reads it
        value = "forgotten after the first step" if base in supply.starts else "zero at every step"
        message = f"nothing carries '{base}' of [{model.name}] on: '{name}' is {value}"
        fix = _meant(base, supply) or f"let a model of [{model.name}] give '{base}'"
        if base in inner:
            fix = f"add 'additional_outputs = {base}' to [{model.name}]"
            if isinstance(model.body, AOTIModel):
                fix = f"add 'additional_outputs = {base}' to the model, and compile it again"
        elif base == supply.clock:
            fix = f"let the model read '{base}' too: the time is kept only where it is read"
        yield Problem("lost-history", message, _place(name, supply), fix)


def _unread_starts(supply: Supply) -> Iterator[Problem]:
    """Initial values of variables that have no history in the model."""
    read = {lag(name)[0] for name in supply.model.inputs if lag(name)[1]}
    for name, start in supply.starts.items():
        if name not in read:
            message = (
                f"the initial value of '{name}' is not read:"
                f" [{supply.model.name}] has no input '{name}~1'"
            )
            meant = _named(name, ({*read} - supply.starts.keys(), DANGLING), (read, MISSPELT))
            yield Problem("unread-value", message, start.name_span, meant or "leave it out")


def _uses(model: Model, name: str) -> bool:
    """Whether a value of an input decides results: a first guess of a solve does not."""
    match model.body:
        case AOTIModel(artifact=artifact):
            return all(name not in solver.unknowns for solver in artifact.metadata.solvers)
        case ImplicitUpdate(residual=residual, unknowns=unknowns, predictor=predictor):
            if predictor is not None and lag(name)[1] and name not in residual.inputs:
                return name in model.inputs and name not in predictor.inputs
            return name in model.inputs and name not in unknowns
        case ComposedModel(order=parts):
            for part in parts:
                if _uses(part, name):
                    return True
                if name in part.outputs:
                    return False
            return False
        case _:
            return name in model.inputs


def _given_inside(model: Model) -> Iterator[str]:
    """All that a model or a part of it gives."""
    if isinstance(model.body, AOTIModel):
        yield from (name for s in model.body.artifact.metadata.segments for name in s.gives)
    yield from model.outputs
    for child in model.parts.values():
        yield from _given_inside(child)


def _read_inside(model: Model) -> Iterator[str]:
    """All that a model or a part of it reads."""
    yield from model.inputs
    for child in model.parts.values():
        yield from _read_inside(child)


def _meant(name: str, supply: Supply) -> str | None:
    """The fix where the name is a misspelling: of what nobody reads, or of anything that is."""
    given = {*_given_inside(supply.model), *supply.forces}
    loose = given - set(_read_inside(supply.model))
    tensors, models = supply.tree.names("Tensors"), supply.tree.names("Models")
    return _named(name, ({*loose, *tensors}, DANGLING), ({*given, *models}, MISSPELT))


def _named(name: str, *known: tuple[Iterable[str], float]) -> str | None:
    """The fix that names the first close word, but for words that one is a part of."""
    for words, cutoff in known:
        others = [w for w in words if w != name and w not in name and name not in w]
        meant = nearest(name, others, cutoff)
        if meant is not None:
            return f"did you mean '{meant}'?"
    return None


def _place(name: str, supply: Supply) -> Span | None:
    """The word that names a variable in the block of a model that reads it, else that block."""
    for reader in _readers(supply.model, name):
        block = supply.tree.find("Models", reader.name)
        for field in block.fields if block is not None else ():
            if name in field.words():
                return word_span(field.value_span, name)
    reader = next(_readers(supply.model, name), supply.model)
    return reader.span


def _readers(model: Model, name: str) -> Iterator[Model]:
    """The parts of a model that read a variable, the innermost first."""
    for child in model.parts.values():
        yield from _readers(child, name)
    if name in model.inputs and not model.parts:
        yield model
