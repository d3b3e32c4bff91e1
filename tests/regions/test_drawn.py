"""Modules, edits and calls drawn from a grammar: compiled ones do what eager ones do."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch._inductor.config as inductor
from torch import Tensor, nn

from ingot import regions
from tests.regions.drawn import draw, play
from tests.regions.observe import differences, same_bits, within

Near = Callable[[Tensor, Tensor], bool]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Torch warns of what draws do on purpose; its tables of frames are emptied after a test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    torch._dynamo.reset()


def compare(seed: int, backend: str, near: Near, *, small: bool) -> str:
    """What differs from eager in a draw, with its source text; nothing if nothing does."""
    text = draw(seed, small=small)
    if backend == "inductor":  # 2.13 refuses random numbers in a checkpoint without gradients
        text = text.replace("checkpoint(lambda", "(lambda f, x, use_reentrant: f(x))(lambda")

    def compiled(module: nn.Module, example: Any, blocks: Any, dynamic: Any) -> nn.Module:
        return regions.compile(module, example, blocks, dynamic=dynamic, backend=backend)

    wanted, records = play(text, f"eager{seed}"), play(text, f"draw{seed}", compiled)
    for number, (a, b) in enumerate(zip(wanted, records, strict=False)):
        if "refused" in b:
            return f"seed {seed}, step {number}: {b['refused']}\n{text}"
        if "raised" in a and "raised" in b:
            return ""
        if "raised" in b and _raises_by_torch(text, seed, number, backend):
            return ""
        if "raised" in a or "raised" in b:
            which = ("eager", a) if "raised" in a else ("compiled", b)
            return f"seed {seed}, step {number}: {which[0]} raises {which[1]['raised']!r}\n{text}"
        # what was half precision on its way is as near as half precision is
        coarse = backend == "inductor" and "bfloat16" in text
        found = differences(a, b, within(0.03) if coarse else near)
        if found:
            return f"seed {seed}, step {number}: " + "\n".join(found[:8]) + f"\n{text}"
    return ""


def _raises_by_torch(text: str, seed: int, step: int, backend: str) -> bool:
    """Whether torch.compile raises there too, as it does with checkpoints under autocast."""
    torch._dynamo.reset()

    def compiled(module: nn.Module, *_: Any) -> nn.Module:
        return torch.compile(module, backend=backend)  # pyright: ignore[reportReturnType]

    records = play(text, f"torch{seed}", compiled)
    torch._dynamo.reset()
    return step < len(records) and "raised" in records[step]


def check(seeds: range, backend: str, near: Near) -> None:
    """Raise with the first text that differs and with the seeds of all; one of four is large."""
    failures = {
        seed: said
        for seed in seeds
        if (said := compare(seed, backend, near, small=seed % 4 != 0 or len(seeds) < 20))
    }
    assert not failures, f"seeds {sorted(failures)}; " + next(iter(failures.values()))


@pytest.mark.parametrize("chunk", range(10))
def test_drawn_modules_do_what_eager_does(chunk: int) -> None:
    check(range(10 * chunk, 10 * chunk + 10), "eager", same_bits)


@pytest.mark.exhaustive
@pytest.mark.parametrize("chunk", range(40))
def test_2000_drawn_modules_do_what_eager_does(chunk: int) -> None:
    check(range(50 * chunk, 50 * chunk + 50), "eager", same_bits)


@pytest.fixture
def same_random_numbers() -> Iterator[None]:
    """Generated code takes torch's random numbers, not its own."""
    with inductor.patch(fallback_random=True):
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("same_random_numbers")
def test_drawn_modules_compiled_by_inductor_do_what_eager_does() -> None:
    check(range(4, 9), "inductor", within(1e-4))  # those of few kernels: 15 s


@pytest.mark.exhaustive
@pytest.mark.usefixtures("same_random_numbers")
@pytest.mark.parametrize("chunk", range(10))
def test_50_drawn_modules_compiled_by_inductor_do_what_eager_does(chunk: int) -> None:
    check(range(5 * chunk, 5 * chunk + 5), "inductor", within(1e-4))
