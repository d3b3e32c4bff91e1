"""What a capture without guards gets wrong, each beside eager: sizes, writes, stale code, modes."""

import copy
import threading
import time
from collections import namedtuple
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ingot import regions
from ingot.errors import IngotError
from ingot.train import joint
from tests.regions.networks import Residual, Stack
from tests.regions.observe import describe, differences, same_bits, state, weighted

WIDTH = 4


def pair(model: nn.Module, example: Any, *blocks: Any) -> tuple[nn.Module, regions.Compiled]:
    """A copy that stays eager, and the module compiled with units that run as Dynamo wrote them."""
    eager = copy.deepcopy(model)
    return eager, regions.compile(model, example, list(blocks), backend="eager")


def agree(eager: Any, fast: Any, *args: Any, **kwargs: Any) -> Any:
    """Call both on copies of the arguments, go backward and compare; gives the result."""
    records = []
    for module in (fast, eager):
        given = copy.deepcopy((args, kwargs))
        torch.manual_seed(3)
        out = module(*given[0], **given[1])
        loss = weighted(out)
        if loss is not None:
            loss.backward()
        records.append([describe(out), describe(given), torch.get_rng_state()])
    found = differences(records[1], records[0], same_bits)
    assert not found, found
    return out


def block(forward: Any, **attributes: Any) -> type[nn.Module]:
    """A class of blocks with one layer and this forward."""

    def init(self: Any) -> None:
        nn.Module.__init__(self)
        self.layer = nn.Linear(WIDTH, WIDTH)

    return type("Block", (nn.Module,), {"__init__": init, "forward": forward, **attributes})


def row(kind: Any, count: int = 3) -> Stack:
    torch.manual_seed(0)
    return Stack([kind() for _ in range(count)], WIDTH)


@pytest.mark.parametrize("first", [3, 1])
def test_a_branch_on_a_size_is_taken_by_the_size_of_the_call(first: int) -> None:
    def forward(self: Any, x: Tensor) -> Tensor:
        return self.layer(x).cumsum(1) if x.shape[1] > 1 else self.layer(x) * 2

    kind = block(forward)
    example = torch.randn(2, first, WIDTH)
    model = row(kind)
    eager = copy.deepcopy(model)
    fast = regions.compile(model, example, kind, dynamic={1: "length"}, backend="eager")
    for length in (first, 3, 1, 5, 1, 0):
        agree(eager, fast, torch.randn(2, length, WIDTH))


class Cached(nn.Module):
    """A model whose blocks write a column of their own into a cache."""

    def __init__(self, kind: type[nn.Module]) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([kind() for _ in range(3)])

    def forward(self, x: Tensor, cache: Tensor, pos: Tensor) -> Tensor:
        for i, part in enumerate(self.blocks):
            x = part(x, cache[:, i], pos)
        return x


def test_a_write_into_a_slice_of_a_cache_reaches_the_cache() -> None:
    def forward(self: Any, x: Tensor, cache: Tensor, pos: Tensor) -> Tensor:
        cache.index_copy_(1, pos, self.layer(x)[:, None])
        return x + cache.sum(1)

    kind = block(forward)
    model = Cached(kind).requires_grad_(False)
    call = (torch.randn(2, WIDTH), torch.zeros(2, 3, 5, WIDTH), torch.tensor([1]))
    eager, fast = pair(model, call, kind)
    for at in (1, 2):
        agree(eager, fast, *call[:2], torch.tensor([at]))


@pytest.mark.parametrize("shape", [(3, WIDTH), (WIDTH, WIDTH)])
def test_a_write_into_a_transposed_input_reaches_it(shape: tuple[int, ...]) -> None:
    def forward(self: Any, x: Tensor) -> Tensor:
        x.mul_(2.0)
        return self.layer(x)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.ModuleList([kind(), kind()])

        def forward(self, x: Tensor) -> Tensor:
            return self.blocks[0](x) + self.blocks[1](x)

    kind = block(forward)
    base = torch.randn(*reversed(shape))
    eager, fast = pair(Model(), base.clone().t(), kind)
    found = []
    for module in (eager, fast):
        given = base.clone()
        found.append([describe(module(given.t())), describe(given)])
    assert not differences(*found, same_bits)


