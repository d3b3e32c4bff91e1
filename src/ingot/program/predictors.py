"""First guesses for implicit updates: extrapolations, and a rate law solved slip by slip."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ingot.errors import IngotError, Problem, did_you_mean, raise_if
from ingot.hit import Block, Field
from ingot.model import Factory, Model, read_name
from ingot.options import Count, NotNegativeCount
from ingot.program.builder import Axis, Node, Symbol
from ingot.program.combinators import check_fields
from ingot.program.differentiate import gradient
from ingot.program.interpolation import pick
from ingot.program.rewrite import substitute
from ingot.program.tracer import Placed, Tracer
from ingot.types import KINDS, Scalar, Value, abs, eps, repeat, total, where

__all__ = [
    "ConstantExtrapolationPredictor", "CoordinateDescentPredictor", "LinearExtrapolationPredictor",
    "RateCondensation",
]  # fmt: skip

EXTRAPOLATED = ("SR2", "Scalar", "MRP", "R2")


@dataclass(frozen=True, slots=True)
class ConstantExtrapolationPredictor:
    """Every listed unknown starts at its old value, $u = u_n$.

    unknowns_SR2, unknowns_Scalar, unknowns_MRP, unknowns_R2: the unknowns of each kind
    cold: pairs `unknown:variable`; before there is any history the unknown starts at the variable
    time: what tells whether there is, by its two old values; `t` unless told
    """

    time: str
    cold: Mapping[str, str]
    is_linear: bool = False

    @staticmethod
    def build(block: Block, factory: Factory) -> Model:
        """The guess as a model from old values to values."""
        return _build_extrapolation(block, is_linear=False)

    def emit(self, model: Model, values: Mapping[str, Placed], tracer: Tracer) -> dict[str, Placed]:
        """A guess for each unknown, on its own axes."""
        found = {name: values[f"{name}~1"] for name in model.outputs}
        if not self.is_linear and not self.cold:
            return found
        now, last, before = (
            tracer.value(values[name]) for name in (self.time, f"{self.time}~1", f"{self.time}~2")
        )
        is_cold = abs(last - before) <= eps(last)
        for name, old in found.items():
            guess = tracer.value(old)
            if self.is_linear:
                gained = guess - tracer.value(values[f"{name}~2"])
                share = (now - last) / where(is_cold, 1.0, last - before)
                guess = where(is_cold, guess, guess + gained * share)
            if name in self.cold:
                guess = where(is_cold, tracer.value(values[self.cold[name]]), guess)
            found[name] = replace(old, nodes=tuple(a.node for a in guess.data))
        return found


class LinearExtrapolationPredictor:
    r"""Every listed unknown goes on as it went, $u = u_n + (u_n - u_{n-1}) \Delta t / \Delta t_n$.

    unknowns_SR2, unknowns_Scalar, unknowns_MRP, unknowns_R2: the unknowns of each kind
    cold: pairs `unknown:variable`; before there is any history the unknown starts at the variable
    time: what the steps are of, `t` unless told
    """

    @staticmethod
    def build(block: Block, factory: Factory) -> Model:
        """The guess as a model from two old values to values."""
        return _build_extrapolation(block, is_linear=True)


def _wrap_scalar(tracer: Tracer, node: Node) -> Scalar:
    """A line of a trace as a scalar, to compute with."""
    return Scalar((Symbol(tracer.builder, node),))


def _build_extrapolation(block: Block, *, is_linear: bool) -> Model:
    check_fields(block, (*(f"unknowns_{k}" for k in EXTRAPOLATED), "cold", "time"))
    outputs = {
        name: KINDS[k]
        for k in EXTRAPOLATED
        if (field := block.field(f"unknowns_{k}")) is not None
        for name in field.words()
    }
    asked = block.field("cold")
    raise_if(_find_cold_problems(asked, outputs))
    cold = dict(word.split(":") for word in asked.words()) if asked is not None else {}
    clock = block.field("time")
    time = read_name(clock, "t")
    inputs: dict[str, type[Value]] = {f"{name}~1": kind for name, kind in outputs.items()}
    if is_linear or cold:
        inputs |= dict.fromkeys((time, f"{time}~1", f"{time}~2"), Scalar)
    if is_linear:
        inputs |= {f"{name}~2": kind for name, kind in outputs.items()}
    inputs |= {variable: outputs[name] for name, variable in cold.items()}
    kind = "LinearExtrapolationPredictor" if is_linear else "ConstantExtrapolationPredictor"
    body = ConstantExtrapolationPredictor(time, cold, is_linear)
    return Model(block.name, kind, block.span, inputs, outputs, body)


def _find_cold_problems(
    asked: Field | None, outputs: Mapping[str, type[Value]]
) -> Iterator[Problem]:
    seen: set[str] = set()
    for word in asked.words() if asked is not None else ():
        assert asked is not None
        name, _, variable = word.partition(":")
        if not name or not variable or ":" in variable:
            message = f"'{word}' is no pair of an unknown and a variable"
            yield Problem("wrong-value", message, asked.span, "write unknown:variable")
        elif name not in outputs:
            message = f"'{name}' is none of the unknowns that are listed"
            yield Problem("unknown-variable", message, asked.span, did_you_mean(name, outputs))
        elif name in seen:
            message = f"'{name}' is named twice"
            yield Problem("wrong-value", message, asked.span, "keep one of the two")
        seen.add(name)


@dataclass(frozen=True, slots=True)
class RateCondensation:
    r"""What an explicit return path says of its rate: $b = f(0)$ and $A = -\partial f/\partial r$.

    model: the return path, from a rate to a driving force
    rate: the input that is the rate
    driving_force: the output that is the driving force
    coupling: what is given as $A$
    trial_driving_force: what is given as $b$
    """

    inner: Model
    rate: str
    force: str

    @staticmethod
    def build(block: Block, factory: Factory) -> Model:
        """The coupling and the trial force as a model of the path's other inputs."""
        check_fields(block, ("model", "rate", "driving_force", "coupling", "trial_driving_force"))
        asked, rate, force = (block.require(k) for k in ("model", "rate", "driving_force"))
        inner = factory.model_of(asked)
        raise_if([
            *_find_scalar_problems(inner.inputs, "input", rate, inner),
            *_find_scalar_problems(inner.outputs, "output", force, inner),
        ])  # fmt: skip
        inputs = {n: k for n, k in inner.inputs.items() if n != rate.string()}
        outputs: dict[str, type[Value]] = {
            read_name(block.field(k), k): Scalar for k in ("coupling", "trial_driving_force")
        }
        body = RateCondensation(inner, rate.string(), force.string())
        children, providers = {inner.name: inner}, dict(inner.providers)
        return Model(block.name, "RateCondensation", block.span, inputs, outputs, body,
                     children, providers)  # fmt: skip

    def emit(self, model: Model, values: Mapping[str, Placed], tracer: Tracer) -> dict[str, Placed]:
        """The path on a placeholder, and zero put in its place."""
        b = tracer.builder
        rate = tracer.unknown(self.rate, Scalar, ())
        force = tracer.run(self.inner, {**values, self.rate: rate})[self.force]
        slopes = gradient(b, force.nodes[0], rate.nodes)
        zero = {rate.nodes[0].id: b.zero}
        slope, trial = substitute(b, [*slopes, *force.nodes], zero)
        nodes = (b.emit("neg", slope), trial)
        return {
            name: replace(force, nodes=(node,))
            for name, node in zip(model.outputs, nodes, strict=True)
        }


