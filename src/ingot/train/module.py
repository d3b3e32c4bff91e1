"""A compiled joint as a module: calls are checked, writes copied back, views made again."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from ingot.errors import IngotError, Problem, raise_if
from ingot.train.call import autocast_now
from ingot.train.check import arranged, looks, out_of_bounds, overlaps, sizes_of
from ingot.train.compile import Half, without_autocast
from ingot.train.partition import Halves
from ingot.train.random import drawn
from ingot.train.signature import Held, Output, Saved, Signature
from ingot.train.sizes import evaluated
from ingot.train.views import replayed

__all__ = ["Joint"]

REMEMBERED = 256
"""How many ways to call are remembered as fitting."""

ALIGNED = 16
"""Inductor reads vectors of this many bytes on GPUs."""


class Joint(nn.Module):
    """A function with its gradient, compiled; parameters and buffers keep their names.

    `halves` is there where the joint was traced in this process.
    """

    def __init__(
        self, signature: Signature, saved: Saved, forward: Half, backward: Half | None,
        tensors: Sequence[Tensor], *, halves: Halves | None = None, strategy: str = "",
    ) -> None:  # fmt: skip
        super().__init__()
        self.signature = signature
        self.saved = saved
        self.halves = halves
        self.strategy = strategy
        self.forward_half = forward
        self.backward_half = backward
        self._tree_in = pytree.treespec_loads(signature.tree_in)
        self._tree_out = pytree.treespec_loads(signature.tree_out)
        self._places = [_placed(self, h, t) for h, t in zip(signature.held, tensors, strict=True)]
        self._tied = [i for i, h in enumerate(signature.held) if len(h.names) > 1]
        self._tensors = [i for i, a in enumerate(signature.arguments) if a.tensor is not None]
        self._flat = signature.names == tuple(a.name for a in signature.arguments)
        self._known: dict[Any, dict[str, int]] = {}
        self._tangents = signature.tangents
        self._device = next((s.device for s in (*signature.tensors, *signature.results)), "cpu")
        # what is written to after the call must be what the backward saw before
        saved_too = set(saved.primals)
        self._copied = [p for p, _ in signature.mutated if p in saved_too]
        if signature.training is not None:
            super().train(signature.training)

    def train(self, mode: bool = True) -> "Joint":
        """Keep the mode in which the module was traced; another needs another trace."""
        traced = self.signature.training
        if traced is not None and mode != traced:
            name = "training" if traced else "evaluation"
            call = "train()" if mode else "eval()"
            raise IngotError([Problem(
                "wrong-mode", f"'{self.signature.name}' was traced in {name} mode", None,
                f"call {call} on the source module and trace it once more",
            )])  # fmt: skip
        return super().train(mode)

    def held(self) -> list[Tensor]:
        """The parameters and buffers in the order of the signature."""
        found = [places[0][0][places[0][1]] for places in self._places]
        for index in self._tied:
            if any(place[leaf] is not found[index] for place, leaf in self._places[index]):
                names = "' and '".join(self.signature.held[index].names)
                told = f"'{names}' were one tensor when they were traced, and no longer are"
                fix = "replace it under all its names, or write to it in place"
                raise IngotError([Problem("untied-parameter", told, None, fix)])
        return found

    def with_tensors(self, tensors: Sequence[Tensor]) -> "Joint":
        """The same compiled code with other parameters and buffers, in the signature's order."""
        return Joint(
            self.signature, self.saved, self.forward_half, self.backward_half, tensors,
            halves=self.halves, strategy=self.strategy,
        )  # fmt: skip

    def forward(self, *arguments: Any, **named: Any) -> Any:
        """What the function gives."""
        return self.call_with(self.held(), *arguments, **named)

    def call_with(self, held: Sequence[Tensor], *arguments: Any, **named: Any) -> Any:
        """What the function gives with these parameters and buffers."""
        signature = self.signature
        leaves, sizes = self._fitting(held, arguments, named)
        primals = [*held, *(leaves[i] for i in self._tensors)]
        if signature.mutated:
            raise_if(overlaps(signature, primals))
        passed = [*primals, *(drawn(d, sizes) for d in signature.draws)]
        for index in self._copied:
            passed[index] = passed[index].clone()
        results = _Run.apply(self, sizes, *passed)
        if signature.indices:
            raise_if(out_of_bounds(signature, results[-1].tolist()))
        for primal, result in signature.mutated:
            target = primals[primal]
            with torch.set_grad_enabled(
                torch.is_grad_enabled() and signature.results[result].requires_grad
            ):
                target.copy_(results[result])
        leaves = [_leaf(o, results, primals, sizes) for o in signature.outputs]
        return pytree.tree_unflatten(leaves, self._tree_out)

    def _fitting(
        self, held: Sequence[Tensor], arguments: Sequence[Any], named: Mapping[str, Any]
    ) -> tuple[Sequence[Any], dict[str, int]]:
        """The leaves of the arguments and the sizes of a call; what looks alike is checked once."""
        signature = self.signature
        leaves = arguments
        if named or len(arguments) != len(signature.names) or not self._flat:
            leaves = arranged(signature, self._tree_in, arguments, named)
        state = torch.is_grad_enabled(), *map(torch.is_autocast_enabled, ("cpu", "cuda"))
        if any(state[1:]):
            state = (*state, *autocast_now().values())
        try:
            key = (state, *map(looks, leaves), *map(looks, held))
            known = self._known.get(key)
        except TypeError:
            key, known = None, None
        if known is None:
            if leaves is arguments:
                leaves = arranged(signature, self._tree_in, arguments, named)
            known = sizes_of(signature, leaves, held)
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            if key is not None:
                self._known[key] = known
        return leaves, known

    def save(self, folder: Any) -> None:
        """Write a package that loads in a process without the source."""
        from ingot.train.package import save

        save(self, folder)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Joint":
        return self.with_tensors([copy.deepcopy(tensor, memo) for tensor in self.held()])

    def __reduce_ex__(self, _: Any) -> Any:
        told = "a joint is not pickled: its code is native"
        fix = "save(folder) and ingot.train.load(folder); its numbers are in state_dict()"
        raise IngotError([Problem("unsaveable", told, None, fix)])

    def extra_repr(self) -> str:
        """The signature's first line, and how it was partitioned."""
        return f"{str(self.signature).splitlines()[0]}, partition={self.strategy}"


