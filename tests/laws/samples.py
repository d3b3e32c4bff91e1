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
from ingot.catalog.declare import REQUIRED
from ingot.errors import IngotError
from ingot.hit import read_text
from ingot.model import Law, Model, build
from ingot.options import fits, plain
from ingot.program import Program, freeze, trace
from ingot.program.layouts import parse_axis
from ingot.types import R2, MillerIndex, Scalar, Value
from tests.laws import ranges

EXTENTS = {"slip": 12, "driven": 12, "cell": 6, "*column": 3}
USUAL_EXTENT = 4
TERMS = 3

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


@dataclass(frozen=True, eq=False)
class Case:
    """A law with its options chosen; `free` parameters are variables, others are constants."""

    name: str
    declared: Declared
    free: bool
    options: Mapping[str, Any]
    absent: frozenset[str]
    seed: int = 0
    """Of its constants."""

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

    def program(self, dtype: torch.dtype = torch.float64) -> Program:
        """The traced program, all constants folded."""
        return _program(self.text, tuple(self.shapes.items()), dtype)

    def span(self, slot: Input | ParameterSlot) -> tuple[float, float]:
        """The range that a variable is drawn from."""
        if isinstance(slot, ParameterSlot):
            return lookup(self.declared, slot.argument, ranges.PARAMETERS, ranges.USUAL_PARAMETER)
        anywhere = lookup(self.declared, slot.argument, ranges.ANYWHERE, ranges.USUAL_INPUT)
        usual = ranges.FACTOR if self.divides(slot) else anywhere
        return lookup(self.declared, slot.argument, ranges.WITHIN, usual)

    def is_movable(self, slot: Input | ParameterSlot) -> bool:
        """Whether the law is defined for any number in this place."""
        if isinstance(slot, ParameterSlot) or self.divides(slot):
            return False
        bounds = (ranges.WITHIN, dict.fromkeys(ranges.INVERTIBLE, True))
        return not any(lookup(self.declared, slot.argument, table, None) for table in bounds)

    def draw(self, seed: int, batch: int) -> dict[str, Tensor]:
        """Inputs `(batch, *axes, *base)`, the same for the same seed."""
        source = torch.Generator().manual_seed(seed)
        found = {}
        for name, slot in self.slots.items():
            low, high = self.span(slot)
            shape = (batch, *extents(slot.axes), *slot.kind.base)
            uniform = torch.rand(shape, generator=source, dtype=torch.float64)
            found[name] = low + (high - low) * uniform
            if slot.kind is R2 and not self.is_movable(slot):
                found[name] = R2.identity().data + 0.2 * found[name]
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
    return tuple(EXTENTS.get(a.name, USUAL_EXTENT) + a.offset for a in map(parse_axis, axes))


def lookup(declared: Declared, argument: str, table: Mapping[str, Any], usual: Any) -> Any:
    """What a table says of an argument of this law, or else of any law."""
    one = f"{declared.function.__name__}.{argument}"
    return table.get(one, table.get(argument, usual))


def cases_of(declared: Declared) -> Iterator[Case]:
    """Every choice of options and optional inputs, with free parameters and with constants."""
    axes = [choices(declared, o) for o in declared.options]
    optional = [i.argument for i in declared.inputs if i.name.absent()]
    subsets = itertools.chain.from_iterable(
        itertools.combinations(optional, n) for n in range(len(optional) + 1)
    )
    free = [True, False] if any(p.variable for p in declared.parameters) else [False]
    for absent, chosen, loose in itertools.product(list(subsets), itertools.product(*axes), free):
        options = dict(zip((o.argument for o in declared.options), chosen, strict=True))
        told = [
            spelled(value)
            for value, among in zip(chosen, axes, strict=True)
            if len(among) > 1 or not isinstance(value, int | float | str)
        ]
        told += [f"without {a}" for a in absent] + (
            ["constant"] if len(free) == 2 and not loose else []
        )
        name = " ".join([declared.name, *told])
        case = Case(name, declared, loose, options, frozenset(absent))
        if is_accepted(case):
            yield case


def is_accepted(case: Case) -> bool:
    """Whether the law takes this choice of options."""
    try:
        case.point({name: x[0] for name, x in case.draw(0, 1).items()})
    except (ValueError, IngotError):
        return False
    return True


def choices(declared: Declared, option: Option) -> list[Any]:
    """All values of an option that has few, some of an option that has many."""
    hint = plain(option.type)
    if option.data is not None:
        return ["crystal_geometry"]
    listed = lookup(declared, option.argument, ranges.OPTIONS, None)
    if listed is not None:
        return listed
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    if get_origin(hint) is tuple:
        return _word_lists(declared, option, get_args(get_args(hint)[0]))
    if hint is bool:
        return [False, True]
    if option.default in (REQUIRED, None):
        return [ranges.USUAL_OPTION[hint]]
    other = option.default + (1 if hint is int else 0.2)
    return [option.default, other] if fits(other, option.type) else [option.default]


