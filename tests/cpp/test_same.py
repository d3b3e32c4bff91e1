"""C++ gives what Python gives for the same package and inputs: kernels to the last bit."""

import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from ingot.execute import Transient
from ingot.runtime import Artifact
from tests import packages
from tests.calls import _spread, _turned
from tests.cpp.host import Host, build, needs_compiler
from tests.packages import ORDER, RATE, Made, inputs_of

pytestmark = needs_compiler
MODELS = ("elastic", "decay", "trained", "single", "plastic", "diffusion")


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    running = Host(build("driver.cpp"))
    yield running
    running.close()


def same(a: Tensor, b: Tensor) -> bool:
    """Whether two arrays are equal to the last bit, NaN where NaN."""
    return a.shape == b.shape and a.dtype == b.dtype and torch.equal(a.isnan(), b.isnan()) and (
        torch.equal(a.nan_to_num(), b.nan_to_num())
    )  # fmt: skip


def close(a: Tensor, b: Tensor, rel: float) -> bool:
    """Whether two arrays agree to a part of their largest entry."""
    scale = float(b.nan_to_num().abs().max()) if b.numel() else 1.0
    return a.shape == b.shape and torch.allclose(a, b, rtol=rel, atol=rel * scale, equal_nan=True)


def quiet(call: Callable[[], Any]) -> Any:
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # points that fail are meant to
        return call()


def flat(blocks: dict[str, dict[str, Tensor]]) -> dict[str, Tensor]:
    return {f"{y}:{x}": b for y, row in blocks.items() for x, b in row.items()}


WAYS: tuple[Callable[[Tensor], Tensor], ...] = (
    lambda x: x.contiguous(), _spread, _turned, lambda x: x[:1].expand(x.shape) if x.ndim else x,
)  # fmt: skip


def laid_out(inputs: dict[str, Tensor], dice: random.Random) -> dict[str, Tensor]:
    """The same numbers, lying in any way."""
    return {n: dice.choice(WAYS)(x) for n, x in inputs.items()}


def agree(mine: dict[str, Tensor], theirs: dict[str, Tensor]) -> None:
    assert list(mine) == list(theirs)
    for name, x in mine.items():
        assert same(x, theirs[name]), (name, x, theirs[name])


@pytest.mark.parametrize("name", MODELS)
def test_values_blocks_and_status_are_the_same(host: Host, name: str) -> None:
    made: Made = getattr(packages, name)()
    artifact, model = made.artifact("kernel"), host.load(made.folder, backend="kernel")
    dice = random.Random(name)
    for points in (0, 1, 5, 67, 2500):
        if artifact.metadata.constants and points not in (1, 5):
            continue
        inputs = laid_out(inputs_of(made, points), dice)
        theirs = quiet(lambda inputs=inputs: artifact(inputs))
        agree(model.call("forward", inputs), {n: x.detach() for n, x in theirs.items()})
        for mine, told in zip(model.status, artifact.status, strict=True):
            assert mine["solve"] == told.solve
            for row in ("reason", "iterations", "pivoted", "accepted"):
                assert mine[row] == getattr(told, row).tolist(), row
            assert mine["told"] == str(told.problem() or "")
        if not artifact.metadata.derivatives:
            continue
        theirs = quiet(lambda inputs=inputs: artifact.jacobian(inputs))
        agree(model.call("jacobian", inputs), flat(theirs))
        theirs = quiet(lambda inputs=inputs: artifact.param_jacobian(inputs))
        mine = model.call("param_jacobian", inputs)
        agree(dict(sorted(mine.items())), dict(sorted(flat(theirs).items())))


def test_failed_points_are_told_and_nan_as_in_python(host: Host) -> None:
    made = packages.two_updates()
    rules = {"second": {"abs_tol": 1e-3, "rel_tol": 0.0, "max_its": 2}}
    model = host.load(made.folder, backend="kernel", rules=rules)
    artifact = made.artifact("kernel")
    import msgspec

    chosen = [
        msgspec.structs.replace(s, **{**rules["second"], "linesearch": "NONE"})
        if s.name == "second" else s for s in artifact.metadata.solvers
    ]  # fmt: skip
    artifact = artifact.with_rules(msgspec.structs.replace(artifact.metadata, solvers=chosen))
    theirs = quiet(lambda: artifact(packages.TWO_INPUTS))
    agree(model.call("forward", packages.TWO_INPUTS), theirs)
    assert any(s["failed"] for s in model.status)
    assert [s["told"] for s in model.status] == [str(s.problem() or "") for s in artifact.status]


@pytest.mark.parametrize("batch", [(), (1,), (3, 2), (2, 1, 3), (0, 3)])
def test_batches_of_any_rank_broadcast(host: Host, batch: tuple[int, ...]) -> None:
    made = packages.plastic()
    artifact, model = made.artifact(), host.load(made.folder)
    whole = inputs_of(made, 12)
    inputs = {n: x[0].expand((*batch, *x.shape[1:])) for n, x in whole.items()}
    some = next(iter(inputs))
    inputs[some] = whole[some][0] if len(batch) != 2 else inputs[some][:1]
    agree(model.call("forward", inputs), artifact(inputs))
    agree(model.call("jacobian", inputs), flat(artifact.jacobian(inputs)))


