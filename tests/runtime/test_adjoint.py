"""Packages with adjoints: `vjp`, `param_vjp` and autograd by one entry instead of dense blocks."""

import random

import msgspec
import pytest
import torch
from torch import Tensor

import ingot
from ingot.errors import IngotError, IngotWarning
from ingot.hit import read_text
from ingot.model import Model, build
from ingot.package.consistent import find_inconsistencies
from ingot.package.target import Target
from ingot.runtime import Artifact
from tests import packages
from tests.compositions import NESTED
from tests.packages import ORDER, RATE, inputs_of
from tests.systems import viscoplasticity

PARAMETERS = (RATE, ORDER)


@pytest.fixture
def trained() -> Artifact:
    """With adjoints, without pairs."""
    return packages.trained().artifact()


@pytest.fixture
def blocks() -> Artifact:
    """The same model with all pairs, without adjoints."""
    return packages.decay().artifact("kernel")


def bars_of(artifact: Artifact, *batch: int) -> dict[str, Tensor]:
    source = torch.Generator().manual_seed(len(batch))
    return {
        n: torch.randn((*batch, *v.sub_batch, *v.base), generator=source, dtype=torch.float64)
        for n, v in artifact.outputs.items()
    }


def assert_same(found: dict[str, Tensor], wanted: dict[str, Tensor]) -> None:
    assert found.keys() == wanted.keys()
    for name, x in wanted.items():
        assert found[name].shape == x.shape, name
        torch.testing.assert_close(found[name], x, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("batch", [(), (1,), (5,), (2, 3)])
def test_adjoints_are_the_products_of_blocks(
    batch: tuple[int, ...], trained: Artifact, blocks: Artifact
) -> None:
    inputs, bars = inputs_of(packages.trained(), *batch), bars_of(trained, *batch)
    assert_same(trained.vjp(inputs, bars), blocks.vjp(inputs, bars))
    assert_same(trained.param_vjp(inputs, bars), blocks.param_vjp(inputs, bars))
    some = {"total": bars["total"]}
    assert_same(trained.vjp(inputs, some), blocks.vjp(inputs, some))


def test_adjoints_of_no_points_are_empty(trained: Artifact) -> None:
    found = trained.vjp(inputs_of(packages.trained(), 0), bars_of(trained, 0))
    assert {n: x.shape for n, x in found.items()} == dict.fromkeys(trained.inputs, (0,))
    pulled = trained.param_vjp(inputs_of(packages.trained(), 0), bars_of(trained, 0))
    assert {n: float(x) for n, x in pulled.items()} == dict.fromkeys(PARAMETERS, 0.0)


@pytest.mark.parametrize("shared", [(), ("T",), ("T", "extra", "t~1")])
@pytest.mark.parametrize("batched", [(), (RATE,)])
def test_autograd_runs_the_adjoints(
    shared: tuple[str, ...], batched: tuple[str, ...], trained: Artifact, blocks: Artifact
) -> None:
    points = inputs_of(packages.trained(), 5)
    points |= {n: points[n][0] for n in shared}
    bars = bars_of(trained, 5)
    gradients = []
    for artifact in (trained, blocks):
        for name in batched:
            value = dict(artifact.named_parameters())[name].detach()
            artifact.set_parameter(name, value * torch.linspace(0.9, 1.1, 5, dtype=torch.float64))
        inputs = {n: x.clone().requires_grad_() for n, x in points.items()}
        outputs = artifact(inputs)
        sum((outputs[n] * bar).sum() for n, bar in bars.items()).backward()
        given = {n: x.grad for n, x in inputs.items()}
        gradients.append(given | {n: x.grad for n, x in artifact.named_parameters()})
    assert_same(*gradients)
    for name in shared:
        assert gradients[0][name].shape == ()


def test_values_are_those_of_forward_to_the_last_bit(trained: Artifact) -> None:
    inputs, bars = inputs_of(packages.trained(), 67), bars_of(trained, 67)
    with torch.no_grad():
        plain = trained(inputs)
    through = trained({n: x.clone().requires_grad_() for n, x in inputs.items()})
    values = [*inputs.values(), *(x.detach() for _, x in trained.named_parameters())]
    beside = trained._backend.pull(values, bars)[0]
    for name, x in plain.items():
        assert torch.equal(through[name], x)
        assert torch.equal(beside[name], x)


@pytest.mark.parametrize("has_adjoints", [True, False])
def test_a_failed_point_counts_where_it_is_read(
    has_adjoints: bool, trained: Artifact, blocks: Artifact
) -> None:
    artifact = trained if has_adjoints else blocks
    inputs, bars = inputs_of(packages.trained(), 5), bars_of(trained, 5)
    wanted = artifact.param_vjp(
        {n: x[1:] for n, x in inputs.items()}, {n: x[1:] for n, x in bars.items()}
    )
    inputs["T"][0], inputs["t"][0] = 0.0, torch.inf
    with pytest.warns(IngotWarning, match="1 of 5 points did not converge"):
        spoiled = artifact.vjp(inputs, bars)
    for x in spoiled.values():
        assert bool(x[0].isnan())
        assert not bool(x[1:].isnan().any())
    with pytest.warns(IngotWarning):
        assert all(bool(x.isnan()) for x in artifact.param_vjp(inputs, bars).values())
    silent = {n: bar.clone().index_fill_(0, torch.tensor(0), 0.0) for n, bar in bars.items()}
    with pytest.warns(IngotWarning):
        assert all(float(x[0]) == 0.0 for x in artifact.vjp(inputs, silent).values())
    with pytest.warns(IngotWarning):
        assert_same(artifact.param_vjp(inputs, silent), wanted)
    with pytest.warns(IngotWarning):
        outputs = artifact(inputs)
        failed = outputs["alpha"].isnan()
        kept = {n: torch.where(failed, 0.0, x) for n, x in outputs.items()}
        sum((kept[n] * bar).sum() for n, bar in bars.items()).backward()
    assert_same({n: x.grad for n, x in artifact.named_parameters()}, wanted)


@pytest.mark.parametrize("has_adjoints", [True, False])
def test_one_point_without_a_batch_may_fail(
    has_adjoints: bool, trained: Artifact, blocks: Artifact
) -> None:
    artifact = trained if has_adjoints else blocks
    inputs, bars = inputs_of(packages.trained()), bars_of(trained)
    inputs["T"], inputs["t"] = torch.tensor(0.0).double(), torch.tensor(torch.inf).double()
    none = {n: torch.zeros_like(bar) for n, bar in bars.items()}
    for call in (artifact.vjp, artifact.param_vjp):
        with pytest.warns(IngotWarning):
            assert all(x.shape == () and bool(x.isnan()) for x in call(inputs, bars).values())
        with pytest.warns(IngotWarning):
            assert all(x.shape == () and float(x) == 0.0 for x in call(inputs, none).values())


def test_pairs_are_still_asked_for_where_blocks_are(trained: Artifact) -> None:
    inputs = inputs_of(packages.trained(), 2)
    for call in (trained.jacobian, trained.param_jacobian, lambda x: trained.jvp(x, {})):
        with pytest.raises(IngotError, match=r"without derivative pairs(.|\n)*-d OUT:IN, or -d :"):
            call(inputs)


def test_a_missing_gradient_names_the_flag(blocks: Artifact) -> None:
    plain = packages.single().artifact()
    inputs = inputs_of(packages.single(), 2)
    for call in (plain.vjp, plain.param_vjp):
        with pytest.raises(IngotError, match="with --train for all gradients"):
            call(inputs, {})
    assert not any(x.requires_grad for _, x in plain.named_parameters())


def test_graphs_alone_have_no_adjoints() -> None:
    with pytest.raises(IngotError, match=r"no kernel is asked for(.|\n)*--backend kernel"):
        Target(backend=("inductor",), train=True)


def test_metadata_without_a_kernel_has_no_adjoints() -> None:
    meta = packages.trained().package.metadata
    assert meta.adjoints
    assert not packages.decay().package.metadata.adjoints
    told = find_inconsistencies(msgspec.structs.replace(meta, kernel=None))
    assert "there are adjoints, and no kernel that gives them" in [*told]


def test_a_solve_inside_a_residual_has_adjoints() -> None:
    model = build(read_text(NESTED), "model")
    promoted = tuple(model.named_values())[:4]
    artifact = ingot.compile(model, parameter=promoted, derivative=(":",), train=True)
    source = torch.Generator().manual_seed(0)
    inputs = {
        n: 0.1 + 0.5 * torch.rand(7, generator=source, dtype=torch.float64)
        for n in artifact.inputs
    }  # fmt: skip
    inputs["t"] = inputs["t~1"] + 0.5
    bars = bars_of(artifact, 7)
    found = artifact.vjp(inputs, bars), artifact.param_vjp(inputs, bars)
    assert all(bool(s.converged.all()) for s in artifact.status)
    wanted = artifact.jacobian(inputs), artifact.param_jacobian(inputs)
    for pulled, blocks in zip(found, wanted, strict=True):
        for x, adjoint in pulled.items():
            total = sum(blocks[y][x] * bar for y, bar in bars.items())
            own = total.sum() if adjoint.ndim == 0 else total
            torch.testing.assert_close(adjoint, own, rtol=1e-9, atol=1e-12)


def test_a_law_compiled_here_has_adjoints_too() -> None:
    name = "residual.elasticity.nu"
    model = build(read_text(viscoplasticity()), "update")
    artifact = ingot.compile(model, parameter=(name,), train=True)
    source = torch.Generator().manual_seed(0)
    inputs = {
        n: 1e-3 * torch.rand((3, *v.base), generator=source, dtype=torch.float64)
        for n, v in artifact.inputs.items()
    }
    inputs["t"] = inputs["t~1"] + 1.0
    bars = {"stress": torch.ones(3, 6, dtype=torch.float64)}
    slope = float(artifact.param_vjp(inputs, bars)[name])
    sides = []
    for shift in (1e-6, -1e-6):
        artifact.set_parameter(name, 0.3 + shift)
        with torch.no_grad():
            sides.append(float(artifact(inputs)["stress"].sum()))
    assert slope == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-5)


