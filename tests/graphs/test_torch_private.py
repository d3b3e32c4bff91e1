"""What Ingot works around in torch is still so: where one of these fails, the workaround may go."""

import itertools
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.fx import Interpreter

from ingot.graphs import torch_private
from ingot.graphs.layout import order_of


def settings() -> Any:
    import torch._inductor.config as config

    return config


def test_settings_are_not_the_defaults() -> None:
    now = settings().get_config_copy()
    for name, value in torch_private.OPTIONS.items():
        assert now.get(name) != value, name


def test_long_chains_would_be_inlined() -> None:
    """Until 2.12 one number served all devices."""
    many = settings().realize_opcount_threshold or settings().realize_cpu_opcount_threshold
    assert many >= 30
    assert settings().max_fusion_size == 64


def test_threads_would_be_written_into_the_code() -> None:
    assert settings().cpp.threads == -1
    assert not settings().cpp.dynamic_threads


def test_instruction_sets_would_be_tried_one_by_one() -> None:
    assert settings().cpp.vec_isa_ok is None


def test_a_fake_tensor_is_told_from_one_with_numbers() -> None:
    mode = torch_private.fake_mode()
    fake = torch_private.fake_tensor(mode, (3,), (False,), torch.float32, "cpu")
    assert torch_private.is_fake(fake)
    assert not torch_private.is_fake(torch.zeros(3))


def test_checkpoints_that_nothing_compiles_would_draw_again() -> None:
    """The operator that Dynamo leaves in a graph stands where `write_checkpoints` replaces it."""
    from torch._higher_order_ops.wrap import tag_activation_checkpoint

    graph = torch.fx.Graph()
    node = graph.call_function(tag_activation_checkpoint, (graph.placeholder("x"),))
    graph.output(node)
    torch_private.write_checkpoints(graph)
    assert node.target is not tag_activation_checkpoint


def test_size_of_one_would_be_a_constant() -> None:
    mode = torch_private.fake_mode()
    one, two = (
        torch_private.fake_tensor(mode, (3, n), (False, True), torch.float32, "cpu") for n in (1, 2)
    )
    assert isinstance(one.shape[1], int)
    assert isinstance(two.shape[1], torch.SymInt)


def test_number_between_numbers_takes_the_default_precision() -> None:
    condition = torch.tensor([True])
    assert torch.where(condition, 1.0, 0.0).dtype == torch.get_default_dtype()


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:
        return x * 1.0

    @staticmethod
    def backward(ctx: object, grad: Tensor) -> Tensor:
        return 2 * grad


