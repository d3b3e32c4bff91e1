"""Mixed control: a model that reads strain, driven by components of strain and of stress.

The components that are not prescribed are solved for, around the model: the blocks are those that a
file would hold (`MixedControlSetup` and an `ImplicitUpdate`).
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ingot.errors import IngotError, Problem, Span, did_you_mean
from ingot.model import Model, bind
from ingot.model.given import GivenField, describe
from ingot.model.model import lag
from ingot.options import Newton
from ingot.program.modelling import compose, implicit
from ingot.types import SR2, Value
from ingot.types.components import list_component_names

__all__ = ["CONTROLLED", "apply_control", "require_shape", "spread_components"]

CONTROLLED = STRAIN, STRESS = "strain", "stress"
COMPONENTS = list_component_names(SR2)


def apply_control(
    model: Model, histories: Mapping[str, Any], control: str | None, steps: int, span: Span | None
) -> tuple[Model, dict[str, Any]]:
    """The model that is to be driven, and what its inputs are at so many steps."""
    modes = ("strain", "stress", "uniaxial")
    if control not in (None, *modes):
        fix = did_you_mean(str(control), modes) or f"choose one of: {', '.join(modes)}"
        message = f"'control' is one of {', '.join(modes)}, not {control!r}"
        raise IngotError([Problem("wrong-value", message, span, fix)])
    given = dict(histories)
    axial = control == "uniaxial"
    free = STRESS in given and STRESS not in model.inputs
    partial = isinstance(given.get(STRAIN), Mapping) and len(given[STRAIN]) < len(COMPONENTS)
    if not (axial or free or (partial and STRAIN in model.inputs)):
        return model, given
    _require_names(model, span)
    strain, stress = given.pop(STRAIN, None), given.pop(STRESS, None)
    _check_mode(control, strain, stress, span)
    if axial:
        given_stress = dict.fromkeys(COMPONENTS[1:], 0.0)
        if strain is None:
            given_stress, strain = {"xx": stress, **given_stress}, {}
        else:
            strain = {"xx": strain}
        stress = given_stress
    if stress is not None and not isinstance(stress, Mapping):
        field = GivenField(STRESS, stress, span)
        data, _ = field.constant(SR2, stress)
        require_shape(field, data, SR2, steps)
        if data.ndim > 1:
            _require_steps(STRESS, data, steps, span)
        return _drive(model, given, stress, dict.fromkeys(COMPONENTS, 0.0), span)
    strain = {} if strain is None else _by_component(STRAIN, strain, steps, span)
    stress = {} if stress is None else _by_component(STRESS, stress, steps, span)
    _check_components(strain, stress, span)
    named = {f"{STRAIN}.{c}": x for c, x in strain.items()}
    named |= {f"{STRESS}.{c}": x for c, x in stress.items()}
    spread_components(f"{STRAIN} and {STRESS}", named, span)
    fixed = {c: strain[c] if c in strain else stress[c] for c in COMPONENTS}
    return _drive(model, given, fixed, {c: float(c in strain) for c in COMPONENTS}, span)


def require_shape(field: GivenField, data: Tensor, kind: type[Value], steps: int | None) -> None:
    """Refuse numbers that are no components of a kind, or may be those or a history of one."""
    base, value = kind.base, field.value
    sizes = ", ".join(map(str, base))
    shape = tuple(data.shape)
    if shape[len(shape) - len(base) :] != base:
        message = f"'{field.name}' has shape {shape}, which does not end in {base}"
        names = ", ".join(list_component_names(kind))
        fix = f"arrays (..., {sizes}) of {names}, or a dict of these"
        if field.name in CONTROLLED and shape == (steps,):
            fix = f"control='uniaxial' for a history of xx alone, or {fix}"
        message = f"{message} as a {kind.__name__} does"
        raise IngotError([Problem("wrong-value", message, field.span, f"give {fix}")])
    if shape == (steps,) == base and not isinstance(value, Mapping | Value):
        message = f"'{field.name}' may be {steps} components, or one number at {steps} steps"
        fix = f"an array ({steps}, {sizes}), or {kind.__name__}(...) of ingot.types"
        if field.name in CONTROLLED:
            fix = f"control='uniaxial' for a history of xx alone, or {fix}"
        fix = f"give {fix}"
        raise IngotError([Problem("wrong-value", message, field.span, fix)])


def spread_components(
    what: str, parts: Mapping[str, Tensor], span: Span | None
) -> dict[str, Tensor]:
    """Components as arrays of one shape, each of which was (steps, *batch) or a number."""
    rank = max(part.ndim for part in parts.values())
    columns = [p.reshape((*p.shape, *[1] * (rank - p.ndim))) for p in parts.values()]
    try:
        return dict(zip(parts, torch.broadcast_tensors(*columns), strict=True))
    except RuntimeError:
        shapes = ", ".join(f"{n} {tuple(p.shape)}" for n, p in parts.items())
        message = f"the components of {what} do not go together: {shapes}"
        fix = "give each (steps, *batch), or a number"
        raise IngotError([Problem("batches-differ", message, span, fix)]) from None


def _drive(
    model: Model, given: dict[str, Any], fixed: Any, control: dict[str, float], span: Span | None
) -> tuple[Model, dict[str, Any]]:
    """The model around which the components that are not fixed are solved for."""
    setup = bind("MixedControlSetup", {
        "control": "control", "x_above": "fixed_values", "x_below": "mixed_state",
        "y": STRAIN, "z": "target_stress",
    }, span, "mixed_control")  # fmt: skip
    balance = bind("SR2LinearCombination", {
        "from": [STRESS, "target_stress"], "to": "mixed_state_residual", "weights": [1.0, -1.0],
    }, span, "stress_balance")  # fmt: skip
    solve = implicit(
        compose(setup, model, balance, name="mixed_residual"), unknowns=["mixed_state"],
        solver=_rules_of(model), guess="old", name="mixed_update",
    )  # fmt: skip
    wanted = [STRAIN, *model.outputs]
    whole = compose(solve, setup, model, additional_outputs=wanted, name="driven_model")
    whole.shapes = model.shapes
    # a component's control is a number, whatever it is stored as: above a half, or not
    return whole, {**given, "fixed_values": fixed, "control": control}


def _rules_of(model: Model) -> Newton:
    """The rules of a solve inside, or Newton's own: what converges there should do here."""
    rules = getattr(model.body, "newton", None)
    if rules is not None:
        return rules
    inner = [_rules_of(part) for part in model.parts.values()]
    return next((each for each in inner if each != Newton()), Newton())


