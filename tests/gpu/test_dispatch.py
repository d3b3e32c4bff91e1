"""Code on a GPU, forward and backward, is replayed as CUDA graphs and gives eager's numbers.

What must hold on the CPU too, with replays by hand, is in tests/graphs/recording.py.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch._functorch.config as functorch
from torch import Tensor, nn
from torch.nn import functional as F

from ingot.graphs import recorded
from ingot.graphs.cuda_graphs import gpu
from ingot.graphs.recorded import RECORDINGS, WARM, held
from tests.graphs import recording
from tests.graphs.recording import SCENARIOS, Block, Unit, equal, given, through, twins

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


@pytest.fixture(scope="module", params=(False, True), ids=("kept", "donated"))
def compiled(request: pytest.FixtureRequest) -> Iterator[Unit]:
    with functorch.patch(donated_buffer=request.param):
        unit = Unit(recording.block, gpu(0), donated=request.param)
        Block(unit).cuda()(given(unit)).sum().backward()
        assert [d.backward for d in unit.dispatchers] == [False, True]
        yield unit


@pytest.fixture
def unit(compiled: Unit) -> Unit:
    compiled.forget()
    torch.manual_seed(0)
    return compiled


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.__name__)
def test_replays_are_right(scenario: Callable[[Unit], None], unit: Unit) -> None:
    scenario(unit)


def test_threads_and_streams_have_recordings_of_their_own(unit: Unit) -> None:
    recording.run_threads(unit)
    assert len({key[0] for d in unit.dispatchers for key in d.instances}) > 1


def train(unit: Unit, blocks: nn.ModuleList, steps: int) -> None:
    for _ in range(steps):
        blocks.zero_grad()
        through(blocks, given(unit)).sum().backward()


def test_a_chain_of_blocks_is_replayed_without_copies(unit: Unit) -> None:
    """What one block gives is read by the next where it lies, backward too."""
    ours, _ = twins(unit, 6)
    train(unit, ours, WARM + 4)
    assert unit.plain == {"it is not warm": 2 * 6 * WARM}
    for dispatcher in unit.dispatchers:
        copied = [len(r.copied) for i in dispatcher.instances.values() for r in i.recordings]
        assert sorted(copied)[:4] == [0] * 4


def test_recordings_hold_bounded_memory_and_give_it_back(unit: Unit) -> None:
    train(unit, twins(unit, 1)[0], WARM + 1)  # cuBLAS takes its workspace once, and keeps it
    unit.forget()
    before = torch.cuda.memory_allocated()
    ours, _ = twins(unit, 8)
    train(unit, ours, WARM + 1)
    number, size = held()
    assert number == 16 and 16 << 20 <= size <= 16 * (4 << 20)
    del ours
    unit.forget()
    torch.cuda.synchronize()
    assert held() == (0, 0)
    assert torch.cuda.memory_allocated() <= before + (1 << 20)


def test_a_call_that_its_user_captures_is_launched_plainly(unit: Unit) -> None:
    ours, theirs = twins(unit, 2)
    train(unit, ours, WARM + 2)
    x = given(unit)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = through(ours, x).detach()
    x.data.copy_(given(unit).detach())
    graph.replay()
    equal(y, through(theirs, x).detach())
    assert unit.plain["a capture is under way"] == 2


# code of its own kind


def test_random_numbers_are_eagers_in_every_replay() -> None:
    unit = Unit(lambda x, w: F.dropout(x * w, 0.5), gpu(0))
    plain = Unit(lambda x, w: F.dropout(x * w, 0.5), gpu(0))
    plain.wrap = lambda code: code.run  # pyright: ignore
    w = nn.Parameter(torch.ones(64, device="cuda"))
    found: list[list[Tensor]] = []
    for one in (unit, plain):
        one(torch.ones(64, device="cuda", requires_grad=True), w)  # compiles
        torch.manual_seed(3)
        found.append([])
        for _ in range(8):
            x = torch.ones(64, device="cuda", requires_grad=True)
            y = one(x, w)
            (slope,) = torch.autograd.grad(y.sum(), x)
            found[-1] += [y.detach().clone(), slope, torch.rand(3, device="cuda")]
    for ours, theirs in zip(*found, strict=True):
        assert torch.equal(ours, theirs)
    assert min(unit.replayed) > 0


def test_statistics_of_a_batch_are_written_where_they_lie() -> None:
    def normalise(x: Tensor, mean: Tensor, var: Tensor) -> Tensor:
        return F.batch_norm(x, mean, var, training=True)

    unit = Unit(normalise, gpu(0))
    ours, theirs = ([torch.zeros(4, device="cuda"), torch.ones(4, device="cuda")] for _ in "ab")
    for _ in range(7):
        x = torch.randn(16, 4, device="cuda")
        equal(unit(x, *ours), normalise(x, *theirs))
        equal(ours, theirs)
    assert unit.replayed[0] >= 3


def test_without_gradients_too() -> None:
    unit = Unit(recording.block, gpu(0))
    ours, theirs = twins(unit)
    with torch.no_grad():
        kept = [(through(ours, x), x) for x in (given(unit) for _ in range(9))]
        for y, x in kept:
            equal(y, through(theirs, x))
    with torch.inference_mode():
        for _ in range(6):
            x = given(unit)
            y = through(ours, x)
            equal(y, through(theirs, x))
            assert y.is_inference()
    assert min(unit.replayed) > 0


WAITS: dict[str, Callable[[Tensor], Any]] = {
    "asks": lambda x: float(x.abs().max()),  # makes a capture invalid
    "copies": lambda x: torch.tensor([0.5]).to(x.device) * 2 * x.max(),  # is refused by torch
}


@pytest.mark.parametrize("how", WAITS)
def test_code_that_waits_for_the_gpu_is_launched_plainly(
    how: str, caplog: pytest.LogCaptureFixture
) -> None:
    @torch.library.custom_op(f"ingot_test::{how}_dispatch", mutates_args=())
    def asking(x: Tensor) -> Tensor:
        return x * WAITS[how](x)

    @asking.register_fake
    def _(x: Tensor) -> Tensor:
        return torch.empty_like(x)

    unit = Unit(lambda x: asking(x + 1.0), gpu(0))
    for _ in range(WARM + 3):
        x = torch.rand(5, device="cuda")
        equal(unit(x), (x + 1.0) * (x + 1.0).max())
    assert "not recorded as a CUDA graph" in caplog.text and not any(unit.replayed)
    torch.randn(3, device="cuda")
    # memory that another stream has used is given back, as it is not while a capture is under way
    side = torch.cuda.Stream()
    held = torch.empty(32 << 20, device="cuda")
    held.record_stream(side)
    del held
    torch.cuda.synchronize()
    torch.empty(64 << 20, device="cuda")
    stats = torch.cuda.memory_stats()
    assert stats["active_bytes.all.current"] - stats["allocated_bytes.all.current"] < 1 << 20


def test_code_with_operands_on_the_cpu_is_launched_plainly() -> None:
    unit = Unit(lambda x, s: x * s, gpu(0))
    for _ in range(WARM + 2):
        x, s = torch.rand(5, device="cuda"), torch.rand(())
        equal(unit(x, s), x * s.item())
    assert not any(unit.replayed)
    assert unit.plain["an operand lies on another device"] >= 1


def test_recordings_are_few() -> None:
    """Whatever is kept: past the last recording results are copied out."""
    unit = Unit(recording.block, gpu(0))
    ours, theirs = twins(unit, 1)
    kept = [(through(ours, x), x) for x in (given(unit) for _ in range(RECORDINGS + 9))]
    for y, x in kept:
        equal(y, through(theirs, x))
    assert max(len(i.recordings) for i in unit.dispatchers[0].instances.values()) == RECORDINGS
    assert recorded.RESULTS