class Returned(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:
        return x

    @staticmethod
    def backward(ctx: object, grad: Tensor) -> Tensor:
        return -grad


def without(x: Tensor) -> Tensor:
    with torch.no_grad():
        return x * 1.0


@pytest.mark.parametrize("function", [Doubled.apply, without], ids=["own", "none"])
def test_trace_of_values_loses_derivatives(function: Callable[[Tensor], Tensor]) -> None:
    x = torch.ones(3, requires_grad=True)
    graph = torch_private.trace_values(lambda x: function(x), [x])
    (found,) = torch.autograd.grad(graph(x).sum(), [x])
    assert found.tolist() == [1.0, 1.0, 1.0]


def test_a_mode_that_runs_operations_can_be_asked_for() -> None:
    assert not torch_private.any_dispatch()
    for mode in (
        torch_private.fake_mode(),
        torch_private.run_operations(lambda f, *x, **y: f(*x, **y)),
    ):
        with mode:
            assert torch_private.any_dispatch()


def test_modes_that_a_layout_does_not_show_can_be_asked_for() -> None:
    asked = torch_private.any_autocast, torch_private.transforms, torch_private.forward_mode
    seen = []

    def noted(x: Tensor) -> Tensor:
        seen.append([ask() for ask in asked])
        return x

    noted(torch.ones(2))
    with torch.autocast("cpu", torch.bfloat16):
        noted(torch.ones(2))
    torch.func.vmap(noted)(torch.ones(2))
    with forward_ad.dual_level():
        noted(torch.ones(2))
    assert seen == [
        [False, False, False], [True, False, False], [False, True, False], [False, False, True],
    ]  # fmt: skip


def test_a_step_of_autograd_can_be_taken_directly() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Tensor:
            return grad * 2

    x = torch.ones(2, requires_grad=True)
    torch_private.apply_of(Twice)(x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2, 2]


def _count_calls(module: torch.nn.Module, x: Tensor) -> Tensor:
    module.calls = 1
    return x.sin() * 2


def test_a_frame_is_traced_and_not_run() -> None:
    module, x = torch.nn.Module(), torch.randn(3)
    torch_private.mark_open(x, 0)
    frame = torch_private.trace_frame(_count_calls, (module, x))
    assert isinstance(frame, torch_private.Frame)
    assert frame.given[-1] is x
    assert frame.run(["sin"]) == "sin"
    (change,) = frame.changes
    assert isinstance(change, torch_private.Change)
    assert (change.source, change.names) == ("L['module']", ("calls",))
    assert any("module.calls = 1" in line.line for line in change.stack)
    assert not hasattr(module, "calls")
    (sources,) = torch_private.sources_of_sizes(frame.mode).values()
    assert sources == ["L['x'].size()[0]"]


def test_open_sizes_of_zero_and_one_are_guarded() -> None:
    def branch(x: Tensor) -> Tensor:
        return x.sin() if x.shape[0] > 1 else x.cos()

    x = torch.randn(3)
    torch_private.mark_open(x, 0)
    with torch_private.any_size():
        frame = torch_private.trace_frame(branch, (x,))
    assert len(torch_private.guards_of(frame.mode)) == 1
    frame = torch_private.trace_frame(lambda x: x.sin() if len(x) else x, (x,))
    assert len(torch_private.guards_of(frame.mode)) == 1


def test_writes_in_place_are_counted() -> None:
    x = torch.zeros(3)
    x[1:].add_(1)
    assert torch_private.writes_of(x) == 1


def test_what_was_compiled_is_found_again() -> None:
    module = nn.Linear(2, 2)
    assert torch_private.uncompiled(torch.compile(module, backend="eager")) is module
    assert torch_private.uncompiled(module) is module
    compiled = torch.compile(_count_calls, backend="eager")
    assert torch_private.uncompiled(compiled) is _count_calls


def test_dynamo_says_where_it_gave_up() -> None:
    with pytest.raises(Exception, match="Data-dependent") as refusal:
        torch_private.trace_frame(lambda x: 1 if x.sum() > 0 else 2, (torch.randn(3),))
    (*_, last) = torch_private.stack_of_error(refusal.value)
    assert "x.sum() > 0" in last.line


def test_autocast_is_told_by_device() -> None:
    assert torch_private.autocast_now() == {}
    with torch.autocast("cpu", torch.bfloat16):
        assert torch_private.autocast_now() == {"cpu": "bfloat16"}
        with torch_private.without_autocast():
            assert not torch_private.any_autocast()
        assert torch_private.any_autocast()


def test_memory_is_taken_as_torch_lays_it_out() -> None:
    assert (torch_private.CUDA is None) is ("+cpu" in torch_private.BUILD)
    made = torch_private.find_allocator(torch.device("cpu"))((2, 3), (1, 2), torch.float64)
    assert (made.shape, made.stride(), made.dtype) == ((2, 3), (1, 2), torch.float64)


def test_every_name_has_a_test() -> None:
    text = Path(__file__).read_text()
    untested = [name for name in torch_private.__all__ if f"torch_private.{name}" not in text]
    assert untested == []


class Wrapped:
    def __init__(self, data: Tensor, sub: int) -> None:
        self.data, self.sub = data, sub


def test_trees_are_registered_under_a_private_name_alone() -> None:
    """The public `torch.export.register_dataclass` takes dataclasses, which values are not."""
    torch_private.register_value(Wrapped)
    found = torch.func.vmap(lambda x: Wrapped(x.data * 2, x.sub))(Wrapped(torch.ones(3), 1))
    assert isinstance(found, Wrapped) and found.sub == 1 and found.data.tolist() == [2, 2, 2]
    assert not hasattr(torch.utils, "pytree") and not hasattr(torch, "pytree")


def test_version_is_that_of_torch() -> None:
    assert torch.__version__ == torch_private.BUILD
    assert torch_private.BUILD.split("+")[0] == torch_private.VERSION
    assert (torch_private.FOLDER / "nn" / "__init__.py").is_file()


def test_cuda_builds_have_streams_by_number() -> None:
    has_cuda = torch.version.cuda is not None
    assert hasattr(torch._C, "_cuda_getCurrentRawStream") == has_cuda
    if torch.cuda.is_available():
        assert torch_private.raw_stream(0) == torch.cuda.current_stream(0).cuda_stream


def test_operations_say_what_they_share_and_write() -> None:
    view, write = torch.ops.aten.t.default, torch.ops.aten.add_.Tensor
    assert isinstance(view, torch_private.OpOverload)
    assert torch_private.schema_of(view).arguments[0].alias_info is not None
    assert not torch_private.schema_of(view).is_mutable
    assert torch_private.schema_of(write).is_mutable
    assert torch_private.schema_of(len) is None


def test_views_know_their_base() -> None:
    x = torch.ones(2, 3)
    assert torch_private.base_of(x.t()) is x
    assert torch_private.base_of(x) is None


def test_modules_keep_tensors_children_and_hooks_in_tables() -> None:
    module = nn.BatchNorm1d(2)
    module.register_buffer("passing", torch.ones(1), persistent=False)
    assert torch_private.parameters_of(module) == dict(module.named_parameters())
    assert torch_private.buffers_of(module) == dict(module.named_buffers())
    assert torch_private.children_of(nn.Sequential(module)) == {"0": module}
    assert torch_private.non_persistent(module) == {"passing"}
    assert all(vars(module)[name] == {} for name in torch_private.HOOKS)
    module.register_forward_hook(print)
    assert len(vars(module)[torch_private.HOOKS[0]]) == 1


def test_hooks_that_come_later_are_not_guarded_unless_asked_for() -> None:
    for asked in (False, True):
        torch.compiler.reset()
        layer = nn.Linear(2, 2)
        call = torch.compile(lambda x, layer=layer: layer(x), backend="eager")
        with torch_private.watch_calls(print) if asked else nullcontext():
            before = call(torch.ones(2))
            layer.register_forward_hook(lambda module, given, out: out + 1)
            assert torch.equal(call(torch.ones(2)), before) != asked
    assert torch_private.has_hooks(layer)


def test_hooks_of_all_modules_are_not_guarded() -> None:
    layer = nn.Linear(2, 2)
    call = torch.compile(lambda x: layer(x), backend="eager")
    with torch_private.watch_calls(print):
        before = call(torch.ones(2))
        assert not torch_private.has_global_hooks()
        register = nn.modules.module.register_module_forward_hook
        hook = register(lambda module, given, out: out + 1)
        try:
            assert torch_private.has_global_hooks()
            assert len(torch_private.list_global_hooks()) == 1
            assert torch.equal(call(torch.ones(2)), before)
        finally:
            hook.remove()
    assert torch_private.list_global_hooks() == ()


def test_operations_are_noted_with_the_types_of_their_results() -> None:
    noted = torch_private.note_operations(lambda: torch.ones(2) * torch.ones(2).double())
    assert next(str(name).partition(".default")[0] for name, _ in noted) == "aten.ones"
    assert [dtype for _, ((dtype, _),) in noted][-1] == torch.float64


def test_a_traced_frame_tells_the_names_that_its_code_asks_for() -> None:
    def inner(x: Tensor) -> Tensor:
        return x.to(torch.get_default_dtype())

    frame = torch_private.trace_frame(lambda x: inner(x) * 2, (torch.ones(2),))
    assert "get_default_dtype" in frame.names


def test_hooks_of_what_is_saved_are_off_while_tracing() -> None:
    packed: list[Tensor] = []
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda x: packed.append(x) or x, lambda x: x):
        with torch_private.without_saved_hooks():
            x.sin()
        assert packed == []
        x.sin()
        assert len(packed) == 1


