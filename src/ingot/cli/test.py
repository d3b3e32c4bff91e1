"""`ingot test`: every self-checking driver of files and folders, through every backend."""

import json as jsonlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ingot.cli.run import Backend
from ingot.errors import IngotError, Problem, raise_if

__all__ = ["Outcome", "checked", "test"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one self-checking driver; `unsupported` names types that do not exist yet."""

    file: str
    driver: str
    passed: bool
    reason: str = ""
    unsupported: tuple[str, ...] = ()

    def __str__(self) -> str:
        block = f" [{self.driver}]" if self.driver else ""
        return f"{self.file}{block} {'passed' if self.passed else f'failed: {self.reason}'}"


def test(
    path: Path,
    /,
    *paths: Path,
    backend: tuple[Backend, ...] = ("interpret", "kernel"),
    json: bool = False,
    jobs: Annotated[int, Parameter(alias="-j")] = 1,
) -> int:
    """Run every self-checking driver of files and folders.

    Parameters
    ----------
    path
        An input file, or a folder whose `.i` files are searched for.
    paths
        More of them.
    backend
        What runs the models; a driver passes if it passes with all.
    json
        Print the outcome as JSON.
    jobs
        How many drivers to run at a time.
    """
    outcomes, work = found((path, *paths))
    for outcome in progress(run_all(work, backend, jobs), len(work)):
        outcomes.append(outcome)
    print(as_json(outcomes) if json else as_text(outcomes))
    return int(any(not outcome.passed for outcome in outcomes))


def found(paths: Sequence[Path]) -> tuple[list[Outcome], list[tuple[Path, str]]]:
    """The files that cannot be read, and the self-checking drivers of the others."""
    from ingot.drivers import self_checking
    from ingot.hit import read

    broken: list[Outcome] = []
    work: list[tuple[Path, str]] = []
    problems: list[Problem] = []
    for path in paths:
        before = len(broken) + len(work)
        if not path.exists():
            message = f"there is no file or folder '{path}'"
            problems.append(Problem("file-not-found", message))
            continue
        for file in sorted(path.rglob("*.i")) if path.is_dir() else [path]:
            try:
                work += [(file, name) for name in self_checking(read(file))]
            except IngotError as error:
                broken.append(failed(file, "", "", error.problems))
        if len(broken) + len(work) == before:
            fix = "name a file with a ModelUnitTest, TransientRegression or Verification"
            message = f"'{path}' has no driver that checks itself"
            problems.append(Problem("nothing-checked", message, fix=fix))
    raise_if(problems)
    return broken, work


def run_all(
    work: Sequence[tuple[Path, str]], backends: tuple[Backend, ...], jobs: int
) -> Iterator[Outcome]:
    """The outcome of every driver, in order; several at a time where asked."""
    if jobs <= 1 or len(work) <= 1:
        yield from (checked(file, name, backends) for file, name in work)
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    # Workers are started afresh: torch does not survive a fork once its threads run.
    with ProcessPoolExecutor(jobs, get_context("spawn"), one_thread) as pool:
        files, names = zip(*work, strict=True)
        yield from pool.map(checked, files, names, [backends] * len(work))


def one_thread() -> None:
    """Leave the cores to the other workers."""
    import torch

    torch.set_num_threads(1)


def checked(file: Path, name: str, backends: Iterable[Backend]) -> Outcome:
    """Run one driver through every backend, up to the first that fails."""
    from ingot.drivers import TransientDriver, build_driver
    from ingot.hit import read

    backend = ""
    try:
        driver = build_driver(read(file), name)
        assert not isinstance(driver, TransientDriver)
        for backend in backends:
            verdict = driver.run(backend)
            if not verdict.passed:
                return failed(file, name, backend, verdict.problems)
    except IngotError as error:
        return failed(file, name, backend, error.problems)
    except Exception as error:
        return Outcome(str(file), name, False, f"{backend} {type(error).__name__}: {error}".strip())
    return Outcome(str(file), name, True)


def failed(file: Path, name: str, backend: str, problems: Sequence[Problem]) -> Outcome:
    """The outcome of a driver that did not pass: its first problem, and the types it lacks."""
    types = (re.findall(r"'([^']*)'", p.message) for p in problems if p.code == "unknown-type")
    missing = dict.fromkeys(quoted[0] for quoted in types if quoted)
    message = problems[0].message.splitlines()[0]
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    reason = f"{backend} {problems[0].code}: {message}{more}".strip()
    return Outcome(str(file), name, False, reason, tuple(missing))


def progress(outcomes: Iterator[Outcome], total: int) -> Iterator[Outcome]:
    """Pass outcomes on, and show on a terminal how many are done."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    yield from track(
        outcomes, "testing", total, console=console, transient=True, disable=not console.is_terminal
    )


def as_text(outcomes: Sequence[Outcome]) -> str:
    """A line for each failure, then the counts."""
    rows = [str(outcome) for outcome in outcomes if not outcome.passed]
    passed = len(outcomes) - len(rows)
    rows.append(f"{passed} passed, {len(rows)} failed")
    missing = [outcome for outcome in outcomes if outcome.unsupported]
    if missing:
        types = sorted({name for outcome in missing for name in outcome.unsupported})
        rows.append(f"{len(missing)} unsupported: {', '.join(types)}")
    return "\n".join(rows)


def as_json(outcomes: Sequence[Outcome]) -> str:
    """The counts and every outcome."""
    passed = sum(outcome.passed for outcome in outcomes)
    unsupported = sum(bool(outcome.unsupported) for outcome in outcomes)
    report = {
        "passed": passed,
        "failed": len(outcomes) - passed,
        "unsupported": unsupported,
        "outcomes": [asdict(outcome) for outcome in outcomes],
    }
    return jsonlib.dumps(report)