@pytest.mark.parametrize("name", ["elastic", "decay", "trained"])
def test_products_and_gradients_agree(host: Host, name: str) -> None:
    made: Made = getattr(packages, name)()
    artifact, model = made.artifact("kernel"), host.load(made.folder, backend="kernel")
    points = 5
    inputs, dice = inputs_of(made, points), torch.Generator().manual_seed(7)
    out = artifact(inputs)
    bars = {n: torch.randn(x.shape, generator=dice, dtype=torch.float64) for n, x in out.items()}
    some = dict([*bars.items()][:1])
    exact = artifact.metadata.adjoints
    for cotangents in (bars, some):
        theirs, mine = artifact.vjp(inputs, cotangents), model.call("vjp", inputs, cotangents)
        assert list(mine) == list(theirs)
        assert all(
            same(mine[n], x) if exact else close(mine[n], x, 1e-13) for n, x in theirs.items()
        )
        theirs = artifact.param_vjp(inputs, cotangents)
        mine = model.call("param_vjp", inputs, cotangents)
        assert list(mine) == list(theirs)
        assert all(close(mine[n], x, 1e-13) for n, x in theirs.items())
    if artifact.metadata.derivatives:
        x = next(iter(inputs))
        ways = [{x: torch.ones_like(inputs[x])}, dict(inputs)]
        ways += [{n: torch.ones_like(p.detach())} for n, p in artifact.named_parameters()]
        for tangents in ways:
            theirs, mine = artifact.jvp(inputs, tangents), model.call("jvp", inputs, tangents)
            assert list(mine) == list(theirs)
            assert all(close(mine[n], y, 1e-13) for n, y in theirs.items())


def test_parameters_are_set_by_any_name_batched_or_not(host: Host) -> None:
    made = packages.decay()
    artifact, model = made.artifact("kernel"), host.load(made.folder, backend="kernel")
    inputs = inputs_of(made, 4)
    for name, value in ((RATE, 3.5), ("order", torch.linspace(0.5, 0.8, 4).double())):
        artifact.set_parameter(name, value)
        model.call("set", {name: torch.as_tensor(value, dtype=torch.float64)})
        agree(model.call("forward", inputs), {n: x.detach() for n, x in artifact(inputs).items()})
    held = model.call("parameters", {})
    assert same(held[RATE], torch.tensor(3.5).double()) and held[ORDER].shape == (4,)


@pytest.mark.parametrize("name", ["decay", "single", "plastic"])
def test_transients_are_the_same(host: Host, name: str) -> None:
    made: Made = getattr(packages, name)()
    artifact, model = made.artifact("kernel"), host.load(made.folder, backend="kernel")
    steps, points, kind = 6, 3, artifact.dtype
    drawn = inputs_of(made, points)
    outputs = {v.name: v for v in artifact.metadata.outputs}
    prescribed, initial = {}, {}
    ramp = torch.linspace(0, 1, steps, dtype=kind)
    for n, x in drawn.items():
        base = n.partition("~")[0]
        if base not in outputs and "~" not in n:
            prescribed[n] = ramp.reshape(-1, *[1] * x.ndim) * x
        elif base in outputs:
            initial[base] = x
    history = quiet(lambda: artifact.transient(Transient(steps, prescribed, initial)))
    mine = model.call("transient", prescribed, initial, steps=steps)
    agree(mine, history.outputs)
    for told, status in zip(model.status, history.statuses, strict=True):
        assert told["iterations"] == status.iterations.reshape(-1).tolist()


def test_a_stub_gives_its_rules(host: Host) -> None:
    import ingot

    made = packages.two_updates()
    stub = made.package.stub
    assert stub is not None
    text = stub.read_text().replace("max_its = 4", "max_its = 2")
    other = stub.with_name("other_aoti.i")
    other.write_text(text)
    for file in (stub, other):
        artifact, model = ingot.load(file, backend="kernel"), host.load(file, backend="kernel")
        assert isinstance(artifact, Artifact)
        theirs = quiet(lambda artifact=artifact: artifact(packages.TWO_INPUTS))
        agree(model.call("forward", packages.TWO_INPUTS), theirs)


def test_a_user_material_is_called_as_any_package(host: Host) -> None:
    made = packages.material()
    artifact, model = made.artifact(), host.load(made.folder)
    inputs = inputs_of(made, 9)
    agree(model.call("forward", inputs), artifact(inputs))
    agree(model.call("jacobian", inputs), flat(artifact.jacobian(inputs)))


def test_outputs_are_written_where_the_caller_says(host: Host) -> None:
    made = packages.plastic()
    artifact, model = made.artifact(), host.load(made.folder)
    inputs = inputs_of(made, 70)
    theirs = artifact(inputs)
    into = {n: torch.zeros_like(x) for n, x in theirs.items()}  # components outermost
    agree(model.call("into", inputs, into), theirs)
    agree(model.call("into", inputs, {n: _spread(x) for n, x in into.items()}), theirs)
