"""Where a joint was silently wrong, or failed with torch's words, and eager was right."""

import copy
import linecache
import math
import pickle
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel
from torch.utils.checkpoint import checkpoint

import ingot.train as train
from ingot.cli.inspect import inspect
from ingot.errors import IngotError
from tests.train.models import eager

Pair = namedtuple("Pair", "value aux")


@dataclass
class Output:
    value: Tensor
    parts: dict[str, Tensor]
    count: int


def test_the_branch_of_size_one_is_not_that_of_many() -> None:
    def decode(x: Tensor) -> Tensor:
        return x * 2 if x.shape[1] > 1 else x - 100

    joint = eager(decode, torch.randn(2, 5), dynamic={"x": {0: "batch", 1: "time"}})
    x = torch.randn(3, 4)
    assert torch.equal(joint(x), decode(x))
    assert torch.equal(joint(x[:1]), decode(x[:1]))
    with pytest.raises(IngotError, match=r"wrong-shape.*traced for time > 1"):
        joint(torch.randn(3, 1))


@pytest.mark.parametrize("size", [0, 1, 2, 7])
def test_a_size_that_nothing_asks_for_may_be_anything(size: int) -> None:
    def attend(x: Tensor) -> Tensor:
        weights = torch.softmax(x @ x.mT / 2, -1)
        return (weights @ x).flatten(1).sum(0)

    joint = eager(attend, torch.randn(3, 4, 5), dynamic="batch")
    x = torch.randn(size, 4, 5)
    torch.testing.assert_close(joint(x), attend(x))


@pytest.mark.parametrize("size", [0, 1])
def test_squeezing_an_open_size_of_one_is_refused(size: int) -> None:
    joint = eager(lambda x: x.squeeze() * 2, torch.randn(3, 5), dynamic="batch")
    x = torch.randn(size, 5)
    if size == 0:
        assert joint(x).shape == (0, 5)
        return
    with pytest.raises(IngotError, match="wrong-shape"):
        joint(x)


def test_a_checkpoint_draws_once() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.drop = nn.Linear(8, 8), nn.Dropout(0.5)

        def forward(self, x: Tensor) -> Tensor:
            return checkpoint(lambda x: self.drop(self.linear(x)) ** 2, x, use_reentrant=False)

    block, x = Block(), torch.randn(4, 8, requires_grad=True)
    joint = eager(block, x)
    for seed in range(3):
        torch.manual_seed(seed)
        expected = torch.autograd.grad(block(x).sum(), [x, *block.parameters()])
        torch.manual_seed(seed)
        found = torch.autograd.grad(joint(x).sum(), [x, *joint.parameters()])
        torch.testing.assert_close(found, expected)


def test_tracing_leaves_nothing_in_the_source() -> None:
    class Cached(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 3)
            self.last = torch.zeros(3)

        def forward(self, x: Tensor) -> Tensor:
            self.last = self.linear(x).detach().sum(0)
            return x * self.last

    net = Cached()
    before = {**vars(net)}
    last = net.last
    eager(net, torch.randn(2, 3, requires_grad=True))
    assert vars(net) == before
    assert net.last is last
    assert torch.equal(last, torch.zeros(3))


