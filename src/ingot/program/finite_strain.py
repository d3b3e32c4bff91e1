"""`LogarithmicStrain`: a small-strain model from deformation gradients to their stresses."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ingot.errors import Problem, did_you_mean, raise_if
from ingot.hit import Block, Field
from ingot.model import Factory, Model, bind, read_name
from ingot.program.combinators import check_fields, name_parts
from ingot.program.differentiate import differentiate_along
from ingot.program.rewrite import substitute
from ingot.program.tracer import Placed, Tracer
from ingot.types import R2, SR2, SSR4, r2_from_sr2
from ingot.types.history import lag

__all__ = ["LogarithmicStrain"]

_ALWAYS = ("kirchhoff_stress", "first_piola_kirchhoff_stress")
_WHERE_NAMED = ("cauchy_stress", "second_piola_kirchhoff_stress", "jaumann_tangent")


@dataclass(frozen=True, slots=True)
class LogarithmicStrain:
    """A small-strain model on the logarithmic strain of a deformation gradient; a point at which
    the determinant of that is not positive fails.

    model: the small-strain model, whose other inputs and outputs are this one's too; strain: its
    strain, `strain` unless told, whose old values come from old deformation gradients; stress: its
    stress, `stress` unless told; deformation_gradient: what is given, `deformation_gradient` unless
    told; kirchhoff_stress, first_piola_kirchhoff_stress: names of these stresses; cauchy_stress,
    second_piola_kirchhoff_stress: the same, given where they are named; jaumann_tangent: the
    derivative of the Kirchhoff stress, at its Jaumann rate, by the rate of deformation, given where
    it is named.
    """

    composed: Model
    gradient: str
    kirchhoff: str
    jaumann: str | None

    @staticmethod
    def build(block: Block, factory: Factory) -> Model:
        """The model from deformation gradients to stresses."""
        names = ("strain", "stress", "deformation_gradient", *_ALWAYS, *_WHERE_NAMED)
        check_fields(block, ("model", *names))
        inner = factory.model_of(block.require("model"))
        fields = {name: block.field(name) for name in names}
        name = {key: read_name(field, key) for key, field in fields.items()}
        raise_if(_find_problems(block, inner, fields, name))
        composed = _compose(block, inner, name)
        jaumann = name["jaumann_tangent"] if fields["jaumann_tangent"] else None
        given = [k for k in (*_ALWAYS, *_WHERE_NAMED[:2]) if k in _ALWAYS or fields[k]]
        outputs: dict[str, Any] = {name[k]: composed.outputs[name[k]] for k in given}
        outputs |= {n: k for n, k in inner.outputs.items() if n in composed.outputs}
        if jaumann is not None:
            outputs[jaumann] = SSR4
        gradient = name["deformation_gradient"]
        body = LogarithmicStrain(composed, gradient, name["kirchhoff_stress"], jaumann)
        parts = name_parts([inner])
        inputs = dict(composed.inputs)
        return Model(block.name, "LogarithmicStrain", block.span, inputs, outputs, body, parts)

    def emit(self, model: Model, values: Mapping[str, Placed], tracer: Tracer) -> dict[str, Placed]:
        """The inner model between a strain and its pull-back; the tangent where it is asked for."""
        results = tracer.run(self.composed, values)
        if self.jaumann is not None:
            results[self.jaumann] = self._find_tangent(values, tracer)
        return {name: results[name] for name in model.outputs}

    def _find_tangent(self, values: Mapping[str, Placed], tracer: Tracer) -> Placed:
        """The change of the Kirchhoff stress as the body is stretched without spin, column by
        column: rates of deformation that are symmetric tensors of norm one.
        """
        f = tracer.unknown(self.gradient, R2, values[self.gradient].axes)
        stress = tracer.run(self.composed, {**values, self.gradient: f})[self.kirchhoff]
        columns = []
        for k in range(6):
            rate = SR2.of(*(float(i == k) for i in range(6)))
            moved = r2_from_sr2(rate) @ tracer.value(f)
            along = [x.node for x in moved.data]
            columns.append(differentiate_along(tracer.builder, stress.nodes, f.nodes, along))
        entries = [columns[j][i] for i in range(6) for j in range(6)]
        swap = dict(zip((n.id for n in f.nodes), values[self.gradient].nodes, strict=True))
        return Placed(SSR4, tuple(substitute(tracer.builder, entries, swap)), stress.axes)


def _compose(block: Block, inner: Model, name: Mapping[str, str]) -> Model:
    """The composition of kinematics, the inner model, and what its stress is turned into."""

    def law(type_name: str, *keys: str) -> Model:
        return bind(type_name, {k: name[k] for k in keys}, block.span, f"{block.name}.{type_name}")

    gradient, second = "deformation_gradient", "second_piola_kirchhoff_stress"
    laws = [law("HenckyStrain", gradient, "strain")]
    for steps in _list_lags(inner, name["strain"]):
        old = {k: f"{name[k]}~{steps}" for k in (gradient, "strain")}
        laws.append(bind("HenckyStrain", old, block.span, f"{block.name}.old{steps}"))
    laws += [
        law("HenckyStressPullBack", gradient, "stress", second),
        law("FirstPiolaKirchhoffStress", gradient, second, "first_piola_kirchhoff_stress"),
        law("KirchhoffStress", gradient, second, "kirchhoff_stress"),
    ]
    if block.field("cauchy_stress") is not None:
        laws.append(law("CauchyStress", gradient, "kirchhoff_stress", "cauchy_stress"))
    wanted = [*inner.outputs, *(o for each in laws for o in each.outputs)]
    options = {"models": [inner, *laws], "additional_outputs": list(dict.fromkeys(wanted))}
    return bind("ComposedModel", options, block.span, block.name)


def _list_lags(inner: Model, strain: str) -> list[int]:
    """How many steps back the inner model reads its strain."""
    return sorted(steps for name, steps in map(lag, inner.inputs) if name == strain and steps)


def _find_problems(
    block: Block, inner: Model, fields: Mapping[str, Field | None], name: Mapping[str, str]
) -> Iterator[Problem]:
    for key, known, what in (
        ("strain", inner.inputs, "input"),
        ("stress", inner.outputs, "output"),
    ):
        field, kind = fields[key], known.get(name[key])
        span = (field or block).span
        if kind is None:
            fix = did_you_mean(name[key], known) or f"name it: {key} = ..."
            yield Problem(
                f"unknown-{what}", f"[{inner.name}] has no {what} '{name[key]}'", span, fix
            )
        elif kind is not SR2:
            message = f"'{name[key]}' of [{inner.name}] is of kind {kind.__name__}, not SR2"
            yield Problem("kinds-differ", message, span, f"name its {key}")