def test_operations_that_refuse_fake_tensors_would_be_printed() -> None:
    import logging

    log, told = logging.getLogger("torch._subclasses.fake_tensor"), logging.Handler()
    told.emit = mock.Mock()
    log.addHandler(told)
    try:
        for quiet, count in ((torch_private.silence_fakes(), 0), (nullcontext(), 1)):
            with quiet, torch_private.fake_mode(), pytest.raises(RuntimeError):
                torch.empty(3, 4) @ torch.empty(3, 4)
            assert told.emit.call_count == count
    finally:
        log.removeHandler(told)


def test_layouts_are_told_apart() -> None:
    x = torch.ones(2, 3)
    same = torch_private.same_layout([x])
    assert same(torch.zeros(2, 3))
    for other in (x.double(), torch.ones(3, 2).t(), torch.ones(2, 4), x.clone().requires_grad_()):
        assert not same(other)


def test_open_sizes_are_expressions_that_can_be_printed_and_computed() -> None:
    mode = torch_private.fake_mode()
    sizes = torch_private.open_sizes(mode, {"rows": 4, "columns": 6})
    twice = sizes["rows"] * 2 + 1
    assert torch_private.hint_of(twice) == 9
    expression = torch_private.expression_of(twice)
    row, column = (torch_private.expression_of(s) for s in sizes.values())
    printed = torch_private.print_expression(expression.xreplace({row: column}))
    assert eval(printed, {str(column): 10}) == 21
    assert torch_private.substitute_sizes(expression, {row: 10}) == 21
    assert torch_private.guards_of(mode) == [] and torch_private.equal_sizes(mode) == {}


def test_what_a_trace_decides_by_sizes_is_noted_with_its_place() -> None:
    mode = torch_private.fake_mode()
    size = torch_private.open_sizes(mode, {"rows": 4})["rows"]
    symbol = torch_private.expression_of(size)
    assert size < 10
    (guard,) = torch_private.guards_of(mode)
    assert guard.expr == (symbol < 10)
    assert any(getattr(f, "filename", "") == __file__ for f in torch_private.frames_of(guard))
    assert size == 4
    assert torch_private.equal_sizes(mode) == {symbol: 4}
    assert torch_private.simplify_expression(mode, symbol + 1) == 5


def test_reading_a_value_is_an_error_of_its_own() -> None:
    mode = torch_private.fake_mode()
    x = torch_private.fake_tensor(mode, (3,), (True,), torch.float32, "cpu")

    def choose(x: Tensor) -> Tensor:
        return x if x.sum() > 0 else -x

    with mode, pytest.raises(Exception) as caught:
        torch_private.trace_values(choose, [x])
    assert torch_private.reads_values(caught.value)
    assert not torch_private.reads_values(TypeError())


