"""A compiled module: calls checked at the edge, then units in turn with each block's tensors."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from ingot.errors import IngotError, Problem, raise_if
from ingot.execute.autograd_guard import refuse_transforms
from ingot.graphs.torch_private import any_autocast, forward_mode, pytree, same_layout, transforms
from ingot.regions.call import flattened, input_problems, state_problem
from ingot.regions.capture import nested
from ingot.regions.plan import Plan
from ingot.regions.recorded import wrap_calls
from ingot.regions.report import Report
from ingot.regions.state import state_of, unliftable
from ingot.regions.structure import structure
from ingot.regions.unit import AheadUnit
from ingot.regions.watch import Watch
from ingot.train.call import autocast_now
from ingot.train.ready import is_whole, whole

__all__ = ["Loaded", "Planned", "autocast_told"]

VARIANTS = 8
"""How many plans one mode may have: each holds for sizes that the others do not take."""

REMEMBERED = 1024
"""How many different calls are remembered as checked."""

LAST = 4
"""How many of them are asked in turn whether the next call lies as they did."""

Run = Callable[..., Sequence[Tensor]]
Prepared = tuple[Run, list[Tensor], tuple[int, ...], tuple[int, ...], tuple[int, ...]]
Mode = tuple[Hashable, bool, str]


@dataclass(slots=True)
class Planned:
    """A plan and its compiled units; `other` compiles a unit again for sizes it does not take."""

    plan: Plan
    units: Sequence[AheadUnit]
    other: Callable[[int, Sequence[Tensor]], AheadUnit] | None = None
    input_tree: pytree.TreeSpec = field(init=False)
    output_tree: pytree.TreeSpec = field(init=False)
    plain: bool = field(init=False)
    single: bool = field(init=False)
    values: int = field(init=False)

    def __post_init__(self) -> None:
        plan = self.plan
        self.input_tree = pytree.treespec_loads(plan.input_tree)
        self.output_tree = pytree.treespec_loads(plan.output_tree)
        count = len(plan.inputs)
        flat = pytree.tree_flatten((tuple(range(count)), {}))[1]
        self.plain = not plan.constants and self.input_tree == flat
        self.single = not plan.returned and self.output_tree.is_leaf()
        given = [i for step in plan.steps for i in step.gives]
        self.values = max([count - 1, *given]) + 1 - count


class Loaded(nn.Module):
    """A module whose blocks were each compiled once. Calls are checked; threads may share it.

    module: what was compiled, with its own tensors: an edit in place acts on the next call.
    """

    def __init__(
        self, module: nn.Module, report: Report,
        make: Callable[[bool, str, Sequence[Any] | None], Planned] | None, *,
        cuda_graphs: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.module = module
        self.report = report
        self._make = make
        self._recorded = cuda_graphs
        self._plans: dict[Mode, list[Planned]] = {}
        self.look()

    def look(self) -> None:
        """Note what the module holds now, and refuse what cannot be compiled."""
        raise_if(unliftable(self.module))
        state = [s.tensor for s in state_of(self.module)]
        self._key = structure(self.module) if self._make is not None else None
        self._watch = Watch(self.module, state)
        self._learns = any(t.requires_grad for t in state)
        self._taken: dict[Hashable, tuple[Planned, list[Prepared]]] = {}
        self._again: tuple[_Again, ...] = ()

    def prepare(self, planned: Planned) -> None:
        """Take a plan for the mode that it was made for."""
        plan = planned.plan
        self._plans.setdefault((self._key, plan.grad, plan.autocast), []).append(planned)

    @property
    def plan(self) -> Plan:
        """The first plan: what a call runs, step by step."""
        return next(iter(self._plans.values()))[0].plan

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module gives; tensors may have any stride."""
        if not self._watch.holds():
            self._changed()
        if transforms() or forward_mode():
            refuse_transforms("the module", (args, kwargs))
        if not kwargs and not any_autocast():
            mode, count = torch.is_grad_enabled(), len(args)
            for again in self._again:
                if again.mode is mode and again.count == count and again.same(*args):
                    return again(args)
        return self._other(args, kwargs)

    def _other(self, args: Any, kwargs: Any) -> Any:
        """A call that lies unlike the last ones: its sizes may be known all the same."""
        if kwargs:
            return self._first(None, args, kwargs)
        try:
            looks: Any = tuple([_looks(x) for x in args])
        except (AttributeError, RuntimeError):
            return self._first(None, args, kwargs)
        key = (looks, torch.is_grad_enabled(), autocast_told())
        taken = self._taken.get(key)
        if taken is None:
            return self._first(key, args, kwargs)
        planned, steps = taken
        self._remember(planned, steps, args)
        return _given(planned, _run(planned, steps, args, in_order=False))

    def _remember(
        self, planned: Planned, steps: Sequence[Prepared], args: Sequence[Tensor]
    ) -> None:
        # a tensor that is given twice, or autocast of some type, is looked at anew at each call
        if len(set(map(id, args))) == len(args) and not any_autocast():
            state = self._state(planned) if self._recorded else None
            self._again = (_Again(planned, steps, args, state), *self._again[: LAST - 1])

    # the slow way: a call unlike those before

    def _first(self, key: Hashable, args: Any, kwargs: Any) -> Any:
        """Find or make a plan that takes these arguments, and check every unit on its way."""
        leaves = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        grad = torch.is_grad_enabled() and (self._learns or any(x.requires_grad for x in leaves))
        mode = (self._key, grad, autocast_told())
        planned, inputs = self._found(mode, args, kwargs)
        steps, values = self._checked(planned, inputs)
        if planned.plain and key is not None:
            if len(self._taken) >= REMEMBERED:
                self._taken.clear()
            self._taken[key] = planned, steps
            self._remember(planned, steps, args)
        return _given(planned, values)

    def _found(self, mode: Mode, args: Any, kwargs: Any) -> tuple[Planned, list[Tensor]]:
        """A plan of a mode that takes these arguments, and the tensors among them."""
        plans = self._plans.get(mode, [])
        key, grad, autocast = mode
        if not plans and self._make is None and not grad:
            plans = self._plans.get((key, True, autocast), [])
        if not plans:
            plans = [self._another(mode, None)]
        first = plans[0]
        inputs = flattened(first.plan, first.input_tree, args, kwargs)
        raise_if(input_problems(first.plan.inputs, first.plan.sizes, (), inputs))
        problems: list[Problem] = []
        for planned in plans:
            plan = planned.plan
            problems = input_problems(plan.inputs, plan.sizes, plan.guards, inputs)
            if not problems:
                return planned, inputs
        if self._make is None or len(plans) >= VARIANTS:
            raise IngotError(problems)
        return self._another(mode, inputs), inputs

    def _another(self, mode: Mode, inputs: Sequence[Any] | None) -> Planned:
        _, grad, autocast = mode
        if self._make is None:
            raise IngotError([_wrong_mode(self.plan, grad=grad, autocast=autocast)])
        planned = self._make(grad, autocast, inputs)
        self.prepare(planned)
        return planned

    def _checked(
        self, planned: Planned, inputs: Sequence[Tensor]
    ) -> tuple[list[Prepared], list[Any]]:
        """Run the units in turn, each shown to take what it is given."""
        steps: list[Prepared] = []
        values: list[Any] = [whole(x) for x in inputs] + [None] * planned.values
        state = self._state(planned)
        for step in planned.plan.steps:
            unit = planned.units[step.unit]
            given = [values[i].contiguous() for i in step.reads]
            raise_if(input_problems(unit.info.inputs, unit.info.sizes, (), given))
            problems = input_problems(unit.info.inputs, unit.info.sizes, unit.info.guards, given)
            if problems:
                if planned.other is None:
                    raise IngotError(problems)
                unit = planned.other(step.unit, given)
            lifted = [state[i] for i in step.state]
            for i, value in zip(step.gives, unit.run(*lifted, *given), strict=True):
                values[i] = value
            run = unit.settled(*lifted, *given) if unit.settled is not None else unit.run
            steps.append((run, lifted, step.reads, step.gives, step.ends))
        return steps, values

    def _state(self, planned: Planned) -> list[Tensor]:
        """The module's tensors in the order of a plan."""
        names = {p.name: s.tensor for s in state_of(self.module) for p in s.places}
        return [names[info.places[0]] for info in planned.plan.state]

    def _changed(self) -> None:
        """Something was replaced: refuse what does not fit, find what is still right."""
        plan = self.plan
        found = {p.name: s.tensor for s in state_of(self.module) for p in s.places}
        wrong = (
            state_problem(info, found.get(name), name)
            for info in plan.state for name in info.places
        )  # fmt: skip
        raise_if(p for p in wrong if p is not None)
        if self._make is None:
            raise_if(_fixed(plan, self.module, found))
        self.look()


