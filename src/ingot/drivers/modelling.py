"""Transients and files from Python: `transient` makes the driver that a block of a file makes."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any, Literal, cast

import torch
from torch import Tensor

from ingot.drivers.build import Checker, build_driver
from ingot.drivers.control import CONTROLLED, apply_control, require_shape, spread_components
from ingot.drivers.transient import TransientDriver
from ingot.errors import IngotError, Problem, Span, caller, did_you_mean, raise_if
from ingot.execute.devices import require_device
from ingot.hit import Block, Tree, read, read_text
from ingot.keywords import check_keywords
from ingot.model import Factory, Model, build, lag
from ingot.model.given import GivenField, describe, give
from ingot.model.settings import Settings, Shape
from ingot.program.modelling import take_in_providers
from ingot.types import Scalar, Value
from ingot.types.components import list_component_names, list_scales

__all__ = ["Control", "from_hit", "transient"]

Control = Literal["strain", "stress", "uniaxial"]


@check_keywords
def transient(
    model: Model, *, time: Any, initial: Mapping[str, Any] | None = None,
    control: Control | None = None, inputs: Mapping[str, Any] | None = None,
    time_variable: str | None = None, save_as: str | Path | None = None, strict: bool = False,
    device: str = "cpu", name: str = "driver", **named: Any,
) -> TransientDriver:  # fmt: skip
    """A driver that takes a model through prescribed steps; its `run()` gives a Result.

    time: of every step, (steps, *batch), the first of which is given
    initial: values before the first step, by name, (*batch, *axes, *base)
    inputs and other keywords: what each input is, (steps, *batch, *axes, *base), a constant without
    the first axes, or a dict of the tensor's components, {"xx": ..., "xy": ...}
    strain, stress: of a model that reads `strain` and gives `stress`; components of either may be
    prescribed, and the others are solved for. control="uniaxial" prescribes xx by a history of
    numbers and leaves all other stresses zero
    time_variable: the input that receives the time, t unless told
    save_as, strict, device: as a block and `ingot run` take them; name: what the driver is called
    """
    span = caller()
    if not isinstance(model, Model):
        message = f"transient should be given a model, not {describe(model)}"
        fix = "give what a law of ingot.laws, compose or implicit returns"
        raise IngotError([Problem("wrong-value", message, span, fix)])
    model = take_in_providers(model)
    clock = _read_time(GivenField("time", time, span))
    initial = _require_names("initial", initial, span)
    histories = {**_require_names("inputs", inputs, span), **named}
    steps = clock.data.shape[0]
    keywords = [n for n, p in signature(transient).parameters.items() if p.kind is p.KEYWORD_ONLY]
    known = _list_drivable(model, control)
    raise_if(_find_unknown(model, histories, known, "input", span, keywords))
    model, histories = apply_control(model, histories, control, steps, span)
    problems: list[Problem] = []
    forces = dict(_values(model, histories, {**model.inputs}, steps, span, problems))
    kinds = {**model.inputs, **model.outputs}
    starts = dict(_values(model, initial, kinds, None, span, problems))
    raise_if(problems)
    values: dict[str, Any] = {"model": model, "prescribed_time": clock, "time": time_variable}
    values |= {**_lists("prescribed_", forces), **_lists("ic_", starts)}
    values["save_as"] = None if save_as is None else str(save_as)
    factory = Factory(Tree((), ()), strict=strict)
    factory.device = str(require_device(device))
    factory.settings = Settings(shapes={n: Shape((), s) for n, s in model.shapes.items()})
    block = give("TransientDriver", values, span, name, "Drivers")
    driver = TransientDriver.build(cast(Block, block), factory)
    raise_if(doubt for doubt in driver.doubts if doubt.code == "unprescribed-input")
    return driver


def _require_names(option: str, given: Any, span: Span | None) -> Mapping[str, Any]:
    """Values by the names of variables, none where nothing is given."""
    if given is None or isinstance(given, Mapping):
        return given or {}
    fix = f'write {option}={{"name": value}}'
    raise GivenField(option, given, span).wrong("a dict of values by name", fix=fix)


def _list_drivable(model: Model, control: str | None) -> list[str]:
    """The inputs of a model, and what control lets stand in for them."""
    free = [n for n in CONTROLLED if n not in model.inputs and (control or n in model.outputs)]
    return [*model.inputs, *free]


def _find_unknown(
    model: Model, names: Iterable[str], known: Collection[str], role: str, span: Span | None,
    keywords: Sequence[str] = (),
) -> Iterator[Problem]:  # fmt: skip
    for name in (each for each in names if each not in known):
        current = [each for each in known if not lag(each)[1]]
        meant = did_you_mean(str(name), [*current, *keywords])
        fix = meant or f"choose one of: {', '.join(current)}"
        message = f"[{model.name}] has no {role} '{name}'"
        yield Problem("unknown-variable", message, span, fix)


def _read_time(field: GivenField) -> Scalar:
    """The time of every step, which goes on."""
    value = field.value
    data = field.tensor(value.data if isinstance(value, Scalar) else value)
    if data.ndim == 0 or not len(data):
        raise field.wrong("the time of every step", fix="give an array, (steps,) or (steps, batch)")
    if len(data) == 1:
        fix = "give two times at least: the first is where it starts, and nothing is computed there"
        raise field.wrong("the time of every step", fix=fix)
    if not data.isfinite().all():
        step = int((~data.isfinite()).reshape(len(data), -1).any(1).int().argmax())
        message = f"the time of step {step} is not finite"
        raise IngotError([Problem("wrong-value", message, field.span, "give finite times")])
    falls = (data.diff(dim=0) < 0).flatten(1).any(1) if data.ndim > 1 else data.diff() < 0
    if falls.any():
        step = int(falls.int().argmax()) + 1
        before, after = (float(data[i].flatten()[0]) for i in (step - 1, step))
        message = f"the time goes back at step {step}: {after:g} follows {before:g}"
        raise IngotError([Problem("time-descends", message, field.span, "sort the times")])
    return Scalar(data)


def _values(
    model: Model, given: Mapping[str, Any], kinds: Mapping[str, type[Value]], steps: int | None,
    span: Span | None, problems: list[Problem],
) -> Iterator[tuple[str, Value]]:  # fmt: skip
    """Each value as one of its variable's kind, at every step where there are any."""
    role = "input" if steps is not None else "input or output"
    problems += _find_unknown(model, given, kinds, role, span)
    for name in (each for each in given if each in kinds):
        field = GivenField(name, given[name], span)
        try:
            yield name, _read_value(field, kinds[name], model, steps)
        except IngotError as error:
            problems += error.problems


