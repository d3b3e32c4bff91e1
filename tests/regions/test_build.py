"""One compilation for each distinct block, and results, gradients and effects of eager."""

import copy
import gc
import io
import json
import logging
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


def close(a: Tensor, b: Tensor) -> None:
    limit = TOLERANCE[b.dtype]
    torch.testing.assert_close(a, b, rtol=limit, atol=limit)


def gradients(module: nn.Module, run: Callable[[Tensor], Tensor], x: Tensor) -> list[Tensor]:
    parameters = [x, *module.parameters()]
    return list(torch.autograd.grad(run(x).square().sum(), parameters))


def kinds(compiled: regions.Compiled) -> list[tuple[str, int]]:
    return [(b.name, b.instances) for b in compiled.report.blocks]


def test_one_block_is_compiled_for_16_and_for_a_second_model(counted: mock.Mock) -> None:
    x = torch.randn(2, 4)
    with torch.no_grad():
        model = stack(16, 4).eval()
        first = regions.compile(model, blocks=Residual, backend=counted)
        assert counted.call_count == 0 and "before the first call" in str(first.report)
        close(first(x), model(x))
        count = counted.call_count
        assert first.report.distinct == first.report.compiled == 1
        assert first.report.instances == 16
        assert count == 2  # the block, and what is before; one operation after all is not compiled
        model = stack(16, 4).eval()
        second = regions.compile(model, blocks=Residual, backend=counted)
        close(second(x), model(x))
        assert second.report.compiled == 0 and second.report.instances == 16
        model.load_state_dict(stack(16, 4).state_dict())
        close(second(x), model(x))
        model.load_state_dict(stack(16, 4).state_dict(), assign=True)
        close(second(x), model(x))
        fewer = stack(2, 4).eval()
        close(regions.compile(fewer, blocks=Residual, backend=counted)(x), fewer(x))
    assert counted.call_count == count


def test_nothing_runs_or_changes_before_the_first_call(counted: mock.Mock) -> None:
    class Counting(Residual):
        calls = 0

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            return super().forward(x) * self.calls

    model = Stack([Counting(8), Counting(8)])
    before = dict(vars(model.blocks[0]))
    compiled = regions.compile(model, torch.randn(4, 8), Counting, backend=counted)
    assert vars(model.blocks[0]) == before
    eager, x = copy.deepcopy(model), torch.randn(4, 8)
    for _ in range(3):
        close(compiled(x), eager(x))
    assert model.blocks[1].calls == eager.blocks[1].calls == 3


def test_blocks_that_differ_by_an_attribute_or_a_closure_are_told_apart(counted: mock.Mock) -> None:
    def made(k: float) -> nn.Module:
        class Scaled(Residual):
            def forward(self, x: Tensor) -> Tensor:
                return super().forward(x) * k

        return Scaled(8)

    parts = [made(2.0), made(3.0), made(2.0), Residual(8, 0.5), Residual(8, 0.25)]
    model = Stack(parts).requires_grad_(False)
    x = torch.randn(3, 8)
    compiled = regions.compile(model, blocks=Residual, backend=counted)
    close(compiled(x), model(x))
    assert compiled.report.distinct == 4 and compiled.report.instances == 5


def test_glue_between_blocks_is_compiled_once_where_it_is_the_same(counted: mock.Mock) -> None:
    class Wide(Stack):
        def forward(self, x: Tensor) -> Tensor:
            for block in self.blocks:
                x = torch.cos(block(torch.sin(x)))
            return self.last(x)

    model = Wide([Residual(8) for _ in range(5)]).requires_grad_(False)
    x = torch.randn(3, 8)
    compiled = regions.compile(model, blocks=Residual, backend=counted)
    close(compiled(x), model(x))
    # one operation before the first block, two between, two after the last
    assert kinds(compiled) == [("Residual", 5), ("glue", 4), ("glue", 1)]


def test_blocks_inside_blocks_are_units_too(counted: mock.Mock) -> None:
    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Residual(8)

        def forward(self, x: Tensor) -> Tensor:
            x = self.inner(torch.sin(x).exp())
            return self.inner(torch.cos(x).exp()) * 2

    model = Stack([Outer() for _ in range(3)]).requires_grad_(False)
    compiled = regions.compile(model, blocks=[Outer, Residual], backend=counted)
    x = torch.randn(3, 8)
    close(compiled(x), model(x))
    assert [k for k in kinds(compiled) if k[0] != "glue"] == [
        ("Outer", 3), ("Residual", 6), ("Outer", 3), ("Outer", 3),
    ]  # fmt: skip


