"""Artifacts: values, derivatives, parameters, batches, threads, autograd."""

import copy
import math
import pickle
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

import ingot
from ingot import IngotError, IngotWarning
from ingot.execute.transient import Transient
from ingot.hit import read_text
from ingot.options import PackagedBackend as Backend
from ingot.runtime import Artifact
from ingot.types import Scalar
from tests import packages
from tests.packages import ORDER, RATE, Made, inputs_of

ALL = ("elastic", "decay", "plastic", "diffusion")
BACKENDS: tuple[Backend, ...] = ("kernel", "inductor")
KEY, ORDER_KEY = (name.replace(".", "/") for name in (RATE, ORDER))
"""What `state_dict()` calls the promoted parameters."""


@dataclass(frozen=True)
class Case:
    """A package and the backend it is run on."""

    one: Made
    backend: Backend

    @staticmethod
    def of(text: str) -> "Case":
        """Of `name-backend`."""
        name, _, backend = text.partition("-")
        return Case(getattr(packages, name)(), "inductor" if backend == "inductor" else "kernel")

    def artifact(self) -> Artifact:
        """The package, loaded afresh."""
        return self.one.artifact(self.backend)


def every(*names: str) -> list[str]:
    """Packages on each backend that they hold."""
    return [f"{n}-{b}" for n in names for b in BACKENDS if (n, b) != ("plastic", "inductor")]


@pytest.fixture(params=every(*ALL))
def case(request: pytest.FixtureRequest) -> Case:
    """Each package in double precision on each backend in turn."""
    return Case.of(request.param)


@pytest.fixture(params=BACKENDS)
def decay(request: pytest.FixtureRequest) -> Artifact:
    """The model with one unknown, loaded afresh."""
    return packages.decay().artifact(request.param)


def blocks_of(artifact: Artifact, inputs: dict[str, Tensor]) -> dict[tuple[str, str], Tensor]:
    """All blocks by pair."""
    found = {}
    for blocks in (artifact.jacobian(inputs), artifact.param_jacobian(inputs)):
        found |= {(y, x): b for y, row in blocks.items() for x, b in row.items()}
    return found


def close(a: Tensor, b: Tensor, tolerance: float = 1e-9) -> None:
    """Both agree, relative to the largest entry."""
    scale = max(1.0, float(b.abs().max())) if b.numel() else 1.0
    torch.testing.assert_close(a, b.expand_as(a), rtol=0, atol=tolerance * scale)


def test_values_and_every_pair_agree_with_the_interpreter(case: Case) -> None:
    one = case.one
    artifact, inputs = case.artifact(), inputs_of(one, 5)
    wanted = one.interpreted(inputs)
    for name, value in artifact(inputs).items():
        close(value, wanted[name])
    blocks = blocks_of(artifact, inputs)
    assert set(blocks) == set(one.pairs)
    for (y, x), block in blocks.items():
        close(block.expand_as(wanted[f"{y}:{x}"]), wanted[f"{y}:{x}"])


def test_plastic_points_really_flow() -> None:
    found = packages.plastic().artifact()(inputs_of(packages.plastic(), 5))
    assert (found["flow_rate"] > 1e-6).any()


def test_blocks_that_no_point_changes_come_without_batch(case: Case) -> None:
    one, artifact = case.one, case.artifact()
    batch = (1, 5)
    blocks = blocks_of(artifact, inputs_of(one, *batch))
    for b in artifact.metadata.derivatives:
        known = {**artifact.inputs, **artifact.outputs}
        known |= {p.variable.name: p.variable for p in artifact.metadata.parameters}
        y, x = known[b.output], known[b.input]
        rest = y.sub_batch + x.sub_batch + y.base + x.base
        assert blocks[b.output, b.input].shape == (() if b.batch_independent else batch) + rest


def test_weight_of_a_sum_is_a_batch_independent_block(decay: Artifact) -> None:
    block = decay.jacobian(inputs_of(packages.decay(), 4))["total"]["extra"]
    assert block.shape == () and float(block) == 3.0


def test_blocks_on_an_axis_couple_all_cells() -> None:
    one = packages.diffusion()
    block = one.artifact().jacobian(inputs_of(one, 3))["c"]["c~1"]
    assert block.shape == (3, 5, 5) and bool((block > 0).all())


@pytest.mark.parametrize("name", every(*ALL))
def test_tangents_and_cotangents_are_products_with_the_blocks(name: str) -> None:
    one = Case.of(name).one
    artifact, inputs = Case.of(name).artifact(), inputs_of(one, 5)
    along = {n: torch.randn_like(x) for n, x in inputs.items()}
    back = {n: torch.randn_like(x) for n, x in artifact(inputs).items()}
    forth = artifact.jvp(inputs, along)
    pulled = artifact.vjp(inputs, {n: x.detach() for n, x in back.items()})
    left = sum((forth[n] * back[n]).sum() for n in back)
    right = sum((pulled[n] * along[n]).sum() for n in along)
    torch.testing.assert_close(left, right, rtol=1e-9, atol=1e-9)
    step = 1e-6
    ends = [artifact({n: x + s * along[n] * scale(x) for n, x in inputs.items()})
            for s in (step, -step)]  # fmt: skip
    scaled = artifact.jvp(inputs, {n: along[n] * scale(inputs[n]) for n in along})
    for n, slope in scaled.items():
        difference = (ends[0][n] - ends[1][n]) / (2 * step)
        atol = 1e-4 * float(difference.detach().abs().max())
        torch.testing.assert_close(slope, difference, rtol=1e-4, atol=atol)


