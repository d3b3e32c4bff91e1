"""Published models as packages: on each backend they say what the interpreter says.

The small cases are those that the peer tests its own compiler with; the seven run through stubs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from torch import Tensor

from ingot.drivers import build_driver, transient_driver
from ingot.drivers.unit_test import ModelUnitTest
from ingot.drivers.values import Shapes
from ingot.execute.interpret import Interpreter
from ingot.hit import read
from ingot.model import Factory, Model
from ingot.options import PackagedBackend as Backend
from ingot.package import Package, compile_model
from ingot.package.metadata import Metadata, VariableInfo
from ingot.package.target import Target
from ingot.program import prepared, with_jacobian
from ingot.runtime import Artifact
from ingot.runtime import load as load_package
from tests.drivers.test_seven import SEVEN
from tests.packages import Made, made

Arrays = dict[str, Tensor]
Range = tuple[float, float]
TOLERANCE = 1e-9
BATCHES = ((1,), (5,), (2, 3))


@dataclass(frozen=True)
class Case:
    """What is promoted, and the ranges that inputs are drawn from, at which Newton converges."""

    promoted: tuple[str, ...] = ()
    ranges: Mapping[str, Range] = field(default_factory=dict)


CLOCK: dict[str, Range] = {"t": (0.5, 1.0), "t~1": (0.0, 0.1)}
RATE = ("residual_model.rate.reference_stress", "residual_model.rate.exponent")
FLOW = tuple(
    f"implicit_rate.{name}"
    for name in ("yield_surface.yield_stress", "flow_rate.exponent", "elasticity.E")
)
CASES = {
    "forward_promoted": Case(("E", "nu"), {"strain": (-0.01, 0.01)}),
    "forward_provider_param": Case(("k.value", "rate.offset")),
    "derivative_prune": Case(("elasticity.E", "elasticity.nu"), CLOCK),
    "implicit_simple": Case((), CLOCK),
    "implicit_sub_batch": Case((), CLOCK),
    "implicit_cross_group_sub_batch": Case(
        ("residual.sum_per.weights_1", "residual.r_glob.weights_0")
    ),
    "implicit_substep_nl": Case(RATE, {**CLOCK, "x~1": (0.1, 0.4)}),
    "implicit_substep_ramp": Case(
        ("residual_model.scaled.scaling", *RATE),
        {**CLOCK, "x~1": (0.1, 0.4), "driving_force": (0.5, 1.0)},
    ),
    "krylov_gmres_deriv": Case(
        FLOW, {**CLOCK, "E": (-1e-3, 1e-3), "E~1": (-1e-4, 1e-4), "stress~1": (-5.0, 5.0)}
    ),
}
NONLINEAR = ("implicit_substep_nl", "implicit_substep_ramp", "krylov_gmres_deriv")


def on_each_backend() -> list[object]:
    found = []
    for name in CASES:
        found.append(pytest.param(name, "kernel", id=f"{name}-kernel"))
        graphs = pytest.param(name, "inductor", id=f"{name}-inductor", marks=pytest.mark.exhaustive)
        found.append(graphs)
    return found


def compiled(cases: Path, name: str, backend: Backend) -> Made:
    """A case with every pair of its outputs with inputs and promoted parameters."""
    (file,) = (cases / "aoti" / name).glob("*.i")
    promoted = CASES[name].promoted
    return made(
        file.read_text(), "model", f"{name}-{backend}", backend=(backend,), parameter=promoted,
        derivative=(":", *(f":{p}" for p in promoted)), baseline=False,
    )  # fmt: skip


def drawn(name: str, inputs: Sequence[VariableInfo], batch: tuple[int, ...]) -> Arrays:
    source = torch.Generator().manual_seed(len(batch) + batch[0])
    found = {}
    for v in inputs:
        low, high = CASES[name].ranges.get(v.name, (-1.0, 1.0))
        uniform = torch.rand((*batch, *v.sub_batch, *v.base), generator=source, dtype=torch.float64)
        found[v.name] = low + (high - low) * uniform
    return found


def said(artifact: Artifact, inputs: Arrays, batch: tuple[int, ...] = ()) -> Arrays:
    """Values, and blocks called `output:input`, at points all of which converge.

    A block that no point changes has no batch of its own, and is given that of the points.
    """
    found = {n: x.detach() for n, x in artifact(inputs).items()}
    for status in artifact.status:
        assert bool(status.converged.all())
    for blocks in (artifact.jacobian(inputs), artifact.param_jacobian(inputs)):
        found |= {f"{y}:{x}": b for y, row in blocks.items() for x, b in row.items()}
    for pair in artifact.metadata.derivatives:
        if pair.batch_independent:
            block = found[f"{pair.output}:{pair.input}"]
            found[f"{pair.output}:{pair.input}"] = block.expand((*batch, *block.shape))
    return found


def assert_close(ours: Arrays, theirs: Arrays, inputs: Arrays) -> None:
    """Every value and block within a part of its largest entry.

    Where a slope is zero but for rounding, that is a thousandth of the output over the input.
    """
    assert ours.keys() == theirs.keys()
    sizes = {n: float(x.abs().max()) for n, x in {**inputs, **theirs}.items()}
    for name, x in theirs.items():
        y, _, by = name.partition(":")
        usual = sizes[y] / sizes[by] if sizes.get(by) else 0.0
        scale = max(sizes[name], 1e-3 * usual, 1e-30)
        assert ours[name].shape == x.shape, name
        off = float((ours[name] - x).abs().max()) / scale
        assert off <= TOLERANCE, f"{name} is off by {off:.1e}"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "backend"), on_each_backend())
def test_case_agrees_with_the_interpreter(name: str, backend: Backend, cases: Path) -> None:
    one = compiled(cases, name, backend)
    artifact = one.artifact()
    for batch in BATCHES:
        inputs = drawn(name, one.package.metadata.inputs, batch)
        assert_close(said(artifact, inputs, batch), one.interpreted(inputs), inputs)
        if name in NONLINEAR:
            assert int(artifact.status[0].iterations.max()) > 1, "no point has anything to solve"


def test_every_published_case_is_here(cases: Path) -> None:
    assert {folder.name for folder in (cases / "aoti").iterdir()} == set(CASES)


def test_unknowns_on_sites_and_a_global_one_have_their_closed_form(cases: Path) -> None:
    artifact = compiled(cases, "implicit_cross_group_sub_batch", "kernel").artifact()
    sites = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    zero, five = torch.zeros((), dtype=torch.float64), torch.tensor(5.0, dtype=torch.float64)
    inputs = {"u_per": torch.zeros_like(sites), "u_glob": zero, "g_per": sites, "g_glob": five}
    found = said(artifact, inputs)
    assert found["u_glob"].tolist() == 5.0
    assert found["u_per"].tolist() == [-4.0, -3.0, -2.0]
    assert found["u_per:g_glob"].tolist() == [-1.0] * 3
    assert torch.equal(found["u_per:g_per"], torch.eye(3, dtype=torch.float64))


def test_provider_moves_the_output_as_the_product_rule_says(cases: Path) -> None:
    artifact = compiled(cases, "forward_provider_param", "kernel").artifact()
    inputs = {"x": torch.tensor([2.0, -1.0], dtype=torch.float64)}
    found = said(artifact, inputs)
    assert found["y"].tolist() == [6.0, -3.0]
    assert torch.equal(found["y:k.value"], inputs["x"])


# the seven, each driven through its stub

LONG = (SEVEN[1], SEVEN[4])
"""Those that compile too long for every run of the tests, and whose graphs take minutes."""


def on_each(files: Sequence[str]) -> list[object]:
    found = []
    for file in files:
        name = Path(file).parent.name
        marks = [pytest.mark.exhaustive]
        quick = () if file not in LONG else marks
        found.append(pytest.param(file, "kernel", id=f"{name}-kernel", marks=quick))
        if file not in LONG:
            found.append(pytest.param(file, "inductor", id=f"{name}-inductor", marks=marks))
    return found


def package_of(file: Path, backend: Backend, folder: Path, driver: str | None) -> Package:
    """A published model with every pair of outputs and inputs."""
    tree = read(file)
    model, shapes = "model", {}
    if driver is not None:
        found = transient_driver(Factory(tree), driver)
        model, shapes = found.model.name, dict(found.shapes)
    target = Target(output_dir=folder, backend=(backend,), derivative=(":",), baseline=False)
    return compile_model(tree, model, target, driver=driver, shapes=shapes, command="again")


def states(stub: Path, meta: Metadata) -> Arrays:
    """Six states that the driver of a stub puts its model in, along the steps and the batch.

    Where parameters are batched, each state is that of the whole batch.
    """
    result = transient_driver(Factory(read(stub)), "driver").run()
    found = {}
    for v in meta.inputs:
        rows = []
        for i, step in enumerate(torch.linspace(2, result.steps - 1, 6).int().tolist()):
            x = result.flat.given(v.name, step)
            x = torch.zeros((), dtype=torch.float64) if x is None else x
            x = x.expand((*result.batch, *v.sub_batch, *v.base))
            points = x.flatten(0, len(result.batch) - 1) if result.batch else x[None]
            rows.append(x if meta.constants else points[i % len(points)])
        found[v.name] = torch.stack(rows)
    return found


def assert_pairs_agree(package: Package, model: Model, shapes: Shapes, points: Arrays) -> None:
    artifact = load_package(package.folder)
    pairs = [(b.output, b.input) for b in package.metadata.derivatives]
    assert len(pairs) == len(artifact.outputs) * len(artifact.inputs)
    run = Interpreter(with_jacobian(prepared(model, shapes), pairs))
    for batch in BATCHES:
        count = torch.Size(batch).numel()
        inputs = {n: x[:count].reshape(*batch, *x.shape[1:]) for n, x in points.items()}
        theirs, statuses = run(inputs)
        assert all(bool(s.converged.all()) for s in statuses)
        assert_close(said(artifact, inputs, batch), theirs, inputs)


@pytest.mark.slow
@pytest.mark.parametrize(("file", "backend"), on_each(SEVEN[1:]))
def test_published_regression_and_all_pairs_hold_through_the_stub(
    file: str, backend: Backend, cases: Path, tmp_path: Path
) -> None:
    package = package_of(cases / file, backend, tmp_path, "driver")
    assert package.stub is not None
    verdict = build_driver(read(package.stub), "regression").run()
    assert verdict.passed, "\n".join(map(str, verdict.problems))
    live = transient_driver(Factory(read(cases / file)), "driver")
    points = states(package.stub, package.metadata)
    assert_pairs_agree(package, live.model, live.shapes, points)


@pytest.mark.slow
@pytest.mark.parametrize(("file", "backend"), on_each(SEVEN[:1]))
def test_published_unit_test_and_all_pairs_hold(
    file: str, backend: Backend, cases: Path, tmp_path: Path
) -> None:
    package = package_of(cases / file, backend, tmp_path, None)
    test = build_driver(read(cases / file), "unit")
    assert isinstance(test, ModelUnitTest)
    found = load_package(package.folder)(test.given)
    for name, expected in test.outputs.items():
        torch.testing.assert_close(found[name], expected.value.data, rtol=1e-5, atol=1e-8)
    points = {n: x.reshape(-1, *x.shape[-1:])[:1] * torch.linspace(-1, 2, 6, dtype=x.dtype)[:, None]
              for n, x in test.given.items()}  # fmt: skip
    assert_pairs_agree(package, test.model, test.shapes, points)