def test_a_block_called_twice_in_a_row_is_two_instances(counted: mock.Mock) -> None:
    class Twice(Stack):
        def forward(self, x: Tensor) -> Tensor:
            return self.blocks[0](self.blocks[0](x))

    model = Twice([Residual(8)]).requires_grad_(False)
    compiled = regions.compile(model, blocks=[model.blocks[0]], backend=counted)
    x = torch.randn(3, 8)
    close(compiled(x), model(x))
    assert kinds(compiled) == [("Residual", 2)]


def test_edits_replacements_and_precisions_act_at_the_next_call(counted: mock.Mock) -> None:
    model = stack(3).requires_grad_(False)
    compiled = regions.compile(model, blocks=Residual, backend=counted, dynamic={0: "batch"})
    x = torch.randn(4, 8)
    before = compiled(x)
    for block in model.blocks:
        block.get_parameter("down.weight").mul_(1.5)
    assert not torch.equal(compiled(x), before)
    close(compiled(x), model(x))
    count = counted.call_count
    layer = model.get_submodule("blocks.1.down")
    layer.weight = nn.Parameter(torch.randn(8, 16), requires_grad=False)
    close(compiled(x), model(x))
    assert counted.call_count == count
    model.get_submodule("blocks.2").scale = 3.0  # pyright: ignore[reportAttributeAccessIssue]
    close(compiled(x), model(x))
    layer.weight = nn.Parameter(torch.randn(16, 8).t(), requires_grad=False)
    close(compiled(x), model(x))
    model.double()
    close(compiled(x.double()), model(x.double()))
    with pytest.raises(RuntimeError):
        compiled(torch.randn(4, 9).double())


@pytest.mark.parametrize("rows", [0, 1, 2, 9, 20])
def test_branches_on_sizes_are_taken_as_eager_does(rows: int, counted: mock.Mock) -> None:
    class Branching(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 8)

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x.sin()) if x.shape[0] > 10 else self.layer(x).cos() + len(x)

    model = Stack([Branching(), Branching()]).requires_grad_(False)
    compiled = regions.compile(model, blocks=Branching, dynamic={0: "batch"}, backend=counted)
    for n in (4, rows, 3, 11, rows):
        x = torch.randn(n, 8)
        close(compiled(x), model(x))
    assert counted.call_count < 15


def test_one_unit_takes_all_open_sizes_that_it_guards_nothing_of(counted: mock.Mock) -> None:
    model = stack(3).requires_grad_(False)
    compiled = regions.compile(model, blocks=Residual, dynamic={0: "batch"}, backend=counted)
    for rows in (4, 5, 300, 7):
        x = torch.randn(rows, 8)
        close(compiled(x), model(x))
    assert counted.call_count == 2
    other = stack(2).requires_grad_(False)
    again = regions.compile(other, blocks=Residual, dynamic={0: "batch"}, backend=counted)
    close(again(x), other(x))
    assert counted.call_count == 2


def test_sizes_of_one_module_do_not_open_those_of_another(counted: mock.Mock) -> None:
    shapes = []
    for rows in (4, 5):
        model = stack(2).requires_grad_(False)
        compiled = regions.compile(model, blocks=Residual, backend=counted)
        x = torch.randn(rows, 8)
        close(compiled(x), model(x))
        shapes.append(counted.call_args.args[1][0].shape[0])
    assert shapes == [4, 5]


def test_a_unit_is_not_used_beyond_what_it_guards(counted: mock.Mock) -> None:
    class Halves(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 8)

        def forward(self, x: Tensor) -> Tensor:
            even = x.shape[0] % 2 == 0
            return self.layer(x).view(2, -1, 8).flip(0).reshape(-1, 8) if even else self.layer(x)

    first, second = (nn.Sequential(Halves(), Halves()).requires_grad_(False) for _ in range(2))
    for model, sizes in ((first, (4, 6, 5)), (second, (7, 9, 8, 10))):
        compiled = regions.compile(model, blocks=Halves, dynamic={0: "batch"}, backend=counted)
        for n in sizes:
            x = torch.randn(n, 8)
            close(compiled(x), model(x))


