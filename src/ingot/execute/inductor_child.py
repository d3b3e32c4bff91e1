"""The process that compiles graphs: paths of jobs come in line by line, verdicts go out.

A job is a folder with `job.pt`; `graph.pt2` and the graph's results at the job's points join it.
"""

import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import torch
from torch.fx.proxy import GraphAppendingTracer

from ingot.execute import torch_facts

__all__ = ["main"]


def main() -> None:
    """Compile what standard input names until it ends."""
    # what torch and g++ say must not be taken for a verdict
    verdicts = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        folder = Path(line.rstrip("\n"))
        begun = time.perf_counter(), _busy()
        try:
            _compile(folder)
            said: dict[str, Any] = {"error": None}
        except Exception as error:
            said = {"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}
        said |= {"wall": time.perf_counter() - begun[0], "busy": _busy() - begun[1]}
        verdicts.write(json.dumps(said) + "\n")
        verdicts.flush()


def _busy() -> float:
    """Processor seconds of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def _compile(folder: Path) -> None:
    job = torch.load(folder / "job.pt", weights_only=True)
    dtype = getattr(torch, job["dtype"])
    module = traced(job["source"], job["tables"], job["index"], len(job["rows"]))
    mode, inputs = torch_facts.fake_inputs(job["rows"], dtype)
    files = torch_facts.compiled_files(module, inputs, folder)
    fixed = torch_facts.baked(mode)
    if fixed:
        raise AssertionError(f"the trace holds for one batch only: {', '.join(fixed)}")
    torch_facts.packaged(folder / "graph.pt2", files)
    graph = torch_facts.loaded(folder / "graph.pt2")
    gives = [[x.clone() for x in graph.boxed_run(list(points))] for points in job["points"]]
    torch.save(gives, folder / "gives.pt")


def traced(
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
