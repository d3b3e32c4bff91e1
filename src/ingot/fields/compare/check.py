"""check: run a spec and compare what it wrote with its references.

In: specs and a function that runs the input of one, writing into a folder. Out: a Verdict for each.
"""

import contextlib
import io
import logging
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ingot.drivers.verdict import Verdict
from ingot.errors import IngotError, IngotWarning, Problem
from ingot.fields.compare.csvdiff import compare_csv
from ingot.fields.compare.difference import Compared
from ingot.fields.compare.spec import DIFFS, Spec

__all__ = ["Runner", "Skipped", "chains", "check_all"]

Runner = Callable[[Spec, Path], object]
LISTED = 10


class Skipped(str):
    """Why a spec was not run."""

    __slots__ = ()


def chains(specs: Sequence[Spec]) -> list[tuple[Spec, ...]]:
    """Specs in an order in which each comes after those it waits for, cut where none waits."""
    groups: list[list[Spec]] = []
    for spec in specs:
        tied = [group for group in groups if any(linked(spec, other) for other in group)]
        groups = [group for group in groups if group not in tied]
        groups.append([*(each for group in tied for each in group), spec])
    return [tuple(ordered(group)) for group in groups]


def linked(one: Spec, other: Spec) -> bool:
    """Whether one of two specs waits for the other."""
    return one.name in other.after or other.name in one.after


def ordered(group: Sequence[Spec]) -> Iterator[Spec]:
    """The specs of a group, each after those it waits for; a circle is a problem of each."""
    left = list(group)
    while left:
        waiting = {spec.name for spec in left}
        ready = [spec for spec in left if not waiting & set(spec.after)]
        if not ready:
            message = f"these tests wait for one another: {', '.join(sorted(waiting))}"
            fix = "remove one name from a 'prereq'"
            circle = (Problem("circular-tests", message, spec.span, fix) for spec in left)
            yield from (replace(s, problems=(p,)) for s, p in zip(left, circle, strict=True))
            return
        yield from ready
        left = [spec for spec in left if spec not in ready]


def check_all(
    specs: Sequence[Spec], run: Runner, folder: Path
) -> Iterator[tuple[Spec, Verdict | Skipped]]:
    """Check specs in order; each writes into a folder of its own below the one given."""
    done: dict[str, Path | None] = {}
    for spec in specs:
        missing = [name for name in spec.after if done.get(name) is None]
        place = folder / spec.name
        result: Verdict | Skipped
        if spec.problems:
            result = Verdict(0, spec.problems)
        elif spec.skip is not None:
            result = Skipped(spec.skip)
        elif missing:
            result = Skipped(f"'{missing[0]}' comes first, and did not pass")
        else:
            if not spec.executes:
                place = done[spec.after[0]] or place
            place.mkdir(parents=True, exist_ok=True)
            result = guarded(spec, run, place)
        passed = isinstance(result, Verdict) and result.passed
        done[spec.name] = place if passed else None
        yield spec, result


def guarded(spec: Spec, run: Runner, folder: Path) -> Verdict:
    """Check a spec; an error of it is a problem of this spec alone."""
    try:
        return check(spec, run, folder)
    except IngotError as error:
        return Verdict(0, error.problems)
    except Exception as error:
        message = f"the run broke off: {type(error).__name__}: {error}"
        return Verdict(0, (Problem("run-differs", message, spec.span),))


def check(spec: Spec, run: Runner, folder: Path) -> Verdict:
    """Run a spec in a folder, and judge how it ended and what it wrote."""
    said, raised = outcome(spec, run, folder) if spec.executes else ("", None)
    problems = [*judged_end(spec, raised), *judged_words(spec, said)]
    if problems or spec.fails:
        return Verdict(1, tuple(problems))
    checks, found = 1 if spec.executes else 0, list[Problem]()
    for name in spec.outputs:
        compared = compare(spec, folder / name, spec.file.parent / spec.gold / name, folder)
        if isinstance(compared, Problem):
            found.append(compared)
            continue
        checks += compared.parts
        found += told(spec, name, compared)
    return Verdict(checks, tuple(found))


def outcome(spec: Spec, run: Runner, folder: Path) -> tuple[str, IngotError | None]:
    """What a run said and warned of, and the error it ended with."""
    said, raised = io.StringIO(), None
    handler, logger = logging.StreamHandler(said), logging.getLogger("ingot")
    logger.addHandler(handler)
    with warnings.catch_warnings(record=True) as doubts:
        # a warning that an earlier spec of the same input gave is given again
        warnings.simplefilter("always", IngotWarning)
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                run(spec, folder)
        except IngotError as error:
            raised = error
        finally:
            logger.removeHandler(handler)
    words = [said.getvalue(), *(str(each.message) for each in doubts)]
    return "\n".join([*words, str(raised or "")]), raised


def judged_end(spec: Spec, raised: IngotError | None) -> Iterator[Problem]:
    """What is wrong with the way a run ended."""
    if raised is None and spec.fails:
        wanted = f" with '{spec.error}'" if spec.error else ""
        yield Problem("run-differs", f"the run should stop{wanted}, but did not", spec.span)
    elif raised is not None and not spec.fails:
        yield from raised.problems
    elif raised is not None and spec.error and not holds(spec, spec.error, str(raised)):
        message = f"the run stopped with '{raised.problems[0].message}', not '{spec.error}'"
        yield Problem("run-differs", message, spec.span)


def judged_words(spec: Spec, said: str) -> Iterator[Problem]:
    """What is wrong with what a run printed."""
    if spec.says is not None and not holds(spec, spec.says, said):
        yield Problem("run-differs", f"the run did not print '{spec.says}'", spec.span)
    if spec.says_not is not None and holds(spec, spec.says_not, said):
        yield Problem("run-differs", f"the run printed '{spec.says_not}'", spec.span)


def holds(spec: Spec, pattern: str, text: str) -> bool:
    """Whether a text holds what a spec looks for, which is a pattern unless it says otherwise."""
    if spec.literal:
        return pattern in text
    try:
        return re.search(pattern, text, re.MULTILINE | re.DOTALL) is not None
    except re.error as error:
        message = f"'{pattern}' is not a pattern: {error}"
        fix = "mend it, or add match_literal = true"
        raise IngotError([Problem("wrong-value", message, spec.span, fix)]) from error


def compare(spec: Spec, found: Path, expected: Path, folder: Path) -> Compared | Problem:
    """Compare one file with its reference; that one of them is missing is a problem."""
    if not expected.is_file():
        message = f"there is no reference '{expected}'"
        return Problem("file-not-found", message, spec.span, f"add it to {spec.gold}/")
    if not found.is_file():
        wrote = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
        message = f"the run wrote no '{found.name}', but {', '.join(wrote) or 'nothing'}"
        fix = "check the outputs and file_base of the input"
        return Problem("missing-output", message, spec.span, fix)
    if spec.type == "CSVDiff":
        return compare_csv(found, expected, spec.limits, spec.columns)
    return DIFFS[spec.type][1](found, expected, spec.limits)


def told(spec: Spec, name: str, compared: Compared) -> Iterator[Problem]:
    """The findings of one file as a problem: the worst on its first line, then the others."""
    if not compared.findings:
        return
    first, *others = compared.findings
    more = f" (and {len(others)} more)" if others else ""
    rows = [f"    {finding}" for finding in others[: LISTED - 1]]
    if len(others) >= LISTED:
        rows.append(f"    and {len(others) - LISTED + 1} more")
    head = f"{name} differs from {spec.gold}/{name}: {first}{more}"
    yield Problem("values-differ", "\n".join([head, *rows]), spec.span)