def _find_scalar_problems(
    kinds: Mapping[str, type[Value]], role: str, asked: Field, inner: Model
) -> Iterator[Problem]:
    name = asked.string()
    kind = kinds.get(name)
    if kind is None:
        message = f"[{inner.name}] has no {role} '{name}'"
        yield Problem(f"unknown-{role}", message, asked.span, did_you_mean(name, kinds))
    elif kind is not Scalar:
        message = f"'{name}' is of kind {kind.__name__}, not Scalar"
        yield Problem("kinds-differ", message, asked.span, f"name a Scalar {role}")


@dataclass(frozen=True, slots=True)
class CoordinateDescentPredictor:
    r"""Rates $g$ that a coupled law gives, $g_i = \phi(b_i - \sum_j A_{ij} g_j)$, by descent.

    rate_law: the law $\phi$, a model with one output
    driving_force_input: the input of the law that is the driving force
    coupling: what is read as $A$, a square on the axis of the forces
    trial_driving_force: what is read as $b$, with one axis or none
    rate: what is given as $g$
    sweeps: how often every rate is solved for, the others held; 16 unless told
    bisections: how often the interval of a force is halved; 16 unless told
    polish: how many steps of Newton's method follow; 3 unless told
    """

    law: Model
    force: str
    coupling: str
    trial: str
    sweeps: int
    bisections: int
    polish: int

    @staticmethod
    def build(block: Block, factory: Factory) -> Model:
        """The rates as a model of coupling, trial force and the law's other inputs."""
        counts = {"sweeps": 16, "bisections": 16, "polish": 3}
        check_fields(block, ("rate_law", "driving_force_input", "coupling", "trial_driving_force",
                             "rate", *counts))  # fmt: skip
        asked, force = block.require("rate_law"), block.require("driving_force_input")
        law = factory.model_of(asked)
        raise_if(_find_scalar_problems(law.inputs, "input", force, law))
        for key in counts:
            if (field := block.field(key)) is not None:
                counts[key] = field.option(Count if key == "sweeps" else NotNegativeCount)
        if list(law.outputs.values()) != [Scalar]:
            message = (
                f"[{law.name}] gives {', '.join(law.outputs)}, and a rate law gives one Scalar"
            )
            raise_if([Problem("wrong-value", message, asked.span, "name a model of one output")])
        coupling, trial, rate = (
            read_name(block.field(k), k) for k in ("coupling", "trial_driving_force", "rate")
        )
        others = {n: k for n, k in law.inputs.items() if n != force.string()}
        inputs = {coupling: Scalar, trial: Scalar, **others}
        body = CoordinateDescentPredictor(law, force.string(), coupling, trial, **counts)
        return Model(block.name, "CoordinateDescentPredictor", block.span, inputs, {rate: Scalar},
                     body, {law.name: law}, law.providers)  # fmt: skip

    def emit(self, model: Model, values: Mapping[str, Placed], tracer: Tracer) -> dict[str, Placed]:
        """One loop over the coordinates of all sweeps; without axes there is one coordinate."""
        coupling, trial = values[self.coupling], values[self.trial]
        given = {n: values[n] for n in self.law.inputs if n != self.force}
        if len(coupling.axes) > len(trial.axes) > 0:
            rates = self._descend(tracer, coupling, trial, given)
        else:
            alone = tracer.value(trial), tracer.value(coupling)
            rates = self._solve(tracer, *alone, partial(self._evaluate_law, tracer, trial, given))
        (name,) = model.outputs
        return {name: replace(trial, nodes=(rates.data[0].node,))}

    def _descend(
        self, tracer: Tracer, coupling: Placed, trial: Placed, given: Mapping[str, Placed]
    ) -> Scalar:
        """The rates after all sweeps, along the axis of the trial force."""
        b = tracer.builder
        (*_, row, column), (*_, along) = coupling.axes, trial.axes
        count = b.extent(along)
        if not b.extent(row) == b.extent(column) == count:
            message = f"'{self.trial}' has {count} entries, which '{self.coupling}' does not couple"
            fix = f"give '{self.coupling}' {count} rows and columns"
            raise IngotError([Problem("extents-differ", message, None, fix)])
        places = b.table(np.arange(count), (column,))

        def entry(placed: Placed, at: Node, *axes: Axis) -> Placed:
            picked = (pick(b, n, dict.fromkeys(axes, at)) for n in placed.nodes)
            return replace(placed, nodes=tuple(picked))

        def step(rates: Scalar, place: Scalar) -> tuple[Scalar, Scalar]:
            at = place.data[0].node
            here = {
                n: entry(p, at, p.axes[-1]) if p.axes and b.extent(p.axes[-1]) == count else p
                for n, p in given.items()
            }
            is_here = _wrap_scalar(tracer, places) == place
            others = where(is_here, 0.0, tracer.value(entry(coupling, at, row)) * rates)
            left = tracer.value(entry(trial, at, along)) - total(others, column.name)
            stiffness = tracer.value(entry(coupling, at, row, column))
            rate = self._solve(
                tracer, left, stiffness, partial(self._evaluate_law, tracer, trial, here)
            )
            ahead = place + 1.0
            return where(is_here, rate, rates), where(ahead < count, ahead, 0.0)

        zero = _wrap_scalar(tracer, b.zero)
        rates, _ = repeat(self.sweeps * count, step, (zero, zero))
        if column == along:
            return rates
        places = b.table(np.arange(count), (along,))
        return _wrap_scalar(tracer, pick(b, rates.data[0].node, {column: places}))

    def _evaluate_law(
        self, tracer: Tracer, like: Placed, given: Mapping[str, Placed], force: Scalar
    ) -> Scalar:
        """The rate law at a driving force."""
        placed = replace(like, nodes=(force.data[0].node,))
        (rate,) = tracer.run(self.law, {**given, self.force: placed}).values()
        return tracer.value(rate)

    def _solve(
        self, tracer: Tracer, trial: Scalar, stiffness: Scalar, law: Callable[[Scalar], Scalar]
    ) -> Scalar:
        r"""The rate of one coordinate, $\phi(w)$ where $w + A \phi(w) = c$."""
        side = where(trial < 0.0, -1.0, 1.0)

        def halve(low: Scalar, high: Scalar) -> tuple[Scalar, Scalar]:
            middle = (low + high) * 0.5
            force = middle * trial
            below = side * (force + stiffness * law(force) - trial) < 0.0
            return where(below, middle, low), where(below, high, middle)

        def polish(force: Scalar) -> Scalar:
            rate = law(force)
            at = [x.data[0].node for x in (rate, force)]
            slope = _wrap_scalar(tracer, *gradient(tracer.builder, at[0], at[1:]))
            return force - (force + stiffness * rate - trial) / (1.0 + stiffness * slope)

        ends = _wrap_scalar(tracer, tracer.builder.zero), _wrap_scalar(tracer, tracer.builder.one)
        low, high = repeat(self.bisections, halve, ends)
        return law(repeat(self.polish, polish, (low + high) * 0.5 * trial))
