"""The range of a parameter and numbers -> a problem where one of them lies outside."""

from collections.abc import Iterator

import torch
from torch import Tensor

from ingot.errors import Problem, Span
from ingot.messages import tell
from ingot.options import Range, allowed, find_example

__all__ = ["find_outside"]


def find_outside(
    name: str, within: Range | None, numbers: Tensor, span: Span | None = None
) -> Iterator[Problem]:
    """A problem that tells the first number out of range.

    Numbers of a GPU, and those of no device, are not looked at: it would wait for them.
    """
    if within is None or numbers.device.type != "cpu" or not numbers.numel():
        return
    if numbers.numel() == 1 and within.holds(numbers.item()):  # the usual, a few times faster
        return
    with torch.no_grad():
        flat = numbers.reshape(-1)
        outside = ~flat.isfinite()
        for bound, is_beyond in (
            (within.gt, torch.le), (within.ge, torch.lt), (within.lt, torch.ge),
            (within.le, torch.gt),
        ):  # fmt: skip
            if bound is not None:
                outside |= is_beyond(flat.double(), bound)
        if not bool(outside.any()):
            return
        shown = repr(float(flat[int(outside.int().argmax())]))
    verb = "is" if numbers.ndim == 0 else "holds"
    told = {"expected": allowed(within), "verb": verb, "shown": shown}
    fix = f"give one such as {find_example(within)}"
    yield tell("wrong value", span, name=name, **told, fix=fix)