@pytest.mark.parametrize("name", ["decay", "plastic", "diffusion"])
def test_a_tangent_of_a_point_has_the_same_bits_in_any_batch(name: str) -> None:
    one = getattr(packages, name)()
    artifact, inputs = one.artifact(), inputs_of(one, 7)
    along = {n: torch.randn_like(x) for n, x in inputs.items()}
    back = {n: torch.randn_like(x) for n, x in artifact(inputs).items()}
    forth, pulled = artifact.jvp(inputs, along), artifact.vjp(inputs, back)
    for i in range(7):
        for rows in (i, slice(i, i + 1)):
            point = {n: x[rows] for n, x in inputs.items()}
            moved = artifact.jvp(point, {n: x[rows] for n, x in along.items()})
            drawn = artifact.vjp(point, {n: x[rows] for n, x in back.items()})
            assert all(torch.equal(moved[n], x[rows]) for n, x in forth.items())
            assert all(torch.equal(drawn[n], x[rows]) for n, x in pulled.items())


def scale(x: Tensor) -> float:
    """How large a change of an input is."""
    return 1e-2 * float(x.abs().max())


@pytest.mark.parametrize("parameter", [RATE, ORDER])
@pytest.mark.parametrize("batched", [False, True])
def test_parameter_slopes_agree_with_finite_differences(
    decay: Artifact, parameter: str, batched: bool
) -> None:
    inputs = inputs_of(packages.decay(), 4)
    value = dict(decay.named_parameters())[parameter].detach().clone()
    if batched:
        value = value * torch.linspace(1.0, 1.2, 4, dtype=torch.float64)
    decay.set_parameter(parameter, value)
    blocks = decay.param_jacobian(inputs)
    back = {n: torch.randn(4, dtype=torch.float64) for n in ("alpha", "total")}
    pulled = decay.param_vjp(inputs, back)[parameter]
    assert pulled.shape == value.shape
    ends = []
    for step in (1e-6, -1e-6):
        decay.set_parameter(parameter, value + step)
        ends.append({n: x.detach() for n, x in decay(inputs).items()})
    total = torch.zeros(4, dtype=torch.float64)
    for n in back:
        difference = (ends[0][n] - ends[1][n]) / 2e-6
        torch.testing.assert_close(blocks[n][parameter], difference, rtol=1e-6, atol=1e-8)
        total += back[n] * difference
    torch.testing.assert_close(pulled, total if batched else total.sum(), rtol=1e-6, atol=1e-7)


def test_batched_parameter_inside_the_solve_acts_point_by_point(decay: Artifact) -> None:
    inputs = inputs_of(packages.decay(), 3)
    rates = [3.0, 3.5, 4.0]
    decay.set_parameter(RATE, torch.tensor(rates, dtype=torch.float64))
    together = decay(inputs)["alpha"].detach()
    for i, rate in enumerate(rates):
        decay.set_parameter(RATE, rate)
        alone = decay({n: x[i] for n, x in inputs.items()})["alpha"].detach()
        torch.testing.assert_close(together[i], alone, rtol=1e-12, atol=1e-12)
    assert len(set(together.tolist())) == 3


def test_batched_parameter_gives_unbatched_inputs_its_batch(decay: Artifact) -> None:
    decay.set_parameter(RATE, np.array([3.0, 4.0]))
    assert decay(inputs_of(packages.decay()))["alpha"].shape == (2,)


def test_edit_in_place_acts_on_the_next_call(decay: Artifact) -> None:
    inputs = inputs_of(packages.decay(), 3)
    before = decay(inputs)["alpha"].detach()
    with torch.no_grad():
        dict(decay.named_parameters())[RATE].mul_(1.5)
    after = decay(inputs)["alpha"].detach()
    assert bool((after > before).all())
    again = decay.with_rules(decay.metadata)
    again.set_parameter(RATE, 6.0)
    torch.testing.assert_close(after, again(inputs)["alpha"].detach(), rtol=0, atol=0)


@pytest.mark.parametrize(
    "word", [RATE, "update.reaction.coefficient.p0", "coefficient.p0", "p0", "reference_value",
             f"decay.{RATE}"],
)  # fmt: skip
def test_a_package_answers_to_all_names_of_a_parameter(decay: Artifact, word: str) -> None:
    decay.set_parameter(word, 3.5)
    assert dict(decay.named_parameters())[RATE].item() == 3.5
    inputs = inputs_of(packages.decay(), 4)
    with torch.no_grad():
        whole = decay.param_jacobian(inputs)
        some = decay.param_jacobian(inputs, [word])
        along = {word: torch.ones((), dtype=torch.float64)}
        assert torch.equal(decay.jvp(inputs, along)["alpha"], whole["alpha"][RATE])
    assert {y: {*blocks} for y, blocks in some.items()} == {y: {word} for y in whole}
    assert all(torch.equal(some[y][word], whole[y][RATE]) for y in whole)
    ones = {"alpha": torch.ones_like(whole["alpha"][RATE])}
    pulled = decay.param_vjp(inputs, ones, ["order", word])
    assert pulled == {"order": pulled["order"], word: decay.param_vjp(inputs, ones)[RATE]}


def test_one_parameter_by_two_names_is_refused(decay: Artifact) -> None:
    one = torch.ones((), dtype=torch.float64)
    with pytest.raises(IngotError, match="'p0' and 'reference_value' are the same parameter"):
        decay.jvp(inputs_of(packages.decay(), 4), {"p0": one, "reference_value": one})


