"""Graphs are traced for batches of any size, and a batch that a trace fixes is seen."""

import torch

from ingot.execute.inductor_child import TRACED_BATCH, fake_inputs, find_baked_sizes


def test_batch_stays_open() -> None:
    _, (many,) = fake_inputs([3], torch.float64)
    assert many.shape[0] == 3 and isinstance(many.shape[0], int)
    assert isinstance(many.shape[1], torch.SymInt)


def test_all_inputs_have_one_batch() -> None:
    _, (a, b) = fake_inputs([3, 0], torch.float32)
    assert str(a.shape[1]) == str(b.shape[0])
    assert a.dtype == torch.float32


def test_batch_that_a_trace_bakes_in_is_seen() -> None:
    mode, (a,) = fake_inputs([3], torch.float64)
    assert find_baked_sizes(mode) == []
    assert a.shape[1] == TRACED_BATCH
    assert find_baked_sizes(mode)
