"""Model -> Program: every law is called once, on atoms, and leaves its lines in one graph."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from torch import Tensor

from ingot.catalog import Declared
from ingot.catalog.declare import locate_law
from ingot.errors import IngotError, Problem
from ingot.model import DataTensors, Law, Model, find_buffers, walk
from ingot.program.builder import Axis, Builder, Node, Symbol
from ingot.program.implicit import Solve, close_solve
from ingot.program.layouts import Layout, Layouts, Restart, parse_axis
from ingot.program.opaque import Opaque, Port, WholeFunction, call_opaque
from ingot.program.program import Parameter, Program, Variable
from ingot.program.torch_function import TorchFunction
from ingot.types import Value
from ingot.types.refuse import blamed, misused

__all__ = ["Placed", "Tracer", "trace"]


@dataclass(frozen=True, slots=True)
class Placed:
    """A traced value and the axes it is laid out on, also those along which it does not vary."""

    kind: type[Value]
    nodes: tuple[Node, ...]
    axes: Layout


def trace(
    model: Model,
    shapes: Mapping[str, Sequence[int]] | None = None,
    values: Mapping[str, Value] | None = None,
) -> Program:
    """The program of a model.

    shapes: the structural shape of variables that have one; values: those of parameters that are
    not what they are in the model now, whose sizes scale equations.
    """
    layouts = Layouts(shapes or {})
    for _ in range(1000):
        tracer = Tracer(model, layouts, values or {})
        try:
            program = tracer.program()
        except Restart:
            continue
        if not layouts.name_rest():
            return program
    raise AssertionError("the axes of the model do not settle")


class Tracer:
    """One attempt at a trace: its lines, and what has been learned about axes."""

    def __init__(self, model: Model, layouts: Layouts, values: Mapping[str, Value]) -> None:
        self.model, self._chosen = model, values
        self.layouts = layouts
        self.builder = Builder(layouts.table())
        self.named: list[tuple[str, Variable]] = []
        self.clocks: set[str] = set()
        self._solves: dict[Solve, Node] = {}
        self._parameters: dict[tuple[int, str], tuple[Variable, Value]] = {}
        self._names = {(id(owner), k): name for name, owner, k in walk(model)}
        for name, (owner, k) in find_buffers(model).values():
            self._names[id(owner), k] = name

    def program(self) -> Program:
        """All lines of the model."""
        given = {name: self.given(name, kind) for name, kind in self.model.inputs.items()}
        inputs = [self._make_variable(name, placed) for name, placed in given.items()]
        results = self.run(self.model, given)
        outputs = [self._make_variable(name, results[name]) for name in self.model.outputs]
        parameters = [Parameter(v, value) for v, value in self._parameters.values()]
        extents = {**self.layouts.table(), **self.builder.extents}
        return Program(extents, tuple(inputs), tuple(parameters), tuple(outputs), tuple(self.named))

    def run(self, model: Model, values: Mapping[str, Placed]) -> dict[str, Placed]:
        """The outputs of a model, given values for its inputs."""
        if isinstance(model.body, Law):
            return self._run_law(model, model.body, values)
        return model.body.emit(model, values, self)

    def given(self, name: str, kind: type[Value]) -> Placed:
        """A value that comes from outside."""
        axes = self.layouts.of(name)
        self._learn(axes)
        nodes = self.builder.components("input", (name,), [axes] * math.prod(kind.base))
        return Placed(kind, nodes, axes)

    def value(self, placed: Placed, own: Mapping[str, Axis] = MappingProxyType({})) -> Any:
        """A value to compute with; `own` are axes by the names that the computation has."""
        return placed.kind(tuple(Symbol(self.builder, n, own) for n in placed.nodes))

    def unknown(self, name: str, kind: type[Value], axes: Layout) -> Placed:
        """A placeholder that is given a value later."""
        count = math.prod(kind.base)
        nodes = tuple(self.builder.placeholder("unknown", axes, name) for _ in range(count))
        return Placed(kind, nodes, axes)

    def solve(self, solve: Solve, guesses: Sequence[Node]) -> Node:
        """The node of a solve, under a name of its own where it stands in several places.

        A point may fail in one of them alone, and what became of it is told by solve.
        """
        node = close_solve(self.builder, solve, guesses)
        for place in itertools.count(2):
            if self._solves.setdefault(node.attr, node) is node:
                return node
            named = replace(solve, name=f"{solve.name} ({place})")
            node = close_solve(self.builder, named, guesses)
        raise AssertionError

    def _learn(self, axes: Layout) -> None:
        for axis in axes:
            if axis.name in self.layouts.extents:
                self.builder.add_axis(axis.name, self.layouts.extents[axis.name])

    def _make_variable(self, name: str, placed: Placed) -> Variable:
        return Variable(name, placed.kind, placed.axes, placed.nodes)

    def _read_parameter(self, owner: Model, stored: str) -> Placed:
        value, name = owner.values[stored], self._names[id(owner), stored]
        shape = value.data.shape[value.data.ndim - len(value.base) - value.sub :][: value.sub]
        axes = self.layouts.of(f"parameter {name}", shape)
        self._learn(axes)
        return self._add_parameter(owner, stored, axes)

    def _add_parameter(self, owner: Any, stored: str, axes: Layout) -> Placed:
        value, name = owner.values[stored], self._names[id(owner), stored]
        nodes = self.builder.components("parameter", (name,), [axes] * math.prod(value.base))
        self._parameters[id(owner), stored] = (Variable(name, type(value), axes, nodes), value)
        return Placed(type(value), nodes, axes)

    def list_parameter_numbers(self) -> dict[Node, np.ndarray]:
        """The numbers of every parameter read so far along its axes; of a batch, those between."""
        found: dict[Node, np.ndarray] = {}
        for variable, value in self._parameters.values():
            sizes = [self.builder.extent(a) for a in variable.axes]
            data = self._chosen.get(variable.name, value).data
            numbers = data.detach().double().cpu().reshape(-1, *sizes, len(variable.nodes))
            found |= zip(
                variable.nodes, np.moveaxis(numbers.median(0)[0].numpy(), -1, 0), strict=True
            )
        return found

    def buffer(self, owner: Any, stored: str, own: Mapping[str, Axis]) -> Value:
        """A tensor of `[Data]` as a parameter; its axes are the last of the law that reads it."""
        axes = tuple(own.values())[len(own) - owner.values[stored].sub :]
        return self.value(self._add_parameter(owner, stored, axes), own)

    # laws

    def _run_law(self, model: Model, law: Law, values: Mapping[str, Placed]) -> dict[str, Placed]:
        declared = law.declared
        arguments: dict[str, Any] = {}
        for slot in declared.inputs:
            name = law.inputs[slot.argument]
            if isinstance(name, tuple):
                arguments[slot.argument] = tuple(values[n] for n in name)
            else:
                arguments[slot.argument] = values[name] if name is not None else None
            if slot.argument == "time":
                self.clocks.add(str(name))
        for p in declared.parameters:
            bound = law.parameters[p.argument]
            if isinstance(bound, tuple) and bound and isinstance(bound[0], tuple):
                arguments[p.argument] = tuple(self._read_bound(model, b, values) for b in bound)
            else:
                arguments[p.argument] = self._read_bound(model, bound, values)
        own, files = self._find_axes(model, declared, arguments, law.options)

        def lay_out(slot: Any) -> Layout:
            return (*files, *(_shift(own[a.name], a.offset) for a in map(parse_axis, slot.axes)))

        layouts = [lay_out(output) for output in declared.outputs]
        if declared.opaque:
            slots = (*declared.inputs, *declared.parameters)
            takes = {s.argument: (arguments[s.argument], lay_out(s)) for s in slots}
            outputs = zip(law.outputs, declared.outputs, layouts, strict=True)
            gives = [Port(name, output.kind, axes) for name, output, axes in outputs]
            return self._run_torch(model, declared, takes, law.options, gives, len(files))
        results = self._call(model, declared, arguments, law.options, own)
        outputs = zip(law.outputs, declared.outputs, results, layouts, strict=True)
        return {name: Placed(o.kind, nodes, axes) for name, o, nodes, axes in outputs}

    def _run_torch(
        self, model: Model, declared: Declared, takes: Mapping[str, tuple[Any, Layout]],
        options: Mapping[str, Any], gives: Sequence[Port], shared: int,
    ) -> dict[str, Placed]:  # fmt: skip
        """The outputs of a law of ordinary torch, as an opaque function."""
        given: list[tuple[Port, Placed]] = []
        places: dict[str, Any] = {}
        for argument, (found, axes) in takes.items():
            parts = found if isinstance(found, tuple) else () if found is None else (found,)
            first = len(given)
            given += [(Port(argument, p.kind, axes), p) for p in parts]
            many = tuple(range(first, len(given)))
            places[argument] = many if isinstance(found, tuple) else many[0] if many else None

        def call(tensors: Sequence[Tensor]) -> Sequence[Tensor]:
            arguments = {
                name: tuple(tensors[i] for i in place) if isinstance(place, tuple)
                else None if place is None else tensors[place]
                for name, place in places.items()
            }  # fmt: skip
            try:
                result = declared.function(**arguments, **options)
            except Exception as error:
                raise _translate_error(model, declared, error) from error
            return _require_declared(declared, result)

        code = declared.function.__code__
        content = (declared.function.__module__, declared.function.__qualname__, code.co_code,
                   code.co_consts, sorted(options.items()), sorted(places.items()))  # fmt: skip
        function = TorchFunction(model.name, call, repr(content), 1 + shared)
        return self.opaque(model, function, given, gives, shared)

    def opaque(
        self, model: Model, function: WholeFunction, given: Sequence[tuple[Port, Placed]],
        gives: Sequence[Port], shared: int,
    ) -> dict[str, Placed]:  # fmt: skip
        """The outputs of an opaque function."""
        for port in (*(p for p, _ in given), *gives):
            self._learn(port.axes)
        takes = tuple(port for port, _ in given)
        opaque = Opaque(model.name, function, takes, tuple(gives), shared, model.span)
        results = call_opaque(self.builder, opaque, [placed.nodes for _, placed in given])
        pairs = zip(gives, results, strict=True)
        return {p.name: Placed(p.kind, nodes, p.axes) for p, nodes in pairs}

    def _read_bound(
        self, model: Model, bound: tuple[str, str], values: Mapping[str, Placed]
    ) -> Placed:
        role, name = bound
        return self._read_parameter(model, name) if role == "value" else values[name]

    def _call(
        self, model: Model, declared: Declared, arguments: dict[str, Any], options: dict[str, Any],
        own: Mapping[str, Axis],
    ) -> tuple[tuple[Node, ...], ...]:  # fmt: skip
        """The lines of each output."""
        local = {name.removeprefix("*"): axis for name, axis in own.items()}

        def symbolize(x: Any) -> Any:
            if isinstance(x, tuple):
                return tuple(symbolize(y) for y in x)
            return self.value(x, local) if isinstance(x, Placed) else x

        given = {k: symbolize(v) for k, v in arguments.items()}
        for option in declared.options:
            if option.data is not None:
                given[option.argument] = _Held(self, model.data["_cg"], local)
        try:
            result = declared.function(**{**options, **given})
            return self._require_kinds(declared, result, local)
        except (IngotError, Restart):
            raise
        except Exception as error:
            raise _translate_error(model, declared, error) from error

    def _require_kinds(
        self, declared: Declared, result: Any, own: Mapping[str, Axis]
    ) -> tuple[tuple[Node, ...], ...]:
        """What a law returned, as it was declared."""
        results = _require_declared(declared, result)
        for value, output in zip(results, declared.outputs, strict=True):
            if type(value) is not output.kind:
                found = "None" if value is None else f"a {type(value).__name__}"
                told = f"{declared.name} returns {found}, declared as {output.kind.__name__}"
                fix = f"return a {output.kind.__name__}"
                if value is not None and isinstance(value, Value):
                    fix += f", or declare '-> {type(value).__name__}'"
                raise _refuse_result(declared, told, fix)
        constant = Symbol(self.builder, self.builder.zero, own)
        return tuple(
            tuple(x.node for x in (v.data if isinstance(v.data, tuple) else constant.constants(v)))
            for v in results
        )

    def _find_axes(
        self, model: Model, declared: Declared, arguments: dict[str, Any], options: dict[str, Any]
    ) -> tuple[dict[str, Axis], Layout]:
        """The law's own axes as they are here, and the file's axes left of them."""
        who = f"[{model.name}]"
        slots: list[tuple[tuple[Axis, ...], Placed]] = []
        for slot in (*declared.inputs, *declared.parameters):
            wanted = tuple(parse_axis(a) for a in slot.axes)
            found = arguments[slot.argument]
            for placed in found if isinstance(found, tuple) else (found,):
                if placed is not None:
                    slots.append((wanted, placed))
        every = (*declared.inputs, *declared.parameters, *declared.outputs)
        names = [parse_axis(a).name for s in every for a in s.axes]
        for data in options.values():
            for name, extent in getattr(data, "extents", {}).items():
                if name in names:
                    self.layouts.know(name, extent, who)
        own = {n: self._find_own_axis(n, slots) for n in dict.fromkeys(names)}
        files: list[Layout] = []
        renamed = False
        for wanted, placed in slots:
            cut = max(len(placed.axes) - len(wanted), 0)
            files.append(placed.axes[:cut])
            for want, have in zip(
                wanted[len(wanted) - len(placed.axes[cut:]) :], placed.axes[cut:], strict=True
            ):
                here = _shift(own[want.name], want.offset)
                if have.name.startswith("?"):
                    if self.layouts.extent(have) != self.layouts.extent(here):
                        self.layouts.unify(have, here, who)
                    self.layouts.name(have, here)
                    renamed = True
                else:
                    self.layouts.unify(have, here, who)
        if renamed:
            raise Restart
        self._learn(tuple(own.values()))
        layout = self.layouts.join(files, who)
        for axis in layout:
            met = next((a for a in own.values() if a.name == axis.name), None)
            if met is not None:
                told = self.layouts.sources(axis)
                raise _refuse_law(
                    model, "axes-differ",
                    f"the axis '{axis}' of {told} meets another axis '{met}' in {who}",
                )  # fmt: skip
        return own, layout

    def _find_own_axis(self, name: str, slots: Sequence[tuple[tuple[Axis, ...], Placed]]) -> Axis:
        """An axis of a law as it is here; one of any name is the axis that an argument has there,
        or is called after its extent, so that tables of as many knots share theirs.
        """
        if not name.startswith("*"):
            return Axis(name, self._find_offset(name, slots))
        found: list[Axis] = []
        for wanted, placed in slots:
            have = placed.axes[max(len(placed.axes) - len(wanted), 0) :]
            pairs = zip(wanted[len(wanted) - len(have) :], have, strict=True)
            found += [_shift(axis, -want.offset) for want, axis in pairs if want.name == name]
        if found and all(axis.name.startswith("?") for axis in found):
            extent = self.layouts.extent(found[0])
            self.layouts.know(named := f"{name[1:]} {extent}", extent, named)
            return Axis(named)
        return next((axis for axis in found if axis.name[0] != "?"), Axis(name[1:]))

    def _find_offset(self, name: str, slots: Sequence[tuple[tuple[Axis, ...], Placed]]) -> int:
        """How much longer the axis is here than its name says, from an argument that tells."""
        unnamed: list[tuple[Axis, Axis]] = []
        for wanted, placed in slots:
            have = placed.axes[max(len(placed.axes) - len(wanted), 0) :]
            for want, axis in zip(wanted[len(wanted) - len(have) :], have, strict=True):
                if want.name == name and axis.name == name:
                    return axis.offset - want.offset
                if want.name == name and axis.name.startswith("?"):
                    unnamed.append((want, axis))
        if not unnamed:
            return 0
        want, axis = unnamed[0]
        size = self.layouts.extent(axis) - want.offset
        if name in self.layouts.extents and abs(size - self.layouts.extents[name]) <= 2:
            return size - self.layouts.extents[name]
        self.layouts.extents.setdefault(name, size)
        return 0


def _shift(axis: Axis, offset: int) -> Axis:
    return axis._replace(offset=axis.offset + offset)


class _Held:
    """An object of `[Data]` whose tensors are read as parameters, as they can be promoted."""

    def __init__(self, tracer: Tracer, data: DataTensors, own: Mapping[str, Axis]) -> None:
        self._read = lambda key: tracer.buffer(data, key, own)
        self._data = data.source

    def __getattr__(self, name: str) -> Any:
        key = self._data.stored.get(name)
        return getattr(self._data, name) if key is None else self._read(key)


def _translate_error(model: Model, declared: Declared, error: Exception) -> IngotError:
    """What went wrong inside a law, at its line."""
    if isinstance(error, IngotError):
        return error
    told = isinstance(error, (ValueError, TypeError))  # the law's own words
    message = f"{declared.name}: {'' if told else type(error).__name__ + ': '}{error}"
    fix = None
    wrongly = misused(error)
    if wrongly is not None:
        what, fix = wrongly
        message = f"{declared.name}: {what}"
    return IngotError([Problem("law-failed", message, blamed(error) or model.span, fix)])


def _require_declared(declared: Declared, result: Any) -> tuple[Any, ...]:
    """What a law returned, as many values as it declares."""
    results = result if isinstance(result, tuple) else (result,)
    if len(results) != len(declared.outputs):
        told = f"{declared.name} returns {len(results)} values, not {len(declared.outputs)}"
        fix = "return as many values as 'gives' has names"
        raise _refuse_result(declared, told, fix)
    return results


def _refuse_law(model: Model, code: str, message: str) -> IngotError:
    return IngotError([Problem(code, message, model.span, None)])


def _refuse_result(declared: Declared, message: str, fix: str) -> IngotError:
    return IngotError([Problem("wrong-kind", message, locate_law(declared.function), fix)])
