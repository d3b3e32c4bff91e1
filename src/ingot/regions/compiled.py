"""A module whose blocks are each compiled once, at its calls, by torch.compile with our backend."""

import copy
import inspect
from collections.abc import Callable
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from ingot.errors import IngotError, Problem
from ingot.graphs import torch_private
from ingot.graphs.replay import replay_blocks
from ingot.graphs.sizes import Dynamic, choose_axes
from ingot.graphs.torch_private import forward_mode, transforms
from ingot.graphs.tree import flatten
from ingot.keywords import check_keywords
from ingot.regions.backend import Backend
from ingot.regions.mark import Marks, enter_block, leave_block
from ingot.regions.report import Report
from ingot.regions.units import Compiler

__all__ = ["Compiled", "name_parameters"]

_OWN = ("module", "training", "report", "_how", "_call", "_names")


def name_parameters(module: nn.Module) -> tuple[str, ...]:
    """The names of what a call of a module may be given in turn, and then by name."""
    found = inspect.signature(module.forward).parameters.values()
    return tuple(p.name for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD))


@check_keywords
class Compiled(nn.Module):
    """A module whose blocks are each compiled once. Torch's guards are asked at every call.

    module: what was compiled, with its own tensors, hooks and attributes.
    """

    def __init__(
        self, module: nn.Module, marks: Marks, compiler: Compiler, dynamic: Dynamic = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.module = module
        self.training = module.training
        self._how = marks, compiler, dynamic
        self._names = name_parameters(module)
        self.report = Report(mode="jit")
        backend = Backend(module, marks, compiler, self.report)
        torch_private.keep_calls((enter_block, leave_block))
        self._call = torch_private.compile_calls(module, backend)

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
        names = [*self._names, *(f"argument{i}" for i in range(len(args)))]
        given = [*zip(names, args, strict=False), *kwargs.items()]
        leaves = [(n + path, x) for n, value in given for path, x in flatten(value)[0]]
        tensors = [(name, x) for name, x in leaves if isinstance(x, Tensor)]
        dynamic = self._how[2]
        # a list may name fewer tensors than a call has
        each = isinstance(dynamic, list | tuple)
        axes = dynamic if each else choose_axes(dynamic, tensors, one_of_several=True)
        for (_, tensor), chosen in zip(tensors, axes, strict=False):
            torch_private.hint_open(tensor, [a for a in chosen if -tensor.ndim <= a < tensor.ndim])

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
        if begun and name == "module" and value is not self.module:
            self._refuse_other()
        if begun and name not in _OWN and name not in self.__dict__:
            setattr(self.module, name, value)
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if name == "module":
            self._refuse_other()
        if name in _OWN or name in self.__dict__:
            super().__delattr__(name)
        else:
            delattr(self.module, name)

    def _refuse_other(self) -> NoReturn:
        told = "'module' is what was compiled, and calls would still run it"
        fix = "compile the other module, or replace parts of this one: their guards are asked"
        raise IngotError([Problem("region-argument", told, None, fix)])

    def __deepcopy__(self, memo: dict[int, Any]) -> "Compiled":
        made = Compiled(copy.deepcopy(self.module, memo), *self._how)
        memo[id(self)] = made
        return made

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Compiled, (self.module, *self._how)
