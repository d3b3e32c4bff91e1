"""A call of a joint laid out for tensors of one layout: nothing is left to examine, only to run."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor

from ingot.errors import IngotError, Problem, raise_if
from ingot.graphs.calls import CallCache
from ingot.graphs.layout import Order, arrange, is_arranged
from ingot.graphs.sizes import evaluated
from ingot.graphs.torch_private import (
    any_autocast,
    apply_of,
    autocast_now,
    forward_mode,
    transforms,
    without_autocast,
)
from ingot.graphs.tree import unflatten
from ingot.train.ambient import find_other_defaults
from ingot.train.call import blank_of
from ingot.train.check import bind, is_same, look_of, out_of_bounds, overlaps, sizes_of
from ingot.train.compile import WORTH_THREADS, Half
from ingot.train.random import drawn
from ingot.train.signature import Output, Saved, Signature
from ingot.train.views import prepared, replayed

__all__ = ["Code", "Entry", "Ready", "is_whole", "make_outputs", "whole"]

ALIGNED = 16
"""Inductor reads vectors of this many bytes on GPUs."""


class Entry:
    """A signature, and the calls of it that were laid out, by `prepare`, of primals and sizes."""

    def __init__(
        self, signature: Signature, prepare: Callable[[Sequence[Tensor], dict[str, int]], Any]
    ) -> None:
        self.signature = signature
        self.prepare = prepare
        self.calls: CallCache[Any] = CallCache()
        self._where = [i for i, a in enumerate(signature.arguments) if a.tensor is not None]
        self._values = [(i, a.value) for i, a in enumerate(signature.arguments) if not a.tensor]
        self._arity = len(signature.names)
        self._flat = signature.names == tuple(a.name for a in signature.arguments)
        self._flat &= signature.names == signature.positional[: self._arity]

    def find_ready(
        self, held: Sequence[Tensor], arguments: Sequence[Any], named: Mapping[str, Any]
    ) -> tuple[Any, list[Tensor]]:
        """A call that is laid out for what is given, and its primals."""
        leaves = arguments
        if named or len(arguments) != self._arity or not self._flat:
            leaves, problems = bind(self.signature, arguments, named)
            if problems:
                return None, []
        if self.signature.ambient and any(find_other_defaults(self.signature)):
            return None, []
        primals = [*held, *leaves]
        if self._values:
            primals = [*held, *(leaves[i] for i in self._where)]
            if not all(is_same(leaves[i], v) for i, v in self._values):
                return None, []
        return self.calls.match(torch.is_grad_enabled(), primals), primals

    def lay_out(
        self, held: Sequence[Tensor], arguments: Sequence[Any], named: Mapping[str, Any]
    ) -> tuple[Any, list[Tensor]]:
        """The same for a call that was not made before, which is checked first."""
        leaves, problems = bind(self.signature, arguments, named)
        raise_if([*problems, *find_other_defaults(self.signature)])
        mode = torch.is_grad_enabled()
        try:
            looks = [*map(look_of, leaves), *map(look_of, held)]
            key = (mode, *autocast_now().items(), *looks)
            ready = self.calls.find(key)
        except (RuntimeError, TypeError):
            key, ready = None, None
        primals = [*held, *(leaves[i] for i in self._where)]
        if ready is None:
            ready = self.prepare(primals, sizes_of(self.signature, leaves, held))
            if key is not None:
                self.calls.keep(key, ready)
        # a tensor that is given twice, or a mode of some kind, is examined anew at each call
        unusual = any_autocast() or transforms() or forward_mode()
        if len(set(map(id, primals))) == len(primals) and not unusual:
            self.calls.guard(mode, primals, ready)
        return ready, primals


class Code(Entry):
    """One signature of a joint: its compiled halves, and what every call needs of it.

    strategy: how the joint graph was cut.
    """

    def __init__(
        self,
        signature: Signature,
        saved: Saved,
        forward: Half,
        backward: Half | None,
        strategy: str,
    ) -> None:
        super().__init__(signature, partial(Ready, self))
        self.saved, self.strategy = saved, strategy
        self.forward_half, self.backward_half = forward, backward
        self.forward = forward.run
        self.backward = backward.run if backward is not None else None
        self.compiled = forward.kind == "inductor"
        self.count = len(signature.results)
        self.primals = len(signature.held) + len(signature.tensors) + len(signature.draws)
        self.tangents = signature.differentiable
        given = [*(h.tensor for h in signature.held), *signature.tensors]
        shaped = [*given, *signature.results, *saved.extra]
        self.orders = [s.order for s in given]
        taken = [*given, *(d.like for d in signature.draws)]
        kept = [*map(taken.__getitem__, saved.primals)]
        kept += [*map(signature.results.__getitem__, saved.results), *saved.extra]
        self.kept_orders = [s.order for s in kept]
        self.device = next((s.device for s in shaped), "cpu")
        # neither bits for negation and conjugation nor alignment to care for
        self.simple = all(
            s.device == "cpu" and "complex" not in s.dtype and not s.order for s in shaped
        )
        # what is written to after the call must be what the backward saw before
        self.copied = [p for p, _ in signature.mutated if p in set(saved.primals)]
        self.edges = bool(signature.mutated or signature.draws or signature.indices)


class Ready:
    """A call with sizes, need of a gradient, what must be copied and the outputs' views settled."""

    def __init__(self, code: Code, primals: Sequence[Tensor], sizes: dict[str, int]) -> None:
        self.code, self.sizes = code, sizes
        self.mode = torch.is_grad_enabled()
        wanted = self.mode and any(p.requires_grad for p in primals)
        self.differs = wanted and code.backward is not None
        ways = zip(code.signature.gradients, code.signature.tangents, strict=True)
        # as in eager: nothing that asks for a gradient led to the others; what is zero by its shape
        # is computed from no tangent
        live = {i for p, of in ways if primals[p].requires_grad for i in of or code.tangents}
        self.fixed = [i for i in range(code.count) if i not in live]
        self.quiet = not any_autocast() and (not self.mode or (code.compiled and not wanted))
        orders = zip(primals, code.orders, strict=True)
        self.loose = [(i, o) for i, (p, o) in enumerate(orders) if not is_whole(p, o)]
        self.carried = [] if not code.saved.sizes else [
            torch.empty([*map(sizes.__getitem__, code.saved.sizes), 0], device=code.device)
        ]  # fmt: skip
        self.outputs = make_outputs(code.signature, sizes)
        large = sum(map(Tensor.numel, primals)) >= WORTH_THREADS
        self.run = (code.forward_half.large if large else None) or code.forward

    def __call__(self, primals: list[Tensor]) -> Any:
        """What the function gives for tensors that lie as those did."""
        if self.differs or forward_mode():
            return self.given(primals, apply_of(_Run))
        if self.code.edges:
            return self.given(primals, self._alone)
        return self.outputs(self.without_gradient(primals), primals)

    def fastest(self) -> Callable[[list[Tensor]], Any]:
        """The same as a call, less all that such calls have no need of."""
        outputs = self.code.signature.outputs
        plain = all(_untouched(o, self.code.signature) for o in outputs)
        in_order = plain and [o.index for o in outputs] == [*range(len(outputs))]
        if self.differs or self.code.edges or not (in_order and self.quiet):
            return self
        return self.forward if self.loose else self.run

    def checked(self, primals: list[Tensor]) -> Any:
        """The same for tensors of which nothing is known but that they fit."""
        return self.given(primals, _Run.apply)

    def given(self, primals: list[Tensor], run: Callable[..., Sequence[Tensor]]) -> Any:
        """Draw, run, copy back what is written to, and make the views."""
        code, signature = self.code, self.code.signature
        passed = primals
        if code.edges:
            raise_if(overlaps(signature, primals))
            passed = [*primals, *(drawn(d, self.sizes) for d in signature.draws)]
            for index in code.copied:
                passed[index] = passed[index].clone()
        results = run(self, *passed)
        if signature.indices:
            raise_if(out_of_bounds(signature, results[-1].tolist()))
        for primal, result in signature.mutated:
            wanted = torch.is_grad_enabled() and signature.results[result].requires_grad
            # what asks for a gradient itself was written to where none was followed
            wanted &= not (primals[primal].is_leaf and primals[primal].requires_grad)
            with torch.set_grad_enabled(wanted):
                primals[primal].copy_(results[result])
        return self.outputs(results, primals)

    def without_gradient(self, primals: Sequence[Tensor]) -> Sequence[Tensor]:
        """The results, where none of the primals needs a gradient."""
        if self.quiet:
            return self.forward(primals)
        with torch.no_grad(), without_autocast():
            return self.forward(primals)

    @staticmethod
    def _alone(ready: "Ready", *primals: Tensor) -> Sequence[Tensor]:
        return ready.without_gradient(primals)[: ready.code.count]

    def forward(self, primals: Sequence[Tensor]) -> Sequence[Tensor]:
        """Results and what the backward needs besides."""
        given = list(primals)
        for i, order in self.loose:
            given[i] = whole(given[i], order)
        return self.run(given)

    def backward(self, saved: Sequence[Tensor], grads: Sequence[Tensor | None]) -> list[Any]:
        """The gradient of each primal, or None."""
        code = self.code
        assert code.backward is not None
        kept = map(Tensor.contiguous, saved) if code.simple else map(whole, saved, code.kept_orders)
        given = [*self.carried, *kept]
        given += [self._tangent(i, grads[i]) for i in code.tangents]
        found: list[Any] = [None] * code.primals
        signature = code.signature
        gradients = zip(signature.gradients, signature.tangents, code.backward(given), strict=True)
        for i, tangents, x in gradients:
            # as in eager: nothing came back on any way to this primal
            lost = tangents and all(grads[j] is None for j in tangents)
            found[i] = None if lost else x
        return found

    def _tangent(self, index: int, grad: Tensor | None) -> Tensor:
        """A gradient as the graph reads it: whole, in its type, zero where nothing came."""
        shaped = self.code.signature.results[index]
        dtype: torch.dtype = getattr(torch, shaped.dtype)
        if grad is None:
            return blank_of(shaped, self.sizes).zero_()
        return whole(grad if grad.dtype == dtype else grad.to(dtype), shaped.order)