def test_names_of_a_package_take_a_prefix(decay: Artifact) -> None:
    assert [n for n, _ in decay.named_parameters("law", recurse=False)] == [
        f"law.{RATE}", f"law.{ORDER}",
    ]  # fmt: skip
    assert list(decay.named_buffers()) == []


def test_named_parameters_are_exactly_the_promoted_ones(decay: Artifact) -> None:
    assert {n: p.item() for n, p in decay.named_parameters()} == {RATE: 4.0, ORDER: 0.6}


def test_single_precision_package_gives_single_precision() -> None:
    one, full = packages.single(), packages.decay()
    inputs = inputs_of(full, 6)
    found = one.artifact()({n: x.float() for n, x in inputs.items()})
    exact = full.artifact()(inputs)
    for name, value in found.items():
        assert value.dtype == torch.float32
        close(value.double(), exact[name].detach(), 1e-5)
    assert bool((found["alpha"].double() != exact["alpha"]).any())


@pytest.mark.parametrize("batch", [(), (1,), (5,), (2, 3), (2, 1, 3)])
@pytest.mark.parametrize("name", every("decay", "plastic", "diffusion"))
def test_batch_of_any_rank_is_a_loop(name: str, batch: tuple[int, ...]) -> None:
    one = Case.of(name).one
    artifact, inputs = Case.of(name).artifact(), inputs_of(one, *batch)
    found, blocks = artifact(inputs), blocks_of(artifact, inputs)
    for index in np.ndindex(*batch):
        point = {n: x[index] for n, x in inputs.items()}
        for n, x in artifact(point).items():
            torch.testing.assert_close(found[n][index], x, rtol=1e-12, atol=1e-14)
        for pair, block in blocks_of(artifact, point).items():
            here = blocks[pair]
            here = here if here.ndim == block.ndim and batch else here[index]
            torch.testing.assert_close(here, block, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("batch", [(0,), (3, 0)])
@pytest.mark.parametrize("name", every("decay", "plastic", "diffusion"))
def test_no_points_give_no_results_of_the_right_shape(name: str, batch: tuple[int, ...]) -> None:
    one = Case.of(name).one
    artifact, some = Case.of(name).artifact(), inputs_of(one, 2)
    inputs = {n: x.new_empty((*batch, *x.shape[1:])) for n, x in some.items()}
    for n, x in artifact(some).items():
        assert artifact(inputs)[n].shape == (*batch, *x.shape[1:])
    blocks = blocks_of(artifact, inputs)
    for b in artifact.metadata.derivatives:
        like = blocks_of(artifact, some)[b.output, b.input]
        got = blocks[b.output, b.input]
        if b.batch_independent:
            torch.testing.assert_close(got, like, rtol=0, atol=0)
        else:
            assert got.shape == (*batch, *like.shape[1:])


def test_arrays_in_are_arrays_out(decay: Artifact) -> None:
    inputs = inputs_of(packages.decay(), 4)
    found = decay({n: x.numpy() for n, x in inputs.items()})
    for n, x in decay(inputs).items():
        assert isinstance(found[n], np.ndarray)
        np.testing.assert_array_equal(found[n], x.detach().numpy())


@pytest.mark.parametrize("name", ["plastic-kernel", "diffusion-inductor"])
def test_inputs_lying_in_any_way_give_the_same_numbers(name: str) -> None:
    one = Case.of(name).one
    artifact, inputs = Case.of(name).artifact(), inputs_of(one, 2, 3)
    wanted = artifact(inputs)

    def turned(x: Tensor) -> Tensor:
        order = tuple(reversed(range(x.ndim)))
        return x.permute(order).contiguous().permute(order)

    def sliced(x: Tensor) -> Tensor:
        wide = torch.full((*x.shape[:-1], 2 * x.shape[-1] + 1), torch.nan, dtype=x.dtype)
        wide[..., 1::2] = x
        return wide[..., 1::2]

    def backwards(x: Tensor) -> np.ndarray:
        return np.flip(np.ascontiguousarray(np.flip(x.numpy())))

    for lay in (turned, sliced, backwards):
        found = artifact({n: lay(x) for n, x in inputs.items()})
        for n, x in wanted.items():
            torch.testing.assert_close(torch.as_tensor(found[n]), x, rtol=0, atol=0)


@pytest.mark.parametrize("name", every("decay"))
def test_numbers_still_to_be_negated_are_read_with_their_sign(name: str) -> None:
    artifact, inputs = Case.of(name).artifact(), inputs_of(packages.decay(), 3)

    def negative(x: Tensor) -> Tensor:
        made = torch._neg_view(-x)  # lies in order, as 0-d imaginary parts do
        assert made.is_neg() and torch.equal(made, x)
        return made

    steps = transient_of(inputs)
    other = Transient(4, {n: negative(x) for n, x in steps.prescribed.items()}, {})
    with torch.no_grad():
        wanted, history = artifact(inputs), artifact.transient(steps).outputs
        found = artifact({n: negative(x) for n, x in inputs.items()})
        again = artifact.transient(other).outputs
    for n, x in wanted.items():
        assert torch.equal(found[n], x) and torch.equal(again[n], history[n])


@pytest.mark.parametrize("name", ["plastic-kernel", "diffusion-inductor"])
def test_expanded_inputs_give_the_same_numbers(name: str) -> None:
    one = Case.of(name).one
    artifact, point = Case.of(name).artifact(), inputs_of(one)
    wide = artifact({n: x.expand(4, *x.shape) for n, x in point.items()})
    frozen = artifact({n: np.broadcast_to(x.numpy(), (4, *x.shape)) for n, x in point.items()})
    for n, x in artifact(point).items():
        torch.testing.assert_close(wide[n], x.expand_as(wide[n]), rtol=0, atol=0)
        np.testing.assert_array_equal(frozen[n], wide[n].numpy())


def test_inputs_are_not_written(decay: Artifact) -> None:
    inputs = inputs_of(packages.decay(), 4)
    kept = {n: x.clone() for n, x in inputs.items()}
    decay(inputs)
    decay.jacobian(inputs)
    assert all(torch.equal(x, kept[n]) for n, x in inputs.items())


@pytest.mark.parametrize("name", ["plastic-kernel", "decay-inductor"])
def test_threads_get_the_same_bits_as_one_after_another(name: str) -> None:
    one, artifact = Case.of(name).one, Case.of(name).artifact()
    work = [inputs_of(one, 3 + i % 5, seed=i) for i in range(400)]

    def call(inputs: dict[str, Tensor]) -> tuple[dict[str, Tensor], Tensor]:
        return artifact(inputs), artifact.status[0].iterations.clone()

    serial = [call(x) for x in work]
    with ThreadPoolExecutor(8) as pool:
        parallel = list(pool.map(call, work))
    for (a, steps), (b, others) in zip(serial, parallel, strict=True):
        assert torch.equal(steps, others)
        assert all(torch.equal(a[n], b[n]) for n in a)


def test_autograd_passes_through_inputs_and_parameters(decay: Artifact) -> None:
    inputs = {n: x.requires_grad_() for n, x in inputs_of(packages.decay(), 3).items()}
    names = list(inputs)
    rate = dict(decay.named_parameters())[RATE]
    order = dict(decay.named_parameters())[ORDER]

    def call(*values: Tensor) -> tuple[Tensor, ...]:
        return tuple(decay(dict(zip(names, values, strict=False))).values())

    arguments = (*inputs.values(), rate, order)
    assert torch.autograd.gradcheck(call, arguments, eps=1e-5, atol=1e-6, rtol=1e-4)


def test_parameters_alone_receive_gradients(decay: Artifact) -> None:
    inputs = inputs_of(packages.decay(), 3)
    decay(inputs)["total"].sum().backward()
    grad = dict(decay.named_parameters())[RATE].grad
    wanted = decay.param_vjp(inputs, {"total": torch.ones(3, dtype=torch.float64)})[RATE]
    assert grad is not None
    torch.testing.assert_close(grad, wanted)


def test_gradient_without_a_compiled_pair_names_the_flag() -> None:
    one = packages.single()
    artifact, inputs = one.artifact(), inputs_of(one, 2)
    inputs["T"].requires_grad_()
    with pytest.raises(
        IngotError, match=r"-d alpha:T, or with --train, or call under torch.no_grad"
    ):
        artifact(inputs)
    with torch.no_grad():
        assert artifact(inputs)["alpha"].shape == (2,)


@pytest.mark.parametrize("call", ["jacobian", "param_jacobian", "jvp", "vjp", "param_vjp"])
def test_derivatives_that_were_not_compiled_name_the_flag(call: str) -> None:
    one = packages.single()
    inputs = inputs_of(one, 2)
    more = ({},) if call.endswith(("jvp", "vjp")) else ()
    with pytest.raises(IngotError, match=r"no-derivatives.*\n.*compile with -d OUT:IN"):
        getattr(one.artifact(), call)(inputs, *more)


def test_pair_that_was_not_compiled_is_named() -> None:
    one = packages.elastic()
    artifact, inputs = one.artifact(), inputs_of(one, 5)
    artifact._derivatives.pairs.remove(("stress", "nu"))
    with pytest.raises(IngotError, match=r"stress:nu was not compiled\n.*-d stress:nu"):
        artifact.jvp(inputs, {"nu": torch.ones((), dtype=torch.float64)})


def test_results_are_those_whose_pairs_were_all_compiled(decay: Artifact) -> None:
    inputs = inputs_of(packages.decay(), 3)
    ones = torch.ones(3, dtype=torch.float64)
    decay._derivatives.pairs.remove(("total", "T"))
    assert set(decay.jvp(inputs, {"T": ones})) == {"alpha"}
    assert set(decay.jvp(inputs, {"t": ones})) == {"alpha", "total"}
    assert set(decay.vjp(inputs, {"alpha": ones, "total": ones})) == set(inputs) - {"T"}
    inputs["T"].requires_grad_()
    with pytest.raises(IngotError, match=r"total:T was not compiled\n.*-d total:T"):
        decay(inputs)["total"].sum().backward()


def test_status_tells_each_point(decay: Artifact) -> None:
    inputs = inputs_of(packages.decay(), 3)
    inputs["T"][1] = torch.nan
    found = decay(inputs)["alpha"]
    (status,) = decay.status
    assert status.converged.tolist() == [True, False, True]
    assert torch.isnan(found).tolist() == [False, True, False]


def test_stored_batch_must_fit_the_call() -> None:
    one = packages.elastic()
    with pytest.raises(IngotError, match=r"batches-differ.*\(3,\) and \(5,\) do not broadcast"):
        one.artifact()(inputs_of(one, 3))


# what it stays


class Around(nn.Module):
    """A module that holds an artifact."""

    def __init__(self, inner: Artifact) -> None:
        super().__init__()
        self.inner = inner


@pytest.mark.parametrize("around", [False, True])
@pytest.mark.parametrize(
    ("convert", "told"),
    [
        (lambda m: m.to(torch.float32), "computes in float64, not in float32\n  fix: compile with"),
        (lambda m: m.float(), r"not in float32\n  fix: compile with --dtype float32"),
        (lambda m: m.half(), r"not in float16\n  fix: convert its results"),
        (lambda m: m.bfloat16(), "not in bfloat16"),
        (lambda m: m.type(torch.complex128), "not in complex128"),
        (lambda m: m.to("meta"), r"runs on cpu, not on meta\n  fix: move its results"),
        (lambda m: m.to_empty(device="meta"), "not on meta"),
        (lambda m: m._apply(torch.zeros_like), "values of promoted parameters would be lost"),
    ],
)
@pytest.mark.parametrize("name", ["decay", "plastic"])
def test_other_precisions_and_devices_are_refused_and_nothing_changes(
    name: str, convert: Callable[[nn.Module], nn.Module], told: str, around: bool
) -> None:
    one = getattr(packages, name)()
    artifact, inputs = one.artifact(), inputs_of(one, 3)
    wanted = artifact(inputs)
    if name == "plastic" and "values" in told:
        told = "would be lost"
    with pytest.raises(IngotError, match=told) as refused:
        convert(Around(artifact) if around else artifact)
    assert "--device" not in str(refused.value)
    for n, x in artifact(inputs).items():
        torch.testing.assert_close(x, wanted[n], rtol=0, atol=0)


def test_conversions_to_what_it_is_change_nothing(decay: Artifact) -> None:
    before = dict(decay.named_parameters())
    same = decay.to(torch.float64).to("cpu").double().cpu().share_memory().eval().train()
    assert same is decay
    assert all(p is before[n] for n, p in decay.named_parameters())


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (torch.tensor(4.0), "is float32"),
        (torch.tensor(4.0, device="meta", dtype=torch.float64), "is on meta"),
        (torch.ones((), dtype=torch.float64).to_sparse(), "is a sparse tensor"),
        (torch.tensor(4.0 + 1j, dtype=torch.complex128), "is complex128"),
    ],
)
def test_parameters_are_checked_at_every_call(decay: Artifact, value: Tensor, told: str) -> None:
    inputs = inputs_of(packages.decay(), 3)
    wanted = decay(inputs)["alpha"].detach()
    kept = getattr(decay, KEY)
    ways: list[Callable[[], None]] = [
        lambda: setattr(decay, KEY, nn.Parameter(value, requires_grad=False)),
        lambda: (
            decay.load_state_dict(
                {KEY: value, ORDER_KEY: getattr(decay, ORDER_KEY).data}, assign=True
            )
            and None
        ),
    ]
    if value.dtype == torch.float32:  # others torch refuses
        ways.append(lambda: setattr(kept, "data", value))
    for change in ways:
        with torch.no_grad():
            change()
            for call in (decay, decay.jacobian, decay.param_jacobian):
                with pytest.raises(IngotError, match=told):
                    call(inputs)
        kept.data = torch.tensor(4.0, dtype=torch.float64)
        setattr(decay, KEY, kept)
    assert torch.equal(decay(inputs)["alpha"].detach(), wanted)


