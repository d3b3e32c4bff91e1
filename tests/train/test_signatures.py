"""Several signatures in one joint: each call is run by one that fits it, as eager runs it."""

import copy
import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import ingot.train as train
from ingot.cli.main import status
from ingot.errors import IngotError
from tests.train.models import leaves, said_elsewhere

F64 = torch.float64
EAGER: Any = {"compile_forward": "eager", "compile_backward": "eager"}


class Masked(nn.Module):
    """Attention with an optional mask, a factor, and a cache of what came before."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.mixed = nn.Linear(width, 3 * width)
        self.register_buffer("calls", torch.zeros((), dtype=F64))
        self.calls: Tensor

    def forward(
        self, x: Tensor, mask: Tensor | None = None, cache: Any = None, *, scale: float = 1.0
    ) -> Any:
        self.calls += 1
        query, key, value = self.mixed(x).chunk(3, -1)
        if cache is not None:
            key, value = torch.cat([cache["key"], key], 1), torch.cat([cache["value"], value], 1)
        scores = query @ key.transpose(-2, -1) * scale
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e9)
        elif x.shape[1] > 1:
            scores = functional.softplus(scores)
        return scores.softmax(-1) @ value, {"key": key, "value": value}


def some(generator: random.Random, *shape: int, grad: bool = True) -> Tensor:
    torch.manual_seed(generator.randrange(1 << 30))
    return torch.randn(*shape, dtype=F64).requires_grad_(grad)


def attention_call(draw: random.Random) -> dict[str, Any]:
    """Arguments of a drawn call, of one of the kinds of `EXAMPLES`."""
    batch, time, past = draw.randint(1, 5), draw.randint(2, 6), draw.randint(2, 5)
    kind = draw.choice(["plain", "mask", "decode", "scale"])
    if kind == "decode":
        cache = {"key": some(draw, batch, past, 4), "value": some(draw, batch, past, 4)}
        if draw.random() < 0.5:
            cache = dict(reversed(cache.items()))
        return {"x": some(draw, batch, 1, 4), "cache": cache}
    given: dict[str, Any] = {"x": some(draw, batch, time, 4)}
    if kind == "mask":
        given["mask"] = some(draw, time, time) > -1
    if kind == "scale":
        given["scale"] = 0.5
    return given


def examples() -> list[Any]:
    draw = random.Random(1)
    cache = {"key": some(draw, 3, 4, 4), "value": some(draw, 3, 4, 4)}
    x = some(draw, 3, 5, 4)
    return [
        x, (x, some(draw, 5, 5) > 0), {"x": some(draw, 3, 1, 4), "cache": cache},
        {"scale": 0.5, "x": x},
    ]  # fmt: skip


DYNAMIC: Any = {
    "x": {0: "batch", 1: "time"}, "mask": {0: "time", 1: "time"},
    "cache['key']": {0: "batch", 1: "past"}, "cache['value']": {0: "batch", 1: "past"},
}  # fmt: skip


@pytest.fixture(scope="module")
def source() -> Masked:
    torch.manual_seed(0)
    return Masked().double()


@pytest.fixture(scope="module")
def joint(source: Masked) -> train.Joint:
    return train.joint(copy.deepcopy(source), examples=examples(), dynamic=DYNAMIC, **EAGER)


@pytest.fixture(scope="module")
def package(joint: train.Joint, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("joints") / "masked"
    joint.save(place)
    return place


def as_called(draw: random.Random, given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The same call with defaults left out or given, by position or by name."""
    defaults = {"mask": None, "cache": None, "scale": 1.0}
    spelt = given | {n: v for n, v in defaults.items() if n not in given and draw.random() < 0.3}
    args = []
    for name in ("x", "mask", "cache"):
        if name not in spelt or draw.random() < 0.3:
            break
        args.append(spelt.pop(name))
    named = list(spelt.items())
    draw.shuffle(named)
    return args, dict(named)


