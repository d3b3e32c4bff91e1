"""Repeated blocks side by side: Ingot jit and aot, torch.compile on the whole, and torch's regions.

In: nothing. Out: tables of compile seconds, run times and overhead per block, and
`results/regions.json`. Each compilation is a process of its own with empty caches.
`python -m benchmarks.regions --quick` for a subset.
"""

import argparse
import copy
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
WAYS = ("ingot-jit", "ingot-aot", "whole", "regional", "nested")
STACKS = {"transformer-64": 64, "transformer-512": 512, "mlp-256": 256}
COUNTS = (1, 4, 16, 64)
PATHS = [path for path in (os.environ.get("PYTHONPATH"),) if path]
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TORCHINDUCTOR_VEC_ISA_OK": "1",
}  # fmt: skip


# the modules


def model_of(stack: str, count: int, device: str) -> tuple[Any, Any, Any]:
    """A stack of blocks, its block class and an example; the same numbers in every process."""
    import torch
    import torch.nn.functional as F
    from torch import Tensor, nn

    class Transformer(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.heads = max(4, width // 64)
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Tensor) -> Tensor:
            batch, length, width = x.shape
            parts = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
            q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class Perceptron(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(width)
            self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

        def forward(self, x: Tensor) -> Tensor:
            return x + self.down(F.silu(self.up(self.norm(x))))

    class Model(nn.Module):
        def __init__(self, block: type[nn.Module], width: int) -> None:
            super().__init__()
            self.first = nn.Linear(width, width)
            self.blocks = nn.ModuleList(block(width) for _ in range(count))
            self.last = nn.Linear(width, 10)

        def forward(self, x: Tensor) -> Tensor:
            x = self.first(x)
            for block in self.blocks:
                x = block(x)
            return self.last(x)

    torch.manual_seed(0)
    width = STACKS[stack]
    block = Perceptron if stack.startswith("mlp") else Transformer
    shape = (64, width) if block is Perceptron else (4, 32, width)
    return Model(block, width).to(device), block, torch.randn(shape).to(device)


# the ways to compile one


def built(way: str, model: Any, block: Any, x: Any, folder: Path) -> Callable[[Any], Any]:
    """A model compiled, ready to be called for the first time."""
    import torch

    if way == "eager":
        return model
    if way.startswith("ingot"):
        from ingot import regions

        mode: Any = way.removeprefix("ingot-")
        output = folder / "package" if mode == "aot" else None
        return regions.compile(model, x, block, mode, output=output)
    if way == "whole":
        return torch.compile(model)
    if way == "whole-graphs":
        return torch.compile(model, mode="reduce-overhead")
    again = copy.deepcopy(model)
    if way == "regional":
        for part in again.blocks:
            part.compile()
        return again
    block.forward = torch.compiler.nested_compile_region(block.forward)
    return torch.compile(again)


def busy() -> float:
    return sum(os.times()[:4])


def compile_once(way: str, stack: str, count: int, *, train: bool, device: str) -> dict[str, float]:
    """Wall and processor seconds from a model to its first result, and the error of that."""
    import torch

    if way.startswith("ingot"):
        import ingot.regions  # noqa: F401 importing is not compiling
    import torch._inductor.compile_fx

    with tempfile.TemporaryDirectory() as scratch, torch.set_grad_enabled(train):
        model, block, x = model_of(stack, count, device)
        begun, cpu = time.perf_counter(), busy()
        run = built(way, model, block, x, Path(scratch))
        found = run(x)
        if train:
            found.sum().backward()
        wait(device)
        wall, cpu = time.perf_counter() - begun, busy() - cpu
        with torch.no_grad():
            right = model_of(stack, count, device)[0](x)
        error = float((found.detach() - right).abs().max() / right.abs().max())
    return {"wall": wall, "cpu": cpu, "error": error}


def run_times(
    stack: str, count: int, ways: list[str], seconds: float, *, train: bool, device: str
) -> Any:
    """Median microseconds of a call by each way, the ways in turns."""
    import torch

    with tempfile.TemporaryDirectory() as scratch, torch.set_grad_enabled(train):
        runs: dict[str, Callable[[], None]] = {}
        for way in ways:
            model, block, x = model_of(stack, count, device)
            run = built(way, model, block, x, Path(scratch))
            runs[way] = called(run, x, train=train)
            for _ in range(4):
                runs[way]()
        took: dict[str, list[float]] = {way: [] for way in ways}
        end = time.perf_counter() + seconds * len(ways)
        while time.perf_counter() < end or len(took[ways[0]]) < 5:
            for way in ways:
                wait(device)
                begun = time.perf_counter()
                runs[way]()
                wait(device)
                took[way].append((time.perf_counter() - begun) * 1e6)
    return {way: {"median": median(t), "least": min(t), "runs": len(t)} for way, t in took.items()}


def chaboche_once(count: int) -> dict[str, float]:
    """Seconds from an input file with so many back stresses to a kernel and its slopes."""
    from benchmarks.chaboche import built as material
    from ingot.execute.kernel import Kernel
    from ingot.program import prepared, with_jacobian

    begun, cpu = time.perf_counter(), busy()
    Kernel(with_jacobian(prepared(material(count)), [("stress", "E")]))
    return {"wall": time.perf_counter() - begun, "cpu": busy() - cpu}


def wait(device: str) -> None:
    """Until a GPU has done what it was given."""
    if device != "cpu":
        import torch

        torch.cuda.synchronize()


def called(run: Callable[[Any], Any], x: Any, *, train: bool) -> Callable[[], None]:
    def call() -> None:
        found = run(x)
        if train:
            found.sum().backward()

    return call


# the script


@dataclass(frozen=True, slots=True)
class Options:
    """What to measure."""

    stacks: tuple[str, ...]
    counts: tuple[int, ...]
    ways: tuple[str, ...]
    repeats: int
    seconds: float
    train: bool
    device: str
    chaboche: tuple[int, ...]
    output: Path


def child(job: dict[str, Any]) -> dict[str, Any]:
    """Do a job in a process of its own, with caches that are empty."""
    with tempfile.TemporaryDirectory() as caches:
        environment = {
            **os.environ, **ENVIRONMENT, "HOME": caches, "TORCHINDUCTOR_CACHE_DIR": caches,
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT), *PATHS]),
        }  # fmt: skip
        command = [sys.executable, "-m", "benchmarks.regions", "--job", json.dumps(job)]
        said = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)
    if said.returncode:
        lines = [line for line in said.stderr.splitlines() if line.strip()]
        return {"failed": lines[-1][:120] if lines else "no word"}
    return json.loads(said.stdout.splitlines()[-1])