def _read_value(field: GivenField, kind: type[Value], model: Model, steps: int | None) -> Value:
    value, sub = field.value, len(model.shapes.get(lag(field.name)[0], ()))
    if isinstance(value, Mapping):
        data = _join_components(field, kind)
        sub = 0
    else:
        data, own = field.constant(kind, value)
        sub = own if isinstance(value, Value) else sub
    require_shape(field, data, kind, steps)
    rank = len(kind.base) + sub
    sub = min(sub, data.ndim - len(kind.base))
    if steps is not None and data.ndim <= rank:
        data = data.expand(steps, *data.shape)
    return kind(data, sub_batch_ndim=sub)


def _join_components(field: GivenField, kind: type[Value]) -> Tensor:
    """Components of a tensor by name, as they are stored; each (steps, *batch) or a number."""
    names = list_component_names(kind)
    parts: dict[str, Tensor] = {}
    for name, value in field.value.items():
        if name not in names:
            fix = did_you_mean(str(name), names) or f"choose one of: {', '.join(names)}"
            message = f"'{field.name}' is a {kind.__name__}, which has no component {name!r}"
            raise IngotError([Problem("unknown-variable", message, field.span, fix)])
        parts[name] = GivenField(f"{field.name}.{name}", value, field.span).tensor(value)
    missing = [name for name in names if name not in parts]
    if missing:
        message = f"'{field.name}' says nothing of {', '.join(missing)}"
        raise IngotError([Problem("missing-option", message, field.span, "give each a number")])
    spread = spread_components(f"'{field.name}'", parts, field.span)
    joined = torch.stack([spread[name] for name in names], -1)
    scales = torch.as_tensor(list_scales(kind), dtype=torch.float64)
    return joined.reshape(*joined.shape[:-1], *kind.base) * scales


def _lists(prefix: str, given: Mapping[str, Value]) -> dict[str, Any]:
    """The lists of a driver's block, kind by kind."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        stem = f"{prefix}{type(value).__name__}"
        found.setdefault(f"{stem}_names", []).append(name)
        found.setdefault(f"{stem}_values", []).append(value)
    return found


@check_keywords
def from_hit(
    source: str | Path | Tree, name: str | None = None, overrides: Sequence[str] = ()
) -> Model | TransientDriver | Checker:
    """The model or driver of an input file, given by its path or as text.

    name: of a block in [Models] or, where none is called so, in [Drivers]; without one, the only
    driver or, where there is none, the only model that no other block refers to
    """
    tree = source if isinstance(source, Tree) else _read(source, overrides)
    if name is None:
        drivers = tree.names("Drivers")
        return (
            build_driver(tree, drivers[0]) if len(drivers) == 1 else build(tree, _find_root(tree))
        )
    if tree.find("Models", name) is None and tree.find("Drivers", name) is not None:
        return build_driver(tree, name)
    return build(tree, name)


def _read(source: str | Path, overrides: Sequence[str]) -> Tree:
    text = str(source)
    is_text = isinstance(source, str) and ("\n" in text or text.lstrip()[:1] in ("", "["))
    return read_text(text, overrides=overrides) if is_text else read(Path(text), overrides)


def _find_root(tree: Tree) -> str:
    """The only model of a file without drivers that no other block refers to."""
    drivers = tree.names("Drivers")
    sections = ("Models", "EquationSystems", "Drivers")
    blocks = [block for part in sections for s in tree.section(part) for block in s.blocks]
    read_by = {
        word.partition(".")[0]
        for block in blocks
        for field in block.fields
        if field.name != "type"
        for word in field.text.replace(";", " ").split()
        if word != block.name
    }
    roots = [found for found in tree.names("Models") if found not in read_by]
    if drivers or len(roots) != 1:
        names = (*drivers, *roots) or tree.names("Models")
        count = "several models or drivers, and which is meant is not said" if names else "no model"
        message = f"the file describes {count}"
        fix = f"give name=, one of: {', '.join(names)}" if names else "give a file with [Models]"
        raise IngotError([Problem("which-model", message, caller(), fix)])
    return roots[0]