def test_a_parameter_that_is_gone_is_told(decay: Artifact) -> None:
    inputs = inputs_of(packages.decay(), 3)
    setattr(decay, KEY, None)
    with pytest.raises(IngotError, match=f"'{RATE}' is a NoneType"):
        decay(inputs)
    delattr(decay, KEY)
    with pytest.raises(IngotError, match=f"'{RATE}' is a NoneType"):
        decay(inputs)


def test_a_parameter_set_anew_keeps_its_place(decay: Artifact) -> None:
    inputs = inputs_of(packages.decay(), 3)
    wanted = decay(inputs)["alpha"]
    kept = getattr(decay, KEY)
    delattr(decay, KEY)
    setattr(decay, KEY, kept)
    assert torch.equal(decay(inputs)["alpha"], wanted)


class Doubled(nn.Module):
    """Twice what is learnt."""

    def forward(self, x: Tensor) -> Tensor:
        """Twice it."""
        return 2 * x


def test_a_parametrised_parameter_acts_and_learns(decay: Artifact) -> None:
    inputs = inputs_of(packages.decay(), 3)
    other = decay.with_rules(decay.metadata)
    other.set_parameter(RATE, 3.0)
    decay.set_parameter(RATE, 1.5)
    nn.utils.parametrize.register_parametrization(decay, KEY, Doubled())
    found = decay(inputs)["alpha"]
    torch.testing.assert_close(found, other(inputs)["alpha"], rtol=0, atol=0)
    found.sum().backward()
    (slope,) = torch.autograd.grad(other(inputs)["alpha"].sum(), getattr(other, KEY))
    torch.testing.assert_close(decay.parametrizations[KEY].original.grad, 2 * slope)