def measured(options: Options) -> Iterator[dict[str, Any]]:
    """One row after another, compilations in turns so that no way has the machine at its best."""
    for stack in options.stacks:
        turns = product(range(options.repeats), options.counts, options.ways)
        for repeat, count, way in turns:
            job = {"what": "compile", "way": way, "stack": stack, "count": count,
                   "train": options.train, "device": options.device}  # fmt: skip
            yield job | {"repeat": repeat} | child(job)
        for count in options.counts:
            ways = ["eager", *options.ways]
            job = {"what": "run", "stack": stack, "count": count, "ways": ways,
                   "seconds": options.seconds, "train": options.train,
                   "device": options.device}  # fmt: skip
            yield job | {"times": child(job)}
    for count in options.chaboche:
        for repeat in range(options.repeats):
            job = {"what": "chaboche", "count": count}
            yield job | {"repeat": repeat} | child(job)


def main() -> None:
    options = parsed()
    rows = []
    for row in measured(options):
        rows.append(row)
        print(said(row), file=sys.stderr, flush=True)
    options.output.parent.mkdir(exist_ok=True)
    options.output.write_text(json.dumps(rows, indent=1))
    print("\n\n".join(tables(rows, options)))


def said(row: dict[str, Any]) -> str:
    head = f"{row['what']} {row.get('stack', '')} x {row['count']}"
    if row["what"] == "run":
        times = row["times"]
        if "failed" in times:
            return f"{head}: {times['failed']}"
        return f"{head}: " + ", ".join(f"{w} {t['median']:.0f} µs" for w, t in times.items())
    if "failed" in row:
        return f"{head} {row.get('way', '')}: {row['failed']}"
    took = f"{row['wall']:.1f} s ({row['cpu']:.1f} s cpu)"
    if row["what"] == "chaboche":
        return f"{head}: {took}"
    return f"{head} {row['way']}: {took}, error {row['error']:.0e}"


