"""Graphs compiled in child processes, a few at a time, and kept from one run to the next.

A crash of torch or g++ ends a child, never this process.
"""

import json
import logging
import os
import queue
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from ingot.codegen import compiler
from ingot.codegen.cache import key_of, open_cache
from ingot.codegen.disk import raise_if_full
from ingot.errors import IngotError, Problem
from ingot.execute import inductor_child
from ingot.execute.inductor_graphs import PrintedGraph
from ingot.graphs import torch_private

__all__ = ["CompilePool"]

logger = logging.getLogger("ingot")


@dataclass(slots=True)
class _Child:
    process: "subprocess.Popen[str]"
    log: Path


class CompilePool:
    """Up to `jobs` processes that compile; used as a context, they end with it."""

    def __init__(self, jobs: int) -> None:
        self.threads = ThreadPoolExecutor(jobs)
        self._idle: queue.SimpleQueue[_Child] = queue.SimpleQueue()
        self._all: list[_Child] = []
        self._ended = False
        self._cache = open_cache()

    def __enter__(self) -> "CompilePool":
        return self

    def __exit__(self, *_: object) -> None:
        # threads may be waiting for children, and compilers be at work for them
        self._ended = True
        self.threads.shutdown(wait=False, cancel_futures=True)
        for child in self._all:
            with suppress(ProcessLookupError):
                os.killpg(child.process.pid, signal.SIGKILL)
            child.process.wait()
        self.threads.shutdown()
        for child in self._all:
            child.log.unlink()

    def compile(
        self, file: Path, graph: PrintedGraph, dtype: str, points: list[list[Tensor]]
    ) -> list[list[Tensor]] | None:
        """Write a graph to a file; what it gives at the points, or None if it was tried before."""
        archive = self._cache.find("graph", _make_key(graph, dtype))
        if archive is not None:
            file.write_bytes(archive)
            return None
        compiler.find_compiler()
        with tempfile.TemporaryDirectory(prefix="ingot-", ignore_cleanup_errors=True) as scratch:
            folder = Path(scratch)
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
            gives = torch.load(folder / "gives.pt", weights_only=True)
            file.write_bytes((folder / "graph.pt2").read_bytes())
        return gives

    def keep(self, file: Path, graph: PrintedGraph, dtype: str) -> None:
        """Remember a graph that was tried and found right."""
        self._cache.put("graph", _make_key(graph, dtype), file.read_bytes())

    def _ask(self, folder: Path, name: str) -> tuple[float, float]:
        """Have a child compile a job; the seconds it took, and those it kept a processor busy."""
        try:
            child = self._idle.get_nowait()
        except queue.Empty:
            child = self._start_child()
        if self._ended:
            os.killpg(child.process.pid, signal.SIGKILL)
        assert child.process.stdin is not None and child.process.stdout is not None
        try:
            child.process.stdin.write(f"{folder}\n")
            child.process.stdin.flush()
            line = child.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            code = child.process.wait()
            raise_if_full(_read_log(child))
            raise _compile_error(name, f"its process ended with {code}", _read_log(child))
        self._idle.put(child)
        verdict = json.loads(line)
        if verdict["error"] is not None:
            logger.debug(verdict["trace"])
            raise_if_full(verdict["trace"])
            raise _compile_error(name, verdict["error"], "")
        return verdict["wall"], verdict["busy"]

    def _start_child(self) -> _Child:
        handle, said = tempfile.mkstemp(prefix="ingot-")
        environment = {**os.environ, **torch_private.CHILD_ENVIRONMENT}
        # the same Ingot as here, wherever it was imported from
        environment["PYTHONPATH"] = os.pathsep.join(sys.path)
        process = subprocess.Popen(
            [sys.executable, "-c", "from ingot.execute.inductor_child import main; main()"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=handle, text=True,
            env=environment, start_new_session=True,
        )  # fmt: skip
        os.close(handle)
        child = _Child(process, Path(said))
        self._all.append(child)
        return child


def _read_log(child: _Child) -> str:
    return child.log.read_text()[-2000:]


def _compile_error(name: str, why: str, said: str) -> IngotError:
    return IngotError([Problem(
        "compiler-failed", f"torch could not compile the graph '{name}': {why}\n{said}".rstrip(),
        None, "report this with the model; --backend kernel compiles it meanwhile",
    )])  # fmt: skip


def _make_key(graph: PrintedGraph, dtype: str) -> str:
    """What a compiled graph depends on."""
    parts = [
        graph.source, repr(graph.tables), repr(graph.index), repr(graph.arguments), dtype,
        *(Path(str(m.__file__)).read_text() for m in (inductor_child, torch_private)),
        torch_private.BUILD, compiler.read_processor_flags(), compiler.read_version(),
    ]  # fmt: skip
    return key_of(*parts)
