"""Where Newton's method struggled, and why: a driver in, a Diagnosis out.

All points and steps are run once, by any backend. The worst step of a solve is then repeated by
`interpret`, which keeps the worst point's way, and is tried in parts and from other guesses.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from ingot.drivers.conditioning import (
    SINGULAR,
    Conditioning,
    find_conditioning,
    find_history,
    find_norms,
    find_rounding,
    name_entries,
)
from ingot.drivers.diagnosis_text import format_solve
from ingot.drivers.result import Result
from ingot.drivers.transient import TransientDriver
from ingot.execute import Backend, Reason, Status
from ingot.execute.batch_shape import shape_of
from ingot.execute.interpret import Interpreter
from ingot.execute.newton_path import NewtonPath, PathRecorder
from ingot.execute.status import find_no_length
from ingot.execute.transient import Transient, find_inputs
from ingot.keywords import check_keywords
from ingot.model import lag
from ingot.program import Program
from ingot.runtime.stub import AOTIModel

__all__ = ["Cause", "Diagnosis", "Place", "SolveDiagnosis", "diagnose"]

EASY_UPDATES = 10  # a good first guess takes 3 to 6, the corner of a yield surface some more
MAX_PLACES = 5  # as many rows as one reads
MORE_UPDATES = 50  # at least, and three times max_its: what falls has fallen by then
MAX_PARTS = 8  # three halvings: what then still fails does so for another reason than its length
ROUNDING = 100.0  # residuals within so many units of rounding of their terms are all rounding


@dataclass(frozen=True, slots=True)
class Place:
    """How the solve of one point at one step went."""

    step: int
    point: int
    updates: int
    residual: float
    outcome: str
    pivoted: int


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a solve failed, or took long: a word, a sentence, and what there is to try."""

    name: str
    message: str
    fixes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SolveDiagnosis:
    """One solve of a run: its worst points, and the way of the worst of all.

    worst: the places that took most; pivoted: updates that fell back to pivoting, of all points;
    in_parts: points with steps that took more updates than a whole step may; history: by update the
    norm of each equation's residuals at the worst place, under `norm` that of all, under `taken`
    the part of the update that a line search left; parts: where in its step each part of the worst
    place began and ended, and whether it converged.
    """

    solve: str
    points: int
    failed: int
    mean_updates: float
    most_updates: int
    worst: tuple[Place, ...]
    pivoted: int
    pivoted_points: int
    in_parts: int
    history: Mapping[str, list[float]]
    conditioning: Conditioning | None
    parts: tuple[tuple[float, float, bool], ...]
    causes: tuple[Cause, ...]

    @property
    def is_easy(self) -> bool:
        """Whether there is nothing to tell."""
        return not self.causes

    def __str__(self) -> str:
        return "\n".join(format_solve(self))


@check_keywords
@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What there is to tell of a driver's solves."""

    driver: str
    steps: int
    solves: tuple[SolveDiagnosis, ...]

    @property
    def failed(self) -> int:
        """How many points a solve failed for."""
        return sum(solve.failed for solve in self.solves)

    def report(self) -> dict[str, Any]:
        """All of it as plain data, in which what is no number is None, as in JSON."""
        return _plain(asdict(self))

    def __str__(self) -> str:
        if not self.solves:
            return f"{self.driver}: nothing is solved"
        return "\n\n".join(map(str, self.solves))


