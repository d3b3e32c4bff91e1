"""FFTMechanics: the deformation that brings a periodic body into equilibrium.

Newton's method on the Fourier-Galerkin form of de Geus et al. (2017); its linear equations by
conjugate gradients, whose bodies are sequences of steps, compiled like all others.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from ingot.errors import IngotError, Problem, warn_of
from ingot.fields.computes.elasticity import STRESSES
from ingot.fields.computes.mechanics import DEFORMATION, is_nyquist, smooth_waves
from ingot.fields.computes.models import NEML2TensorCompute
from ingot.fields.declare import Compatible, compute
from ingot.fields.duals import derivative_along
from ingot.fields.matrices import (
    MANDEL,
    add_up,
    apart,
    entries,
    inverse,
    joined,
    mandel,
    mean,
    side_of,
    square_from_mandel,
)
from ingot.fields.spaces import Grid, Narrow, Space
from ingot.fields.step import Ambient, Buffer, Source, State, Step, StepExecutor
from ingot.options import Count, NotNegative

__all__ = ["FFTMechanics"]

LOG = logging.getLogger("ingot")

Convention = Literal["TRANSPOSED", "DERIVATIVE"]

ITERATES = "it iterates sequences that are compiled by themselves"

Fields = Sequence[Tensor]
"""The entries of a matrix at every point, row by row."""


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
            small = last < options["nl_rel_tol"] * size or last < options["nl_abs_tol"]
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


def source_of(step: Step, name: str) -> Source:
    """The one source of an argument."""
    found = step.arguments[name]
    assert not isinstance(found, tuple)
    return found


def read(state: State, name: str) -> float:
    """A number that a step gave."""
    return float(state.buffers[name])


@dataclass(frozen=True, slots=True)
class LinearEquations:
    """The steps of a solve's linear equations, and the buffers that the loops around them read.

    load: the first right side, of the applied strain; balance: that of stresses out of balance;
    restart: the residual of the last correction, where the next one starts from it; iterate: one of
    conjugate gradients; move: the deformation gradient with the correction; green: the body that
    preconditions, if any; stress: that of the law alone, where it is differentiated in place of
    a tangent that is read; start: the zeros that a correction starts from; at: the deformation
    gradient where the law was evaluated
    """

    load: Step
    balance: Step
    restart: Step | None
    iterate: Step
    move: Step
    green: tuple[Step, ...]
    stress: Step | None
    start: Callable[[Space], Tensor]
    solution: tuple[str, ...]
    at: str
    squares: str
    correction: str
    size: str


def linear_equations(
    step: Step, law: tuple[Step, ...], side: int, stress: Step | None
) -> LinearEquations:
    """The steps for matrices of so many rows.

    As the reference has them, vectors are fields of matrices, which Nyquist wavenumbers make
    necessary; else they are spectra of displacements and forces, a third as many numbers.
    """
    options = step.options
    green = options["preconditioner"] == "GREEN"
    compatible = options["compatible"] and not green
    count = side * side if compatible else side

    def hidden(name: str) -> str:
        return f"{step.name}#{name}"

    def many(name: str, count: int = count) -> tuple[str, ...]:
        return tuple(f"{hidden(name)}/{k}" for k in range(count))

    convention = {"convention": convention_of(step, law)}
    slope: dict[str, Any] = {**convention, "law": None if stress is None else stress.options["law"]}
    reason = "" if step.reason in ("", ITERATES) else step.reason
    known: dict[str, Source | tuple[Source, ...]] = {
        "space": Ambient("space"), "F": Buffer(step.gives[0]), "at": Buffer(hidden("at")),
        "stress": Buffer(options["stress"]), "tangent": Buffer(options["tangent_operator"]),
        "squares": Buffer(hidden("squares")), "scale": Buffer(hidden("scale")),
        "green": tuple(map(Buffer, many("green", side * side))) if green else (),
        **{n: tuple(map(Buffer, many(n))) for n in ("search", "solution", "residual")},
    }  # fmt: skip
    if stress is not None:
        known["moduli"] = (source_of(stress, "K"), source_of(stress, "mu"))
    reads = "tangent" if stress is None else "at moduli"
    if "applied_macroscopic_strain" in step.arguments:
        known["load"] = step.arguments["applied_macroscopic_strain"]

    def made(function: Callable[..., Any], reads: str, gives: tuple[str, ...], **more: Any) -> Step:
        arguments = {name: known[name] for name in reads.split() if name in known}
        name = f"{step.name}#{function.__name__}"
        rare = "it runs once in a solve" if function is loaded else ""
        return Step(name, function, arguments, gives, more, reason=reason or rare, span=step.span)

    residual = (*many("residual"), *many("search"), hidden("squares"))
    begun = residual if compatible else (*residual, hidden("scale"))
    moved = (step.gives[0], hidden("correction"))
    vectors = f"search solution residual squares {reads} space"
    return LinearEquations(
        load=made(
            loaded, f"F load {reads} green space", (step.gives[0], hidden("size"), *begun),
            **slope, compatible=compatible,
        ),
        balance=made(
            out_of_balance, "stress green space", begun, side=side, compatible=compatible
        ),
        restart=made(restarted, f"residual solution {reads} space", residual, **slope)
        if compatible else None,
        iterate=made(
            iterated if compatible else iterated_spectra,
            vectors if compatible else f"{vectors} green scale", (*many("solution"), *residual),
            **slope,
        ),
        move=made(moved_by if compatible else moved_by_spectra, "F solution space", moved),
        green=(made(homogeneous, "tangent space", many("green", side * side), side=side,
                    **convention),) if green else (),
        stress=None if green else stress, start=zero_field if compatible else zero_spectrum,
        solution=many("solution"), squares=hidden("squares"), correction=hidden("correction"),
        size=hidden("size"), at=hidden("at"),
    )  # fmt: skip


def zero_field(space: Space) -> Tensor:
    """A field of zeros."""
    return torch.zeros(space.shape, dtype=space.k2.dtype, device=space.k2.device)


def zero_spectrum(space: Space) -> Tensor:
    """A spectrum of zeros."""
    kind = space.k2.dtype.to_complex()
    return torch.zeros(space.spectrum_shape, dtype=kind, device=space.k2.device)


def convention_of(step: Step, law: tuple[Step, ...]) -> Convention:
    """Where the entries of the tangent stand: as the file says, or as those who write it do."""
    chosen = step.options["tangent_convention"]
    if chosen is not None:
        return chosen
    name = step.options["tangent_operator"]
    makers = [each.function for each in law if name in each.gives]
    return "DERIVATIVE" if makers[-1] is NEML2TensorCompute else "TRANSPOSED"


EntryOfSlope = Callable[[int, int, int, int], Tensor]


def slope_of(tangent: Tensor, side: int, space: Space, convention: Convention) -> EntryOfSlope:
    """The derivative of an entry of the stress by one of the deformation gradient, as a field."""
    slopes = entries(tangent, space)
    sizes = tuple(tangent.shape[space.dim :])
    if sizes == (6, 6):
        at = {pair: k for k, (i, j) in enumerate(MANDEL) for pair in ((i, j), (j, i))}

        def mandel_slope(i: int, j: int, k: int, m: int) -> Tensor:
            halves = (i != j) + (k != m)
            found = slopes[6 * at[i, j] + at[k, m]]
            return found * 0.5 ** (halves / 2) if halves else found

        return mandel_slope
    if sizes != (side,) * 4:
        has = " x ".join(map(str, sizes)) or "one"
        needs = " x ".join([str(side)] * 4)
        raise ValueError(f"a tangent of 6 x 6 or {needs} numbers is needed, not {has}")

    def plain_slope(i: int, j: int, k: int, m: int) -> Tensor:
        row = (i, j) if convention == "DERIVATIVE" else (j, i)
        return slopes[((row[0] * side + row[1]) * side + k) * side + m]

    return plain_slope


def stress_alone(law: Callable[..., Any], **given: Any) -> Grid:
    """The stress of a law."""
    return law(**given)[0]


@dataclass(frozen=True, slots=True)
class Slope:
    """How the stress changes: by a tangent, or by the derivative of a law at every point."""

    tangent: Narrow | None
    convention: Convention
    law: Callable[..., Any] | None
    at: Narrow | None
    moduli: Fields

    def along(self, change: Fields, space: Space) -> list[Tensor]:
        """The stress that a change of the deformation gradient makes."""
        if self.tangent is not None:
            return response(self.tangent, change, space, self.convention)
        assert self.law is not None
        assert self.at is not None
        stress = functools.partial(self.stress_of, STRESSES[self.law])
        return derivative_along(stress, entries(self.at, space), change)

    def stress_of(self, law: Callable[..., list[Tensor]], f: Fields) -> list[Tensor]:
        """The stress of a law at given moduli."""
        return law(f, *self.moduli)


def response(tangent: Tensor, change: Fields, space: Space, convention: Convention) -> list[Tensor]:
    """The stress that a change of the deformation gradient makes, by the tangent."""
    side = math.isqrt(len(change))
    if tuple(tangent.shape[space.dim :]) == (6, 6):
        slopes, strain = entries(tangent, space), mandel(change)
        used = [k for k, (_, j) in enumerate(MANDEL) if j < side]
        none = torch.zeros_like(change[0])
        stress = [
            add_up([slopes[6 * row + k] * strain[k] for k in used]) if row in used else none
            for row in range(6)
        ]
        return square_from_mandel(stress, side)
    slope = slope_of(tangent, side, space, convention)
    pairs = [(i, j) for i in range(side) for j in range(side)]
    return [add_up([slope(*pair, k, m) * change[k * side + m] for k, m in pairs]) for pair in pairs]


def projected(fields: Fields, waves: Fields, space: Space) -> list[Tensor]:
    """The part of a field of matrices that is the gradient of a displacement without mean."""
    return gradients(displaced(divergence(fields, waves, space), (), waves), waves, space)


def divergence(fields: Fields, waves: Fields, space: Space) -> list[Tensor]:
    """The spectra of the divergence of the rows, less its imaginary factor."""
    side = math.isqrt(len(fields))
    return [
        add_up([waves[j] * space.forward(fields[i * side + j]) for j in range(len(waves))])
        for i in range(side)
    ]


def gradients(spectra: Fields, waves: Fields, space: Space) -> list[Tensor]:
    """The gradient of fields by their spectra, less its imaginary factor."""
    side, none = len(spectra), torch.zeros_like(space.axes[0]).expand(space.shape)
    return [
        space.inverse(each * waves[j]) if j < len(waves) else none
        for each in spectra
        for j in range(side)
    ]


def displaced(forces: Fields, green: Fields, waves: Fields) -> list[Tensor]:
    """The displacements of a homogeneous body by forces; without one, of a Laplacian."""
    if not green:
        squares = add_up([wave * wave for wave in waves])
        factor = 1 / torch.where(squares == 0, 1.0, squares)
        return [each * factor for each in forces]
    side = len(forces)
    return [add_up([green[i * side + k] * forces[k] for k in range(side)]) for i in range(side)]


def homogeneous(
    tangent: Narrow, space: Space, *, side: int, convention: Convention
) -> list[Tensor]:
    """The inverse acoustic tensor of a homogeneous body with the mean of the tangent."""
    waves = smooth_waves(space)
    slope = slope_of(mean(tangent, space), side, space, convention)
    axes = range(len(waves))
    both = {(j, m): waves[j] * waves[m] for j in axes for m in axes}
    still = add_up([both[j, j] for j in axes]) == 0
    shape = space.spectrum_shape
    acoustic: list[Tensor] = []
    for i in range(side):
        for k in range(side):
            terms = [slope(i, j, k, m) * both[j, m] for j in axes for m in axes]
            acoustic.append(torch.where(still, float(i == k), add_up(terms)).expand(shape))
    return inverse(acoustic)


def dot(a: Fields, b: Fields, space: Space) -> Tensor:
    """The sum over all points of the products of entries."""
    return space.sum(add_up([x * y for x, y in zip(a, b, strict=True)]))


def dot_of_spectra(a: Fields, b: Fields, weight: Tensor, space: Space) -> Tensor:
    """The same of fields by their spectra (Parseval), each wavenumber with a weight."""
    parts = [x.real * y.real + x.imag * y.imag for x, y in zip(a, b, strict=True)]
    return space.sum(add_up(parts) * (weight * stored_for(space))) / space.cells


def stored_for(space: Space) -> Tensor:
    """How many wavenumbers of the whole spectrum each that is stored stands for.

    Of two conjugate ones one is stored, along the axis that is halved.
    """
    halved = {"NONE": space.dim - 1, "FFT_PENCIL": 0}.get(space.mode)
    if halved is None:
        return torch.ones_like(space.waves[0])
    wave = space.waves[halved]
    alone = (wave == 0) | is_nyquist(wave, space.spacing[halved])
    return 2 - alone.to(wave.dtype)


def work_of(
    forces: Fields, moves: Fields, green: Fields, scale: Tensor, waves: Fields, space: Space
) -> Tensor:
    """What forces do along displacements, the square of a residual's size; 0 where all rounding.

    Forces are what is left of stresses, the sum of whose squares is the scale.
    """
    one = torch.ones_like(waves[0])
    work = dot_of_spectra(forces, moves, one, space)
    squares = add_up([wave * wave for wave in waves])
    slopes = dot_of_spectra(moves, moves, squares, space) if green else work
    floor = torch.finfo(work.dtype).eps * torch.sqrt(scale * slopes)
    return torch.where(work.abs() <= floor, torch.zeros_like(work), work)


def first_search(
    right: Fields, green: Fields, space: Space, *, compatible: bool
) -> tuple[Any, ...]:
    """Where conjugate gradients begin: a residual, the direction of its search, its square.

    Of spectra also the square of the right side, of which the residual is a small part.
    """
    if compatible:
        residual = projected(right, space.waves[: space.dim], space)
        return residual, residual, dot(residual, residual, space)
    waves, scale = smooth_waves(space), dot(right, right, space)
    forces = divergence(right, waves, space)
    moves = displaced(forces, green, waves)
    return forces, moves, work_of(forces, moves, green, scale, waves, space), scale


def loaded(
    F: Narrow, space: Space, tangent: Narrow | None = None, at: Narrow | None = None,
    moduli: tuple[Narrow, ...] = (), green: tuple[Narrow, ...] = (), load: Narrow | None = None,
    *, convention: Convention, law: Callable[..., Any] | None, compatible: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """The deformation gradient with an applied strain, its square, and what that calls for."""
    side = side_of(F, space)
    before = entries(F, space)
    if load is None:
        added = [torch.zeros_like(each) for each in before]
    else:
        given = load if load.dim() > 2 else load.reshape((1,) * space.dim + tuple(load.shape))
        if tuple(given.shape[space.dim :]) != (side, side):
            has = " x ".join(map(str, load.shape))
            raise ValueError(f"the applied strain has {has} numbers, and F {side} x {side}")
        added = [each.expand(space.shape) for each in entries(given, space)]
    whole = [f + more for f, more in zip(before, added, strict=True)]
    slope = Slope(tangent, convention, law, at, moduli)
    right = [-each for each in slope.along(added, space)]
    begun = first_search(right, green, space, compatible=compatible)
    return joined(whole, (side, side), space), dot(whole, whole, space), begun


def out_of_balance(
    stress: Narrow, space: Space, green: tuple[Narrow, ...] = (), *, side: int, compatible: bool
) -> tuple[Any, ...]:
    """What stresses that are not in equilibrium call for."""
    found = entries(stress, space)
    if tuple(stress.shape[space.dim :]) == (6,):
        found = square_from_mandel(found, side)
    elif len(found) != side * side:
        has = " x ".join(map(str, stress.shape[space.dim :]))
        raise ValueError(f"a stress of 6 or {side} x {side} numbers is needed, not {has}")
    return first_search([-each for each in found], green, space, compatible=compatible)


def operate(slope: Slope, change: Fields, space: Space) -> list[Tensor]:
    """The linear map of the equations, with all wavenumbers, as the reference has it."""
    return projected(slope.along(change, space), space.waves[: space.dim], space)


def restarted(
    residual: tuple[Narrow, ...], solution: tuple[Narrow, ...], space: Space,
    tangent: Narrow | None = None, at: Narrow | None = None, moduli: tuple[Narrow, ...] = (),
    *, convention: Convention, law: Callable[..., Any] | None,
) -> tuple[Any, ...]:  # fmt: skip
    """What is left of a right side where the correction starts from the last one."""
    done = operate(Slope(tangent, convention, law, at, moduli), solution, space)
    left = [b - a for b, a in zip(residual, done, strict=True)]
    return left, left, dot(left, left, space)


def iterated(
    search: tuple[Narrow, ...], solution: tuple[Narrow, ...], residual: tuple[Narrow, ...],
    squares: Narrow, space: Space, tangent: Narrow | None = None, at: Narrow | None = None,
    moduli: tuple[Narrow, ...] = (), *, convention: Convention, law: Callable[..., Any] | None,
) -> tuple[Any, ...]:  # fmt: skip
    """One iteration of conjugate gradients: solution, residual, direction, square."""
    pull = operate(Slope(tangent, convention, law, at, moduli), search, space)
    share = squares / dot(search, pull, space)
    further = [x + share * p for x, p in zip(solution, search, strict=True)]
    left = [r - share * a for r, a in zip(residual, pull, strict=True)]
    now = dot(left, left, space)
    turn = now / squares
    ahead = [r + turn * p for r, p in zip(left, search, strict=True)]
    return further, left, ahead, now


def iterated_spectra(
    search: tuple[Narrow, ...], solution: tuple[Narrow, ...], residual: tuple[Narrow, ...],
    squares: Narrow, scale: Narrow, space: Space, tangent: Narrow | None = None,
    at: Narrow | None = None, moduli: tuple[Narrow, ...] = (), green: tuple[Narrow, ...] = (),
    *, convention: Convention, law: Callable[..., Any] | None,
) -> tuple[Any, ...]:  # fmt: skip
    """The same by spectra: displacements for solution and direction, forces for the residual."""
    waves = smooth_waves(space)
    slopes = gradients(search, waves, space)
    stress = Slope(tangent, convention, law, at, moduli).along(slopes, space)
    # a gradient is normal to what the projection of the stress leaves out
    share = squares / dot(slopes, stress, space)
    further = [x + share * p for x, p in zip(solution, search, strict=True)]
    pull = divergence(stress, waves, space)
    left = [r - share * a for r, a in zip(residual, pull, strict=True)]
    towards = displaced(left, green, waves)
    now = work_of(left, towards, green, scale, waves, space)
    turn = now / squares
    ahead = [z + turn * p for z, p in zip(towards, search, strict=True)]
    return further, left, ahead, now


def moved_by(F: Narrow, solution: tuple[Narrow, ...], space: Space) -> tuple[Grid, Tensor]:
    """The deformation gradient with a correction, and the square of that."""
    side = side_of(F, space)
    whole = [f + x for f, x in zip(entries(F, space), solution, strict=True)]
    return joined(whole, (side, side), space), dot(solution, solution, space)


def moved_by_spectra(F: Narrow, solution: tuple[Narrow, ...], space: Space) -> tuple[Grid, Tensor]:
    """The same by the spectra of displacements."""
    return moved_by(F, tuple(gradients(solution, smooth_waves(space), space)), space)
