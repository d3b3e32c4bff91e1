"""A transient over many values of parameters and inputs -> a data set, by workers, part by part."""

import hashlib
import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

import msgspec
from torch import Tensor

from ingot.codegen.disk import writable
from ingot.codegen.locks import locked
from ingot.drivers.sweep_workers import Done, work_here, work_on_ray
from ingot.drivers.transient import TransientDriver
from ingot.drivers.values import gather_problems
from ingot.errors import IngotError, Problem, caller, did_you_mean, raise_if, warn_of
from ingot.keywords import check_keywords
from ingot.model import Model, lag, spell_parameters
from ingot.model.given import GivenField, describe
from ingot.package.compilation import Compilation
from ingot.package.stages import advance
from ingot.package.target import Target
from ingot.package.translate import translate
from ingot.package.write import open_scratch, put, save_tensors
from ingot.runtime.stub import AOTIModel
from ingot.runtime.sweep_part import GIVEN, PACKAGE, PLAN, Column, Plan, Planned
from ingot.runtime.sweep_store import ENDING, begin, count_failed, find_done
from ingot.types import Scalar, Value
from ingot.types.components import list_component_suffixes, list_scales
from ingot.types.spellings import resolve_name, with_root

__all__ = ["Sweep", "sweep"]

NUMBERS = 1 << 22
"""How many numbers the histories of a part have: 32 MiB, little beside what a process takes."""
OWN = ("point", "step", "time", "converged", "iterations")
"""The columns that every data set may have."""

Formats = Literal["parquet", "zarr"]
Kept = Literal["all", "last"] | Sequence[int]


@check_keywords
@dataclass(frozen=True, slots=True)
class Sweep:
    """What a sweep has written: where, how many points in how many parts, and how many failed.

    computed: the parts that this call computed, the others were there; seconds: that it took.
    """

    output: Path
    points: int
    steps: int
    parts: int
    computed: int
    failed: int
    seconds: float


@check_keywords
def sweep(
    driver: TransientDriver, over: Mapping[str, Any], output: str | Path, *, paired: bool = False,
    keep: Sequence[str] | None = None, steps: Kept = "all", part: int | None = None,
    workers: int = 1, ray: bool | str = False, progress: Callable[[int, int], None] | None = None,
) -> Sweep:  # fmt: skip
    """Run a transient for every combination of some values, and write a data set of all results.

    over: of parameters, by the names that are promoted, and of inputs that are one number, the
    values to take; all combinations, or with `paired` the first of each, the second of each and so
    on; the driver's own batch is run for each. output: NAME.parquet or NAME.zarr; a sweep that was
    killed goes on where it is asked for again. keep: the outputs to write, all unless given; steps:
    all, the last, or their numbers; part: points that are computed at once; workers: processes of
    this machine, 1 for this one alone; ray: a Ray cluster instead, True for one that is started
    here, or its address.
    """
    begun = time.perf_counter()
    if not isinstance(driver, TransientDriver):
        told = f"sweep should be given a driver, not {describe(driver)}"
        fix = "give what ingot.transient or ingot.build_driver returns"
        raise IngotError([Problem("wrong-value", told, caller(), fix)])
    if not isinstance(over, Mapping):
        told = f"'over' should be a dict of values by name, not {describe(over)}"
        raise IngotError([Problem("wrong-value", told, caller(), 'write {"name": [1.0, 2.0]}')])
    place = Path(output)
    raise_if(_find_unusable(driver, place, workers, part))
    axes = _read_axes(driver, over, paired=paired)
    plan = _plan(driver, axes, place, paired=paired, keep=keep, steps=steps, part=part)
    folder = place.with_name(place.name + ENDING)
    with writable(any_error=True):
        folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.with_name(f".{folder.name}.lock"), wait=False) as free:
        if not free:
            told, fix = f"another sweep is writing '{place}'", "wait for it, or name another place"
            raise IngotError([Problem("sweep-differs", told, None, fix)])
        _require_same(folder, place, plan, part)
        if not (folder / PLAN).exists():
            _write_plan(driver, folder, plan, axes)
        planned = Planned(folder)
        begin(planned)
        done = find_done(planned)
        missing = [n for n in range(planned.plan.parts) if n not in done]
        tell = _count(progress, planned.plan.parts, len(done))
        if ray:
            work_on_ray(planned, missing, ray if isinstance(ray, str) else None, tell)
        elif missing:
            work_here(planned, missing, min(workers, len(missing)), tell)
    failed = count_failed(planned)
    if failed:
        told = f"{failed} of {plan.points} points did not converge: their values are NaN"
        fix = "look for 'converged' in the data set, halve the time step, or raise max_its"
        warn_of([Problem("not-converged", told, driver.block.span, fix)], strict=driver.strict)
    seconds = time.perf_counter() - begun
    kept = len(planned.plan.kept)
    return Sweep(place, plan.points, kept, planned.plan.parts, len(missing), failed, seconds)