def _word_lists(declared: Declared, option: Option, words: tuple[str, ...]) -> list[Any]:
    """The lists of two or three words that the law takes, all else at its first choice."""
    others = {o.argument: choices(declared, o)[0] for o in declared.options if o is not option}
    lists = itertools.chain(itertools.permutations(words, 2), itertools.combinations(words, 3))
    cases = (Case("", declared, False, {**others, option.argument: x}, frozenset()) for x in lists)
    return [case.options[option.argument] for case in cases if is_accepted(case)]


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
            fields[key(slot.argument)] = " ".join(f"term_{slot.argument}{i}" for i in range(TERMS))
        elif slot.name.absent() and slot.argument not in case.absent:
            fields[key(slot.argument)] = slot.argument
    for slot in declared.parameters:
        count = 1
        if slot.many:
            labels = declared.labels.get(slot.argument)
            count = len(labels(case.options)) if labels else TERMS
        names = [f"of_{key(slot.argument)}_{i}" for i in range(count)]
        if slot.kind is Scalar and not slot.axes and not (case.free and slot.variable):
            names = [repr(constant(case, slot, i).item()) for i in range(count)]
        elif not (case.free and slot.variable):
            for i, name in enumerate(names):
                tensors[name] = f"type = Python\n expr = '{expression(case, slot, i)}'"
        fields[key(slot.argument)] = " ".join(names)
    law = "\n".join(f"    {k} = '{v}'" for k, v in fields.items())
    blocks = "\n".join(f"  [{name}]\n    {body}\n  []" for name, body in tensors.items())
    return f"[Tensors]\n{blocks}\n[]\n{CRYSTAL}\n[Models]\n  [law]\n{law}\n  []\n[]\n"


def expression(case: Case, slot: ParameterSlot, place: int) -> str:
    """A constant parameter as an expression of a file."""
    values = constant(case, slot, place).tolist()
    return f"{slot.kind.__name__}(torch.tensor({values}), sub_batch_ndim={len(slot.axes)})"


def constant(case: Case, slot: ParameterSlot, place: int) -> Tensor:
    """The numbers of a constant parameter."""
    sizes = extents(slot.axes)
    seed = zlib.crc32(f"{slot.argument}{place}".encode()) + case.seed
    source = torch.Generator().manual_seed(seed)
    low, high = case.span(slot)
    shape = (*sizes, *slot.kind.base)
    values = low + (high - low) * torch.rand(shape, generator=source, dtype=torch.float64)
    if slot.argument in ranges.ASCENDING:
        step = torch.arange(sizes[0]) - (sizes[0] - 1) / 2
        values = 0.2 * values + (step - 0.5 if "edges" in slot.argument else step)
    return values


@cache
def _model(text: str) -> Model:
    return build(read_text(text), "law")


@cache
def _program(
    text: str, shapes: tuple[tuple[str, tuple[int, ...]], ...], dtype: torch.dtype
) -> Program:
    return freeze(trace(_model(text), dict(shapes)), torch.finfo(dtype).eps)


def laws() -> list[Declared]:
    """The catalogue."""
    return list(load().values())


@cache
def all_cases() -> tuple[Case, ...]:
    """Every case of every law."""
    return tuple(case for declared in laws() for case in cases_of(declared))


def corners(case: Case) -> dict[str, Tensor]:
    """Points where a law is most likely to break: zeros, ties, ones, underflow, either sign."""
    slots = case.slots
    movable = [n for n, s in slots.items() if case.is_movable(s)]
    base = {n: x[0] for n, x in case.draw(7, 1).items()}
    rows = [base]

    def row(**changed: Tensor) -> None:
        rows.append({**base, **changed})

    for factor in (0.0, -1.0, 1e-3, 2e-3, 1e-9, 1e-170, 5e-324):
        row(**{n: base[n] * factor for n in movable})
    row(**{n: base[n].abs() for n in movable})
    ends = {n: case.span(s) for n, s in slots.items() if not isinstance(s, Input)}
    for at, factor in itertools.product((0.0, 1 / 6, 1 / 3, 1.0), (0.0, 1.0)):
        changed = {n: torch.full_like(base[n], a + at * (b - a)) for n, (a, b) in ends.items()}
        row(**changed, **{n: base[n] * factor for n in movable})
    for name in movable:
        for number in (0.0, 1.0, -1.0, EPS, 1.0 - EPS):
            row(**{name: torch.full_like(base[name], number)})
    for one, other in itertools.combinations(slots, 2):
        alike = base[one].shape == base[other].shape and slots[one].kind is slots[other].kind
        both = isinstance(slots[one], Input) and isinstance(slots[other], Input)
        low, high = case.span(slots[one])
        inside = bool(((base[other] >= low) & (base[other] <= high)).all())
        if both and alike and (one in movable or inside):
            row(**{one: base[other]})
            if one in movable:
                row(**{one: -base[other]})
    return {n: torch.stack([r[n] for r in rows]) for n in slots}


EPS = torch.finfo(torch.float64).eps
