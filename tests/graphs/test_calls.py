"""The cache of calls: found by guards or by key, bounded, and shared by threads."""

import random
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from ingot.graphs.calls import GUARDED, KEPT, CallCache, layouts_of


def drawn(draw: random.Random) -> Tensor:
    """A tensor of some shape, order, precision and need of a gradient."""
    shape = [draw.randint(1, 3) for _ in range(draw.randint(0, 3))]
    x = torch.empty(shape, dtype=draw.choice([torch.float32, torch.float64]))
    x = x.permute(draw.sample(range(x.dim()), x.dim()))
    return x.requires_grad_(draw.random() < 0.5)


def lies(x: Tensor) -> tuple[object, ...]:
    return x.shape, x.stride(), x.dtype, x.requires_grad


def test_what_is_found_was_kept_for_the_same_layout() -> None:
    draw = random.Random(5)
    cache: CallCache[object] = CallCache()
    hits = 0
    for _ in range(2000):
        tensors, mode = [drawn(draw)], draw.choice([True, False])
        found = cache.match(mode, tensors)
        if found is None:
            cache.guard(mode, tensors, (mode, lies(tensors[0])))
        else:
            hits += 1
            assert found == (mode, lies(tensors[0]))
    assert 0 < hits < 2000


def test_the_last_few_are_guarded_and_only_so_many_are_kept() -> None:
    cache: CallCache[int] = CallCache()
    assert not cache.is_guarding
    made = [[torch.empty(n + 1)] for n in range(KEPT + 1)]
    for n, tensors in enumerate(made):
        assert cache.keep(layouts_of(tensors), n) == n
        cache.guard(None, tensors, n)
    assert [cache.match(None, t) for t in made[-GUARDED - 1 :]] == [
        None, *range(KEPT + 1 - GUARDED, KEPT + 1),
    ]  # fmt: skip
    assert cache.match(True, made[-1]) is None
    assert cache.values() == [KEPT]
    assert cache.find(layouts_of(made[0])) is None and cache.find(layouts_of(made[-1])) == KEPT


def test_threads_share_it() -> None:
    cache: CallCache[tuple[object, ...]] = CallCache()

    def work(seed: int) -> None:
        draw = random.Random(seed)
        for _ in range(500):
            x = drawn(draw)
            found = cache.match(None, [x]) or cache.find(lies(x))
            assert found in (None, lies(x))
            cache.guard(None, [x], cache.keep(lies(x), lies(x)))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
