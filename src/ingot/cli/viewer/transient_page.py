"""A Result, and the driver it came from -> one HTML page: curves, convergence, timing, model."""

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ingot.drivers.curves import MOST_LINES, Quantity, choose_words, find_quantities, split_word
from ingot.drivers.result_text import count, list_rows
from ingot.errors import IngotError
from ingot.execute import Reason, Status

if TYPE_CHECKING:
    from ingot.drivers import Result, TransientDriver
    from ingot.model import Model

__all__ = ["Source", "report_page"]

HERE = Path(__file__).parent
SCRIPTS = ("axes.js", "charts.js")
MOST_STEPS = 2000  # of a curve on a page
MOST_QUANTITIES = 150  # to choose from
MOST_FAILURES = 20  # rows of a table
MOST_LETTERS = 90  # of a parameter's value


@dataclass(frozen=True, slots=True)
class Source:
    """Where a result came from, as far as it is known, and what was told on the way."""

    title: str
    subtitle: str = ""
    driver: "TransientDriver | None" = None
    file: str = ""
    text: str = ""
    warnings: Sequence[str] = ()
    timing: Sequence[tuple[str, float]] = field(default=())


def report_page(result: "Result", source: Source) -> str:
    """The text of the page; it needs nothing else."""
    from jinja2 import Environment
    from markupsafe import Markup

    # `<` would end the script that holds the numbers, whatever the names in it
    data = json.dumps(list_data(result)).replace("<", "\\u003c")
    environment = Environment(autoescape=True, trim_blocks=True)
    template = environment.from_string((HERE / "transient_page.html").read_text())
    failures, note = list_failures(result)
    return template.render(
        title=source.title, subtitle=source.subtitle, cards=list_cards(result),
        warnings=source.warnings, solves=list_solves(result), failures=failures,
        failures_note=note, timing=list_timing(result, source.timing),
        variables=list_rows(result), model=describe_model(source.driver),
        source={"name": source.file, "lines": source.text.splitlines()} if source.text else None,
        data=Markup(data), script=Markup("".join((HERE / name).read_text() for name in SCRIPTS)),
    )  # fmt: skip


# curves


def list_data(result: "Result") -> dict[str, Any]:
    """What the page draws: every quantity at some points, and the charts shown at first."""
    steps = np.unique(np.linspace(0, result.steps - 1, min(result.steps, MOST_STEPS)).astype(int))
    many = result.points > MOST_LINES
    some = np.unique(np.linspace(0, result.points - 1, min(result.points, MOST_LINES)).astype(int))
    points = some[: result.points]
    rows = [f"point {p}" if result.points > 1 else "" for p in points]
    found = list(list_quantities(result))
    return {
        "steps": steps.tolist(),
        "rows": [*rows, f"mean of {count(result.points, 'point')}"] if many else rows,
        "mean": len(rows) if many else None,
        "quantities": [
            {
                "label": q.label, "group": q.group, "short": q.short, "unit": q.unit,
                "log": q.log, "whole": q.whole,
                "values": [*_list_rows(q, steps, points), *([_mean(q, steps)] if many else [])],
            }
            for q in found
        ],
        "charts": list(list_charts(result, {q.label for q in found})),
    }  # fmt: skip


def list_quantities(result: "Result") -> Iterator[Quantity]:
    """The time, what the charts show, then everything else, as many as fit."""
    words = ["time", "step", *(part for word in choose_words(result) for part in split_word(word))]
    told = ("iterations", "residual") if result.statuses else ()
    found: dict[str, Quantity] = {}
    for word in (*words, *told, *result.names):
        for quantity in find_quantities(result, word):
            if len(found) < MOST_QUANTITIES:
                found.setdefault(quantity.label, quantity)
    yield from found.values()


def list_charts(result: "Result", known: set[str]) -> Iterator[dict[str, Any]]:
    """The charts that are shown at first, by the labels of their quantities."""
    words = [*choose_words(result), *(["residual"] if result.statuses else [])]
    for word in words:
        x, *ys = split_word(word)
        labels = [[q.label for q in find_quantities(result, part)] for part in (x, *ys)]
        xs, shown = labels[0], [label for part in labels[1:] for label in part]
        if {*xs, *shown} <= known:
            yield {"xs": xs, "ys": shown}


def _list_rows(quantity: Quantity, steps: Any, points: Any) -> list[list[float | None]]:
    return [_list_numbers(quantity.values[steps, point]) for point in points]


def _mean(quantity: Quantity, steps: Any) -> list[float | None]:
    values = quantity.values[steps]
    known = np.isfinite(values)
    total = np.where(known, values, 0.0).sum(1)
    return _list_numbers(np.where(known.any(1), total / np.maximum(known.sum(1), 1), np.nan))


