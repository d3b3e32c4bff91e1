"""A module whose blocks are each compiled once, at its calls, by torch.compile with our backend."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ingot.graphs import torch_private
from ingot.graphs.replay import replay_blocks
from ingot.graphs.torch_private import forward_mode, pytree, transforms
from ingot.regions.backend import Backend
from ingot.regions.mark import Marks, enter_block, leave_block
from ingot.regions.report import Report
from ingot.regions.units import Compiler

__all__ = ["Compiled", "Dynamic"]

Dynamic = Mapping[int, str] | Sequence[Mapping[int, str]]
"""Names of the axes that may vary, for each tensor of a call, or the same for all."""


_OWN = ("module", "training", "report", "_how", "_call")


class Compiled(nn.Module):
    """A module whose blocks are each compiled once. Torch's guards are asked at every call.

    module: what was compiled, with its own tensors, hooks and attributes.
    """

    def __init__(
        self, module: nn.Module, marks: Marks, compiler: Compiler, dynamic: Dynamic = {},  # noqa: B006 nothing writes it
    ) -> None:  # fmt: skip
        super().__init__()
        self.module = module
        self.training = module.training
        self._how = marks, compiler, dynamic
        self.forget()

    def forget(self) -> None:
        """Begin anew: the next call is compiled for, from units that are there already."""
        marks, compiler, _ = self._how
        self.report = Report(mode="jit")
        backend = Backend(self.module, marks, compiler, self.report)
        torch_private.keep_calls((enter_block, leave_block))
        self._call = torch_private.compile_calls(self.module, backend)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the module gives; hooks of all modules run with it, and this adds no module."""
        if torch_private.has_hooks(self):
            return super().__call__(*args, **kwargs)
        return self.forward(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module gives."""
        # Dynamo loses tangents under no_grad, and sees neither a transform that is under way nor
        # that hooks of all modules came or went
        eager = transforms() or forward_mode() or torch_private.has_global_hooks()
        if eager or torch.compiler.is_dynamo_compiling():
            return self.module(*args, **kwargs)
        if self._how[2]:
            self._mark_sizes(args, kwargs)
        with torch_private.watch_calls(self.report.note_eager), replay_blocks(self._find_blocks):
            return self._call(*args, **kwargs)

    def _find_blocks(self) -> Callable[[nn.Module], bool]:
        is_block = self._how[0].find(self.module)
        return lambda module: is_block(str(id(module)), type(module))

    def _mark_sizes(self, args: Any, kwargs: Any) -> None:
        """Tell Dynamo which sizes vary; others are open once they have varied."""
        tensors = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        dynamic = self._how[2]
        axes = [dynamic] * len(tensors) if isinstance(dynamic, Mapping) else dynamic
        for tensor, names in zip(tensors, axes, strict=False):
            torch_private.hint_open(tensor, [a for a in names if -tensor.ndim <= a < tensor.ndim])

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "module":
                raise
            return getattr(self.module, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set what is this wrapper's own, or what is the module's, which calls read."""
        begun = "module" in self.__dict__.get("_modules", {})
        if begun and name not in _OWN and name not in self.__dict__:
            setattr(self.module, name, value)
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if name in _OWN or name in self.__dict__:
            super().__delattr__(name)
        else:
            delattr(self.module, name)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Compiled":
        made = Compiled(copy.deepcopy(self.module, memo), *self._how)
        memo[id(self)] = made
        return made

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Compiled, (self.module, *self._how)
