"""Repeated blocks side by side: Ingot, torch.compile of the whole and per block, torch's regions.

In: nothing, or another checkout (`--old`). Out: tables of processor seconds to compile, cold and
from warm caches, and of call times, what must hold of both, and `results/regions.json`. Every
measurement is a process of its own whose caches were empty. `--quick` for a subset.
"""

import argparse
import copy
import json
import operator
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
WAYS = ("ingot", "whole", "per-block", "nested")
PATHS = [path for path in (os.environ.get("PYTHONPATH"),) if path]
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TORCHINDUCTOR_VEC_ISA_OK": "1",
}  # fmt: skip

# what is called: stack, blocks, training, and the ways that alternate; the first is the measure
CALLS: dict[str, tuple[str, int, bool, tuple[str, ...]]] = {
    "width 512": ("transformer-512", 8, False, ("whole", "ingot", "eager")),
    "width 512, training": ("transformer-512", 8, True, ("whole", "ingot", "eager")),
    "16 tiny blocks": ("tiny", 16, False, ("per-block", "ingot", "whole", "eager")),
    "16 tiny blocks, training": ("tiny", 16, True, ("per-block", "ingot", "whole", "eager")),
    "conv + BatchNorm, training": ("conv", 8, True, ("eager", "ingot", "whole")),
    "packages of width 512": ("transformer-512", 16, False, ("whole-aot", "ingot-aot")),
    "packages of 16 tiny blocks": ("tiny", 16, False, ("whole-aot", "ingot-aot")),
}
# the most that a call may take of its measure's time
LIMITS = {
    "width 512": 1.05, "width 512, training": 1.05, "16 tiny blocks, training": 1.0,
    "conv + BatchNorm, training": 1.0, "packages of width 512": 1.0,
}  # fmt: skip


# the modules


def build_model(stack: str, count: int, device: str) -> tuple[Any, Any, Any]:
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

    class Convolution(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.conv1, self.conv2 = (nn.Conv2d(width, width, 3, padding=1) for _ in range(2))
            self.norm1, self.norm2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)

        def forward(self, x: Tensor) -> Tensor:
            y = F.relu(self.norm1(self.conv1(x)))
            return F.relu(x + self.norm2(self.conv2(y)))

    class Model(nn.Module):
        def __init__(self, block: type[nn.Module], width: int) -> None:
            super().__init__()
            self.blocks = nn.ModuleList(block(width) for _ in range(count))

        def forward(self, x: Tensor) -> Tensor:
            for block in self.blocks:
                x = block(x)
            return x

    kinds: dict[str, tuple[type[nn.Module], int, tuple[int, ...]]] = {
        "transformer-64": (Transformer, 64, (4, 32, 64)),
        "transformer-512": (Transformer, 512, (4, 32, 512)),
        "tiny": (Perceptron, 16, (4, 16)),
        "conv": (Convolution, 32, (8, 32, 16, 16)),
    }
    torch.manual_seed(0)
    block, width, shape = kinds[stack]
    return Model(block, width).to(device), block, torch.randn(shape).to(device)


# the ways to compile one


def compile_model(way: str, model: Any, block: Any, x: Any, folder: Path) -> Callable[[Any], Any]:
    """A model compiled, ready to be called for the first time."""
    import torch

    if way == "eager":
        return model
    if way.startswith("ingot"):
        from ingot import regions

        if way == "ingot-aot":
            regions.compile(model, x, block, mode="aot", output=folder / "package")
            return regions.load(folder / "package")
        return regions.compile(model, x, block)
    if way == "whole":
        return torch.compile(model)
    if way == "whole-aot":
        from torch._inductor import aoti_compile_and_package, aoti_load_package

        program = torch.export.export(model, (x,))
        file = aoti_compile_and_package(program, package_path=str(folder / "whole.pt2"))
        return aoti_load_package(file)
    again = copy.deepcopy(model)
    if way == "per-block":
        for part in again.blocks:
            part.compile()
        return again
    block.forward = torch.compiler.nested_compile_region(block.forward)
    return torch.compile(again)


def read_processor_seconds() -> float:
    return sum(os.times()[:4])


def time_compile(way: str, stack: str, count: int, *, train: bool, device: str) -> dict[str, float]:
    """Wall and processor seconds from a model to its first result, and the error of that."""
    import torch
    import torch._inductor.compile_fx

    if way.startswith("ingot"):
        import ingot.regions  # noqa: F401 importing is not compiling
    with tempfile.TemporaryDirectory() as scratch, torch.set_grad_enabled(train):
        model, block, x = build_model(stack, count, device)
        with torch.no_grad():
            right = copy.deepcopy(model)(x)
        begun, cpu = time.perf_counter(), read_processor_seconds()
        result = compile_model(way, model, block, x, Path(scratch))(x)
        if train:
            result.sum().backward()
        wait(device)
        wall, cpu = time.perf_counter() - begun, read_processor_seconds() - cpu
        error = float((result.detach() - right).abs().max() / right.abs().max())
    return {"wall": wall, "cpu": cpu, "error": error}


