"""FFTMechanics: the deformation that brings a periodic body into equilibrium.

Newton's method on the Fourier-Galerkin form of de Geus et al. (2017); its linear equations by
conjugate gradients, whose bodies are sequences of steps, compiled like all others.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch

from ingot.errors import IngotError, Problem, warn_of
from ingot.fields.computes.elasticity import STRESSES
from ingot.fields.computes.linear_equations import (
    ITERATES,
    LinearEquations,
    linear_equations,
    source_of,
)
from ingot.fields.computes.mechanics import DEFORMATION
from ingot.fields.computes.slopes import Convention, stress_alone
from ingot.fields.declare import Compatible, compute
from ingot.fields.matrices import apart, entries, joined, side_of
from ingot.fields.spaces import Grid, Narrow, Space
from ingot.fields.step import Buffer, Source, State, Step, StepExecutor
from ingot.options import Count, NotNegative

__all__ = ["FFTMechanics"]

LOG = logging.getLogger("ingot")


def found_iteration(step: Step, steps_named: Callable[[str], tuple[Step, ...]]) -> Step:
    """The solve of a block: its own steps, and those of the law that it names."""
    made = GalerkinSolve(step, steps_named("constitutive_model"))
    problems = list(made.problems())
    if problems:
        raise IngotError(problems)
    given = {*step.gives, *(name for each in made.law for name in each.gives)}
    more = [n for each in made.law for n in each.reads if n not in given]
    arguments = {**step.arguments, "law": tuple(map(Buffer, dict.fromkeys(more)))}
    gives = tuple(dict.fromkeys((*step.gives, *(n for each in made.law for n in each.gives))))
    starts = {n: sizes for each in made.law for n, sizes in each.starts.items()}
    follows = {n: source for each in made.law for n, source in each.follows.items()}
    return dataclasses.replace(
        step, arguments=arguments, gives=gives, starts=starts, follows=follows, iteration=made,
        reason=step.reason or ITERATES,
    )  # fmt: skip


def kept_nyquist(sizes: tuple[int, ...], given: Mapping[str, Any]) -> str:
    """On an axis of odd size there is no such wavenumber; nor is it there with a Green operator."""
    kept = given["preconditioner"] == "NONE" and any(n % 2 == 0 for n in sizes)
    return "the Nyquist wavenumbers of even axes are kept, which have no slope" if kept else ""


@compute(
    iterates=found_iteration,
    quirk=kept_nyquist,
)
def FFTMechanics(
    space: Space,
    F: Narrow = DEFORMATION,
    K: Narrow | None = None,
    mu: Narrow | None = None,
    applied_macroscopic_strain: Narrow | None = None,
    *,
    constitutive_model: str,
    stress: str = "stress",
    tangent_operator: str = "dstressdstrain",
    tangent_convention: Convention | None = None,
    preconditioner: Literal["NONE", "GREEN"] = "NONE",
    l_tol: NotNegative = 1e-2,
    l_max_its: Count | None = None,
    nl_rel_tol: NotNegative = 1e-5,
    nl_abs_tol: NotNegative = 1e-8,
    nl_max_its: Count = 100,
    verbose: bool = False,
    compatible: Compatible,
) -> Grid:
    """The deformation gradient of a periodic body in equilibrium, by FFTs and Newton's method.

    buffer: the deformation gradient that is found, which the constitutive model reads
    F: the deformation gradient to start from
    K: a bulk modulus, which the constitutive model reads; the solve itself does not
    mu: a shear modulus, likewise
    applied_macroscopic_strain: a matrix that is added to F everywhere
    constitutive_model: the compute or group of [Solve] that gives stress and tangent
    stress: the buffer of the stress, a matrix or six numbers in Mandel order
    tangent_operator: the buffer of the stress's derivative by F, or six by six numbers
    tangent_convention: dP_ij/dF_kl stands at ijkl (DERIVATIVE, as materials give it) or at jikl
    preconditioner: NONE for plain conjugate gradients, GREEN for those in a mean homogeneous body
    l_tol: how small the residual of the linear equations must become, against the right side
    l_max_its: the most iterations of the linear equations, as many as cells unless given
    nl_rel_tol: how small the last correction must be against the deformation gradient
    nl_abs_tol: how small the last correction may be instead
    nl_max_its: the most iterations of Newton's method
    verbose: whether to log norms
    """
    return joined(entries(space.whole(F), space), (side_of(F, space),) * 2, space)


@dataclass(frozen=True, eq=False)
class GalerkinSolve:
    """The steps of a solve, and the loops that run them."""

    step: Step
    model: tuple[Step, ...]

    def problems(self) -> Iterator[Problem]:
        """What a law lacks."""
        options, span = self.step.options, self.step.span
        name = options["constitutive_model"]
        written = {n for each in self.model for n in each.gives}
        for option in ("stress", "tangent_operator"):
            if options[option] not in written:
                message = f"'{name}' does not write '{options[option]}', the {option} of the solve"
                fix = f"choose one of: {', '.join(sorted(written))}"
                yield Problem("wrong-value", message, span, fix)
        if not any(self.step.gives[0] in each.reads for each in self.model):
            message = f"'{name}' does not read '{self.step.gives[0]}', which is solved for"
            yield Problem("wrong-value", message, span, "let it read what FFTMechanics writes")

    @functools.cached_property
    def first(self) -> Step:
        """The deformation gradient to start from."""
        known = {name: self.step.arguments[name] for name in ("space", "F")}
        reason = "" if self.step.reason == ITERATES else self.step.reason
        return dataclasses.replace(self.step, arguments=known, reason=reason)

    def hidden(self, *names: str) -> str:
        """A buffer of the solve's own."""
        return f"{self.step.name}#{'/'.join(names)}"

    @functools.cached_property
    def remembered(self) -> tuple[str, ...]:
        """The internal variables: buffers that the law reads before it writes them."""
        given: set[str] = set(self.step.gives)
        early: dict[str, None] = {}
        for each in self.model:
            early |= dict.fromkeys(n for n in each.reads if n not in given)
            given |= set(each.gives)
        written = {n for each in self.model for n in each.gives}
        return tuple(name for name in early if name in written)

    @functools.cached_property
    def law(self) -> tuple[Step, ...]:
        """The steps of the law, which read internal variables as they were before the solve."""
        names = {name: self.hidden("before", name) for name in self.remembered}
        given: set[str] = set()
        steps = []
        for each in self.model:
            old = {name: names[name] for name in names if name not in given}
            kept = functools.partial(renamed, names=old)
            arguments = {
                key: tuple(map(kept, value)) if isinstance(value, tuple) else kept(value)
                for key, value in each.arguments.items()
            }
            steps.append(dataclasses.replace(each, arguments=arguments))
            given |= set(each.gives)
        return tuple(steps)

    @property
    def steps(self) -> tuple[Step, ...]:
        """All steps that it runs, but those whose buffers nothing else can see."""
        return self.law

    @functools.cached_property
    def equations(self) -> Callable[[int, Step | None], LinearEquations]:
        """The steps of the linear equations, by the number of rows of matrices."""
        return functools.cache(functools.partial(linear_equations, self.step, self.law))

    @functools.cached_property
    def differentiable(self) -> Step | None:
        """The stress of the law alone, where loops may differentiate it at every point.

        That takes a fraction of the memory's time that a tangent takes.
        """
        law, options = self.law[0], self.step.options
        named = (options["stress"], options["tangent_operator"])
        solved_for = law.arguments.get("F") == Buffer(self.step.gives[0])
        plain = options["tangent_convention"] in (None, "TRANSPOSED") and not law.reason
        if len(self.law) > 1 or law.function not in STRESSES or law.gives != named:
            return None
        if not (solved_for and plain):
            return None
        known = {"law": law.function}
        return dataclasses.replace(
            law, name=self.hidden("stress"), function=stress_alone, gives=law.gives[:1],
            options=known,
        )  # fmt: skip

    def begin(self, state: State) -> None:
        """Let what is solved for be what it starts from."""
        start = source_of(self.step, "F")
        assert isinstance(start, Buffer)
        if start.name in state.buffers:
            state.buffers.setdefault(self.step.gives[0], state.buffers[start.name])

    def solve(self, state: State, executor: StepExecutor) -> None:
        """Iterate until the correction is small, and leave what the law gives last."""
        options, space = self.step.options, state.space
        side = side_of(state.look_up(source_of(self.step, "F")), space)
        stress = self.differentiable if executor.compiles and space.share is None else None
        made = self.equations(side, stress)
        before = set(state.buffers)
        for name in self.remembered:
            state.buffers[self.hidden("before", name)] = state.look_up(Buffer(name))
        self.run((self.first,), made, (*made.green, made.load), state, executor)
        size = math.sqrt(read(state, made.size))
        start = made.start(space)
        state.buffers |= dict.fromkeys(made.solution, start)
        last = math.inf
        for newton in range(options["nl_max_its"] + 1):
            if newton == options["nl_max_its"]:
                raise self.failed(f"the last correction is {last / size:.2g} of F")
            count = self.solve_linear(made, state, executor, restart=newton > 0)
            self.run((made.move,), made, (*made.green, made.balance), state, executor)
            last = math.sqrt(read(state, made.correction))
            if options["verbose"]:
                told = "%s: Newton %d, %d linear iterations, correction %g of %g"
                LOG.info(told, self.step.name, newton + 1, count, last, size)
            if not math.isfinite(last):
                raise self.failed("the deformation gradient is not finite")
            relative = max(options["nl_rel_tol"], rounding(space))
            small = last < relative * size or last < options["nl_abs_tol"]
            if small and newton > 0:
                break
        if made.stress is not None:
            executor.run(self.law, state)
        for name in set(state.buffers) - before - set(self.step.gives):
            if name.startswith(self.hidden("")):
                del state.buffers[name]

    def run(
        self, before: tuple[Step, ...], made: LinearEquations, after: tuple[Step, ...],
        state: State, executor: StepExecutor,
    ) -> None:  # fmt: skip
        """Evaluate the law, which is one sequence wherever it stands, and what goes around it."""
        executor.run(before, state)
        # a load moves F, and the equations stay those of where the law was evaluated
        state.buffers[made.at] = state.buffers[self.step.gives[0]]
        if made.stress is not None:
            executor.run((made.stress,), state)
        else:
            executor.run(self.law, state)
            name = self.step.options["tangent_operator"]
            state.buffers[name] = apart(state.buffers[name], state.space.dim)
        executor.run(after, state)

    def solve_linear(
        self, made: LinearEquations, state: State, executor: StepExecutor, *, restart: bool
    ) -> int:
        """Find the next correction; how many iterations that took."""
        options = self.step.options
        right = read(state, made.squares)
        limit = options["l_tol"] * math.sqrt(abs(right))
        # the reference starts from the last correction, which is rather the larger of the two
        if restart and right != 0 and made.restart is not None:
            executor.run((made.restart,), state)
        elif restart:
            state.buffers |= dict.fromkeys(made.solution, made.start(state.space))
        if right == 0:
            return 0
        # from the last correction, a residual falls no further than that rounds
        begun = math.sqrt(abs(read(state, made.squares)))
        limit = max(limit, rounding(state.space) * begun)
        most = options["l_max_its"] or state.space.cells
        for count in range(most):
            now = read(state, made.squares)
            if now == 0 or (count and math.sqrt(abs(now)) <= limit):
                return count
            if not now > 0:
                raise self.failed("the tangent is not positive definite, or not finite")
            executor.run((made.iterate,), state)
        if math.sqrt(abs(read(state, made.squares))) > limit:
            self.warn_of_limit(most)
        return most

    def warn_of_limit(self, most: int) -> None:
        """Tell that a correction is not that of the linear equations; the same text every time.

        The reference goes on, and Newton's method may still converge.
        """
        tolerance = self.step.options["l_tol"]
        message = (
            f"'{self.step.name}': conjugate gradients stop at l_max_its = {most}, short of"
            f" l_tol = {tolerance:g}, and Newton's method goes on with what they found"
        )
        fix = "raise l_max_its or l_tol, or take preconditioner = GREEN"
        warn_of([Problem("not-converged", message, self.step.span, fix)])

    def failed(self, why: str) -> IngotError:
        """The error of a solve that finds no equilibrium."""
        message = f"'{self.step.name}' finds no equilibrium: {why}"
        fix = "take smaller steps, raise nl_max_its or l_max_its, or lower l_tol"
        return IngotError([Problem("not-converged", message, self.step.span, fix)])


def renamed(source: Source, names: dict[str, str]) -> Source:
    """A source, its buffer called otherwise where there is a name for that."""
    if isinstance(source, Buffer) and source.name in names:
        return Buffer(names[source.name])
    return source


def rounding(space: Space) -> float:
    """The share of a norm below which there is rounding alone; none asked for in double precision.

    There a tolerance is met or told of, as the reference does.
    """
    single = space.k2.dtype == torch.float32
    return 4 * torch.finfo(torch.float32).eps if single else 0.0


def read(state: State, name: str) -> float:
    """A number that a step gave."""
    return float(state.buffers[name])
