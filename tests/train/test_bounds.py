"""An index that is out of bounds is an error, never foreign memory and never the process's end."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import ingot.train as train
from ingot.errors import IngotError
from tests.train.models import disagreement, eager

X = torch.randn(4, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
ROWS, COLUMNS = torch.tensor([-4, 3, 0]), torch.tensor([[2, 1]] * 4)


def whole(x: Tensor, rows: Tensor, columns: Tensor) -> tuple[Tensor, ...]:
    return x[rows], x.gather(1, columns), functional.embedding(columns, x)


@pytest.fixture(scope="module")
def joint() -> train.Joint:
    return eager(whole, (X, ROWS, COLUMNS), dynamic={"rows": {0: "count"}})


def test_indices_within_bounds_are_right(joint: train.Joint) -> None:
    assert disagreement(whole, joint, (X, ROWS, COLUMNS)) < 1e-6
    assert disagreement(whole, joint, (X, torch.tensor([1]), COLUMNS)) < 1e-6


@pytest.mark.parametrize(
    ("rows", "columns", "told"),
    [
        ([4], 0, r"aten.index.Tensor of an axis of 4"),
        ([0, -5], 0, r"aten.index.Tensor of an axis of 4"),
        ([0], 3, r"aten.gather.default of an axis of 3"),
        ([0], -1, r"aten.gather.default of an axis of 3"),
        ([0], 4, r"aten.embedding.default of an axis of 4"),
    ],
)
def test_others_are_told(joint: train.Joint, rows: list[int], columns: int, told: str) -> None:
    with pytest.raises(IngotError, match=rf"(?s)wrong-index.*'whole': out of bounds in.*{told}"):
        joint(X, torch.tensor(rows), torch.full((4, 2), columns))


def test_nothing_is_written_when_an_index_is_wrong() -> None:
    def counted(x: Tensor, rows: Tensor, seen: Tensor) -> Tensor:
        seen.add_(1)
        return x[rows]

    seen = torch.zeros(())
    joint = eager(counted, (X, ROWS, seen))
    with pytest.raises(IngotError, match="wrong-index"):
        joint(X, torch.tensor([0, 0, 9]), seen)
    assert seen == 0


def test_graphs_that_index_by_constants_have_no_status() -> None:
    assert not eager(lambda x: x[torch.tensor([1, 0])], X).signature.indices
    table = torch.ones(4)
    joint = eager(lambda x: table[torch.arange(x.shape[0])], X, dynamic="batch")
    with pytest.raises(IngotError, match="wrong-index"):
        joint(torch.ones(5, 3))


@pytest.mark.exhaustive
def test_compiled_code_reads_nothing_out_of_bounds() -> None:
    table = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    joint = train.joint(
        lambda i, w: functional.embedding(i, w), (torch.tensor([1, 2]), table),
        dynamic={"i": {0: "n"}}, compile_backward="eager",
    )  # fmt: skip
    index = torch.tensor([1, 4, 0])
    assert torch.equal(joint(index, table), table[index])
    for wrong in (7, -1, 2**62):
        with pytest.raises(IngotError, match="wrong-index"):
            joint(torch.tensor([1, wrong, 0]), table)
