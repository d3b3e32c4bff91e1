"""How compiling grows: `python -m benchmarks.growth` with 10, 100, 1000 computes, 1 to 64 grains.

In: nothing; inputs are generated. Out: a table of seconds to compile with an empty cache, of
operations, and of milliseconds a step, and `results/growth.json`. Each row is a process of its own.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.figures import RESULTS, format_table, read_result, write_result

COUNTS = {
    "chain": (10, 100, 1000),
    "parallel": (10, 100, 1000),
    "spectral": (10, 100, 1000),
    "grains": (1, 4, 16, 64),
    "pairs": (1, 4, 16, 64),
}
"""How many computes, and how many order parameters."""

COLUMNS = ("case", "count", "operations", "text kB", "build s", "compile CPU s", "compile wall s",
           "by count", "by operations", "ms a step")  # fmt: skip
TURNS = 5

HEAD = """
[Domain]
  dim = 2
  nx = {size}
  ny = {size}
  xmax = 30
  ymax = 30
[]
[Executioner]
  type = Transient
  num_steps = 1000000
  dt = 1e-3
[]
"""


def block(name: str, kind: str, **options: object) -> str:
    """A block of an input file that gives a buffer of its name."""
    rows = "".join(f"      {key} = {value!s}\n" for key, value in options.items())
    return f"    [{name}]\n      type = {kind}\n      buffer = {name}\n{rows}    []\n"


def formula(name: str, text: str, inputs: str, **options: object) -> str:
    """A ParsedCompute."""
    return block(name, "ParsedCompute", inputs=f"'{inputs}'", expression=f"'{text}'", **options)


def start(names: Sequence[str]) -> str:
    """Random fields."""
    rows = (block(name, "RandomTensor", min=0.2, max=0.8, seed=at) for at, name in enumerate(names))
    return "".join(rows)


def file_of(initialize: str, solve: Sequence[str], solver: str, size: int) -> str:
    """An input file."""
    lists = f"  [Initialize]\n{initialize}  []\n  [Solve]\n{''.join(solve)}  []\n"
    return f"{HEAD.format(size=size)}[TensorComputes]\n{lists}[]\n{solver}"


def chain(count: int, size: int) -> str:
    """Computes each of which reads the one before; the last is the rate of the first."""
    names = ["u", *(f"a{at}" for at in range(count))]
    rows = [
        formula(name, f"0.9*{last} + {0.1 + at * 1e-4:.4f}*u*(1 - {last}^2)", f"u {last}"
                if last != "u" else "u")
        for at, (last, name) in enumerate(pairwise(names))
    ]  # fmt: skip
    solver = f"""
[TensorSolver]
  type = RealSpaceForwardEuler
  buffer = u
  time_derivative = {names[-1]}
