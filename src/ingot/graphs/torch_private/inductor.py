"""Inductor: ahead of time, at calls, its lowering, and its archives."""

import importlib
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node

from ingot.codegen.library import private_file
from ingot.graphs.torch_private.fakes import is_open

__all__ = [
    "CHILD_ENVIRONMENT", "OPTIONS", "InductorCode", "Lowering", "Scheduled", "compile_ahead",
    "compile_by_inductor", "fresh_cache", "inductor_table", "load_graph", "register_operations",
    "run_as_written", "watch_lowering", "wrap_inductor_code", "write_archive",
    "write_checkpoints",
]  # fmt: skip


class InductorCode(NamedTuple):
    """What Inductor made of a graph: it takes a list, and empties it.

    static, writes: where in the list Dynamo found parameters, and where tensors are written to.
    devices: of all that is in the graph, as in "cuda:0"; open_sizes: whether sizes may vary.
    """

    run: Callable[[list[Any]], Sequence[Any]]
    is_backward: bool
    static: frozenset[int]
    writes: frozenset[int]
    devices: frozenset[str]
    open_sizes: bool


_wrapping = threading.local()


@contextmanager
def wrap_inductor_code(wrap: Callable[[InductorCode], Callable[..., Any]]) -> Iterator[None]:
    """What Inductor compiles in this thread, or finds in its caches, runs as `wrap` makes it.

    Both ways pass `CompiledFxGraph.post_compile`, whose effects are in no cache.
    """
    from torch._inductor.output_code import CompiledFxGraph

    kind: Any = CompiledFxGraph
    usual = kind.post_compile

    def post_compile(code: Any, inputs: Any, constants: Any, settings: Any) -> None:
        usual(code, inputs, constants, settings)
        wrap = getattr(_wrapping, "wrap", None)
        if wrap is not None:
            kinds = set(code.device_types)
            devices = {f"{kind}:{i}" for kind in kinds - {"cpu"} for i in code.device_idxs}
            backward = bool(settings["is_backward"])
            # torch counts all that a backward pass is given as static
            static = () if backward else settings.get("static_input_idxs", ())
            made = InductorCode(
                code.current_callable, backward, frozenset(static),
                frozenset(code.mutated_input_idxs), frozenset(devices | kinds & {"cpu"}),
                any(map(is_open, inputs)),
            )  # fmt: skip
            code.current_callable = wrap(made)

    if not hasattr(usual, "_wrapping"):
        post_compile._wrapping = True  # pyright: ignore[reportFunctionMemberAccess]
        kind.post_compile = post_compile
    before = getattr(_wrapping, "wrap", None)
    _wrapping.wrap = wrap
    try:
        yield
    finally:
        _wrapping.wrap = before


def inductor_table() -> dict[Any, Any]:
    """What Inductor replaces operations by before it compiles."""
    from torch._inductor.decomposition import select_decomp_table

    return dict(select_decomp_table())


# six dry compiles (15 s) ask which instructions g++ can emit; with this set none is asked
CHILD_ENVIRONMENT = {"TORCHINDUCTOR_VEC_ISA_OK": "1"}

OPTIONS: dict[str, Any] = {
    "aot_inductor.package": True,
    # pointwise operations are inlined into each of their users until there are this many of
    # them, so that the default, 30 until 2.12 and 50 since, takes time exponential in the length
    # of a chain
    "realize_opcount_threshold": 8,
    "realize_reads_threshold": 8,
    "realize_acc_reads_threshold": 10**6,
    # loops are split at 64 operations by default, and run four times slower
    "max_fusion_size": 10**6,
    "cpp.max_horizontal_fusion_size": 10**6,
    # the number of threads of the compiling process would be written into the code
    "cpp.dynamic_threads": True,
    # the last points, fewer than a vector, would have masked code of their own, on which g++
    # spends four times as long as on all else
    "cpp.enable_loop_tail_vec": False,
    # g++ spends five seconds on what surrounds the kernels of every graph, one less like this
    "aot_inductor.compile_wrapper_opt_level": "O0",
    "aot_inductor.enable_line_tables": False,
    # indices that come from a table of ours would be checked at run time
    "assert_indirect_indexing": False,
}