def _find_unusable(
    driver: TransientDriver, place: Path, workers: int, part: int | None
) -> Iterator[Problem]:
    if place.suffix not in (".parquet", ".zarr"):
        told = f"'{place}' does not say by its ending what to write"
        yield Problem("unknown-ending", told, None, "end it in one of: .parquet, .zarr")
    needed = {".parquet": "pyarrow", ".zarr": "zarr"}.get(place.suffix)
    if needed is not None and not _is_installed(needed):
        told = f"'{place}' needs {needed}, which is not installed"
        yield Problem("not-installed", told, None, f"pip install {needed}")
    if isinstance(driver.model.body, AOTIModel):
        told = f"[{driver.model.name}] is a package, and its parameters are what they are"
        yield Problem("which-driver", told, driver.block.span, "sweep over its source file")
    for what, number in (("workers", workers), ("part", part)):
        if number is not None and number < 1:
            told = f"'{what}' should be a number of 1 or more, not {number}"
            yield Problem("wrong-value", told, None, f"give {what}=1 or more")
    if driver.steps < 2:
        told = "a transient of one step computes nothing"
        yield Problem("shapes-differ", told, driver.block.span, "prescribe two times or more")


def _is_installed(name: str) -> bool:
    from importlib.util import find_spec

    return find_spec(name) is not None


# what is asked


@dataclass(frozen=True, slots=True)
class _Axes:
    """The values of each axis by the name of its parameter or input, and what the user calls it."""

    parameters: dict[str, Tensor]
    inputs: dict[str, Tensor]
    labels: dict[str, str]

    @property
    def values(self) -> dict[str, Tensor]:
        """The values of all."""
        return {**self.parameters, **self.inputs}


def _read_axes(driver: TransientDriver, over: Mapping[str, Any], *, paired: bool) -> _Axes:
    axes = _Axes({}, {}, {})
    problems: list[Problem] = []
    for word, given in over.items():
        with gather_problems(problems):
            row = _read_row(word, given)
            name, kept = _find_axis(driver, word, axes)
            if name in axes.values:
                told = f"'{word}' and '{axes.labels[name]}' are one, given twice"
                raise IngotError(
                    [Problem("duplicate-variable", told, None, "leave one of the two out")]
                )
            kept[name], axes.labels[name] = row, word
    if paired and len({len(row) for row in axes.values.values()}) > 1:
        rows = axes.values.items()
        counts = ", ".join(f"'{axes.labels[name]}' has {len(row)}" for name, row in rows)
        told = f"paired values are as many of each, but {counts}"
        problems.append(Problem("shapes-differ", told, None, "give as many of each"))
    raise_if(problems)
    return axes


def _find_axis(driver: TransientDriver, word: str, axes: _Axes) -> tuple[str, dict[str, Tensor]]:
    """The parameter or the input that a word means, and where its values are kept."""
    model = driver.model
    parameters = model.named_values()
    spellings = with_root({n: spell_parameters(model)[n] for n in parameters}, model.name)
    inputs = {n: [] for n in model.inputs if not lag(n)[1] and n != driver.clock.name}
    missing = f"[{model.name}] has no parameter or input '{word}'"
    name = resolve_name(word, {**spellings, **inputs}, missing)
    kind = type(parameters[name]) if name in parameters else model.inputs[name]
    single = not parameters[name].data.ndim if name in parameters else not driver.shape(name)
    if kind is not Scalar or not single:
        told = f"'{name}' is no single number, and cannot be an axis of a sweep"
        fix = "give it as a batch in the driver's block, which is run for each combination"
        raise IngotError([Problem("wrong-value", told, None, fix)])
    return name, axes.parameters if name in parameters else axes.inputs


