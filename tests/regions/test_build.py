"""One compilation for each distinct block, results and gradients of eager, and what is refused."""

import copy
import gc
import json
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any
from unittest import mock

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations

from ingot import regions
from ingot.errors import IngotError
from ingot.graphs import torch_private
from tests.regions.networks import Residual, Stack, stack

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}


@pytest.fixture(autouse=True)
def compilations(uncompiled: mock.Mock) -> mock.Mock:
    """Counts what torch is asked to compile in a test."""
    uncompiled.reset_mock()
    return uncompiled


def close(a: Tensor, b: Tensor) -> None:
    limit = TOLERANCE[b.dtype]
    torch.testing.assert_close(a, b, rtol=limit, atol=limit)


def gradients(module: nn.Module, run: Callable[[Tensor], Tensor], x: Tensor) -> list[Tensor]:
    parameters = [x, *module.parameters()]
    return list(torch.autograd.grad(run(x).square().sum(), parameters))


@pytest.fixture(scope="module")
def inference(uncompiled: mock.Mock) -> tuple[Stack, regions.Compiled]:
    torch.manual_seed(0)
    model = stack(3).requires_grad_(False)
    return model, regions.compile(model, torch.randn(4, 8), Residual, dynamic={0: "batch"})


def test_one_block_is_compiled_for_64_and_for_a_second_model(compilations: mock.Mock) -> None:
    with torch.no_grad():
        x = torch.randn(2, 4)
        first = regions.compile(stack(64, 4).eval(), x[:, :4], Residual)
        count = compilations.call_count
        assert first.report.distinct == 1 and first.report.instances == 64
        assert count == 3  # the block, and what is before and after all of them
        model = stack(64, 4).eval()
        second = regions.compile(model, x, Residual)
        assert second.report.compiled == 0
        close(second(x), model(x))
        model.load_state_dict(stack(64, 4).state_dict())
        close(second(x), model(x))
        model.load_state_dict(stack(64, 4).state_dict(), assign=True)
        close(second(x), model(x))
        fewer = stack(2, 4).eval()
        close(regions.compile(fewer, x, Residual)(x), fewer(x))
    assert compilations.call_count == count


def test_blocks_that_differ_by_an_attribute_or_a_closure_are_told_apart() -> None:
    def made(k: float) -> nn.Module:
        class Scaled(Residual):
            def forward(self, x: Tensor) -> Tensor:
                return super().forward(x) * k

        return Scaled(8)

    parts = [made(2.0), made(3.0), made(2.0), Residual(8, 0.5), Residual(8, 0.25)]
    model = Stack(parts).requires_grad_(False)
    x = torch.randn(3, 8)
    compiled = regions.compile(model, x, Residual)
    assert compiled.report.distinct == 4 and compiled.report.instances == 5
    close(compiled(x), model(x))


def test_glue_between_blocks_is_compiled_once_where_it_is_the_same() -> None:
    class Wide(Stack):
        def forward(self, x: Tensor) -> Tensor:
            for block in self.blocks:
                x = torch.cos(block(torch.sin(x)))
            return self.last(x)

    model = Wide([Residual(8) for _ in range(5)]).requires_grad_(False)
    x = torch.randn(3, 8)
    compiled = regions.compile(model, x, Residual)
    kinds = [b.kind for b in compiled.report.blocks]
    assert kinds.count("glue") == 3  # first, four times between, last
    assert [b.instances for b in compiled.report.blocks if b.kind == "glue"] == [1, 4, 1]
    close(compiled(x), model(x))


def test_plan_reads_as_a_program(inference: tuple[Stack, regions.Compiled]) -> None:
    assert str(inference[1].plan).splitlines() == [
        "given  input 0 float32[batch, 8]",
        "  v1 = glue 0 glue(v0)  # before tanh",
        "  v2 = block 1 Residual(v1)  # blocks.0",
        "  v3 = block 1 Residual(v2)  # blocks.1",
        "  v4 = block 1 Residual(v3)  # blocks.2",
        "  v5 = glue 2 glue(v4)  # before addmm_1",
        "gives  v5",
    ]


def test_edit_in_place_acts_at_once(inference: tuple[Stack, regions.Compiled]) -> None:
    model, compiled = inference
    x = torch.randn(4, 8)
    before = compiled(x)
    for block in model.blocks:
        block.get_parameter("down.weight").mul_(1.5)
    assert not torch.equal(compiled(x), before)
    close(compiled(x), model(x))


