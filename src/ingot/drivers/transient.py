"""TransientDriver: a model through prescribed steps; a block in, a Result out."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ingot.drivers.formats.choice import find_unwritable
from ingot.drivers.result import Result
from ingot.drivers.singular import find_singular
from ingot.drivers.supply import (
    Supply,
    crossed,
    find_not_finite,
    loosely_accepted,
    not_finite,
    unsupplied,
)
from ingot.drivers.values import (
    Given,
    Shapes,
    drop_steps,
    find_declared_shapes,
    find_unknown,
    find_wrong_kinds,
    gather_problems,
    list_options,
    read_entries,
    read_list,
    read_model,
    read_tensor,
    spread,
)
from ingot.drivers.write import describe_driver
from ingot.errors import IngotError, Problem, Span, raise_if, warn_of
from ingot.execute import (
    DEFAULT_BACKEND,
    Backend,
    Executor,
    History,
    Transient,
    executor,
    failures,
    require_backend,
)
from ingot.execute.batch_shape import broadcast_shapes, shape_of
from ingot.execute.transient import find_lost_step
from ingot.hit import Block, read_text, unknown_blocks, unknown_fields
from ingot.keywords import check_keywords
from ingot.model import Factory, Model, lag
from ingot.model.given import GivenField
from ingot.options import Newton
from ingot.program import Axis, Program, prepared
from ingot.program.opaque import find_opaque
from ingot.runtime.artifact import Artifact
from ingot.runtime.stub import AOTIModel
from ingot.types import Scalar
from ingot.types.card import Card, Row, show_html, show_text
from ingot.types.history import source_name

__all__ = ["TransientDriver", "transient_driver"]


def _read_again(text: str, device: str) -> "TransientDriver":
    from ingot.drivers.build import build_driver

    tree = read_text(text)
    driver = build_driver(tree, tree.names("Drivers")[0], device=device)
    assert isinstance(driver, TransientDriver)
    return driver


OPTIONS = ("type", "model", "prescribed_time", "time", "save_as")


@check_keywords
@dataclass(eq=False, repr=False)
class TransientDriver:
    """Steps a model through prescribed histories from initial values.

    model: the model; prescribed_time: time of every step; time: the variable that receives it;
    prescribed_<kind>_names, prescribed_<kind>_values: driving variables of a kind, such as SR2;
    ic_<kind>_names, ic_<kind>_values: initial values; save_as: where to write the result.
    """

    block: Block
    factory: Factory
    model: Model
    clock: Given
    batch: tuple[int, ...]
    forces: dict[str, Given]
    starts: dict[str, Given]
    shapes: Shapes
    save_as: Path | None = None
    prepare_seconds: dict[Backend, float] = field(default_factory=dict)
    _runs: dict[Backend, Callable[[], History]] = field(default_factory=dict)
    _warned: bool = False
    _held: dict[str, Tensor] = field(default_factory=dict)

    @staticmethod
    def build(block: Block, factory: Factory) -> "TransientDriver":
        """The driver that a block describes; all that is wrong with it is told at once."""
        known = (*OPTIONS, *list_options(("prescribed_", "ic_")))
        problems = [*unknown_fields(block, known), *unknown_blocks(block)]
        forces = read_list(block, factory, "prescribed_", problems)
        starts = read_list(block, factory, "ic_", problems)
        model = clock = None
        with gather_problems(problems):
            clock = clock_of(block, factory)
        with gather_problems(problems):
            model = read_model(block, factory)
        if model is None or clock is None:
            raise IngotError(problems)
        problems += clock_problems(clock, model, block, forces)
        if clock.name in model.inputs:
            forces = {clock.name: clock, **forces}
        problems += misfits(block, model, forces, starts, clock.batch[0])
        problems += find_lost_time(clock, model)
        problems += find_singular(model)
        now = [*map(drop_steps, forces.values()), *starts.values()]
        shapes = find_declared_shapes(model, factory, now, problems)
        batch = common_batch(now, model, problems)
        raise_if(problems)
        saved = saved_as(block, factory)
        return TransientDriver(block, factory, model, clock, batch, forces, starts, shapes, saved)

    def card(self) -> Card:
        """What a prompt or a notebook shows: what is given, from where it starts, and the model."""
        rows = [Row("model", self.model.name, self.model.type_name)]
        rows.append(Row("time", self.clock.name, f"{self.steps} steps"))
        for role, given in (("given", self.forces), ("start", self.starts)):
            for name, each in given.items():
                kind, shape = type(each.value).__name__, tuple(each.value.data.shape)
                rows.append(Row(role, name, f"{kind}, shape {shape}"))
        rows += [Row("gives", name, kind.__name__) for name, kind in self.model.outputs.items()]
        size = f", batch {self.batch}" if self.batch else ""
        return Card(f"TransientDriver [{self.block.name}]{size}", tuple(rows))

    def __repr__(self) -> str:
        return show_text(self, self.card)

    def _repr_html_(self) -> str:
        return show_html(self, self.card)

    def __reduce__(self) -> Any:
        """A copy, or a pickled driver, is what its file describes: what it runs is not copied."""
        return _read_again, (self.to_hit(), self.factory.device)

    def to_hit(self) -> str:
        """The input file of the driver, its model and all that they are given."""
        return str(describe_driver(self))

    @property
    def steps(self) -> int:
        """How many steps there are, the first of which is given."""
        return self.clock.batch[0]

    @property
    def strict(self) -> bool:
        """Whether what the driver warns of is an error."""
        return self.factory.strict

    @property
    def supply(self) -> Supply:
        """What the model is given."""
        return Supply(self.model, self.factory.tree, self.clock.name, self.forces, self.starts)

    @cached_property
    def rules(self) -> dict[str, tuple[Newton, tuple[str, ...]]]:
        """Of each solve its rules and its unknowns."""
        body = self.model.body
        if isinstance(body, AOTIModel):
            return {s.name: (s, s.unknowns) for s in body.artifact.metadata.solvers}
        solves = self.program.solves
        own = {s.name: (s.newton, tuple(v.name for v in s.unknowns)) for s in solves}
        inside = {
            f"{each.name}.{name}": (rules, rules.unknowns)
            for each in find_opaque(self.program)
            for name, rules in each.function.solves.items()
        }
        return {**own, **inside}

    @cached_property
    def doubts(self) -> tuple[Problem, ...]:
        """What may not be meant: inputs that stay zero, histories lost, values not read."""
        batches = [g.batch[1:] for g in self.forces.values()]
        batches += [g.batch for g in self.starts.values()]
        batches += [v.dynamic_batch.shape for v in self.model.named_values().values()]
        given = (*self.forces.values(), *self.starts.values())
        return (
            *unsupplied(self.supply),
            *crossed(batches, self.batch, self.block.span),
            *find_not_finite(given, self.starts),
        )

    @cached_property
    def program(self) -> Program:
        """The lines of the model, on the structural axes of what it is given."""
        return prepared(self.model, self.shapes)

    @cached_property
    def layout(self) -> tuple[Shapes, dict[str, tuple[str, ...]]]:
        """The extents of each variable's structural axes, and their names where these are known."""
        body = self.model.body
        if isinstance(body, AOTIModel):
            meta = body.artifact.metadata
            shapes = {v.name: v.sub_batch for v in (*meta.inputs, *meta.outputs) if v.sub_batch}
            return {**self.shapes, **shapes}, {}
        axed = [v for v in (*self.program.inputs, *self.program.outputs) if v.axes]
        shapes = {source_name(v.name): shape_of(v, self.program).sizes for v in axed}
        names = {source_name(v.name): tuple(map(_name_axis, v.axes)) for v in axed}
        return {**self.shapes, **shapes}, names

    @cached_property
    def transient(self) -> Transient:
        """What is known before the first step, as contiguous arrays."""
        initial = {n: spread(g, self.shape(n)) for n, g in self.starts.items()}
        prescribed = {n: spread(g, self.shape(n)) for n, g in self.forces.items()}
        for name in prescribed.keys() & initial.keys():
            prescribed[name] = begun_at(initial[name], prescribed[name])
        return Transient(self.steps, prescribed, initial)

    def shape(self, name: str) -> tuple[int, ...]:
        """The structural shape of a variable."""
        return self.shapes.get(lag(name)[0], ())

    def prepare(self, backend: Backend | None = None) -> Callable[[], History]:
        """The transient made ready to run, once for each backend; a compiled model is ready."""
        backend = backend or DEFAULT_BACKEND
        self._refresh()
        if backend not in self._runs:
            start = time.perf_counter()
            ready = self.executor(backend)
            with torch.no_grad():  # a result of a driver has no gradients
                self._runs[backend] = self._arrange(ready)
            self.prepare_seconds[backend] = time.perf_counter() - start
        return self._runs[backend]

    def _refresh(self) -> None:
        """Forget what was made ready with other parameters than the live model has by now."""
        held = {name: value.data for name, value in self.model.named_values().items()}
        if self._held.keys() != held.keys() or not all(
            torch.equal(value, self._held[name]) for name, value in held.items()
        ):
            self._held = {name: value.clone() for name, value in held.items()}
            self._runs.clear()
            for made in ("program", "rules"):
                self.__dict__.pop(made, None)

    def _arrange(self, ready: Executor | Artifact) -> Callable[[], History]:
        """The transient laid out on the device; what comes out lies on the CPU."""
        if self.factory.device == "cpu":
            return ready.arrange(self.transient)
        run = ready.arrange(self.transient.to(self.factory.device))
        return lambda: run().to("cpu")

    def executor(self, backend: Backend) -> Executor | Artifact:
        """What runs: the program by a backend, or a package by its own, by its graphs if asked."""
        body = self.model.body
        require_backend(backend)
        if self.factory.device != "cpu" and backend != "kernel":
            told = f"the back end '{backend}' runs a driver on cpu, not on {self.factory.device}"
            fix = "run it with --device cpu, or with --backend kernel"
            raise IngotError([Problem("wrong-device", told, None, fix)])
        if not isinstance(body, AOTIModel):
            return executor(self.program, backend, device=self.factory.device)
        if backend == "inductor" and body.artifact.backend != backend:
            return body.load(backend)
        return body.artifact

    def label(self, backend: Backend) -> str:
        """What really runs where a backend is asked for: a package has its own."""
        body = self.model.body
        if not isinstance(body, AOTIModel):
            return backend
        return f"{backend if backend == 'inductor' else body.artifact.backend} package"

    def run(self, backend: Backend | None = None) -> Result:
        """All steps; points that fail are NaN and warned of, or an error where strict."""
        result = self.compute(backend)
        warn_of(failures(result.statuses, result.times), strict=self.strict)
        return result

    def compute(self, backend: Backend | None = None) -> Result:
        """All steps; points that fail are NaN and told by the statuses alone."""
        if self.strict or not self._warned:
            warn_of(self.doubts, strict=self.strict)
            self._warned = True
        ready = self.prepare(backend)
        start = time.perf_counter()
        history = ready()
        seconds = time.perf_counter() - start
        initial = {name: given.value.data for name, given in self.starts.items()}
        result = Result(
            self.steps, self.batch, self.transient.prescribed, initial, history.outputs,
            tuple(self.model.inputs), history.statuses, seconds, self.clock.value.data,
            {**self.model.inputs, **self.model.outputs}, *self.layout,
        )  # fmt: skip
        if self.save_as is not None:
            result.save(self.save_as)
        loose = loosely_accepted(self.supply, self.rules, result.statuses)
        lost = not_finite(result, self.rules, self.block.span)
        warn_of((*loose, *lost), strict=self.strict)
        return result