# --- stale code -----------------------------------------------------------------------------------

SCALE = 2.0
TABLE = {"inner": {"scale": 2.0}}
SETTINGS = SimpleNamespace(inner=SimpleNamespace(scale=2.0))


def by_global(self: Any, x: Tensor) -> Tensor:
    return self.layer(x) * SCALE


def by_table(self: Any, x: Tensor) -> Tensor:
    return self.layer(x) * TABLE["inner"]["scale"]


def by_settings(self: Any, x: Tensor) -> Tensor:
    return self.layer(x) * SETTINGS.inner.scale


def set_scale(value: float) -> None:
    global SCALE
    SCALE = TABLE["inner"]["scale"] = SETTINGS.inner.scale = value


@pytest.fixture
def scale() -> Iterator[None]:
    yield
    set_scale(2.0)


@pytest.mark.parametrize("forward", [by_global, by_table, by_settings])
@pytest.mark.usefixtures("scale")
def test_an_edit_of_what_a_block_reads_is_seen_by_this_and_by_new_modules(forward: Any) -> None:
    kind = block(forward)
    x = torch.randn(2, WIDTH)
    model = row(kind)
    eager, fast = pair(model, x, kind)
    agree(eager, fast, x)
    set_scale(5.0)
    agree(eager, fast, x)
    agree(*pair(row(kind), x, kind), x)


def test_an_edit_of_a_configuration_object_of_the_module_is_seen() -> None:
    def forward(self: Any, x: Tensor) -> Tensor:
        return self.layer(x) * self.config.inner["scale"]

    config = SimpleNamespace(inner={"scale": 2.0})
    kind = block(forward, config=config)
    x = torch.randn(2, WIDTH)
    eager, fast = pair(row(kind), x, kind)
    agree(eager, fast, x)
    config.inner["scale"] = 5.0
    agree(eager, fast, x)
    agree(*pair(row(kind), x, kind), x)


def activated(act: Any) -> type[nn.Module]:
    """A class whose blocks differ in a class attribute alone."""

    class Activated(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(WIDTH, WIDTH)

        def forward(self, x: Tensor) -> Tensor:
            return self.act(self.layer(x))

    Activated.act = act
    return Activated


def scaled(scale: float) -> type[nn.Module]:
    """A class whose blocks differ in a dictionary of the class alone."""

    class Scaled(nn.Module):
        options = {"factor": scale}  # noqa: RUF012 a class attribute is what is tested

        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(WIDTH, WIDTH)

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x) * self.options["factor"]

    return Scaled


@pytest.mark.parametrize("kinds", [
    [activated(act) for act in (torch.tanh, torch.relu, torch.tanh)],
    [scaled(factor) for factor in (1.0, 2.0, 3.0)],
], ids=["function", "dictionary"])  # fmt: skip
def test_classes_of_one_factory_that_differ_in_a_class_attribute_stay_apart(kinds: Any) -> None:
    x = torch.randn(2, WIDTH)
    agree(*pair(Stack([kind() for kind in kinds], WIDTH), x, *kinds), x)
    agree(*pair(Stack([kinds[1]()], WIDTH), x, kinds[1]), x)


class Between(nn.Module):
    """Two blocks with something between them."""

    def __init__(self, act: Any) -> None:
        super().__init__()
        self.a, self.b, self.act = Residual(WIDTH), Residual(WIDTH), act

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.a, self.b, x)


def inference_between(a: Any, b: Any, x: Tensor) -> Tensor:
    with torch.inference_mode():
        y = b(x)
    return a(x) + y


def no_grad_between(a: Any, b: Any, x: Tensor) -> Tensor:
    with torch.no_grad():
        y = b(a(x))
    return b(a(x)) + y


def detach_between(a: Any, b: Any, x: Tensor) -> Tensor:
    y = a(x)
    y.detach_()
    return b(y)


def hook_between(a: Any, b: Any, x: Tensor) -> Tensor:
    y = a(x)
    if y.requires_grad:
        y.register_hook(lambda g: g * 3)
    return b(y)


def hook_in_inference(a: Any, b: Any, x: Tensor) -> Tensor:
    with torch.inference_mode():
        return b(a(x))


