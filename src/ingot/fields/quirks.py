"""What a run does as the reference does, and the mathematics does not ask for: each told once.

In: a Simulation. Out: problems; `marlin_compatible = false` mends what they name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ingot.errors import Problem
from ingot.fields.blocks.bind import Bound
from ingot.fields.blocks.executioner import ConstantDT
from ingot.fields.computes.basic import MooseFunctionTensor
from ingot.fields.computes.parsed import ParsedCompute, formula_from
from ingot.fields.lbm.setting import lattice_quirks
from ingot.fields.step import Ambient, Step

if TYPE_CHECKING:
    from ingot.fields.simulation import Simulation

__all__ = ["quirks"]

FIX = "marlin_compatible = false in [Problem] gives the right ones"


def quirks(made: Simulation) -> Iterator[Problem]:
    """What computes, the solver and postprocessors do as the reference does; each type once."""
    first: dict[str, Problem] = {}
    for problem in lattice_quirks(made):
        first.setdefault(problem.message, problem)
    yield from first.values()
    told: set[str] = set()
    for step in (*made.initialize, *made.root.steps, *made.postprocess):
        later = step not in made.initialize or made.executioner.start_time != 0
        given = {**step.arguments, **step.options, "lower": made.domain.lower, "later": later}
        what = step.quirk(made.domain.sizes, given) if step.quirk is not None else ""
        name = step.function.__name__
        if what and name not in told:
            told.add(name)
            message = f"{name} gives Marlin's numbers: {what}"
            yield Problem("reference-quirk", message, step.span, FIX)
    if made.problem.marlin_compatible:
        yield from solver_quirks(made)
        yield from measure_quirks(made)


def solver_quirks(made: Simulation) -> Iterator[Problem]:
    """How the solver, or where there is none the run, treats history and time."""
    clocked = any(map(reads_time, made.root.steps))
    if made.solver is None:
        told = ["[Solve] sees the time where a step begins"] if clocked else []
        section, name = "TensorComputes", "a run without a solver"
    else:
        changes = not isinstance(made.stepper, ConstantDT)
        told = list(made.solver.quirks(clocked=clocked, changes_size=changes))
        section, name = "TensorSolver", type(made.solver).__name__
    for what in told:
        message = f"{name} gives Marlin's numbers: {what}"
        yield Problem("reference-quirk", message, made.tree.section(section)[0].span, FIX)


def measure_quirks(made: Simulation) -> Iterator[Problem]:
    """What changes are measured from; each type once."""
    found = (m for m in made.measures if isinstance(m.rule, Bound) and m.rule.declared.history)
    for name, measure in {m.rule.declared.name: m for m in found}.items():
        what = "in the first step a change is that from nothing, later that of the last substep"
        if int(made.domain.dim) > 1 and measure.rule.options.get("compatible"):
            what += ", and speeds along the axes are added up"
        message = f"{name} gives Marlin's numbers: {what}"
        yield Problem("reference-quirk", message, measure.span, FIX)


def reads_time(step: Step) -> bool:
    """Whether what a step gives depends on the time that it sees."""
    if step.function is ParsedCompute and step.options["extra_symbols"]:
        return "t" in formula_from({**step.options, "inputs": step.options["names"]}).names
    # the others of ours that ask for the time are told of by themselves
    ours = step.function in (ParsedCompute, MooseFunctionTensor) or step.quirk is not None
    return not ours and Ambient("time") in step.sources
