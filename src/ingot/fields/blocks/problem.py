"""[Problem] -> the constants of a run, and whether it behaves as the reference does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ingot.errors import Problem
from ingot.fields.blocks.options import Reader
from ingot.hit import Block
from ingot.options import Count, NotNegative

__all__ = [
    "MOOSE_ONLY", "PROBLEMS", "LatticeOptions", "ProblemOptions", "read_problem",
    "undeclared_constants",
]  # fmt: skip

MOOSE_ONLY = (
    "solve_type", "scheme", "petsc_options", "petsc_options_iname", "petsc_options_value",
    "nl_rel_tol", "nl_abs_tol", "nl_max_its", "l_tol", "l_abs_tol", "l_max_its", "line_search",
    "automatic_scaling", "abort_on_solve_fail", "steady_state_detection", "verbose",
    "nl_abs_step_tol", "nl_rel_step_tol", "nl_div_tol", "nl_forced_its", "timestep_tolerance",
)  # fmt: skip
"""Options of a finite-element solve, which does not take place here."""

CHECKS = ("solve", "kernel_coverage_check", "material_coverage_check", "skip_nl_system_check")
"""Options of [Problem] that ask for, or spare, checks of such a solve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemOptions:
    """What holds for the whole run.

    scalar_constant_names: names for numbers, which options may use
    scalar_constant_values: those numbers
    print_debug_output: whether to print the order of the computes
    spectral_solve_substeps: accepted, without effect
    marlin_compatible: whether to do as Marlin does where it is not what the mathematics says
    """

    scalar_constant_names: tuple[str, ...] = ()
    scalar_constant_values: tuple[float, ...] = ()
    print_debug_output: bool = False
    spectral_solve_substeps: Count = 1
    marlin_compatible: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class LatticeOptions(ProblemOptions):
    """A run of lattice Boltzmann steps.

    binary_media: the buffer that is 0 in solid cells
    enable_slip: accepted, without effect
    substeps: how many steps of the lattice each step takes
    tolerance: the run ends once LBMComputeResidual finds less
    """

    binary_media: str = ""
    enable_slip: bool = False
    substeps: Count = 1
    tolerance: NotNegative = 1e-15


PROBLEMS = {"TensorProblem": ProblemOptions, "LatticeBoltzmannProblem": LatticeOptions}


def read_problem(block: Block | None, reader: Reader) -> tuple[ProblemOptions, dict[str, float]]:
    """The options of a [Problem] block, and the constants it declares."""
    if block is None:
        return ProblemOptions(), {}
    kind = reader.type_of(block, PROBLEMS, "TensorProblem") or ProblemOptions
    options = reader.made(block, kind, ("type", *CHECKS))
    if options is None:
        return ProblemOptions(), {}
    names, values = options.scalar_constant_names, options.scalar_constant_values
    if len(names) != len(values):
        message = f"there are {len(names)} scalar_constant_names and {len(values)} values for them"
        reader.problems.append(
            Problem("wrong-value", message, block.span, "give one value for each name")
        )
        return options, {}
    return options, dict(zip(names, values, strict=True))


def undeclared_constants(reader: Reader, constants: Mapping[str, float]) -> Iterator[Problem]:
    """A problem where options use names that stand for no number."""
    missing = sorted(name for name in reader.constants if name not in constants)
    if missing:
        verb = "were" if len(missing) > 1 else "was"
        noun = "Constants" if len(missing) > 1 else "Constant"
        message = f"{noun} {', '.join(missing)} {verb} requested but never declared"
        fix = "write a number, or declare it: scalar_constant_names in [Problem]"
        yield Problem("unknown-constant", message, reader.constants[missing[0]].value_span, fix)
