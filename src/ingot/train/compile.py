"""A graph -> something that runs: by Inductor ahead of time, as it is, or by any callable."""

import io
import logging
import math
import operator
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
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
from ingot.errors import IngotError, Problem
from ingot.graphs import torch_private
from ingot.graphs.openmp import run_alone
from ingot.graphs.sizes import Open
from ingot.train.call import autocast_now
from ingot.train.cut import constants_of, inputs_of

__all__ = [
    "Compiler",
    "Half",
    "Run",
    "compile_archive",
    "compile_half",
    "eager",
    "from_source",
    "inductor",
    "without_autocast",
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


@dataclass(frozen=True, slots=True)
class Half:
    """A compiled graph: how to run it, the archive or the source to save it by, and its text."""

    kind: str
    run: Run
    archive: bytes = b""
    source: str = ""
    constants: dict[str, Tensor] = field(default_factory=dict)
    seconds: float = 0.0
    text: str = ""


def compile_half(graph: GraphModule, how: Compiler, name: str, shapes: Open) -> Half:
    """Compile a graph as asked; a callable takes the graph and its inputs without numbers."""
    begun = time.perf_counter()
    if how == "eager":
        return Half("eager", eager(graph), source=graph.code, constants=constants_of(graph))
    if how == "inductor":
        archive = _archive(graph, name, shapes)
        return Half("inductor", inductor(archive), archive, seconds=time.perf_counter() - begun)
    if isinstance(how, str):
        told = f"there is no compiler called '{how}'"
        fix = "choose 'inductor', 'eager' or a callable"
        raise IngotError([Problem("wrong-argument", told, None, fix)])
    made = how(graph, inputs_of(graph))
    return Half("callable", lambda given: made(*given), seconds=time.perf_counter() - begun)


def eager(graph: GraphModule) -> Run:
    """Run a graph line by line."""
    return lambda given: graph(*given)


def inductor(archive: bytes) -> Run:
    """Run a compiled graph; callers pass what it was compiled for, nothing is checked here."""
    graph = torch_private.load_graph(archive).boxed_run
    numel, threads = Tensor.numel, torch.get_num_threads

    def run(given: list[Tensor]) -> Sequence[Tensor]:
        if threads() == 1 or sum(map(numel, given)) >= WORTH_THREADS:
            return graph(given)
        with run_alone(True):
            return graph(given)

    return run


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


def _archive(graph: GraphModule, name: str, shapes: Open) -> bytes:
    """The archive of a graph, compiled unless an equal one was."""
    make = partial(compile_archive, graph, name, shapes)
    return open_cache().obtain("graph", _key(graph, shapes), make)


def compile_archive(graph: GraphModule, name: str, shapes: Open) -> bytes:
    """Compile a graph ahead of time into an archive of torch's."""
    compiler.find_compiler()
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="ingot-", ignore_cleanup_errors=True) as scratch:
        place = Path(scratch)
        try:
            with torch.no_grad(), without_autocast(), warnings.catch_warnings():
                # 2.13: torch warns of its own way to copy what it compiles
                warnings.simplefilter("ignore", FutureWarning)
                files = torch_private.compile_ahead(graph, inputs_of(graph), place, **SETTINGS)
        except Exception as error:
            raise_if_full(str(error))
            told = f"torch could not compile the {name} graph: {type(error).__name__}: {error}"
            fix = f"compile_{name}='eager' runs it meanwhile"
            raise IngotError([Problem("compiler-failed", told, None, fix)]) from error
        if shapes.tied():
            told = f"torch compiled the {name} graph for one size only: {', '.join(shapes.tied())}"
            fix = "leave the size out of 'dynamic'"
            raise IngotError([Problem("fixed-size", told, None, fix)])
        torch_private.write_archive(place / "graph.pt2", files)
        archive = (place / "graph.pt2").read_bytes()
    LOG.info("%s: compiled in %.1f s", name, time.perf_counter() - begun)
    return archive


def without_autocast() -> AbstractContextManager[Any]:
    """The types that a graph was traced with, whatever autocast would make of them."""
    on = autocast_now()
    if not on:
        return nullcontext()
    stack = ExitStack()
    for device in on:
        stack.enter_context(torch.autocast(device, enabled=False))
    return stack


def _key(graph: GraphModule, shapes: Open) -> str:
    """What a compiled graph depends on."""
    takes = [f"{x.dtype} {x.device} {[shapes.text(n) for n in x.shape]}" for x in inputs_of(graph)]
    hints = {name: torch_private.hint_of(symbol) for name, symbol in shapes.symbols.items()}
    held = [_bytes(x) for x in constants_of(graph).values()]
    parts = [
        graph.code, *takes, repr(hints), *held, repr(SETTINGS),
        Path(str(torch_private.__file__)).read_text(),
        torch_private.BUILD, compiler.read_processor_flags(), compiler.read_version(),
    ]  # fmt: skip
    return key_of(*parts)


def _bytes(value: Any) -> bytes:
    stream = io.BytesIO()
    torch.save(value, stream)
    return stream.getvalue()
