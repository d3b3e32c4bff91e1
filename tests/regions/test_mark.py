"""Blocks are what the user marks, or what comes more than once."""

import pytest
import torch
from torch import nn

from ingot.errors import IngotError
from ingot.regions import noinline
from ingot.regions.mark import Blocks, find_marks
from tests.regions.networks import Residual, Stack, stack


def find_blocks(model: nn.Module, blocks: Blocks) -> list[str]:
    """The names of the modules that are blocks."""
    is_block = find_marks(model, blocks).find(model)
    return [name for name, m in model.named_modules() if is_block(str(id(m)), type(m))]


def test_a_class_names_all_its_instances() -> None:
    assert find_blocks(stack(3), Residual) == ["blocks.0", "blocks.1", "blocks.2"]


def test_a_list_names_modules() -> None:
    model = stack(3)
    assert find_blocks(model, [model.blocks[1]]) == ["blocks.1"]


def test_classes_that_repeat_are_found() -> None:
    model = Stack([Residual(8), nn.Sequential(nn.Linear(8, 8), nn.Tanh()), Residual(8, 2.0)])
    assert find_blocks(model, "auto") == ["blocks.0", "blocks.2"]


def test_the_outermost_block_wins() -> None:
    model = Stack([nn.Sequential(Residual(8), Residual(8)) for _ in range(2)])
    assert find_blocks(model, "auto") == ["blocks.0", "blocks.1"]


def test_a_marked_class_is_a_block_without_being_named() -> None:
    @noinline
    class Kept(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.sin()

    assert find_blocks(Stack([Kept(), Residual(8)]), []) == ["blocks.0"]


def test_a_marked_function_runs_as_before() -> None:
    @noinline
    def double(x: torch.Tensor) -> torch.Tensor:
        """Twice."""
        return 2 * x

    assert double.__doc__ == "Twice."
    assert double(torch.ones(1)) == 2


def test_what_is_no_block_is_named_with_what_is_there() -> None:
    with pytest.raises(IngotError) as error:
        find_blocks(stack(1), [nn.Conv2d, Residual(8)])
    assert str(error.value) == (
        "error[region-block]: no module of class 'Conv2d' below 'Stack'\n"
        "  fix: below it are LayerNorm, Linear, ModuleList, Residual\n\n"
        "error[region-block]: a 'Residual' was given as a block; it is not below 'Stack'\n"
        "  fix: below it are LayerNorm, Linear, ModuleList, Residual"
    )


def test_another_word_than_auto_is_refused() -> None:
    with pytest.raises(IngotError, match="blocks='all' is no way to find blocks"):
        find_blocks(stack(1), "all")  # pyright: ignore[reportArgumentType]


def test_marking_something_else_is_refused() -> None:
    with pytest.raises(IngotError, match="'dict' is neither a module class nor"):
        noinline(dict)