def _plain(data: Any) -> Any:
    if isinstance(data, dict):
        return {name: _plain(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [_plain(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


@check_keywords
def diagnose(driver: TransientDriver, backend: Backend | None = None) -> Diagnosis:
    """Where the solves of a driver struggled, why, and what helps.

    backend: what runs all points and steps; kernels alone count pivots that fell back.
    """
    result = replace(driver, save_as=None).compute(backend)
    with torch.no_grad():
        solves = tuple(_Search(driver, result, status).diagnose() for status in result.statuses)
    return Diagnosis(driver.block.name, result.steps - 1, solves)


class _Search:
    """What is asked about one solve of a run."""

    def __init__(self, driver: TransientDriver, result: Result, status: Status) -> None:
        self.driver, self.result, self.status = driver, result, status
        self.newton, _ = driver.rules[status.solve]
        packaged = isinstance(driver.model.body, AOTIModel)
        self.program: Program | None = None if packaged else driver.program
        solves = self.program.solves if self.program is not None else ()
        self.solve = next((s for s in solves if s.name == status.solve), None)

    def diagnose(self) -> SolveDiagnosis:
        """All there is to tell of the solve."""
        status, newton = self.status, self.newton
        places = self.find_places()
        paths = self.follow(places[0]) if places else []
        whole = next((p for p in paths if p.ends is None), None)
        conditioning = None if whole is None else find_conditioning(whole)
        causes = tuple(self.find_causes(places[0], whole, conditioning)) if places else ()
        parts = [p for p in paths if p.ends is not None]
        updates, pivoted = status.iterations, status.pivoted
        in_parts = int((updates >= newton.max_its).any(0).sum()) if self.has_parts else 0
        return SolveDiagnosis(
            status.solve, self.result.points, len(status.find_first_failures()),
            status.mean_iterations, status.most_iterations, places, int(pivoted.sum()),
            int((pivoted > 0).any(0).sum()), in_parts,
            {} if whole is None else find_history(whole), conditioning,
            tuple((*p.ends, self.is_solved(p)) for p in parts if p.ends is not None), causes,
        )  # fmt: skip

    @property
    def has_parts(self) -> bool:
        """Whether steps that fail are taken in parts."""
        return self.solve is not None and self.solve.substeps is not None

    def is_solved(self, path: NewtonPath) -> bool:
        """Whether the last residual of a path is accepted, whatever of its update is asked."""
        first, last = path.iterates[0].norm, path.iterates[-1].norm
        return last < self.newton.abs_tol or last < self.newton.rel_tol * first

    def find_places(self) -> tuple[Place, ...]:
        """The worst points and steps: those that failed, then those that took most updates."""
        status = self.status
        rows = status.find_first_failures()
        sizes = status.residual[rows[:, 0], rows[:, 1]].nan_to_num(nan=math.inf)
        failed = rows[sizes.argsort(descending=True, stable=True)[:MAX_PLACES]].tolist()
        slow = torch.where(status.converged, status.iterations + status.pivoted, 0)
        most = slow.flatten().argsort(descending=True, stable=True)[:MAX_PLACES]
        hard = [divmod(int(at), status.reason.shape[1]) for at in most]
        hard = [
            (row, point) for row, point in hard
            if slow[row, point] > EASY_UPDATES or slow[row, point] > status.iterations[row, point]
        ]  # fmt: skip
        return tuple(self.place(row, point) for row, point in [*failed, *hard][:MAX_PLACES])

    def place(self, row: int, point: int) -> Place:
        """What became of a point at a step, which has a row of its own in the status."""
        s = self.status
        reason = Reason(int(s.reason[row, point])).name.lower().replace("_", " ")
        numbers = int(s.iterations[row, point]), float(s.residual[row, point])
        return Place(row + s.begin, point, *numbers, reason, int(s.pivoted[row, point]))

    # the worst place again

    def follow(self, place: Place) -> list[NewtonPath]:
        """The ways of a point through the solve at a step, the whole first; none of a package."""
        if self.program is None or self.solve is None:
            return []
        recorder = PathRecorder(place.point, self.result.points)
        run = Interpreter(self.program, recorder=recorder)
        run(self.inputs(place.step))
        found = [p for p in recorder.paths if p.solve is self.solve]
        whole = [p for p in found if p.ends is None][-1:]  # the last, of a solve inside another
        return [*whole, *(p for p in found if p.ends is not None)]

    def inputs(self, step: int) -> dict[str, Tensor]:
        """What the model was given at a step."""
        assert self.program is not None
        given = {v.name: shape_of(v, self.program) for v in self.program.inputs}
        past = [self.outputs(k) for k in range(step)]
        transient = self.driver.transient
        return find_inputs(step, given, list(self.result.outputs), transient, past, torch.float64)

    def outputs(self, step: int) -> dict[str, Tensor]:
        """What the model gave at a step, or was given first."""
        found = {n: x[step] for n, x in self.result.outputs.items()}
        return {**found, **self.driver.transient.initial} if step == 0 else found

    def count_updates(self, place: Place) -> int | None:
        """How many updates it takes, were there more of them; None if even then it fails."""
        assert self.program is not None
        more = max(MORE_UPDATES, 3 * self.newton.max_its)
        recorder = PathRecorder(place.point, self.result.points, more)
        _, statuses = Interpreter(self.program, recorder=recorder)(self.inputs(place.step))
        status = next(s for s in statuses if s.solve == self.status.solve)
        done = bool(status.converged[place.point])
        return int(status.iterations[place.point]) if done else None

    def converges_from_old(self, place: Place) -> tuple[str, ...]:
        """The unknowns that start from zero, where the step converges from their old values."""
        assert self.program is not None
        assert self.solve is not None
        old, inputs = self.outputs(place.step - 1), self.inputs(place.step)
        forces = self.driver.forces
        names = tuple(
            v.name for v in self.solve.unknowns
            if v.name in inputs and v.name not in forces and v.name in old
        )  # fmt: skip
        if not names:
            return ()
        _, statuses = Interpreter(self.program)({**inputs, **{n: old[n] for n in names}})
        return names if self.converged(statuses, place.point) else ()

    def find_parts(self, place: Place) -> int | None:
        """In how many equal parts the step converges, of what is prescribed; None if in none."""
        assert self.program is not None
        transient = self.driver.transient
        first, last = max(place.step - 2, 0), place.step
        count = 2
        while count <= MAX_PARTS:
            # one step more than is asked about, for values that are two steps old
            prescribed = {
                name: torch.cat([x[first : last - 1], _interpolate(x[last - 1], x[last], count)])
                for name, x in transient.prescribed.items()
            }
            start = self.outputs(first)
            parts = Transient(last - first + count, prescribed, start)
            history = Interpreter(self.program).transient(parts)
            if self.converged(history.statuses, place.point):
                return count
            count *= 2
        return None

    def converged(self, statuses: Sequence[Status], point: int) -> bool:
        """Whether a solve converged for a point, at all steps there are."""
        status = next(s for s in statuses if s.solve == self.status.solve)
        return bool(torch.atleast_2d(status.converged)[:, point].all())

    # causes

    def find_causes(
        self, place: Place, path: NewtonPath | None, conditioning: Conditioning | None
    ) -> Iterator[Cause]:
        """Why the worst place is the worst, and what helps."""
        if place.outcome != "converged":
            yield from self._find_failure(place, path, conditioning)
        elif place.updates > EASY_UPDATES:
            message = f"it converged, after {place.updates} updates"
            fix = "a predictor, or shorter steps, which bring the first guess closer"
            yield Cause("slow", message, (fix,))
        if self.status.pivoted.sum() > 0:
            message = (
                "the elimination that was compiled met pivots too small to trust, and pivoting did"
                " those updates instead: exact, and slower"
            )
            yield Cause("pivoted", message)
        cuts = [i.taken for i in path.iterates if i.taken < 1.0] if path is not None else []
        if cuts:
            message = f"the line search shortened {len(cuts)} updates, to {min(cuts):.2g} at least"
            yield Cause("cut-back", message)

    def _find_failure(
        self, place: Place, path: NewtonPath | None, conditioning: Conditioning | None
    ) -> Iterator[Cause]:
        if path is None and self.solve is None:
            message = "its equations are compiled into a package, and cannot be asked"
            yield Cause("package", message, ("ingot diagnose of the file it was compiled from",))
            return
        if path is None:
            yield Cause("sum", "it is solved for sums over points, and is not followed")
            return
        if self.is_solved(path):
            message = "torch operations bring it to convergence, so that rounding decides"
            yield Cause("rounding", message, ("looser tolerances, or more updates",))
            return
        fix = find_no_length(self.result.times, place.step, place.point, self.result.points)
        if fix is not None:
            yield Cause("time", "the step does not go forward in time", (fix,))
            return
        last = path.iterates[-1]
        origin = "" if last.not_finite is None else last.not_finite.operation
        if last.not_finite is not None and origin == "solve":
            yield _blame_solve(last.not_finite.text, "which is solved inside it")
            return
        if origin == "given":
            yield self._blame_given(place)
            return
        if conditioning is not None and conditioning.scaled > SINGULAR:
            yield self._blame_singular(place, path, conditioning)
            return
        finite = [i for i in path.iterates if i.not_finite is None]
        floor = find_rounding(finite[-1]) if finite else math.inf
        if last.not_finite is None and last.norm <= ROUNDING * floor:
            yield self._blame_tolerances(path, floor)
            return
        yield self._describe(place, path)

    def _describe(self, place: Place, path: NewtonPath) -> Cause:
        """How the way of a point went wrong, and what helps."""
        iterates, names = path.iterates, name_entries(path.solve.residuals, path)
        last, norms = iterates[-1], [i.norm for i in iterates]
        if last.not_finite is not None:
            wrong = [n for n, x in zip(names, last.residuals, strict=True) if not x.isfinite()]
            where = f"update {len(iterates) - 1}" if len(iterates) > 1 else "the first guess"
            line = last.not_finite.text
            why = f": {line} is none" if line else ": the update itself is none"
            message = f"{_list(wrong)} is no number at {where}{why}"
            return Cause("not-finite", message, tuple(self._find_remedies(place, path)))
        shares = find_norms(last, path)
        largest = max(shares, key=lambda name: shares[name])
        updates = self.count_updates(place)
        if updates is not None:
            message = f"max_its ended it on its way, at a residual of {norms[-1]:.1e} in {largest}"
            fix = f"max_its above {self.newton.max_its}: it converges after {updates} updates"
            fixes = (fix, *self._find_remedies(place, path, is_solvable=True))
            return Cause("unfinished", message, fixes)
        if norms[-1] > norms[0]:
            message = f"the residual rose from {norms[0]:.1e} to {norms[-1]:.1e}, in {largest}"
            return Cause("diverges", message, tuple(self._find_remedies(place, path)))
        message = f"the residual went to and fro above {min(norms):.1e}, last in {largest}"
        return Cause("stalls", message, tuple(self._find_remedies(place, path)))

    def _find_remedies(
        self, place: Place, path: NewtonPath, *, is_solvable: bool = False
    ) -> Iterator[str]:
        """What was tried and helps, then what may."""
        norms = [i.norm for i in path.iterates]
        if self.converges_from_old(place):
            update = f"[{path.solve.name}]"
            yield f"'guess = old' or a predictor in {update}: it converges from its old values"
        count = self.find_parts(place)
        if count is not None:
            yield f"shorter steps: in {count} parts it converges"
            yield f"{self._advise_parts(count)} in [{path.solve.name}], which does so by itself"
        if self.newton.linesearch == "NONE" and any(b > a for a, b in pairwise(norms)):
            yield "a NewtonWithLineSearch, which shortens updates that let the residual rise"
        if count is None and not is_solvable:
            yield (
                f"other values or parameters: {MAX_PARTS} parts of the step do not converge either,"
                " so that there may be no solution"
            )

    def _advise_parts(self, count: int) -> str:
        """The options by which an update takes so many parts."""
        assert self.solve is not None
        has = 0 if self.solve.substeps is None else self.solve.substeps.level
        level, clock = max(int(math.log2(count)), has), self.driver.clock.name
        changing = [name for name in self.driver.transient.prescribed if name != clock]
        names = f", incremental_variables = '{' '.join(changing)}'" if changing else ""
        return f"max_substepping_level = {level}{names}"

    def _blame_singular(self, place: Place, path: NewtonPath, found: Conditioning) -> Cause:
        """Equations that do not determine the unknowns."""
        if found.inert:
            message = f"no equation of [{path.solve.name}] depends on {_list(found.inert)}"
            fix = "a model that does, or 'unknowns' without it"
            return Cause("singular", message, (fix,))
        if found.idle:
            message = f"{_list(found.idle)} depends on no unknown of [{path.solve.name}]"
            return Cause("singular", message, ("other 'residuals', or a model that reads one",))
        equations, unknowns = _list(found.equations), _list(found.unknowns)
        message = f"the Jacobian is singular: {equations} does not determine {unknowns} here"
        return Cause("singular", message, tuple(self._find_remedies(place, path)))

    def _blame_given(self, place: Place) -> Cause:
        """What is no number before the solve begins: an input, or another solve's result."""
        prescribed, wrong = self.driver.transient.prescribed, self.find_wrong_inputs(place)
        if any(lag(name)[0] in prescribed for name in wrong):
            message = f"it is given {_list(wrong)}, which is no number"
            return Cause("given", message, ("other prescribed or initial values",))
        order = [status.solve for status in self.result.statuses]
        for other in self.result.statuses:
            rows = (~other.converged[:, place.point]).nonzero()[:, 0]
            first = int(rows[0]) + other.begin if len(rows) else math.inf
            is_before = order.index(other.solve) < order.index(self.status.solve)
            if first < place.step or (first == place.step and is_before):
                return _blame_solve(other.solve, "which it reads")
        message = f"{_list(wrong) or 'a value computed before it'}, which it reads, is no number"
        return Cause("given", message, ("other initial values, or parameters",))

    def find_wrong_inputs(self, place: Place) -> list[str]:
        """The inputs of the model that are no numbers at a place."""
        assert self.program is not None
        inputs, wrong = self.inputs(place.step), []
        for v in self.program.inputs:
            x = inputs[v.name]
            inner = x.shape[x.ndim - shape_of(v, self.program).rank :]
            whole = x.expand((*self.result.batch, *inner)).reshape(self.result.points, -1)
            if not bool(whole[place.point].isfinite().all()):
                wrong.append(v.name)
        return wrong

    def _blame_tolerances(self, path: NewtonPath, floor: float) -> Cause:
        newton, first = self.newton, path.iterates[0].norm
        lowest = min(i.norm for i in path.iterates)
        asked = max(newton.abs_tol, newton.rel_tol * first)
        message = (
            f"a residual below {asked:.1e} is asked for (abs_tol = {newton.abs_tol:g}, or rel_tol ="
            f" {newton.rel_tol:g} of the first), and rounding leaves {lowest:.1e}: terms of the"
            f" equations are so large that what is below {floor:.1e} says nothing"
        )
        reachable = 10.0 ** math.ceil(math.log10(max(lowest, floor) * 10))
        return Cause(
            "tolerance", message, (f"abs_tol = {reachable:.0e}, or equations scaled down",)
        )


def _blame_solve(name: str, how: str) -> Cause:
    """Another solve, without whose result there is none."""
    return Cause("follows", f"[{name}], {how}, failed for this point", (f"what helps [{name}]",))


def _interpolate(begin: Tensor, end: Tensor, count: int) -> Tensor:
    """The ends of equal parts between two values, the first included."""
    share = torch.linspace(0, 1, count + 1, dtype=torch.float64)
    return torch.lerp(begin[None], end[None], share.reshape(-1, *[1] * begin.ndim))


def _list(names: Sequence[str]) -> str:
    shown = list(names[:MAX_PLACES])
    more = [f"{len(names) - MAX_PLACES} more"] if len(names) > MAX_PLACES else []
    return ", ".join([*shown, *more])
