"""A folder with `job.pt` -> `graph.pt2`, and the graph's results at the job's points.

Runs in a child process (graphs/child.py).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.fx.proxy import GraphAppendingTracer

from ingot.graphs import torch_private

__all__ = ["TRACED_BATCH", "compile_job", "fake_inputs", "find_baked_sizes"]

# a size of 0 or 1 would be taken for a constant; the size decides how many threads are used
TRACED_BATCH = 10007


def compile_job(folder: Path) -> None:
    """Compile what a folder holds, and note what it gives at the points there."""
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