def test_replaced_parameter_is_used_or_refused(
    inference: tuple[Stack, regions.Compiled], compilations: mock.Mock
) -> None:
    model, compiled = inference
    layer = model.get_submodule("blocks.1.down")
    old, x = layer.weight, torch.randn(4, 8)

    def put(value: Tensor) -> None:
        layer.weight = nn.Parameter(value, requires_grad=False)

    put(torch.randn(8, 16))
    close(compiled(x), model(x))
    assert compilations.call_count == 0
    wrong = {
        "is float64, compiled for float32": torch.randn(8, 16).double(),
        r"has shape \(8, 17\), compiled for \(8, 16\)": torch.randn(8, 17),
        "is on meta, compiled for cpu": torch.empty(8, 16, device="meta"),
    }
    for said, value in wrong.items():
        put(value)
        with pytest.raises(IngotError, match=rf"parameter 'blocks.1.down.weight' {said}"):
            compiled(x)
    put(torch.randn(16, 8).t())
    close(compiled(x), model(x))
    layer.weight = old
    close(compiled(x), model(x))


def test_precision_changed_in_place_is_refused(inference: tuple[Stack, regions.Compiled]) -> None:
    model, compiled = inference
    model.double()
    with pytest.raises(IngotError, match=r"'first.weight' is float64, compiled for float32"):
        compiled(torch.randn(4, 8).double())
    model.float()
    close(compiled(torch.ones(4, 8)), model(torch.ones(4, 8)))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (torch.randn(4, 8).double(), "input 0 is float64, compiled for float32"),
        (torch.randn(4, 9), r"has shape \(4, 9\), compiled for \(batch, 8\) with batch = 4"),
        (torch.randn(4), r"has shape \(4,\), compiled for \(batch, 8\) with batch = 4"),
        (torch.empty(4, 8, device="meta"), "input 0 is on meta, compiled for cpu"),
        (torch.randn(4, 8).to_sparse(), "input 0 is sparse_coo"),
        ([1.0], r"called with \(\[\*\]\), compiled for \(\*\)"),
        (3, "input 0 is a 'int'"),
    ],
)
def test_wrong_input_is_refused(
    inference: tuple[Stack, regions.Compiled], wrong: Any, said: str
) -> None:
    with pytest.raises(IngotError, match=said):
        inference[1](wrong)


def test_a_call_like_the_last_is_not_examined(inference: tuple[Stack, regions.Compiled]) -> None:
    model, made = inference
    with mock.patch.object(made, "_other", side_effect=made._other) as examined:
        for _ in range(3):
            for rows in (2, 3):
                x = torch.randn(rows, 8)
                torch.testing.assert_close(made(x), model(x))
        assert examined.call_count <= 2
        negated = torch.randn(3, 8, dtype=torch.complex64).conj().imag
        for x in (negated, torch.randn(8, 3).t(), negated, torch.randn(1, 8).expand(3, 8)):
            torch.testing.assert_close(made(x), model(x))
        assert examined.call_count <= 5


def test_which_inputs_need_a_gradient_may_change(compilations: mock.Mock) -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block = Residual(8)

        def forward(self, a: Tensor, b: Tensor) -> Tensor:
            return self.block(a) * self.block(b)

    model = Two().requires_grad_(False)
    a, b = torch.randn(2, 8), torch.randn(2, 8)
    made = regions.compile(model, (a, b), Residual, grad=True)
    for need in ((True, False), (False, True), (True, True), (False, False), (True, False)):
        given = [x.clone().requires_grad_(n) for x, n in zip((a, b), need, strict=True)]
        wanted = [x for x in given if x.requires_grad]
        found, right = made(*given), model(*given)
        assert found.requires_grad == right.requires_grad
        torch.testing.assert_close(found, right)
        if wanted:
            pairs = [torch.autograd.grad(y.sum(), wanted) for y in (found, right)]
            torch.testing.assert_close(*pairs)


def test_attribute_changed_later_is_seen(inference: tuple[Stack, regions.Compiled]) -> None:
    model, compiled = inference
    x = torch.randn(4, 8)
    model.get_submodule("blocks.2").scale = 3.0  # pyright: ignore[reportAttributeAccessIssue]
    close(compiled(x), model(x))
    model.get_submodule("blocks.2").scale = 1.0  # pyright: ignore[reportAttributeAccessIssue]
    close(compiled(x), model(x))


