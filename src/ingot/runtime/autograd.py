"""A package as a node of autograd's graph: values that require gradients -> outputs that do."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ingot.errors import Problem, raise_if
from ingot.graphs.calls import layouts_of
from ingot.runtime.call_checks import make_error
from ingot.runtime.derivatives import Derivatives, sum_to

__all__ = ["call_through_autograd"]


class _Autograd(torch.autograd.Function):
    """A package as one node of torch's graph.

    Backwards runs compiled adjoints at the inputs, which are kept; where a package has none, it
    multiplies compiled blocks, which were computed and kept forwards.
    """

    @staticmethod
    def forward(ctx: Any, derivatives: Derivatives, *values: Tensor) -> Any:
        key = layouts_of(values)
        ctx.derivatives = derivatives
        ctx.shapes = [v.shape for v in values]
        ctx.set_materialize_grads(False)
        if derivatives.backend.has_adjoints:
            outputs, told = derivatives.backend.values(values, key)
            derivatives.last.tell(told, values)
            ctx.save_for_backward(*values)
        else:
            outputs, blocks, ctx.failed = derivatives.evaluate(values, key, derivatives.given)
            ctx.keys = list(blocks)
            ctx.save_for_backward(*blocks.values())
        return tuple(outputs.values())

    @staticmethod
    def backward(ctx: Any, *up: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        derivatives: Derivatives = ctx.derivatives
        if torch.is_grad_enabled():
            what = "passes on" if derivatives.lives else "was compiled with its"
            told = f"'{derivatives.meta.name}' {what} first derivatives only"
            raise make_error("double-backward", told, "leave out create_graph=True")
        pairs = zip(derivatives.outputs, up, strict=True)
        cotangents = {n: g for n, g in pairs if g is not None}
        every = derivatives.given
        wanted = [n for n, need in zip(every, ctx.needs_input_grad[1:], strict=True) if need]
        if derivatives.backend.has_adjoints:
            pulled = derivatives.pull(ctx.saved_tensors, cotangents) if cotangents else {}
        else:
            pulled = _pull_blocks(ctx, cotangents, wanted)
        found = [
            sum_to(pulled[n], shape) if n in pulled and n in wanted else None
            for n, shape in zip(every, ctx.shapes, strict=True)
        ]
        return (None, *found)


def _pull_blocks(
    ctx: Any, cotangents: Mapping[str, Tensor], wanted: Sequence[str]
) -> dict[str, Tensor]:
    """The adjoints by the blocks that a call has kept; every one that it takes must be there."""
    derivatives: Derivatives = ctx.derivatives
    blocks = dict(zip(ctx.keys, ctx.saved_tensors, strict=True))
    for y in cotangents:
        for x in wanted:
            derivatives.select_complete([y], lambda y, x=x: [(y, x)], derivatives.spell_train())
    pulled = derivatives.pull_blocks(blocks, cotangents, wanted)
    return derivatives.silence(pulled, cotangents, ctx.failed)


def call_through_autograd(derivatives: Derivatives, values: Sequence[Tensor]) -> dict[str, Tensor]:
    """The outputs, through which gradients pass to the values."""
    differ = [n for n, x in zip(derivatives.given, values, strict=True) if x.requires_grad]
    if not derivatives.backend.has_adjoints:
        carried = {x for _, x in derivatives.pairs}
        raise_if(_refuse_gradient(derivatives, x) for x in differ if x not in carried)
    found = _Autograd.apply(derivatives, *values)
    return dict(zip(derivatives.outputs, found, strict=True))


def _refuse_gradient(derivatives: Derivatives, x: str) -> Problem:
    told = f"'{x}' requires a gradient, and no pair OUT:{x} was compiled"
    spelled = derivatives.meta.origin.spell("derivative", f"{next(iter(derivatives.outputs))}:{x}")
    other = f"{derivatives.spell_train()}, or call under torch.no_grad()"
    return Problem("no-derivatives", told, None, f"compile with {spelled}{other}")
