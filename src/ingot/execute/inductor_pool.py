"""Graphs compiled in child processes, a few at a time, and kept from one run to the next."""

import logging
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from torch import Tensor

from ingot.codegen import compiler
from ingot.codegen.cache import key_of, open_cache
from ingot.execute import inductor_child
from ingot.execute.torch_source import PrintedGraph
from ingot.graphs import torch_private
from ingot.graphs.child import Children

__all__ = ["FIX", "CompilePool"]

FIX = "report this with the model; --backend kernel compiles it meanwhile"

logger = logging.getLogger("ingot")


class CompilePool:
    """Up to `jobs` processes that compile, until it is closed."""

    def __init__(self, jobs: int) -> None:
        self.threads = ThreadPoolExecutor(jobs)
        self._children = Children()
        self._cache = open_cache()

    def close(self) -> None:
        """End all work."""
        # threads may be waiting for children, and compilers be at work for them
        self.threads.shutdown(wait=False, cancel_futures=True)
        self._children.close()
        self.threads.shutdown()

    def compile(
        self, file: Path, graph: PrintedGraph, dtype: str, points: Sequence[Sequence[Tensor]],
        check: Callable[[list[list[Tensor]]], None],
    ) -> None:  # fmt: skip
        """Write a graph to a file; check: raises where what a new one gives at points is wrong."""
        key = _make_key(graph, dtype)
        archive = self._cache.find("graph", key)
        if archive is None:
            compiler.find_compiler()
            with tempfile.TemporaryDirectory(prefix="ingot-", ignore_cleanup_errors=True) as place:
                folder = Path(place)
                torch.save(
                    {
                        "dtype": dtype,
                        "source": graph.source,
                        "tables": torch.tensor(graph.tables, dtype=getattr(torch, dtype)),
                        "index": torch.tensor(graph.index, dtype=torch.int64),
                        "rows": [rows for _, rows in graph.arguments],
                        "points": points,
                    },
                    folder / "job.pt",
                )
                wall, busy = self._ask(folder, file.name)
                told = "%s: %d operations, %.1f s, of the processor %.1f s"
                logger.info(told, file.name, graph.operations, wall, busy)
                check(torch.load(folder / "gives.pt", weights_only=True))
                archive = (folder / "graph.pt2").read_bytes()
            self._cache.put("graph", key, archive)
        file.write_bytes(archive)

    def _ask(self, folder: Path, name: str) -> tuple[float, float]:
        """Have a child compile a job; the seconds it took, and those it kept a processor busy."""
        work = "ingot.execute.inductor_child:compile_job"
        return self._children.run(work, folder, f"the graph '{name}'", FIX)


def _make_key(graph: PrintedGraph, dtype: str) -> str:
    """What a compiled graph depends on."""
    parts = [
        graph.source, repr(graph.tables), repr(graph.index), repr(graph.arguments), dtype,
        *(Path(str(m.__file__)).read_text() for m in (inductor_child, torch_private)),
        torch_private.BUILD, compiler.read_processor_flags(), compiler.read_version(),
    ]  # fmt: skip
    return key_of(*parts)