def _require_names(model: Model, span: Span | None) -> None:
    problems = []
    for name, kinds, role in ((STRAIN, model.inputs, "input"), (STRESS, model.outputs, "output")):
        if kinds.get(name) is not SR2:
            message = f"[{model.name}] has no {role} '{name}' of kind SR2, which control is about"
            fix = f"call the variable {name!r}, or list it in additional_outputs"
            problems.append(Problem(f"unknown-{role}", message, span, fix))
    taken = ("control", "fixed_values", "mixed_state", "target_stress")
    known = {lag(name)[0] for name in (*model.inputs, *model.outputs)}
    for name in known & {*taken}:
        message = f"[{model.name}] has a variable '{name}', which control needs for itself"
        problems.append(Problem("duplicate-variable", message, span, "rename it"))
    if problems:
        raise IngotError(problems)


def _check_mode(control: str | None, strain: Any, stress: Any, span: Span | None) -> None:
    both = strain is not None and stress is not None
    message = ""
    if control == "uniaxial" and (both or (strain is None and stress is None)):
        message, fix = "control='uniaxial' prescribes strain or stress", "give one of the two"
    elif control == "uniaxial" and isinstance(strain if strain is not None else stress, Mapping):
        message = "control='uniaxial' says what components do, and they are given one by one too"
        fix = "give a history of numbers, or leave control out"
    elif control in ("strain", "stress") and both:
        message, fix = f"control='{control}' prescribes one of strain and stress", "leave it out"
    elif (
        control is not None
        and control != "uniaxial"
        and {"strain": strain, "stress": stress}[control] is None
    ):
        message, fix = f"control='{control}' needs {control}=...", f"give {control}=..."
    else:
        return
    raise IngotError([Problem("wrong-value", message, span, fix)])


def _by_component(name: str, value: Any, steps: int, span: Span | None) -> dict[str, Any]:
    """The components that a dict prescribes, each a number or (steps, *batch)."""
    if not isinstance(value, Mapping):
        fix = 'give components: {"xx": ..., "yy": ...}'
        message = f"'{name}' should be a dict of components, not {describe(value)}"
        raise IngotError([Problem("wrong-value", message, span, fix)])
    for component in value:
        if component not in COMPONENTS:
            fix = f"choose one of: {', '.join(COMPONENTS)}"
            message = f"'{name}' is a SR2, which has no component {component!r}"
            raise IngotError([Problem("unknown-variable", message, span, fix)])
    found = {c: GivenField(f"{name}.{c}", v, span).tensor(v) for c, v in value.items()}
    for component, data in found.items():
        if data.ndim:
            _require_steps(f"{name}.{component}", data, steps, span, ", or one number")
    return found


def _require_steps(
    name: str, data: Tensor, steps: int, span: Span | None, otherwise: str = ""
) -> None:
    if data.shape[0] != steps:
        told = f"'{name}' has {data.shape[0]} steps, but 'time' has {steps}"
        fix = f"give it the shape ({steps}, ...){otherwise}"
        raise IngotError([Problem("shapes-differ", told, span, fix)])


def _check_components(strain: Mapping[str, Any], stress: Mapping[str, Any], span: Any) -> None:
    problems = []
    for each in COMPONENTS:
        if each in strain and each in stress:
            message, fix = f"both strain and stress prescribe '{each}'", "keep one of the two"
            problems.append(Problem("duplicate-variable", message, span, fix))
        if each not in strain and each not in stress:
            message = f"neither strain nor stress prescribes '{each}'"
            fix = f'give stress={{"{each}": 0.0}}, or a strain'
            problems.append(Problem("missing-option", message, span, fix))
    if problems:
        raise IngotError(problems)
