"""Code that is replayed gives what it gives when launched, whatever is kept, edited or moved."""

import gc
from collections.abc import Callable, Iterator

import pytest
import torch
import torch._functorch.config as functorch
from torch import Tensor, nn

from ingot import regions
from ingot.graphs import recorded
from ingot.graphs.recorded import RECORDINGS, WARM, Dispatcher, drop_dead, held
from ingot.regions import build
from tests.graphs import recording
from tests.graphs.recording import SCENARIOS, Block, Replayed, Unit, equal, given, through, twins


@pytest.fixture(scope="module", params=(False, True), ids=("kept", "donated"))
def compiled(request: pytest.FixtureRequest) -> Iterator[Unit]:
    """One unit for all tests; a backward pass may write over what it was given, or may not."""
    with functorch.patch(donated_buffer=request.param):
        unit = Unit(recording.block, Replayed(), donated=request.param)
        Block(unit)(given(unit)).sum().backward()
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
    streams = {key[0] for d in unit.dispatchers for key in d.instances}
    assert len(streams) == 4


def test_recordings_of_blocks_that_are_gone_are_dropped(unit: Unit) -> None:
    drop_dead()
    before = held()[0]
    ours, _ = twins(unit)
    for _ in range(WARM + 1):
        through(ours, given(unit)).sum().backward()
    assert held()[0] == before + 6
    addresses = [p.data_ptr() for p in ours.parameters()]
    assert all(address in recorded.PARAMETERS for address in addresses)
    del ours
    gc.collect()
    drop_dead()
    assert held() == (before, before * 1000)
    assert not any(d.instances for d in unit.dispatchers)


def warm(unit: Unit, calls: int = WARM + 2) -> None:
    ours, theirs = twins(unit, 1)
    for _ in range(calls):
        x = given(unit)
        equal(ours[0](x), theirs[0](x))


def test_instances_are_bounded(unit: Unit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "INSTANCES", 2)
    ours, theirs = twins(unit, 4)
    for _ in range(WARM + 2):
        x = given(unit)
        equal(through(ours, x), through(theirs, x))
    assert len(unit.dispatchers[0].instances) == 2
    assert unit.plain["the table is full"] == 4


def test_memory_is_bounded(unit: Unit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "SHARE", 0.0)
    warm(unit)
    assert unit.plain["recordings hold all the memory they may"] == 2
    monkeypatch.setattr(recorded, "SHARE", 1.0)
    monkeypatch.setattr(recorded, "LARGEST", 10)
    unit.forget()
    warm(unit)
    assert unit.plain["it is large"] == 2
    assert not any(unit.replayed)


def test_addresses_that_keep_changing_are_not_recorded(unit: Unit) -> None:
    kept = []
    for _ in range(recorded.WAITING + 9):
        kept.append(Block(unit))
        kept[-1](given(unit))
    assert unit.plain == {"it is not warm": recorded.WAITING + 9}
    assert len(unit.dispatchers[0].waiting) == recorded.WAITING
    expected = {p.data_ptr() for one in kept[-recorded.WAITING :] for p in one.parameters()}
    assert expected <= recorded.PARAMETERS.keys()
    assert not {p.data_ptr() for p in kept[0].parameters()} & recorded.PARAMETERS.keys()


@pytest.mark.parametrize("cause", ("a capture is under way", "another device is current"))
def test_calls_at_a_wrong_time_are_launched_plainly(unit: Unit, cause: str) -> None:
    warm(unit)
    unit.place.cause = cause
    try:
        warm(unit)
    finally:
        unit.place.cause = None
    assert unit.plain[cause] == WARM + 2


def test_traced_calls_are_launched_plainly(unit: Unit) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    warm(unit)
    with FlopCounterMode(display=False), torch.no_grad():
        unit.dispatchers[0]([given(unit), *Block().parameters()])
    assert unit.plain["operations are being traced"] == 1


def test_what_cannot_be_captured_is_launched_plainly(
    unit: Unit, caplog: pytest.LogCaptureFixture
) -> None:
    unit.place.fails = True
    try:
        warm(unit)
    finally:
        unit.place.fails = False
    assert "operation not permitted" in caplog.text and "more" not in caplog.text
    assert not any(unit.replayed)


