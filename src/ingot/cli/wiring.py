"""Model or metadata -> Wiring: which box gives what to which, in the order they run."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ingot.model import Model
    from ingot.package.metadata import Metadata

__all__ = ["Box", "Wire", "Wiring", "wiring_of_model", "wiring_of_package"]

OUTSIDE = -1
"""The number of the border: what is given to all boxes, and what is taken from them."""


@dataclass(frozen=True, slots=True)
class Wire:
    """A value from a box's output to a box's input; boxes are numbered in the order they run."""

    source: int
    gives: str
    target: int
    reads: str


@dataclass(frozen=True, slots=True)
class Box:
    """Something that runs: its name, what it is, its inputs and outputs, and what is inside."""

    name: str
    what: str
    reads: tuple[str, ...]
    gives: tuple[str, ...]
    inside: "Wiring | None" = None


@dataclass(frozen=True, slots=True)
class Wiring:
    """Boxes in the order they run, what is given to them, what is taken, and the wires between."""

    given: tuple[str, ...]
    taken: tuple[str, ...]
    boxes: tuple[Box, ...]
    wires: tuple[Wire, ...]


Sources = Mapping[str, tuple[int, str]]


class _Wired:
    """Boxes and wires under way."""

    def __init__(self, given: Iterable[str]) -> None:
        self.given = tuple(given)
        self.boxes: list[Box] = []
        self.wires: list[Wire] = []

    def start(self) -> dict[str, tuple[int, str]]:
        return {name: (OUTSIDE, name) for name in self.given}

    def put(self, box: Box, known: Sources) -> dict[str, tuple[int, str]]:
        """Add a box that reads known values; what it gives, by name."""
        at = len(self.boxes)
        self.boxes.append(box)
        self.wires += [Wire(*known[name], at, name) for name in box.reads if name in known]
        return {name: (at, name) for name in box.gives}

    def run(self, model: "Model", known: Sources) -> dict[str, tuple[int, str]]:
        """Add a model; a composition is added as its models."""
        from ingot.program.combinators import ComposedModel

        if not isinstance(model.body, ComposedModel):
            box = Box(
                model.name,
                model.type_name,
                tuple(model.inputs),
                tuple(model.outputs),
                _inside(model),
            )
            return self.put(box, known)
        scope = {name: known[name] for name in model.inputs}
        for child in model.body.order:
            scope.update(self.run(child, scope))
        return {name: scope[name] for name in model.outputs}

    def done(self, taken: Mapping[str, tuple[int, str]]) -> Wiring:
        ends = [Wire(*source, OUTSIDE, name) for name, source in taken.items()]
        return Wiring(self.given, tuple(taken), tuple(self.boxes), (*self.wires, *ends))


def _inside(model: "Model") -> Wiring | None:
    """What a model that solves or differentiates is made of."""
    from ingot.program.combinators import ImplicitUpdate, Normality

    body = model.body
    if isinstance(body, ImplicitUpdate):
        wired = _Wired(dict.fromkeys((*model.inputs, *body.unknowns)))
        if body.predictor is not None:
            wired.run(body.predictor, wired.start())
            wired.boxes = [replace(b, what=f"{b.what}, first guess") for b in wired.boxes]
        found = wired.run(body.residual, wired.start())
        return wired.done({name: found[name] for name in body.residuals})
    if isinstance(body, Normality):
        wired = _Wired(model.inputs)
        return wired.done({body.function: wired.run(body.inner, wired.start())[body.function]})
    return None


def wiring_of_model(model: "Model") -> Wiring:
    """The wiring of a live model, sub-models of compositions side by side."""
    wired = _Wired(model.inputs)
    return wired.done(wired.run(model, wired.start()))


def wiring_of_package(meta: "Metadata") -> Wiring:
    """The wiring of a package: its segments."""
    from ingot.types.history import source_name

    values = (*meta.inputs, *(p.variable for p in (*meta.parameters, *meta.constants)))
    wired = _Wired(dict.fromkeys(v.name for v in values))
    outside = wired.start()
    scope = dict(outside)
    for segment in meta.segments:
        box = Box(segment.name or "forward", segment.kind, segment.reads, segment.gives)
        # an input that an output is named like is read by a name of its own
        held = {n: outside[source_name(n)] for n in segment.reads if source_name(n) != n}
        scope.update(wired.put(box, {**scope, **held}))
    return wired.done({v.name: scope[v.name] for v in meta.outputs if v.name in scope})
