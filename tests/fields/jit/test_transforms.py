"""Inverse transforms by MKL's own plans: what torch gives, and no memory written that is read."""

import random
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from ingot.fields.jit.transforms import inverse_plans, real_field
from ingot.fields.spaces import Space
from ingot.fields.step import Ambient, Buffer, Source, Step
from ingot.graphs.torch_private import find_dfti, real_transform

from .cases import state_of
from .conftest import Both

needs_mkl = pytest.mark.skipif(find_dfti() is None, reason="needs a torch with MKL")


def drawn_spectrum(draw: random.Random, shape: list[int], dtype: torch.dtype) -> Tensor:
    """Any numbers: of a real field only some are, and torch tells what the others do."""
    dice = torch.Generator().manual_seed(draw.getrandbits(31))
    half = (*shape[:-1], shape[-1] // 2 + 1)
    return torch.randn(half, dtype=torch.complex128, generator=dice).to(dtype)


@needs_mkl
@pytest.mark.parametrize("seed", range(40))
def test_a_field_is_that_of_torch(seed: int) -> None:
    draw = random.Random(seed)
    shape = [draw.randint(2, 20) for _ in range(draw.choice([2, 3]))]
    dtype = draw.choice([torch.complex64, torch.complex128])
    normalization, spare = draw.randrange(3), draw.random() < 0.5
    spectrum = drawn_spectrum(draw, shape, dtype)
    before, axes = spectrum.clone(), list(range(len(shape)))
    wanted = real_transform(spectrum, axes, normalization, shape[-1])
    threads = torch.get_num_threads()
    torch.set_num_threads(draw.choice([1, 2]))
    try:
        found = real_field(spectrum, axes, normalization, shape[-1], spare)
    finally:
        torch.set_num_threads(threads)
    close = 20 * torch.finfo(dtype).eps * float(wanted.abs().max())
    torch.testing.assert_close(found, wanted, rtol=0, atol=close)
    assert found.is_contiguous()
    assert spare or torch.equal(spectrum, before)


@needs_mkl
@pytest.mark.parametrize(
    ("shape", "change", "axes"),
    [
        ([6, 1], lambda x: x, [0, 1]),
        ([1, 6, 4], lambda x: x, [0, 1, 2]),
        ([8], lambda x: x, [0]),
        ([5, 6], lambda x: x.mT.contiguous().mT, [0, 1]),
        ([5, 6], lambda x: x.conj(), [0, 1]),
        ([5, 6], lambda x: x[:1].expand(5, 4), [0, 1]),
        ([5, 5, 8], lambda x: x, [1, 0, 2]),
        ([5, 5, 8], lambda x: x, [1, 2]),
    ],
)
def test_what_mkl_would_read_wrongly_is_left_to_torch(
    shape: list[int], change: Callable[[Tensor], Tensor], axes: list[int]
) -> None:
    spectrum = change(drawn_spectrum(random.Random(0), shape, torch.complex128))
    known = inverse_plans.cache_info().misses
    assert torch.equal(
        real_field(spectrum, axes, 2, shape[-1]), real_transform(spectrum, axes, 2, shape[-1])
    )
    assert inverse_plans.cache_info().misses == known


def test_a_spectrum_of_other_sizes_is_left_to_torch() -> None:
    whole = drawn_spectrum(random.Random(0), [4, 10], torch.complex128)
    assert whole.shape == (4, 6)
    assert torch.equal(real_field(whole, [0, 1], 2, 6), real_transform(whole, [0, 1], 2, 6))
    with pytest.raises(RuntimeError):
        real_field(whole, [0, 1], 2, 9)


def woven(seed: int) -> Callable[..., list[Tensor]]:
    """Fields of spectra that other operations read too, before and after, and that are given."""

    def function(fields: tuple[Tensor, ...], space: Space) -> list[Tensor]:
        draw = random.Random(seed)
        spectra = [space.forward(field) for field in fields]
        found: list[Tensor] = []
        for _ in range(12):
            one, two = draw.choice(spectra), draw.choice(spectra)
            match draw.randrange(4):
                case 0:
                    spectra.append(one * draw.uniform(0.5, 1) + two)
                case 1:
                    found.append(space.inverse(one))
                case 2:
                    found.append(space.inverse(one + two) * space.inverse(two))
                case _:
                    spectra.append(space.forward(space.inverse(one) * 0.1))
        return [*found, *spectra[len(fields) :: 2], space.inverse(spectra[-1])]

    return function


@pytest.mark.parametrize("seed", range(6))
def test_no_spectrum_is_overwritten_that_is_read_later(seed: int, both: Both) -> None:
    state = state_of((6, 7, 8) if seed % 2 else (9, 10), "a", "b", seed=seed)
    count = len(woven(seed)(tuple(state.buffers.values()), state.space))
    arguments: dict[str, Source | tuple[Source, ...]] = {
        "fields": (Buffer("a"), Buffer("b")), "space": Ambient("space"),
    }  # fmt: skip
    step = Step("woven", woven(seed), arguments, tuple(f"g{k}" for k in range(count)))
    assert both((step,), state).statistics.fallbacks == 0