@pytest.mark.parametrize("seed", range(10))
def test_products_have_the_batch_of_the_call_whatever_they_come_from(seed: int) -> None:
    """Random batches of inputs, parameters and directions; a live model is the oracle."""
    source = random.Random(seed)
    one = packages.elastic() if seed % 4 == 0 else packages.decay()
    ways = [one.artifact("kernel"), one.artifact("inductor")]
    ways += [] if seed % 4 == 0 else [packages.trained().artifact()]
    live = ingot.load(one.file, name=one.package.metadata.name)
    batch = source.choice([(), (1,), (5,), (2, 5), (2, 1, 5), (0, 5)])

    def draw(x: Tensor) -> Tensor:
        """A value at random axes of the batch: fewer, or of one."""
        count = source.randint(0, len(batch))
        axes = [source.choice([n, 1]) for n in batch[len(batch) - count :]]
        return x * torch.rand((*axes, *x.shape), dtype=x.dtype).div(10).add(0.95)

    def draw_some(values: dict[str, Tensor]) -> dict[str, Tensor]:
        names = source.sample(list(values), source.randint(1, len(values)))
        return {n: draw(torch.rand_like(values[n])) for n in names}

    torch.manual_seed(seed)
    inputs = {n: draw(x) for n, x in inputs_of(one, seed=seed).items()}
    for name, x in ways[0].named_parameters():
        value = draw(x.detach())
        for way in (*ways, live):
            way.set_parameter(name, value)
    infos = {p.variable.name: p.variable for p in ways[0].metadata.parameters}
    params = list(infos)
    points = {n: torch.ones(v.base).double() for n, v in (ways[0].inputs | infos).items()}
    bars, tangents = draw_some(bars_of(ways[0])), draw_some(points)
    for way in ways:
        assert_same(way.vjp(inputs, bars), live.vjp(inputs, bars))
        assert_same(way.param_vjp(inputs, bars, params), live.param_vjp(inputs, bars, params))
        if way.metadata.derivatives:
            assert_same(way.jvp(inputs, tangents), live.jvp(inputs, tangents))
    asked = [inputs[n].requires_grad_() for n in inputs]
    wanted = _pull_by_autograd(live, inputs, asked)
    for way in ways:
        assert_same(_pull_by_autograd(way, inputs, asked), wanted)


def _pull_by_autograd(
    model: Artifact | Model, inputs: dict[str, Tensor], asked: list[Tensor]
) -> dict[str, Tensor]:
    outputs = model(inputs)
    sums = torch.stack([x.square().sum() for x in outputs.values()]).sum()
    found = torch.autograd.grad(sums, asked, materialize_grads=True)
    return dict(zip(inputs, found, strict=True))
