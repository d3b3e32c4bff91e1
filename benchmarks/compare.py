"""Two checkouts of Ingot, in turns: `python -m benchmarks.compare OLD [NEW]`.

In: folders of checkouts (NEW is this one). Out: a markdown table of NEW's CPU seconds by OLD's, the
medians over rounds in which each ran once; the exit code is 1 where one is slower than allowed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any
from unittest import mock

from benchmarks.load_paths import CASES, overrides
from benchmarks.processes import ONE_THREAD, ROOT

if TYPE_CHECKING:
    from ingot import TransientDriver

PAIRS = {
    "isoharden": "stress:E",
    "chaboche": "stress:E",
    "crystal": "elastic_strain:deformation_rate",
}
"""Of each case with forward calls, the derivative that is compiled with it."""
OWN = {
    "free_sintering": "regression/solid_mechanics/viscoplasticity/free_sintering/model.i",
    "finite_volume": "regression/finite_volume/combined/model.i",
    "pyrolysis": "regression/chemical_reactions/pyrolysis/model.i",
}
"""Cases that run with the loads of their own file."""
ACTIONS = ("compile", "transient", "forward", "jacobian")
LEAST_SECONDS = 0.02  # of one measurement, well above the clock's resolution


class Side:
    """One checkout's measurements of one case, in a process of its own."""

    def __init__(self, case: str, batch: int, cases: Path, scratch: Path) -> None:
        import torch

        from ingot import build_driver, read

        torch.set_num_threads(1)
        if case in CASES:
            known = CASES[case]
            changed = overrides(known, batch, scratch)
            tree, name = read(cases / known.file, changed), known.driver
        else:
            tree, name = read(cases / "neml2" / OWN[case]), "driver"
        driver = build_driver(tree, name)
        self.driver: TransientDriver = driver
        self.pair = PAIRS.get(case)
        self.calls: dict[str, Callable[[], object]] = {"transient": lambda: driver.run("kernel")}

    def seconds(self, action: str) -> float | None:
        """CPU seconds of one action, its compilers' included; None where the case has none."""
        if action == "compile":
            return self.compile()
        if action in ("forward", "jacobian") and action not in self.calls and self.pair:
            self.calls |= self.point_calls()
        if action not in self.calls:
            return None
        call, count = self.calls[action], 0
        start = time.process_time()
        while (spent := time.process_time() - start) < LEAST_SECONDS or count == 0:
            call()
            count += 1
        return spent / count

    def compile(self) -> float:
        """From the model to a loaded kernel, nothing cached."""
        from benchmarks.ours import cpu_seconds
        from ingot import executor, prepared

        with tempfile.TemporaryDirectory() as cache:
            start = cpu_seconds()
            with mock.patch.dict(os.environ, {"XDG_CACHE_HOME": cache}):
                executor(prepared(self.driver.model, self.driver.shapes), "kernel")
            return cpu_seconds() - start

    def point_calls(self) -> dict[str, Callable[[], object]]:
        """Calls of the compiled model with what it reads in the middle of the transient."""
        import ingot

        result = self.driver.run("kernel")
        artifact = ingot.compile(self.driver.model, derivative=(self.pair,))
        inputs = {}
        for name in artifact.inputs:
            base, _, back = name.partition("~")
            rows = {**result.outputs, **result.inputs}[base]
            inputs[name] = rows[result.steps // 2 - int(back or 0)].contiguous()
        return {
            "forward": lambda: artifact(inputs),
            "jacobian": lambda: artifact.jacobian(inputs),
        }


def serve(arguments: argparse.Namespace) -> None:
    """Answer each action on stdin with its seconds on stdout; what else is printed is not read."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    side = Side(arguments.serve, arguments.batch, arguments.cases, arguments.scratch)
    for line in sys.stdin:
        print(json.dumps(side.seconds(line.strip())), file=answers, flush=True)


@dataclass(frozen=True, slots=True)
class Served:
    """A process that measures a case with one checkout."""

    process: "subprocess.Popen[str]"

    def ask(self, action: str) -> float | None:
        """The seconds of one action."""
        assert self.process.stdin and self.process.stdout
        print(action, file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the process of {action} ended: its error stands above")
        return json.loads(line)


@contextmanager
def started(
    checkout: Path, case: str, options: argparse.Namespace, scratch: Path
) -> Iterator[Served]:
    """A checkout's process, ended with the block; the benchmark itself is this checkout's."""
    environment = os.environ | ONE_THREAD | {"PYTHONPATH": str(checkout.resolve() / "src")}
    command = [
        *(sys.executable, "-m", "benchmarks.compare", "--serve", case),
        *("--batch", str(options.batch), "--cases", str(options.cases.resolve())),
        *("--scratch", str(scratch)),
    ]
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        yield Served(process)
    finally:
        assert process.stdin
        process.stdin.close()
        process.wait()


def compare(
    case: str, options: argparse.Namespace, scratch: Path
) -> dict[str, tuple[float, float]]:
    """By action, the medians of the seconds of both checkouts."""
    found = {}
    with ExitStack() as stack:
        sides = [
            stack.enter_context(started(checkout, case, options, scratch / str(i)))
            for i, checkout in enumerate((options.old, options.new))
        ]
        for action in options.actions:
            rounds = options.compile_rounds if action == "compile" else options.rounds
            warm = [side.ask(action) for side in sides]
            if None in warm:
                continue
            times: list[list[Any]] = [[], []]
            for i in range(rounds):
                # who goes first changes, for the second finds caches and clocks of the first
                for k in (i % 2, 1 - i % 2):
                    times[k].append(sides[k].ask(action))
            found[action] = (median(times[0]), median(times[1]))
    return found


def main() -> None:
    """Measure all cases, print a row each, and tell whether all is within what is allowed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path, nargs="?", help="folder of the checkout to compare with")
    parser.add_argument("new", type=Path, nargs="?", default=ROOT, help="this one if not given")
    parser.add_argument("--cases", type=Path, default=ROOT.parent / "shared" / "cases")
    parser.add_argument("--only", nargs="+", choices=(*CASES, *OWN), default=(*CASES, *OWN))
    parser.add_argument("--actions", nargs="+", choices=ACTIONS, default=ACTIONS)
    parser.add_argument("--batch", type=int, default=1000, help="points of the cases of the bench")
    parser.add_argument("--rounds", type=int, default=25, help="measurements of each side")
    parser.add_argument("--compile-rounds", type=int, default=5, help="compilations of each side")
    parser.add_argument("--allowed", type=float, default=1.05, help="largest ratio that passes")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--scratch", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options)
    if options.old is None:
        parser.error("name the folder of a checkout to compare with")
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    slower = []
    print(f"| case | {' | '.join(options.actions)} |\n|---|{'--:|' * len(options.actions)}")
    with tempfile.TemporaryDirectory() as scratch:
        for case in options.only:
            found = compare(case, options, Path(scratch))
            ratios = {action: new / old for action, (old, new) in found.items()}
            slower += [f"{case} {a} {r:.2f}" for a, r in ratios.items() if r > options.allowed]
            cells = (
                f"{ratios[a]:.2f} ({1e3 * found[a][1]:.3g} ms)" if a in ratios else "-"
                for a in options.actions
            )
            print(f"| {case} | {' | '.join(cells)} |", flush=True)
    if slower:
        raise SystemExit(f"slower than {options.allowed:g}: {', '.join(slower)}")


if __name__ == "__main__":
    main()
