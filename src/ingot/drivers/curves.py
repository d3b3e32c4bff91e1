"""Words such as `strain.xx:stress.xx` -> Panels: the numbers of every curve, and its labels.

What draws them, matplotlib or a page, adds nothing to the numbers.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ingot.drivers.poles import ROTATIONS
from ingot.drivers.result import Result
from ingot.drivers.result_dataset import TOLD, spread_status
from ingot.drivers.result_text import count
from ingot.drivers.series import Array, Series, find_unknown_name
from ingot.errors import IngotError, Problem, caller
from ingot.types import SR2

__all__ = [
    "MOST_LINES", "Curve", "Panel", "Quantity", "caption", "choose_words", "find_panels",
    "find_quantities", "split_word",
]  # fmt: skip

MOST_LINES = 8  # points drawn with a line and a name each; of more the mean is
MOST_FAINT = 40  # single points drawn behind a mean
MOST_PANELS = 6  # that nobody asked for by name
SITE = re.compile(r"(.+?)\[([\d ,]+)\]")


@dataclass(frozen=True, slots=True)
class Quantity:
    """What an axis may show: numbers (steps, points) under a label.

    group: what an axis is called that shows several of a kind; short: what tells them apart.
    """

    label: str
    values: Array
    group: str
    short: str = ""
    unit: str = ""
    log: bool = False
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Curve:
    """A line through numbers; a faint one stands behind others and has no name.

    hue: which quantity of its panel it is of; dash: which point of several.
    """

    label: str
    x: Array
    y: Array
    faint: bool = False
    hue: int = 0
    dash: int = 0


@dataclass(frozen=True, slots=True)
class Panel:
    """Curves over common axes; band: between which a share of the points lie, as (x, low, high)."""

    title: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    band: tuple[Array, Array, Array] | None = None
    log: bool = field(default=False, kw_only=True)
    whole: bool = field(default=False, kw_only=True)
    """Whether the numbers of the y axis count something."""


def find_panels(
    result: Result, words: Sequence[str] = (), points: Sequence[int] = ()
) -> list[Panel]:
    """A panel for each word `x:y`, `x:y1,y2` or `y`, or for what is most telling of a result.

    points: the only ones to show; of many points else their mean, and where most of them lie.
    """
    _refuse_points(result, points)
    return [make_panel(result, word, points) for word in words or choose_words(result)]


def _refuse_points(result: Result, points: Sequence[int]) -> None:
    for point in points:
        if not isinstance(point, int | np.integer) or not 0 <= point < result.points:
            message = f"the result has no point {point}"
            last = result.points - 1
            fix = f"choose 0 to {last}" if last >= 0 else "give it points"
            raise IngotError([Problem("unknown-name", message, None, fix)])


def make_panel(result: Result, word: str, points: Sequence[int] = ()) -> Panel:
    """The panel that a word asks for."""
    x_word, *y_words = split_word(word)
    xs = find_quantities(result, x_word)
    ys = [q for part in y_words for q in find_quantities(result, part)]
    if len(xs) not in (1, len(ys)):
        names = ",".join(y_words)
        message = f"'{x_word}' of '{word}' is {len(xs)} curves, and '{names}' {len(ys)}"
        fix = f"name one component: {xs[0].label}:{ys[0].label}"
        raise IngotError([Problem("wrong-value", message, None, fix)])
    pairs = [(xs[i if len(xs) > 1 else 0], y) for i, y in enumerate(ys)]
    x_label, y_label = caption(xs), caption(ys)
    curves, band = [], None
    names = _shorten(ys)
    for hue, ((x, y), name) in enumerate(zip(pairs, names, strict=True)):
        more, band = list_curves(result, x, y, name, points)
        curves += [replace(curve, hue=hue if len(ys) > 1 else curve.hue) for curve in more]
    alone = len(ys) == 1
    return Panel(
        f"{y_label} over {x_label}", x_label, y_label,
        tuple(curve for curve in curves if alone or not curve.faint), band if alone else None,
        log=all(y.log for y in ys), whole=all(y.whole for y in ys),
    )  # fmt: skip


def split_word(word: str) -> tuple[str, ...]:
    """The x and every y of a word; the time where it names no x."""
    if not isinstance(word, str):
        message = f"a curve is named by a string, not {word!r}"
        raise IngotError([Problem("wrong-value", message, caller(), 'write "strain.xx:stress.xx"')])
    first, colon, last = word.partition(":")
    x, ys = (first, last) if colon else ("time", first)
    return (x, *ys.split(","))


def caption(some: Sequence[Quantity]) -> str:
    """What an axis is called that shows quantities: their groups where there are several."""
    names = [some[0].label] if len(some) == 1 else dict.fromkeys(q.group for q in some)
    units = {q.unit for q in some}
    unit = units.pop() if len(units) == 1 else ""
    return ", ".join(names) + (f" [{unit}]" if unit else "")


def _shorten(some: Sequence[Quantity]) -> list[str]:
    """What tells curves apart: nothing where there is one, what is short within one group."""
    if len(some) == 1:
        return [""]
    alike = len({q.group for q in some}) == 1
    return [q.short if alike and q.short else q.label for q in some]


def list_curves(
    result: Result, x: Quantity, y: Quantity, label: str, points: Sequence[int]
) -> tuple[list[Curve], tuple[Array, Array, Array] | None]:
    """The curves of one pair: chosen points, or few, or the mean of many before some of them."""
    if points or result.points <= MOST_LINES:
        chosen = points or range(result.points)
        named = len(chosen) > 1 or bool(points)
        names = [" ".join(filter(None, (label, f"point {p}" if named else ""))) for p in chosen]
        rows = enumerate(zip(names, chosen, strict=True))
        return [
            Curve(name, x.values[:, p], y.values[:, p], hue=0 if label else i, dash=i)
            for i, (name, p) in rows
        ], None
    some = np.linspace(0, result.points - 1, MOST_FAINT).round().astype(int)
    faint = [Curve("", x.values[:, p], y.values[:, p], faint=True) for p in some]
    mean_x, mean_y = (_mean(q.values) for q in (x, y))
    name = label or f"mean of {count(result.points, 'point')}"
    mean = Curve(name, mean_x, mean_y)
    if (x.values == x.values[:, :1]).all():
        low, high = _quantiles(y.values)
        return [*faint, mean], (mean_x, low, high)
    return [*faint, mean], None


def _mean(values: Array) -> Array:
    known = np.isfinite(values)
    total = np.where(known, values, 0).sum(1)
    return np.where(known.any(1), total / np.maximum(known.sum(1), 1), np.nan)


def _quantiles(values: Array) -> tuple[Array, Array]:
    """Between these lie the middle four fifths of the numbers of each row."""
    rows = [row[np.isfinite(row)] for row in values]
    ends = [np.quantile(r, (0.1, 0.9)) if r.size else (np.nan, np.nan) for r in rows]
    low, high = np.array(ends).T
    return low, high


# what a word means


def find_quantities(result: Result, word: str) -> list[Quantity]:
    """What a word names: `stress.xx`, all components of `stress`, `slip[3]`, `time`, `iterations`.

    `SOLVE.iterations` and `SOLVE.residual` are of one solve where there are several.
    """
    word = word.strip()
    told = list(_list_told(result, word))
    if told and word not in result:
        return told
    if word == "step" and word not in result:
        steps = np.arange(result.steps, dtype=float)
        values = np.broadcast_to(steps[:, None], (result.steps, result.points))
        return [Quantity("step", values, "step", whole=True)]
    return list(_list_components(result, *_split(result, word)))


def _list_told(result: Result, word: str) -> Iterator[Quantity]:
    """What statuses tell under a word."""
    for status in result.statuses:
        for row in TOLD[:2]:
            if word in (row, f"{status.solve}.{row}"):
                values = spread_status(result, status, row).astype(float)
                values[: status.begin] = np.nan  # nothing is solved there
                label = f"{status.solve}.{row}" if len(result.statuses) > 1 else row
                counts = row == "iterations"
                yield Quantity(label, values, row, status.solve, log=not counts, whole=counts)


def _split(result: Result, word: str) -> tuple[Series, tuple[int, ...] | None, str | None]:
    """The variable of a word, the entry of its axes, and its component, as far as it has them."""
    known = (*result.names, "time")
    if word in known:
        return result[word], None, None
    name, dot, component = word.rpartition(".")
    for head, last in ((word, None), (name, component)) if dot else ((word, None),):
        site = SITE.fullmatch(head)
        name = site[1] if site else head
        if name in known:
            place = tuple(int(i) for i in re.findall(r"\d+", site[2])) if site else None
            return result[name], place, last
    told = [f"{s.solve}.{row}" for s in result.statuses for row in TOLD[:2]]
    short = TOLD[:2] if result.statuses else ()
    raise find_unknown_name(word, (*known, "step", *short), (*told, *_list_dotted(result)))


def _list_dotted(result: Result) -> Iterator[str]:
    """Components with their names, for a word that is nearly one of them."""
    for name in result.names:
        yield from (f"{name}.{component}" for component in result[name].components)


def _list_components(
    result: Result, series: Series, site: tuple[int, ...] | None, component: str | None
) -> Iterator[Quantity]:
    axes = series.shape[1 + len(result.batch) :][: len(series.axes)]
    if site is not None and (
        len(site) != len(axes) or any(i >= n for i, n in zip(site, axes, strict=True))
    ):
        message = f"'{series.name}' has no entry [{' '.join(map(str, site))}]"
        ends = " ".join(str(n - 1) for n in axes)
        fix = f"choose [{' '.join('0' for _ in axes)}] to [{ends}]" if axes else "leave it out"
        raise IngotError([Problem("unknown-name", message, None, fix)])
    sites = [site] if site is not None else list(np.ndindex(axes))
    for place in sites:
        where = f"{series.name}[{' '.join(map(str, place))}]" if place else series.name
        for name in (component,) if component is not None else series.components or ("",):
            numbers = series.component(name) if name else series.values
            flat = numbers.reshape(result.steps, result.points, *axes)[(..., *place)]
            label = f"{where}.{name}" if name else where
            short = label.removeprefix(series.name).removeprefix(".")
            yield Quantity(label, flat, series.name, short, series.unit)


# what is worth showing


def choose_words(result: Result) -> list[str]:
    """What is most telling: stress over strain where there is one, then histories, iterations."""
    words = list(_choose_stress_strain(result))
    shown = {re.split(r"[.:\[]", part)[0] for word in words for part in word.split(":")}
    for name in sorted(result.outputs or result.inputs, key=lambda name: "stress" not in name):
        turns = result.kinds[name] in ROTATIONS and result.points > MOST_LINES
        plain = not re.search("[:,]", name)  # which words could not name
        if plain and name not in shown and name not in ("t", "time") and not turns:
            words.append(_choose_history(result[name]))
    words = words[: MOST_PANELS - bool(result.statuses)]
    return [*words, *(["iterations"] if result.statuses else [])]


def _choose_stress_strain(result: Result) -> Iterator[str]:
    tensors = [name for name in result.names if result.kinds[name] is SR2]
    stresses = [n for n in tensors if "stress" in n.lower()]
    strains = [n for n in tensors if "strain" in n.lower() and not _rank(n)[0]]
    if stresses and strains:
        strain, stress = min(strains, key=_rank), min(stresses, key=_rank)
        component = _find_widest(result[strain])
        yield f"{strain}.{component}:{stress}.{component}"


PARTIAL = (
    "plastic", "elastic", "back", "over", "trial", "mandel", "thermal", "creep", "rate",
)  # fmt: skip
"""What names of a part of the stress or strain, or of its rate, hold."""


def _rank(name: str) -> tuple[int, int]:
    """How far a name is from that of the whole stress or strain."""
    last = name.lower().rpartition("/")[2]
    return sum(word in last for word in PARTIAL), len(last)


def _choose_history(series: Series) -> str:
    """The word for a variable over time: one curve where its components or entries are many."""
    if series.axes:
        return f"{series.name}[{' '.join('0' for _ in series.axes)}]" + (
            f".{_find_widest(series)}" if series.components else ""
        )
    if len(series.components) > 3:
        return f"{series.name}.{_find_widest(series)}"
    return series.name


def _find_widest(series: Series) -> str:
    """The component whose mean over all points varies most."""
    return max(series.components, key=lambda name: _find_width(series.component(name)))


def _find_width(values: Array) -> float:
    mean = _mean(values.reshape(len(values), math.prod(values.shape[1:])))
    known = mean[np.isfinite(mean)]
    return float(np.ptp(known)) if known.size else 0.0
