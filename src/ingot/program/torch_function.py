"""A law of ordinary torch as an opaque function of all points, differentiated by autograd."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from ingot.errors import IngotError, Problem
from ingot.program.opaque import Parts, Tensors

__all__ = ["TorchFunction"]


@dataclass(frozen=True)
class TorchFunction:
    """A law of ordinary torch, differentiated by autograd.

    name: what errors call it; function: of tensors by position; digest: of its code and options;
    batch: how many axes of all tensors are part of the batch.
    """

    what: ClassVar[str] = "a law of ordinary torch, declared with opaque=True"
    instead: ClassVar[str] = (
        "ingot run calls it between compiled parts; to compile it, write the law with ingot.types"
    )

    name: str
    function: Callable[[Tensors], Tensors]
    digest: str
    batch: int

    @property
    def solves(self) -> Mapping[str, Any]:
        """Nothing that is known."""
        return {}

    def report(self, name: str, points: int) -> Sequence[Any]:
        """Nothing."""
        return ()

    def __call__(self, inputs: Tensors) -> Tensors:
        """The outputs."""
        return self.function(inputs)

    def push(self, inputs: Tensors, tangents: Parts) -> Parts:
        """The Jacobian, by one backward pass a row for all points, times the tangents."""
        live, outputs, keep = self._record(inputs)
        pairs = [(x, t) for x, t in zip(live, tangents, strict=True) if t is not None]
        found = []
        for y in outputs:
            with torch.enable_grad():
                flat = y.flatten(self.batch) if y.ndim > self.batch else y[..., None]
            rows = []
            for i in range(flat.shape[-1]):
                with torch.enable_grad():
                    end = flat[..., i].sum()
                slopes = self._differentiate([end], [x for x, _ in pairs], None, keep)
                terms = [g * t for g, (_, t) in zip(slopes, pairs, strict=True)]
                rows.append(sum(x.reshape(*x.shape[: 1 + self.batch], -1).sum(-1) for x in terms))
            whole = torch.stack(rows, dim=-1)
            found.append(whole.reshape(len(whole), *y.shape))
        return found

    def pull(self, inputs: Tensors, bars: Parts) -> Parts:
        """One backward pass for each adjoint."""
        live, outputs, keep = self._record(inputs)
        pairs = [(y, bar) for y, bar in zip(outputs, bars, strict=True) if bar is not None]
        ends = [y for y, _ in pairs]
        count = max(len(bar) for _, bar in pairs)
        rows = [
            self._differentiate(ends, live, [bar[s] for _, bar in pairs], keep)
            for s in range(count)
        ]
        return [torch.stack(x) for x in zip(*rows, strict=True)]

    def refuse(self, pairs: Sequence[tuple[str, str]]) -> IngotError:
        """Torch leaves no derivative out."""
        raise AssertionError(pairs)

    def _record(self, inputs: Tensors) -> tuple[list[Tensor], Tensors, bool]:
        """The inputs, outputs with torch's graph between them, and whether that one is kept."""
        keep = torch.is_grad_enabled() and any(x.requires_grad for x in inputs)
        live = [x if x.requires_grad else x.detach().requires_grad_() for x in inputs]
        with torch.enable_grad():
            return live, self.function(live), keep

    def _differentiate(
        self, ends: Tensors, by: Tensors, bars: Sequence[Tensor] | None, keep: bool
    ) -> list[Tensor]:
        if not all(y.requires_grad for y in ends):
            raise IngotError([Problem(
                "no-gradient", f"[{self.name}] returns a value that torch cannot differentiate",
                None, "compute it from the inputs by torch, without detach, NumPy or no_grad",
            )])  # fmt: skip
        found = torch.autograd.grad(
            ends, by, bars, retain_graph=True, create_graph=keep, allow_unused=True
        )
        return [torch.zeros_like(x) if g is None else g for x, g in zip(by, found, strict=True)]
