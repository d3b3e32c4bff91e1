"""`ingot diagnose`: where Newton's method struggled in a driver's run, and what helps."""

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING

from ingot.errors import IngotError, Problem
from ingot.options import Backend

if TYPE_CHECKING:
    from ingot.hit import Tree

__all__ = ["diagnose"]


def diagnose(
    file: Path,
    /,
    *words: str,
    backend: Backend | None = None,
    json: bool = False,
    untrusted: bool = False,
) -> int:
    """Tell where Newton's method struggled in a driver's run, why, and what helps.

    Of every solve: the points and steps that failed or took most updates, the residuals of the
    worst by equation and update, the conditioning of its Jacobian, updates that fell back to
    pivoting, steps taken in parts, the cause, and what was tried and helped. The exit code is 0
    where all points converged, 1 where some did not.

    Example: ingot diagnose model.i driver --json

    Parameters
    ----------
    file
        The input file; also one that a run saved, such as failed/update.i.
    words
        The name of a TransientDriver, if there are several, then values that replace those of the
        file, such as nbatch:=5.
    backend
        What runs all points and steps before the worst is looked at. Unless given kernel, which
        alone counts updates that fell back to pivoting.
    json
        Print all of it as JSON.
    untrusted
        Evaluate Python of the file within bounds, by listed names, and run no other code it names.
    """
    from ingot.drivers import diagnose as find
    from ingot.drivers import transient_driver
    from ingot.hit import read
    from ingot.model import Factory

    named = words[:1] if words and "=" not in words[0] else ()
    tree = read(file, words[len(named) :])
    name = named[0] if named else only_transient(tree)
    driver = transient_driver(Factory(tree, untrusted=untrusted), name)
    diagnosis = find(driver, backend)
    print(jsonlib.dumps(diagnosis.report()) if json else diagnosis)
    return int(diagnosis.failed > 0)


def only_transient(tree: "Tree") -> str:
    """The name of a file's TransientDriver where there is just one."""
    blocks = (block for part in tree.section("Drivers") for block in part.blocks)
    names = [block.name for block in blocks if block.type == "TransientDriver"]
    if len(names) == 1:
        return names[0]
    message = f"{tree.file} has {len(names) or 'no'} TransientDriver{'s' * (len(names) > 1)}"
    fix = f"name one: {', '.join(names)}" if names else "add one to [Drivers]"
    raise IngotError([Problem("which-driver", message, fix=fix)])