def test_a_copy_has_parameters_of_its_own_and_pickling_is_refused(decay: Artifact) -> None:
    inputs = inputs_of(packages.decay(), 3)
    decay.set_parameter(RATE, torch.tensor([3.0, 4.0, 5.0], dtype=torch.float64))
    wanted = decay(inputs)["alpha"].detach()
    other = copy.deepcopy(decay)
    decay.set_parameter(RATE, 1.0)
    assert torch.equal(other(inputs)["alpha"].detach(), wanted)
    with pytest.raises(IngotError, match=r"unsaveable.*\n.*ingot.load it there"):
        pickle.dumps(decay)


@pytest.mark.parametrize("name", every("decay"))
def test_results_do_not_depend_on_torch_s_default_device(name: str) -> None:
    one = Case.of(name).one
    inputs = inputs_of(one, 3)
    wanted, slopes = Case.of(name).artifact()(inputs), Case.of(name).artifact().jacobian(inputs)
    steps = transient_of(inputs)
    with torch.no_grad():
        history = Case.of(name).artifact().transient(steps).outputs
    with torch.device("meta"):
        artifact = Case.of(name).artifact()
        found, blocks = artifact(inputs), artifact.jacobian(inputs)
        with torch.no_grad():
            again = artifact.transient(steps).outputs
    for n, x in wanted.items():
        assert torch.equal(found[n], x) and torch.equal(again[n], history[n])
        assert all(torch.equal(blocks[n][m], y) for m, y in slopes[n].items())


