"""Sizes that may vary, by their names, and what a trace takes for granted of them."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from ingot.graphs import torch_private
from ingot.graphs.torch_private import expression_of

__all__ = ["Sizes"]


class Sizes:
    """Sizes that may vary, by their names, for one trace."""

    def __init__(self, hints: Mapping[str, int]) -> None:
        self.mode = torch_private.fake_mode(allow_real=False)
        self.of = torch_private.open_sizes(self.mode, hints)
        self.named = {str(expression_of(size)): name for name, size in self.of.items()}

    def tensor(
        self, shape: Sequence[int | str], dtype: torch.dtype, device: str, *, grad: bool
    ) -> Tensor:
        """A row-major tensor without numbers."""
        with self.mode:
            sizes = [self.of[s] if isinstance(s, str) else s for s in shape]
            return torch.empty(sizes, dtype=dtype, device=device).requires_grad_(grad)

    def state(self, tensor: Tensor, *, grad: bool) -> Tensor:
        """A tensor of fixed sizes without its numbers."""
        return self.mode.from_tensor(tensor.detach(), static_shapes=True).requires_grad_(grad)

    def guards(self) -> tuple[str, ...]:
        """What a trace has taken for granted of the sizes, as Python over their names."""
        import sympy

        guards = torch_private.guards_of(self.mode)
        names = {s: sympy.Symbol(self.named[str(s)], integer=True, positive=True)
                 for guard in guards for s in guard.expr.free_symbols
                 if str(s) in self.named}  # fmt: skip
        said = (torch_private.print_expression(guard.expr.xreplace(names)) for guard in guards)
        return tuple(dict.fromkeys(said))

    def fixed(self) -> dict[str, str]:
        """The named sizes that a trace has fixed: to a number, or to another size."""
        found = {self.named[str(s)]: str(e) for s, e in torch_private.equal_sizes(self.mode).items()
                 if str(s) in self.named}  # fmt: skip
        return {name: self.named.get(said, said) for name, said in found.items()}
