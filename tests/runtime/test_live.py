"""A live model is an `nn.Module` to call: values and gradients, copies, precisions, threads."""

import copy
import pickle
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import prune

import ingot
from ingot import IngotError, Model, build, read_text
from ingot.catalog import load as load_laws
from ingot.catalog.crystal import CubicCrystal
from ingot.drivers import transient_driver
from ingot.model import bind
from ingot.program import trace
from ingot.runtime import live
from ingot.types import SR2, MillerIndex, Scalar, lag
from tests import packages
from tests.packages import DECAY, DIFFUSION, ORDER, PLASTIC, RATE, draw_inputs, inputs_of
from tests.runtime.test_sums import WEIGHT, model_of, plain
from tests.runtime.test_sums import draw as draw_summed

F64 = torch.float64
TEXTS = {
    "decay": (DECAY, "decay"),
    "plastic": (PLASTIC, "update"),
    "cells": (DIFFUSION, "diffusion"),
}
SHARED = """
[Models]
  [law]
    type = ScalarLinearCombination
    from = 'x'
    to = 'y'
    weights = '2'
  []
  [left]
    type = ComposedModel
    models = 'law'
  []
  [square]
    type = ScalarMultiplication
    from = 'y y'
    to = 'z'
  []
  [right]
    type = ComposedModel
    models = 'law square'
  []
  [both]
    type = ComposedModel
    models = 'left right'
    additional_outputs = 'y'
  []
[]
"""


def made(name: str) -> Model:
    text, model = TEXTS[name]
    built = build(read_text(text), model)
    built.shapes = {"c": (5,)} if name == "cells" else {}
    return built


@pytest.fixture
def decay() -> Model:
    return made("decay")


def given(model: Model, *batch: int, seed: int = 0) -> dict[str, Tensor]:
    return draw_inputs(model.inputs, *batch, seed=seed)


def test_a_live_model_gives_what_its_package_gives(decay: Model) -> None:
    artifact = packages.decay().artifact()
    inputs = inputs_of(packages.decay(), 6, seed=3)
    with torch.no_grad():
        wanted, found = artifact(inputs), decay(inputs)
        for y, value in wanted.items():
            torch.testing.assert_close(found[y], value, rtol=1e-11, atol=1e-13)
        assert [s.converged.all() for s in decay.status] == [True]
        for call in ("jacobian", "param_jacobian"):
            ours, theirs = getattr(decay, call)(inputs), getattr(artifact, call)(inputs)
            for y, blocks in theirs.items():
                for x, block in blocks.items():
                    torch.testing.assert_close(
                        ours[y][x], block.expand_as(ours[y][x]), rtol=1e-9, atol=1e-12
                    )
    assert decay.input_spec == artifact.input_spec
    assert decay.output_spec == artifact.output_spec


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("seed", range(2))
def test_gradients_are_those_of_differences(name: str, seed: int) -> None:
    model, draw = made(name), torch.Generator().manual_seed(seed)
    inputs = {n: x.requires_grad_() for n, x in given(model, 3, seed=seed).items()}
    weights = {n: torch.randn(s.base, generator=draw, dtype=F64)
               for n, s in model.output_spec.items()}  # fmt: skip

    def loss() -> Tensor:
        found = model(inputs)
        return sum((found[n] * w).sum() for n, w in weights.items())  # pyright: ignore[reportReturnType]

    loss().backward()
    for leaf in (*inputs.values(), *model.parameters()):
        assert leaf.grad is not None
        along = torch.randn(leaf.shape, generator=draw, dtype=F64)
        step = 1e-5 * float(leaf.detach().abs().max().clamp(min=1e-3))
        ends = []
        for side in (1, -1):
            with torch.no_grad():
                leaf.add_(side * step * along)
                ends.append(float(loss()))
                leaf.sub_(side * step * along)
        slope = (ends[0] - ends[1]) / (2 * step)
        assert float((leaf.grad * along).sum()) == pytest.approx(slope, rel=2e-5, abs=1e-6)


def test_derivatives_agree_with_each_other(decay: Model) -> None:
    inputs = given(decay, 4)
    with torch.no_grad():
        blocks = decay.param_jacobian(inputs, ["p0"])
        ones = {"alpha": torch.ones(4, dtype=F64)}
        along = decay.jvp(inputs, {"p0": torch.ones((), dtype=F64)})
        torch.testing.assert_close(along["alpha"], blocks["alpha"]["p0"])
        pulled = decay.param_vjp(inputs, ones, ["coefficient.p0"])
        torch.testing.assert_close(pulled["coefficient.p0"], blocks["alpha"]["p0"].sum())
        whole = decay.vjp(inputs, ones)
        torch.testing.assert_close(whole["T"], decay.jacobian(inputs)["alpha"]["T"])


