"""`ingot run`: a driver of a file, run and, where it judges itself, judged."""

import json as jsonlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ingot.errors import IngotError, Problem

if TYPE_CHECKING:
    from ingot.drivers import Result, TransientDriver, Verdict
    from ingot.execute import Status
    from ingot.hit import Tree

__all__ = ["Backend", "run"]

Backend = Literal["interpret", "kernel"]


def run(
    file: Path,
    /,
    *words: str,
    backend: Backend = "kernel",
    json: bool = False,
    save: Path | None = None,
) -> int:
    """Run a driver of FILE: its only one, or the one named first among WORDS.

    Parameters
    ----------
    file
        The input file.
    words
        The driver's name, then values that replace those of the file, such as nbatch:=5.
    backend
        What runs the model: torch operations, or generated C++.
    json
        Print the summary as JSON.
    save
        Write the result of a transient here, for torch.load.
    """
    from ingot.drivers import TransientDriver, build_driver, require_converged
    from ingot.hit import read

    named = words[:1] if words and "=" not in words[0] else ()
    tree = read(file, words[len(named) :])
    name = named[0] if named else only_driver(tree)
    driver = build_driver(tree, name)
    if not isinstance(driver, TransientDriver):
        refuse_save(save, name)
        return judge(driver.run(backend), name, json=json)
    result = driver.run(backend)
    if save is not None:
        result.save(save)
    report = summary(driver, result, backend)
    print(jsonlib.dumps(report) if json else table(report))
    require_converged(driver, result)
    return 0


def only_driver(tree: "Tree") -> str:
    """The name of a file's driver where there is just one."""
    names = tree.names("Drivers")
    if len(names) == 1:
        return names[0]
    where = "<text>" if tree.file is None else str(tree.file)
    if not names:
        message, fix = f"{where} has no [Drivers]", "add a driver to the file"
    else:
        message, fix = f"{where} has {len(names)} drivers", f"name one: {', '.join(names)}"
    raise IngotError([Problem("which-driver", message, fix=fix)])


def refuse_save(save: Path | None, name: str) -> None:
    if save is not None:
        message = f"[Drivers/{name}] judges a result and has none of its own to save"
        raise IngotError([Problem("which-driver", message, fix="name its TransientDriver")])


def judge(verdict: "Verdict", name: str, *, json: bool) -> int:
    """Print whether a driver that judges itself passed."""
    if json:
        report = {
            "driver": name,
            "passed": verdict.passed,
            "checks": verdict.checks,
            "problems": [problem.message for problem in verdict.problems],
        }
        print(jsonlib.dumps(report))
    if not verdict.passed:
        raise IngotError(verdict.problems)
    if not json:
        print(f"{name} passed: {verdict.checks} values agree")
    return 0


def summary(driver: "TransientDriver", result: "Result", backend: Backend) -> dict[str, Any]:
    """What there is to tell about a run."""
    return {
        "driver": driver.block.name,
        "backend": backend,
        "steps": result.steps,
        "points": result.points,
        "seconds": result.seconds,
        "prepare_seconds": driver.prepare_seconds[backend],
        "microseconds_per_point_and_step": result.microseconds,
        "solves": {
            status.solve: {
                "points": counts(status, result.points),
                "mean_iterations": float(status.iterations.double().mean()),
                "most_iterations": int(status.iterations.max()),
            }
            for status in result.statuses
        },
    }


def counts(status: "Status", points: int) -> dict[str, int]:
    """How many points converged at every step, and how many first failed for which reason."""
    from ingot.execute import Reason

    rows = status.first_failures()
    reasons = Counter(int(status.reason[step, point]) for step, point in rows.tolist())
    reasons[Reason.CONVERGED] = points - len(rows)
    return {reason.name.lower().replace("_", " "): reasons[reason] for reason in Reason}


def table(report: dict[str, Any]) -> str:
    """A summary as lines of a name and a value."""
    rows = [
        ("driver", f"{report['driver']} ({report['backend']})"),
        ("steps", str(report["steps"])),
        ("points", str(report["points"])),
        ("time", f"{report['seconds']:.3g} s, and {report['prepare_seconds']:.3g} s to prepare"),
        ("speed", f"{report['microseconds_per_point_and_step']:.3g} µs per point and step"),
    ]
    for name, solve in report["solves"].items():
        points = ", ".join(f"{count} {why}" for why, count in solve["points"].items() if count)
        mean, most = solve["mean_iterations"], solve["most_iterations"]
        rows.append((name, f"{points}; {mean:.2g} iterations a step, {most} at most"))
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)
