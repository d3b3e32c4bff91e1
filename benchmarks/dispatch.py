"""Forward + backward of small blocks on a GPU: replayed as CUDA graphs, and launched plainly.

In: nothing. Out: a table of medians of alternating rounds, the memory that recordings hold, and
`results/dispatch.json`. `python -m benchmarks.dispatch` needs a GPU.
"""

import argparse
import copy
import gc
import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import nn

from benchmarks.regions import build_model
from ingot import regions
from ingot.graphs.recorded import drop_dead, held

ROUNDS = 15
CALLS = 20


def stepper(call: Callable[..., Any], module: nn.Module, x: Any, *, train: bool) -> Callable:
    """One step: forward and backward, or a call without gradients."""

    def step() -> None:
        module.zero_grad()
        call(x).square().mean().backward()

    def infer() -> None:
        with torch.no_grad():
            call(x)

    return step if train else infer


def seconds(step: Callable[[], None]) -> float:
    """Of one step, on the mean of some."""
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(CALLS):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - begun) / CALLS


def ways_of(stack: str, count: int) -> dict[str, tuple[Callable[..., Any], nn.Module, Any]]:
    """The ways to run a stack of blocks, each with a module of its own."""
    model, block, x = build_model(stack, count, "cuda")
    found: dict[str, tuple[Callable[..., Any], nn.Module, Any]] = {}
    for way in ("eager", "plain launches", "replayed", "per block"):
        own = copy.deepcopy(model)
        call: Callable[..., Any] = own
        if way in ("plain launches", "replayed"):
            call = regions.compile(own, blocks=block, cuda_graphs=way == "replayed")
        elif way == "per block":
            for part in own.blocks:
                part.compile()
        found[way] = call, own, x
    return found


def measure(stack: str, count: int, *, train: bool) -> dict[str, Any]:
    """Milliseconds of a step each way, rounds taken in turn, and what recordings hold."""
    gc.collect()
    drop_dead()
    before = held()
    steps = {}
    for way, (call, module, x) in ways_of(stack, count).items():
        steps[way] = stepper(call, module, x, train=train)
        for _ in range(6):
            steps[way]()
    rounds: dict[str, list[float]] = {way: [] for way in steps}
    for _ in range(ROUNDS):
        for way, step in steps.items():
            rounds[way].append(1e3 * seconds(step))
    number, size = held()
    number, size = number - before[0], size - before[1]
    row: dict[str, Any] = {way: median(times) for way, times in rounds.items()}
    return {
        "stack": stack, "blocks": count, "train": train, **row, "recordings": number,
        "MiB": size / (1 << 20), "ratio": row["plain launches"] / row["replayed"],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=16)
    parser.add_argument("--stacks", nargs="+", default=["transformer-64", "tiny"])
    arguments = parser.parse_args()
    rows = []
    for stack in arguments.stacks:
        for train in (True, False):
            row = measure(stack, arguments.count, train=train)
            rows.append(row)
            told = {k: f"{v:.3f}" if isinstance(v, float) else v for k, v in row.items()}
            print(told, flush=True)
    folder = Path(__file__).resolve().parent.parent / "results"
    folder.mkdir(exist_ok=True)
    facts = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}
    (folder / "dispatch.json").write_text(json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