def test_generators_are_refused_by_name_or_traced() -> None:
    def function(x: Tensor) -> Tensor:
        return x * torch.rand(3, generator=torch.Generator())

    try:
        graph = torch_private.trace_values(function, [torch.ones(3)])
    except NotImplementedError as error:
        assert torch_private.VERSION < "2.13" and torch_private.refuses_generator(error)
    else:
        assert "aten.rand.generator" in targets(graph)
    assert not torch_private.refuses_generator(NotImplementedError("a"))


def test_a_check_is_no_dead_code() -> None:
    graph = torch_private.trace_values(lambda x: torch.linalg.inv(x), [torch.eye(2)])
    graph.graph.eliminate_dead_code()
    assert "aten._linalg_check_errors.default" in targets(graph)
    with pytest.raises(RuntimeError, match="singular"):
        graph(torch.zeros(2, 2))


def targets(graph: torch.fx.GraphModule) -> list[str]:
    return [str(n.target) for n in graph.graph.nodes if n.op == "call_function"]


def test_equal_lines_of_a_trace_are_merged() -> None:
    def function(x: Tensor) -> Tensor:
        return x.sin() * x.sin()

    graph = torch_private.trace_values(function, [torch.ones(2)])
    assert targets(graph) == ["aten.sin.default", "aten.sin.default", "aten.mul.Tensor"]
    merged = torch_private.merge_equal_lines(graph.graph)
    assert [str(n.target) for n in merged.nodes][1:3] == ["aten.sin.default", "aten.mul.Tensor"]


def test_writes_can_be_noted_and_checks_lose_their_tokens() -> None:
    mode = torch_private.fake_mode()
    with mode:
        fakes = [torch.eye(2), torch.eye(2)]
    written = []

    def function(x: Tensor, y: Tensor) -> Tensor:
        x, y = torch_private.wrapped([x, y])
        x.add_(1)
        written.extend(map(torch_private.was_written, (x, y)))
        return torch_private.plain(torch.linalg.inv(x))

    with torch_private.note_writes(mode):
        graph = torch_private.trace_values(function, fakes, {})
    assert written == [True, False]
    assert "aten.add.Tensor" in targets(graph)
    assert ("with_effects" in targets(graph)) == (torch_private.VERSION >= "2.13")
    torch_private.take_out_tokens(graph.graph)
    assert len(graph.graph.find_nodes(op="placeholder")) == 2
    assert "aten._linalg_check_errors.default" in targets(graph)


def test_torch_finds_the_mode_of_a_trace() -> None:
    from torch._guards import TracingContext

    mode = torch_private.fake_mode()
    with torch_private.tracing_context(mode):
        context = TracingContext.try_get()
        assert context is not None and context.fake_mode is mode
    assert TracingContext.try_get() is None


@pytest.mark.parametrize("name", ["default", "min-cut"])
def test_joint_graphs_are_cut_by_the_names_of_inputs(name: str) -> None:
    graph = torch.fx.Graph()
    x, tangent = graph.placeholder("primals_1"), graph.placeholder("tangents_1")
    y = graph.call_function(torch.ops.aten.sin.default, (x,))
    slope = graph.call_function(torch.ops.aten.cos.default, (x,))
    grad = graph.call_function(torch.ops.aten.mul.Tensor, (tangent, slope))
    graph.output((y, grad))
    mode = torch_private.fake_mode()
    with mode:
        for node in (x, tangent, y, slope, grad):
            node.meta["val"] = torch.ones(3)
    y.meta["partitioner_tag"] = "is_forward"
    joint = torch.fx.GraphModule(nn.Module(), graph)
    values = [x.meta["val"]], [tangent.meta["val"]]
    with mode, torch_private.tracing_context(mode):
        run = torch_private.partition_by_torch(name)
        _, backward = run(joint, list(values), num_fwd_outputs=1)
    assert [n.name for n in backward.graph.find_nodes(op="placeholder")][-1] == "tangents_1"


def test_inductor_takes_operations_apart() -> None:
    table = torch_private.inductor_table()
    assert torch.ops.aten.native_dropout.default in table
    assert torch.ops.aten.sin.default not in table


def test_settings_that_are_missing_only_save_time() -> None:
    from torch._inductor import aot_compile, list_options

    assert callable(aot_compile)
    missing = set(torch_private.OPTIONS) - set(list_options())
    assert missing <= {"cpp.enable_loop_tail_vec", "aot_inductor.enable_line_tables"}
    assert torch_private.CHILD_ENVIRONMENT == {"TORCHINDUCTOR_VEC_ISA_OK": "1"}