def _name_axis(axis: Axis) -> str:
    return f"{axis.name}{axis.offset:+d}" if axis.offset else axis.name


def transient_driver(factory: Factory, name: str, asked: Span | None = None) -> TransientDriver:
    """The TransientDriver of that name; another type is an error where it was asked for."""
    block = factory.tree.require("Drivers", name, asked)
    if block.type != "TransientDriver":
        message = f"[Drivers/{name}] is no TransientDriver"
        raise IngotError([Problem("which-driver", message, asked, "name one that is")])
    return TransientDriver.build(block, factory)


def saved_as(block: Block, factory: Factory) -> Path | None:
    """Where the result is written; an untrusted file names a place below the working folder."""
    field = block.field("save_as")
    if field is None or not field.string():
        return None
    path = Path(field.string())
    raise_if(find_unwritable(path, field.value_span))
    if not path.resolve().is_relative_to(Path.cwd()):
        message = f"'{path}' lies outside of the working folder, and is not written"
        factory.refuse_untrusted(message, field.value_span)
    return path


def clock_of(block: Block, factory: Factory) -> Given:
    """The time of every step, (steps, *batch), under the name of the variable that receives it."""
    values, name = block.require("prescribed_time"), block.field("time")
    (word,) = read_entries(values) if isinstance(values, GivenField) else (values.string(),)
    value = read_tensor(factory, values, word, Scalar)
    if not value.dynamic_batch.shape:
        message = f"'{word}' is one time, not the time of every step"
        fix = "give a Scalar of shape (steps,) or (steps, *batch)"
        raise IngotError([Problem("shapes-differ", message, values.value_span, fix)])
    if not value.dynamic_batch.shape[0]:
        message, fix = f"'{word}' holds no time", "give the time of the initial step at least"
        raise IngotError([Problem("shapes-differ", message, values.value_span, fix)])
    if not value.data.isfinite().all():
        message = f"'{word}' holds a time that is not finite"
        fix = "look for a division by zero where the times are computed"
        raise IngotError([Problem("wrong-value", message, values.value_span, fix)])
    span = (name or values).value_span
    return Given("t" if name is None else name.string(), value, span, values.value_span)


