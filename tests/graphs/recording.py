"""Blocks whose code is replayed, on the CPU too, and what must hold of them wherever they run.

The CPU has no graphs to capture: `Replayed` runs code again on the same addresses instead, and
writes over the same results, which is all that a replay does.
"""

import ctypes
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch._functorch.config as functorch
from torch import Tensor, nn
from torch.nn import functional as F

from ingot.graphs import recorded
from ingot.graphs.cuda_graphs import Gpu
from ingot.graphs.recorded import RECORDINGS, WARM, Dispatcher
from ingot.graphs.torch_private import InductorCode, wrap_inductor_code

WIDTH = 8
DTYPE = torch.float64
"""Sums of gradients over many calls differ in their last digits."""


class Replayed:
    """The CPU as a place for recordings."""

    device = torch.device("cpu")
    memory = 1 << 40

    def __init__(self) -> None:
        self.current = threading.local()
        self.cause: str | None = None
        self.fails = False

    def stream(self) -> int:
        return getattr(self.current, "stream", 0)

    def unfit(self) -> str | None:
        return self.cause

    def capture(self, run: Any, inputs: list[Any]) -> tuple[Callable[[], None], Sequence[Any], int]:
        if self.fails:
            raise RuntimeError("operation not permitted when stream is capturing\nmore")
        operands = [_Raw(x) if isinstance(x, Tensor) else x for x in inputs]
        tensors = [x for x in inputs if isinstance(x, Tensor)]
        before = [x.clone() for x in tensors]
        outputs = run(list(inputs))
        fresh = {
            i: (x.untyped_storage().data_ptr(), x.untyped_storage().nbytes())
            for i, x in enumerate(outputs) if isinstance(x, Tensor) and _lies_elsewhere(x, tensors)
        }  # fmt: skip
        # a capture runs nothing: what was written is undone
        for at, size in fresh.values():
            ctypes.memset(at, 0x77, size)
        for x, old in zip(tensors, before, strict=True):
            if not torch.equal(x, old):
                x.data.copy_(old)

        def replay() -> None:
            found = run([x.tensor() if isinstance(x, _Raw) else x for x in operands])
            for i, (at, size) in fresh.items():
                ctypes.memmove(at, found[i].untyped_storage().data_ptr(), size)

        return replay, outputs, 1000


def _lies_elsewhere(x: Tensor, others: Sequence[Tensor]) -> bool:
    storage = x.untyped_storage().data_ptr()
    return x.device.type == "cpu" and all(
        storage != other.untyped_storage().data_ptr() for other in others
    )


class _Raw:
    """Where a tensor lies; nothing is kept alive by it, as by a graph."""

    def __init__(self, x: Tensor) -> None:
        self.at, self.dtype, self.shape, self.stride = x.data_ptr(), x.dtype, x.shape, x.stride()
        self.count = 1 + sum((n - 1) * s for n, s in zip(x.shape, x.stride(), strict=True))

    def tensor(self) -> Tensor:
        size = self.count * torch.empty(0, dtype=self.dtype).element_size()
        buffer = (ctypes.c_char * size).from_address(self.at)
        flat = torch.frombuffer(buffer, dtype=self.dtype)
        return flat.as_strided(self.shape, self.stride)


def block(x: Tensor, norm: Tensor, up: Tensor, bias: Tensor, down: Tensor) -> Tensor:
    """One residual block; its backward reads views of parameters, and x."""
    y = F.layer_norm(x, (x.shape[-1],), norm)
    return x + F.silu(y @ up.t() + bias) @ down