def test_mutating_blocks_train_like_eager(counted: mock.Mock) -> None:
    class Normed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.layer = nn.BatchNorm1d(8), nn.Linear(8, 8)

        def forward(self, x: Tensor) -> Tensor:
            return torch.relu(self.layer(self.norm(x)))

    eager = Stack([Normed() for _ in range(2)]).double()
    model = copy.deepcopy(eager)
    compiled = regions.compile(model, blocks=Normed, backend=counted)
    steps = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (eager, model)]
    x = torch.randn(4, 8, dtype=torch.float64)
    for _ in range(3):
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


def test_tied_parametrised_and_mixed_blocks_are_handled(counted: mock.Mock) -> None:
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
    compiled = regions.compile(model, blocks=Mixed, backend=counted)
    close(compiled(x), model(x))
    assert compiled.report.distinct == 1
    pairs = zip(gradients(model, compiled, x), gradients(model, model, x), strict=True)
    for a, b in pairs:
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


def test_a_marked_function_is_a_unit_inside_the_whole(counted: mock.Mock) -> None:
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
    compiled = regions.compile(model, blocks=(), backend=counted)
    for shift in (0.5, 0.75):
        given = {"x": torch.randn(4, 8), "shift": shift}
        found = compiled(**given)
        close(found["x"], model(**given)["x"])
        assert found["shift"] == shift
    assert (compiled.report.distinct, compiled.report.instances) == (1, 3)
    assert kinds(compiled)[0] == ("bent", 3)


def test_modes_at_the_call_and_between_blocks_are_followed(counted: mock.Mock) -> None:
    class Switching(Stack):
        def forward(self, x: Tensor) -> Tensor:
            x = self.blocks[0](x)
            with torch.no_grad():
                y = self.blocks[1](x)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                z = self.blocks[2](x)
            return self.last(x + y + z.float())

    model = Switching([Residual(8) for _ in range(3)])
    compiled = regions.compile(model, blocks=Residual, backend=counted)
    x = torch.randn(4, 8, requires_grad=True)
    wanted = [x, *model.blocks.parameters()]
    for autocast in (False, True):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            found, right = compiled(x), model(x)
        assert found.dtype == right.dtype
        torch.testing.assert_close(found, right, rtol=2e-2, atol=2e-2)
        pairs = [
            torch.autograd.grad(y.float().sum(), wanted, allow_unused=True) for y in (found, right)
        ]
        for a, b in zip(*pairs, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                torch.testing.assert_close(a, b, rtol=2e-2, atol=2e-2)
    assert compiled.report.distinct == 3  # one block under three modes


def test_a_call_that_raises_leaves_the_modes_it_switched(counted: mock.Mock) -> None:
    class Indexing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block = Residual(8)

        def forward(self, x: Tensor, i: Tensor) -> Tensor:
            with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
                y = self.block(x)[i]
            return self.block(x) + y.sum()

    model = Indexing()
    compiled = regions.compile(model, blocks=Residual, backend=counted)
    x = torch.randn(4, 8)
    compiled(x, torch.tensor([3, 0]))
    with pytest.raises(IndexError):
        compiled(x, torch.tensor([7, 0]))
    assert torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu")
    torch.testing.assert_close(compiled(x, torch.tensor([1, 2])), model(x, torch.tensor([1, 2])))


def test_breaks_of_the_graph_run_eagerly_and_are_reported(counted: mock.Mock) -> None:
    class Decides(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 8)

        def forward(self, x: Tensor) -> Tensor:
            x = self.layer(x)
            return x.sin() if x.sum() > 0 else -x

    model = Stack([Decides(), Residual(8), Residual(8)]).requires_grad_(False)
    compiled = regions.compile(model, blocks=Residual, backend=counted)
    for _ in range(4):
        x = torch.randn(4, 8)
        close(compiled(x), model(x))
    assert any("test_build.py" in told and "forward" in told for told in compiled.report.breaks)
    assert "graph breaks: test_build.py:" in str(compiled.report)


def test_code_compiled_too_often_runs_eagerly_with_a_word(
    counted: mock.Mock, caplog: pytest.LogCaptureFixture
) -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.name = nn.Linear(8, 8), "a"

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x) * len(self.name)

    model = nn.Sequential(Named(), Named()).requires_grad_(False)
    compiled = regions.compile(model, blocks=Named, backend=counted)
    x = torch.randn(2, 8)
    with caplog.at_level(logging.WARNING):
        for length in range(1, 14):
            model[0].name = "a" * length
            close(compiled(x), model(x))
    assert len(compiled.report.eager) == 1 and "compiled too often" in compiled.report.eager[0]
    assert [r.name for r in caplog.records] == ["ingot"]


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


