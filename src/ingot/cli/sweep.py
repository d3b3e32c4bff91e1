"""`ingot sweep`: a transient of a file over many values, into one data set."""

import csv
import json as jsonlib
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ingot.cli.flags import Several, wrong_usage
from ingot.errors import IngotError, Problem

if TYPE_CHECKING:
    from ingot.drivers import Sweep
    from ingot.drivers.parameter_sweep import Kept

__all__ = ["read_values", "sweep"]


def sweep(
    file: Path,
    *words: str,
    over: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = (),
    table: Path | None = None,
    output: Annotated[Path, Parameter(name=("--output", "-o"))] = Path("sweep.parquet"),
    paired: bool = False,
    keep: Several = (),
    steps: str = "all",
    part: int | None = None,
    workers: int = 1,
    ray: bool = False,
    ray_address: str | None = None,
    strict: bool = False,
    untrusted: bool = False,
    json: bool = False,
) -> int:
    """Run a TransientDriver of FILE for many values of parameters and inputs, into one data set.

    The model is compiled once, and the points are computed in parts; a sweep that was stopped goes
    on where the same command is given again.

    Example: ingot sweep model.i --over yield_stress=100:300:21 --over E=1e5,2e5 -o sweep.parquet

    Parameters
    ----------
    file
        The input file.
    words
        The driver's name, then values that replace those of the file, such as nbatch:=5.
    over
        NAME=VALUES of a parameter, by the name that `ingot show FILE MODEL` prints or its end, or
        of an input: numbers as 1,2,5; START:STOP:COUNT in equal steps; START:STOP:COUNT:log in
        equal ratios. All combinations are run; several, or repeated.
    table
        A CSV file with a column for each name; its rows are run, in place of combinations.
    output
        The data set: a folder NAME.parquet, a row for each point and step, or NAME.zarr, an array
        for each output. The plan of the sweep lies beside it in NAME.parquet.plan.
    paired
        Take the first value of each name, the second of each and so on, not all combinations.
    keep
        The outputs to write; all unless given.
    steps
        The steps to write: all, last, or numbers such as 0,50,-1.
    part
        How many points a worker computes at once.
    workers
        How many processes of this machine compute; by itself this one alone.
    ray
        Compute on a Ray cluster that is started on this machine: pip install 'ingot[scale]'.
    ray_address
        Compute on the Ray cluster at this address, such as auto.
    strict
        End with an error at whatever is warned of otherwise, as [Settings] strict = true does.
    untrusted
        Evaluate Python of the file within bounds, by listed names, and run no other code it names.
    json
        Print the summary as JSON.
    """
    from ingot.cli.progress import progress
    from ingot.cli.run import only_driver
    from ingot.drivers import TransientDriver, build_driver
    from ingot.drivers import sweep as run_sweep
    from ingot.hit import read

    values = read_values(over)
    if table is not None:
        if values or paired:
            told = "--table gives all values row by row, beside --over or --paired"
            raise wrong_usage(told, "give one of the two")
        values, paired = read_table(table), True
    if not values:
        told, fix = "nothing is swept over", "give --over NAME=1,2,3, or --table FILE.csv"
        raise wrong_usage(told, fix)
    chosen = read_steps(steps)
    named = words[:1] if words and "=" not in words[0] else ()
    tree = read(file, words[len(named) :])
    name = named[0] if named else only_driver(tree)
    driver = build_driver(tree, name, strict=strict, untrusted=untrusted)
    if not isinstance(driver, TransientDriver):
        message = f"[Drivers/{name}] judges a result, and is not swept over"
        raise IngotError([Problem("which-driver", message, fix="name its TransientDriver")])
    with progress("parts") as tell:

        def count(done: int, total: int) -> None:
            tell.expect(total)
            tell(f"part {done}")

        done = run_sweep(
            driver, values, output, paired=paired, keep=keep or None, steps=chosen, part=part,
            workers=workers, ray=ray_address or ray, progress=count,
        )  # fmt: skip
    print(jsonlib.dumps(describe(done)) if json else summarize(done))
    return 0


