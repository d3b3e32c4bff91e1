"""Models of the zoo, compiled by blocks and packed: inference and training are those of eager."""

import copy
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
import torch._inductor.config as inductor
from torch import Tensor, nn

from ingot import regions, train
from tests.regions.observe import describe, differences, same_bits, state, weighted, within
from tests.train.models import said_elsewhere
from tests.zoo.models import ZOO, Entry, Llama, LlamaBlock

BACKENDS = {
    "eager": ("eager", same_bits, 1),
    "eager-sizes": ("eager", same_bits, 2),
    "inductor": ("inductor", within(1e-9), 2),
}
"""What compiles units, how near results are to eager's, and how many calls of other sizes.

Generated code sums in another order, which training makes much of: it is compared in double.
"""

backends = pytest.mark.parametrize("backend", [
    pytest.param(b, id=n, marks=[pytest.mark.exhaustive] if b[2] > 1 else [])
    for n, b in BACKENDS.items()
])  # fmt: skip
entries = pytest.mark.parametrize("entry", ZOO.values(), ids=ZOO)
STATIC = {name: entry for name, entry in ZOO.items() if name != "sparse-moe"}


@pytest.fixture(autouse=True)
def same_random_numbers() -> Any:
    """Generated code takes torch's random numbers; guards are not timed for a log."""
    timed = mock.patch("torch._dynamo.guards.profile_guard_manager", lambda *_: 0.0, create=True)
    with timed, inductor.patch({"fallback_random": True, "cpp.vec_isa_ok": True}):
        yield
    torch._dynamo.reset()


def prepare(entry: Entry, *, double: bool = False) -> tuple[nn.Module, list[tuple[Any, ...]]]:
    """A model with its numbers, and the arguments of its calls."""
    torch.manual_seed(0)
    model, calls = entry.make(), entry.calls()
    if not double:
        return model, calls
    wide = torch.utils._pytree.tree_map_only(
        Tensor, lambda t: t.double() if t.is_floating_point() else t, calls
    )
    return model.double(), wide


def steps(module: nn.Module, calls: list[tuple[Any, ...]]) -> list[Any]:
    """Train for a step per call; gives losses and random states."""
    optimiser = torch.optim.SGD(module.parameters(), lr=0.05, momentum=0.9)
    seen = []
    for number, call in enumerate(calls):
        torch.manual_seed(number)
        optimiser.zero_grad()
        loss = weighted(module(*call))
        assert loss is not None
        loss.backward()
        optimiser.step()
        seen.append([loss.detach(), torch.get_rng_state()])
    return seen


@entries
@backends
def test_inference_is_that_of_eager(entry: Entry, backend: Any) -> None:
    model, calls = prepare(entry, double=backend[0] == "inductor")
    model.eval()
    fast = regions.compile(model, calls[0], entry.block, backend=backend[0])
    with torch.no_grad():
        for call in calls[: backend[2]]:
            assert not differences(describe(model(*call)), describe(fast(*call)), backend[1])


@entries
@backends
def test_training_is_that_of_eager(entry: Entry, backend: Any) -> None:
    model, calls = prepare(entry, double=backend[0] == "inductor")
    eager = copy.deepcopy(model)
    fast = regions.compile(model, calls[0], entry.block, backend=backend[0])
    several = [calls[0], calls[0], *calls[1 : backend[2]]]
    assert not differences(steps(eager, several), steps(fast, several), backend[1])
    assert not differences(state(eager), state(model), backend[1])


def generate(module: nn.Module, cache: Tensor, words: Tensor, count: int) -> Tensor:
    """Words that a model appends to some, each the likeliest: one call to read, then one each."""
    length = words.shape[1]
    logits = module(words, cache, torch.arange(length))
    for _ in range(count):
        last = logits[:, -1:].argmax(-1)
        words = torch.cat([words, last], 1)
        logits = module(last, cache, torch.tensor([words.shape[1] - 1]))
    return words


@backends
def test_words_are_generated_with_a_cache(backend: Any) -> None:
    torch.manual_seed(0)
    dtype = torch.float64 if backend[0] == "inductor" else torch.float32
    model = Llama().eval().to(dtype)
    caches = [torch.zeros(3, 2, 1, 10, 2, 4, dtype=dtype) for _ in range(2)]
    words = torch.randint(17, (1, 4))
    call = (words, caches[1].clone(), torch.arange(4))
    fast = regions.compile(model, call, LlamaBlock, backend=backend[0])
    with torch.inference_mode():
        found = [
            generate(m, cache, words, 4) for m, cache in zip((model, fast), caches, strict=True)
        ]
        whole = model(found[0])[:, :-1].argmax(-1)
    assert torch.equal(*found) and torch.equal(whole[:, 3:], found[0][:, 4:])
    assert backend[1](*caches) and caches[0][:, :, :, 7].any()


CALL = """
import sys, torch, ingot.regions, ingot.train
calls = torch.load({place!r} + "/calls.pt")
load = getattr(ingot, {room!r}).load
module = load({place!r} + "/package")
outs, gradients = [], []
for call in calls:
    out = module(*call)
    outs.append(out)
    flat = [t for t in torch.utils._pytree.tree_leaves(out) if t.requires_grad]
    if flat:
        module.zero_grad()
        weights = [torch.arange(t.numel(), dtype=t.dtype).cos().view(t.shape) for t in flat]
        sum((t * w).sum() for t, w in zip(flat, weights)).backward()
        gradients.append({{n: p.grad for n, p in module.named_parameters()}})
assert not any(name.split(".")[0] == "tests" for name in sys.modules)
detached = torch.utils._pytree.tree_map(lambda t: t.detach(), outs)
torch.save([detached, gradients], {place!r} + "/found.pt")
"""


def call_elsewhere(place: Path, room: str, calls: list[tuple[Any, ...]]) -> Any:
    """Results and gradients of a package in a process that has not the source."""
    torch.save(calls, place / "calls.pt")
    said_elsewhere(CALL.format(place=str(place), room=room))
    return torch.load(place / "found.pt")


@pytest.mark.exhaustive
@pytest.mark.parametrize("entry", STATIC.values(), ids=STATIC)
def test_a_package_of_blocks_runs_without_the_source(entry: Entry, tmp_path: Path) -> None:
    model, calls = prepare(entry)
    model.eval().requires_grad_(False)
    regions.compile(model, calls[0], entry.block, mode="aot", output=tmp_path / "package")
    found, _ = call_elsewhere(tmp_path, "regions", calls[:1])
    wrong = differences(describe(model(*calls[0])), describe(found[0]), within(1e-4))
    assert not wrong, wrong


@pytest.mark.exhaustive
@pytest.mark.parametrize("entry", STATIC.values(), ids=STATIC)
def test_a_package_for_training_runs_without_the_source(entry: Entry, tmp_path: Path) -> None:
    model, calls = prepare(entry, double=True)
    twice = [describe(copy.deepcopy(model)(*calls[0])) for _ in range(2)]
    model.train(not differences(*twice, same_bits))  # not where random numbers are drawn
    train.joint(copy.deepcopy(model), calls[0]).save(tmp_path / "package")
    found, gradients = call_elsewhere(tmp_path, "train", calls[:1])
    out = model(*calls[0])
    loss = weighted(out)
    assert loss is not None
    loss.backward()
    wanted = {name: p.grad for name, p in model.named_parameters()}
    near = within(1e-9)
    detached = torch.utils._pytree.tree_map(lambda t: t.detach(), out)
    wrong = differences(describe(detached), describe(found[0]), near)
    wrong += differences(wanted, gradients[0], near)
    assert not wrong, wrong
