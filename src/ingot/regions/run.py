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
from ingot.regions.unit import AheadUnit
from ingot.regions.watch import Watch
from ingot.train.call import autocast_now
from ingot.train.ready import is_whole, whole

__all__ = ["Loaded", "Planned", "autocast_told"]

REMEMBERED = 1024
"""How many different calls are remembered as checked."""

LAST = 4
"""How many of them are asked in turn whether the next call lies as they did."""

Run = Callable[..., Sequence[Tensor]]
Prepared = tuple[Run, list[Tensor], tuple[int, ...], tuple[int, ...], tuple[int, ...]]


@dataclass(slots=True)
class Planned:
    """A plan and its compiled units."""

    plan: Plan
    units: Sequence[AheadUnit]
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
        self, module: nn.Module, report: Report, planned: Planned, *, cuda_graphs: bool = False
    ) -> None:
        super().__init__()
        self.module = module
        self.report = report
        self.planned = planned
        self._recorded = cuda_graphs
        self.train(planned.plan.training)
        self.look()

    def look(self) -> None:
        """Note what the module holds now, and refuse what cannot be compiled."""
        raise_if(unliftable(self.module))
        state = [s.tensor for s in state_of(self.module)]
        self._watch = Watch(self.module, state)
        self._learns = any(t.requires_grad for t in state)
        self._taken: dict[Hashable, list[Prepared]] = {}
        self._again: tuple[_Again, ...] = ()

    @property
    def plan(self) -> Plan:
        """What a call runs, step by step."""
        return self.planned.plan

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
        steps = self._taken.get(key)
        if steps is None:
            return self._first(key, args, kwargs)
        self._remember(steps, args)
        return _given(self.planned, _run(self.planned, steps, args, in_order=False))

    def _remember(self, steps: Sequence[Prepared], args: Sequence[Tensor]) -> None:
        # a tensor that is given twice, or autocast of some type, is looked at anew at each call
        if len(set(map(id, args))) == len(args) and not any_autocast():
            state = self._state() if self._recorded else None
            self._again = (_Again(self.planned, steps, args, state), *self._again[: LAST - 1])

    # the slow way: a call unlike those before

    def _first(self, key: Hashable, args: Any, kwargs: Any) -> Any:
        """Check the arguments, and every unit on its way."""
        leaves = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        grad = torch.is_grad_enabled() and (self._learns or any(x.requires_grad for x in leaves))
        steps, values = self._checked(self._fitting(grad, args, kwargs))
        if self.planned.plain and key is not None:
            if len(self._taken) >= REMEMBERED:
                self._taken.clear()
            self._taken[key] = steps
            self._remember(steps, args)
        return _given(self.planned, values)

    def _fitting(self, grad: bool, args: Any, kwargs: Any) -> list[Tensor]:
        """The tensors among the arguments, shown to be what the plan was compiled for."""
        plan, autocast = self.plan, autocast_told()
        if plan.autocast != autocast or (grad and not plan.grad):
            raise IngotError([_wrong_mode(plan, autocast=autocast)])
        inputs = flattened(plan, self.planned.input_tree, args, kwargs)
        raise_if(input_problems(plan.inputs, plan.sizes, (), inputs))
        raise_if(input_problems(plan.inputs, plan.sizes, plan.guards, inputs))
        return inputs

    def _checked(self, inputs: Sequence[Tensor]) -> tuple[list[Prepared], list[Any]]:
        """Run the units in turn, each shown to take what it is given."""
        planned, state = self.planned, self._state()
        steps: list[Prepared] = []
        values: list[Any] = [whole(x) for x in inputs] + [None] * planned.values
        for step in planned.plan.steps:
            unit = planned.units[step.unit]
            given = [values[i].contiguous() for i in step.reads]
            raise_if(input_problems(unit.info.inputs, unit.info.sizes, (), given))
            raise_if(input_problems(unit.info.inputs, unit.info.sizes, unit.info.guards, given))
            lifted = [state[i] for i in step.state]
            for i, value in zip(step.gives, unit.run(*lifted, *given), strict=True):
                values[i] = value
            run = unit.settled(*lifted, *given) if unit.settled is not None else unit.run
            steps.append((run, lifted, step.reads, step.gives, step.ends))
        return steps, values

    def _state(self) -> list[Tensor]:
        """The module's tensors in the order of the plan."""
        names = {p.name: s.tensor for s in state_of(self.module) for p in s.places}
        return [names[info.places[0]] for info in self.plan.state]

    def _changed(self) -> None:
        """Something was replaced: refuse what does not fit, find what is still right."""
        plan = self.plan
        found = {p.name: s.tensor for s in state_of(self.module) for p in s.places}
        wrong = (
            state_problem(info, found.get(name), name)
            for info in plan.state for name in info.places
        )  # fmt: skip
        raise_if(p for p in wrong if p is not None)
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


def _wrong_mode(plan: Plan, *, autocast: str) -> Problem:
    if plan.autocast != autocast:
        said = (
            f"called under autocast '{autocast or 'off'}', compiled for '{plan.autocast or 'off'}'"
        )
        return Problem("region-mode", said, None, "compile the package under the same autocast")
    return Problem(
        "region-mode", "called where a gradient is needed, compiled without", None,
        "call it under torch.no_grad(), or compile it with grad=True",
    )  # fmt: skip