def _list_numbers(values: Any) -> list[float | None]:
    """Numbers to seven digits, more than a screen shows; what is not finite is no number."""
    finite = np.isfinite(values)
    return [
        float(f"{x:.7g}") if ok else None for x, ok in zip(values.tolist(), finite, strict=True)
    ]


# tables


def list_cards(result: "Result") -> list[dict[str, Any]]:
    """What is seen first."""
    failed = result.failed
    cards: list[dict[str, Any]] = [
        {"name": "steps", "value": result.steps},
        {"name": "points", "value": result.points},
    ]
    if result.statuses:
        mean = float(np.mean([s.mean_iterations for s in result.statuses]))
        cards += [
            {"name": "points failed", "value": failed, "bad": failed},
            {"name": "iterations a step", "value": f"{mean:.2g}"},
        ]  # fmt: skip
    if result.seconds:
        cards += [
            {"name": "run", "value": f"{result.seconds:.3g} s"},
            {"name": "per point and step", "value": f"{result.microseconds:.3g} µs"},
        ]
    return cards


def list_solves(result: "Result") -> list[dict[str, Any]]:
    """A row for each solve."""
    return [describe_solve(result, status) for status in result.statuses]


def describe_solve(result: "Result", status: Status) -> dict[str, Any]:
    """How one solve went."""
    failed = len(status.find_first_failures()) if status.has_failed else 0
    worst = status.find_worst_accepted()
    return {
        "name": status.solve,
        "converged": result.points - failed,
        "failed": failed,
        "mean": f"{status.mean_iterations:.3g}",
        "most": status.most_iterations,
        "worst": "none" if worst is None
        else f"{worst.residual:.1e} by {worst.criterion.name.lower()} at step {worst.step}",
    }  # fmt: skip


def list_failures(result: "Result") -> tuple[list[tuple[Any, ...]], str]:
    """The points that failed first, and how many there are where not all are listed."""
    rows: list[tuple[Any, ...]] = []
    times = result["time"].values.reshape(result.steps, result.points)
    for status in result.statuses:
        if not status.has_failed:
            continue
        for row, point in status.find_first_failures().tolist():
            step = row + status.begin
            reason = Reason(int(np.atleast_2d(status.reason.numpy())[row, point]))
            residual = float(np.atleast_2d(status.residual.numpy())[row, point])
            why = reason.name.lower().replace("_", " ")
            rows.append(
                (status.solve, point, step, f"{times[step, point]:.5g}", why, f"{residual:.1e}")
            )
    rows.sort(key=lambda row: row[2])
    note = "" if len(rows) <= MOST_FAILURES else f"; {MOST_FAILURES} of {len(rows)}"
    return rows[:MOST_FAILURES], note


def list_timing(result: "Result", before: Sequence[tuple[str, float]]) -> list[tuple[str, str]]:
    """How long each part took."""
    rows = [(name, f"{seconds:.3g} s") for name, seconds in before]
    rows.append(("run", f"{result.seconds:.3g} s"))
    return [*rows, ("per point and step", f"{result.microseconds:.3g} µs")]


def describe_model(driver: "TransientDriver | None") -> dict[str, Any] | None:
    """The picture of a model, and tables of its inputs, outputs and parameters."""
    if driver is None:
        return None
    from ingot.cli.drawing import drawn
    from ingot.cli.wiring import wiring_of_model, wiring_of_package
    from ingot.runtime.stub import AOTIModel

    model = driver.model
    body = model.body
    packaged = isinstance(body, AOTIModel)
    wiring = wiring_of_package(body.artifact.metadata) if packaged else wiring_of_model(model)
    picture = base64.b64encode(drawn(wiring, model.name).encode()).decode()
    shapes = driver.layout[0]

    def rows(variables: Any) -> list[tuple[str, str, str]]:
        return [
            (name, kind.__name__, " × ".join(map(str, shapes.get(name, ()))))
            for name, kind in variables.items()
        ]

    header = ("name", "kind", "axes")
    return {
        "name": model.name,
        "picture": picture,
        "tables": [
            {"name": "Inputs", "header": header, "rows": rows(model.inputs)},
            {"name": "Outputs", "header": header, "rows": rows(model.outputs)},
            {
                "name": "Parameters",
                "header": ("name", "kind", "value"),
                "rows": list(list_parameters(model)),
            },
        ],
    }


def list_parameters(model: "Model") -> Iterator[tuple[str, str, str]]:
    """Every parameter with its value; of many numbers the first."""
    try:
        named = model.named_values()
    except IngotError:
        named = {}
    for name, value in named.items():
        flat = value.data.reshape(-1)
        text = ", ".join(f"{x:.6g}" for x in flat[:6].tolist())
        more = f", ... ({' × '.join(map(str, value.data.shape))} numbers)" if len(flat) > 6 else ""
        yield name, type(value).__name__, text[:MOST_LETTERS] + more