def read_values(over: tuple[str, ...]) -> dict[str, list[float]]:
    """The values of each name as the flags give them."""
    found: dict[str, list[float]] = {}
    for word in over:
        name, equals, text = word.partition("=")
        if not equals or not name or not text:
            raise wrong_usage(f"--over takes NAME=VALUES, not '{word}'", "write E=1e5,2e5")
        if name in found:
            raise wrong_usage(f"--over gives '{name}' twice", f"write {name}=1,2,3 once")
        found[name] = read_range(name, text)
    return found


def read_range(name: str, text: str) -> list[float]:
    """Numbers in a row, or between two ends."""
    import torch

    fix = f"write {name}=1,2,5 or {name}=START:STOP:COUNT or {name}=START:STOP:COUNT:log"
    wrong = wrong_usage(f"--over cannot read '{text}' of '{name}'", fix)
    try:
        if ":" not in text:
            return [float(word) for word in text.split(",")]
        first, last, count, *log = text.split(":")
        begin, end, number = float(first), float(last), int(count)
    except ValueError:
        raise wrong from None
    if number < 1 or log not in ([], ["log"]) or not math.isfinite(begin + end):
        raise wrong
    if not log:
        return torch.linspace(begin, end, number, dtype=torch.float64).tolist()
    if min(begin, end) <= 0:
        raise wrong_usage(f"'{text}' of '{name}' has no ratios: an end is not positive", fix)
    inner = torch.linspace(math.log(begin), math.log(end), number, dtype=torch.float64).exp()
    return [begin, *inner[1:-1].tolist(), end][:number]  # the ends as they were written


def read_table(file: Path) -> dict[str, list[float]]:
    """The columns of a CSV file."""
    from ingot.hit import read_contents

    lines = read_contents(file).splitlines()
    names, *rows = (row for row in csv.reader(lines) if row) if any(lines) else [[]]
    found: dict[str, list[float]] = {name.strip(): [] for name in names}
    if not rows or len(found) != len(names):
        told = f"{file} should have a line of distinct names and lines of numbers"
        raise IngotError([Problem("wrong-value", told, None, "write a name above each column")])
    for number, row in enumerate(rows, 2):
        try:
            cells = [float(cell) for cell in row]
        except ValueError as error:
            told = f"{file}, row {number}: {error}"
            raise IngotError([Problem("wrong-value", told, None, "write numbers")]) from None
        if len(cells) != len(found):
            told = f"{file}, row {number} has {len(cells)} numbers, not {len(found)}"
            raise IngotError([Problem("wrong-value", told, None, "give one for each column")])
        for column, cell in zip(found.values(), cells, strict=True):
            column.append(cell)
    return found


def read_steps(text: str) -> "Kept":
    """The steps that are written."""
    if text == "all" or text == "last":
        return text
    try:
        return tuple(int(word) for word in text.split(","))
    except ValueError:
        told = f"--steps takes all, last or numbers, not '{text}'"
        raise wrong_usage(told, "write --steps last") from None


def describe(done: "Sweep") -> dict[str, object]:
    """What there is to tell about a sweep."""
    return {
        "output": str(done.output),
        "points": done.points,
        "steps": done.steps,
        "parts": done.parts,
        "computed": done.computed,
        "failed": done.failed,
        "seconds": done.seconds,
    }


def summarize(done: "Sweep") -> str:
    """The same as lines."""
    there = done.parts - done.computed
    before = f", {there} of {done.parts} parts were there" if there else ""
    failed = f", {done.failed} failed" if done.failed else ""
    lines = [f"{done.points} points in {done.seconds:.3g} s{before}{failed}"]
    return "\n".join([*lines, f"wrote {done.output}"])