def test_a_tensor_attribute_is_followed() -> None:
    class Momentum(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mean = torch.zeros(3)

        def forward(self, x: Tensor) -> Tensor:
            self.mean = 0.5 * self.mean + x.detach().mean(0)
            return x - self.mean

    net = Momentum()
    joint = eager(copy.deepcopy(net), torch.randn(2, 3))
    for _ in range(3):
        x = torch.randn(2, 3)
        assert torch.equal(joint(x), net(x))
    assert torch.equal(joint.mean, net.mean)
    assert not joint.state_dict()


def test_a_counter_is_refused_with_its_line() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            return x * self.calls

    net = Counting()
    with pytest.raises(IngotError, match=r"python-state.*'calls'(?s:.)*self.calls \+= 1"):
        eager(net, torch.randn(2))
    assert net.calls == 0


def test_hooks_are_traced() -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    net[0].register_forward_hook(lambda _, __, out: out * 3)
    net.register_forward_pre_hook(lambda _, given: (given[0] + 1,))
    x = torch.randn(2, 3)
    torch.testing.assert_close(eager(net, x)(x), net(x))


def test_writes_into_strided_inputs_arrive() -> None:
    def store(x: Tensor, cache: Tensor) -> Tensor:
        cache.mul_(2).add_(x)
        return x + 1

    whole, expected = torch.ones(4, 3, 5), torch.ones(4, 3, 5)
    joint = eager(store, (torch.randn(4, 5), torch.zeros(4, 5)))
    x = torch.randn(4, 5)
    joint(x, whole[:, 1])
    store(x, expected[:, 1])
    assert torch.equal(whole, expected)
    turned = torch.ones(5, 4)
    joint(x, turned.t())
    torch.testing.assert_close(turned, 2 + x.t())


@pytest.mark.parametrize("training", [False, True])
def test_channels_last_stays(training: bool) -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).train(training)
    net = net.to(memory_format=torch.channels_last)
    x = torch.randn(2, 3, 6, 6).to(memory_format=torch.channels_last).requires_grad_()
    joint = eager(copy.deepcopy(net), x, dynamic="batch")
    found, expected = joint(x), net(x)
    torch.testing.assert_close(found, expected)
    assert found.stride() == expected.stride()
    grads = [torch.autograd.grad(y.square().sum(), x)[0] for y in (found, expected)]
    torch.testing.assert_close(*grads)


def test_what_is_not_used_gets_no_gradient() -> None:
    class Branches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.other = nn.Linear(3, 3), nn.Linear(3, 3)

        def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
            return self.used(x), self.other(y)

    net = Branches()
    x, y, z = (torch.randn(2, 3, requires_grad=True) for _ in range(3))
    joint = eager(copy.deepcopy(net), (x, y))
    for model in (net, joint):
        model(x, y)[0].sum().backward()
        assert [p.grad is None for p in model.parameters()] == [False, False, True, True]
        assert y.grad is None
    unused = eager(lambda a, b: a * 2, (x, z))
    unused(x, z).sum().backward()
    assert z.grad is None


def test_keywords_come_in_any_order() -> None:
    def mix(**given: Any) -> Tensor:
        return given["a"] - 2 * given["b"]["c"] + given["b"]["d"]

    a, c, d = torch.randn(3).unbind(), torch.tensor(2.0), torch.tensor(3.0)
    joint = eager(mix, {"a": a[0], "b": {"c": c, "d": d}})
    assert torch.equal(joint(b={"d": d, "c": c}, a=a[1]), mix(a=a[1], b={"c": c, "d": d}))


def test_keywords_of_a_signature_come_in_any_order() -> None:
    def mix(a: Tensor, *, b: dict[str, Tensor], **more: Tensor) -> Tensor:
        return a - 2 * b["c"] + sum((i + 5) * x for i, x in enumerate(more.values()))

    a, c, e, f = torch.randn(4).unbind()
    joint = eager(mix, {"a": a, "b": {"c": c}, "f": f, "e": e})
    assert torch.equal(joint(f=f, e=e, b={"c": c}, a=a), mix(a, b={"c": c}, f=f, e=e))
    with pytest.raises(IngotError, match=r"wrong-call.*'mix' is given e, f in this order"):
        joint(a=a, b={"c": c}, e=e, f=f)


def test_another_order_of_a_dict_is_refused(tmp_path: Path) -> None:
    def weigh(parts: dict[str, Tensor]) -> dict[str, Tensor]:
        return {k: (i + 1) * x for i, (k, x) in enumerate(parts.items())}

    x = torch.randn(3)
    joint = eager(weigh, ({"b": x, "a": x},))
    joint.save(tmp_path / "saved")
    for run in (joint, train.load(tmp_path / "saved")):
        found = run({"b": x, "a": x})
        assert [*found] == ["b", "a"]
        assert torch.equal(found["a"], 2 * x)
        with pytest.raises(IngotError, match=r"wrong-call.*'a', 'b' in this order.*with 'b', 'a'"):
            run({"a": x, "b": x})