def test_hooks_are_refused_by_name_also_later(inference: tuple[Stack, regions.Compiled]) -> None:
    model, compiled = inference
    hook = model.blocks[1].register_forward_hook(lambda *_: None)
    said = r"'blocks.1' \(Residual\) has a forward hook, '.*<lambda>', which compiled code"
    with pytest.raises(IngotError, match=said):
        compiled(torch.randn(4, 8))
    with pytest.raises(IngotError, match=said):
        regions.compile(model, torch.randn(4, 8), Residual)
    hook.remove()
    compiled(torch.randn(4, 8))


def test_mutating_blocks_train_like_eager() -> None:
    class Normed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.layer = nn.BatchNorm1d(8), nn.Linear(8, 8)

        def forward(self, x: Tensor) -> Tensor:
            return torch.relu(self.layer(self.norm(x)))

    eager = Stack([Normed() for _ in range(2)]).double()
    model = copy.deepcopy(eager)
    compiled = regions.compile(model, torch.randn(4, 8).double(), Normed)
    steps = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (eager, model)]
    for _ in range(3):
        x = torch.randn(4, 8, dtype=torch.float64)
        for run, step in zip((eager, compiled), steps, strict=True):
            step.zero_grad()
            run(x).square().mean().backward()
            step.step()
    for (name, a), b in zip(eager.state_dict().items(), model.state_dict().values(), strict=True):
        torch.testing.assert_close(b, a, rtol=1e-12, atol=1e-12, msg=name)
    compiled.eval()
    with torch.no_grad():
        close(compiled(x), eager.eval()(x))
    assert [b.training for b in compiled.report.blocks if b.kind == "block"] == [True, False]


def test_tied_parametrised_and_mixed_blocks_are_handled() -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = parametrizations.weight_norm(nn.Linear(8, 8))
            self.b, self.c = nn.Linear(8, 8), nn.Linear(8, 8)
            self.c.weight = self.b.weight
            self.narrow = nn.Parameter(torch.randn(8, dtype=torch.float32))
            self.offset = torch.randn(8).double()

        def forward(self, x: Tensor) -> Tensor:
            return self.c(self.b(self.a(x))).tanh() * self.narrow + self.offset

    model = Stack([Mixed() for _ in range(2)]).double()
    for block in model.blocks:
        block.narrow = nn.Parameter(block.narrow.float())  # pyright: ignore
    model.get_submodule("blocks.1").c.weight = model.blocks[1].b.weight  # pyright: ignore
    model.last.weight = nn.Parameter(model.first.weight[:3].clone())
    x = torch.randn(4, 8, dtype=torch.float64, requires_grad=True)
    compiled = regions.compile(model, x, Mixed)
    assert compiled.report.distinct == 1
    close(compiled(x), model(x))
    pairs = zip(gradients(model, compiled, x), gradients(model, model, x), strict=True)
    for a, b in pairs:
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


