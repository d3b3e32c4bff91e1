"""A graph -> something that runs: by Inductor ahead of time, as it is, or by any callable."""

import io
import logging
import math
import operator
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule

from ingot.codegen import compiler
from ingot.codegen.cache import key_of, open_cache
from ingot.codegen.disk import raise_if_full
from ingot.errors import IngotError, Problem, raise_if
from ingot.graphs import torch_private
from ingot.graphs.child import TIME_LIMIT, share_children
from ingot.graphs.openmp import run_alone
from ingot.graphs.sizes import Open, evaluated
from ingot.train.cut import constants_of, inputs_of

__all__ = [
    "QUICK",
    "WORTH_THREADS",
    "Compiler",
    "Half",
    "Run",
    "compile_archive",
    "compile_half",
    "eager",
    "find_no_compiler",
    "from_source",
    "inductor",
]

Run = Callable[[list[Tensor]], Sequence[Tensor]]
Compiler = str | Callable[[GraphModule, list[Tensor]], Callable[..., Sequence[Tensor]]]

WORTH_THREADS = 20_000
"""The number of values that a graph takes from which a second thread pays."""

LOG = logging.getLogger("ingot")

SETTINGS: dict[str, Any] = {
    # 2.13: six dry compiles (15 s) would ask which instructions g++ can emit
    "cpp.vec_isa_ok": True,
    # indices come from the user: one that is out of bounds must not read foreign memory
    "assert_indirect_indexing": True,
}


QUICK: dict[str, Any] = {
    # a call takes 12 µs less, after others have filled the caches 70; g++ takes two seconds more
    "aot_inductor.compile_wrapper_opt_level": "O1",
}
"""Settings for graphs of which many run in turn at every call."""


@dataclass(frozen=True, slots=True)
class Half:
    """A compiled graph: how to run it, the archive or the source to save it by, and its text.

    large: the same for calls that are known to be worth all threads, if `run` asks.
    """

    kind: str
    run: Run
    archive: bytes = b""
    source: str = ""
    constants: dict[str, Tensor] = field(default_factory=dict)
    text: str = ""
    large: Run | None = None


def compile_half(
    graph: GraphModule, how: Compiler, name: str, shapes: Open, limit: float = TIME_LIMIT,
    settings: Mapping[str, Any] = {},
) -> Half:  # fmt: skip
    """Compile a graph as asked; a callable takes the graph and its inputs without numbers.

    settings: of Inductor, which go before ours.
    """
    if how == "eager":
        return Half("eager", eager(graph), source=graph.code, constants=constants_of(graph))
    if how == "inductor":
        chosen = {**SETTINGS, **settings}
        make = partial(_compile_apart, graph, name, shapes, limit, chosen)
        return inductor(open_cache().obtain("graph", _key(graph, shapes, chosen), make))
    raise_if(find_no_compiler(name, how))
    assert not isinstance(how, str)
    made = how(graph, inputs_of(graph))
    return Half("callable", lambda given: made(*given))


def find_no_compiler(name: str, how: object) -> Iterator[Problem]:
    """What is no way to compile a graph."""
    if how not in ("inductor", "eager") and (isinstance(how, str) or not callable(how)):
        told = f"there is no compiler called '{how}' ({name})"
        yield Problem("wrong-argument", told, None, "choose 'inductor', 'eager' or a callable")


def eager(graph: GraphModule) -> Run:
    """Run a graph line by line."""
    return lambda given: graph(*given)


def inductor(archive: bytes) -> Half:
    """Run a compiled graph; callers pass what it was compiled for, nothing is checked here."""
    graph = torch_private.load_graph(archive).boxed_run
    numel, threads = Tensor.numel, torch.get_num_threads

    def run(given: list[Tensor]) -> Sequence[Tensor]:
        if threads() == 1 or sum(map(numel, given)) >= WORTH_THREADS:
            return graph(given)
        with run_alone(True):
            return graph(given)

    return Half("inductor", run, archive, large=graph)


def from_source(source: str, constants: dict[str, Tensor]) -> Run:
    """Run a graph from the text of its code and its constants."""
    root = torch.nn.Module()
    for name, value in constants.items():
        setattr(root, name, value)
    space: dict[str, Any] = {
        "torch": torch, "device": torch.device, "operator": operator, "math": math,
        "inf": math.inf, "nan": math.nan,
    }  # fmt: skip
    torch_private.register_operations(source)
    exec(compile(source, "<graph>", "exec"), space)
    forward = space["forward"]
    return lambda given: forward(root, *given)