def test_a_question_whether_gradients_are_recorded_is_checked(tmp_path: Path) -> None:
    ask = torch.is_grad_enabled
    joint = eager(lambda x: x * 2 if ask() else x * 3, torch.randn(3))
    joint.save(tmp_path / "saved")
    x = torch.randn(3)
    for run in (joint, train.load(tmp_path / "saved")):
        assert torch.equal(run(x), x * 2)
        with torch.no_grad(), pytest.raises(IngotError, match=r"other-defaults.*was True and is"):
            run(x)
        assert torch.equal(run(x), x * 2)


def test_torchs_own_question_is_not() -> None:
    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()
    x = torch.randn(2, 3, 4)
    joint = eager(copy.deepcopy(layer), x)
    with torch.no_grad():
        torch.testing.assert_close(joint(x), layer(x))


def test_zero_has_a_sign_and_what_is_no_number_is_itself() -> None:
    def sign(x: Tensor, by: float) -> Tensor:
        return x * math.copysign(1, by)

    x = torch.randn(3)
    zero, nothing = eager(sign, (x, 0.0)), eager(sign, (x, math.nan))
    for _ in range(2):
        assert torch.equal(zero(x, 0.0), x)
        with pytest.raises(IngotError, match=r"wrong-call.*'by' is -0.0; it was traced as 0.0"):
            zero(x, -0.0)
        assert torch.equal(nothing(x, math.nan), x)


def test_named_tuples_and_dataclasses_are_results() -> None:
    def both(x: Tensor) -> Pair:
        return Pair(Output(x * 2, {"sum": x.sum()}, 3), x.detach())

    x = torch.randn(3, requires_grad=True)
    found = eager(both, x)(x)
    assert type(found) is Pair
    assert type(found.value) is Output
    assert found.value.count == 3
    assert torch.equal(found.value.value, x * 2)
    assert torch.equal(found.value.parts["sum"], x.sum())
    assert found.value.value.requires_grad
    assert not found.aux.requires_grad


def test_a_joint_is_copied_pickled_and_averaged() -> None:
    net, x = nn.Sequential(nn.Linear(3, 3), nn.Tanh()), torch.randn(2, 3)
    joint = eager(net, x)
    for other in (copy.deepcopy(joint), pickle.loads(pickle.dumps(joint))):
        assert torch.equal(other(x), joint(x))
        with torch.no_grad():
            next(other.parameters()).zero_()
        assert torch.equal(joint(x), net(x))
        assert not torch.equal(other(x), joint(x))
    average = AveragedModel(joint)
    average.update_parameters(joint)
    assert torch.equal(average(x), joint(x))


def test_transforms_are_refused_by_name() -> None:
    x = torch.randn(3, requires_grad=True)
    joint = eager(lambda x: (x**3).sum(), x)
    value, ones = x.detach(), torch.ones(3)
    for call in (
        lambda: torch.func.vmap(joint)(torch.randn(2, 3)),
        lambda: torch.func.grad(joint)(value),
        lambda: torch.func.jvp(joint, (value,), (ones,)),
    ):
        with pytest.raises(IngotError, match=r"torch\.func|forward-mode"):
            call()
    with torch.autograd.forward_ad.dual_level(), pytest.raises(IngotError, match="forward-mode"):
        joint(torch.autograd.forward_ad.make_dual(value, ones))


def test_a_graph_may_be_retained() -> None:
    x = torch.randn(3, requires_grad=True)
    y = eager(lambda x: (x**3).sum(), x)(x)
    first = torch.autograd.grad(y, x, retain_graph=True)
    assert torch.equal(torch.autograd.grad(y, x)[0], first[0])
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(y, x)


def test_torch_compile_goes_round_a_joint() -> None:
    joint = eager(lambda x: x**3, torch.randn(3, requires_grad=True))
    x = torch.randn(3, requires_grad=True)
    compiled = torch.compile(lambda x: joint(x * 2) + 1, backend="eager")
    found = compiled(x)
    torch.testing.assert_close(found, (x * 2) ** 3 + 1)
    torch.testing.assert_close(torch.autograd.grad(found.sum(), x)[0], 48 / 2 * x**2)