_MODEL = "model"


def compile_ahead(
    module: GraphModule, inputs: Sequence[Tensor], scratch: Path, **settings: Any
) -> list[Any]:
    """The files of a graph compiled ahead of time; settings go before ours."""
    import torch._inductor
    from torch._inductor.utils import fresh_cache

    wanted = {**OPTIONS, **settings, "aot_inductor.output_path": str(scratch / "graph")}
    if any("index_put" in str(n.target) or "scatter" in str(n.target) for n in module.graph.nodes):
        # 2.13: sums at indices were wrong in a graph whose chains were cut below torch's default
        wanted = {name: value for name, value in wanted.items() if "realize" not in name}
    # 2.11 and 2.12 lack settings that only save time
    known = set(torch._inductor.list_options())
    options = {name: value for name, value in wanted.items() if name in known}
    # torch opens what it finds in its own cache unchecked, and gains nothing from it ahead of time
    with fresh_cache(dir=str(scratch), delete=False):
        files = torch._inductor.aot_compile(module, tuple(inputs), options=options)
    assert isinstance(files, list)
    return files


def compile_by_inductor(graph: GraphModule, inputs: list[Any]) -> Callable[..., Any]:
    """Compile as `torch.compile` does, backward too, so that all guards are known at once."""
    import torch._functorch.config as functorch
    from torch._inductor.compile_fx import compile_fx

    with functorch.patch(force_non_lazy_backward_lowering=True), _keep_saved():
        return compile_fx(graph, inputs)  # pyright: ignore[reportReturnType]


def _keep_saved() -> AbstractContextManager[Any]:
    """Let no backward pass write over what was saved for it, so that it can run again.

    The setting `donated_buffer` is asked at every backward pass: switched off while compiling only,
    torch refuses `retain_graph` all the more.
    """
    from torch._functorch._aot_autograd import graph_compile

    nothing: Callable[..., list[int]] = lambda *_: []  # noqa: E731
    return mock.patch.object(graph_compile, "collect_bw_donated_buffer_idxs", nothing)


def run_as_written(graph: GraphModule, inputs: list[Any]) -> Callable[..., Any]:
    """Compile nothing."""
    for part in graph.modules():
        if isinstance(part, GraphModule):
            write_checkpoints(part.graph)
            part.recompile()
    return graph.forward


def write_checkpoints(graph: Graph) -> None:
    """Let checkpoints of a graph that nothing compiles draw the same numbers again.

    Dynamo's own operator leaves that to Inductor (torch 2.11 to 2.15).
    """
    from torch._higher_order_ops.wrap import tag_activation_checkpoint

    for node in graph.nodes:
        if node.target is tag_activation_checkpoint:
            node.target = _run_checkpoint


def _run_checkpoint(body: GraphModule, *args: Any, **kwargs: Any) -> Any:
    from torch._higher_order_ops.wrap import TagActivationCheckpoint
    from torch.utils.checkpoint import checkpoint, noop_context_fn

    options, _ = TagActivationCheckpoint.divide_kwargs(kwargs)
    choose = body.meta.get("_checkpoint_context_fn", noop_context_fn)
    options |= {"use_reentrant": False, "context_fn": choose}
    return checkpoint(body.forward, *args, **options)


@contextmanager
def fresh_cache() -> Iterator[None]:
    """No code that Inductor compiled earlier is found."""
    from torch._inductor.utils import fresh_cache

    with fresh_cache():
        yield


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A node of Inductor's scheduler: the nodes fused into it, and the lines it computes."""

    name: str
    kind: str
    text: str
    parts: tuple[str, ...]
    origins: tuple[Node, ...]


