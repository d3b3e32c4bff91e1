"""Cold compiles of whole suites and of polycrystals, each command with an empty cache.

`python -m benchmarks.cold suites [--promoted 10]`: every model of the published suites with all
derivatives, worst first, CPU seconds of the command and its compilers by part; `grains`: Taylor
polycrystals of 5, 50 and 500 grains. A markdown table is printed, `--json FILE` keeps the numbers.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ingot.drivers import TransientDriver, build_driver
from ingot.drivers.unit_test import ModelUnitTest
from ingot.hit import read
from ingot.model import Factory, Model

ROOT = Path(__file__).resolve().parents[1]
SUITES = ("models", "regression", "verification", "aoti")
PARTS = ("start", "trace", "passes", "print", "g++")
TAYLOR = "regression/solid_mechanics/crystal_plasticity/taylor/model.i"
GRAINS = (5, 50, 500)

SPLIT = """
import json, resource, sys, time
spent = dict.fromkeys({parts!r}, 0.0)
def timed(module, name, part):
    inner = getattr(module, name)
    def call(*args, **kwargs):
        start, before = time.process_time(), sum(spent.values())
        try:
            return inner(*args, **kwargs)
        finally:
            # what is timed inside is told by itself
            inside = sum(spent.values()) - before
            spent[part] += time.process_time() - start - inside
    setattr(module, name, call)
from ingot.cli import main
import ingot.package.lower, ingot.package.stages
timed(ingot.package.stages, "load", "trace")
timed(ingot.package.stages, "advance", "trace")
timed(ingot.package.lower, "compile_passes", "passes")
timed(ingot.package.lower, "_print_kernels", "print")
place, sys.argv[1:] = sys.argv[1], sys.argv[2:]
try:
    code = main()
finally:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent["g++"] = used.ru_utime + used.ru_stime
    with open(place, "w") as file:
        json.dump(spent, file)