def tables(rows: list[dict[str, Any]], options: Options) -> Iterator[str]:
    """Markdown: seconds to compile, time to run, overhead per block, and what must hold."""
    verdicts = []
    for stack in options.stacks:
        compiles = {
            (r["way"], r["count"]): []
            for r in rows
            if r["what"] == "compile" and r["stack"] == stack
        }
        for r in rows:
            if r["what"] == "compile" and r["stack"] == stack:
                compiles[r["way"], r["count"]].append(r.get("cpu"))
        cost = {k: None if None in v else median(v) for k, v in compiles.items()}
        yield table(f"{stack}: processor seconds to the first result", options, cost, "{:.1f}")
        runs = {r["count"]: r["times"] for r in rows if r["what"] == "run" and r["stack"] == stack}
        times = {
            (way, n): t[way]["median"] for n, t in runs.items() if "failed" not in t
            for way in options.ways if way in t
        }  # fmt: skip
        yield table(f"{stack}: µs of a call", options, times, "{:.0f}")
        verdicts += held(stack, options, cost, times)
    if options.chaboche:
        yield "\n".join(repeated(rows, options))
    yield "\n".join(["what must hold", *verdicts])


def repeated(rows: list[dict[str, Any]], options: Options) -> Iterator[str]:
    """What a material model costs as it repeats its back stresses."""
    yield "Chaboche: seconds to a kernel with the derivative of the stress\n"
    yield "| back stresses | wall | processor |\n|---|---|---|"
    for count in options.chaboche:
        found = [r for r in rows if r["what"] == "chaboche" and r["count"] == count]
        cells = [f"{median(r[k] for r in found):.1f}" for k in ("wall", "cpu") if k in found[0]]
        yield f"| {count} | {' | '.join(cells or ['failed', 'failed'])} |"


def table(
    title: str, options: Options, values: dict[tuple[str, int], float | None], form: str
) -> str:
    lines = [f"{title}", "", f"| blocks | {' | '.join(options.ways)} |"]
    lines.append("|---" * (len(options.ways) + 1) + "|")
    for n in options.counts:
        found = (values.get((way, n)) for way in options.ways)
        cells = ["failed" if v is None else form.format(v) for v in found]
        lines.append(f"| {n} | {' | '.join(cells)} |")
    return "\n".join(lines)


def held(
    stack: str, options: Options, cost: dict[Any, Any], times: dict[Any, Any]
) -> Iterator[str]:
    """Compile time that does not grow, run time near the whole's, overhead per block."""
    many, few = max(options.counts), min((n for n in options.counts if n >= 4), default=1)
    for way in ("ingot-jit", "ingot-aot"):
        a, b = cost.get((way, many)), cost.get((way, few))
        if a and b and many > few:
            yield f"{stack}: {way} compiles {many} blocks at {a / b:.2f}x of {few} (at most 1.3)"
        run, whole = times.get((way, many)), times.get(("whole", many))
        if run and whole:
            yield f"{stack}: {way} runs {many} blocks at {run / whole:.3f}x of the whole"
    if many > few:
        slopes = {
            way: (times[way, many] - times[way, few]) / (many - few)
            for way in options.ways if (way, many) in times and (way, few) in times
        }  # fmt: skip
        if "whole" in slopes:
            over = {w: s - slopes["whole"] for w, s in slopes.items() if w != "whole"}
            each = ", ".join(f"{w} {v:+.1f}" for w, v in over.items())
            yield f"{stack}: µs per block above the whole-model compile: {each}"


def parsed() -> Options:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="1, 4 and 8 small blocks, once")
    parser.add_argument("--stacks", nargs="+", choices=STACKS, default=list(STACKS))
    parser.add_argument("--counts", nargs="+", type=int, default=list(COUNTS))
    parser.add_argument("--ways", nargs="+", choices=[*WAYS, "whole-graphs"], default=list(WAYS))
    parser.add_argument("--repeats", type=int, default=3, help="compilations of each")
    parser.add_argument("--seconds", type=float, default=5.0, help="of running, for each way")
    parser.add_argument("--train", action="store_true", help="with the backward pass")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--chaboche", nargs="*", type=int, default=[2, 4, 8, 16])
    parser.add_argument("--output", type=Path, default=HERE / "results" / "regions.json")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.job:
        job = json.loads(given.job)
        jobs = {"compile": compile_once, "run": run_times, "chaboche": chaboche_once}
        print(json.dumps(jobs[job.pop("what")](**job)))
        sys.exit()
    if given.quick:
        given.stacks, given.counts = ["transformer-64"], [1, 4, 8]
        given.repeats, given.seconds, given.chaboche = 1, 1.0, [2, 4]
    return Options(
        tuple(given.stacks), tuple(given.counts), tuple(given.ways), given.repeats, given.seconds,
        given.train, given.device, tuple(given.chaboche), given.output,
    )  # fmt: skip


if __name__ == "__main__":
    main()