class _Run(torch.autograd.Function):
    """Forward and backward of a joint as one step of autograd."""

    @staticmethod
    def forward(ctx: Any, ready: Ready, *primals: Tensor) -> Any:
        code = ready.code
        saved, count = code.saved, code.count
        with without_autocast():
            found = ready.forward(primals)
        results = tuple(found[:count])
        ctx.ready = ready
        ctx.set_materialize_grads(False)
        if ready.fixed:
            ctx.mark_non_differentiable(*[results[i] for i in ready.fixed])
        ctx.save_for_backward(
            *[primals[i] for i in saved.primals],
            *[results[i] for i in saved.results],
            *found[count:],
        )
        return results

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        ready: Ready = ctx.ready
        if torch.is_grad_enabled():
            raise IngotError([Problem(
                "double-backward",
                f"'{ready.code.signature.name}' was compiled with its first derivatives only", None,
                "leave out create_graph=True, or differentiate the source function twice",
            )])  # fmt: skip
        with without_autocast():
            return (None, *ready.backward(ctx.saved_tensors, grads))


Outputs = Callable[[Sequence[Tensor], Sequence[Tensor]], Any]


def make_outputs(signature: Signature, sizes: dict[str, int]) -> Outputs:
    """How results and primals become what the function gives."""
    tree = signature.tree_out
    nest: Callable[[list[Any]], Any] = partial(unflatten, tree)
    if tree.kind in ("tuple", "list") and all(c.kind == "leaf" for c in tree.children):
        nest = tuple if tree.kind == "tuple" else list
    if all(_untouched(o, signature) for o in signature.outputs):
        places = [o.index for o in signature.outputs]
        if tree.kind == "leaf":
            return lambda results, _: results[places[0]]
        return lambda results, _: nest([results[i] for i in places])
    leaves = [_leaf(o, sizes) for o in signature.outputs]
    if tree.kind == "leaf":
        return leaves[0]
    return lambda results, primals: nest([leaf(results, primals) for leaf in leaves])


