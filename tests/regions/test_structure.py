"""Modules are told apart by what they do, never by their names or numbers."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations

from ingot.regions.structure import structure, value_key
from tests.regions.networks import Attention, Residual


def test_numbers_do_not_count() -> None:
    assert structure(Residual(8)) == structure(Residual(8))
    assert hash(structure(Attention(8))) == hash(structure(Attention(8)))


@pytest.mark.parametrize(
    "other",
    [
        Residual(16),
        Residual(8, 2.0),
        Residual(8).double(),
        Residual(8).eval(),
        Residual(8).requires_grad_(False),
        Attention(8),
    ],
    ids=["shape", "attribute", "dtype", "mode", "gradient", "class"],
)
def test_what_changes_the_code_counts(other: nn.Module) -> None:
    assert structure(other) != structure(Residual(8))


def closing_over(k: float) -> nn.Module:
    class Scaled(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * k

    return Scaled()


class Applied(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


def times(k: float) -> Callable[[Tensor], Tensor]:
    return lambda x: x * k


def test_class_written_twice_is_one_unless_its_closure_differs() -> None:
    assert structure(closing_over(2.0)) == structure(closing_over(2.0))
    assert structure(closing_over(2.0)) != structure(closing_over(3.0))


def test_function_in_an_attribute_counts_with_its_closure() -> None:
    assert structure(Applied(times(2.0))) == structure(Applied(times(2.0)))
    assert structure(Applied(times(2.0))) != structure(Applied(times(3.0)))


def test_functions_that_read_other_globals_differ() -> None:
    spaces: list[dict[str, object]] = [{"k": 2.0}, {"k": 3.0}]
    for space in spaces:
        exec("def f(x): return x * k", space)
    assert value_key(spaces[0]["f"]) != value_key(spaces[1]["f"])


def test_signed_zero_and_nan_are_told_apart() -> None:
    assert value_key(0.0) != value_key(-0.0)
    assert value_key(1) != value_key(1.0) != value_key(True)
    assert value_key(math.nan) == value_key(math.nan)


def test_tied_tensors_count() -> None:
    tied, free = (nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)) for _ in range(2))
    tied[1].weight = tied[0].weight
    assert structure(tied) != structure(free)


def test_method_replaced_on_a_class_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = structure(Residual(8))
    monkeypatch.setattr(Residual, "forward", lambda self, x: x)
    assert structure(Residual(8)) != before


def test_forward_replaced_on_an_instance_counts() -> None:
    block = Residual(8)
    before = structure(block)
    block.forward = lambda x: x
    assert structure(block) != before


def test_parametrised_modules_are_equal_though_each_has_a_class_of_its_own() -> None:
    a, b = (parametrizations.weight_norm(nn.Linear(4, 4)) for _ in range(2))
    assert type(a) is not type(b)
    assert structure(a) == structure(b) != structure(nn.Linear(4, 4))


def test_an_object_without_contents_is_itself_only() -> None:
    a, b = torch.Generator(), torch.Generator()
    assert value_key(a) == value_key(a) != value_key(b)


def test_values_that_hold_themselves_have_an_end() -> None:
    loop: list[object] = [1]
    loop.append(loop)
    assert value_key(loop) == value_key(loop)
