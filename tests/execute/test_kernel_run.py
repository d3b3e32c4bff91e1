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