def _fixed(plan: Plan, module: nn.Module, found: Mapping[str, Tensor]) -> Iterator[Problem]:
    """What a package has settled for good."""
    if any(part.training != plan.training for part in module.modules()):
        now, then = ("training", "evaluation")[:: -1 if plan.training else 1]
        said = f"the module was put into {now} mode, compiled for {then}"
        yield Problem("region-mode", said, None, f"compile the package in {now} mode")
    for info in plan.state:
        tensors = {id(found[name]): found[name] for name in info.places}
        if len(tensors) > 1:
            said = f"{' and '.join(map(repr, info.places))} were one tensor and are no longer"
            yield Problem("region-parameter", said, None, "set them to one tensor")
        if plan.grad and not info.requires_grad and found[info.places[0]].requires_grad:
            said = f"the {info.kind} '{info.places[0]}' wants a gradient, compiled without"
            yield Problem("region-parameter", said, None, "compile again with requires_grad set")


class _Again:
    """Calls that lie like one before: nothing is examined but that they do."""

    __slots__ = ("count", "dispatch", "in_order", "mode", "planned", "same", "steps")

    def __init__(
        self, planned: Planned, steps: Sequence[Prepared], args: Sequence[Tensor],
        state: Sequence[Tensor] | None,
    ) -> None:  # fmt: skip
        self.planned, self.steps = planned, steps
        self.count, self.mode = len(args), torch.is_grad_enabled()
        self.same = same_layout(args)
        self.in_order = all(map(is_whole, args))
        quiet = not (self.mode and planned.plan.grad)
        self.dispatch = None
        if state is not None and quiet:
            self.dispatch = wrap_calls(self.outputs, state, args)

    def __call__(self, args: Sequence[Tensor]) -> Any:
        """What the module gives."""
        found = self.outputs(args) if self.dispatch is None else self.dispatch(args)
        return found[0] if self.planned.single else _nest(self.planned, found)

    def outputs(self, args: Sequence[Tensor]) -> list[Tensor]:
        """The tensors among what the module gives."""
        values = _run(self.planned, self.steps, args, in_order=self.in_order)
        return [values[i] for i in self.planned.plan.outputs]