def test_an_archive_holds_what_it_is_given_and_its_loader_takes_five_words(tmp_path: Path) -> None:
    (tmp_path / "graph.so").write_bytes(b"no library")
    torch_private.write_archive(tmp_path / "graph.pt2", [str(tmp_path / "graph.so")])
    names = zipfile.ZipFile(tmp_path / "graph.pt2").namelist()
    assert any(name.endswith("data/aotinductor/model/graph.so") for name in names)
    with pytest.raises(RuntimeError):
        torch_private.load_graph((tmp_path / "graph.pt2").read_bytes())


def test_graphs_are_compiled_in_process() -> None:
    """A product is a call of a library: no code is generated that g++ would take time for."""
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.output((graph.call_function(torch.ops.aten.mm.default, (x, x)),))
    mode = torch_private.fake_mode()
    with mode:
        fake = torch.empty(3, 3)
    module = torch.fx.GraphModule(nn.Module(), graph)
    with torch_private.fresh_cache(), torch_private.tracing_context(mode), torch.no_grad():
        run = torch_private.compile_by_inductor(module, [fake])
    given = torch.rand(3, 3)
    torch.testing.assert_close(run(given)[0], given @ given)


def test_values_are_flattened_and_their_tree_is_text() -> None:
    pytree = torch_private.pytree
    leaves, tree = pytree.tree_flatten({"a": (1, [2]), "b": None})
    again = pytree.treespec_loads(pytree.treespec_dumps(tree))
    assert pytree.tree_unflatten(leaves, again) == {"a": (1, [2]), "b": None}
    assert [pytree.keystr(path) for path, _ in pytree.tree_leaves_with_path({"a": (1, 2)})] == [
        "['a'][0]", "['a'][1]",
    ]  # fmt: skip


def test_tensors_without_numbers_of_their_own_can_be_told_apart() -> None:
    seen: list[bool] = []

    def noted(x: Tensor) -> Tensor:
        seen.append(torch_private.transformed(x))
        return x.sum()

    torch.func.grad(noted)(torch.ones(2))
    torch.func.vmap(noted)(torch.ones(2, 3))
    assert seen == [True, True] and not torch_private.transformed(torch.ones(2))
    assert torch_private.without_storage(torch._efficientzerotensor((2,)))
    assert not torch_private.without_storage(torch.zeros(2))