def test_a_value_that_the_precision_cannot_hold_is_refused() -> None:
    artifact = packages.single().artifact()
    for value in (torch.tensor(0.1, dtype=torch.float64), np.float64(0.1) * np.ones(2), 1j):
        with pytest.raises(IngotError):
            artifact.set_parameter(RATE, value)
    for value in (
        0.1, 3, torch.tensor(0.5, dtype=torch.float64), np.array([1, 2]), [3.0, 4.0],
        np.float32(0.1), np.int8(3), Scalar(torch.tensor(2.0)),
    ):  # fmt: skip
        artifact.set_parameter(RATE, value)
    grad = torch.tensor(4.0, requires_grad=True)
    with pytest.raises(IngotError, match=r"no-gradient.*a copy loses"):
        artifact.set_parameter(RATE, grad)


def test_a_parameter_stays_in_its_range() -> None:
    artifact = packages.steel().artifact()
    for name, lawful, wrong in (
        ("E", (1e-9, 3, [1.0, 2.0], np.array(5.0)), (0, -1.0, math.inf, [1.0, -0.5], np.zeros(2))),
        ("nu", (-0.999, 0, torch.tensor(0.49).double()), (0.5, -1, math.nan, np.array([0.1, 2.0]))),
    ):
        for value in lawful:
            artifact.set_parameter(name, value)
        before = dict(artifact.named_parameters())[name].clone()
        for value in wrong:
            with pytest.raises(IngotError, match=f"'{name}' should be a finite number above"):
                artifact.set_parameter(name, value)
            state = {name: torch.as_tensor(value, dtype=torch.float64)}
            with pytest.raises(IngotError, match=f"'{name}' should be a finite number above"):
                artifact.load_state_dict(state, strict=False)
        assert torch.equal(dict(artifact.named_parameters())[name], before)


@pytest.mark.parametrize("word", [None, 3, ("E",), b"E"], ids=str)
def test_what_is_no_name_is_told(decay: Artifact, word: Any) -> None:
    inputs = inputs_of(packages.decay(), 2)
    bars = {n: torch.ones(2).double() for n in decay.outputs}
    model = ingot.build(read_text(packages.steel().file.read_text()), "steel")
    for call in (
        lambda: decay.set_parameter(word, 1.0),
        lambda: model.set_parameter(word, 1.0),
        lambda: decay.param_jacobian(inputs, [word]),
        lambda: decay.param_vjp(inputs, bars, [word]),
    ):
        with pytest.raises(IngotError, match="a parameter is named by a string, not by"):
            call()
    for params in (3, RATE, 1.5):
        with pytest.raises(IngotError, match="not a list of names"):
            decay.param_jacobian(inputs, params)  # type: ignore[arg-type]


def test_a_value_out_of_range_is_not_compiled() -> None:
    model = ingot.build(read_text(packages.steel().file.read_text()), "steel")
    dict(model.named_parameters())["nu"].data.fill_(0.7)
    with pytest.raises(IngotError, match=r"'nu' should be a finite number .* but is 0\.7"):
        ingot.compile(model, parameter=("nu",))


# gradients that are there, or told


def transient_of(inputs: dict[str, Tensor], steps: int = 4) -> Transient:
    """Steps of time with all inputs as they are."""
    given = {n: x.expand(steps, *x.shape).clone() for n, x in inputs.items() if "~" not in n}
    given["t"] = torch.linspace(0, 1, steps, dtype=torch.float64)[:, None].expand(steps, 3).clone()
    return Transient(steps, given, {})


