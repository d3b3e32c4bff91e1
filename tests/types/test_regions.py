"""Batch regions of values in input files: what each operation does to shapes and to numbers."""

from typing import Any

import pytest
import torch

from ingot.types import SR2, Scalar, Vec
from ingot.types.regions import cat, diff, linspace, logspace, mean, stack, sum


def ramp(*shape: int, sub: int = 0) -> Scalar:
    count = torch.Size(shape).numel()
    return Scalar(torch.arange(float(count)).double().reshape(shape), sub_batch_ndim=sub)


def tensor(*shape: int, sub: int = 0) -> SR2:
    count = torch.Size(shape).numel() * 6
    data = torch.arange(float(count)).double().reshape(*shape, 6)
    return SR2(data, sub_batch_ndim=sub)


def test_regions_split_the_batch_axes() -> None:
    x = tensor(2, 3, 12, sub=1)
    assert x.dynamic_batch.shape == (2, 3) and x.dynamic_batch.ndim == 2
    assert x.sub_batch.shape == (12,) and x.sub_batch_ndim == 1


@pytest.mark.parametrize(
    ("dim", "shape"), [(0, (1, 2, 3, 4, 6)), (1, (2, 1, 3, 4, 6)), (-1, (2, 3, 1, 4, 6))]
)
def test_unsqueeze_inserts_within_the_dynamic_region(dim: int, shape: tuple[int, ...]) -> None:
    found = tensor(2, 3, 4, sub=1).dynamic_batch.unsqueeze(dim)
    assert found.data.shape == shape and found.sub == 1


@pytest.mark.parametrize(("dim", "shape"), [(0, (2, 1, 4, 6)), (-1, (2, 4, 1, 6))])
def test_unsqueeze_of_the_structural_region_adds_a_structural_axis(
    dim: int, shape: tuple[int, ...]
) -> None:
    found = tensor(2, 4, sub=1).sub_batch.unsqueeze(dim)
    assert found.data.shape == shape and found.sub == 2
    assert tensor(2, 4, sub=1).sub_batch.unsqueeze(dim, n=2).sub == 3


def test_squeeze_drops_an_axis_of_size_one() -> None:
    x = tensor(1, 4, 1, sub=1)
    assert x.dynamic_batch.squeeze(0).data.shape == (4, 1, 6)
    found = x.sub_batch.squeeze(-1)
    assert found.data.shape == (1, 4, 6) and found.sub == 0


def test_expand_spreads_and_prepends_within_its_region() -> None:
    x = tensor(3, 4, sub=1)
    found = x.dynamic_batch.expand(5, 3)
    assert found.data.shape == (5, 3, 4, 6) and found.sub == 1
    assert torch.equal(found.data[4], x.data)
    found = x.sub_batch.expand((7, 4))
    assert found.data.shape == (3, 7, 4, 6) and found.sub == 2
    assert torch.equal(found.data[:, 6], x.data)
    assert Scalar(2.0).dynamic_batch.expand(3).data.tolist() == [2.0, 2.0, 2.0]


def test_expand_to_fewer_axes_than_there_are_is_refused() -> None:
    with pytest.raises(ValueError, match="a region of 2 axes does not expand"):
        tensor(3, 1, 4, sub=2).sub_batch.expand(4)


@pytest.mark.parametrize(
    ("dim", "shape"), [(0, (2, 5, 4, 6)), (1, (2, 4, 5, 6)), (-1, (2, 4, 5, 6))]
)
def test_expand_at_inserts_equal_entries(dim: int, shape: tuple[int, ...]) -> None:
    x = tensor(2, 4, sub=1)
    found = x.sub_batch.expand_at(5, dim)
    assert found.data.shape == shape and found.sub == 2
    assert torch.equal(found.data.select(1 if dim == 0 else 2, 3), x.data)


def test_retag_changes_roles_and_no_data() -> None:
    x = ramp(2, 3, 4)
    found = x.sub_batch.retag(2)
    assert found.dynamic_batch.shape == (2,) and found.sub_batch.shape == (3, 4)
    assert found.data is x.data
    assert found.sub_batch.flatten().sub == 0
    assert x.with_sub_batch_ndim(1).sub_batch.shape == (4,)
    with pytest.raises(ValueError, match="no 4 sub-batch axes"):
        x.sub_batch.retag(4)


def test_index_acts_on_its_region() -> None:
    x = tensor(5, 4, sub=1)
    assert torch.equal(x.dynamic_batch[1:3].data, x.data[1:3])
    assert torch.equal(x.dynamic_batch[0].data, x.data[0])
    assert torch.equal(x.dynamic_batch[..., 2].data, x.data[2])
    assert x.dynamic_batch[None].data.shape == (1, 5, 4, 6)
    picked = x.sub_batch[1]
    assert picked.sub == 0 and torch.equal(picked.data, x.data[:, 1])
    part = x.sub_batch[::2]
    assert part.sub == 1 and torch.equal(part.data, x.data[:, ::2])