def test_operations_are_seen_before_they_run_also_in_a_trace() -> None:
    seen: list[str] = []

    def run(operation: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(str(operation))
        return operation(*args, **kwargs)

    def function(x: Tensor) -> Tensor:
        with torch_private.run_operations(run):
            return torch.bernoulli(x) + 1

    graph = torch_private.trace_values(function, [torch.ones(3)])
    assert {"aten.bernoulli.default", "aten.add.Tensor"} <= set(seen)
    assert "aten.bernoulli.default" in [str(node.target) for node in graph.graph.nodes]


def test_a_nested_tensor_lies_like_no_other_and_ends_nothing() -> None:
    x = torch.ones(2)
    same = torch_private.same_layout([x])
    assert same(torch.zeros(2)) and not same(torch.nested.nested_tensor([x, x]))
    assert not same([1.0, 2.0])  # pyright: ignore[reportArgumentType]


def test_nodes_of_a_trace_keep_the_lines_of_the_source() -> None:
    def source(x: Tensor) -> Tensor:
        return torch.tanh(x)

    def joint(x: Tensor) -> Any:
        y = Interpreter(frame.graph).run(x)[0]
        torch_private.follow_gradients([y])
        return torch.autograd.grad(y, x, torch.ones(3))

    frame = torch_private.trace_frame(source, (torch.ones(3, requires_grad=True),))
    first = source.__code__.co_firstlineno
    with torch_private.keep_lines():
        graph = torch_private.trace_values(joint, [torch.ones(3, requires_grad=True)]).graph
    lines = {str(n.target): n.meta.get("stack_trace", "") for n in graph.nodes}
    assert f"line {first + 1}, in source" in lines["aten.tanh.default"]
    assert f"line {first + 1}, in source" in lines["aten.tanh_backward.default"]
    assert not torch.is_anomaly_enabled()


def test_what_inductor_does_is_seen_before_it_writes_code(tmp_path: Path) -> None:
    table = torch.arange(64.0)

    def function(x: Tensor) -> tuple[Tensor, ...]:
        summed = torch.tanh(x).sum(0), torch.exp(x.T.contiguous()).sum(0)
        return *summed, torch.ones(64) * 2 + table

    mode = torch_private.fake_mode()
    x = torch_private.fake_tensor(mode, (8, 8), (False, False), torch.float32, "cpu")
    with mode:
        graph = torch_private.trace_values(function, [x])
    with torch.no_grad(), torch_private.watch_lowering() as seen:
        torch_private.compile_ahead(graph, [x], tmp_path)
        raise AssertionError("it was compiled to its end")
    assert isinstance(seen, torch_private.Lowering) and seen.graph is not None
    names = [name for _, name, _, _ in seen.passes]
    assert "constant_fold_uniform_value" in names
    assert list(seen.constants.values()) == ["_tensor_constant0"] and seen.folded == []
    assert all(isinstance(node, torch_private.Scheduled) for node in seen.before)
    assert [part for node in seen.after for part in node.parts] == [n.name for n in seen.before]
    assert "no shared data" in [why for _, _, why in seen.apart]
    origins = {str(o.target) for node in seen.before for o in node.origins}
    assert {"aten.tanh.default", "aten.exp.default"} <= origins


def test_references_to_memory_are_counted_and_views_of_it_are_none_to_autograd() -> None:
    """What a tensor's storage has beside it: the object in Python that its `_cdata` is read of."""
    x = torch.arange(6.0)
    storage = x.untyped_storage()
    alone = torch_private.use_count(storage._cdata)
    y = torch_private.view_memory(x, (2, 2), (3, 1), 1)
    assert torch.equal(y, torch.tensor([[1.0, 2.0], [4.0, 5.0]]))
    assert y._base is None and not y._is_view()
    assert torch_private.use_count(storage._cdata) == alone + 1
    part = y.detach()[0]
    del y
    assert torch_private.use_count(storage._cdata) > alone
    del part
    assert torch_private.use_count(storage._cdata) == alone
    with torch.inference_mode():
        assert torch_private.view_memory(x, (2,), (1,), 0).is_inference()


def test_a_half_spectrum_is_transformed_along_axes_in_their_order() -> None:
    field = torch.randn(3, 4, 5, dtype=torch.float64)
    spectrum = torch.fft.rfftn(field)
    torch.testing.assert_close(torch_private.real_transform(spectrum, [0, 1, 2], 2, 5), field)


def test_the_transforms_of_mkl_are_handed_on() -> None:
    """Where they are not, compiled sequences transform as torch does, and take longer."""
    assert (torch_private.find_dfti() is not None) == torch.backends.mkl.is_available()


def test_compiled_code_and_code_from_the_caches_can_be_wrapped() -> None:
    import torch._functorch.config as functorch
    from torch._dynamo.utils import counters

    wrapped: list[torch_private.InductorCode] = []
    called: list[bool] = []

    def wrap(code: torch_private.InductorCode) -> Callable[..., Any]:
        def run(inputs: list[Any]) -> Any:
            called.append(code.is_backward)
            return code.run(inputs)

        wrapped.append(code)
        return run

    def product(x: Tensor, y: Tensor) -> Tensor:  # a call of a library: no code for g++
        return x @ y

    ahead = functorch.patch(force_non_lazy_backward_lowering=True, enable_autograd_cache=True)
    with torch_private.fresh_cache(), ahead:
        for _ in range(2):
            torch._dynamo.reset()
            counters.clear()
            compiled = torch.compile(product, fullgraph=True)
            x, y = torch.randn(3, 3, requires_grad=True), torch.randn(3, 3)
            with torch_private.wrap_inductor_code(wrap):
                z = compiled(x, y)
            (slope,) = torch.autograd.grad(z, x, torch.ones(3, 3))
            torch.testing.assert_close(slope, torch.ones(3, 3) @ y.t())
        assert counters["aot_autograd"]["autograd_cache_hit"] == 1
        torch._dynamo.reset()
        torch.compile(product, fullgraph=True)(x.detach(), y)
    assert [code.is_backward for code in wrapped] == [False, True] * 2
    assert called == [False, True] * 2
    assert all(code.devices == {"cpu"} and not code.writes for code in wrapped)


def test_a_capture_that_failed_is_forgotten() -> None:
    """Without that, torch would refuse random numbers; how much it keeps is for tests/gpu."""
    assert torch._C._cuda_endAllocateToPool and torch._C._cuda_releasePool
    if not torch.cuda.is_available():
        return
    graph, pool = torch.cuda.CUDAGraph(), torch.cuda.graph_pool_handle()
    x = torch.ones(3, device="cuda")
    with pytest.raises(RuntimeError), torch.cuda.stream(torch.cuda.Stream()):
        graph.capture_begin(pool, capture_error_mode="thread_local")
        try:
            x.sum().item()
        finally:
            graph.capture_end()
    torch_private.abandon_capture(0, pool)
    assert torch.rand(3, device="cuda").shape == (3,)


def test_backward_passes_would_write_over_what_was_saved() -> None:
    import torch._functorch.config as functorch
    from torch._functorch._aot_autograd import graph_compile

    assert functorch.donated_buffer
    usual = graph_compile.collect_bw_donated_buffer_idxs
    with torch_private.inductor._keep_saved():
        assert graph_compile.collect_bw_donated_buffer_idxs(None, None, None) == []  # pyright: ignore
    assert graph_compile.collect_bw_donated_buffer_idxs is usual


def mark(value: Tensor) -> Tensor:
    return value


class Broken(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = torch.tanh(mark(x))
        with torch.no_grad():
            y = y * 2
        torch._dynamo.graph_break()
        return y + 1


def test_dynamo_tells_a_backend_of_markers_modes_breaks_and_open_sizes() -> None:
    seen: list[tuple[Any, ...]] = []

    def backend(graph: torch.fx.GraphModule, example: Any) -> Any:
        inputs = torch_private.fake_inputs(example, graph.graph.find_nodes(op="placeholder"))
        assert inputs is not None
        mode = torch_private.traced_mode()
        assert all(x.fake_mode is mode for x in inputs if isinstance(x, Tensor))
        kinds = [type(x) for x in example]
        assert [*map(torch_private.is_open, inputs)] == [torch.SymInt in kinds] * len(inputs)
        where = torch_private.break_of(graph), torch_private.compilation_now()
        seen.append(([n.target for n in graph.graph.nodes], kinds, *where))
        return torch_private.run_as_written(graph, list(example))

    torch_private.keep_calls([mark])
    run = torch_private.compile_calls(Broken(), backend)
    x = torch.ones(3)
    torch_private.hint_open(x, [-1])
    assert torch_private.compilation_now() == (0, 0)
    assert torch.equal(run(x), torch.tanh(torch.ones(3)) * 2 + 1)
    (targets, kinds, broken, first), *_, (_, _, whole, last) = seen
    assert mark in targets and any(map(torch_private.is_mode_switch, targets))
    assert torch.SymInt in kinds
    assert broken is not None and "test_torch_private.py:" in broken and " in forward: " in broken
    assert whole is None and first[0] < last[0]
    count, layer = len(seen), nn.Tanh()
    for _ in range(2):  # nothing is shared with another
        torch_private.compile_calls(layer, backend)(torch.ones(3))
    assert len(seen) == count + 2


def test_a_backend_that_is_given_a_class_of_tensors_is_told() -> None:
    class Own(Tensor):
        pass

    mode = torch_private.fake_mode()
    x = torch.ones(3, requires_grad=True)
    graph = torch.fx.Graph()
    place, other = graph.placeholder("x"), graph.placeholder("y")
    with torch_private.tracing_context(mode):
        assert torch_private.fake_inputs([torch.ones(3).as_subclass(Own)], [place]) is None
        y = x * 1
        assert torch_private.fake_inputs([y, y[:2]], [place, other]) is None
        for place.meta in ({}, {"example_value": mode.from_tensor(x)}):
            (found,) = torch_private.fake_inputs([x], [place]) or []
            assert found.requires_grad and found.is_leaf and found.fake_mode is mode
            assert found.shape == x.shape
    assert torch_private.memory_of(y) == torch_private.memory_of(y[1:])
    assert torch_private.memory_of(y) != torch_private.memory_of(x)


def test_results_that_lie_alone_are_made_again() -> None:
    x = torch.ones(3, 4, requires_grad=True)
    for results, apart in (
        ([x * 2, x + 1], True), ([x.t()], False), ([(x * 2).t()], False), ([x], False),
        ([y := x * 2, y], False), ([3], False), ([], True),
    ):  # fmt: skip
        assert torch_private.is_apart(results, [x, 2]) == apart
    assert not torch_private.is_open(x) and not torch_private.is_open(3)
    made = torch_private.fake_like((x.t() * 2).detach())
    assert made.stride() == (1, 4) and not made.requires_grad and made.is_leaf
    assert torch_private.fake_like(x * 2).requires_grad
    assert not torch_private.fake_like(x * 2).is_leaf


def test_transforms_are_told_from_other_calls_in_a_graph() -> None:
    seen: list[Any] = []

    def backend(graph: torch.fx.GraphModule, example: Any) -> Any:
        seen.extend(node.target for node in graph.graph.nodes)
        return graph.forward

    def slope(x: Tensor) -> Tensor:
        return torch.func.grad(lambda y: y.sin().sum())(x)

    torch.compile(slope, backend=backend, fullgraph=True)(torch.ones(2))
    assert any(map(torch_private.is_transform, seen))
    assert not torch_private.is_transform(torch.sin)


def test_modes_are_entered_and_left_again() -> None:
    now, around = torch_private.Modes.now(), torch_private.ambient()
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        other = torch_private.Modes.now()
        assert other != now and torch_private.ambient() != around
    with other.entered():
        assert torch_private.Modes.now() == other
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.bfloat16
    assert torch_private.Modes.now() == now and torch_private.ambient() == around


def test_inductor_compiles_what_dynamo_wrote_with_its_backward() -> None:
    graph = torch.fx.symbolic_trace(lambda a, b: (a @ b,))
    mode = torch_private.fake_mode()
    kinds = torch.float32, "cpu"
    fakes = [torch_private.fake_tensor(mode, (3, 3), (False, False), *kinds) for _ in range(2)]
    with torch_private.tracing_context(mode):
        run = torch_private.compile_by_inductor(graph, [f.requires_grad_() for f in fakes])
    a, b = torch.randn(3, 3, requires_grad=True), torch.randn(3, 3, requires_grad=True)
    run(a, b)[0].sum().backward()
    torch.testing.assert_close(a.grad, torch.ones(3, 3) @ b.detach().T)


def test_operations_of_inductor_are_missing_until_it_is_imported() -> None:
    code = """
import torch
from ingot.graphs import torch_private
print(hasattr(torch.ops.prims, "fma"), end=" ")
torch_private.register_operations("x = torch.ops.prims.fma.default(a, b, c)")
print(hasattr(torch.ops.prims, "fma"))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def convolved_orders(
    rank: int, dtype: torch.dtype, last: int, groups: int, turned: bool, batch: int
) -> list[tuple[int, ...]]:
    """How the result of a convolution and both gradients lie."""
    lies: Any = {4: torch.channels_last, 5: torch.channels_last_3d}.get(rank)
    inner = [6] * (rank - 2)
    x = torch.randn(batch, 4, *inner, dtype=dtype)
    weight = torch.randn(4, 4 // groups, *(3 for _ in inner), dtype=dtype)
    x = x.to(memory_format=lies) if lies and last & 1 else x
    weight = weight.to(memory_format=lies) if lies and last & 2 else weight
    convolve = getattr(torch.nn.functional, f"conv{'_transpose' if turned else ''}{rank - 2}d")
    y = convolve(x.requires_grad_(), weight.requires_grad_(), groups=groups)
    return [order_of(z) for z in (y, *torch.autograd.grad(y.sum(), (x, weight)))]


@pytest.mark.parametrize("rank", [3, 4, 5])
@pytest.mark.parametrize("last", range(4))
def test_convolutions_lie_alike_whatever_the_batch(rank: int, last: int) -> None:
    """The way is chosen by the batch; where this fails sizes must be guarded again."""
    for dtype, groups, turned in itertools.product(
        (torch.float32, torch.float64), (1, 4), (False, True)
    ):
        few, many = (convolved_orders(rank, dtype, last, groups, turned, n) for n in (4, 40))
        assert few == many or (rank == 5 and last)


@pytest.mark.parametrize("free", [True, False])
def test_a_batch_is_guarded_for_the_way_to_convolve(free: bool) -> None:
    mode = torch_private.fake_mode()
    batch = torch_private.open_sizes(mode, {"n": 6})["n"]
    with mode, torch_private.free_convolutions() if free else nullcontext():
        x = torch.empty(batch, 3, 8, 8)
        torch.nn.functional.conv2d(x, torch.empty(4, 3, 3, 3))
    assert bool(torch_private.guards_of(mode)) is not free


def test_the_line_at_which_a_size_was_fixed_is_known() -> None:
    def call(x: Tensor) -> Tensor:
        return x if x.shape[0] == 4 else -x

    x = torch.ones(4, 3)
    torch_private.mark_open(x, 0)
    frame = torch_private.trace_frame(call, (x,))
    (stack,) = torch_private.stacks_of_sizes(frame.mode).values()
    assert (stack[-1].filename, stack[-1].name) == (__file__, "call")


def test_lstms_are_written_out_where_they_learn() -> None:
    """Without, oneDNN's layer stands in the graph, which keeps nothing for a backward pass."""
    mode = torch_private.fake_mode()
    with mode:
        net, x = nn.LSTM(4, 4), torch.randn(3, 2, 4)

    def count() -> int:
        found = torch_private.trace_values(lambda given: [net(given[0])[0]], [[x]], {})
        return sum("mkldnn_rnn" in str(node.target) for node in found.graph.nodes)

    assert count() == 1
    with torch_private.write_recurrences(learns=True):
        assert count() == 0


def test_torch_drops_nothing_between_layers_unless_told() -> None:
    mode = torch_private.fake_mode()
    with mode:
        net, x = nn.GRU(4, 4, 3, dropout=0.5), torch.randn(3, 2, 4)

    def count() -> int:
        found = torch_private.trace_values(lambda given: [net(given[0])[0]], [[x]], {})
        return sum("dropout" in str(node.target) for node in found.graph.nodes)

    assert count() == 0
    with torch_private.write_recurrences(learns=False):
        assert count() == 2


GROUP = """
import sys
from pathlib import Path

import torch
import torch.distributed as dist

from ingot.graphs import torch_private

dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=0, world_size=1)
if len(sys.argv) > 2:
    torch_private.import_collectives()
import torch._dynamo

dist.all_reduce(torch.ones(3))
dist.destroy_process_group()
names = [(task / "comm").read_text() for task in Path("/proc/self/task").iterdir()]
print(sum("gloo" in name for name in names))
"""


@pytest.mark.skipif(
    not Path("/proc/self/task").is_dir(), reason="threads are listed by Linux alone"
)
def test_a_group_of_ranks_would_outlive_its_end(tmp_path: Path) -> None:
    def count_threads(*words: str) -> int:
        command = [sys.executable, "-c", GROUP, str(tmp_path / f"store{len(words)}"), *words]
        return int(subprocess.run(command, capture_output=True, check=True).stdout)

    assert count_threads() > 0
    assert count_threads("import_collectives") == 0