def test_a_transient_that_would_lose_gradients_is_refused(decay: Artifact) -> None:
    steps = transient_of(inputs_of(packages.decay(), 3))
    with pytest.raises(IngotError, match=f"'{RATE}' requires a gradient, which a transient"):
        decay.transient(steps)
    decay.requires_grad_(False)
    plain = decay.transient(steps).outputs
    steps.prescribed["T"].requires_grad_()
    with pytest.raises(IngotError, match="'T' requires a gradient, which a transient"):
        decay.arrange(steps)
    with torch.no_grad():
        found = decay.transient(steps).outputs
    assert all(torch.equal(found[n], x) for n, x in plain.items())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"TT": torch.zeros(4, 3)}, "unknown-input.*no input 'TT'"),
        ({"T": torch.zeros(3, 3)}, r"'T' has shape \(3, 3\), the transient has 4 steps"),
        ({"T": torch.zeros(())}, "the transient has 4 steps"),
        ({"T": torch.zeros(4, 3, device="meta")}, "is on meta"),
        ({"T": torch.zeros(4, 3, dtype=torch.int64)}, "is int64"),
        ({"T": torch.zeros(4, 2)}, "batches-differ"),
        ({"T": np.zeros((4, 3))}, "'T' is an array"),
        ({"T": None}, "missing-input.*nothing gives 'T', which the transient reads"),
        ({"t": None, "T": None}, "(?s)nothing gives 'T'.*nothing gives 't'"),
    ],
)
def test_a_transient_that_does_not_fit_is_refused(
    decay: Artifact, change: dict[str, Tensor | None], told: str
) -> None:
    given = {**transient_of(inputs_of(packages.decay(), 3)).prescribed, **change}
    given = {n: x for n, x in given.items() if x is not None}
    with torch.no_grad(), pytest.raises(IngotError, match=told):
        decay.transient(Transient(4, given, {}))


@pytest.mark.parametrize("steps", [0, -1, None, 2.0, True, "4"], ids=str)
def test_a_transient_without_a_number_of_steps_is_refused(decay: Artifact, steps: Any) -> None:
    given = transient_of(inputs_of(packages.decay(), 3)).prescribed
    with torch.no_grad(), pytest.raises(IngotError, match="there is one at least"):
        decay.transient(Transient(steps, given, {}))


def test_backward_through_a_call_without_a_batch_is_that_of_one_point(decay: Artifact) -> None:
    inputs = {n: x.requires_grad_() for n, x in inputs_of(packages.decay()).items()}
    many = {n: x.detach()[None].requires_grad_() for n, x in inputs.items()}
    own = torch.autograd.grad(decay(inputs)["total"], [*inputs.values(), getattr(decay, KEY)])
    wanted = torch.autograd.grad(decay(many)["total"].sum(), [*many.values(), getattr(decay, KEY)])
    for a, b in zip(own, wanted, strict=True):
        assert a.shape == () and torch.equal(a, b.reshape(()))
    ones = {"total": torch.ones((), dtype=torch.float64)}
    plain = {n: x.detach() for n, x in inputs.items()}
    assert decay.vjp(plain, ones)["T"].shape == () == decay.jvp(plain, plain)["alpha"].shape


def test_an_input_without_any_pair_is_told_at_the_call(decay: Artifact) -> None:
    inputs = inputs_of(packages.decay(), 3)
    decay._derivatives.pairs[:] = [(y, x) for y, x in decay._derivatives.pairs if x != "T"]
    inputs["T"].requires_grad_()
    with pytest.raises(IngotError, match=r"'T' requires a gradient, and no pair OUT:T"):
        decay(inputs)


def test_second_derivatives_and_transforms_are_refused_by_name(decay: Artifact) -> None:
    inputs = inputs_of(packages.decay(), 3)
    heat = inputs["T"].clone().requires_grad_()
    decay(inputs)  # what lies like this takes the shorter way
    with pytest.raises(IngotError, match=r"double-backward.*first derivatives only"):
        torch.autograd.grad(decay({**inputs, "T": heat})["alpha"].sum(), heat, create_graph=True)
    back = {"alpha": torch.ones(3, dtype=torch.float64)}
    for call in (
        lambda: decay.jacobian({**inputs, "T": heat}),
        lambda: decay.jvp(inputs, {"T": heat}),
        lambda: decay.vjp(inputs, {"alpha": heat}),
        lambda: decay.param_vjp({**inputs, "T": heat}, back),
    ):
        with pytest.raises(IngotError, match="requires a gradient, which a derivative"):
            call()

    def alpha(heat: Tensor) -> Tensor:
        return decay({**inputs, "T": heat})["alpha"].sum()

    ones = torch.ones(3, dtype=torch.float64)
    for transform in (
        lambda: torch.func.grad(alpha)(ones),
        lambda: torch.func.vmap(alpha)(torch.ones(2, 3, dtype=torch.float64)),
        lambda: torch.func.jvp(alpha, (ones,), (ones,)),
        lambda: torch.func.jacrev(alpha)(ones),
        lambda: torch.func.jacfwd(alpha)(ones),
    ):
        with pytest.raises(IngotError, match=r"'T' is given by a transform of torch.func"):
            transform()
    for grad in (True, False):
        with forward_ad.dual_level(), torch.set_grad_enabled(grad):
            dual = forward_ad.make_dual(inputs["T"], ones)
            with pytest.raises(IngotError, match=r"tangent.*\n.*call jacobian, jvp"):
                decay({**inputs, "T": dual})


# arrays of any kind


@pytest.mark.parametrize(
    "kind",
    [
        lambda x: x.astype(">f8"), lambda x: _frozen(x.copy()), lambda x: np.asfortranarray(x),
        lambda x: np.flip(x[::-1]) if x.ndim == 1 else x, lambda x: np.broadcast_to(x, x.shape),
        lambda x: _frozen(x.astype(">f8")),
    ],
)  # fmt: skip
def test_arrays_of_any_byte_order_and_right_give_the_same_numbers(
    decay: Artifact, kind: Callable[[np.ndarray], np.ndarray]
) -> None:
    inputs = {n: x.numpy() for n, x in inputs_of(packages.decay(), 3).items()}
    found = decay({n: kind(x) for n, x in inputs.items()})
    for n, x in decay(inputs).items():
        np.testing.assert_array_equal(found[n], x)
    decay.set_parameter(RATE, kind(np.array([3.0, 4.0, 5.0])))
    assert dict(decay.named_parameters())[RATE].tolist() == [3.0, 4.0, 5.0]