@pytest.mark.parametrize("is_open", (False, True))
def test_blocks_of_a_module_are_replayed_each(
    is_open: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All blocks share one code, and each block has recordings of it."""
    whole = Unit(recording.block, Replayed())
    monkeypatch.setattr(build, "_wrap_code", whole.wrap)
    ours, theirs = (nn.Sequential(*twin) for twin in twins(Unit(recording.block, Replayed()), 4))
    for one in ours:
        one.code = recording.block
    dynamic = {0: "batch"} if is_open else {}
    fast = regions.compile(ours, blocks=Block, dynamic=dynamic, cuda_graphs=True)
    for i in range(3 * (WARM + 4) if is_open else WARM + 4):
        x = given(whole, 5 + i % 3 if is_open else 5)
        y = x.detach().clone().requires_grad_()
        a, b = fast(x), theirs(y)
        equal(a, b)
        for keep in (True, False):
            a.square().sum().backward(retain_graph=keep)
            b.square().sum().backward(retain_graph=keep)
            equal(x.grad, y.grad)
            recording.equal_gradients(ours, theirs)
    assert [d.backward for d in whole.dispatchers] == [False, True]
    assert all(d.open_sizes == is_open for d in whole.dispatchers)
    count = 12 if is_open else 4
    assert [len(d.instances) for d in whole.dispatchers] == [count, count]
    assert min(whole.replayed) >= 3 * count
    copies = [min(len(r.copied) for r in i.recordings) for d in whole.dispatchers
              for i in d.instances.values()]  # fmt: skip
    assert is_open or sorted(copies) == [0] * 5 + [1] * 3, (
        "the first input, twice, and the last slope"
    )


# code that is no Inductor's, so that nothing needs to be compiled


def dispatcher(run: Callable, **facts: object) -> Dispatcher:
    drop_dead()
    return Dispatcher(run, Replayed(), **facts)  # pyright: ignore


def count_up(inputs: list[Tensor]) -> list[Tensor]:
    count, x = inputs
    inputs.clear()
    count.add_(1.0)
    return [x * count]


def test_what_is_written_is_written_once_a_call_where_it_lies() -> None:
    made, count = dispatcher(count_up, writes=[0]), torch.zeros(())
    for i in range(6):
        x = torch.randn(3)
        (y,) = made([count, x])
        equal(y, x * (i + 1))
    assert count.item() == 6 and made.replayed == 6 - WARM


def test_what_is_written_and_moves_is_launched_plainly() -> None:
    made = dispatcher(count_up, writes=[0])
    counts = [torch.zeros(()) for _ in range(6)]
    for count in counts:
        x = torch.randn(3)
        equal(made([count, x])[0], x)
        assert count.item() == 1
    assert made.replayed == 0 and made.plain["it is not warm"] == 6


def test_a_backward_pass_may_write_its_results_over_its_operands() -> None:
    made = dispatcher(lambda inputs: [inputs[0].mul_(2.0), inputs[0][1:]], backward=True)
    kept = []
    for _ in range(WARM + RECORDINGS + 2):
        x = torch.randn(3)
        expected = 2 * x
        kept.append((made([x]), expected))
    assert made.replayed == RECORDINGS + 2
    for (whole, part), expected in kept:
        equal(whole, expected)
        equal(part, expected[1:])


def test_sizes_tell_recordings_apart() -> None:
    made = dispatcher(lambda inputs: [inputs[0] * 2, inputs[0][1:]])
    for i in range(12):
        x = torch.randn(1 + i % 3, 2)
        for mine, other in zip(made([x]), (x * 2, x[1:]), strict=True):
            assert torch.equal(mine, other)
    assert made.replayed == 12 - 3 * WARM


def test_numbers_tell_recordings_apart() -> None:
    made = dispatcher(lambda inputs: [inputs[1] * inputs[0], inputs[0] + 1, None])
    for i in range(12):
        x = torch.randn(3)
        y, number, nothing = made([i % 3, x])
        equal(y, x * (i % 3))
        assert number == i % 3 + 1 and nothing is None
    assert made.replayed == 12 - 3 * WARM


def test_results_lie_as_they_lay() -> None:
    """Strides, views of one another, of operands, and operands themselves."""

    def run(inputs: list[Tensor]) -> list[Tensor]:
        x, weight = inputs
        inputs.clear()
        padded = torch.zeros(4, 8)[:, :5].copy_(x)
        return [padded, padded[1:], x, x[:, 1], weight.t(), x.sum(0).expand(3, 5), weight]

    made, weight = dispatcher(run), nn.Parameter(torch.randn(2, 3))
    kept = []
    for _ in range(WARM + RECORDINGS + 2):
        x = torch.randn(4, 5)
        found = made([x, weight])
        for mine, other in zip(found, run([x, weight]), strict=True):
            assert torch.equal(mine, other) and mine.stride() == other.stride()
        padded, part, same, column, turned, _, whole = found
        assert same is x and whole is weight
        assert part.data_ptr() == padded.data_ptr() + 8 * 4
        assert column.data_ptr() == x.data_ptr() + 4 and turned.data_ptr() == weight.data_ptr()
        kept.append((padded, x))
    assert made.replayed == RECORDINGS + 2
    assert all(torch.equal(padded, x) for padded, x in kept)


@pytest.mark.parametrize(
    ("run", "inputs", "cause"),
    [
        (lambda inputs: [CONSTANT], [torch.ones(2)], "it gives a constant"),
        (lambda inputs: [inputs[0].view(torch.int32)], [torch.ones(2)],
         "it gives a view of another type"),
        (lambda inputs: [torch.ones(1, device="meta")], [torch.ones(2)],
         "it gives a tensor on another device"),
        (lambda inputs: [inputs[0] + 1], [torch.ones(1).expand(3)], "an operand overlaps itself"),
        (lambda inputs: [inputs[0] + 1], [torch.ones(1), torch.Generator()],
         "an operand is neither a tensor nor a whole number"),
        (lambda inputs: [inputs[0] + 1], [torch.ones(1), torch.ones(1, device="meta")],
         "an operand lies on another device"),
        (lambda inputs: [inputs[0] + 1], [3], "no operand is a tensor"),
    ],
)  # fmt: skip
def test_what_a_replay_would_get_wrong_is_launched_plainly(
    run: Callable, inputs: list, cause: str
) -> None:
    made = dispatcher(run)
    for _ in range(WARM + 3):
        made(list(inputs))
    assert made.replayed == 0 and made.plain[cause] >= 3


CONSTANT = torch.ones(3)


def test_memory_that_somebody_resized_is_not_written_to() -> None:
    made = dispatcher(lambda inputs: [inputs[0] + 1])
    for _ in range(WARM + 2):
        (y,) = made([torch.ones(4)])
    y.untyped_storage().resize_(0)
    del y
    (y,) = made([torch.ones(4)])
    equal(y, torch.full((4,), 2.0))
