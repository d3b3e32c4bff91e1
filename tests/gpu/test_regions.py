"""Blocks of a module on a GPU: right in training and inference, and replayed block by block."""

import gc
import threading

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ingot import regions
from ingot.graphs import recorded
from ingot.graphs.recorded import RECORDINGS, WARM
from ingot.regions import Compiled

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")

WIDTH = 32


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(F.silu(self.up(self.norm(x))))


class Stack(nn.Module):
    def __init__(self, count: int = 4, block: type[nn.Module] = Block) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(block() for _ in range(count))

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return x * 2.0


def stack(block: type[nn.Module] = Block) -> Stack:
    torch.manual_seed(0)
    return Stack(block=block).to("cuda", torch.float64)


def given(batch: int = 8) -> Tensor:
    return torch.randn(batch, WIDTH, device="cuda", dtype=torch.float64)


def replays() -> int:
    """How often code was replayed so far."""
    return sum(dispatcher.replayed for dispatcher in recorded.DISPATCHERS)


def compiled(module: nn.Module, block: type[nn.Module] = Block) -> Compiled:
    """A compiled module that has been called until it replays."""
    gc.collect()  # code of modules that are gone is not counted any more
    before = replays()
    with torch.no_grad():
        made = regions.compile(module, blocks=block, dynamic={0: "batch"}, cuda_graphs=True)
        for _ in range(WARM + 2):
            made(given())
    assert replays() > before
    return made


def test_training_gives_eagers_losses() -> None:
    ours, theirs = stack(), stack()
    made = regions.compile(ours, blocks=Block, cuda_graphs=True)
    before = replays()
    losses = []
    for module, call in ((ours, made), (theirs, theirs)):
        torch.manual_seed(1)
        step = torch.optim.SGD(module.parameters(), 0.01)
        for _ in range(20):
            loss = (call(given()) - 1.0).square().mean()
            step.zero_grad()
            loss.backward()
            step.step()
            losses.append(loss.item())
    assert losses[:20] == pytest.approx(losses[20:], rel=1e-10)
    assert replays() - before >= 2 * 4 * 15, "forward and backward of four blocks"


def test_calls_that_lie_alike_are_replayed_with_their_own_numbers() -> None:
    module = stack()
    made = compiled(module)
    with torch.no_grad():
        inputs = [given() for _ in range(5)]
        kept = [made(x) for x in inputs]
        for x, y in zip(inputs, kept, strict=True):
            torch.testing.assert_close(y, module(x), rtol=1e-12, atol=1e-12)
        loose = torch.randn(WIDTH, 8, device="cuda", dtype=torch.float64).t()
        for _ in range(WARM + 2):
            torch.testing.assert_close(made(loose), module(loose), rtol=1e-12, atol=1e-12)
        other = given(3)
        for _ in range(WARM + 2):
            torch.testing.assert_close(made(other), module(other), rtol=1e-12, atol=1e-12)


def test_parameters_edited_moved_and_replaced_act_at_once() -> None:
    module = stack()
    made = compiled(module)
    x = given()
    with torch.no_grad():
        module.blocks[1].up.weight.mul_(1.5)
        torch.testing.assert_close(made(x), module(x), rtol=1e-12, atol=1e-12)
        kept = []
        for _ in range(RECORDINGS + 2):
            kept.append(torch.randn_like(module.blocks[2].up.weight))
            module.blocks[2].up.weight.data = kept[-1]
            torch.testing.assert_close(made(x), module(x), rtol=1e-12, atol=1e-12)
        module.blocks[0].down.bias = nn.Parameter(torch.ones_like(module.blocks[0].down.bias))
        torch.testing.assert_close(made(x), module(x), rtol=1e-12, atol=1e-12)


def test_buffers_that_a_call_writes_are_written_once_a_call() -> None:
    class Counting(Block):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros((), dtype=torch.float64))

        def forward(self, x: Tensor) -> Tensor:
            self.calls.add_(1.0)
            return super().forward(x) * self.calls

    module = stack(Counting)
    made = compiled(module, Counting)
    before = module.blocks[3].calls.item()
    with torch.no_grad():
        for _ in range(3):
            made(given())
    assert module.blocks[3].calls.item() == before + 3


def test_random_numbers_are_fresh_in_every_replay() -> None:
    class Dropping(Block):
        def forward(self, x: Tensor) -> Tensor:
            return F.dropout(super().forward(x), 0.5)

    made = compiled(stack(Dropping), Dropping)
    x = given()
    with torch.no_grad():
        assert not torch.equal(made(x), made(x))


def test_streams_and_threads_do_not_disturb_each_other() -> None:
    module = stack()
    made = compiled(module)
    wrong: list[float] = []

    def work(seed: int) -> None:
        generator = torch.Generator("cuda").manual_seed(seed)
        with torch.cuda.stream(torch.cuda.Stream()), torch.no_grad():
            for _ in range(30):
                x = torch.randn(8, WIDTH, device="cuda", dtype=torch.float64, generator=generator)
                wrong.append((made(x) - module(x)).abs().max().item())

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(wrong) == 120 and max(wrong) < 1e-12


def test_a_module_recorded_by_its_user_is_launched_plainly() -> None:
    module = stack()
    made = compiled(module)
    x = given()
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad():
        with torch.cuda.graph(graph):
            y = made(x)
        x.copy_(given())
        graph.replay()
        torch.testing.assert_close(y, module(x), rtol=1e-12, atol=1e-12)


def test_without_recording() -> None:
    module, before = stack(), replays()
    with torch.no_grad():
        made = regions.compile(module, blocks=Block, cuda_graphs=False)
        x = given()
        for _ in range(5):
            torch.testing.assert_close(made(x), module(x), rtol=1e-12, atol=1e-12)
    assert replays() == before


if __name__ == "__main__":
    raise SystemExit(pytest.main([__file__, "-q", "-p", "no:cacheprovider"]))
