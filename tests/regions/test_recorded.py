"""What is recorded as a CUDA graph; that replays are right is for tests/gpu."""

import torch

from ingot.regions.recorded import equal, recordable


def test_nothing_on_a_cpu_is_recorded() -> None:
    x = torch.zeros(3)
    assert not recordable([x], [x])
    assert not recordable([], [x])
    assert not recordable([x], [torch.empty(3, device="meta")])


def test_tensors_are_equal_where_both_hold_no_number() -> None:
    x = torch.tensor([1.0, torch.nan, -0.0])
    assert equal(x, x.clone())
    assert not equal(x, torch.tensor([1.0, torch.nan, 1.0]))
    assert not equal(torch.zeros(2), torch.tensor([0.0, torch.nan]))
    assert equal(torch.tensor([True, False]), torch.tensor([True, False]))
