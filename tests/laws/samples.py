"""Every law of the catalogue as models that a file could hold, with inputs to run them at.

In: a declared law. Out: one `Case` for every choice of its options, built from HIT text, its inputs
drawn by seed, and its own function as plain torch: the oracle.
"""

import itertools
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal, get_args, get_origin

import torch
from torch import Tensor

from ingot.catalog import Declared, Input, Option, ParameterSlot, key, load
from ingot.catalog.crystal import CubicCrystal
from ingot.hit import read_text
from ingot.model import Law, Model, build
from ingot.options import plain
from ingot.program import Program, freeze, trace
from ingot.program.layouts import parsed
from ingot.types import R2, MillerIndex, Scalar, Value

EXTENTS = {"slip": 12, "cell": 6}
TERMS = 3

# Where the physics allows no zero or no sign; all else is drawn from the usual ranges.
INPUTS: dict[str, tuple[float, float]] = {
    "temperature": (0.5, 2.0),
    "time": (1.0, 2.0),
    "time_old": (0.0, 0.9),
    "slip_strengths": (0.5, 2.0),
    "void_fraction": (0.05, 0.9),
    "conversion_degree": (0.05, 0.9),
    "isotropic_hardening": (0.0, 1.0),
}
PARAMETERS: dict[str, tuple[float, float]] = {
    "coefficients": (0.1, 0.4),
    "exponent": (1.0, 4.0),
    "n": (1.0, 4.0),
    "a": (1.0, 4.0),
    "order": (1.0, 4.0),
    "cell_values": (-1.5, 1.5),
}
FACTORS = (0.5, 1.5)  # what a law may divide by
USUAL_INPUT, USUAL_PARAMETER = (-1.5, 1.5), (0.5, 2.0)
LISTS: dict[str, list[Any]] = {
    "reciprocal": [("false",), ("true",), ("true", "false", "true")],
    "to": [("first", "second", "third")],
}

CRYSTAL = """
[Data]
  [crystal_geometry]
    type = CubicCrystal
    lattice_parameter = 1.0
    slip_directions = 'directions'
    slip_planes = 'planes'
  []
[]
"""
MILLER = "type = Python\n expr = 'MillerIndex(torch.tensor([1.0, 1.0, {}]))'"


def crystal() -> CubicCrystal:
    """Face-centred cubic: the twelve systems of {111}<110>."""
    index = [MillerIndex(torch.tensor(i, dtype=torch.float64)) for i in ([1, 1, 0], [1, 1, 1])]
    return CubicCrystal(Scalar(1.0), *index)