def time_calls(
    stack: str, count: int, ways: list[str], seconds: float, *, train: bool, device: str
) -> Any:
    """Median microseconds of a call by each way, the ways in turns; of the processor too.

    cpu: the median ratio of processor time to that of the first way, turn by turn.
    """
    import torch

    with tempfile.TemporaryDirectory() as scratch, torch.set_grad_enabled(train):
        runs: dict[str, Callable[[], None]] = {}
        for way in ways:
            model, block, x = build_model(stack, count, device)
            runs[way] = call_once(
                compile_model(way, model, block, x, Path(scratch)), x, train=train
            )
            for _ in range(4):
                runs[way]()
        took: dict[str, list[float]] = {way: [] for way in ways}
        busy: dict[str, list[float]] = {way: [] for way in ways}
        end = time.perf_counter() + seconds * len(ways)
        while time.perf_counter() < end or len(took[ways[0]]) < 9:
            for way in ways:
                wait(device)
                begun, cpu = time.perf_counter(), time.process_time()
                runs[way]()
                wait(device)
                took[way].append((time.perf_counter() - begun) * 1e6)
                busy[way].append(time.process_time() - cpu)
    ratios = {way: median(map(operator.truediv, busy[way], busy[ways[0]])) for way in ways}
    return {
        way: {"median": median(t), "least": min(t), "runs": len(t), "cpu": ratios[way]}
        for way, t in took.items()
    }


def wait(device: str) -> None:
    """Until a GPU has done what it was given."""
    if device != "cpu":
        import torch

        torch.cuda.synchronize()


def call_once(run: Callable[[Any], Any], x: Any, *, train: bool) -> Callable[[], None]:
    def call() -> None:
        result = run(x)
        if train:
            result.sum().backward()

    return call


# the script