@dataclass(slots=True)
class Lowering:
    """What Inductor does to a graph up to the fusion of its loops.

    passes: subsystem, name, nodes before and after, of those that changed the graph; constants:
    its name of each tensor that it stores, and the graph's; apart: pairs that it did not fuse, why.
    """

    passes: list[tuple[str, str, int, int]] = field(default_factory=list)
    graph: GraphModule | None = None
    constants: dict[str, str] = field(default_factory=dict)
    folded: list[str] = field(default_factory=list)
    before: list[Scheduled] = field(default_factory=list)
    after: list[Scheduled] = field(default_factory=list)
    apart: dict[tuple[str, str, str], None] = field(default_factory=dict)


class _Lowered(BaseException):
    """Nothing of Inductor's may catch it."""


@contextmanager
def watch_lowering() -> Iterator[Lowering]:
    """Note what a compilation inside does, and end it before any code is written."""
    from torch._inductor.scheduler import Scheduler, WhyNoFuse
    from torch._inductor.virtualized import V
    from torch.fx.passes.graph_transform_observer import GraphTransformObserver

    seen = Lowering()
    fuse, refuse = Scheduler.fuse_nodes, WhyNoFuse.__call__
    enter, leave = GraphTransformObserver.__enter__, GraphTransformObserver.__exit__
    texts: dict[int, tuple[str, int]] = {}

    def entered(self: Any) -> Any:
        texts[id(self)] = str(self.gm.graph), len(self.gm.graph.nodes)
        return enter(self)

    def left(self: Any, *error: Any) -> Any:
        text, count = texts.pop(id(self))
        if str(self.gm.graph) != text:
            row = self.subsystem or "", self.passname, count, len(self.gm.graph.nodes)
            seen.passes.append(row)
        return leave(self, *error)

    def refused(self: Any, reason: str, *args: Any) -> None:
        refuse(self, reason, *args)
        seen.apart[self.name1, self.name2, reason % args] = None

    def fused(self: Any, nodes: Any) -> Any:
        lowering: Any = V.graph
        seen.graph = lowering.module
        seen.constants = {k: str(lowering.allocated_constant_name[k]) for k in lowering.constants}
        seen.folded = [str(name) for name in lowering.folded_constants]
        seen.before = [_scheduled(node) for node in nodes]
        seen.after = [_scheduled(node) for node in fuse(self, nodes)]
        raise _Lowered

    with (
        mock.patch.object(GraphTransformObserver, "__enter__", entered),
        mock.patch.object(GraphTransformObserver, "__exit__", left),
        mock.patch.object(WhyNoFuse, "__call__", refused),
        mock.patch.object(Scheduler, "fuse_nodes", fused),
    ):
        try:
            yield seen
        except _Lowered:
            return


def _scheduled(node: Any) -> Scheduled:
    parts = node.get_nodes()
    origins = {o: None for p in parts if p.node is not None for o in p.node.get_origins()}
    names = tuple(p.get_name() for p in parts)
    return Scheduled(node.get_name(), type(node).__name__, node.debug_str(), names, tuple(origins))


def write_archive(path: Path, files: list[Any]) -> None:
    """Write one graph that was compiled ahead into an archive of torch's."""
    from torch.export.pt2_archive._package import package_pt2

    package_pt2(str(path), aoti_files={_MODEL: files})


def register_operations(code: str = "torch.ops.prims.fma") -> None:
    """Import Inductor's own operations where code names one that is not there, such as prims.fma.

    2.13: its decompositions use them, as that of the gradient of softmax does.
    """
    prims: Any = torch.ops.prims
    if not all(hasattr(prims, name) for name in re.findall(r"torch\.ops\.prims\.(\w+)", code)):
        importlib.import_module("torch._inductor.inductor_prims")


def load_graph(archive: bytes) -> Any:
    """The graph of an archive. Its `boxed_run` takes a list, empties it, and checks nothing.

    The public loader imports the compiler, looks for g++ and reads JSON at every call.
    """
    native: Any = torch._C
    with private_file(archive, ".pt2") as file:
        return native._aoti.AOTIModelPackageLoader(str(file), _MODEL, False, 1, -1)