def test_own_derivatives_are_kept_in_blocks_and_between(counted: mock.Mock) -> None:
    model = Stack([Own(), Own()]).double()
    x = torch.randn(4, 8, dtype=torch.float64, requires_grad=True)
    wanted = [x, model.first.weight, model.last.weight]
    for blocks in (Own, [model.first, model.last]):
        compiled = regions.compile(model, blocks=blocks, backend=counted)
        found = torch.autograd.grad(compiled(x).square().sum(), wanted)
        for a, b in zip(found, torch.autograd.grad(model(x).square().sum(), wanted), strict=True):
            close(a, b)


def test_dropout_is_drawn_as_eager_draws(counted: mock.Mock) -> None:
    class Dropping(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return nn.functional.dropout(x.exp(), 0.5, self.training)

    model = nn.Sequential(Dropping(), Dropping())
    x = torch.ones(64, 64)
    compiled = regions.compile(model, blocks=Dropping, backend="eager")
    found = []
    for run in (compiled, model):
        torch.manual_seed(3)
        found.append([run(x), run(x), torch.get_rng_state()])
    assert not torch.equal(found[0][0], found[0][1])
    for a, b in zip(*found, strict=True):
        assert torch.equal(a, b)


def test_blocks_dearer_apart_are_compiled_together(counted: mock.Mock) -> None:
    class Convolving(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.norm = nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3)

        def forward(self, x: Tensor) -> Tensor:
            return torch.relu(self.norm(self.layer(x)))

    model = nn.Sequential(*(Convolving() for _ in range(4))).double()
    eager = copy.deepcopy(model)
    compiled = regions.compile(model, blocks=Convolving, backend=counted)
    x = torch.randn(2, 3, 5, 5, dtype=torch.float64)
    close(compiled(x), eager(x))
    assert compiled.report.instances == 4 and compiled.report.compiled == 1
    assert "4 blocks together, dearer apart" in str(compiled.report)
    for a, b in zip(model.buffers(), eager.buffers(), strict=True):
        torch.testing.assert_close(a, b)


def test_compiled_code_does_not_keep_the_module_alive(counted: mock.Mock) -> None:
    model = stack(2, 4).requires_grad_(False)
    block = weakref.ref(model.blocks[0])
    compiled = regions.compile(model, blocks=Residual, backend=counted)
    compiled(torch.randn(2, 4))
    del model, compiled
    torch.compiler.reset()
    gc.collect()
    assert block() is None


def test_copies_and_pickles_are_compiled_modules(counted: mock.Mock) -> None:
    model = stack(2)
    compiled = regions.compile(model, blocks=[model.blocks[0]], backend="eager")
    x = torch.randn(4, 8)
    compiled(x)
    model.blocks[1].eval()
    copied = copy.deepcopy(compiled)
    file = io.BytesIO()
    torch.save(compiled, file)
    file.seek(0)
    for other in (copied, torch.load(file, weights_only=False)):
        assert isinstance(other, regions.Compiled)
        modes = [[m.training for m in each.module.modules()] for each in (compiled, other)]
        assert modes[0] == modes[1] and other.training
        torch.testing.assert_close(other(x), model(x))
        assert other.report.instances == 1
        with torch.no_grad():
            other.first.weight.mul_(2)
        assert not torch.equal(other(x), compiled(x))


def test_what_is_no_backend_is_refused() -> None:
    with pytest.raises(IngotError, match=r"backend='indctor'[^\0]*did you mean 'inductor'"):
        regions.compile(stack(2), blocks=Residual, backend="indctor")  # pyright: ignore
    with pytest.raises(IngotError, match="measure=True needs a call"):
        regions.compile(stack(2), blocks=Residual, measure=True)


def test_report_counts_measures_and_is_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    monkeypatch.setattr(torch_private, "fresh_cache", nullcontext)
    model = stack(3, 6)
    x = torch.randn(2, 6)
    report = regions.compile(model, x, Residual, measure=True, backend="eager").report
    assert all(p.grad is None for p in model.parameters())
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


def test_recurrent_blocks_run_as_eager(counted: mock.Mock) -> None:
    module = nn.Sequential(Recurrent(), Recurrent()).double()
    made = regions.compile(module, blocks=Recurrent, dynamic={0: "batch"}, backend=counted)
    with torch.no_grad():
        x = torch.randn(4, 2, 3, dtype=torch.float64)
        for given in (x, x[:3]):
            close(made(given), module(given))
        module[1].cell.weight_hh_l0 = nn.Parameter(torch.randn(9, 3, dtype=torch.float64))
        close(made(x), module(x))


def test_a_function_is_no_module() -> None:
    with pytest.raises(IngotError, match=r"region-argument.*a function[\s\S]*ingot\.train\.joint"):
        regions.compile(lambda x: x, torch.ones(2))


class Masked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))

    def forward(self, x: Tensor, *, mask: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x) * mask
        return x


