"""A live Model -> what evaluates it: an artifact over the interpreter, all parameters promoted."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor

from ingot.errors import IngotError, Problem
from ingot.execute.interpret import Interpreter
from ingot.execute.status import Status
from ingot.execute.transient import History, Transient
from ingot.graphs.calls import Layouts
from ingot.model import Model, find_buffers, lag, spell_parameters, walk
from ingot.package.lower import describe_parameter, describe_solvers, describe_variable
from ingot.package.metadata import Block, Metadata, Origin
from ingot.program import Program, freeze, trace, with_adjoint, with_jacobian
from ingot.program.boundaries import has_boundaries
from ingot.runtime.artifact import Artifact
from ingot.types import Value
from ingot.types.spellings import with_root
from ingot.types.variables import VariableSpec

__all__ = ["InterpretBackend", "evaluator_of", "specify"]

Pair = tuple[str, str]
Outputs = dict[str, Tensor]
Shapes = Mapping[str, tuple[int, ...]]

MAX_EVALUATORS = 16  # of one model: extents that keep changing must not fill memory


class InterpretBackend:
    """A program run by torch, differentiated where it is asked for; nothing is compiled."""

    name = "interpret"
    has_adjoints = True

    def __init__(self, program: Program, dtype: torch.dtype, device: torch.device) -> None:
        self._program, self._dtype, self.device = program, dtype, device
        given = tuple(p.variable for p in program.parameters)
        # values of parameters come with every call, as inputs do
        self._called = replace(program, inputs=(*program.inputs, *given), parameters=())
        self._names = [v.name for v in self._called.inputs]
        self._outputs = [v.name for v in program.outputs]
        self._runs: dict[Any, Interpreter] = {}
        self.sums = frozenset(self._outputs) if has_boundaries(program) else frozenset[str]()

    def _run(
        self, key: Any, make: Callable[[Program], Program], given: Mapping[str, Tensor]
    ) -> tuple[Outputs, Sequence[Status]]:
        if key not in self._runs:
            self._runs[key] = Interpreter(make(self._called), dtype=self._dtype)
        with torch.no_grad():
            outputs, statuses = self._runs[key](given)
        return outputs, statuses

    def _given(self, values: Sequence[Tensor]) -> dict[str, Tensor]:
        return {n: x.detach() for n, x in zip(self._names, values, strict=True)}

    def values(self, values: Sequence[Tensor], key: Layouts) -> tuple[Outputs, Sequence[Status]]:
        """The outputs."""
        return self._run("values", lambda program: program, self._given(values))

    def make_fast_call(self, values: Sequence[Tensor], key: Layouts) -> None:
        """There is none."""

    def slopes(
        self, values: Sequence[Tensor], key: Layouts, by: Collection[str]
    ) -> tuple[Outputs, dict[Pair, Tensor], Sequence[Status]]:
        """The outputs and blocks."""
        pairs = tuple((y, x) for y in self._outputs for x in self._names if x in by)
        found, told = self._run(pairs, partial(with_jacobian, pairs=pairs), self._given(values))
        return found, {(y, x): found.pop(f"{y}:{x}") for y, x in pairs}, told

    def pull(
        self, values: Sequence[Tensor], cotangents: Mapping[str, Tensor]
    ) -> tuple[Outputs, Outputs, Sequence[Status]]:
        """The outputs and adjoints, of those outputs that have cotangents."""
        outputs = tuple(y for y in self._outputs if y in cotangents)
        make = partial(with_adjoint, outputs=outputs, inputs=self._names)
        bars = {f"a.{y}": cotangents[y].detach() for y in outputs}
        found, told = self._run(("adjoints", outputs), make, {**self._given(values), **bars})
        return found, {x: found.pop(f"a.{x}") for x in self._names}, told

    def arrange(self, transient: Transient, promoted: Sequence[Tensor]) -> Callable[[], History]:
        """All steps, one after another."""
        held = zip(self._program.parameters, promoted, strict=True)
        parameters = tuple(
            replace(p, value=type(p.value)(x, sub_batch_ndim=p.value.sub)) for p, x in held
        )
        fixed = replace(self._program, parameters=parameters)
        return Interpreter(fixed, dtype=self._dtype).arrange(transient)

    def under(self, meta: Metadata) -> "InterpretBackend":
        """A live model has the rules of its file."""
        return self


def evaluator_of(model: Model, inputs: Any) -> Artifact:
    """What evaluates a model at such inputs, holding the tensors that it has now.

    It is traced once for all calls whose structural axes, precision and device are the same.
    """
    shapes = dict(model.shapes)
    if isinstance(inputs, Mapping):
        for name, value in inputs.items():
            if isinstance(value, Value) and value.sub:
                shapes[lag(name)[0]] = tuple(value.sub_batch.shape)
    tensors = _find_tensors(model)
    lost = next((n for n, (x, _) in tensors.items() if x.is_meta), None)
    if lost is not None or model.device.type == "meta":
        told = f"'{lost or model.name}' is on the meta device, which holds no numbers"
        fix = "load the model again; or call to_empty(device='cpu') and load_state_dict of it"
        raise IngotError([Problem("wrong-device", told, model.span, fix)])
    structure = tuple((n, x.shape[x.ndim - rank :]) for n, (x, rank) in tensors.items())
    key = (tuple(sorted(shapes.items())), structure, model.dtype, model.device)
    own = model._evaluators
    with own.lock:
        if key not in own.table:
            if len(own.table) >= MAX_EVALUATORS:
                own.table.clear()
            own.table[key] = _build_evaluator(model, shapes)
        evaluator: Artifact = own.table[key]
        read = [p.variable.name for p in evaluator.metadata.parameters]
        evaluator.hold({n: tensors[n][0] for n in read})
    own.last.evaluator = evaluator
    return evaluator


def _find_tensors(model: Model) -> dict[str, tuple[Tensor, int]]:
    """The tensors of all parameters and of `[Data]`, and how many of their axes are no batch."""
    held = [(name, owner, key) for name, owner, key in walk(model)]
    held += [
        (name, owner, key) for name, (owner, key) in dict(find_buffers(model).values()).items()
    ]
    return {name: owner.values.tensor(key) for name, owner, key in held}


def _trace(model: Model, shapes: Shapes) -> Program:
    traced = trace(model, shapes)
    names = [p.variable.name for p in traced.parameters]
    return freeze(traced, torch.finfo(model.dtype).eps, names)


def _build_evaluator(model: Model, shapes: Shapes) -> Artifact:
    if model.dtype not in (torch.float64, torch.float32):
        told = f"[{model.name}] cannot compute in {str(model.dtype).removeprefix('torch.')}"
        fix = "convert it: model.to(torch.float64) or model.to(torch.float32)"
        raise IngotError([Problem("wrong-dtype", told, model.span, fix)])
    program = _trace(model, shapes)
    given = [v.name for v in program.given]
    twice = [n for n in dict.fromkeys(given) if given.count(n) > 1]
    if twice:
        told = f"[{model.name}] has an input and a parameter called '{twice[0]}'"
        raise IngotError([Problem("duplicate-variable", told, model.span, "rename the input")])
    spellings = with_root(spell_parameters(model), model.name)
    meta = Metadata(
        name=model.name,
        device=cast(Any, model.device.type),
        dtype="float64" if model.dtype == torch.float64 else "float32",
        inputs=tuple(describe_variable(v, program) for v in program.inputs),
        outputs=tuple(describe_variable(v, program) for v in program.outputs),
        parameters=tuple(describe_parameter(p, program, spellings, {}) for p in program.parameters),
        constants=(), solvers=describe_solvers(program), segments=(),
        derivatives=tuple(Block(v.name, x, False) for v in program.outputs for x in given),
        adjoints=True, kernel=None, inductor=None, torch_version="",
        origin=Origin("", "", (), ""), digests={},
    )  # fmt: skip
    return Artifact(meta, InterpretBackend(program, model.dtype, model.device))


def specify(model: Model) -> tuple[dict[str, VariableSpec], dict[str, VariableSpec]]:
    """What the inputs and outputs of a model are; axes are None where nothing gives an extent."""
    try:
        evaluator = evaluator_of(model, {})
        return evaluator.input_spec, evaluator.output_spec
    except IngotError as error:
        if any(problem.code != "unknown-extent" for problem in error.problems):
            raise
    plain = [
        {n: VariableSpec(n, kind, None, lag(n)[1]) for n, kind in kinds.items()}
        for kinds in (model.inputs, model.outputs)
    ]
    return plain[0], plain[1]
