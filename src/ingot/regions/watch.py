"""Whether a module is still what was captured: the same tensors, attributes, children, no hooks.

Asked at every call, so it is a few loops that run in C.
"""

from collections.abc import Sequence
from operator import getitem, is_
from typing import Any

import torch
from torch import Tensor, nn

from ingot.graphs.torch_private import (
    HOOKS,
    MACHINERY,
    buffers_of,
    children_of,
    parameters_of,
    same_tensors,
)
from ingot.regions.structure import derived

__all__ = ["Watch"]


class Watch:
    """What a module and its children hold now, to be compared with what they hold later."""

    def __init__(self, module: nn.Module, state: Sequence[Tensor]) -> None:
        self._tables: list[dict[str, Any]] = []
        self._keys: list[str] = []
        self._values: list[Any] = []
        self._hooks: list[Any] = []
        self._lists: list[Any] = []
        self._sized: list[Any] = []
        for part in module.modules():
            own = vars(part)
            self._hooks += [own[name] for name in HOOKS]
            self._sized.append(own)
            unread = MACHINERY | derived(part)
            self._note(own, [k for k in own if k not in unread])
            for table in (parameters_of(part), buffers_of(part), children_of(part)):
                self._note(table, list(table))
                self._sized.append(table)
        self._alive = [_content(x) for x in self._lists]
        self._contents = [list(map(id, content)) for content in self._alive]
        self._lengths = list(map(len, self._sized))
        self._state = tuple(state)
        # the two modes see one tensor differently
        with torch.inference_mode(False):
            usual = same_tensors(self._state)
        with torch.inference_mode():
            self._same = (usual, same_tensors(self._state))

    def _note(self, table: dict[str, Any], keys: Sequence[str]) -> None:
        for key in keys:
            self._tables.append(table)
            self._keys.append(key)
            self._values.append(table[key])
            if isinstance(table[key], (list, dict, set)):
                self._lists.append(table[key])

    def holds(self) -> bool:
        """Whether nothing was replaced, added or removed, or has another shape or precision."""
        try:
            found = all(map(is_, map(getitem, self._tables, self._keys), self._values))
        except KeyError:
            return False
        return (
            found
            and not any(self._hooks)
            and list(map(len, self._sized)) == self._lengths
            and (not self._lists or self._same_contents())
            and self._same[torch.is_inference_mode_enabled()](*self._state)
        )

    def _same_contents(self) -> bool:
        return [list(map(id, _content(x))) for x in self._lists] == self._contents


def _content(container: Any) -> list[Any]:
    return list(container.values() if isinstance(container, dict) else container)