sys.exit(code)
"""


@dataclass(frozen=True, slots=True)
class Spent:
    """What a command took: CPU seconds with those of its children, and on the wall."""

    cpu: float
    wall: float
    code: int
    told: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A model of a file, and the words that compile it."""

    name: str
    file: Path
    words: tuple[str, ...]
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A compilation: what it took and by part, or why there is no package."""

    name: str
    cpu: float
    wall: float
    parts: Mapping[str, float] = field(default_factory=dict)
    pairs: int = 0
    refused: str = ""


def spend(words: Sequence[str | Path], home: Path, limit: int | None = None) -> Spent:
    """Run a command with a new home and empty caches.

    limit: the CPU seconds that it and each of its compilers may take: others may be at work here
    """
    environment = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"),
                   "TORCHINDUCTOR_CACHE_DIR": str(home / "torch")}  # fmt: skip

    def bound() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))

    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [str(w) for w in words], env=environment, cwd=home, text=True, preexec_fn=bound,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Spent(cpu, wall, done.returncode, done.stdout)


def find_models(folder: Path) -> Iterator[Asked]:
    """Every model that a driver of the suites names, once; of files without drivers, `model`."""
    for suite in SUITES:
        for file in sorted((folder / suite).rglob("*.i")):
            name = str(file.relative_to(folder).with_suffix("")).removesuffix("/model")
            found = {asked.words: asked for asked in _find_models_of(file, name)}
            for k, asked in enumerate(found.values()):
                yield asked if k == 0 else Asked(f"{name} ({k + 1})", *_rest(asked))


def _rest(asked: Asked) -> tuple[Path, tuple[str, ...], tuple[str, ...]]:
    return asked.file, asked.words, asked.parameters


def _find_models_of(file: Path, name: str) -> Iterator[Asked]:
    tree = read(file)
    factory = Factory(tree)
    blocks = [block for part in tree.section("Drivers") for block in part.blocks]
    for block in blocks:
        if block.type == "TransientDriver":
            driver = build_driver(factory, block.name)
            assert isinstance(driver, TransientDriver)
            yield Asked(name, file, ("--driver", block.name), list_promotable(driver.model))
        elif block.type == "ModelUnitTest":
            test = build_driver(factory, block.name)
            assert isinstance(test, ModelUnitTest)
            shapes = [
                f"{variable}=(;{','.join(map(str, extents))})"
                for variable, extents in test.shapes.items() if extents
            ]  # fmt: skip
            words = ("--model", test.model.name)
            for shape in shapes:
                words += ("--example-batch-shape", shape)
            yield Asked(name, file, words, list_promotable(test.model))
    if not blocks:
        yield Asked(name, file, ("--model", "model"), list_promotable(factory.model("model")))


def list_promotable(model: Model) -> tuple[str, ...]:
    """All that `-p` takes."""
    return (*model.named_values(), *model.buffer_values())


def compile_cold(asked: Asked, limit: int, *, pairs: str = ":", promoted: bool = False) -> Row:
    """Compile a model with derivatives, by every parameter too if they are promoted."""
    words = [*asked.words, "-d", pairs]
    for parameter in asked.parameters if promoted else ():
        words += ["-p", parameter]
    code = SPLIT.format(parts=PARTS)
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        told = home / "spent.json"
        command = [sys.executable, "-c", code, told, "compile", asked.file.resolve(), *words,
                   "--output-dir", home / "out", "--json"]  # fmt: skip
        spent = spend(command, home, limit)
        parts = json.loads(told.read_text()) if told.exists() else {}
    if parts:
        parts["start"] = spent.cpu - sum(parts.values())
    name = f"{asked.name}, {len(asked.parameters)} promoted" if promoted else asked.name
    if spent.code != 0:
        why = f"over {limit} s" if spent.code < 0 else tell_why(spent.told)
        return Row(name, spent.cpu, spent.wall, parts, refused=why)
    report = json.loads(spent.told.strip().splitlines()[-1])
    return Row(name, spent.cpu, spent.wall, parts, len(report["derivatives"]))


def tell_why(told: str) -> str:
    """The first error of a command."""
    lines = [line for line in told.splitlines() if line.startswith("error")]
    return lines[0] if lines else told.strip()[-200:]


def tell(rows: Sequence[Row]) -> Iterator[str]:
    """A markdown table of rows, worst first, then those that were refused."""
    yield f"| model | CPU s | wall s | {' | '.join(PARTS)} | pairs |"
    yield f"|---|{'--:|' * (len(PARTS) + 3)}"
    for row in sorted(rows, key=lambda r: -r.cpu):
        if not row.refused:
            parts = " | ".join(f"{row.parts[p]:.2f}" for p in PARTS)
            yield f"| {row.name} | {row.cpu:.1f} | {row.wall:.1f} | {parts} | {row.pairs} |"
    for row in rows:
        if row.refused:
            yield f"\n{row.name}: {row.refused} ({row.cpu:.1f} s)"


def compile_suites(options: argparse.Namespace) -> list[Row]:
    """Every model, then the longest with all that can be promoted."""
    asked = [a for a in find_models(options.cases / "neml2") if options.only in a.name]
    rows = []
    for k, each in enumerate(asked):
        rows.append(compile_cold(each, options.limit))
        report_progress(f"{k + 1} of {len(asked)}", rows[-1])
    longest = sorted(zip(rows, asked, strict=True), key=lambda pair: -pair[0].cpu)
    for row, each in longest[: options.promoted]:
        if not row.refused:
            rows.append(compile_cold(each, options.limit, promoted=True))
            report_progress("promoted", rows[-1])
    return rows


def compile_grains(options: argparse.Namespace) -> list[Row]:
    """Taylor polycrystals of several sizes: all derivatives, and those of the aggregate alone."""
    rows = []
    file = options.cases / "neml2" / TAYLOR
    for pairs in (":", "z:prescribed"):
        for grains in GRAINS:
            words = ("--model", "model")
            for variable in ("elastic_strain", "orientation", "slip_hardening"):
                for name in (variable, f"{variable}~1"):
                    words += ("--example-batch-shape", f"{name}=(;{grains})")
            asked = Asked(f"{grains} grains, -d {pairs}", file, words)
            rows.append(compile_cold(asked, options.limit, pairs=pairs))
            report_progress("Taylor", rows[-1])
    return rows


def report_progress(where: str, row: Row) -> None:
    """One line for whoever waits."""
    print(f"{where}: {row.name} {row.cpu:.1f} s {row.refused}", file=sys.stderr, flush=True)


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("suites", "grains"))
    parser.add_argument("--cases", type=Path, default=ROOT.parent / "shared" / "cases")
    parser.add_argument("--only", default="", help="models whose name holds this")
    parser.add_argument("--promoted", type=int, default=10, help="the longest, promoted whole")
    parser.add_argument("--limit", type=int, default=120, help="CPU seconds of a process")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = compile_suites(options) if options.what == "suites" else compile_grains(options)
    print("\n".join(tell(rows)))
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main()