@pytest.mark.parametrize(
    "dynamic",
    ["batch", {0: "batch"}, [{0: "batch"}, {0: "batch"}], {"x": {0: "n"}, "mask": {0: "n"}}],
    ids=["word", "all", "each", "named"],
)
def test_open_sizes_are_written_as_for_packages(dynamic: Any) -> None:
    module = Masked()
    compiled = regions.compile(module, blocks=nn.Linear, backend="eager", dynamic=dynamic)
    for n in (3, 5, 7):
        x, mask = torch.randn(n, 4), torch.ones(n, 1)
        torch.testing.assert_close(compiled(x, mask=mask), module(x, mask=mask))
    assert not any(block.again for block in compiled.report.blocks), "compiled once"


@pytest.mark.parametrize("dynamic", ["bach", {"y": {0: "n"}}, 3])
def test_open_sizes_that_nothing_has_are_refused(dynamic: Any) -> None:
    with pytest.raises(IngotError, match="dynamic"):
        regions.compile(Masked(), blocks=nn.Linear, backend="eager", dynamic=dynamic)


def test_a_report_tells_that_no_block_was_named() -> None:
    compiled = regions.compile(Masked(), blocks=[], backend="eager")
    assert "nothing is compiled before the first call" in str(compiled.report)
    compiled(torch.randn(3, 4), mask=torch.ones(3, 1))
    assert "nothing is compiled" not in str(compiled.report)
    assert "compiled whole: it holds no block" in str(compiled.report)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_checkpoint_may_hold_a_module_that_was_never_called(backend: Any) -> None:
    from torch._dynamo.backends.debugging import aot_eager
    from torch.utils.checkpoint import checkpoint

    module = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(3)))
    compiler = aot_eager if backend == "aot_eager" else backend
    compiled = regions.compile(module, blocks="auto", backend=compiler)
    x = torch.randn(3, 4, requires_grad=True)
    expected = torch.autograd.grad(module(x).sum(), x)
    found = torch.autograd.grad(checkpoint(compiled, x, use_reentrant=False).sum(), x)
    torch.testing.assert_close(found, expected)


def test_another_module_is_not_put_into_what_was_compiled() -> None:
    net, x = nn.Linear(4, 4), torch.randn(2, 4)
    fast = regions.compile(net, backend="eager")
    fast.module = net
    with pytest.raises(IngotError, match="region-argument"):
        fast.module = nn.Linear(4, 4)
    with pytest.raises(IngotError, match="region-argument"):
        del fast.module
    assert torch.equal(fast(x), net(x))


@pytest.mark.parametrize(
    "named",
    [
        {"mode": "AOT", "output": "x"}, {"mode": "aott"}, {"output": "x"}, {"grad": True},
        {"mode": "aot", "output": "x", "grad": "no"}, {"cuda_graphs": "x"}, {"measure": 1},
        {"dynamic": {5: "b"}}, {"dynamic": {0: 3}}, {"dynamic": True}, {"dynamic": [3]},
        {"dynamic": {"input": "b"}}, {"backend": None}, {"backend": 3},
    ],
)  # fmt: skip
def test_options_that_say_nothing_are_refused_by_name(named: dict[str, Any]) -> None:
    with pytest.raises(IngotError) as caught:
        regions.compile(nn.Linear(4, 4), torch.ones(2, 4), **named)
    assert {p.code for p in caught.value.problems} <= {"region-argument", "wrong-argument"}
    assert all(p.fix for p in caught.value.problems)


def test_what_cannot_be_marked_or_loaded_is_refused() -> None:
    with pytest.raises(IngotError, match="region-block"):
        regions.noinline(3)
    wrong: Any = None
    with pytest.raises(IngotError, match="file-not-found"):
        regions.load(wrong)