def _looks(x: Tensor) -> tuple[object, ...]:
    return type(x), x.layout, x.dtype, x.device, x.shape, x.requires_grad


def _run(
    planned: Planned, steps: Sequence[Prepared], inputs: Sequence[Tensor], *, in_order: bool
) -> list[Any]:
    values: list[Any] = [*inputs] if in_order else [*map(whole, inputs)]
    values += [None] * planned.values
    for run, lifted, reads, gives, ends in steps:
        results = run(*lifted, *[values[i].contiguous() for i in reads])
        for i, value in zip(gives, results, strict=True):
            values[i] = value
        for i in ends:
            values[i] = None
    return values


def _given(planned: Planned, values: Sequence[Any]) -> Any:
    found = [values[i] for i in planned.plan.outputs]
    return found[0] if planned.single else _nest(planned, found)


def _nest(planned: Planned, outputs: Sequence[Tensor]) -> Any:
    return nested(outputs, planned.plan.returned, planned.output_tree)


def autocast_told() -> str:
    """The automatic precisions that are switched on, by device; empty if none."""
    return " ".join(f"{device}:{dtype}" for device, dtype in autocast_now().items())


def _wrong_mode(plan: Plan, *, grad: bool, autocast: str) -> Problem:
    if plan.autocast != autocast:
        said = (
            f"called under autocast '{autocast or 'off'}', compiled for '{plan.autocast or 'off'}'"
        )
        return Problem("region-mode", said, None, "compile the package under the same autocast")
    if grad:
        return Problem(
            "region-mode", "called where a gradient is needed, compiled without", None,
            "call it under torch.no_grad(), or compile it with grad=True",
        )  # fmt: skip
    return Problem(
        "region-mode", "called where no gradient is needed, compiled for training only", None,
        "leave torch.no_grad(), or compile it again under it",
    )  # fmt: skip