class Block(nn.Module):
    """An instance: its own numbers, everybody's code."""

    def __init__(self, code: Callable[..., Tensor] = block) -> None:
        super().__init__()
        self.code = code
        self.norm = nn.Parameter(1 + 0.1 * torch.randn(WIDTH, dtype=DTYPE))
        self.up = nn.Parameter(torch.randn(2 * WIDTH, WIDTH, dtype=DTYPE) / 3)
        self.bias = nn.Parameter(torch.randn(2 * WIDTH, dtype=DTYPE))
        self.down = nn.Parameter(torch.randn(2 * WIDTH, WIDTH, dtype=DTYPE) / 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.code(x, self.norm, self.up, self.bias, self.down)


class Unit:
    """A function compiled once, forward and backward, whose code is replayed."""

    def __init__(self, function: Callable[..., Any], place: Any, *, donated: bool = False) -> None:
        self.place, self.donated = place, donated
        self.dispatchers: list[Dispatcher] = []
        torch._dynamo.reset()
        self.code = torch.compile(function, fullgraph=True, dynamic=False)

    def __call__(self, *args: Any) -> Any:
        ahead = functorch.patch(force_non_lazy_backward_lowering=True)
        with wrap_inductor_code(self.wrap), ahead:
            return self.code(*args)

    def wrap(self, code: InductorCode) -> Dispatcher:
        made = Dispatcher(
            code.run, self.place, static=code.static, writes=code.writes, backward=code.is_backward,
            open_sizes=code.open_sizes,
        )  # fmt: skip
        self.dispatchers.append(made)
        return made

    @property
    def replayed(self) -> list[int]:
        """How often each code was replayed."""
        return [d.replayed for d in self.dispatchers]

    @property
    def plain(self) -> dict[str, int]:
        """How often code was launched plainly, by cause."""
        found: dict[str, int] = {}
        for d in self.dispatchers:
            for cause, count in d.plain.items():
                found[cause] = found.get(cause, 0) + count
        return found

    def forget(self) -> None:
        """As if nothing had been called yet."""
        recorded.drop_dead()
        for d in self.dispatchers:
            for instance in (*d.instances.values(), *d.waiting.values()):
                recorded._forget(instance)
            d.instances.clear()
            d.waiting.clear()
            d.plain.clear()
            d.replayed, d.never, d.tensors = 0, None, ()


def twins(unit: Unit, count: int = 3) -> tuple[nn.ModuleList, nn.ModuleList]:
    """Blocks that are replayed, and blocks with the same numbers that are not."""
    ours, theirs = (nn.ModuleList(Block(c) for _ in range(count)) for c in (unit, block))
    theirs.load_state_dict(ours.state_dict())
    return ours.to(unit.place.device), theirs.to(unit.place.device)


def given(unit: Unit, batch: int = 5) -> Tensor:
    return torch.randn(batch, WIDTH, dtype=DTYPE, device=unit.place.device).requires_grad_()


def through(blocks: Any, x: Tensor) -> Tensor:
    for one in blocks:
        x = one(x)
    return x


def equal(ours: Any, theirs: Any) -> None:
    torch.testing.assert_close(ours, theirs)


def equal_gradients(ours: nn.Module, theirs: nn.Module) -> None:
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert (a.grad is None) == (b.grad is None)
        if a.grad is not None:
            equal(a.grad, b.grad)


# what must hold; each is given a unit that has forgotten all calls


def training_gives_eagers_numbers(unit: Unit) -> None:
    ours, theirs = twins(unit)
    steps = [torch.optim.SGD(m.parameters(), 0.05) for m in (ours, theirs)]
    for _ in range(8):
        x = given(unit)
        found = []
        for blocks, step in zip((ours, theirs), steps, strict=True):
            loss = (through(blocks, x) - 1.0).square().mean()
            step.zero_grad()
            loss.backward()
            step.step()
            found.append(loss.detach())
        equal(*found)
        equal_gradients(ours, theirs)
    assert min(unit.replayed) >= 3 * (8 - WARM - 2)


def parameters_edited_and_replaced_act_at_once(unit: Unit) -> None:
    ours, theirs = twins(unit)
    for i in range(12):
        new = torch.randn_like(ours[1].up)
        with torch.no_grad():
            for blocks in (ours, theirs):
                blocks[0].bias.mul_(0.9)
                if i > 4:
                    blocks[1].up = nn.Parameter(new.clone())
        x = given(unit)
        y = x.detach().clone().requires_grad_()
        a, b = through(ours, x), through(theirs, y)
        equal(a, b)
        a.square().sum().backward()
        b.square().sum().backward()
        equal(x.grad, y.grad)
        equal_gradients(ours, theirs)
    assert min(unit.replayed) > 0


def several_calls_wait_for_their_backward(unit: Unit) -> None:
    ours, theirs = twins(unit, 2)
    for i in range(8):
        xs = [given(unit) for _ in range(2 + i % 5)]
        found = [[through(blocks, x) for x in xs] for blocks in (ours, theirs)]
        for a, b in zip(*found, strict=True):
            equal(a, b)
        order = list(range(len(xs)))
        random.Random(i).shuffle(order)
        for k in order:
            (mine,) = torch.autograd.grad(found[0][k].square().sum(), xs[k])
            (other,) = torch.autograd.grad(found[1][k].square().sum(), xs[k])
            equal(mine, other)
        for a, b in zip(*found, strict=True):
            equal(a, b)
    assert min(unit.replayed) > 0


def graphs_are_kept_and_run_again(unit: Unit) -> None:
    if unit.donated:  # torch refuses
        return
    ours, theirs = twins(unit, 2)
    for _ in range(7):
        x = given(unit)
        a, b = through(ours, x).square().sum(), through(theirs, x).square().sum()
        kept = [torch.autograd.grad(a, x, retain_graph=True)[0] for _ in range(3)]
        through(ours, given(unit))  # another call between the two
        (last,) = torch.autograd.grad(a, x)
        (other,) = torch.autograd.grad(b, x)
        for one in (*kept, last):
            equal(one, other)
    assert min(unit.replayed) > 0


def gradients_add_up(unit: Unit) -> None:
    ours, theirs = twins(unit)
    for i in range(12):
        x = given(unit)
        for blocks in (ours, theirs):
            through(blocks, x).square().sum().backward()
        equal_gradients(ours, theirs)
        if i % 3 == 2:
            for blocks in (ours, theirs):
                blocks.zero_grad(set_to_none=i % 2 == 0)
    assert min(unit.replayed) > 3 * 4


def results_that_are_kept_do_not_change(unit: Unit) -> None:
    ours, theirs = twins(unit, 2)
    xs = [given(unit) for _ in range(WARM + RECORDINGS + 4)]
    kept = [through(ours, x) for x in xs]
    for x, y in zip(xs, kept, strict=True):
        equal(y, through(theirs, x))
    assert unit.dispatchers[0].replayed == 2 * (len(xs) - WARM)
    instances = [i for d in unit.dispatchers for i in d.instances.values()]
    assert max(len(i.recordings) for i in instances) == RECORDINGS


def one_instance_may_be_called_again_and_again(unit: Unit) -> None:
    ours, theirs = twins(unit, 1)
    for _ in range(5):
        x = given(unit)
        y = x.detach().clone().requires_grad_()
        a, b = through(list(ours) * 7, x), through(list(theirs) * 7, y)
        equal(a, b)
        a.square().mean().backward()
        b.square().mean().backward()
        equal(x.grad, y.grad)
    equal_gradients(ours, theirs)
    assert min(unit.replayed) > 0


def a_result_may_be_written_to(unit: Unit) -> None:
    ours, theirs = twins(unit, 2)
    for _ in range(6):
        x = given(unit)
        a, b = (blocks[1](blocks[0](x).mul_(2.0)) for blocks in (ours, theirs))
        equal(a, b)
    assert min(unit.replayed[:1]) > 0


def drawn_calls_give_eagers_numbers(unit: Unit, draws: int = 60, seeds: int = 4) -> None:
    """Calls, backward passes, edits, replacements and drops in any order, against eager."""
    for seed in range(seeds):
        draw = random.Random(seed)
        ours, theirs = twins(unit)
        pending: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
        for _ in range(draws):
            what = draw.choice(("call", "call", "call", "chain", "back", "back", "edit", "new",
                                "drop", "clear"))  # fmt: skip
            if what in ("call", "chain"):
                x = given(unit)
                y = x.detach().clone().requires_grad_()
                picks = [draw.randrange(3) for _ in range(1 if what == "call" else 4)]
                a, b = through([ours[i] for i in picks], x), through([theirs[i] for i in picks], y)
                pending.append((a, b, x, y))
            elif what == "back" and pending:
                a, b, x, y = pending.pop(draw.randrange(len(pending)))
                again = draw.random() < 0.3 and not unit.donated
                for one in (a, b):
                    one.square().mean().backward(retain_graph=again)
                if again:
                    pending.append((a, b, x, y))
                equal(x.grad, y.grad)
                equal_gradients(ours, theirs)
            elif what == "edit":
                pending.clear()  # autograd refuses a backward pass after an edit
                i = draw.randrange(3)
                with torch.no_grad():
                    for blocks in (ours, theirs):
                        blocks[i].bias.mul_(1.1)
            elif what == "new" and draw.random() < 0.3:
                i, new = (
                    draw.randrange(3),
                    torch.randn(WIDTH, dtype=DTYPE, device=unit.place.device),
                )
                for blocks in (ours, theirs):
                    blocks[i].norm = nn.Parameter(new.clone())
            elif what == "drop" and pending:
                pending.pop(draw.randrange(len(pending)))
            elif what == "clear":
                to_none = draw.random() < 0.5
                for blocks in (ours, theirs):
                    blocks.zero_grad(set_to_none=to_none)
            for a, b, _, _ in pending:
                equal(a, b)
    assert min(unit.replayed) > 0


SCENARIOS = (
    training_gives_eagers_numbers, parameters_edited_and_replaced_act_at_once,
    several_calls_wait_for_their_backward, graphs_are_kept_and_run_again, gradients_add_up,
    results_that_are_kept_do_not_change, one_instance_may_be_called_again_and_again,
    a_result_may_be_written_to, drawn_calls_give_eagers_numbers,
)  # fmt: skip


@contextmanager
def on_stream(unit: Unit) -> Iterator[None]:
    """Calls of this thread on a stream of its own."""
    if isinstance(unit.place, Gpu):
        with torch.cuda.stream(torch.cuda.Stream()):
            yield
    else:
        unit.place.current.stream = threading.get_ident()
        yield


def run_threads(unit: Unit, count: int = 3) -> None:
    """Blocks that threads share, on a stream each."""
    ours, theirs = twins(unit, 2)
    wrong: list[BaseException] = []
    device = unit.place.device

    def work(seed: int) -> None:
        generator = torch.Generator(device).manual_seed(seed)
        try:
            with on_stream(unit):
                for _ in range(12):
                    x = torch.randn(5, WIDTH, dtype=DTYPE, device=device, generator=generator)
                    x.requires_grad_()
                    a, b = through(ours, x), through(theirs, x)
                    equal(a, b)
                    mine, other = (torch.autograd.grad(y.square().sum(), x)[0] for y in (a, b))
                    equal(mine, other)
        except BaseException as error:
            wrong.append(error)

    work(99)  # compiles
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[0]
    assert min(unit.replayed) > 0