def clock_problems(
    clock: Given, model: Model, block: Block, forces: Mapping[str, Given]
) -> Iterator[Problem]:
    """Whether the time is received, where the block says by which variable, and given once."""
    if block.field("time") is not None:
        yield from find_unknown([clock], model.inputs, f"[{model.name}] has no input")
    if clock.name in forces:
        message = f"'{clock.name}' is the time, and prescribed as well"
        fix = "remove it from the prescribed variables"
        yield Problem("duplicate-variable", message, forces[clock.name].name_span, fix)


def find_lost_time(clock: Given, model: Model) -> Iterator[Problem]:
    """A step that a compiled model, of less precision than the times, does not see as it is."""
    if isinstance(model.body, AOTIModel) and {clock.name, f"{clock.name}~1"} <= {*model.inputs}:
        dtype = model.body.artifact.dtype
        for problem in find_lost_step(clock.value.data, dtype, clock.name):
            yield replace(problem, span=clock.value_span)


def misfits(
    block: Block, model: Model, forces: Mapping[str, Given], starts: Mapping[str, Given], steps: int
) -> Iterator[Problem]:
    """Values that no variable takes, of another kind, or for another number of steps."""
    variables = {**model.inputs, **model.outputs}
    yield from find_unknown(forces.values(), model.inputs, f"[{model.name}] has no input")
    yield from find_unknown(starts.values(), variables, f"[{model.name}] has no input or output")
    for given in (*forces.values(), *starts.values()):
        name, back = lag(given.name)
        if back and given.name in variables:
            message = f"'{given.name}' is the history of '{name}', which the driver keeps"
            fix = f"write '{name}' instead"
            yield Problem("history-given", message, given.name_span, fix)
    yield from find_wrong_kinds((*forces.values(), *starts.values()), variables, model)
    for given in forces.values():
        if given.batch[:1] != (steps,):
            found = f"{given.batch[0]} steps" if given.batch else "no steps"
            python = isinstance(block.field("prescribed_time"), GivenField)
            clock = "time" if python else "prescribed_time"
            message = f"'{given.name}' has {found}, but '{clock}' has {steps}"
            fix = f"give it the shape ({steps}, ...)"
            yield Problem("shapes-differ", message, given.value_span, fix)


def common_batch(given: list[Given], model: Model, problems: list[Problem]) -> tuple[int, ...]:
    """The batch shape that all values and parameters broadcast to."""
    parts = [(f"'{g.name}'", g.batch, g.value_span) for g in given]
    parts += [
        (f"the parameter '{name}'", value.dynamic_batch.shape, model.span)
        for name, value in model.named_values().items()
    ]
    batch: tuple[int, ...] = ()
    for who, shape, span in parts:
        both = broadcast_shapes(batch, shape)
        if both is None:
            message = f"{who} has the batch shape {shape}, which does not go with {batch}"
            fix = "give all values one batch shape, or none"
            problems.append(Problem("batches-differ", message, span, fix))
        batch = batch if both is None else both
    return batch


def begun_at(start: Tensor, rows: Tensor) -> Tensor:
    """Prescribed rows whose first is an initial value."""
    shape = broadcast_shapes(start.shape, rows.shape[1:])
    assert shape is not None
    first = start.expand(1, *shape)
    return torch.cat([first, rows[1:].expand(-1, *shape)])