def test_a_marked_function_is_a_unit_inside_the_whole() -> None:
    @regions.noinline
    def bent(x: Tensor, weight: Tensor, power: int) -> tuple[Tensor, None]:
        return (x @ weight).sin() ** power, None

    class Bending(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weights = nn.ParameterList(torch.randn(8, 8) for _ in range(3))

        def forward(self, x: Tensor, *, shift: float) -> dict[str, Tensor | float]:
            for weight in self.weights:
                x, _ = bent(x, weight, 2)
            return {"x": x + shift, "shift": shift}

    model = Bending().requires_grad_(False)
    given = {"x": torch.randn(4, 8), "shift": 0.5}
    compiled = regions.compile(model, given, ())
    assert (compiled.report.distinct, compiled.report.instances) == (1, 3)
    found = compiled(**given)
    close(found["x"], model(**given)["x"])
    assert found["shift"] == 0.5
    with pytest.raises(IngotError, match=r"called with 0.75 where it was compiled for 0.5"):
        compiled(x=given["x"], shift=0.75)


def test_autocast_at_the_call_is_followed() -> None:
    model = stack(2).requires_grad_(False)
    x = torch.randn(4, 8)
    compiled = regions.compile(model, x, Residual)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert compiled(x).dtype == model(x).dtype == torch.bfloat16
        torch.testing.assert_close(compiled(x), model(x), rtol=2e-2, atol=2e-2)
    close(compiled(x), model(x))


def test_what_cannot_be_captured_says_where() -> None:
    class Decides(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x if x.sum() > 0 else -x

    class Counts(nn.Module):
        calls = 0

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            return x * self.calls

    class Hides(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.kept = [torch.ones(8)]

        def forward(self, x: Tensor) -> Tensor:
            return x + self.kept[0]

    x = torch.randn(4, 8)
    with pytest.raises(IngotError, match=r"region-untraceable[^\0]*test_build.py:\d+ in forward"):
        regions.compile(Stack([Decides()]), x, Decides)
    with pytest.raises(IngotError, match=r"a call of 'Stack' sets blocks.0.calls, which compiled"):
        regions.compile(Stack([Counts()]), x, Counts)
    with pytest.raises(IngotError, match=r"region-untraceable[^\0]*register tensors as buffers"):
        regions.compile(Stack([Hides()]), x, Hides)


class Clipped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad.clamp(-0.1, 0.1)


class Own(nn.Module):
    """Derivatives that are not those of its operations."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            y = self.layer(x)
        return Clipped.apply(x * y)


def test_own_derivatives_are_kept_in_blocks_and_refused_between() -> None:
    model = Stack([Own(), Own()]).double()
    x = torch.randn(4, 8, dtype=torch.float64, requires_grad=True)
    compiled = regions.compile(model, x, Own)
    wanted = [x, model.first.weight, model.last.weight]
    found = torch.autograd.grad(compiled(x).square().sum(), wanted)
    for a, b in zip(found, torch.autograd.grad(model(x).square().sum(), wanted), strict=True):
        close(a, b)
    with pytest.raises(IngotError, match=r"torch.no_grad\(\) is used between the blocks"):
        regions.compile(model, x, [model.first])
    with torch.no_grad():
        close(regions.compile(model, x, [model.first])(x), model(x))


def test_dropout_is_drawn_anew_and_scaled() -> None:
    class Dropping(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return nn.functional.dropout(x, 0.5, self.training)

    model = nn.Sequential(Dropping(), Dropping())
    x = torch.ones(64, 64)
    compiled = regions.compile(model, x, Dropping)
    a, b = compiled(x), compiled(x)
    assert not torch.equal(a, b)
    assert set(a.unique().tolist()) == {0.0, 4.0}
    assert 0.2 < float((a > 0).float().mean()) < 0.3


def test_size_that_the_code_fixes_is_refused() -> None:
    class Fixed(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.reshape(32).reshape(-1, 8)

    with pytest.raises(IngotError, match="the module runs only where batch is 4"):
        regions.compile(Stack([Fixed()]), torch.randn(4, 8), Fixed, dynamic={0: "batch"})


def test_sizes_beyond_a_guard_are_compiled_for() -> None:
    class Branching(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.sin() if x.shape[0] > 10 else x.cos()

    model = Stack([Branching()]).requires_grad_(False)
    compiled = regions.compile(model, torch.randn(4, 8), Branching, dynamic={0: "batch"})
    for rows in (4, 20, 3, 11, 10):
        x = torch.randn(rows, 8)
        close(compiled(x), model(x))


def test_compiled_code_does_not_keep_the_module_alive() -> None:
    model = stack(2, 4).requires_grad_(False)
    block = weakref.ref(model.blocks[0])
    compiled = regions.compile(model, torch.randn(2, 4), Residual)
    compiled(torch.randn(2, 4))
    del model, compiled
    gc.collect()
    assert block() is None


def test_report_counts_measures_and_is_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))
    monkeypatch.setattr(torch_private, "fresh_cache", nullcontext)
    model = stack(3, 6)
    report = regions.compile(model, torch.randn(2, 6), Residual, measure=True).report
    said = json.loads(report.json())
    assert (said["distinct"], said["instances"], said["compiled"]) == (1, 3, 1)
    assert said["whole_seconds"] > 0
    lines = str(report).splitlines()
    assert lines[0].startswith("3 blocks, 1 distinct, 1 compiled now (jit, ")
    assert lines[2].startswith("  block Residual x 3 ") and lines[2].endswith("with its gradient")
    assert lines[-1].startswith("  the whole by torch.compile: ")


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRU(3, 3, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.cell(x)[0] + x


def test_recurrent_blocks_are_one_with_an_open_batch(compilations: mock.Mock) -> None:
    module = nn.Sequential(Recurrent(), Recurrent()).double()
    with torch.no_grad():
        x = torch.randn(4, 2, 3, dtype=torch.float64)
        made = regions.compile(module, x, Recurrent, dynamic={0: "batch"})
        assert (made.report.distinct, made.report.instances) == (1, 2)
        torch.testing.assert_close(made(x[:3]), module(x[:3]), rtol=1e-12, atol=1e-12)
        module[1].cell.weight_hh_l0 = nn.Parameter(torch.randn(9, 3, dtype=torch.float64))
        torch.testing.assert_close(made(x), module(x), rtol=1e-12, atol=1e-12)