def differs(source: nn.Module, joint: nn.Module, draw: random.Random, given: Any) -> str:
    """What of a call differs from eager: results, gradients of all, buffers."""
    found = []
    ours = copy.deepcopy(given)
    for module, values in ((source, given), (joint, ours)):
        for p in module.parameters():
            p.grad = None
        args, named = as_called(random.Random(draw.random()), values)
        result, cache = module(*args, **named)
        (result.sin().sum() + cache["key"].square().sum()).backward()
        inside = [x for x in leaves(values) if isinstance(x, Tensor)]
        grads = [x.grad for x in (*module.parameters(), *inside)]
        found.append([result, *cache.values(), *module.buffers(), *grads])
    for a, b in zip(*found, strict=True):
        if (a is None) != (b is None) or (
            a is not None and (a.shape != b.shape or (a - b).abs().max() > 1e-12)
        ):
            return f"{given}: {a} and {b}"
    return ""


def test_drawn_calls_are_those_of_eager(source: Masked, joint: train.Joint) -> None:
    assert len(joint.codes) == 4
    draw = random.Random(7)
    for _ in range(60):
        assert not differs(source, joint, draw, attention_call(draw))


def test_a_call_is_run_by_the_first_signature_that_fits(joint: train.Joint) -> None:
    draw, known = random.Random(3), [len(c.calls.values()) for c in joint.codes]
    for x in (some(draw, 9, 7, 4), some(draw, 9, 1, 4)):
        given = {} if x.shape[1] > 1 else {"cache": {"key": x, "value": x}}
        joint(x, **given)
    new = [
        len(code.calls.values()) - before for code, before in zip(joint.codes, known, strict=True)
    ]
    assert new == [1, 0, 1, 0]


CHECK = """
import sys, torch, ingot.train
joint = ingot.train.load({place!r})
torch.manual_seed(1)
x = torch.randn(2, 5, 4, dtype=torch.float64, requires_grad=True)
result, cache = joint(x, torch.ones(5, 5, dtype=torch.bool))
result, cache = joint(x[:, :1], cache=cache)
result.square().sum().backward()
print(x.grad.sum().item(), joint.mixed.weight.grad.sum().item(), joint.calls.item())
"""


def test_all_signatures_are_in_one_package(source: Masked, package: Path) -> None:
    x = (torch.manual_seed(1), torch.randn(2, 5, 4, dtype=F64, requires_grad=True))[1]
    model = copy.deepcopy(source)
    with torch.no_grad():
        model.calls.zero_()
    _, cache = model(x, torch.ones(5, 5, dtype=torch.bool))
    model(x[:, :1], cache=cache)[0].square().sum().backward()
    said = [float(word) for word in said_elsewhere(CHECK.format(place=str(package))).split()]
    weight = model.mixed.weight.grad
    assert x.grad is not None and weight is not None
    assert said[:2] == pytest.approx([float(x.grad.sum()), float(weight.sum())], abs=1e-12)
    assert [f.name for f in package.iterdir()].count("state.pt") == 1


def test_a_call_that_fits_none_is_refused_and_all_are_told(joint: train.Joint) -> None:
    with pytest.raises(IngotError, match="no-signature") as caught:
        joint(torch.zeros(2, 3, 4), scale=2.0)
    told = str(caught.value)
    assert "fits none of the 4 signatures of 'Masked'" in told
    assert told.count("'x' is float32; it was traced as float64") == 1
    assert "'Masked' was traced without 'scale', which is 2.0" in told
    assert "'Masked' needs 'mask'" in told and "'Masked' needs 'cache'" in told
    assert "'scale' is 2.0; it was traced as 0.5" in told
    with pytest.raises(IngotError, match=r"no-signature(.|\n)*has no argument 'masks'"):
        joint(torch.zeros(2, 3, 4, dtype=F64), masks=None)