@dataclass(frozen=True)
class Case:
    """A law with its options chosen; `free` parameters are variables, others are constants."""

    name: str
    declared: Declared
    free: bool
    options: Mapping[str, Any]
    absent: frozenset[str]

    @cached_property
    def text(self) -> str:
        """The file."""
        return text_of(self)

    @property
    def model(self) -> Model:
        """The model, built from text as a file would hold it."""
        return _model(self.text)

    @property
    def law(self) -> Law:
        """What the model became."""
        return self.model.body

    @property
    def slots(self) -> dict[str, Input | ParameterSlot]:
        """Every variable that the model reads, and the argument it stands for."""
        law, found = self.law, {}
        for slot in self.declared.inputs:
            for name in several(law.inputs[slot.argument]):
                found[name] = slot
        for slot in self.declared.parameters:
            bound = law.parameters[slot.argument]
            for role, name in bound if isinstance(bound[0], tuple) else (bound,):
                if role == "variable":
                    found[name] = slot
        return found

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The structural shape of every variable that has one."""
        return {name: extents(s.axes) for name, s in self.slots.items() if s.axes}

    def divides(self, slot: Input | ParameterSlot) -> bool:
        """Whether the law divides by the input, or inverts it, as its options say."""
        if self.options.get(f"invert_{slot.argument}"):
            return True
        return (
            isinstance(slot, Input) and slot.many and "true" in self.options.get("reciprocal", ())
        )

    def program(self) -> Program:
        """The traced program, all constants folded."""
        return _program(self.text, tuple(self.shapes.items()))

    def draw(self, seed: int, batch: int, scale: float = 1.0) -> dict[str, Tensor]:
        """Inputs `(batch, *axes, *base)`, the same for the same seed."""
        source = torch.Generator().manual_seed(seed)
        found = {}
        for name, slot in self.slots.items():
            low, high = FACTORS if self.divides(slot) else span(slot)
            shape = (batch, *extents(slot.axes), *slot.kind.base)
            uniform = torch.rand(shape, generator=source, dtype=torch.float64)
            found[name] = (low + (high - low) * uniform) * scale
            if self.divides(slot) and slot.kind is R2:
                found[name] += 4.0 * torch.eye(3)  # far from singular
        return found

    def point(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The law's own function at one point: no trace, no program."""
        law, slots = self.law, self.slots
        values = {n: slots[n].kind(x, sub_batch_ndim=len(slots[n].axes)) for n, x in inputs.items()}

        def parameter(bound: Any) -> Any:
            if isinstance(bound[0], tuple):
                return tuple(parameter(each) for each in bound)
            role, name = bound
            return self.model.values[name] if role == "value" else values[name]

        arguments = {a: looked_up(values, name) for a, name in law.inputs.items()}
        arguments |= {a: parameter(bound) for a, bound in law.parameters.items()}
        result = self.declared.function(**arguments, **law.options)
        results = result if isinstance(result, tuple) else (result,)
        return {name: r.data for name, r in zip(law.outputs, results, strict=True)}

    def plain(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The law over a batch of points."""
        if not inputs:
            return self.point(inputs)
        return torch.vmap(self.point)(inputs)

    def __str__(self) -> str:
        return self.name


def several(names: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """The names of an argument: none, one or many."""
    if names is None:
        return ()
    return names if isinstance(names, tuple) else (names,)


def looked_up(values: Mapping[str, Value], name: str | tuple[str, ...] | None) -> Any:
    """The value of an argument, several for a list."""
    if isinstance(name, tuple):
        return tuple(values[n] for n in name)
    return None if name is None else values[name]


def extents(axes: tuple[str, ...]) -> tuple[int, ...]:
    """The extents of a kind's own axes."""
    return tuple(EXTENTS[a.name] + a.offset for a in map(parsed, axes))


def span(slot: Input | ParameterSlot) -> tuple[float, float]:
    """The range that a variable is drawn from."""
    if isinstance(slot, Input):
        return INPUTS.get(slot.argument, USUAL_INPUT)
    return PARAMETERS.get(slot.argument, USUAL_PARAMETER)


def cases_of(declared: Declared) -> Iterator[Case]:
    """Every choice of options and optional inputs, with free parameters and with constants."""
    axes = [choices(o) for o in declared.options]
    optional = [i.argument for i in declared.inputs if i.name.absent()]
    subsets = itertools.chain.from_iterable(
        itertools.combinations(optional, n) for n in range(len(optional) + 1)
    )
    free = [True, False] if any(p.variable for p in declared.parameters) else [False]
    for absent, chosen, loose in itertools.product(list(subsets), itertools.product(*axes), free):
        options = dict(zip((o.argument for o in declared.options), chosen, strict=True))
        told = [spelled(v) for k, v in options.items() if len(choices_of(declared, k)) > 1]
        told += [f"without {a}" for a in absent] + (
            ["constant"] if len(free) == 2 and not loose else []
        )
        name = " ".join([declared.name, *told])
        case = Case(name, declared, loose, options, frozenset(absent))
        if accepted(case):
            yield case


def accepted(case: Case) -> bool:
    """Whether the law takes this choice of options."""
    try:
        case.plain(case.draw(0, 1))
    except ValueError as error:
        assert "no elastic constants from" in str(error), error
        return False
    return True


def choices(option: Option) -> list[Any]:
    """All values of an option that has few, one of an option that has many."""
    hint = option.type
    if option.data is not None:
        return ["crystal_geometry"]
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    if option.argument in LISTS:
        return LISTS[option.argument]
    if get_origin(hint) is tuple:
        return list(itertools.permutations(get_args(get_args(hint)[0]), 2))
    return {bool: [False, True], float: [8.314], int: [2]}[plain(hint)]


def choices_of(declared: Declared, argument: str) -> list[Any]:
    return choices(next(o for o in declared.options if o.argument == argument))


def spelled(value: Any) -> str:
    """An option's value as a file spells it."""
    if isinstance(value, tuple):
        return " ".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def text_of(case: Case) -> str:
    """The file."""
    declared = case.declared
    fields = {"type": declared.name, **{key(k): spelled(v) for k, v in case.options.items()}}
    tensors: dict[str, str] = {"directions": MILLER.format(0.0), "planes": MILLER.format(1.0)}
    for slot in declared.inputs:
        if slot.many:
            fields[key(slot.argument)] = " ".join(f"term_{i}" for i in range(TERMS))
        elif slot.name.absent() and slot.argument not in case.absent:
            fields[key(slot.argument)] = slot.argument
    for slot in declared.parameters:
        count = 1
        if slot.many:
            labels = declared.labels.get(slot.argument)
            count = len(labels(case.options)) if labels else TERMS
        names = [f"of_{key(slot.argument)}_{i}" for i in range(count)]
        if not (case.free and slot.variable):
            for i, name in enumerate(names):
                tensors[name] = f"type = Python\n expr = '{constant(case, slot, i)}'"
        fields[key(slot.argument)] = " ".join(names)
    law = "\n".join(f"    {k} = '{v}'" for k, v in fields.items())
    blocks = "\n".join(f"  [{name}]\n    {body}\n  []" for name, body in tensors.items())
    return f"[Tensors]\n{blocks}\n[]\n{CRYSTAL}\n[Models]\n  [law]\n{law}\n  []\n[]\n"


def constant(case: Case, slot: ParameterSlot, place: int) -> str:
    """A constant parameter as an expression of a file."""
    sizes = extents(slot.axes)
    source = torch.Generator().manual_seed(zlib.crc32(f"{slot.argument}{place}".encode()))
    low, high = span(slot)
    shape = (*sizes, *slot.kind.base)
    values = low + (high - low) * torch.rand(shape, generator=source, dtype=torch.float64)
    if slot.argument in ("cell_centers", "cell_edges"):
        values = (
            values * 0.2 + torch.arange(sizes[0]) + (0.5 if "centers" in slot.argument else 0.0)
        )
    return f"{slot.kind.__name__}(torch.tensor({values.tolist()}), sub_batch_ndim={len(sizes)})"


@cache
def _model(text: str) -> Model:
    return build(read_text(text), "law")


@cache
def _program(text: str, shapes: tuple[tuple[str, tuple[int, ...]], ...]) -> Program:
    return freeze(trace(_model(text), dict(shapes)), torch.finfo(torch.float64).eps)


def laws() -> list[Declared]:
    """The catalogue."""
    return list(load().values())


def all_cases() -> list[Case]:
    """Every case of every law."""
    return [case for declared in laws() for case in cases_of(declared)]


def corners(case: Case) -> dict[str, Tensor]:
    """Points where a law is most likely to break: zeros, ties, ones, underflow, either sign."""
    slots = case.slots
    movable = [
        n for n, s in slots.items()
        if isinstance(s, Input) and s.argument not in NEVER_ZERO and not case.divides(s)
    ]  # fmt: skip
    base = {n: x[0] for n, x in case.draw(7, 1).items()}
    rows = [base]

    def row(**changed: Tensor) -> None:
        rows.append({**base, **changed})

    for factor in (0.0, -1.0, 1e-3, 2e-3, 1e-9, 1e-170, 5e-324):
        row(**{n: base[n] * factor for n in movable})
    row(**{n: base[n].abs() for n in movable})
    ends = {n: span(s) for n, s in slots.items() if not isinstance(s, Input)}
    for at, factor in itertools.product((0.0, 1 / 6, 1 / 3, 1.0), (0.0, 1.0)):
        changed = {n: torch.full_like(base[n], a + at * (b - a)) for n, (a, b) in ends.items()}
        row(**changed, **{n: base[n] * factor for n in movable})
    for name in movable:
        for number in (0.0, 1.0, -1.0, EPS, 1.0 - EPS):
            row(**{name: torch.full_like(base[name], number)})
    for one, other in itertools.combinations(slots, 2):
        arguments = {slots[one].argument, slots[other].argument}
        alike = base[one].shape == base[other].shape and slots[one].kind is slots[other].kind
        both = isinstance(slots[one], Input) and isinstance(slots[other], Input)
        if both and alike and arguments != never_tie(case.declared):
            row(**{one: base[other]})
            if one in movable:
                row(**{one: -base[other]})
    return {n: torch.stack([r[n] for r in rows]) for n in slots}


EPS = torch.finfo(torch.float64).eps
NEVER_ZERO = {"temperature", "slip_strengths", "time", "time_old"}


def never_tie(declared: Declared) -> set[str]:
    """Two arguments that are never equal: a rate over no time is none."""
    return {"time", "time_old"} if declared.name.endswith("VariableRate") else set()
