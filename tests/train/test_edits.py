"""What is edited on a joint or a package after tracing acts as in eager, or is refused by name."""

import copy
import operator
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook
from torch.nn.utils import parametrizations, parametrize, prune

import ingot.train as train
from ingot import regions
from ingot.errors import IngotError
from tests.train.models import eager


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.register_buffer("shift", torch.randn(4))
        self.plain = torch.randn(4)
        self.drop = nn.Dropout(0.0)
        self.scale = 2.0

    def forward(self, x: Tensor) -> Tensor:
        return self.drop(self.second(self.first(x))) * self.scale + self.shift + self.plain


X = torch.randn(3, 4)
MADE: dict[str, Callable[[nn.Module, Path], nn.Module]] = {
    "joint": lambda module, _: eager(module, X),
    "saved joint": lambda module, place: _saved(eager(module, X), place),
    "regions": lambda module, place: _package(module, place),
}


def _saved(joint: train.Joint, place: Path) -> nn.Module:
    joint.save(place)
    return train.load(place)


def _package(module: nn.Module, place: Path) -> nn.Module:
    regions.compile(module, X, nn.Linear, mode="aot", output=place, backend="eager")
    return regions.load(place)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[nn.Module, nn.Module]]:
    found = {}
    for name, make in MADE.items():
        source = Network()
        found[name] = source, make(copy.deepcopy(source), tmp_path_factory.mktemp("edits") / "p")
    return found


@pytest.fixture(params=MADE)
def pair(
    request: pytest.FixtureRequest, packages: dict[str, tuple[nn.Module, nn.Module]]
) -> tuple[Any, Any]:
    """A module, and the same traced; both may be edited."""
    return copy.deepcopy(packages[request.param])


def _set_weight(m: Any) -> None:
    m.first.weight = nn.Parameter(torch.ones(4, 4))


def _set_shift(m: Any) -> None:
    m.shift = torch.ones(4)


def _set_plain(m: Any) -> None:
    m.plain = torch.ones(4)


def _hook(m: Any) -> None:
    m.register_forward_hook(lambda module, args, result: result * 3)


def _pre_hook(m: Any) -> None:
    m.register_forward_pre_hook(lambda module, args: (args[0] + 1,))


def _load(m: Any) -> None:
    torch.manual_seed(3)
    m.load_state_dict(Network().state_dict(), assign=True)


def _register(m: Any) -> None:
    m.first.register_parameter("weight", nn.Parameter(torch.zeros(4, 4)))


ACTING = [_set_weight, _set_shift, _set_plain, _hook, _pre_hook, _load, _register]


@pytest.mark.parametrize("edit", ACTING)
def test_an_edit_of_tensors_or_hooks_of_the_whole_acts(
    pair: tuple[Any, Any], edit: Callable[[Any], None]
) -> None:
    source, made = pair
    for module in pair:
        edit(module)
    torch.testing.assert_close(made(X), source(X))
    torch.testing.assert_close(copy.deepcopy(made)(X), source(X))
    torch.testing.assert_close(copy.copy(made)(X), source(X))


def _child(m: Any) -> None:
    m.first = nn.Linear(4, 4)


def _wrap(m: Any) -> None:
    m.set_submodule("first", nn.Sequential(m.first))


def _add(m: Any) -> None:
    m.add_module("third", nn.Linear(4, 4))


def _forward(m: Any) -> None:
    m.first.forward = lambda x: x


def _remove(m: Any) -> None:
    del m.second.bias


def _no_bias(m: Any) -> None:
    m.second.bias = None


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "child": (_child, "'first'"),
    "wrapped child": (_wrap, "'first'"),
    "new child": (_add, "'third'"),
    "forward of a child": (_forward, r"'first\.forward'"),
    "deleted": (_remove, r"'second\.bias'"),
    "none": (_no_bias, r"'second\.bias'"),
    "number": (lambda m: setattr(m, "scale", 3.0), r"'scale'.* 2\.0 "),
    "other name": (lambda m: setattr(m.first, "rank", 3), r"'first\.rank'"),
    "private name": (lambda m: setattr(m, "_scale", 3), r"'_scale'"),
    "new buffer": (lambda m: m.first.register_buffer("mask", torch.ones(4)), r"'first\.mask'"),
    "new parameter": (
        lambda m: m.register_parameter("more", nn.Parameter(torch.ones(4))), "'more'",
    ),
    "parameter for buffer": (
        lambda m: setattr(m, "shift", nn.Parameter(torch.ones(4))), "'shift'",
    ),
    "number for buffer": (lambda m: setattr(m, "shift", 3.0), "'shift'"),
    "hook": (lambda m: m.first.register_forward_hook(print), "'first'"),
    "pre-hook": (lambda m: m.first.register_forward_pre_hook(print), "'first'"),
    "backward hook": (lambda m: m.first.register_full_backward_hook(print), "'first'"),
    "backward pre-hook": (lambda m: m.first.register_full_backward_pre_hook(print), "'first'"),
    "parametrized": (
        lambda m: parametrize.register_parametrization(m.first, "weight", nn.Tanh()), "'first",
    ),
    "weight norm": (lambda m: parametrizations.weight_norm(m.first), "'first"),
    "pruned": (lambda m: prune.l1_unstructured(m.first, "weight", 1), "'first"),
    "mode of a child": (lambda m: m.first.eval(), "'first'.*training mode"),
    "mode": (lambda m: m.eval(), "training mode"),
    "called": (lambda m: m.first(X), "'first'"),
}  # fmt: skip


