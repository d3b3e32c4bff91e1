"""Points that failed -> an error, and a HIT file for each solve that repeats its worst point."""

import os
from pathlib import Path

from ingot.catalog import law_files
from ingot.drivers.result import Result
from ingot.drivers.transient import TransientDriver
from ingot.drivers.write import describe_point
from ingot.errors import Problem, raise_if
from ingot.runtime.stub import AOTIModel

__all__ = ["require_converged"]


def require_converged(
    driver: TransientDriver, result: Result, folder: Path = Path("failed")
) -> None:
    """Raise where points failed, with the worst point of each solve written to the folder."""
    problems: list[Problem | None] = []
    for status in result.statuses:
        worst = status.worst()
        if worst is None:
            continue
        file = folder / f"{status.solve}.i"
        step, point = worst
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(
            f"# Point {point} of [{driver.block.name}], whose solve [{status.solve}] fails at step"
            f" {step}.\n{describe_point(driver, step + 1, point)}"
        )
        words = " ".join([str(file), *(f"--load {os.path.relpath(law)}" for law in law_files())])
        in_parts = not may_halve(driver, status.solve)
        problems.append(status.problem(words, in_parts=in_parts, times=result.times))
    raise_if(problem for problem in problems if problem is not None)


def may_halve(driver: TransientDriver, solve: str) -> bool:
    """Whether a solve could take a step in parts, and does not."""
    if isinstance(driver.model.body, AOTIModel):
        return False
    return any(s.name == solve and s.substeps is None for s in driver.program.solves)