def test_a_package_keeps_dataclasses_and_constants(tmp_path: Path) -> None:
    table = torch.arange(3.0)

    def scaled(x: Tensor) -> Output:
        return Output(x * table, {}, 1)

    x = torch.randn(3)
    eager(scaled, x).save(tmp_path / "scaled")
    found = train.load(tmp_path / "scaled")(x)
    assert type(found) is Output
    assert torch.equal(found.value, x * table)


@pytest.mark.parametrize("training", [pytest.param(False, marks=pytest.mark.exhaustive), True])
def test_a_transformer_takes_batches_and_sequences_of_one(training: bool) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).train(training)
    joint = eager(layer, torch.randn(2, 7, 8), dynamic={"src": {0: "batch", 1: "time"}})
    for sizes in ((2, 7), (1, 7), (3, 1), (1, 1)):
        x = torch.randn(*sizes, 8)
        torch.manual_seed(1)
        expected = layer(x)
        torch.manual_seed(1)
        torch.testing.assert_close(joint(x), expected)


def test_a_decision_by_two_sizes_is_checked_for_both() -> None:
    def decide(x: Tensor) -> Tensor:
        return x * 2 if x.shape[0] > 1 or x.shape[1] > 1 else x - 100

    joint = eager(decide, torch.randn(2, 3), dynamic={"x": {0: "rows", 1: "columns"}})
    for sizes in ((4, 4), (1, 3), (3, 1)):
        x = torch.randn(sizes)
        assert torch.equal(joint(x), decide(x))
    with pytest.raises(IngotError, match="wrong-shape"):
        joint(torch.randn(1, 1))


def test_recurrent_networks_are_traced() -> None:
    net = nn.LSTM(3, 5, batch_first=True)
    joint = eager(net, torch.randn(2, 7, 3), dynamic={"input": {0: "batch"}})
    for size in (1, 4):
        x = torch.randn(size, 7, 3)
        torch.testing.assert_close(joint(x), net(x))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_networks_learn_from_what_asks_for_no_gradient(kind: type[nn.Module]) -> None:
    x = torch.randn(5, 3, 4)
    net = kind(4, 4, 2, bidirectional=True)
    wanted = copy.deepcopy(net)
    joint = eager(net, x)
    for each in (joint, wanted):
        each(x)[0].square().sum().backward()
    pairs = zip(joint.parameters(), wanted.parameters(), strict=True)
    for found, expected in pairs:
        torch.testing.assert_close(found.grad, expected.grad)