@pytest.mark.parametrize("edit", REFUSED)
def test_an_edit_that_would_not_act_is_refused_by_name(pair: tuple[Any, Any], edit: str) -> None:
    source, made = pair
    act, named = REFUSED[edit]
    before, names = made(X), [n for n, _ in made.named_parameters()]
    with pytest.raises(IngotError, match=rf"{named}[\s\S]*fix: "):
        act(made)
    assert torch.equal(made(X), before), "the refused edit changed nothing"
    assert [n for n, _ in made.named_parameters()] == names
    torch.testing.assert_close(made(X), source(X))


def test_tensors_that_are_taken_out_of_the_tables_are_missed_by_name(pair: tuple[Any, Any]) -> None:
    del pair[1].first._parameters["weight"]
    with pytest.raises(IngotError, match=r"'first\.weight'"):
        pair[1](X)


def test_hooks_of_all_modules_that_come_or_go_are_refused(pair: tuple[Any, Any]) -> None:
    _, made = pair
    handle = register_module_forward_hook(lambda module, args, result: result * 2)
    try:
        with pytest.raises(IngotError, match="hooks of all modules"):
            made(X)
        source = Network()
        joint = eager(copy.deepcopy(source), X)
        torch.testing.assert_close(joint(X), source(X))
        torch.testing.assert_close(copy.deepcopy(joint)(X), source(X))
    finally:
        handle.remove()
    with pytest.raises(IngotError, match="hooks of all modules"):
        joint(X)
    made(X)


def test_hooks_of_a_joint_are_pickled_with_it(pair: tuple[Any, Any]) -> None:
    for module in pair:
        module.register_forward_hook(_double)
    torch.testing.assert_close(pickle.loads(pickle.dumps(pair[1]))(X), pair[0](X))


def _double(module: nn.Module, args: object, result: Tensor) -> Tensor:
    return result * 2


def test_modes_that_differ_among_modules_are_kept(tmp_path: Path) -> None:
    class Normed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.drop, self.last = nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.last(self.drop(self.norm(x)))

    source = Normed()
    source.norm.eval()
    for i, part in enumerate((source.norm, source.drop)):
        part.eval()
        for make in MADE.values():
            made = make(copy.deepcopy(source), tmp_path / f"{i}{len([*tmp_path.iterdir()])}")
            assert made.norm.training is source.norm.training
            with pytest.raises(IngotError, match=r"'norm' was traced in evaluation mode"):
                made.train()
            made.norm.eval()
            made.last.train()


