"""Axes that lie as one in all operands are one; the others keep their strides."""

import pytest
import torch

from ingot.codegen.grids import THREADS_PER_GROUP as THREADS
from ingot.fields.jit.native import Launch, Layout, joined, order_of


def test_contiguous_operands_have_one_axis() -> None:
    found = joined((4, 5, 6), [torch.zeros(4, 5, 6), torch.zeros(4, 5, 6)])
    assert (found.rank, found.extents, found.strides) == (3, (120,), ((1,), (1,)))


def test_a_number_has_no_strides() -> None:
    found = joined((4, 5), [torch.zeros(()), torch.zeros(4, 5)])
    assert (found.extents, found.strides) == ((20,), ((0,), (1,)))
    assert joined((), [torch.zeros(())]).extents == (1,)


def test_axes_along_which_one_operand_is_spread_stay_apart() -> None:
    found = joined((4, 5, 6), [torch.zeros(4, 5, 6), torch.zeros(6), torch.zeros(4, 1, 1)])
    assert found.extents == (4, 5, 6)
    found = joined((4, 5, 6), [torch.zeros(4, 5, 6), torch.zeros(4, 1, 1)])
    assert (found.extents, found.strides) == ((4, 30), ((30, 1), (1, 0)))


def test_axes_are_taken_as_most_memory_has_them() -> None:
    turned, plain = torch.zeros(6, 5, 4).permute(2, 1, 0), torch.zeros(4, 5, 6)
    assert order_of((4, 5, 6), [plain, plain[:1].expand(4, 5, 6), turned]) == (0, 1, 2)
    order = order_of((4, 5, 6), [plain, turned, turned, torch.zeros(())])
    assert order == (2, 1, 0)
    assert joined((4, 5, 6), [turned, turned], order).extents == (120,)
    assert joined((4, 5, 6), [turned, torch.zeros(4, 1, 1)], order).extents == (30, 4)


def test_a_gpu_is_told_of_axes_that_are_not_in_use() -> None:
    told: list[tuple[int, bytes]] = []
    launch = Launch(lambda *task: told.append(task))
    layout = joined((4, 5, 60), [torch.zeros(4, 5, 60), torch.zeros(4, 1, 1)])
    launch.run([11, 12], [2.5], launch.arranged(layout, 1))
    ((blocks, task),) = told
    assert blocks == -(-1200 // THREADS)
    words = torch.frombuffer(bytearray(task[:32]), dtype=torch.int64).tolist()
    assert words[:2] == [11, 12]
    assert torch.tensor([words[2]]).view(torch.float64).item() == 2.5
    assert words[3] == 1200
    rest = torch.frombuffer(bytearray(task[32:]), dtype=torch.int32).tolist()
    assert rest == [1, 1, 4, 300, 0, 300, 1, 0, 1, 0]


def test_a_field_too_large_for_a_gpu_loop_is_refused() -> None:
    layout = Layout(1, (4,), ((2**31,),))
    with pytest.raises(OverflowError, match="too large"):
        Launch(lambda *task: None).arranged(layout, 1)
