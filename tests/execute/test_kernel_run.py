"""Memory of what a kernel reports is used again, and never while somebody reads it."""

import pytest
import torch

from ingot.execute import Transient, kernel_run
from ingot.execute.kernel import Kernel
from ingot.execute.status import STATUS_ROWS


def test_statuses_keep_their_numbers_when_the_transient_runs_again(
    plastic_kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_run, "MIN_KEPT_NUMBERS", 1)  # as for large batches
    ramp = torch.linspace(0.0, 1.0, 4, dtype=torch.float64)
    strain = 1e-2 * torch.randn(4, 11, 6, dtype=torch.float64).cumsum(0)
    run = plastic_kernel.arrange(Transient(4, {"E": strain, "t": ramp}, {}))
    (first,) = run().statuses
    copies = {row: getattr(first, row).clone() for row in STATUS_ROWS}
    for row in STATUS_ROWS:
        getattr(first, row).fill_(7)
    (second,) = run().statuses
    assert all(torch.equal(getattr(second, row), copies[row]) for row in STATUS_ROWS)
    assert all(bool((getattr(first, row) == 7).all()) for row in STATUS_ROWS)
    del first, second
    assert len({run().statuses[0].residual.data_ptr() for _ in range(3)}) == 1


def test_a_loop_that_assigns_its_result_uses_two_memories(
    plastic_kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last result is still held while the next is computed, and keeps its numbers."""
    monkeypatch.setattr(kernel_run, "MIN_KEPT_NUMBERS", 1)
    source, zero = torch.Generator().manual_seed(3), torch.zeros(3000, dtype=torch.float64)
    given = {
        v.name: zero if not v.base else torch.zeros(3000, 6, dtype=torch.float64)
        for v in plastic_kernel.entry.inputs
    }
    places = set[int]()
    outputs: dict[str, torch.Tensor] = {}
    for _ in range(6):
        strain = 1e-2 * torch.randn(3000, 6, generator=source, dtype=torch.float64)
        before = {n: x.clone() for n, x in outputs.items()}
        last, outputs = outputs, plastic_kernel(given | {"E": strain, "t": zero + 1})[0]
        assert all(torch.equal(last[n], x) for n, x in before.items())
        del last
        places.add(next(iter(outputs.values())).data_ptr())
    assert len(places) == 2