class Tied(nn.Module):
    """Tied weights, tied modules, buffers between parameters, and a module that has none."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        draw = torch.Generator().manual_seed(seed)
        kinds: list[Callable[[], nn.Module]] = [
            lambda: nn.Linear(4, 4), lambda: nn.BatchNorm1d(4, affine=False), nn.Tanh,
            lambda: nn.Linear(4, 4, bias=False), lambda: nn.LayerNorm(4), lambda: nn.BatchNorm1d(4),
        ]  # fmt: skip
        many = torch.randint(len(kinds), (6,), generator=draw).tolist()
        for name, kind in zip("zyaxbc", many, strict=True):
            self.add_module(name, kinds[kind]())
        if seed % 3 == 0:
            self.q = next(self.children())
        linear = [m for m in self.children() if isinstance(m, nn.Linear)]
        for one in linear[1::2]:
            one.weight = linear[0].weight
        self.w = nn.Parameter(torch.ones(4))
        self.again = self.w

    def forward(self, x: Tensor) -> Tensor:
        for child in self.children():
            x = child(x)
        return x * self.w + self.again


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(n, marks=pytest.mark.exhaustive) for n in range(2, 20))]
)
def test_parameters_and_state_come_in_the_order_of_the_source(seed: int, tmp_path: Path) -> None:
    source = Tied(seed)
    for name, make in MADE.items():
        made = make(copy.deepcopy(source), tmp_path / name.replace(" ", "_"))
        for one in (made, copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
            assert [n for n, _ in one.named_parameters()] == [
                n for n, _ in source.named_parameters()
            ]
            assert [n for n, _ in one.named_buffers()] == [n for n, _ in source.named_buffers()]
            assert [*one.state_dict()] == [*source.state_dict()]


def _another_dtype(call: Callable[[], Any]) -> Any:
    torch.set_default_dtype(torch.float64)
    try:
        return call()
    finally:
        torch.set_default_dtype(torch.float32)


def _another_device(call: Callable[[], Any]) -> Any:
    with torch.device("meta"):
        return call()


SURROUNDINGS: dict[str, tuple[Callable[[Tensor], Any], Callable[..., Any] | None]] = {
    "ones": (lambda x: x * torch.ones(4), None),
    "unread": (lambda x: (x * 2, torch.zeros(2)), None),
    "integers": (lambda x: x.argmax(-1) / 2, _another_dtype),
    "numbers": (lambda x: torch.tensor([1.0, 2.0]), None),
    "asked": (lambda x: x * torch.get_default_dtype().itemsize, _another_dtype),
}


class Calls(nn.Module):
    """A function as a module, beside a block."""

    def __init__(self, function: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.function, self.block = function, nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Any:
        return self.block(x), self.function(x)


@pytest.mark.parametrize("made", ["saved joint", "regions"])
@pytest.mark.parametrize("name", SURROUNDINGS)
def test_other_defaults_are_refused_where_the_graph_depends_on_them(
    name: str, made: str, tmp_path: Path
) -> None:
    function, only = SURROUNDINGS[name]
    module = MADE[made](Calls(function), tmp_path / "p")
    module(X)
    for change, told in ((_another_dtype, "float64"), (_another_device, "meta")):
        if only in (None, change):
            with pytest.raises(IngotError, match=rf"other-defaults[\s\S]*{told}"):
                change(lambda: module(X))
        else:
            change(lambda: module(X))
    module(X)


@pytest.mark.parametrize("made", ["saved joint", "regions"])
def test_other_defaults_are_nothing_to_a_graph_that_makes_typed_tensors(
    made: str, tmp_path: Path
) -> None:
    def typed(x: Tensor) -> Any:
        ones = torch.ones(4, dtype=torch.float32, device="cpu")
        return torch.zeros_like(x) + ones, x * 2.5, x.new_zeros(3)

    module = MADE[made](Calls(typed), tmp_path / "p")
    expected = module(X)
    for change in (_another_dtype, _another_device):
        torch.testing.assert_close(change(lambda: module(X)), expected)


class Listed(nn.Module):
    """Lists and dictionaries of modules, one of which holds no tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)])
        self.named = nn.ModuleDict({"a": nn.Linear(4, 4)})

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return self.named["a"](x)


EDITS: dict[str, Callable[[Any], Any]] = {
    "append": lambda j: j.blocks.append(nn.Linear(4, 4)),
    "extend": lambda j: j.blocks.extend([nn.Linear(4, 4)]),
    "pop": lambda j: j.blocks.pop(0),
    "update": lambda j: j.named.update({"b": nn.Linear(4, 4)}),
    "set an item": lambda j: operator.setitem(j.blocks, 0, nn.Linear(4, 4)),
    "delete": lambda j: operator.delitem(j.blocks, 0),
    "length": lambda j: len(j.blocks),
    "each": lambda j: [*j.blocks],
    "absent": lambda j: j.blocks[1],
    "slice": lambda j: j.blocks[:2],
    "set in a table": lambda j: operator.setitem(j._modules, "named", nn.Linear(4, 4)),
    "delete from a table": lambda j: operator.delitem(j.blocks._modules, "0"),
    "clear a table": lambda j: j._modules.clear(),
    "update a table": lambda j: j._modules.update(a=nn.Linear(4, 4)),
    "hook in a table": lambda j: operator.setitem(j.blocks[0]._forward_hooks, 99, print),
}


@pytest.mark.parametrize("edit", EDITS)
def test_parts_are_reached_and_edits_of_them_refused(edit: str, listed: train.Joint) -> None:
    joint: Any = listed
    with pytest.raises(IngotError, match="traced-part"):
        EDITS[edit](joint)
    assert joint and joint.blocks
    assert joint.blocks[0].weight.shape == joint.blocks["2"].weight.shape == (4, 4)
    assert joint.named["a"] is joint.named.a
    assert not hasattr(joint, "keys")
    joint(torch.randn(2, 4))


@pytest.fixture(scope="module")
def listed() -> train.Joint:
    return eager(Listed(), torch.randn(2, 4))