@pytest.mark.parametrize(
    "act", [inference_between, no_grad_between, detach_between, hook_between, hook_in_inference]
)
def test_modes_and_hooks_between_blocks_are_those_of_eager(act: Any) -> None:
    x = torch.randn(2, WIDTH, requires_grad=True)
    eager, fast = pair(Between(act), x, Residual)
    for _ in range(2):
        agree(eager, fast, x)
    found = differences(state(eager), state(fast.module), same_bits)
    assert not [f for f in found if f.startswith(".gradient of")], found


@contextmanager
def global_hook() -> Iterator[list[str]]:
    log: list[str] = []

    def hook(module: nn.Module, args: Any, out: Tensor) -> Tensor | None:
        log.append(type(module).__name__)
        return out * 1.5 if isinstance(module, nn.Linear) else None

    handle = nn.modules.module.register_module_forward_hook(hook)
    try:
        yield log
    finally:
        handle.remove()


def test_a_hook_on_all_modules_is_called() -> None:
    x = torch.randn(2, WIDTH)
    model = row(lambda: Residual(WIDTH))
    with global_hook():
        eager, fast = pair(model, x, Residual)
        agree(eager, fast, x)
    agree(eager, fast, x)
    with global_hook() as log:
        wanted, logs = eager(x), list(log)
        log.clear()
        assert torch.equal(wanted, fast(x))
        assert [n for n in log if n != type(fast).__name__] == logs