[]
"""
    return file_of(start(["u"]), rows, solver, size)


def parallel(count: int, size: int) -> str:
    """Computes that all read two fields and nothing of each other; each is a result."""
    rows = [
        formula(f"a{at}", f"{1 + at * 1e-3:.3f}*u^2 - v/(1 + {at + 1}*u^2)", "u v")
        for at in range(count)
    ]
    return file_of(start(["u", "v"]), rows, "", size)


def spectral(count: int, size: int) -> str:
    """Transforms, filters in between, and transforms back, one after the other."""
    rows: list[str] = []
    last = "u"
    for at in range(count):
        name = f"a{at}"
        rows.append((
            block(name, "ForwardFFT", input=last),
            formula(name, f"{last}/(1 + {1e-3 * (at + 1):.3f}*k2)", last, extra_symbols="true"),
            block(name, "InverseFFT", input=last),
            formula(name, f"0.99*{last} - 0.01*{last}^3", last),
        )[at % 4])  # fmt: skip
        last = name
    return file_of(start(["u"]), rows, "", size)


def grain_file(count: int, size: int, driving: Callable[[str], str]) -> str:
    """Order parameters, each with a transform, a driving force and an implicit gradient term."""
    names = [f"e{at}" for at in range(count)]
    solve: list[str] = []
    for name in names:
        solve += [
            driving(name),
            block(f"b{name}", "ForwardFFT", input=name),
            block(f"fb{name}", "ForwardFFT", input=f"f{name}"),
            formula(f"r{name}", f"-0.7*fb{name}", f"fb{name}"),
        ]
    squares = " + ".join(f"{name}^2" for name in names)
    solve = [formula("total", squares, " ".join(names)), *solve]
    lists = {
        "buffer": names,
        "reciprocal_buffer": [f"b{name}" for name in names],
        "linear_reciprocal": ["linear"] * count,
        "nonlinear_reciprocal": [f"r{name}" for name in names],
    }
    options = "".join(f"  {key} = '{' '.join(value)}'\n" for key, value in lists.items())
    first = start(names) + block("linear", "ReciprocalLaplacianFactor", factor=0.35)
    return file_of(first, solve, f"[TensorSolver]\n  type = AdamsBashforthMoulton\n{options}[]\n",
                   size)  # fmt: skip


def grains(count: int, size: int) -> str:
    """Grain growth whose coupling is one shared sum of squares: linear in the order parameters."""
    text = "{0}^3 - {0} + 3*{0}*(total - {0}^2)"
    return grain_file(
        count, size, lambda name: formula(f"f{name}", text.format(name), f"{name} total")
    )


def pairs(count: int, size: int) -> str:
    """Grain growth by one coupled energy with a term for every pair, which each differentiates."""
    names = [f"e{at}" for at in range(count)]
    own = [f"{name}^4/4 - {name}^2/2" for name in names]
    both = [f"1.5*{a}^2*{b}^2" for at, a in enumerate(names) for b in names[:at]]
    energy = " + ".join([*own, *both])
    inputs = " ".join(names)
    return grain_file(
        count, size, lambda name: formula(f"f{name}", energy, inputs, derivatives=name)
    )


CASES: dict[str, Callable[[int, int], str]] = {
    "chain": chain, "parallel": parallel, "spectral": spectral, "grains": grains, "pairs": pairs,
}  # fmt: skip


def processor_time() -> float:
    """Seconds of this process and of the compilers that it has waited for."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def measure(case: str, count: int, size: int) -> dict[str, Any]:
    """Seconds to build and to compile, counts, and milliseconds of a step; the cache is empty."""
    from ingot.fields import build, prepared
    from ingot.hit import read_text

    def begin(text: str) -> Any:
        return prepared(build(read_text(text, moose=True)), tempfile.gettempdir())

    warm = begin(pairs(2, 12))  # what is imported by the first compile is not the row's
    warm.start()
    warm.step()
    text = CASES[case](count, size)
    times = [time.perf_counter()]
    run = begin(text)
    times.append(time.perf_counter())
    spent = processor_time()
    run.start()
    run.step()
    times.append(time.perf_counter())
    spent = processor_time() - spent
    steps: list[float] = []
    for _ in range(TURNS + 2):
        steps.append(time.perf_counter())
        run.step()
    told = run.executor.statistics
    assert not told.fallbacks, "a sequence was not compiled"
    calls = [b - a for a, b in pairwise(steps[2:])]
    return {
        "case": case, "count": count, "operations": told.operations, "text": len(text) / 1024,
        "build": times[1] - times[0], "compile": spent, "wall": times[2] - times[1],
        "call": 1e3 * median(calls), "sequences": told.sequences, "captured": told.captured,
    }  # fmt: skip


def measure_apart(case: str, count: int, size: int) -> dict[str, Any]:
    """The same in a process of its own, with a cache that is empty."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.growth", "--one", case, str(count),
                   "--size", str(size)]  # fmt: skip
        done = subprocess.run(
            command, capture_output=True, text=True, check=False,
            env={**os.environ, "XDG_CACHE_HOME": folder},
        )  # fmt: skip
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def growth(row: dict[str, Any], before: dict[str, Any] | None, by: str) -> float | None:
    """How many times more than in proportion the time to compile grew since the row before."""
    if before is None:
        return None
    return (row["compile"] / before["compile"]) / (row[by] / before[by])


def main() -> None:
    """Measure all cases, or one of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=2, metavar=("CASE", "COUNT"))
    parser.add_argument("--cases", nargs="*", default=[*CASES])
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--out", type=Path, default=RESULTS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(measure(asked.one[0], int(asked.one[1]), asked.size)))
        return
    rows: list[list[Any]] = []
    for case in asked.cases:
        before = None
        for count in COUNTS[case]:
            row = measure_apart(case, count, asked.size)
            rows.append([
                case, count, row["operations"], row["text"], row["build"], row["compile"],
                row["wall"], growth(row, before, "count"), growth(row, before, "operations"),
                row["call"],
            ])  # fmt: skip
            print(*rows[-1], flush=True)
            before = row
    write_result(asked.out, "growth", "python -m benchmarks.growth", COLUMNS, rows)
    print(format_table(read_result("growth", asked.out)))


if __name__ == "__main__":
    main()
