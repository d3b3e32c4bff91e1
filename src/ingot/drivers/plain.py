"""A live Model evaluated as plain torch: its laws on tensors, `vmap` for the batch, no program.

The oracle that programs are tested against; models that solve something have none.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from ingot.execute.batch_shape import ValueShape, flatten_batch
from ingot.model import Law, Model, walk
from ingot.program.combinators import ComposedModel, Normality
from ingot.program.finite_strain import LogarithmicStrain
from ingot.types import Value

__all__ = ["Evaluate", "plain"]

Evaluate = Callable[[Mapping[str, Tensor]], dict[str, Tensor]]
Constants = dict[tuple[int, str], Value]


def plain(model: Model, ranks: Mapping[str, int]) -> Evaluate | None:
    """Outputs `(*batch, *axes, *base)` of inputs of that form; `ranks` counts each input's axes.

    None where a part of the model is neither a law nor composed of laws.
    """
    if not made_of_laws(model):
        return None
    stored: Constants = {(id(owner), key): owner.values[key] for _, owner, key in walk(model)}

    def evaluate(inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        names = list(model.inputs)
        rows = [(model.inputs[n], ranks.get(n, 0), inputs[n]) for n in names]
        rows += [(type(v), v.sub, v.data) for v in stored.values()]
        sizes = [x.shape[x.ndim - r - len(k.base) :][:r] for k, r, x in rows]
        shapes = [
            ValueShape("", tuple(s), k.base) for s, (k, _, _) in zip(sizes, rows, strict=True)
        ]
        flat, batch = flatten_batch(list(zip(shapes, (x for _, _, x in rows), strict=True)))
        count = max((x.shape[0] for x in flat), default=1)

        def point(*data: Tensor) -> tuple[Tensor, ...]:
            values = [k(x, sub_batch_ndim=r) for (k, r, _), x in zip(rows, data, strict=True)]
            given = dict(zip(names, values, strict=False))
            constants = dict(zip(stored, values[len(names) :], strict=True))
            results = evaluated(model, given, constants)
            return tuple(results[name].data for name in model.outputs)

        spread = [x.expand(count, *x.shape[1:]) for x in flat]
        results = torch.vmap(point)(*spread)
        pairs = zip(model.outputs, results, strict=True)
        return {name: x.reshape((*batch, *x.shape[1:])) for name, x in pairs}

    return evaluate


def made_of_laws(model: Model) -> bool:
    """Whether all of a model can be evaluated without solving anything."""
    match model.body:
        case Law():
            return True
        case ComposedModel(order=parts):
            return all(made_of_laws(part) for part in parts)
        case Normality(inner=inner) | LogarithmicStrain(composed=inner, jaumann=None):
            return made_of_laws(inner)
        case _:
            return False


def evaluated(model: Model, values: Mapping[str, Value], constants: Constants) -> dict[str, Value]:
    """The outputs of a model at one point."""
    match model.body:
        case Law() as law:
            return law_results(model, law, values, constants)
        case ComposedModel(order=parts):
            known = dict(values)
            for part in parts:
                known.update(evaluated(part, known, constants))
            return {name: known[name] for name in model.outputs}
        case Normality() as gradient:
            return slopes(gradient, values, constants)
        case LogarithmicStrain(composed=inner):
            known = evaluated(inner, values, constants)
            return {name: known[name] for name in model.outputs}
        case _:
            raise AssertionError(f"{model.type_name} is not made of laws")


def law_results(
    model: Model, law: Law, values: Mapping[str, Value], constants: Constants
) -> dict[str, Value]:
    """The outputs of a law."""

    def variable(name: Any) -> Any:
        if isinstance(name, tuple):
            return tuple(variable(each) for each in name)
        return None if name is None else values[name]

    def parameter(bound: Any) -> Any:
        if not bound or isinstance(bound[0], tuple):
            return tuple(parameter(each) for each in bound)
        role, name = bound
        return constants[id(model), name] if role == "value" else values[name]

    arguments = {slot: variable(name) for slot, name in law.inputs.items()}
    arguments |= {slot: parameter(bound) for slot, bound in law.parameters.items()}
    if law.declared.opaque:
        return _opaque_results(law, arguments)
    result = law.declared.function(**arguments, **law.options)
    results = result if isinstance(result, tuple) else (result,)
    return dict(zip(law.outputs, results, strict=True))


def _opaque_results(law: Law, arguments: Mapping[str, Any]) -> dict[str, Value]:
    """The outputs of a law that takes and returns tensors."""

    def tensor(x: Any) -> Any:
        if isinstance(x, tuple):
            return tuple(tensor(each) for each in x)
        return x.data if isinstance(x, Value) else x

    given = {name: tensor(x) for name, x in arguments.items()}
    result = law.declared.function(**given, **law.options)
    results = result if isinstance(result, tuple) else (result,)
    slots = zip(law.outputs, law.declared.outputs, results, strict=True)
    return {n: o.kind(x, sub_batch_ndim=x.ndim - len(o.kind.base)) for n, o, x in slots}


def slopes(
    gradient: Normality, values: Mapping[str, Value], constants: Constants
) -> dict[str, Value]:
    """The gradient of an inner model's scalar output, by torch."""

    def function(*chosen: Tensor) -> Tensor:
        moved = {n: like(values[n], x) for n, x in zip(gradient.by, chosen, strict=True)}
        inner = evaluated(gradient.inner, {**values, **moved}, constants)
        return inner[gradient.function].data.sum()

    by = [values[name] for name in gradient.by]
    found = torch.func.grad(function, argnums=tuple(range(len(by))))(*(v.data for v in by))
    return {to: like(v, x) for to, v, x in zip(gradient.to, by, found, strict=True)}


def like(value: Value, data: Tensor) -> Value:
    """Other data of a value's kind and axes."""
    return type(value)(data, sub_batch_ndim=value.sub)
