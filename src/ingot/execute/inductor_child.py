"""The process that compiles graphs: paths of jobs come in line by line, verdicts go out.

A job is a folder with `job.pt`; `graph.pt2` and the graph's results at the job's points join it.
"""

import json
import os
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.fx.proxy import GraphAppendingTracer

from ingot.graphs import torch_private

__all__ = ["TRACED_BATCH", "fake_inputs", "find_baked_sizes", "main"]

# a size of 0 or 1 would be taken for a constant; the size decides how many threads are used
TRACED_BATCH = 10007


def main() -> None:
    """Compile what standard input names until it ends."""
    # what torch and g++ say must not be taken for a verdict
    verdicts = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        folder = Path(line.rstrip("\n"))
        begun = time.perf_counter(), _processor_seconds()
        try:
            _compile_job(folder)
            said: dict[str, Any] = {"error": None}
        except Exception as error:
            said = {"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}
        said |= {"wall": time.perf_counter() - begun[0], "busy": _processor_seconds() - begun[1]}
        verdicts.write(json.dumps(said) + "\n")
        verdicts.flush()


def _processor_seconds() -> float:
    """Processor seconds of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def _compile_job(folder: Path) -> None:
    job = torch.load(folder / "job.pt", weights_only=True)
    dtype = getattr(torch, job["dtype"])
    module = trace_source(job["source"], job["tables"], job["index"], len(job["rows"]))
    mode, inputs = fake_inputs(job["rows"], dtype)
    files = torch_private.compile_ahead(module, inputs, folder)
    fixed = find_baked_sizes(mode)
    if fixed:
        raise AssertionError(f"the trace holds for one batch only: {', '.join(fixed)}")
    torch_private.write_archive(folder / "graph.pt2", files)
    graph = torch_private.load_graph((folder / "graph.pt2").read_bytes())
    gives = [[x.clone() for x in graph.boxed_run(list(points))] for points in job["points"]]
    torch.save(gives, folder / "gives.pt")


def fake_inputs(arguments: Sequence[int], dtype: torch.dtype) -> tuple[Any, list[Tensor]]:
    """A mode for tracing, and fake arrays: (rows, batch), or (batch,) for 0 rows."""
    mode = torch_private.fake_mode()
    shapes = [(rows, TRACED_BATCH) if rows else (TRACED_BATCH,) for rows in arguments]
    opened = [[False] * (len(shape) - 1) + [True] for shape in shapes]
    pairs = zip(shapes, opened, strict=True)
    return mode, [torch_private.fake_tensor(mode, *pair, dtype, "cpu") for pair in pairs]


def find_baked_sizes(mode: Any) -> list[str]:
    """What a trace has fixed that must stay open: torch bakes a batch in without a word."""
    fixed = torch_private.equal_sizes(mode).items()
    found = [f"{symbol} = {size}" for symbol, size in fixed if size.is_number]
    guards = (guard.expr for guard in torch_private.guards_of(mode))
    return found + [str(e) for e in guards if type(e).__name__ in ("Equality", "Eq")]


def trace_source(
    source: str, tables: torch.Tensor, index: torch.Tensor, count: int
) -> torch.fx.GraphModule:
    """The printed function as a torch graph whose tables are its constants."""
    space: dict[str, Any] = {"torch": torch}
    exec(source, space)
    root = torch.nn.Module()
    root.register_buffer("tables", tables)
    root.register_buffer("index", index)
    graph = torch.fx.Graph()
    tracer = GraphAppendingTracer(graph)
    inputs = [graph.placeholder(f"x{i}") for i in range(count)]
    held = [graph.get_attr(name) for name in ("tables", "index")]
    results = space["graph"](*(torch.fx.Proxy(n, tracer) for n in (*held, *inputs)))
    graph.output(tuple(r.node for r in results))
    return torch.fx.GraphModule(root, graph)


if __name__ == "__main__":
    main()
