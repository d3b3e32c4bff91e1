"""`ingot test`: what checks itself in files and folders: drivers, and specs of `tests` files."""

import json as jsonlib
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ingot.cli.flags import device_asked
from ingot.cli.progress import can_renew
from ingot.cli.ranks import start_ranks
from ingot.errors import IngotError, IngotWarning, Problem, raise_if
from ingot.options import Backend

if TYPE_CHECKING:
    from ingot.fields.compare import Spec

__all__ = ["Outcome", "checked", "test"]

SPECS = "tests"
Work = tuple[Path, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one self-checking driver or spec, which `driver` names.

    `unsupported` names types that do not exist yet; what was `skipped` did neither pass nor fail;
    `warnings` are the texts of what may not be meant, and would fail it under --strict.
    """

    file: str
    driver: str
    passed: bool
    reason: str = ""
    unsupported: tuple[str, ...] = ()
    skipped: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether it was run and did not pass."""
        return not self.passed and not self.skipped

    def __str__(self) -> str:
        block = f" [{self.driver}]" if self.driver else ""
        word = "skipped" if self.skipped else "failed"
        return f"{self.file}{block} {'passed' if self.passed else f'{word}: {self.reason}'}"


@dataclass(frozen=True, slots=True)
class How:
    """How things are run: drivers by these backends, specs compiled or not, on a device.

    strict: what is warned of is an error; untrusted: no code that a file names is run.
    """

    backends: tuple[Backend, ...]
    eager: bool
    device: str
    strict: bool
    untrusted: bool


def test(
    path: Path,
    /,
    *paths: Path,
    backend: tuple[Backend, ...] = (),
    json: bool = False,
    jobs: Annotated[int, Parameter(alias="-j")] = 1,
    eager: bool = False,
    strict: bool = False,
    untrusted: bool = False,
) -> int:
    """Run every self-checking driver of files and folders, and every spec of MOOSE `tests` files.

    Example: ingot test cases --backend kernel -j 2

    Parameters
    ----------
    path
        An input file, a `tests` file, or a folder that is searched for both.
    paths
        More of them.
    backend
        What runs the models; a driver passes if it passes with all. Unless given interpret and
        kernel.
    json
        Print the outcome as JSON.
    jobs
        How many drivers or specs to run at a time.
    eager
        Run the computes of specs one by one, without compiling sequences of them.
    strict
        Count as failed whatever is warned of otherwise, as [Settings] strict = true does.
    untrusted
        Evaluate Python of the files within bounds, by listed names; run no other code they name.
    """
    outcomes, work = found((path, *paths))
    total = sum(len(names) for _, names in work)
    how = How(backend or ("interpret", "kernel"), eager, device_asked(None), strict, untrusted)
    for outcome in progress(run_all(work, how, jobs), total):
        outcomes.append(outcome)
    print(as_json(outcomes) if json else as_text(outcomes))
    return int(any(outcome.failed for outcome in outcomes))


def found(paths: Sequence[Path]) -> tuple[list[Outcome], list[Work]]:
    """The files that cannot be read, and what checks itself in the others."""
    broken: list[Outcome] = []
    work: list[Work] = []
    problems: list[Problem] = []
    for path in paths:
        before = len(broken) + len(work)
        if not os.path.exists(path):
            message = f"there is no file or folder '{path}'"
            fix = "name an input file, a `tests` file or a folder of them"
            problems.append(Problem("file-not-found", message, fix=fix))
            continue
        for file in candidates(path):
            try:
                work += [(file, names) for names in checks_of(file)]
            except IngotError as error:
                broken.append(failed(file, "", "", error.problems))
        if len(broken) + len(work) == before:
            fix = (
                "name a file with a ModelUnitTest, TransientRegression or Verification, or [Tests]"
            )
            message = f"'{path}' has no driver that checks itself"
            problems.append(Problem("nothing-checked", message, fix=fix))
    raise_if(problems)
    return broken, work


def candidates(path: Path) -> list[Path]:
    """The files to look into: a file itself, or all inputs and `tests` files of a folder."""
    if not path.is_dir():
        return [path]
    return sorted([*path.rglob("*.i"), *(file for file in path.rglob(SPECS) if file.is_file())])


def checks_of(file: Path) -> list[tuple[str, ...]]:
    """The names of what checks itself in a file; specs that wait for one another stay together."""
    from ingot.hit import read, sections_of

    sections = {name.split("/")[0] for name in sections_of(file)}
    if "Tests" in sections or file.name == SPECS:
        from ingot.fields.compare import chains, read_specs

        return [tuple(spec.name for spec in chain) for chain in chains(read_specs(file))]
    if "Domain" in sections:
        # The input of a field problem is judged by the specs beside it.
        return []
    from ingot.drivers import self_checking

    return [(name,) for name in self_checking(read(file))]


def run_all(work: Sequence[Work], how: How, jobs: int) -> Iterator[Outcome]:
    """The outcome of everything that checks itself, in order; several at a time where asked."""
    if jobs <= 1 or len(work) <= 1:
        for file, names in work:
            yield from outcomes_of(file, names, how)
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    from ingot.catalog import law_files

    # Workers are started afresh: torch does not survive a fork once its threads run.
    with ProcessPoolExecutor(jobs, get_context("spawn"), start_worker, (law_files(),)) as pool:
        files, names = zip(*work, strict=True)
        for outcomes in pool.map(outcomes_of, files, names, [how] * len(work)):
            yield from outcomes


def start_worker(laws: Sequence[Path]) -> None:
    """Leave the cores to the other workers, and know the laws that --load names."""
    import torch

    from ingot.catalog import load_file

    torch.set_num_threads(1)
    for file in laws:
        load_file(file)


def outcomes_of(file: Path, names: tuple[str, ...], how: How) -> list[Outcome]:
    """The outcomes of one piece of work: drivers of an input, or specs of a `tests` file."""
    from ingot.hit import sections_of

    if "Tests" in {name.split("/")[0] for name in sections_of(file)}:
        return specs_checked(file, names, how)
    return [checked(file, name, how) for name in names]


def specs_checked(file: Path, names: tuple[str, ...], how: How) -> list[Outcome]:
    """Run specs of one file in their order, away from the file's folder."""
    from functools import partial
    from tempfile import TemporaryDirectory

    from ingot.fields.compare import Skipped, chains, check_all, read_specs

    chain = next(c for c in chains(read_specs(file)) if tuple(s.name for s in c) == names)
    outcomes: list[Outcome] = []
    with TemporaryDirectory(prefix="ingot-test-") as folder:
        for spec, result in check_all(chain, partial(run_spec, how=how), Path(folder)):
            if isinstance(result, Skipped):
                outcomes.append(Outcome(str(file), spec.name, False, str(result), skipped=True))
            elif result.passed:
                outcomes.append(Outcome(str(file), spec.name, True))
            else:
                outcomes.append(failed(file, spec.name, "", result.problems))
    return outcomes


def run_spec(spec: "Spec", folder: Path, how: How) -> None:
    """Run the input of a spec, which writes its files into the folder."""
    from ingot.fields import build, run
    from ingot.hit import read

    assert spec.input is not None, "a spec that runs has an input"
    if spec.ranks is not None and spec.ranks > 1:
        flags = ["--eager"] * how.eager + ["--strict"] * how.strict
        flags += ["--untrusted"] * how.untrusted + (["--device", how.device] if how.device else [])
        arguments = ["run", str(spec.input.resolve()), *spec.overrides, *flags]
        print(start_ranks(spec.ranks, arguments, folder, quiet=True))
        return
    simulation = build(read(spec.input, spec.overrides, moose=True), untrusted=how.untrusted)
    run(
        simulation, folder, jit=not how.eager, device=how.device, ranks=spec.ranks,
        strict=how.strict,
    )  # fmt: skip


def checked(file: Path, name: str, how: How) -> Outcome:
    """Run one driver through every backend, up to the first that fails; its warnings are kept."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", IngotWarning)
        outcome = judged(file, name, how)
    ours = (str(each.message) for each in caught if isinstance(each.message, IngotWarning))
    return replace(outcome, warnings=tuple(dict.fromkeys(ours)))


def judged(file: Path, name: str, how: How) -> Outcome:
    """Whether one driver passes through every backend."""
    from ingot.drivers import TransientDriver, build_driver
    from ingot.hit import read

    backend = ""
    try:
        driver = build_driver(read(file), name, strict=how.strict, untrusted=how.untrusted)
        assert not isinstance(driver, TransientDriver)
        for backend in how.backends:
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
        outcomes, "testing", total, console=console, transient=True, disable=not can_renew()
    )


def counted(outcomes: Sequence[Outcome]) -> tuple[int, int, int]:
    """How many passed, failed, and were skipped."""
    passed = sum(outcome.passed for outcome in outcomes)
    failures = sum(outcome.failed for outcome in outcomes)
    return passed, failures, len(outcomes) - passed - failures


def as_text(outcomes: Sequence[Outcome]) -> str:
    """What was warned of, a line for each failure and for what was skipped, then the counts."""
    rows = [text for outcome in outcomes for text in outcome.warnings]
    rows += [str(outcome) for outcome in outcomes if not outcome.passed]
    passed, failures, skipped = counted(outcomes)
    more = f", {skipped} skipped" if skipped else ""
    doubtful = sum(bool(outcome.warnings) for outcome in outcomes)
    more += f", {doubtful} with warnings" if doubtful else ""
    rows.append(f"{passed} passed, {failures} failed{more}")
    missing = [outcome for outcome in outcomes if outcome.unsupported]
    if missing:
        types = sorted({name for outcome in missing for name in outcome.unsupported})
        rows.append(f"{len(missing)} unsupported: {', '.join(types)}")
    return "\n".join(rows)


def as_json(outcomes: Sequence[Outcome]) -> str:
    """The counts and every outcome."""
    passed, failures, skipped = counted(outcomes)
    unsupported = sum(bool(outcome.unsupported) for outcome in outcomes)
    report = {
        "passed": passed,
        "failed": failures,
        "skipped": skipped,
        "unsupported": unsupported,
        "outcomes": [asdict(outcome) for outcome in outcomes],
    }
    return jsonlib.dumps(report)