@pytest.mark.parametrize("region", ["dynamic_batch", "sub_batch"])
def test_linspace_runs_from_start_to_end_along_a_new_axis(region: str) -> None:
    low, high = tensor(3, 4, sub=1), tensor(3, 4, sub=1) * 2.0 + Scalar(1.0)
    found = linspace(getattr(low, region), getattr(high, region), 5)
    at = 0 if region == "dynamic_batch" else 1
    assert found.sub == (1 if region == "dynamic_batch" else 2)
    assert found.data.shape == ((5, 3, 4, 6) if at == 0 else (3, 5, 4, 6))
    for i in range(5):
        expected = low.data + i / 4 * (high.data - low.data)
        torch.testing.assert_close(found.data.select(at, i), expected, rtol=1e-15, atol=1e-15)


def test_linspace_puts_the_axis_where_it_is_told() -> None:
    x = ramp(3, 4)
    assert linspace(x.dynamic_batch, (x + 1.0).dynamic_batch, 5, 1).data.shape == (3, 5, 4)
    assert linspace(x.dynamic_batch, (x + 1.0).dynamic_batch, 5, -1).data.shape == (3, 4, 5)
    y = ramp(3, 4, sub=1)
    assert linspace(y.sub_batch, (y + 1.0).sub_batch, 5, -1).data.shape == (3, 4, 5)


def test_linspace_spreads_the_shorter_of_its_ends() -> None:
    found = linspace(Vec.zeros().dynamic_batch, Vec.ones(7).dynamic_batch, 3)
    assert found.data.shape == (3, 7, 3)
    structural = Scalar(torch.ones(12), sub_batch_ndim=1)
    found = linspace(ramp(12).dynamic_batch, structural.dynamic_batch, 3)
    assert found.data.shape == (3, 12, 12) and found.sub == 1


def test_linspace_of_one_point_is_the_start() -> None:
    assert linspace(Scalar(2.0).dynamic_batch, Scalar(5.0).dynamic_batch, 1).data.tolist() == [2.0]


def test_logspace_takes_exponents() -> None:
    found = logspace(Scalar(-1.0).dynamic_batch, Scalar(1.0).dynamic_batch, 3)
    torch.testing.assert_close(found.data, torch.tensor([0.1, 1.0, 10.0]).double())
    found = logspace(Scalar(0.0).dynamic_batch, Scalar(3.0).dynamic_batch, 4, base=2.0)
    assert found.data.tolist() == [1.0, 2.0, 4.0, 8.0]


def test_stack_and_cat_join_within_a_region() -> None:
    x, y = tensor(3, 4, sub=1), tensor(3, 4, sub=1) * 2.0
    found = stack([x.dynamic_batch, y.dynamic_batch])
    assert found.data.shape == (2, 3, 4, 6) and found.sub == 1
    found = stack([x.sub_batch, y.sub_batch], -1)
    assert found.data.shape == (3, 4, 2, 6) and found.sub == 2
    assert torch.equal(found.data[:, :, 1], y.data)
    found = cat([x.sub_batch, y.sub_batch])
    assert found.data.shape == (3, 8, 6) and found.sub == 1
    assert cat([x.dynamic_batch, y.dynamic_batch], -1).data.shape == (6, 4, 6)


def test_reductions_drop_the_axis_they_reduce() -> None:
    x = tensor(3, 4, sub=1)
    found = sum(x.sub_batch)
    assert found.sub == 0 and torch.equal(found.data, x.data.sum(1))
    found = sum(x.dynamic_batch)
    assert found.sub == 1 and torch.equal(found.data, x.data.sum(0))
    assert torch.equal(mean(x.sub_batch, -1).data, x.data.mean(1))
    found = diff(x.sub_batch)
    assert found.sub == 1 and torch.equal(found.data, x.data.diff(dim=1))
    assert torch.equal(diff(x.dynamic_batch, n=2).data, x.data.diff(n=2, dim=0))


def test_structural_axes_are_padded_in_front_of_their_region() -> None:
    plain, structural = ramp(5), ramp(5, 12, sub=1)
    found = plain + structural
    assert found.data.shape == (5, 12) and found.sub == 1
    assert torch.equal(found.data, plain.data[:, None] + structural.data)
    many = tensor(5, sub=0) * structural
    assert many.data.shape == (5, 12, 6) and many.sub == 1
    assert torch.equal(many.data[2, 3], tensor(5).data[2] * structural.data[2, 3])


@pytest.mark.parametrize("count", [1.0, 0.0, "1", -1, True, float("nan")])
def test_a_number_of_structural_axes_is_a_whole_one(count: Any) -> None:
    with pytest.raises(TypeError, match="is a number of axes"):
        Scalar(torch.zeros(3, dtype=torch.float64), sub_batch_ndim=count)
