"""The seven stages, from an input file to native code; each a function from one value to the next.

load -> select -> route -> freeze -> shape -> partition -> lower
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from ingot.errors import Problem, did_you_mean, raise_if
from ingot.hit import Tree, read_text, unknown_sections
from ingot.model import SECTIONS, Factory, Model
from ingot.model.settings import Settings, settings, undeclared
from ingot.package.header import c_name
from ingot.package.target import Target
from ingot.program import Program, Variable, trace
from ingot.program import freeze as frozen_at
from ingot.types import Value, lag

__all__ = [
    "Frozen", "Loaded", "Partitioned", "Routed", "Selected", "Shaped", "freeze", "load",
    "partition", "route", "select", "shape", "shown",
]  # fmt: skip

Shapes = dict[str, tuple[int, ...]]


FEW = 9
"""Up to how many numbers a tensor is written out."""


def shown(kind: str, data: torch.Tensor) -> str:
    """A constant as people read it: its kind, and its numbers or what they range over."""
    if data.ndim == 0:
        return f"{kind} = {data.item():g}"
    rows = [f"{x:g}" for x in data.detach().flatten().tolist()]
    shape = f"shape ({', '.join(map(str, data.shape))})"
    if len(rows) <= FEW:
        return f"{kind} = {' '.join(rows)}" + (f", {shape}" if data.ndim > 1 else "")
    return f"{kind} of {shape}, from {data.min().item():g} to {data.max().item():g}"


def _titled(title: str, values: Mapping[str, Value]) -> list[str]:
    return [f"{title}  {n}: {shown(type(v).__name__, v.data)}" for n, v in values.items()]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A file that was read, and the live model of it that is compiled."""

    tree: Tree
    model: Model
    driver: str | None
    target: Target

    def __str__(self) -> str:
        rows = [f"file  {self.tree.file}, sha256 {self.tree.digest[:12]}"]
        rows += [f"override  {text}" for text in self.tree.overrides]
        rows += [f"driver  {self.driver}"] if self.driver else []
        return "\n".join([*rows, str(self.model)])


def load(
    tree: Tree, name: str, target: Target, driver: str | None = None, *, untrusted: bool = False
) -> Loaded:
    """Build the live model called `name`; `untrusted` as a Factory takes it."""
    raise_if(unknown_sections(tree, SECTIONS))
    raise_if(
        Problem("wrong-value", f"--c-prefix {prefix}: C has no such names", None,
                f"write --c-prefix {c_name(prefix)}")
        for prefix in [target.c_prefix] if prefix and c_name(prefix) != prefix
    )  # fmt: skip
    return Loaded(tree, Factory(tree, untrusted=untrusted).model(name), driver, target)


@dataclass(frozen=True, slots=True)
class Selected:
    """The parameters that stay open, with their values at this moment."""

    loaded: Loaded
    promoted: Mapping[str, Value]

    def __str__(self) -> str:
        count = len(self.loaded.model.named_parameters()) - len(self.promoted)
        rows = _titled("promoted", self.promoted) or ["nothing is promoted"]
        return "\n".join([*rows, f"{count} other parameters keep their values"])


def select(loaded: Loaded) -> Selected:
    """Find the promoted parameters by their qualified names."""
    known = loaded.model.named_parameters()
    raise_if(
        Problem("unknown-parameter", f"[{loaded.model.name}] has no parameter '{name}'", None,
                did_you_mean(name, known) or f"one of: {', '.join(known) or 'none'}")
        for name in loaded.target.parameter if name not in known
    )  # fmt: skip
    return Selected(loaded, {n: known[n] for n in dict.fromkeys(loaded.target.parameter)})


@dataclass(frozen=True, slots=True)
class Routed:
    """Where every value enters: inputs of the model first, promoted parameters after them."""

    selected: Selected
    inputs: tuple[str, ...]
    parameters: tuple[str, ...]

    def __str__(self) -> str:
        kinds = self.selected.loaded.model.inputs
        rows = [f"input      {n}: {kinds[n].__name__}" for n in self.inputs]
        return "\n".join([*rows, *_titled("parameter", self.selected.promoted)])


def route(selected: Selected) -> Routed:
    """Make promoted parameters inputs of the program."""
    return Routed(selected, tuple(selected.loaded.model.inputs), tuple(selected.promoted))


@dataclass(frozen=True, slots=True)
class Frozen:
    """All other parameters: constants of the code, or batched ones passed at every call."""

    routed: Routed
    constants: Mapping[str, Value]
    batched: Mapping[str, Value]

    def __str__(self) -> str:
        rows = [*_titled("constant", self.constants), *_titled("hidden input", self.batched)]
        return "\n".join(rows) or "there is nothing to freeze"


def freeze(routed: Routed) -> Frozen:
    """Fix the values of all parameters that are not promoted."""
    model = routed.selected.loaded.model
    rest = {n: v for n, v in model.named_parameters().items() if n not in routed.parameters}
    batched = {n: v for n, v in rest.items() if v.dynamic_batch.ndim}
    return Frozen(routed, {n: v for n, v in rest.items() if n not in batched}, batched)


@dataclass(frozen=True, slots=True)
class Shaped:
    """The structural shape of every variable that has one."""

    frozen: Frozen
    shapes: Shapes

    @property
    def loaded(self) -> Loaded:
        """The file and model."""
        return self.frozen.routed.selected.loaded

    def __str__(self) -> str:
        model = self.loaded.model
        kinds = {**model.inputs, **model.outputs}
        rows = []
        for name, extents in self.shapes.items():
            base = kinds[name].base if name in kinds else ()
            whole = ", ".join(["*batch", *map(str, extents), *map(str, base)])
            rows.append(f"{name}  structural extents {extents}, an array is ({whole})")
        return "\n".join(rows) or "no variable declares a structural extent"


