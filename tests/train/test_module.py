"""A joint behaves as the function that it was traced from, and refuses what it cannot do."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import ingot.train as train
from ingot.errors import IngotError
from tests.train.models import MODELS, Block, cnn, disagreement, eager, mlp

F64 = torch.float64


def some(*shape: int, grad: bool = True) -> Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, dtype=F64, generator=generator).requires_grad_(grad)


def shared(x: Tensor) -> object:
    y = x.sin()
    return {"whole": y, "turned": y.t(), "row": y[0], "parts": y.split(1, 1), "input": x.t()}


def writes(x: Tensor, total: Tensor) -> object:
    total[0].add_(x.detach().sum())
    return x * total.sum(), total.t()


def sizes(x: Tensor) -> object:
    spread = x.sum(0).expand(x.shape[0], 3)
    return spread * x.shape[0] + x.mean(), x.shape[0] * 2, x.reshape(-1).sin()


def plain_values(x: Tensor) -> object:
    return x * 2, None, 3, "word", 2.5, True


def drops(x: Tensor) -> Tensor:
    return functional.dropout(x.sin(), 0.3) + torch.randn_like(x) * torch.rand(3, dtype=F64)


def integers(x: Tensor, index: Tensor) -> object:
    return x[index], index + 1, x.argmax(1)


def without_gradient(x: Tensor) -> Tensor:
    with torch.no_grad():
        y = x.sin()
    return x * y.detach()


def solved(x: Tensor, y: Tensor) -> Tensor:
    return torch.linalg.solve(x.t() @ x + torch.eye(3, dtype=F64), y)


class Ramp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor) -> Tensor:  # pyright: ignore
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, grad: Tensor) -> Tensor:  # pyright: ignore
        return 3 * grad * ctx.saved_tensors[0]


FUNCTIONS: dict[str, tuple[Callable[..., object], tuple[Tensor, ...], bool]] = {
    "shared": (shared, (some(4, 3),), True),
    "same": (lambda x: x, (some(4, 3),), True),
    "twice": (lambda x: ((y := x * 2), y, y.detach()), (some(4, 3),), True),
    "parts": (lambda x: x.sin().unbind(1), (some(4, 3),), True),
    "writes": (writes, (some(4, 3), some(2, 2, grad=False)), False),
    "sizes": (sizes, (some(4, 3),), True),
    "values": (plain_values, (some(4, 3),), True),
    "drops": (drops, (some(4, 3),), True),
    "integers": (integers, (some(4, 3), torch.tensor([0, 2])), False),
    "unused": (lambda x, y: x * 2, (some(4, 3), some(2)), False),
    "constant": (lambda x: x * torch.arange(3.0), (some(4, 3),), True),
    "no_grad": (without_gradient, (some(4, 3),), True),
    "own rule": (Ramp.apply, (some(4, 3),), True),
    "solve": (solved, (some(4, 3), some(3, 2)), False),
    "attention": (
        lambda q: functional.scaled_dot_product_attention(q, q, q), (some(2, 2, 5, 4),), True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_agrees_with_eager(name: str) -> None:
    function, values, dynamic = FUNCTIONS[name]
    joint = eager(function, values, dynamic="batch" if dynamic else None)
    assert disagreement(function, joint, values) < 1e-12
    if dynamic:
        for batch in (1, 2, 5):
            other = some(batch, *values[0].shape[1:])
            assert disagreement(function, joint, (other,)) < 1e-12


@pytest.mark.parametrize("strategy", train.STRATEGIES)
def test_any_partition_gives_the_same(strategy: str) -> None:
    source = cnn()
    joint = eager(copy.deepcopy(source), MODELS["cnn"][1], dynamic="batch", partition=strategy)
    values = some(5, 1, 6, 6, grad=False)
    assert disagreement(source, joint, (values,)) < 1e-12
    for a, b in zip(source.parameters(), joint.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=0, atol=1e-12)


def test_outputs_are_views_where_eager_has_views() -> None:
    x = some(4, 3)
    found = eager(shared, (x,))(x)
    assert found["turned"].data_ptr() == found["whole"].data_ptr() == found["row"].data_ptr()
    assert found["input"].data_ptr() == x.data_ptr()
    with torch.no_grad():
        found["row"].zero_()
    assert not found["whole"][0].any()


def test_an_output_written_to_before_the_backward_is_noticed() -> None:
    x = some(4, 3)
    y = eager(lambda x: x.tanh(), (x,))(x)
    y.detach().zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_parameter_written_to_before_the_backward_is_noticed() -> None:
    joint = eager(mlp(), MODELS["mlp"][1])
    y = joint(some(6, 3))
    with torch.no_grad():
        joint.get_parameter("2.weight").zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_an_input_that_is_written_to_may_be_saved() -> None:
    def scaled(x: Tensor, count: Tensor) -> Tensor:
        y = x * count.clone()
        count.add_(1)
        return y

    values = some(4, 3), some(3, grad=False)
    assert disagreement(scaled, eager(scaled, values), values) < 1e-12


def test_a_buffer_bound_to_another_tensor_is_written_back() -> None:
    class Counted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(()), persistent=False)
            self.seen: Tensor

        def forward(self, x: Tensor) -> Tensor:
            self.seen = self.seen + x.shape[0]
            return x * self.seen

    joint = eager(Counted(), torch.ones(2), dynamic="batch")
    joint(torch.ones(3))
    assert joint(torch.ones(5)).tolist() == [8.0] * 5
    assert not joint.state_dict()


def test_tied_parameters_are_one() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(3, 3).double()
            self.b = nn.Linear(3, 3).double()
            self.b.weight = self.a.weight

        def forward(self, x: Tensor) -> Tensor:
            return self.b(self.a(x).sin())

    source = Tied()
    joint = eager(copy.deepcopy(source), some(4, 3))
    assert disagreement(source, joint, (some(4, 3),)) < 1e-12
    weight, ours = source.a.weight.grad, joint.get_parameter("b.weight").grad
    torch.testing.assert_close(weight, ours, rtol=0, atol=1e-12)
    assert list(joint.state_dict()) == list(source.state_dict())
    joint.get_submodule("b").register_parameter("weight", nn.Parameter(torch.eye(3, dtype=F64)))
    with pytest.raises(IngotError, match=r"untied-parameter.*'a.weight' and 'b.weight'"):
        joint(some(4, 3))


def test_names_that_a_joint_has_itself_are_no_trouble() -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.save = nn.Linear(3, 3)
            self.signature = nn.Parameter(torch.ones(3))

        def forward(self, x: Tensor) -> Tensor:
            return self.save(x) * self.signature

    source = Named()
    joint = eager(source, torch.zeros(2, 3))
    assert list(joint.state_dict()) == list(source.state_dict())
    torch.testing.assert_close(joint(torch.ones(2, 3)), source(torch.ones(2, 3)))


def test_state_is_loaded_and_edited_in_place() -> None:
    joint, other = eager(mlp(), MODELS["mlp"][1], dynamic="batch"), mlp()
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(2)
    joint.load_state_dict(other.state_dict())
    x = some(3, 3)
    torch.testing.assert_close(joint(x), other(x))
    with torch.no_grad():
        joint.get_parameter("2.bias").add_(1)
        other.get_parameter("2.bias").add_(1)
    torch.testing.assert_close(joint(x), other(x))


def test_a_copy_has_numbers_of_its_own() -> None:
    joint = eager(mlp(), MODELS["mlp"][1])
    other = copy.deepcopy(joint)
    with torch.no_grad():
        other.get_parameter("2.bias").add_(1)
    x = some(6, 3)
    torch.testing.assert_close(other(x), joint(x) + 1)
    assert torch.equal(pickle.loads(pickle.dumps(other))(x), other(x))


def test_dropout_is_fresh_at_each_call_and_repeats_with_the_seed() -> None:
    joint = eager(lambda x: functional.dropout(x, 0.5), torch.ones(1000, requires_grad=True))
    x = torch.ones(1000, requires_grad=True)
    first, second = joint(x), joint(x)
    assert not torch.equal(first, second)
    first.sum().backward()
    assert torch.equal(x.grad, first.detach())
    torch.manual_seed(7)
    again = joint(x)
    torch.manual_seed(7)
    assert torch.equal(again, functional.dropout(x, 0.5))


def test_only_some_outputs_need_gradients() -> None:
    x = some(4, 3)
    joint = eager(lambda x: (x.sin(), x.exp()), (x,))
    joint(x)[1].sum().backward()
    torch.testing.assert_close(x.grad, x.detach().exp())


def test_without_gradients_nothing_is_recorded() -> None:
    joint = eager(lambda x: x.sin(), some(4, 3))
    with torch.no_grad():
        assert not joint(some(4, 3)).requires_grad
    plain = eager(lambda x: x.sin(), some(4, 3, grad=False))
    assert plain.codes[0].backward_half is None
    assert not plain(some(4, 3, grad=False)).requires_grad


def test_double_backward_is_refused() -> None:
    x = some(4, 3)
    y = eager(lambda x: x.sin(), (x,))(x)
    with pytest.raises(IngotError, match=r"double-backward.*first derivatives only"):
        torch.autograd.grad(y.sum(), x, create_graph=True)


def test_tensor_subclasses_are_refused() -> None:
    class Marked(Tensor):
        pass

    marked = torch.ones(4).as_subclass(Marked)
    with pytest.raises(IngotError, match=r"tensor-subclass.*'x' is a tensor subclass, Marked"):
        eager(lambda x: x * 2, (marked,))
    joint = eager(lambda x: x * 2, (torch.ones(4),))
    with pytest.raises(IngotError, match=r"tensor-subclass.*Marked"):
        joint(marked)
    with pytest.raises(IngotError, match=r"tensor-subclass.*a sparse_coo tensor"):
        joint(torch.ones(4).to_sparse())


def test_autocast_is_recorded_and_another_is_refused() -> None:
    source = nn.Linear(4, 4)
    x = torch.randn(3, 4)
    with torch.autocast("cpu", torch.bfloat16):
        joint = eager(copy.deepcopy(source), (torch.zeros(2, 4),), dynamic="batch")
        found, expected = joint(x), source(x)
    assert found.dtype == torch.bfloat16
    found.sum().backward()
    expected.sum().backward()
    assert torch.equal(found, expected)
    assert torch.equal(joint.get_parameter("weight").grad, source.weight.grad)
    told = r"wrong-autocast.*under autocast\('cpu', bfloat16\) and is called without autocast"
    with pytest.raises(IngotError, match=told):
        joint(x)
    plain = eager(source, (torch.zeros(2, 4),), dynamic="batch")
    with torch.autocast("cpu", torch.bfloat16), pytest.raises(IngotError, match="wrong-autocast"):
        plain(x)


def test_the_mode_of_the_trace_is_kept() -> None:
    joint = eager(cnn(), MODELS["cnn"][1])
    assert joint.train() is joint
    with pytest.raises(IngotError, match=r"wrong-mode.*traced in training mode\n.*call eval\(\)"):
        joint.eval()


def test_memory_that_is_written_to_may_not_be_shared() -> None:
    joint = eager(writes, (some(2, 2), some(2, 2, grad=False)))
    whole = torch.zeros(2, 2, dtype=F64)
    with pytest.raises(IngotError, match=r"shared-memory.*'total' is written to.*'x'"):
        joint(whole, whole)


# compiled by Inductor


@pytest.fixture(scope="module")
def compiled(mlp_package: Path) -> train.Joint:
    return train.load(mlp_package)


def gradients(joint: Callable[..., Tensor], x: Tensor, use: Callable[[Tensor], Tensor]) -> Tensor:
    (found,) = torch.autograd.grad(use(joint(x)), x)
    return found


@pytest.mark.slow
def test_gradients_of_any_strides_are_right(compiled: train.Joint) -> None:
    source = mlp()
    weights = some(2, 5, grad=False)
    uses: list[Callable[[Tensor], Tensor]] = [
        lambda y: (y.t() * weights).sum(),
        lambda y: y.sum(),
        lambda y: y[:, 1].sum() * 2,
        lambda y: y.flip(0)[::2].sum(),
        lambda y: y.mean(0).expand(7, 2).sum(),
    ]
    for use in uses:
        x = some(5, 3)
        torch.testing.assert_close(
            gradients(compiled, x, use), gradients(source, x, use), rtol=0, atol=1e-12
        )
    y = compiled(some(5, 3))
    y.t().backward(weights)


@pytest.mark.slow
def test_inputs_of_any_strides_are_right(compiled: train.Joint) -> None:
    source, x = mlp(), some(12, 7)
    for view in (x[::3, ::3], x.t()[::2, :3], x[:5, 1:2].expand(5, 3), x[0:0, :3], x[:1, 4:]):
        torch.testing.assert_close(compiled(view), source(view), rtol=0, atol=1e-12)
    negated = torch.complex(some(5, 3).detach(), some(5, 3).detach()).conj().imag
    assert negated.is_neg()
    torch.testing.assert_close(compiled(negated), source(negated), rtol=0, atol=1e-12)
    weight = compiled.get_parameter("0.weight")
    before = weight.data
    weight.data = before.t().contiguous().t()
    torch.testing.assert_close(compiled(some(5, 3)), source(some(5, 3)), rtol=0, atol=1e-12)
    weight.data = before


def trained(model: nn.Module, x: Tensor, y: Tensor, rate: float) -> list[float]:
    """The losses of 100 steps."""
    torch.manual_seed(11)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    losses = []
    for step in range(100):
        count = 3 + step % 3
        optimizer.zero_grad()
        loss = functional.mse_loss(model(x[:count]), y[:count])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.slow
def test_an_mlp_trains_as_eager_does(compiled: train.Joint) -> None:
    joint, source = copy.deepcopy(compiled), mlp()
    x, y = some(5, 3, grad=False), some(5, 2, grad=False)
    ours, theirs = trained(joint, x, y, 0.1), trained(source, x, y, 0.1)
    assert max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) < 1e-10
    assert ours[-1] < ours[0] / 5


@pytest.mark.slow
def test_a_cnn_with_batch_norm_and_dropout_trains_as_eager_does(cnn_package: Path) -> None:
    joint, source = train.load(cnn_package), cnn()
    x, y = some(5, 1, 6, 6, grad=False), some(5, 3, grad=False)
    ours, theirs = trained(joint, x, y, 0.01), trained(source, x, y, 0.01)
    assert max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) < 1e-8
    assert min(ours[-5:]) < ours[0] / 2
    state = source.state_dict()
    for name, value in joint.state_dict().items():
        torch.testing.assert_close(value, state[name], rtol=0, atol=1e-8)
    assert state["1.num_batches_tracked"] == 100


@pytest.mark.exhaustive
def test_a_transformer_block_trains_as_eager_does(block_package: Path) -> None:
    joint = train.load(block_package)
    source = MODELS["block"][0]()
    assert isinstance(source, Block)
    for shape in ((1, 3, 8), (2, 9, 8), (5, 2, 8)):
        values = some(*shape, grad=False).float()
        assert disagreement(source, joint, (values,)) < 1e-5
    for a, b in zip(source.parameters(), joint.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-5, atol=1e-5)
    x, y = some(5, 6, 8, grad=False).float(), some(5, 6, 8).detach().float()
    ours, theirs = trained(joint, x, y, 0.05), trained(source, x, y, 0.05)
    assert max(abs(a - b) / b for a, b in zip(ours, theirs, strict=True)) < 1e-4
    assert ours[-1] < ours[0] / 2