@pytest.mark.parametrize("place", ["block", "layer", "model"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_forward_hook_is_called_wherever_it_hangs(place: str, when: str) -> None:
    x = torch.randn(2, WIDTH)
    model = row(lambda: Residual(WIDTH))
    log: list[Any] = []

    def hang(model: Any) -> None:
        at = {"block": model.blocks[1], "layer": model.blocks[1].up, "model": model}[place]
        at.register_forward_pre_hook(lambda m, args: (args[0] * 2,))
        at.register_forward_hook(lambda m, args, out: log.append(out.shape) or out + 1)

    if when == "before":
        hang(model)
    eager, fast = pair(model, x, Residual)
    agree(eager, fast, x)
    if when == "after":
        hang(eager)
        hang(model)
    log.clear()
    agree(eager, fast, x)
    assert len(log) == 2


def test_a_thread_may_call_while_another_compiles_a_new_mode() -> None:
    model = row(lambda: Residual(WIDTH), 4)
    x = torch.randn(2, WIDTH)
    with torch.no_grad():
        eager, fast = pair(model, x, Residual)
        wanted = eager(x)
        fast(x)
    failures: list[BaseException] = []
    done = threading.Event()

    def call() -> None:
        try:
            while not done.is_set():
                with torch.no_grad():
                    assert torch.equal(fast(x), wanted)
                time.sleep(1e-3)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    try:
        fast(x).sum().backward()
        for grad in (True, False):
            with torch.set_grad_enabled(grad), torch.autocast("cpu", dtype=torch.bfloat16):
                fast(x)
    finally:
        done.set()
        thread.join()
    assert not failures, failures


def test_a_branch_that_is_not_used_gets_no_gradient() -> None:
    class Branch(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return self.a(x), self.b(x)

    class First(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.ModuleList([Branch(), Branch()])

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            x, aside = self.blocks[0](x)
            return self.blocks[1](x)[0], aside

    x = torch.randn(2, WIDTH)
    eager, fast = pair(First(), x, Branch)
    for module in (eager, fast):
        module(x)[0].sum().backward()
    assert [p.grad is None for p in eager.parameters()] == [
        p.grad is None for p in fast.module.parameters()
    ]


@pytest.mark.parametrize("inside", [True, False], ids=["in a block", "between blocks"])
def test_a_checkpoint_draws_the_same_numbers_again(inside: bool) -> None:
    """Dynamo's operator for checkpoints does so where Inductor compiles it only."""

    def drop(self: Any, x: Tensor) -> Tensor:
        return checkpoint(lambda x: F.dropout(self.layer(x), 0.4), x, use_reentrant=False)

    class Between(nn.Module):
        def __init__(self, kind: Any) -> None:
            super().__init__()
            self.blocks = row(kind)

        def forward(self, x: Tensor) -> Tensor:
            around = checkpoint(lambda x: F.dropout(x, 0.4).sin(), x, use_reentrant=False)
            return checkpoint(self.blocks, around, use_reentrant=False)

    plain = block(lambda self, x: F.dropout(self.layer(x), 0.4))
    kind = block(drop) if inside else plain
    x = torch.randn(2, WIDTH, requires_grad=True)
    eager, fast = pair(row(kind) if inside else Between(plain), x, kind)
    agree(eager, fast, x)
    wanted, found = ([p.grad for p in m.parameters()] for m in (eager, fast))
    assert not differences(wanted, found, same_bits)


class Convolution(nn.Module):
    """A residual block of images."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.norm(self.conv(x))) + x


@pytest.mark.parametrize("weights", [torch.channels_last, torch.contiguous_format])
def test_channels_last_stays_channels_last(weights: torch.memory_format) -> None:
    model = nn.Sequential(Convolution(), Convolution()).to(memory_format=weights)
    x = torch.randn(2, 4, 6, 6)
    eager, fast = pair(model, x, Convolution)
    for _ in range(2):
        agree(eager, fast, x)
        out = agree(eager, fast, x.to(memory_format=torch.channels_last))
        assert out.is_contiguous(memory_format=torch.channels_last)
        eager.eval()
        model.eval()


def appends(self: Any, x: Tensor) -> Tensor:
    self.seen.append(x.shape[0])
    return self.layer(x)


def counts(self: Any, x: Tensor) -> Tensor:
    self.calls += 1
    return self.layer(x) * self.calls


@pytest.mark.parametrize("forward", [appends, counts])
def test_what_a_block_appends_or_counts_happens_at_every_call(forward: Any) -> None:
    def init(self: Any) -> None:
        nn.Module.__init__(self)
        self.layer, self.seen, self.calls = nn.Linear(WIDTH, WIDTH), [], 0

    kind = block(forward, __init__=init)
    model = row(kind, 2)
    eager = copy.deepcopy(model)
    fast = regions.compile(model, torch.randn(2, WIDTH), kind, backend="eager")
    for _ in range(3):
        agree(eager, fast, torch.randn(2, WIDTH))
    for mine, other in zip(model.blocks, eager.blocks, strict=True):
        assert (mine.seen, mine.calls) == (other.seen, other.calls)


@pytest.fixture(scope="module")
def compiled() -> tuple[nn.Module, regions.Compiled]:
    eager, fast = pair(row(lambda: Residual(WIDTH)), torch.randn(2, WIDTH), Residual)
    fast(torch.randn(2, WIDTH))
    return eager, fast


def test_a_deep_copy_has_parameters_of_its_own() -> None:
    x = torch.randn(2, WIDTH)
    eager, fast = pair(row(lambda: Residual(WIDTH)), x, Residual)
    agree(eager, fast, x)
    other, eager_other = copy.deepcopy(fast), copy.deepcopy(eager)
    with torch.no_grad():
        for p, q in zip(other.parameters(), eager_other.parameters(), strict=True):
            p.add_(0.5)
            q.add_(0.5)
    agree(eager_other, other, x)
    agree(eager, fast, x)


def test_it_is_pickled_and_saved(tmp_path: Any) -> None:
    x = torch.randn(2, WIDTH)
    eager, fast = pair(Stack([Residual(WIDTH), Residual(WIDTH)], WIDTH), x, Residual)
    fast(x)
    torch.save(fast, tmp_path / "fast.pt")
    agree(eager, torch.load(tmp_path / "fast.pt", weights_only=False), x)
    assert fast.module.state_dict().keys() == eager.state_dict().keys()


def test_an_average_of_models_follows_it() -> None:
    x = torch.randn(2, WIDTH)
    eager, fast = pair(row(lambda: Residual(WIDTH)), x, Residual)
    averages = [torch.optim.swa_utils.AveragedModel(m) for m in (eager, fast)]
    for module, average in zip((eager, fast), averages, strict=True):
        with torch.no_grad():
            for p in module.parameters():
                p.mul_(1.25)
        average.update_parameters(module)
    agree(*averages, x)


Pair = namedtuple("Pair", "main aside")


@dataclass
class Outcome:
    """What a model gives."""

    first: Any
    rest: list[Any]


def test_named_tuples_and_dataclasses_are_results() -> None:
    def named(self: Any, x: Any) -> Any:
        return Pair(self.layer(x), {"sum": x.sum()})

    def whole(self: Any, x: Tensor) -> Any:
        first = self.blocks[0](x)
        return Outcome(self.blocks[1](first.main), [first, None])

    kind = block(named)
    model = row(kind, 2)
    model.__class__ = type("Results", (Stack,), {"forward": whole})
    x = torch.randn(2, WIDTH)
    eager, fast = pair(model, x, kind)
    out = agree(eager, fast, x)
    assert isinstance(out, Outcome) and isinstance(out.first, Pair)


def test_a_transform_of_torch_func_may_hold_it(compiled: Any) -> None:
    eager, fast = compiled
    x, v = torch.randn(5, WIDTH), torch.randn(5, WIDTH)
    func = torch.func
    for transform in (
        lambda f: func.vmap(f)(x),
        lambda f: func.grad(lambda y: f(y).sum())(x),
        lambda f: func.vmap(func.grad(lambda y: f(y).sum()))(x),
        lambda f: func.jvp(f, (x,), (v,)),
        lambda f: func.jacrev(f)(x[0]),
    ):
        wanted, found = transform(eager), transform(fast)
        torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("grad", [True, False])
def test_forward_mode_tangents_pass(compiled: Any, grad: bool) -> None:
    eager, fast = compiled
    x, v = torch.randn(2, WIDTH), torch.randn(2, WIDTH)
    tangents = []
    for module in (eager, fast):
        with torch.set_grad_enabled(grad), torch.autograd.forward_ad.dual_level():
            out = module(torch.autograd.forward_ad.make_dual(x, v))
            tangents.append(torch.autograd.forward_ad.unpack_dual(out).tangent)
    assert tangents[0] is not None and tangents[1] is not None
    torch.testing.assert_close(tangents[1], tangents[0])


def test_a_graph_is_kept_for_a_second_backward(compiled: Any) -> None:
    eager, fast = compiled
    x = torch.randn(2, WIDTH, requires_grad=True)
    found = []
    for module in (eager, fast):
        loss = module(x).square().sum()
        first = torch.autograd.grad(loss, x, retain_graph=True)
        found.append([*first, *torch.autograd.grad(loss, x)])
    torch.testing.assert_close(found[1], found[0])


def test_one_block_may_hang_under_two_parents() -> None:
    shared = Residual(WIDTH)
    model = nn.Sequential(nn.Sequential(shared, nn.Tanh()), nn.Sequential(nn.Tanh(), shared))
    x = torch.randn(2, WIDTH)
    eager, fast = pair(model, x, Residual)
    agree(eager, fast, x)
    assert not differences(state(eager), state(fast.module), same_bits)


class LoRA(nn.Module):
    """A linear layer with a learned correction of rank 1."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.a = nn.Parameter(torch.ones(1, layer.in_features))
        self.b = nn.Parameter(torch.ones(layer.out_features, 1))

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) + x @ self.a.T @ self.b.T


def test_layers_may_be_replaced_after_compiling() -> None:
    x = torch.randn(2, WIDTH)
    eager, fast = pair(row(lambda: Residual(WIDTH)), x, Residual)
    agree(eager, fast, x)
    for model in (eager, fast.module):
        for part in model.blocks[1:]:
            part.up = LoRA(part.up)
    agree(eager, fast, x)
    gradients = {n: p.grad is None for n, p in fast.module.named_parameters()}
    assert gradients == {n: p.grad is None for n, p in eager.named_parameters()}
    assert not gradients["blocks.1.up.a"]


class Memory:
    """A cache as generation libraries have it: one entry per layer, which grows."""

    def __init__(self) -> None:
        self.keys: list[Tensor] = []
        self.length = 0

    def update(self, layer: int, key: Tensor) -> Tensor:
        if layer == len(self.keys):
            self.keys.append(key)
        else:
            self.keys[layer] = torch.cat([self.keys[layer], key], 1)
        self.length = self.keys[0].shape[1]
        return self.keys[layer]


def test_a_cache_object_is_filled() -> None:
    class Remembers(nn.Module):
        def __init__(self, layer: int) -> None:
            super().__init__()
            self.proj, self.index = nn.Linear(WIDTH, WIDTH), layer

        def forward(self, x: Tensor, memory: Memory) -> Tensor:
            keys = memory.update(self.index, self.proj(x))
            return x + torch.softmax(x @ keys.mT, -1) @ keys

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.ModuleList([Remembers(i) for i in range(3)])

        def forward(self, x: Tensor, memory: Memory) -> Tensor:
            for part in self.blocks:
                x = part(x, memory)
            return x

    model = Decoder().requires_grad_(False)
    eager, fast = pair(model, (torch.randn(1, 4, WIDTH), Memory()), Remembers)
    memories = Memory(), Memory()
    for length in (4, 1, 1, 1):
        x = torch.randn(1, length, WIDTH)
        assert torch.equal(eager(x, memories[0]), fast(x, memories[1]))
    assert memories[0].length == memories[1].length == 7
    assert not differences(describe(memories[0].keys), describe(memories[1].keys), same_bits)


@pytest.mark.parametrize("inner", ["regions", "torch"])
def test_a_compiled_module_may_hold_a_compiled_module(inner: str) -> None:
    x = torch.randn(2, WIDTH)
    part = row(lambda: Residual(WIDTH), 2)
    part.last = nn.Linear(WIDTH, WIDTH)
    held = (
        regions.compile(part, x, Residual, backend="eager")
        if inner == "regions"
        else torch.compile(part, backend="eager")
    )
    model = nn.Sequential(Residual(WIDTH), held, Residual(WIDTH))
    eager = nn.Sequential(*copy.deepcopy([model[0], part, model[2]]))
    fast = regions.compile(model, x, Residual, backend="eager")
    agree(eager, fast, x)
    agree(eager, torch.compile(fast, backend="eager"), x)


def test_keyword_arguments_come_in_any_order() -> None:
    def forward(self: Any, x: Tensor, *, gain: Tensor, shift: Tensor | None = None) -> Tensor:
        x = self.layer(x) * gain
        return x if shift is None else x + shift

    def whole(self: Any, x: Tensor, **options: Any) -> Tensor:
        for part in self.blocks:
            x = part(x, **options)
        return x

    kind = block(forward)
    model = row(kind)
    model.__class__ = type("Keywords", (Stack,), {"forward": whole})
    x, gain, shift = torch.randn(2, WIDTH), torch.randn(WIDTH), torch.randn(WIDTH)
    eager, fast = pair(model, {"x": x, "gain": gain, "shift": shift}, kind)
    agree(eager, fast, x=x, gain=gain, shift=shift)
    agree(eager, fast, shift=shift, gain=gain, x=x)
    agree(eager, fast, x, shift=gain, gain=shift)
    agree(eager, fast, x, gain=gain)


class Remembering(nn.Module):
    """Binds its memory to what the call before gave, with its gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.memory = torch.zeros(3, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        self.memory = torch.tanh(self.linear(x) + self.memory)
        return self.memory * 2


def test_what_is_set_on_the_compiled_module_is_the_modules() -> None:
    fast = regions.compile(Remembering(), None, [nn.Linear], backend="eager")
    fast(torch.ones(3, WIDTH))
    fast.scale = 5.0
    fast.linear = nn.Linear(WIDTH, WIDTH, bias=False)
    assert fast.module.scale == 5.0 and fast.module.linear is fast.linear
    fast(torch.ones(3, WIDTH)).sum().backward()
    assert fast.linear.weight.grad is not None
    del fast.scale
    assert not hasattr(fast.module, "scale")


@pytest.mark.parametrize("way", ["joint", "package"])
def test_gradients_that_pass_from_call_to_call_are_not_lost(way: str, tmp_path: Path) -> None:
    """Carried on or refused by name; the history was cut without a word."""
    x = torch.ones(3, WIDTH)
    if way == "joint":
        made = joint(Remembering(), x, compile_forward="eager", compile_backward="eager")
    else:
        folder = tmp_path / "package"
        made = regions.compile(
            Remembering(), (x,), [nn.Linear], "aot", output=folder, backend="eager"
        )
    made(x)
    with pytest.raises(IngotError, match="'memory' asks for a gradient"):
        made(x)