def _read_row(name: str, given: Any) -> Tensor:
    """The values of an axis in float64."""
    row = GivenField(name, given, caller()).tensor(given)
    if row.ndim > 1 or not row.isfinite().all() or not row.numel():
        told = f"'{name}' should be a row of finite numbers, not {describe(given)}"
        fix = "give a list of numbers, one for each run"
        raise IngotError([Problem("wrong-value", told, caller(), fix)])
    return row.reshape(-1)


def _plan(
    driver: TransientDriver, axes: _Axes, place: Path, *, paired: bool,
    keep: Sequence[str] | None, steps: Kept, part: int | None,
) -> Plan:  # fmt: skip
    """What is computed, and how it is cut."""
    model = driver.model
    names = _choose_outputs(driver, keep)
    kept = _choose_steps(driver.steps, steps)
    inner = {n: (*driver.shape(n), *model.outputs[n].base) for n in names}
    taken = {*OWN, *axes.labels.values()}
    raise_if(
        Problem("duplicate-variable", f"the data set has a column '{n}' of its own", None,
                "rename the output, or keep others")
        for n in names if n in taken
    )  # fmt: skip
    scaled = [n for n in names if (list_scales(model.outputs[n]) != 1).any()]
    rows = axes.values
    lengths = (
        (len(next(iter(rows.values()))),) if paired and rows else tuple(map(len, rows.values()))
    )
    points = math.prod(lengths) * math.prod(driver.batch)
    sizes = [math.prod((*driver.shape(n), *k.base)) for n, k in model.outputs.items()]
    width = driver.steps * sum(sizes)  # of the history of a point, whatever is kept of it
    return Plan(
        digest=_digest(driver, axes, names, kept, place.suffix, paired=paired),
        format="parquet" if place.suffix == ".parquet" else "zarr",
        points=points,
        size=min(part or max(NUMBERS // width, 1), max(points, 1)),
        lengths=lengths or (1,),
        batch=driver.batch,
        steps=driver.steps,
        kept=kept,
        parameters=tuple(axes.parameters),
        inputs=tuple(axes.inputs),
        axis={name: 0 if paired else i for i, name in enumerate(rows)},
        labels=axes.labels,
        columns=tuple(_list_columns(driver, names)),
        variables=inner,
        scales={n: list_scales(k).tolist() for n, k in model.outputs.items() if n in scaled},
        begun=tuple(n for n in names if n in driver.starts),
        solves=len(driver.rules),
    )


def _choose_outputs(driver: TransientDriver, keep: Sequence[str] | None) -> tuple[str, ...]:
    known = driver.model.outputs
    keep = (keep,) if isinstance(keep, str) else keep
    names = tuple(dict.fromkeys(known if keep is None else keep))
    raise_if(
        Problem("unknown-output", f"[{driver.model.name}] has no output '{name}'", None,
                did_you_mean(name, known) or f"one of: {', '.join(known)}")
        for name in names if name not in known
    )  # fmt: skip
    return names


def _choose_steps(count: int, steps: Kept) -> tuple[int, ...]:
    if isinstance(steps, str) and steps in ("all", "last"):
        return tuple(range(count)) if steps == "all" else (count - 1,)
    if isinstance(steps, str) or not steps or not all(-count <= n < count for n in steps):
        told = f"'steps' should be all, last, or numbers of steps below {count}, not {steps!r}"
        raise IngotError([Problem("wrong-value", told, None, "give 'last'")])
    return tuple(sorted({n % count for n in steps}))


def _list_columns(driver: TransientDriver, names: Sequence[str]) -> Iterator[Column]:
    for name in names:
        kind = driver.model.outputs[name]
        for site in product(*map(range, driver.shape(name))):
            where = f"[{' '.join(map(str, site))}]" if site else ""
            places = product(*map(range, kind.base))
            for place, suffix in zip(places, list_component_suffixes(kind), strict=True):
                yield Column(f"{name}{where}{suffix}", name, (*site, *place))


def _digest(
    driver: TransientDriver, axes: _Axes, names: Sequence[str], kept: Sequence[int], ending: str,
    *, paired: bool,
) -> str:  # fmt: skip
    """What tells a sweep apart from one that computes something else."""
    told = hashlib.blake2b(digest_size=16)
    told.update(repr((driver.program.digest, names, kept, ending, paired)).encode())
    transient = driver.transient
    held = {n: v.data for n, v in _list_values(driver.model).items()}
    groups = (axes.parameters, axes.inputs, transient.prescribed, transient.initial, held)
    for group in groups:
        for name, x in group.items():
            told.update(f"{name} {tuple(x.shape)} {x.dtype}".encode())
            told.update(x.detach().contiguous().numpy().tobytes())
    return told.hexdigest()


def _list_values(model: Model) -> dict[str, Value]:
    return {**model.named_values(), **model.buffer_values()}


# the plan on disk


def _require_same(folder: Path, place: Path, plan: Plan, part: int | None) -> None:
    """Refuse a place that holds anything but the beginning of the same sweep."""
    fix = "name another place, or remove both"
    if not (folder / PLAN).exists():
        if place.exists():
            told = f"'{place}' is there, and no sweep of Ingot's has written it"
            raise IngotError([Problem("sweep-differs", told, None, "name another place")])
        return
    try:
        found = msgspec.json.decode((folder / PLAN).read_bytes(), type=Plan)
    except msgspec.DecodeError as error:
        told = f"'{folder}' holds a plan that cannot be read: {error}"
        raise IngotError([Problem("sweep-differs", told, None, fix)]) from None
    if found.digest != plan.digest:
        told = f"'{place}' was begun by another sweep: model, values or outputs differ"
        raise IngotError([Problem("sweep-differs", told, None, fix)])
    if part is not None and found.size != min(part, max(plan.points, 1)):
        told = f"'{place}' was begun in parts of {found.size} points, not {part}"
        raise IngotError([Problem("sweep-differs", told, None, f"leave it out, or {fix}")])


def _write_plan(driver: TransientDriver, folder: Path, plan: Plan, axes: _Axes) -> None:
    """Compile the package, and put the plan in its place, all of it or nothing."""
    values = _list_values(driver.model)
    batched = {
        n: v.data for n, v in values.items()
        if v.dynamic_batch.ndim and n not in axes.parameters
    }  # fmt: skip
    target = Target(
        backend=("kernel",), parameter=(*axes.parameters, *batched), stub=False, baseline=False
    )
    compilation = Compilation(
        model=driver.model, target=target, device="cpu", driven=driver.shapes,
        command="ingot sweep",
    )  # fmt: skip
    variables = {**driver.model.inputs, **driver.model.outputs}

    def align(rows: Mapping[str, Tensor], lead: int) -> dict[str, tuple[Tensor, int]]:
        """Of each variable its values, with as many axes of a batch as the driver's."""
        ranks = {n: len(driver.shape(n)) + len(variables[n].base) for n in rows}
        found = {n: _align(x, lead, ranks[n], driver.batch) for n, x in rows.items()}
        return {n: (x, lead) for n, x in found.items() if n not in axes.inputs}

    given = {
        "axes": axes.values,
        "times": _align(driver.clock.value.data, 1, 0, driver.batch),
        "prescribed": align(driver.transient.prescribed, 1),
        "initial": align(driver.transient.initial, 0),
        "parameters": {
            n: (_align(x, 0, values[n].sub + len(values[n].base), driver.batch), 0)
            for n, x in batched.items()
        },
    }
    with open_scratch(folder) as scratch:
        (scratch / PACKAGE).mkdir()
        translate(advance(compilation), scratch / PACKAGE)
        save_tensors(given, scratch / GIVEN)
        (scratch / PLAN).write_bytes(msgspec.json.encode(plan))
        put(scratch, folder)


def _align(x: Tensor, lead: int, rank: int, batch: tuple[int, ...]) -> Tensor:
    """An array (*lead, *batch, *rank) with as many axes of a batch as `batch` has."""
    own = x.shape[lead : x.ndim - rank]
    ones = [1] * (len(batch) - len(own))
    return x.reshape((*x.shape[:lead], *ones, *own, *x.shape[x.ndim - rank :]))


# what is told


def _count(progress: Callable[[int, int], None] | None, total: int, done: int) -> Done:
    """What counts the parts that are done, from any thread."""
    counter = itertools.count(done + 1)

    def tell(_: int) -> None:
        if progress is not None:
            progress(next(counter), total)

    return tell