def _compile_apart(
    graph: GraphModule, name: str, shapes: Open, limit: float, settings: Mapping[str, Any]
) -> bytes:
    """The archive of a graph, made by a child process, or here where only this one can."""
    if not _is_portable(graph):
        return compile_archive(graph, name, shapes, settings)
    bare = GraphModule({name: getattr(graph, name) for name in constants_of(graph)}, graph.graph)
    job = {"graph": bare, "takes": _takes(graph, shapes), "open": shapes.hints, "name": name,
           "modes": _modes(), "settings": settings}  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="ingot-", ignore_cleanup_errors=True) as scratch:
        place = Path(scratch)
        torch.save(job, place / "job.pt")
        work = "ingot.train.compile:compile_job"
        wall, busy = share_children().run(work, place, f"the {name} graph", _fix(name), limit)
        LOG.info("%s: compiled in %.1f s, of the processor %.1f s", name, wall, busy)
        return (place / "graph.pt2").read_bytes()


def compile_job(folder: Path) -> None:
    """Compile the graph that a folder holds; runs in a child process."""
    torch_private.register_operations()  # the graph may hold some, and a child knows none yet
    job = torch.load(folder / "job.pt", weights_only=False)
    deterministic, precision, dtype = job["modes"]
    torch.set_default_dtype(dtype)
    torch.use_deterministic_algorithms(deterministic)
    torch.set_float32_matmul_precision(precision)
    shapes = Open(job["open"])
    places = job["graph"].graph.find_nodes(op="placeholder")
    for place, (sizes, strides, dtype, device) in zip(places, job["takes"], strict=True):
        lies = [[evaluated(n, shapes.symbols) for n in x] for x in (sizes, strides)]
        with shapes.mode:
            place.meta["val"] = torch.empty_strided(*lies, dtype=dtype, device=device)
    archive = compile_archive(job["graph"], job["name"], shapes, job["settings"])
    if any(device.type != "cpu" for *_, device in job["takes"]):
        # a torch 2.11 for CUDA 13 was ended by what it had compiled itself: here it is told
        torch_private.load_graph(archive)
    (folder / "graph.pt2").write_bytes(archive)


def _is_portable(graph: GraphModule) -> bool:
    """Whether another process knows the operations of a graph: torch's, not those of users."""
    parts = [part for part in graph.modules() if isinstance(part, GraphModule)]
    nodes = [node for part in parts for node in part.graph.nodes]
    return all(getattr(n.target, "namespace", "aten") in ("aten", "prims", "prim") for n in nodes)


def _takes(graph: GraphModule, shapes: Open) -> list[tuple[Any, ...]]:
    return [
        ([*map(shapes.text, x.shape)], [*map(shapes.text, x.stride())], x.dtype, x.device)
        for x in inputs_of(graph)
    ]


def _modes() -> tuple[bool, str, torch.dtype]:
    """What Inductor compiles for besides a graph."""
    exact, precision = (
        torch.are_deterministic_algorithms_enabled(),
        torch.get_float32_matmul_precision(),
    )
    return exact, precision, torch.get_default_dtype()


def _fix(name: str) -> str:
    return f"compile_{name}='eager' runs it meanwhile"


def compile_archive(
    graph: GraphModule, name: str, shapes: Open, settings: Mapping[str, Any] = SETTINGS
) -> bytes:
    """Compile a graph ahead of time into an archive of torch's."""
    compiler.find_compiler()
    with tempfile.TemporaryDirectory(prefix="ingot-", ignore_cleanup_errors=True) as scratch:
        place = Path(scratch)
        try:
            with torch.no_grad(), torch_private.without_autocast(), warnings.catch_warnings():
                # 2.13: torch warns of its own way to copy what it compiles
                warnings.simplefilter("ignore", FutureWarning)
                files = torch_private.compile_ahead(graph, inputs_of(graph), place, **settings)
        except Exception as error:
            raise_if_full(str(error))
            told = f"torch could not compile the {name} graph: {type(error).__name__}: {error}"
            raise IngotError([Problem("compiler-failed", told, None, _fix(name))]) from error
        if shapes.tied():
            told = f"torch compiled the {name} graph for one size only: {', '.join(shapes.tied())}"
            fix = "leave the size out of 'dynamic'"
            raise IngotError([Problem("fixed-size", told, None, fix)])
        torch_private.write_archive(place / "graph.pt2", files)
        return (place / "graph.pt2").read_bytes()


def _key(graph: GraphModule, shapes: Open, settings: Mapping[str, Any]) -> str:
    """What a compiled graph depends on."""
    held = [_bytes(x) for x in constants_of(graph).values()]
    gpus = {torch.cuda.get_device_name(x.device) for x in inputs_of(graph) if x.is_cuda}
    parts = [
        graph.code, *sorted(gpus), repr(_takes(graph, shapes)), repr(shapes.hints), *held,
        repr(settings), repr(_modes()), Path(str(torch_private.inductor.__file__)).read_text(),
        torch_private.BUILD, compiler.read_processor_flags(), compiler.read_version(),
    ]  # fmt: skip
    return key_of(*parts)


def _bytes(value: Any) -> bytes:
    stream = io.BytesIO()
    torch.save(value, stream)
    return stream.getvalue()