def shape(frozen: Frozen, driven: Shapes) -> Shaped:
    """Fix structural axes: as the target says, as the file declares, as a driver's values show."""
    loaded = frozen.routed.selected.loaded
    asked = read_text(_as_settings(loaded.target.example_batch_shape), "<command line>")
    said = (settings(loaded.tree), settings(asked))
    for one in said:
        raise_if(undeclared(one, loaded.model))
    return Shaped(frozen, {**driven, **_declared(said[0], loaded), **_declared(said[1], loaded)})


def _as_settings(shapes: Sequence[str]) -> str:
    """The `[Settings]` that the command line's shapes stand for."""
    pairs = [s.partition("=") for s in shapes if "=" in s]
    single = [f"    {name} = '{shape}'" for name, _, shape in pairs]
    shared = [f"  example_batch_shape = '{s}'" for s in shapes if "=" not in s]
    block = ["  [example_batch_shape]", *single, "  []"] if single else []
    return "\n".join(["[Settings]", *shared, *block, "[]", ""])


def _declared(said: Settings, loaded: Loaded) -> Shapes:
    names = dict.fromkeys(lag(n)[0] for n in (*loaded.model.inputs, *loaded.model.outputs))
    shapes = {n: said.structural(n) for n in names}
    return {n: s for n, s in shapes.items() if s}


@dataclass(frozen=True, slots=True)
class Partitioned:
    """The program, the derivative pairs asked of it, and the names it shows to the outside."""

    shaped: Shaped
    program: Program
    pairs: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        from ingot.program.partition import partition as cut

        rows: list[str] = []
        for i, segment in enumerate(cut(self.program)):
            title = f"implicit [{segment.name}]" if segment.kind == "implicit" else "forward"
            rows.append(f"segment {i}  {title}, {segment.program.count()} operations")
            rows += [f"  {row}" for row in str(segment.program).splitlines()]
        return "\n".join([*rows, *(f"slope  {y}:{x}" for y, x in self.pairs)])


def partition(shaped: Shaped) -> Partitioned:
    """Trace the model, rename what is to be renamed, and resolve the derivative pairs."""
    target = shaped.loaded.target
    traced = trace(shaped.loaded.model, shaped.shapes)
    epsilon = torch.finfo(target.precision).eps
    program = frozen_at(traced, epsilon, shaped.frozen.routed.parameters)
    for v in (*program.inputs, *program.outputs):
        for axis in v.axes:
            program.graph.extent(axis)  # refuses one that nothing gives
    names = shaped.frozen.routed.parameters
    ordered = sorted(program.parameters, key=lambda p: p.variable.name not in names)
    promoted = sum(p.variable.name in names for p in ordered)
    program = _renamed(replace(program, parameters=tuple(ordered)), target, names)
    return Partitioned(shaped, program, _pairs(program, promoted, target))


def _renamed(program: Program, target: Target, promoted: Sequence[str]) -> Program:
    problems: list[Problem] = []

    def table(flag: str, rules: Sequence[str], known: Sequence[str]) -> dict[str, str]:
        found = {}
        for rule in rules:
            old, colon, new = rule.partition(":")
            if not colon or not new:
                problems.append(Problem("wrong-value", f"{flag} {rule}", None, "write OLD:NEW"))
            elif old not in known:
                message = f"{flag}: there is no '{old}'"
                problems.append(Problem("unknown-name", message, None, did_you_mean(old, known)))
            else:
                found[old] = new
        names = [found.get(n, n) for n in known]
        twice = {n for n in names if names.count(n) > 1}
        problems.extend(
            Problem("duplicate-variable", f"{flag}: two are called '{n}'", None, "choose another")
            for n in sorted(twice)
        )
        return found

    inputs = table("--rename-input", target.rename_input, [v.name for v in program.inputs])
    outputs = table("--rename-output", target.rename_output, [v.name for v in program.outputs])
    parameters = table("--rename-parameter", target.rename_parameter, promoted)
    raise_if(problems)

    def named(v: Variable, names: Mapping[str, str]) -> Variable:
        return replace(v, name=names.get(v.name, v.name))

    return replace(
        program,
        inputs=tuple(named(v, inputs) for v in program.inputs),
        outputs=tuple(named(v, outputs) for v in program.outputs),
        parameters=tuple(
            replace(p, variable=named(p.variable, parameters)) for p in program.parameters
        ),
    )


def _pairs(program: Program, count: int, target: Target) -> tuple[tuple[str, str], ...]:
    outputs = [v.name for v in program.outputs]
    inputs = [v.name for v in program.inputs]
    promoted = [p.variable.name for p in program.parameters[:count]]
    found: list[tuple[str, str]] = []
    problems: list[Problem] = []
    for text in target.derivative:
        left, colon, right = text.partition(":")
        if not colon:
            problems.append(Problem("wrong-value", f"-d {text}", None, "write OUT:IN"))
            continue
        for side, word, known in (("output", left, outputs), ("input", right, inputs + promoted)):
            if word and word not in known:
                message = f"-d {text}: there is no {side} '{word}'"
                problems.append(Problem("unknown-name", message, None, did_you_mean(word, known)))
        found += [
            (y, x)
            for y in ([left] if left else outputs)
            for x in ([right] if right else inputs + promoted)
        ]
    raise_if(problems)
    return tuple(dict.fromkeys(found))