def _leaf(
    output: Output, results: Sequence[Tensor], primals: Sequence[Tensor], sizes: dict[str, int]
) -> Any:
    if output.source == "value":
        return output.value
    if output.source == "size":
        return evaluated(str(output.value), sizes)
    source = results if output.source == "result" else primals
    found = replayed(source[output.index], output.steps, sizes)
    wanted = output.requires_grad or output.source == "primal"
    return found if wanted or not found.requires_grad else found.detach()


def _placed(joint: nn.Module, held: Held, tensor: Tensor) -> list[tuple[dict[str, Any], str]]:
    """Register a tensor under all its names, whatever they are; where to find it again."""
    places = []
    for name in held.names:
        *path, leaf = name.split(".")
        owner = joint
        for word in path:
            owner = owner._modules.setdefault(word, nn.Module())
            assert owner is not None
        place: dict[str, Any] = owner._parameters if held.parameter else owner._buffers
        place[leaf] = tensor
        if not held.persistent:
            owner._non_persistent_buffers_set.add(leaf)
        places.append((place, leaf))
    return places


class _Run(torch.autograd.Function):
    """Forward and backward of a joint as one step of autograd."""

    @staticmethod
    def forward(ctx: Any, joint: Joint, sizes: dict[str, int], *primals: Tensor) -> Any:
        signature, saved = joint.signature, joint.saved
        count = len(signature.results)
        with without_autocast():
            found = joint.forward_half.run([_whole(p) for p in primals])
        results, extra = tuple(found[:count]), tuple(found[count:])
        ctx.joint, ctx.sizes = joint, sizes
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(
            *(r for r, s in zip(results, signature.results, strict=True) if not s.requires_grad)
        )
        ctx.save_for_backward(
            *(primals[i] for i in saved.primals), *(results[i] for i in saved.results), *extra
        )
        return results

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        joint: Joint = ctx.joint
        signature, sizes = joint.signature, ctx.sizes
        if torch.is_grad_enabled():
            raise IngotError([Problem(
                "double-backward",
                f"'{signature.name}' was compiled with its first derivatives only", None,
                "leave out create_graph=True, or differentiate the source function twice",
            )])  # fmt: skip
        given = [_whole(x) for x in ctx.saved_tensors]
        if joint.saved.sizes:
            shape = [*(sizes[n] for n in joint.saved.sizes), 0]
            given.insert(0, torch.empty(shape, device=joint._device))
        given += [_tangent(joint, i, grads[i], sizes) for i in joint._tangents]
        half = joint.backward_half
        assert half is not None
        with without_autocast():
            found = half.run(given)
        count = len(signature.held) + len(joint._tensors) + len(signature.draws)
        by_primal = dict(zip(signature.gradients, found, strict=True))
        return (None, None, *map(by_primal.get, range(count)))


def _tangent(joint: Joint, index: int, grad: Tensor | None, sizes: dict[str, int]) -> Tensor:
    """A gradient as the graph reads it: whole, in its type, zero where nothing came."""
    shaped = joint.signature.results[index]
    dtype = getattr(torch, shaped.dtype)
    if grad is None:
        shape = [evaluated(n, sizes) for n in shaped.sizes]
        return torch.zeros(shape, dtype=dtype, device=shaped.device)
    return _whole(grad.to(dtype))


def _whole(tensor: Tensor) -> Tensor:
    """The same numbers as a graph reads them: in order, none of them to be negated, aligned."""
    tensor = tensor.resolve_neg().resolve_conj().contiguous()
    misplaced = tensor.is_cuda and tensor.data_ptr() % ALIGNED
    return tensor.clone() if misplaced else tensor