def test_an_optimiser_trains_it_and_nothing_is_traced_again(
    decay: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    traced: list[str] = []
    real = live.trace

    def counted(model: Model, shapes: Any) -> Any:
        traced.append(model.name)
        return real(model, shapes)

    monkeypatch.setattr(live, "trace", counted)
    inputs = given(decay, 5)
    with torch.no_grad():
        target = decay(inputs)["alpha"]
        decay.set_parameter("p0", 2.0)
    rate = dict(decay.named_parameters())[RATE]
    optimiser = torch.optim.Adam([rate], lr=0.3)
    for _ in range(60):
        optimiser.zero_grad()
        (1e3 * (decay(inputs)["alpha"] - target).square().sum()).backward()
        optimiser.step()
    assert rate.item() == pytest.approx(4.0, rel=5e-2)
    assert traced == ["decay"]


def test_it_is_a_part_of_a_module() -> None:
    class Around(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.law = made("decay")
            self.scale = nn.Parameter(torch.ones((), dtype=F64))

        def forward(self, inputs: dict[str, Tensor]) -> Tensor:
            return self.scale * self.law(inputs)["alpha"]

    around, inputs = Around(), given(made("decay"), 3)
    around.train()(inputs).sum().backward()
    names = dict(around.named_parameters())
    assert names[f"law.{RATE}"].grad is not None and names["scale"].grad is not None
    assert {f"law.{n}" for n, _ in made("decay").named_parameters()} < names.keys()
    with torch.no_grad():
        names[f"law.{RATE}"].fill_(3.0)
    other = Around()
    other.load_state_dict(around.state_dict())
    assert torch.equal(other(inputs), around(inputs))
    assert [n for n, _ in around.law.named_parameters(recurse=False)] == []
    assert around.law.get_submodule("update.reaction.coefficient").name == "coefficient"


def test_a_shared_part_has_one_parameter_by_any_path() -> None:
    model = build(read_text(SHARED), "both")
    names = [n for n, _ in model.named_parameters()]
    assert names == ["left.law.weights_0", "left.law.offset", "right.square.scaling"]
    for word in (
        "right.law.weight_0",
        "left.law.weights_0",
        "weight_0",
        "both.right.law.weights_0",
    ):
        model.set_parameter(word, 3.0)
        x = torch.tensor([1.0, 2.0], dtype=F64)
        found = model({"x": x})
        assert found["z"].tolist() == [9.0, 36.0]
        model.set_parameter(word, 2.0)
    model.zero_grad()
    model({"x": torch.ones((), dtype=F64)})["z"].backward()
    assert dict(model.named_parameters())["left.law.weights_0"].grad == 4.0


@pytest.mark.parametrize("value", [0.1, [0.1, 1e-9], (1e300,), 2**53 + 2, np.float64(0.7)], ids=str)
def test_a_number_is_set_to_the_last_digit(decay: Model, value: Any) -> None:
    decay.set_parameter("p0", value)
    found = dict(decay.named_parameters())[RATE].detach()
    assert torch.equal(found, torch.tensor(value, dtype=F64))


@pytest.mark.parametrize(
    "value",
    [
        torch.tensor(1 + 2j), np.ma.masked_array([1.0], mask=True), torch.ones(2).to_sparse(),
        10**400, [1.0, "a"], [[1.0], [1.0, 2.0]], None, object(), torch.ones(2, device="meta"),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_is_no_real_number_is_refused_and_nothing_changes(decay: Model, value: Any) -> None:
    before = dict(decay.named_parameters())[RATE].detach().clone()
    with pytest.raises(IngotError):
        decay.set_parameter("p0", value)
    assert torch.equal(dict(decay.named_parameters())[RATE], before)


def test_two_models_of_one_file_share_what_the_file_shares() -> None:
    factory = ingot.Factory(read_text(SHARED))
    both, right = factory.model("both"), factory.model("right")
    right.set_parameter("weight_0", 5.0)
    assert both({"x": torch.ones((), dtype=F64)})["z"].item() == 25.0


@pytest.mark.parametrize("again", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_is_a_model_of_its_own(decay: Model, again: Callable[[Model], Model]) -> None:
    inputs = given(decay, 3)
    before = decay(inputs)["alpha"]
    other = again(decay)
    assert torch.equal(other(inputs)["alpha"], before)
    other.set_parameter("p0", 2.0)
    assert not torch.equal(other(inputs)["alpha"], before)
    assert torch.equal(decay(inputs)["alpha"], before)
    assert other.body.order[1].body.declared is decay.body.order[1].body.declared
    value = dict(other.named_parameters())[RATE]
    with torch.no_grad():
        value.fill_(4.0)
    assert torch.equal(other(inputs)["alpha"], before)


def test_threads_share_it(decay: Model) -> None:
    draws = [given(decay, 2 + i, seed=i) for i in range(6)]
    wanted = [made("decay")(x)["alpha"] for x in draws]
    found: dict[int, tuple[Tensor, int]] = {}

    def run(i: int) -> None:
        for _ in range(3):
            found[i] = decay(draws[i])["alpha"], len(decay.status[0].reason)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert all(torch.equal(found[i][0], wanted[i]) for i in range(6))
    assert [found[i][1] for i in range(6)] == [2 + i for i in range(6)]


def test_single_precision_is_computed_in(decay: Model) -> None:
    inputs = given(decay, 4)
    wanted = decay(inputs)["alpha"]
    decay.to(torch.float32)
    narrow = {n: x.float() for n, x in inputs.items()}
    found = decay(narrow)["alpha"]
    assert found.dtype == torch.float32 and decay.dtype == torch.float32
    torch.testing.assert_close(found, wanted.float(), rtol=1e-4, atol=1e-5)
    found.sum().backward()
    assert all(p.grad is None or p.grad.dtype == torch.float32 for p in decay.parameters())
    with pytest.raises(IngotError) as refused:
        decay(inputs)
    assert "the model computes in float32" in str(refused.value)
    assert "model.to(torch.float64)" in str(refused.value)
    assert torch.equal(
        decay.double()(inputs)["alpha"], made("decay").float().double()(inputs)["alpha"]
    )
    with pytest.raises(IngotError, match="cannot compute in float16"):
        decay.half()(narrow)


def test_parameters_may_be_batched(decay: Model) -> None:
    inputs, rates = given(decay), torch.tensor([3.0, 3.5, 4.0], dtype=F64)
    one_by_one = []
    for rate in rates:
        decay.set_parameter("p0", rate)
        one_by_one.append(decay(inputs)["alpha"].detach())
    decay.set_parameter("p0", rates)
    found = decay(inputs)["alpha"]
    torch.testing.assert_close(found, torch.stack(one_by_one), rtol=1e-12, atol=0)
    found.sum().backward()
    rate = dict(decay.named_parameters())[RATE]
    assert rate.grad is not None and rate.grad.shape == (3,)
    assert rate.grad.unique().numel() == 3


def test_no_gradient_is_made_where_none_is_wanted(decay: Model) -> None:
    with torch.no_grad():
        assert not decay(given(decay, 2))["alpha"].requires_grad
    assert decay(given(decay, 2))["alpha"].requires_grad
    assert not decay.requires_grad_(False)(given(decay, 2))["alpha"].requires_grad


def test_another_tensor_may_stand_for_a_parameter(decay: Model) -> None:
    inputs, theta = given(decay, 3), torch.tensor(1.5, dtype=F64, requires_grad=True)
    with pytest.raises(IngotError, match="functional_call"):
        decay.set_parameter("p0", theta * 2)
    found = torch.func.functional_call(decay, {RATE: theta * 2}, (inputs,))["alpha"]
    (grad,) = torch.autograd.grad(found.sum(), theta)
    with torch.no_grad():
        slope = decay.jacobian(inputs) and made("decay")
        slope.set_parameter("p0", 3.0)
        wanted = 2 * slope.param_jacobian(inputs, ["p0"])["alpha"]["p0"].sum()
    torch.testing.assert_close(grad, wanted)
    assert dict(decay.named_parameters())[RATE].item() == 4.0


def test_arrays_and_kinds_are_taken_and_given(decay: Model) -> None:
    inputs = given(decay, 3)
    wanted = decay(inputs)["alpha"].detach()
    arrays = decay({n: x.numpy() for n, x in inputs.items()})
    assert isinstance(arrays["alpha"], np.ndarray)
    assert np.array_equal(arrays["alpha"], wanted.numpy())
    kinds = decay({n: Scalar(x) for n, x in inputs.items()})
    assert type(kinds["alpha"]) is Scalar and torch.equal(kinds["alpha"].data, wanted)


def test_kinds_tell_structural_axes() -> None:
    model = made("cells")
    model.shapes = {}
    assert model.input_spec["c~1"].axes in (None, (5,)) and model.input_spec["c~1"].history == 1
    inputs = {n: Scalar(x, sub_batch_ndim=int(n == "c~1")) for n, x in given(model, 2).items()}
    assert model(inputs)["c"].data.shape == (2, 5)


def test_wrong_calls_and_names_are_told(decay: Model) -> None:
    inputs = given(decay, 3)
    for change, text in (
        ({"T": None}, "wrong-input"), ({"spare": inputs["T"]}, "there is no input 'spare'"),
        ({"T": inputs["T"][:2]}, "batches-differ"), ({"T": inputs["T"].float()}, "wrong-dtype"),
    ):  # fmt: skip
        with pytest.raises(IngotError, match=text):
            decay({**inputs, **change})
    with pytest.raises(IngotError, match="the input 'T' is missing"):
        decay({n: x for n, x in inputs.items() if n != "T"})
    with pytest.raises(IngotError, match="did you mean 'reference_value'"):
        decay.set_parameter("reference_vale", 1.0)
    with pytest.raises(IngotError, match="kinds-differ"):
        decay.set_parameter("p0", SR2(torch.zeros(6)))
    with pytest.raises(IngotError, match="wrong-input"):
        decay.set_parameter("p0", "high")
    assert dict(decay.named_parameters())[ORDER].item() == 0.6


@cache
def crystal() -> CubicCrystal:
    index = MillerIndex(torch.tensor([1.0, 1.0, 0.0], dtype=F64))
    return CubicCrystal(Scalar(1.0), index, MillerIndex(torch.tensor([1.0, 1.0, 1.0], dtype=F64)))


def test_tensors_of_a_crystal_are_buffers() -> None:
    model = bind(load_laws()["ResolvedShear"], {"crystal_geometry": crystal()}, None)
    names = ["_cg.A_data", "_cg.M_data", "_cg.W_data"]
    assert [n for n, _ in model.named_buffers()] == names == list(model.state_dict())
    stress, turn = torch.randn(6, dtype=F64), torch.eye(3, dtype=F64)
    inputs = {"stress": stress, "orientation_matrix": turn}
    found = model(inputs)["resolved_shears"]
    torch.testing.assert_close(found, crystal().schmid.data @ stress)
    narrow = copy.deepcopy(model).float()
    assert (
        narrow({n: x.float() for n, x in inputs.items()})["resolved_shears"].dtype == torch.float32
    )
    model.set_parameter("M_data", SR2(torch.zeros(12, 6, dtype=F64), sub_batch_ndim=1))
    assert not model(inputs)["resolved_shears"].any()


def test_sums_over_points_have_the_gradients_of_torch() -> None:
    model, draw = model_of(), torch.Generator().manual_seed(1)
    inputs = {n: x.requires_grad_() for n, x in draw_summed((5,)).items()}
    by = [inputs["A"], inputs["B"], dict(model.named_parameters())[WEIGHT]]
    found, wanted = model(inputs), plain(inputs, by[-1])
    bars = {n: torch.rand(x.shape, generator=draw, dtype=F64) for n, x in wanted.items()}
    for n, x in wanted.items():
        torch.testing.assert_close(found[n], x)
    sums = [torch.stack([(of[n] * bar).sum() for n, bar in bars.items()]).sum()
            for of in (found, wanted)]  # fmt: skip
    for ours, theirs in zip(*(torch.autograd.grad(x, by) for x in sums), strict=True):
        torch.testing.assert_close(ours, theirs)


PUBLISHED = (
    "viscoplasticity/chaboche", "viscoplasticity/radial_return", "viscoplasticity/perfect",
    "rate_independent_plasticity/gurson", "viscoelasticity/zener", "km_flow/simple_mix",
    "traction_separation_law/bilinear_monotonic", "crystal_plasticity/single_crystal_coupled",
)  # fmt: skip


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", PUBLISHED)
@pytest.mark.parametrize("seed", range(2))
def test_published_models_have_the_gradients_of_tangents_and_differences(
    cases: Path, case: str, seed: int
) -> None:
    """Halfway through its transient, all parameters drawn around their values."""
    draw = torch.Generator().manual_seed(seed)
    factory = ingot.Factory(ingot.read(cases / "regression" / "solid_mechanics" / case / "model.i"))
    blocks = (b for part in factory.tree.section("Drivers") for b in part.blocks)
    name = next(b.name for b in blocks if b.type == "TransientDriver")
    driver = transient_driver(factory, name)
    model, run = driver.model, driver.compute("interpret")
    model.shapes = dict(driver.shapes)
    middle = run.steps // 2
    known = {**run.inputs, **run.outputs}
    inputs = {}
    for word, spec in model.input_spec.items():
        base, back = lag(word)
        zeros = torch.zeros((*(spec.axes or ()), *spec.base), dtype=F64)
        inputs[word] = known[base][middle - back] if base in known else zeros
    for word, spec in model.input_spec.items():
        batch = inputs[word].ndim - len(spec.base) - len(spec.axes or ())
        inputs[word] = inputs[word][(0,) * batch]
    along = {}
    with torch.no_grad():
        for n, x in model.named_parameters():
            x.mul_(1 + 0.01 * torch.rand(x.shape, generator=draw, dtype=F64))
            along[n] = x * torch.randn(x.shape, generator=draw, dtype=F64)
    found = model(inputs)
    bars = {n: torch.randn(x.shape, generator=draw, dtype=F64) for n, x in found.items()}
    bars = {n: bar / (found[n].detach().norm() + 1e-12) for n, bar in bars.items()}

    def total() -> Tensor:
        return torch.stack([(x * bars[n]).sum() for n, x in model(inputs).items()]).sum()

    by = dict(model.named_parameters())
    slopes = torch.autograd.grad(total(), list(by.values()), allow_unused=True)
    pairs = zip(by, slopes, strict=True)
    adjoint = sum(float((g * along[n]).sum()) for n, g in pairs if g is not None)
    with torch.no_grad():
        pushed = model.jvp(inputs, {n: x for n, x in along.items() if n in _read(model)})
        tangent = sum(float((x * bars[n]).sum()) for n, x in pushed.items())
        assert adjoint == pytest.approx(tangent, rel=1e-9, abs=1e-11)
        ends = []
        for side in (1e-5, -1e-5):
            for n, x in by.items():
                x.add_(side * along[n])
            ends.append(float(total()))
            for n, x in by.items():
                x.sub_(side * along[n])
    assert adjoint == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-3, abs=1e-5)


def _read(model: Model) -> set[str]:
    """The parameters that the model's lines read."""
    return {p.variable.name for p in trace(model, model.shapes).parameters}


def test_a_parameter_that_no_line_reads_has_no_gradient_and_no_tangent(decay: Model) -> None:
    decay.values["spare"] = Scalar(1.0)
    inputs = given(decay, 2)
    decay(inputs)["alpha"].sum().backward()
    assert dict(decay.named_parameters())["spare"].grad is None
    with pytest.raises(IngotError, match="there is no input 'spare'"):
        decay.jvp(inputs, {"spare": torch.ones((), dtype=F64)})


def test_parts_that_are_shared_at_every_level_are_named_in_linear_time() -> None:
    levels = 24
    text = SHARED[: SHARED.index("  [left]")]
    inner = "law"
    for i in range(levels):
        for side in ("a", "b"):
            text += f"  [{side}{i}]\n    type = ComposedModel\n    models = '{inner}'\n  []\n"
        text += f"  [top{i}]\n    type = ComposedModel\n    models = 'a{i}'\n  []\n"
        inner = f"top{i}"
    model = build(read_text(f"{text}[]"), inner)
    model.set_parameter("weight_0", 7.0)
    assert model({"x": torch.ones((), dtype=F64)})["y"].item() == 7.0


def test_gradients_of_gradients_are_refused(decay: Model) -> None:
    inputs = {n: x.requires_grad_() for n, x in given(decay, 2).items()}
    with pytest.raises(IngotError, match="'decay' passes on first derivatives only"):
        torch.autograd.grad(decay(inputs)["alpha"].sum(), inputs["T"], create_graph=True)


class Grown(nn.Module):
    """Exponential of what is learnt: positive."""

    def forward(self, x: Tensor) -> Tensor:
        """The exponential."""
        return x.exp()

    def right_inverse(self, x: Tensor) -> Tensor:
        """What gives it."""
        return x.log()


def test_a_parametrized_parameter_acts_and_its_original_learns(decay: Model) -> None:
    plain_model, inputs = made("decay"), given(decay, 4)
    decay(inputs)  # what evaluated it before must not stay
    block = decay.get_submodule("update.reaction.coefficient")
    nn.utils.parametrize.register_parametrization(block, "reference_value", Grown())
    original = block.parametrizations.reference_value.original
    for number in (4.0, 3.0):
        if number == 3.0:
            decay.set_parameter(RATE, number)
            plain_model.set_parameter(RATE, number)
        torch.testing.assert_close(original.detach(), torch.tensor(number, dtype=F64).log())
        found, wanted = decay(inputs), plain_model(inputs)
        torch.testing.assert_close(found, wanted)
        (slope,) = torch.autograd.grad(found["alpha"].sum(), original)
        held = dict(plain_model.named_parameters())[RATE]
        (expected,) = torch.autograd.grad(wanted["alpha"].sum(), held)
        torch.testing.assert_close(slope, expected * number)
        bars = {"alpha": torch.ones(4, dtype=F64)}
        asked = decay.param_vjp(inputs, bars, [RATE])
        torch.testing.assert_close(asked, plain_model.param_vjp(inputs, bars, [RATE]))
    with torch.no_grad():
        original.fill_(0.5)
    plain_model.set_parameter(RATE, float(torch.tensor(0.5, dtype=F64).exp()))
    torch.testing.assert_close(decay(inputs), plain_model(inputs))
    torch.testing.assert_close(copy.deepcopy(decay)(inputs), plain_model(inputs))
    traced = {p.variable.name: p.value.data for p in trace(decay, {}).parameters}
    torch.testing.assert_close(traced[RATE], original.exp().detach())


def test_a_parametrization_without_an_inverse_is_not_set(decay: Model) -> None:
    block = decay.get_submodule("update.reaction.coefficient")
    nn.utils.parametrize.register_parametrization(block, "reference_value", nn.Identity())
    with pytest.raises(IngotError, match=r"'reference_value' of \[coefficient\] is parametrized"):
        decay.set_parameter(RATE, 2.0)


def test_parameters_that_are_gone_are_told_by_name(decay: Model) -> None:
    inputs = given(decay, 2)
    block = decay.get_submodule("update.reaction.coefficient")
    kept, wanted = block.reference_value, decay(inputs)
    told = r"\[coefficient\] has lost its parameter 'reference_value'"
    block.reference_value = None
    with pytest.raises(IngotError, match=told):
        decay(inputs)
    del block.reference_value
    with pytest.raises(IngotError, match=told):
        decay(inputs)
    block.reference_value = kept
    torch.testing.assert_close(decay(inputs), wanted)
    prune.identity(block, "reference_value")
    with pytest.raises(IngotError, match=f"{told}, which a hook computes"):
        decay(inputs)


def test_a_part_of_a_live_model_is_not_replaced(decay: Model) -> None:
    inputs = given(decay, 2)
    wanted = decay(inputs)
    for other in (made("decay").get_submodule("update"), nn.Identity(), None):
        with pytest.raises(IngotError, match=r"\[update\] is a part of \[decay\]"):
            decay.update = other
    with pytest.raises(IngotError, match=r"\[update\] is a part of \[decay\]"):
        del decay.update
    decay.update = decay.get_submodule("update")
    torch.testing.assert_close(decay(inputs), wanted)


def test_a_model_without_numbers_is_told(decay: Model) -> None:
    inputs = given(decay, 2)
    wanted, state = decay(inputs), made("decay").state_dict()
    decay.to("meta")
    with pytest.raises(IngotError, match="is on the meta device, which holds no numbers"):
        decay(inputs)
    decay.to_empty(device="cpu").load_state_dict(state)
    torch.testing.assert_close(decay(inputs), wanted)


@pytest.mark.parametrize("name", ["values", "shapes", "providers", "training", "parametrizations"])
def test_a_block_may_have_the_name_of_something_that_models_have(name: str) -> None:
    model = build(read_text(SHARED.replace("law", name)), "left").eval()
    assert model({"x": torch.tensor(3.0, dtype=F64)})["y"].item() == 6.0


def test_a_transform_of_a_live_model_is_refused_once(decay: Model) -> None:
    points = given(decay, 3)
    for call in (
        lambda: torch.func.vmap(decay)(points),
        lambda: torch.func.grad(lambda x: decay(x)["alpha"].sum())(points),
    ):
        with pytest.raises(IngotError, match="which a live model cannot see") as caught:
            call()
        (problem,) = caught.value.problems
        assert all(f"'{name}'" in problem.message for name in points)
        assert "vjp of the model" in problem.fix