def run_child(job: dict[str, Any], caches: str, source: Path) -> dict[str, Any]:
    """Do a job in a process of its own, with these caches and the Ingot of this checkout."""
    environment = {
        **os.environ, **ENVIRONMENT, "HOME": caches, "XDG_CACHE_HOME": caches,
        "TORCHINDUCTOR_CACHE_DIR": str(Path(caches, "inductor")),
        "PYTHONPATH": os.pathsep.join([str(source / "src"), str(ROOT), *PATHS]),
    }  # fmt: skip
    command = [sys.executable, "-m", "benchmarks.regions", "--job", json.dumps(job)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        return {"failed": lines[-1][:120] if lines else "no word"}
    return json.loads(done.stdout.splitlines()[-1])


def measure(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One row after another; compilations in turns, so that no way has the machine at its best."""
    sources = {"ingot": ROOT, **({"old": options.old} if options.old else {})}
    ways = [*options.ways, *(["old"] if options.old else [])]
    turns = product(range(options.repeats), options.counts, (False, True), ways)
    for repeat, count, train, way in turns if "compile" in options.what else ():
        job = {"what": "compile", "way": "ingot" if way == "old" else way,
               "stack": "transformer-64", "count": count, "train": train,
               "device": options.device}  # fmt: skip
        with tempfile.TemporaryDirectory() as caches:
            for state in ("cold", "warm"):
                row = run_child(job, caches, sources.get(way, ROOT))
                yield {**job, "way": way, "state": state, "repeat": repeat, **row}
    for name in options.calls:
        if ("packages" if name.startswith("packages") else "calls") not in options.what:
            continue
        stack, count, train, ways = CALLS[name]
        for owner, source in sources.items():
            chosen = ways if owner == "ingot" else [ways[0], *(w for w in ways if "ingot" in w)]
            job = {
                "what": "calls", "stack": stack, "count": count, "ways": list(chosen),
                "seconds": options.seconds, "train": train, "device": options.device,
            }  # fmt: skip
            with tempfile.TemporaryDirectory() as caches:
                yield {**job, "name": name, "owner": owner, "times": run_child(job, caches, source)}


def describe_row(row: dict[str, Any]) -> str:
    if row["what"] == "calls":
        head, times = f"{row['name']} ({row['owner']})", row["times"]
        if "failed" in times:
            return f"{head}: {times['failed']}"
        return f"{head}: " + ", ".join(f"{w} {t['median']:.0f} µs" for w, t in times.items())
    mode = "training" if row["train"] else "inference"
    head = f"{row['count']} blocks, {mode}, {row['way']}, {row['state']}"
    if "failed" in row:
        return f"{head}: {row['failed']}"
    return f"{head}: {row['cpu']:.1f} s cpu, {row['wall']:.1f} s, error {row['error']:.0e}"


Costs = dict[tuple[bool, str, int, str], float]


def find_costs(rows: list[dict[str, Any]]) -> tuple[Costs, list[str]]:
    """Processor seconds of compiling, by mode, caches, blocks and way; and the ways measured."""
    compiles: dict[tuple[bool, str, int, str], list[float]] = {}
    for r in rows:
        if r["what"] == "compile" and "failed" not in r:
            compiles.setdefault((r["train"], r["state"], r["count"], r["way"]), []).append(r["cpu"])
    cost = {key: median(values) for key, values in compiles.items()}
    return cost, [w for w in (*WAYS, "old") if any(key[3] == w for key in cost)]


def store(rows: list[dict[str, Any]], folder: Path) -> None:
    """Write the table of docs/torch.md: seconds from empty caches / in a second process."""
    from benchmarks.figures import write_result

    cost, ways = find_costs(rows)

    def cell(*key: Any) -> str:
        train, count, way = key
        both = [cost.get((train, state, count, way)) for state in ("cold", "warm")]
        return "" if None in both else " / ".join(map(_cell, both))

    counts = sorted({key[2] for key in cost})
    body = [
        (count, "training" if train else "inference", *(cell(train, count, way) for way in ways))
        for count, train in product(counts, (False, True))
    ]
    command = "python -m benchmarks.regions --what compile"
    write_result(folder, "regions-compile", command, ("blocks", "", *ways), body)


def write_tables(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Markdown: seconds to compile, then times of a call; last what must hold."""
    cost, ways = find_costs(rows)
    for train, state in product((False, True), ("cold", "warm")):
        counts = sorted({key[2] for key in cost if key[:2] == (train, state)})
        if counts:
            mode = "training" if train else "inference"
            yield "\n".join([
                f"{mode}, {state} caches: processor seconds to the first result", "",
                f"| blocks | {' | '.join(ways)} |", "|---" * (len(ways) + 1) + "|",
                *(f"| {n} | {' | '.join(_cell(cost.get((train, state, n, w))) for w in ways)} |"
                  for n in counts),
            ])  # fmt: skip
    calls = [r for r in rows if r["what"] == "calls"]
    if calls:
        yield "\n".join(["call, median µs, ways in turns", "", *_write_calls(calls)])
    yield "\n".join(["what must hold", "", *_judge(cost, calls)])


def _cell(value: float | None) -> str:
    return "failed" if value is None else f"{value:.1f}"


def _write_calls(calls: list[dict[str, Any]]) -> Iterator[str]:
    yield "| | checkout | times | of the first |\n|---|---|---|---|"
    for row in calls:
        times = row["times"]
        if "failed" in times:
            yield f"| {row['name']} | {row['owner']} | {times['failed']} | |"
            continue
        base = times[row["ways"][0]]["median"]
        said = ", ".join(f"{w} {t['median']:.0f}" for w, t in times.items())
        ratio = ", ".join(f"{w} {times[w]['median'] / base:.3f}" for w in row["ways"][1:])
        yield f"| {row['name']} | {row['owner']} | {said} | {ratio} |"


def _judge(cost: dict[Any, float], calls: list[dict[str, Any]]) -> Iterator[str]:
    cold = {n: c for (train, state, n, way), c in cost.items()
            if way == "ingot" and state == "cold" and not train}  # fmt: skip
    if 4 in cold and 64 in cold:
        yield f"64 blocks compile in {cold[64] / cold[4]:.2f}x of 4 (at most 1.5)"
    if (False, "warm", 64, "ingot") in cost:
        second = cost[False, "warm", 64, "ingot"]
        yield f"64 blocks take {second:.1f} s in a second process (at most 4)"
    for row in calls:
        times, (base, *others) = row["times"], row["ways"]
        ours = next(w for w in others if w.startswith("ingot"))
        if row["owner"] == "ingot" and row["name"] in LIMITS and "failed" not in times:
            ratio = times[ours]["median"] / times[base]["median"]
            busy = f", of processor time {times[ours]['cpu']:.3f}x"
            yield f"{row['name']}: {ratio:.3f}x of {base}{busy} (at most {LIMITS[row['name']]})"


def main() -> None:
    options = parse()
    rows = []
    for row in measure(options):
        rows.append(row)
        print(describe_row(row), file=sys.stderr, flush=True)
        options.output.parent.mkdir(exist_ok=True)
        options.output.write_text(json.dumps(rows, indent=1))
    print("\n\n".join(write_tables(rows)))
    if options.out:
        store(rows, options.out)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="4 and 16 blocks, once; short calls")
    parser.add_argument("--what", nargs="+", choices=("compile", "calls", "packages"))
    parser.add_argument("--counts", nargs="+", type=int, default=[4, 16, 64])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), help="to compile")
    parser.add_argument("--calls", nargs="+", choices=CALLS, default=list(CALLS))
    parser.add_argument("--repeats", type=int, default=3, help="compilations of each")
    parser.add_argument("--seconds", type=float, default=5.0, help="of calls, for each way")
    parser.add_argument("--old", type=Path, help="another checkout, measured beside this one")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--output", type=Path, default=HERE.parent / "results" / "regions.json")
    parser.add_argument("--out", type=Path, help="folder for the table of docs/torch.md")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        job = json.loads(options.job)
        work: Any = {"compile": time_compile, "calls": time_calls}[job.pop("what")]
        print(json.dumps(work(**job)))
        sys.exit()
    options.what = options.what or ["compile", "calls", "packages"]
    if options.quick:
        options.counts, options.repeats, options.seconds = [4, 16], 1, 1.0
    return options


if __name__ == "__main__":
    main()