def test_inspect_lists_the_signatures(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["inspect", str(package)]) == 0
    text = capsys.readouterr().out
    assert text.count("Masked(") == 4
    assert "Masked(x float64[batch, 1, 4], cache['key'] float64[batch, past, 4]" in text
    assert "Masked(scale = 0.5, x float64[batch, time, 4])" in text
    assert status(["inspect", str(package), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["calls"]) == 4


def test_equal_graphs_are_stored_once(tmp_path: Path) -> None:
    def total(x: Any) -> Tensor:
        one, two = x.values() if isinstance(x, dict) else x
        return (one + two).sin()

    one = torch.ones(3, 2, requires_grad=True)
    nested = [((one, one),), ([one, one],), ({"a": one, "b": one},)]
    train.joint(total, examples=nested, **EAGER).save(tmp_path / "joint")
    loaded = train.load(tmp_path / "joint")
    assert sorted(f.name for f in (tmp_path / "joint").glob("graph*.py.txt")) == [
        "graph0.py.txt", "graph1.py.txt",
    ]  # fmt: skip
    for (given,) in nested:
        assert torch.equal(loaded(given), total(given))


def test_a_size_of_one_stands_beside_an_open_size() -> None:
    def turned(x: Tensor) -> Tensor:
        return x.cos() if x.shape[0] == 1 else x.squeeze(0).sin().cumsum(0)

    alone = train.joint(turned, torch.ones(3, 2), dynamic="batch", **EAGER)
    with pytest.raises(IngotError, match=r"wrong-shape"):
        alone(torch.ones(1, 2))
    both = train.joint(
        turned, examples=[torch.ones(3, 2), torch.ones(1, 2), torch.ones(0, 2)], dynamic="batch",
        **EAGER,
    )  # fmt: skip
    for size in range(6):
        x = torch.randn(size, 2)
        torch.testing.assert_close(both(x), turned(x), rtol=0, atol=1e-6)


def test_layouts_and_types_tell_signatures_apart() -> None:
    def doubled(x: Tensor) -> Tensor:
        return x * 2

    image = torch.randn(2, 3, 4, 4)
    kinds = [image, image.to(memory_format=torch.channels_last), image.double()]
    both = train.joint(doubled, examples=kinds[::2], **EAGER)
    for x in kinds:
        assert both(x).dtype == x.dtype and torch.equal(both(x), x * 2)


def test_examples_that_cannot_be_are_told() -> None:
    with pytest.raises(IngotError, match=r"wrong-argument.*one example and several"):
        train.joint(torch.sin, torch.ones(2), examples=[torch.ones(2)], **EAGER)
    dynamic: Any = {"y": {0: "n"}}
    with pytest.raises(IngotError, match=r"wrong-argument.*'y', which is no tensor"):
        train.joint(lambda x: x, examples=[torch.ones(2), torch.ones(3)], dynamic=dynamic, **EAGER)


@pytest.mark.parametrize("names", [*itertools.permutations("xyz")])
def test_named_examples_may_be_called_by_position(names: tuple[str, ...]) -> None:
    def mixed(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
        return x - 2 * y + 3 * z

    values = {"x": torch.ones(2), "y": torch.ones(2) * 2, "z": torch.ones(2) * 3}
    joint = train.joint(mixed, {name: values[name] for name in names}, **EAGER)
    assert torch.equal(joint(*values.values()), mixed(*values.values()))


def test_an_argument_that_only_has_a_name_is_not_taken_by_position() -> None:
    def scaled(x: Tensor, mask: Tensor | None = None, *, factor: Tensor) -> Tensor:
        return x * factor if mask is None else x * factor * mask

    x = torch.ones(2)
    joint = train.joint(scaled, {"x": x, "factor": x * 3}, **EAGER)
    assert torch.equal(joint(x, None, factor=x), x)
    with pytest.raises(IngotError, match=r"wrong-call.*traced without 'mask'"):
        joint(x, x * 3)
    with pytest.raises(IngotError, match=r"wrong-call.*takes 2 arguments, 3 were given"):
        joint(x, x, x)


@pytest.mark.exhaustive
def test_compiled_signatures_share_their_parameters(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(3, 2)).double()
    x = torch.ones(4, 3, dtype=F64, requires_grad=True)
    train.joint(model, examples=[x, x[0]], dynamic=["batch", None]).save(tmp_path / "joint")
    loaded = train.load(tmp_path / "joint")
    (loaded(x).sum() + loaded(x[0].detach()).sum()).backward()
    (model(x).sum() + model(x[0]).sum()).backward()
    for p, q in zip(loaded.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(p.grad, q.grad, rtol=0, atol=1e-12)