def _untouched(output: Output, signature: Signature) -> bool:
    """Whether an output is a result as the graph gives it."""
    if output.source != "result" or output.steps:
        return False
    return output.requires_grad or not signature.results[output.index].requires_grad


def _leaf(output: Output, sizes: dict[str, int]) -> Outputs:
    if output.source in ("value", "size"):
        value = output.value
        value = evaluated(str(value), sizes) if output.source == "size" else value
        return lambda _, __: value
    path = prepared(output.steps, sizes)
    wanted = output.requires_grad or output.source == "primal"
    pick = itemgetter(output.index)
    given = output.source == "primal"

    def leaf(results: Sequence[Tensor], primals: Sequence[Tensor]) -> Tensor:
        found = replayed(pick(primals if given else results), path)
        return found if wanted or not found.requires_grad else found.detach()

    return leaf


def is_whole(tensor: Tensor, order: Order = ()) -> bool:
    """Whether a graph can read a tensor where it is."""
    if tensor.is_cuda or tensor.is_neg() or tensor.is_conj():
        return False
    return is_arranged(tensor, order) if order else tensor.is_contiguous()


def whole(tensor: Tensor, order: Order = ()) -> Tensor:
    """The same numbers as a graph reads them: in order, none of them to be negated, aligned."""
    if is_whole(tensor, order):
        return tensor
    tensor = arrange(tensor.resolve_neg().resolve_conj(), order)
    misplaced = tensor.is_cuda and tensor.data_ptr() % ALIGNED
    return tensor.clone() if misplaced else tensor
