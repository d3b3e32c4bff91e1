"""The grid and its transforms."""

import math

import pytest
import torch

from ingot.errors import IngotError
from ingot.fields import space
from ingot.fields.spaces import Mode

SIZES = [(8,), (9,), (8, 6), (9, 11), (6, 8, 10), (5, 7, 9)]


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("mode", ["NONE", "FFT_SLAB", "FFT_PENCIL"])
def test_a_transform_and_back_is_nothing(sizes: tuple[int, ...], mode: Mode) -> None:
    box = space(sizes, mode=mode)
    field = torch.rand(*sizes, 2, dtype=torch.float64)
    spectrum = box.forward(field)
    assert tuple(spectrum.shape[:-1]) == box.spectrum_shape
    torch.testing.assert_close(box.inverse(spectrum), field)


@pytest.mark.parametrize("mode", ["NONE", "FFT_SLAB", "FFT_PENCIL"])
def test_the_slope_of_a_wave_is_known(mode: Mode) -> None:
    length = (2 * math.pi, 4 * math.pi, 6 * math.pi)
    box = space((8, 10, 12), upper=length, mode=mode)
    x, y, z = box.axes
    field = torch.sin(x) * torch.cos(y / 2) + torch.sin(z / 3)
    spectrum = box.forward(field)
    slopes = (
        torch.cos(x) * torch.cos(y / 2),
        -torch.sin(x) * torch.sin(y / 2) / 2,
        torch.cos(z / 3) / 3,
    )
    for axis, slope in enumerate(slopes):
        torch.testing.assert_close(box.derivative(spectrum, axis), slope.expand(box.shape))


def test_points_are_the_centres_of_cells() -> None:
    box = space((4, 2), (-1.0, 0.0, 0.0), (1.0, 3.0, 1.0))
    assert box.axes[0].flatten().tolist() == [-0.75, -0.25, 0.25, 0.75]
    assert box.axes[1].shape == (1, 2)
    assert box.axes[2].tolist() == [0.0]
    assert float(box.volume) == 6.0
    assert float(box.cell_volume) == 0.75


def test_the_highest_wavenumber_is_kept() -> None:
    box = space((4, 4), upper=(2 * math.pi, 2 * math.pi, 1.0))
    assert box.waves[0].flatten().tolist() == [0.0, 1.0, -2.0, -1.0]
    assert box.waves[1].flatten().tolist() == [0.0, 1.0, 2.0]


def test_a_space_is_rebuilt_of_its_tensors() -> None:
    box = space((6, 4), mode="FFT_SLAB", slabs=(2, 2))
    other = space((10, 12), mode="FFT_SLAB")
    again = box.rebuilt(other.tensors())
    assert again.shape == (10, 12)
    assert (again.mode, again.slabs) == ("FFT_SLAB", (2, 2))
    assert all(a is b for a, b in zip(again.tensors(), other.tensors(), strict=True))


def test_a_space_without_transforms_says_so() -> None:
    box = space((4, 4), mode="REAL_SPACE")
    with pytest.raises(IngotError, match="REAL_SPACE has no Fourier transform"):
        box.forward(box.full(1.0))
