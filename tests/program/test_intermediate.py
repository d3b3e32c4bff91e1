"""Sums, means and differences along structural axes are those of torch, and so are their slopes."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from ingot.errors import IngotError
from ingot.execute import executor
from ingot.hit import read_text
from ingot.model import build
from ingot.program import along_direction, prepared

BLOCK = """
  [{to}]
    type = SR2Intermediate{type}
    from = 'a'
    to = '{to}_of_a'
    reduces = 'grain'
    {more}
  []
"""
WANTED: dict[str, tuple[str, str, Callable[[Tensor], Tensor]]] = {
    "sum": ("Sum", "", lambda a: a.sum(2)),
    "mean": ("Mean", "", lambda a: a.mean(2)),
    "last": ("Diff", "dim = -1", lambda a: a.diff(dim=2)),
    "third": ("Diff", "dim = 1\n n = 3", lambda a: a.diff(n=3, dim=2)),
    "first": ("Diff", "dim = 0", lambda a: a.diff(dim=1)),
}


@pytest.mark.parametrize("backend", ["interpret", "kernel"])
def test_a_structural_axis_is_reduced_as_torch_does(backend: Any) -> None:
    blocks = [BLOCK.format(to=to, type=type, more=m) for to, (type, m, _) in WANTED.items()]
    all = f"[all]\n type = ComposedModel\n models = '{' '.join(WANTED)}'\n []"
    model = build(read_text(f"[Models]\n{''.join(blocks)}\n{all}\n[]"), "all")
    a, direction = torch.rand(2, 3, 2, 5, 6, dtype=torch.float64)
    program = along_direction(prepared(model, {"a": (2, 5)}))
    found, _ = executor(program, backend)({"a": a, "d.a": direction})
    for to, (_, _, function) in WANTED.items():
        torch.testing.assert_close(found[f"{to}_of_a"], function(a))
        torch.testing.assert_close(found[f"d.{to}_of_a"], function(direction))


@pytest.mark.parametrize(
    ("type", "more", "shape", "told"),
    [
        ("Sum", "", (), "no axis -1"),
        ("Diff", "dim = 2", (2, 5), "no axis 2"),
        ("Diff", "dim = 0\n n = 5", (5,), "too few entries"),
        ("Diff", "", (5,), "'dim'"),
    ],
)
def test_what_cannot_be_reduced_is_told(
    type: str, more: str, shape: tuple[int, ...], told: str
) -> None:
    with pytest.raises(IngotError, match=told):
        text = f"[Models]\n{BLOCK.format(to='b', type=type, more=more)}\n[]"
        prepared(build(read_text(text), "b"), {"a": shape})