def _frozen(x: np.ndarray) -> np.ndarray:
    x.flags.writeable = False
    return x


def test_masked_arrays_and_subclasses_are_refused_with_the_remedy(decay: Artifact) -> None:
    inputs = {n: x.numpy() for n, x in inputs_of(packages.decay(), 3).items()}
    decay(inputs)
    masked = np.ma.masked_array(inputs["T"], [True, False, False])
    with pytest.raises(IngotError, match=r"'T' is a masked array.*\n.*x.filled\(number\)"):
        decay({**inputs, "T": masked})
    with pytest.raises(IngotError, match="is a masked array"):
        decay.set_parameter(RATE, masked)
    other = torch.from_numpy(inputs["T"]).as_subclass(type("Other", (Tensor,), {}))
    with pytest.raises(IngotError, match=r"'T' is a Other.*\n.*as_subclass"):
        decay({n: torch.from_numpy(x) for n, x in inputs.items()} | {"T": other})


def test_memory_that_a_kernel_does_not_get_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = packages.decay().artifact()
    monkeypatch.setattr(artifact._backend._forward.run, "function", lambda *_: -7)
    with torch.no_grad(), pytest.raises(MemoryError, match="no memory for this call"):
        artifact(inputs_of(packages.decay(), 3))


@pytest.mark.parametrize("backend", BACKENDS)
def test_points_that_fail_are_warned_of_at_every_kind_of_call(backend: Backend) -> None:
    made = packages.decay()
    whole = made.artifact(backend)
    hurried = [msgspec.structs.replace(s, max_its=1) for s in whole.metadata.solvers]
    artifact = whole.with_rules(msgspec.structs.replace(whole.metadata, solvers=tuple(hurried)))
    plain = copy.deepcopy(artifact).requires_grad_(False)
    given = inputs_of(made, 3)
    arrays = {n: x.numpy() for n, x in given.items()}
    for call in (
        lambda: plain(given), lambda: plain(given), lambda: plain(given),  # the last two laid out
        lambda: artifact(given), lambda: artifact(arrays), lambda: artifact.jacobian(given),
    ):  # fmt: skip
        with pytest.warns(IngotWarning, match="3 of 3 points did not converge"):
            call()
    with warnings.catch_warnings():
        warnings.simplefilter("error", IngotWarning)
        for _ in range(3):
            whole(given)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("package", [packages.decay, packages.diffusion])
def test_a_point_that_fails_has_nan_slopes_and_spoils_no_other(
    package: Callable[[], packages.Made], backend: Backend
) -> None:
    made = package()
    artifact = made.artifact(backend)
    good = inputs_of(made, 3)
    shapes = {v.name: len(v.sub_batch) + len(v.base) for v in artifact.metadata.inputs}
    bad = {n: x.clone() if x.ndim > shapes[n] else x for n, x in good.items()}
    spoiled = next(n for n, x in bad.items() if x.ndim > shapes[n])
    bad[spoiled][1] = torch.nan
    free = {(b.output, b.input) for b in artifact.metadata.derivatives if b.batch_independent}
    up = {n: torch.ones_like(x) for n, x in artifact(good).items()}

    def slopes(given: dict[str, Tensor]) -> dict[str, Tensor]:
        found = {f"{y}:{x}": block for y, row in artifact.jacobian(given).items()
                 for x, block in row.items() if (y, x) not in free}  # fmt: skip
        for x in given:
            jvp = artifact.jvp(given, {x: torch.ones_like(good[x])})
            found |= {f"{y} along {x}": value for y, value in jvp.items()}
        for y, one in up.items():
            vjp = artifact.vjp(given, {y: one})
            found |= {f"{y} back to {x}": value for x, value in vjp.items()}
        return found

    with torch.no_grad():
        expected = slopes(good)
        with pytest.warns(IngotWarning, match="1 of 3 points did not converge"):
            found = slopes(bad)
            values = artifact(bad)
    assert all(bool(x[1].isnan().all()) for x in values.values())
    for name, block in expected.items():
        if block.shape[:1] == (3,):
            assert bool(found[name][1].isnan().all()), name
        for i in (0, 2):
            one = block[i] if block.shape[:1] == (3,) else block
            torch.testing.assert_close(found[name][i], one, rtol=0, atol=0)
    for (y, x), block in ((pair, artifact.jacobian(good)[pair[0]][pair[1]]) for pair in free):
        with pytest.warns(IngotWarning):
            torch.testing.assert_close(artifact.jacobian(bad)[y][x], block)


def test_a_state_fits_only_where_the_same_parameters_are_promoted(decay: Artifact) -> None:
    assert set(decay.state_dict()) == {KEY, ORDER_KEY}
    other = packages.single().artifact()
    with pytest.raises(RuntimeError, match="Unexpected key"):
        other.load_state_dict(decay.state_dict())


def test_a_value_in_the_place_of_inputs_is_told_after_a_good_call_too() -> None:
    plain = packages.decay().artifact("kernel").requires_grad_(False)
    for _ in range(2):
        plain(inputs_of(packages.decay(), 3))
    for wrong in (np.linspace(0, 1, 3), torch.ones(3), [1.0], 2.0, None, "T"):
        with pytest.raises(IngotError, match="not values by name"):
            plain(wrong)
