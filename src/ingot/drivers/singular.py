"""A Model -> problems of laws that divide by zero whatever they read, as elasticity of nu = 0.5."""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from ingot.drivers.plain import evaluated
from ingot.errors import Problem
from ingot.model import Law, Model
from ingot.types import Value

__all__ = ["find_singular"]

SAMPLES = (0.37, -0.37, 0.02, 40.0, -40.0)
"""Sizes of what a law is given: one that is defined anywhere is finite at one of them."""

NUDGE = 1e-3  # of a parameter, by which a law that it spoils becomes finite
MAX_POINTS = 16  # of a batch of parameters that are looked at

Constants = dict[str, Value]


def find_singular(model: Model) -> Iterator[Problem]:
    """A problem for each law of a model that is finite nowhere, by its parameters alone."""
    for law in {id(each): each for each in _laws(model)}.values():
        for constants in _points(law.values):
            if _is_finite(law, constants, SAMPLES[:1]) or _is_finite(law, constants, SAMPLES):
                continue
            blamed = [name for name in constants if _is_finite(law, _nudge(constants, name))]
            numbers = (f"{name} = {constants[name].data:g}" for name in blamed or constants)
            what = "divides by zero" if blamed else "overflows"
            message = f"{law.type_name} {what} with {', '.join(numbers)}"
            fix = f"change {' or '.join(blamed) or 'them'}: no result is finite"
            yield Problem("singular-law", message, law.span, fix)
            break


def _laws(model: Model) -> Iterator[Model]:
    """The laws of a model whose parameters are plain numbers."""
    for part in model.parts.values():
        yield from _laws(part)
    law = model.body
    if not isinstance(law, Law) or law.declared.opaque or not model.values:
        return
    slots = (*law.declared.inputs, *law.declared.outputs, *law.declared.parameters)
    plain = not any(slot.axes for slot in slots) and not any(o.data for o in law.declared.options)
    if plain and not any(type(v).base or v.sub for v in model.values.values()):
        yield model


def _points(values: Mapping[str, Value]) -> Iterator[Constants]:
    """The parameters of a law at each point of their batch, or some of its points."""
    data = torch.broadcast_tensors(*(value.data for value in values.values()))
    rows = torch.stack([each.flatten() for each in data], -1)
    for row in rows[:MAX_POINTS]:
        pairs = zip(values.items(), row, strict=True)
        yield {name: type(value)(number.clone()) for (name, value), number in pairs}


def _nudge(constants: Constants, name: str) -> Constants:
    number: Tensor = constants[name].data
    moved = number * (1 + NUDGE) + (number == 0) * NUDGE
    return {**constants, name: type(constants[name])(moved)}


def _is_finite(law: Model, constants: Constants, samples: tuple[float, ...] = SAMPLES) -> bool:
    """Whether every number that a law gives is finite at one of the samples."""
    stored = {(id(law), name): value for name, value in constants.items()}
    finite: list[Tensor] = []
    for size in samples:
        draw = torch.Generator().manual_seed(0)
        inputs = {
            name: kind(size * (0.5 + torch.rand(kind.base, generator=draw, dtype=torch.float64)))
            for name, kind in law.inputs.items()
        }
        try:
            results = evaluated(law, inputs, stored).values()
        except (RuntimeError, ValueError, TypeError, IndexError):
            return True  # what is wrong with it is told where it is traced
        found = [result.data.isfinite() for result in results]
        finite = [a | b for a, b in zip(finite, found, strict=True)] if finite else found
    return all(bool(each.all()) for each in finite)
