"""[TensorSolver] -> the solver of a run, its lists of one length; that of a lattice streams."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator
from typing import Any

from ingot.errors import Problem
from ingot.fields.blocks.options import Reader, place
from ingot.fields.blocks.problem import LatticeOptions
from ingot.fields.solvers import SOLVERS
from ingot.fields.solvers.lattice import LBMStream
from ingot.fields.solvers.multistep import ForwardEulerSolver
from ingot.fields.solvers.solve import Solver, SolverOptions
from ingot.hit import Block

__all__ = ["lattice_solver", "misplaced_stream", "read_solver"]

NOT_OF_LATTICES = ("root_compute", "forward_buffer", "forward_buffer_new")
"""The options of solvers that change nothing of a lattice: all of [Solve] runs once a step."""


def read_solver(block: Block | None, reader: Reader) -> Any:
    """The solver of a [TensorSolver] block, its lists of one length."""
    if block is None:
        return None
    kind = reader.type_of(block, SOLVERS)
    solver: Solver | None = (
        None if kind is None else reader.made(block, kind, blocks=("Predictors",))
    )
    if solver is None:
        return None
    assert isinstance(solver, SolverOptions)
    if block.block("Predictors") is not None:
        logging.getLogger("ingot").warning("[TensorSolver/Predictors] has no effect")
    lists = solver.lists()
    pairs = {
        "forward_buffer": solver.forward_buffer,
        "forward_buffer_new": solver.forward_buffer_new,
    }
    for each in (lists, pairs):
        if len({len(names) for names in each.values()}) > 1:
            told = ", ".join(f"{name} has {len(names)}" for name, names in each.items())
            message = f"these lists of {block.title} are not of one length: {told}"
            reader.problems.append(
                Problem("wrong-value", message, block.span, "give as many of each")
            )
            return None
    if not getattr(solver, "buffer", ()) and not isinstance(solver, ForwardEulerSolver):
        message = f"{block.title} has no field to move"
        reader.problems.append(Problem("wrong-value", message, block.span, "name one in 'buffer'"))
        return None
    reader.problems += getattr(solver, "problems", lambda _: ())(block)
    return solver


def lattice_solver(
    solver: Any, options: LatticeOptions, block: Block | None, reader: Reader
) -> LBMStream:
    """What streams in a lattice Boltzmann problem: what the file says, or nothing."""
    if solver is not None and not isinstance(solver, LBMStream):
        message = f"{type(solver).__name__} does not solve a LatticeBoltzmannProblem"
        span = None if block is None else place(block, "type")
        fix = "set 'type = LBMStream', or 'type = TensorProblem' in [Problem]"
        reader.problems.append(Problem("wrong-value", message, span, fix))
    if block is not None and block.field("substeps") is not None:
        message = "LBMStream takes as many steps as the problem says"
        fix = "set substeps in [Problem] instead"
        reader.problems.append(Problem("wrong-value", message, place(block, "substeps"), fix))
    given = solver if isinstance(solver, LBMStream) else LBMStream()
    reader.tell_idle_fields(block, given, NOT_OF_LATTICES)
    return dataclasses.replace(given, substeps=options.substeps)


def misplaced_stream(solver: Any, block: Block | None) -> Iterator[Problem]:
    """A problem where distributions are streamed without a lattice."""
    if isinstance(solver, LBMStream) and block is not None:
        message = "LBMStream needs a lattice Boltzmann problem"
        fix = "set 'type = LatticeBoltzmannProblem' in [Problem], and add a [Stencil]"
        yield Problem("wrong-value", message, place(block, "type"), fix)
