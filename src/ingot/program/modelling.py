"""Models put together in Python: `compose` and `implicit` call the builders of files' blocks."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ingot.errors import IngotError, Problem, Span, caller
from ingot.keywords import check_keywords
from ingot.model import Model, bind, lag
from ingot.model.given import describe, give
from ingot.options import Newton

__all__ = ["compose", "implicit", "take_in_providers"]

Names = Sequence[str] | Sequence[Sequence[str]]


@check_keywords
def compose(
    *models: Model, additional_outputs: Sequence[str] | None = None, name: str | None = None
) -> Model:
    """Models run one after another, wired by the names of their variables.

    What no model gives is an input. What no other reads is an output, and so is what a model reads
    the last value of (`x` beside `x~1`): a driver carries it on. additional_outputs: other values
    to give although another model reads them; name: what the composition is called.
    """
    span = caller()
    _check_models(models, "compose", span)
    more = [additional_outputs] if isinstance(additional_outputs, str) else additional_outputs or ()
    more = [*more, *_find_states(models, more)]
    values = {"models": list(models), "additional_outputs": more or None}
    return bind("ComposedModel", values, span, name)


@check_keywords
def implicit(
    *models: Model, unknowns: Names | Mapping[str, str], solver: Newton | None = None,
    predictor: Model | None = None, guess: Literal["given", "old"] | None = None,
    max_substepping_level: int | None = None, incremental_variables: Sequence[str] | None = None,
    name: str | None = None,
) -> Model:  # fmt: skip
    """The unknowns for which residuals vanish, as a model of all else that the residuals read.

    models: what gives the residuals, composed where it is more than one
    unknowns: names, each with a residual `<name>_residual`; or a dict, the residual of each
    solver: when Newton's method stops; predictor: a model that gives first guesses
    guess: where other unknowns start, `given` as inputs or `old`, from their last values
    max_substepping_level: how often a step that fails is halved at most
    incremental_variables: givens that change gradually then, from old values that become inputs
    name: what the update is called, in statuses and messages too
    """
    span = caller()
    _check_models(models, "implicit", span)
    residual = models[0]
    if len(models) > 1 or residual.providers:
        residual = bind("ComposedModel", {"models": list(models)}, span, "residual")
    system: dict[str, Any] = {"model": residual, "unknowns": unknowns}
    if isinstance(unknowns, Mapping):
        system |= {"unknowns": [*unknowns], "residuals": [*unknowns.values()]}
    if not system["unknowns"]:
        message, fix = "implicit has nothing to solve for", 'give unknowns=["x", ...]'
        raise IngotError([Problem("wrong-value", message, span, fix)])
    values = {
        "equation_system": give("NonlinearSystem", system, span, "system", "EquationSystems"),
        "solver": Newton() if solver is None else solver,
        "predictor": predictor,
        "guess": guess,
        "max_substepping_level": max_substepping_level,
        "incremental_variables": incremental_variables,
    }
    return bind("ImplicitUpdate", values, span, name)


def take_in_providers(model: Model) -> Model:
    """The model, composed with those that give its parameters where there are any."""
    return compose(model, name=model.name) if model.providers else model


def _find_states(models: Sequence[Model], known: Sequence[str]) -> list[str]:
    """What the models give and read the history of, beyond what is known."""
    given = {name for model in models for name in model.outputs}
    histories = (lag(name) for model in models for name in model.inputs)
    states = (name for name, back in histories if back and name in given and name not in known)
    return list(dict.fromkeys(states))


def _check_models(models: tuple[Any, ...], what: str, span: Span | None) -> None:
    """Refuse what is no model, and none at all."""
    problems = []
    if not models:
        message = f"{what} was given no model"
        problems.append(Problem("wrong-value", message, span, f"write ingot.{what}(a, b, ...)"))
    for place, each in enumerate(models, 1):
        if isinstance(each, Model):
            continue
        fix = "give what a law of ingot.laws, compose or implicit returns"
        if isinstance(each, list | tuple):
            fix = f"give models one by one, or with a star: ingot.{what}(*models)"
        elif callable(each):
            fix = f"call it: {getattr(each, '__name__', 'the law')}(...)"
        message = f"argument {place} of {what} should be a model, not {describe(each)}"
        problems.append(Problem("wrong-value", message, span, fix))
    if problems:
        raise IngotError(problems)