class Clamped(nn.Module):
    """A parameter that is written to where no gradient is followed."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-3, 3, 5)[:, None].repeat(1, 4))

    def forward(self, index: Tensor) -> Tensor:
        with torch.no_grad():
            self.weight.clamp_(-1, 1)
        return self.weight[index] ** 2


@pytest.mark.parametrize("make", [lambda: nn.Embedding(5, 4, max_norm=1.0), Clamped])
def test_parameters_that_a_call_writes_to_learn(make: Callable[[], nn.Module]) -> None:
    net, index = make(), torch.tensor([1, 2])
    wanted = copy.deepcopy(net)
    joint = eager(net, index)
    for _ in range(2):
        for each in (joint, wanted):
            each(index).square().sum().backward()
            with torch.no_grad():
                each.weight.add_(each.weight.grad)
    torch.testing.assert_close(joint.weight, wanted.weight)
    torch.testing.assert_close(joint.weight.grad, wanted.weight.grad)


def test_a_compiled_module_is_what_it_was_made_of() -> None:
    net, x = nn.Linear(3, 3), torch.randn(2, 3)
    joint = eager(torch.compile(net, backend="eager"), x)
    assert torch.equal(joint(x), net(x))
    assert set(joint.state_dict()) == set(net.state_dict())


def test_sizes_may_have_bounds() -> None:
    for size in (("batch", 2, 8), torch.export.Dim("batch", min=2, max=8)):
        joint = eager(lambda x: x * 2, torch.randn(3, 2), dynamic={"x": {0: size}})
        assert joint(torch.randn(8, 2)).shape == (8, 2)
        for wrong in (1, 9):
            with pytest.raises(IngotError, match=r"wrong-shape.*batch"):
                joint(torch.randn(wrong, 2))


def test_constants_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale, self.kind = 2.5, "tanh"

        def forward(self, x: Tensor) -> Tensor:
            return (x.tanh() if self.kind == "tanh" else x) * self.scale

    eager(Scaled(), torch.randn(3)).save(tmp_path / "scaled")
    joint = train.load(tmp_path / "scaled")
    assert joint.signature.constants == {"kind": "'tanh'", "scale": "2.5"}
    assert "taken  scale = 2.5" in str(joint.signature)
    assert inspect(tmp_path / "scaled") == 0
    assert "taken  kind = 'tanh'" in capsys.readouterr().out


def test_decompositions_go_before_ours() -> None:
    def tanh(x: Tensor) -> Tensor:
        return x.sigmoid()

    table = {torch.ops.aten.tanh.default: tanh}
    x = torch.randn(3)
    assert torch.equal(eager(torch.tanh, x, decompositions=table)(x), x.sigmoid())


class Named(Tensor):
    """A tensor subclass."""


NAMED = torch.ones(3).as_subclass(Named)


def reads_a_subclass(x: Tensor) -> Tensor:
    return x + NAMED  # the line


def makes_a_subclass(x: Tensor) -> Tensor:
    return x.as_subclass(Named) * 2


def branches(x: Tensor) -> Tensor:
    if x.sum() > 0:  # the line
        return x
    return -x


def selects(x: Tensor) -> Tensor:
    y = x * 2
    return y[y > 0]  # the line


def reads_a_number(x: Tensor) -> Tensor:
    return x * x.sum().item()  # the line


def draws(x: Tensor) -> Tensor:
    return x[torch.multinomial(x.abs(), 2)]  # the line


def calls_python(x: Tensor) -> Tensor:
    open(__file__).close()  # the line
    return x


def fixes_a_size(x: Tensor) -> Tensor:
    return x if x.shape[0] == 2 else -x  # the line


def reshapes(x: Tensor) -> Tensor:
    y = x.sum(1)
    return y.reshape(2)  # the line


def does_not_fit(x: Tensor) -> Tensor:
    return x @ x  # the line


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (branches, "untraceable-function"), (selects, "untraceable-function"),
        (reads_a_number, "untraceable-function"), (draws, "random-operation"),
        (calls_python, "untraceable-function"), (does_not_fit, "untraceable-function"),
        (reads_a_subclass, "tensor-subclass"), (fixes_a_size, "fixed-size"),
        (reshapes, "fixed-size"),
    ],
    ids=lambda x: getattr(x, "__name__", None),
)  # fmt: skip
def test_refusals_name_the_line(function: Callable[..., Tensor], told: str) -> None:
    with pytest.raises(IngotError, match=told) as caught:
        eager(function, torch.ones(2, 3), dynamic="batch" if told == "fixed-size" else None)
    (problem,) = caught.value.problems
    assert problem.span is not None and problem.span.file == __file__
    assert problem.span.block == function.__name__
    assert "# the line" in linecache.getline(__file__, problem.span.line)


def test_subclasses_that_are_no_arguments_are_told_by_name() -> None:
    with pytest.raises(IngotError, match=r"NAMED' is a tensor subclass, Named"):
        eager(reads_a_subclass, torch.ones(3))
    with pytest.raises(IngotError, match="the result is a tensor subclass, Named"):
        eager(makes_a_subclass, torch.ones(3))


class Bound(nn.Module):
    """Binds its attributes as a function says."""

    def __init__(self, act: Any) -> None:
        super().__init__()
        self.act, self.t, self.u = act, torch.full((3, 4), 5.0), torch.full((3, 4), 6.0)
        for i, name in enumerate(("prev", "other", "a", "b")):
            self.register_buffer(name, torch.full((3, 4), float(i)))

    def forward(self, x: Tensor) -> Tensor:
        y = x - self.prev + 2 * self.other + 3 * self.a + 5 * self.b + 7 * self.t + 11 * self.u
        self.act(self, x)
        return y


def bind(**bound: str) -> Any:
    """Bind attributes at once, each to another one, or to the argument, `x`."""

    def act(self: Any, x: Tensor) -> None:
        values = {name: x if word == "x" else getattr(self, word) for name, word in bound.items()}
        for name, value in values.items():
            setattr(self, name, value)

    return act


def bind_and_write(self: Any, x: Tensor) -> None:
    self.prev = x
    self.prev.add_(1)


def write_and_swap(self: Any, x: Tensor) -> None:
    self.a.add_(1)
    self.a, self.b = self.b, self.a


@pytest.mark.parametrize(
    "act",
    [
        bind(prev="x"), bind(t="x"), bind(a="b", b="a"), bind(t="u", u="t"), bind(b="a", a="x"),
        bind(prev="a", a="b", b="prev"), bind(prev="x", other="x"), bind_and_write, write_and_swap,
    ],
)  # fmt: skip
def test_an_attribute_bound_to_a_tensor_that_is_there_is_followed(act: Any) -> None:
    module = Bound(act)
    joint = eager(copy.deepcopy(module), torch.randn(3, 4))
    for _ in range(3):
        x = torch.randn(3, 4)
        mine, its = x.clone(), x.clone()
        assert torch.equal(joint(its), module(mine))
        assert torch.equal(its, mine)
        for name in ("prev", "other", "a", "b"):
            assert torch.equal(getattr(joint, name), getattr(module, name)), name


def write_then_bind(self: Any, x: Tensor) -> None:
    self.prev.add_(1)
    self.prev = x


def bind_two_and_write(self: Any, x: Tensor) -> None:
    self.prev.add_(1)
    self.prev = self.other = x * 2


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (bind(prev="other"), "'prev' to a tensor that has another name"),
        (bind(t="u"), "'t' to a tensor that has another name"),
        (write_then_bind, "'prev' to a tensor that others have too"),
        (bind_two_and_write, "'prev' to a tensor that others have too"),
        (lambda self, _: setattr(self, "prev", None), "'prev' to a NoneType"),
    ],
)
def test_attributes_that_become_one_tensor_are_refused(act: Any, told: str) -> None:
    with pytest.raises(IngotError, match=f"python-state.*{told}(?s:.)*test_wrong.py:"):
        eager(Bound(act), torch.randn(3, 4))


class Returns(nn.Module):
    def __init__(self, give: Any) -> None:
        super().__init__()
        self.give, self.layer, self.plain = give, nn.Linear(4, 4), torch.arange(4.0)

    def forward(self, x: Tensor) -> Any:
        return self.give(self, x)


@pytest.mark.parametrize("attribute", ["T", "mT", "H", "data"])
@pytest.mark.parametrize("which", [lambda self, x: x, lambda self, _: self.layer.weight])
def test_what_an_attribute_makes_of_a_tensor_is_refused_as_a_result(
    attribute: str, which: Any
) -> None:
    module = Returns(lambda self, x: (self.layer(x), getattr(which(self, x), attribute)))
    with pytest.raises(IngotError, match=r"wrong-output.*no result(?s:.)*at \[1\](?s:.)*transpose"):
        eager(module, torch.randn(4, 4))


def test_a_plain_tensor_of_the_module_is_a_result(tmp_path: Path) -> None:
    module, x = Returns(lambda self, x: (self.layer(x).T, self.plain)), torch.randn(3, 4)
    joint = eager(copy.deepcopy(module), x)
    joint.save(tmp_path / "saved")
    for run in (joint, train.load(tmp_path / "saved")):
        for found, expected in zip(run(x), module(x), strict=True):
            assert torch.equal(found, expected)


def test_a_joint_may_be_given_to_torch_compile() -> None:
    layer, x = nn.Linear(4, 4), torch.randn(3, 4)
    joint = eager(copy.deepcopy(layer), x)
    assert torch.equal(torch.compile(joint, backend="eager")(x), layer(x))
    assert torch.equal(copy.deepcopy(joint)(x), layer(x))
