"""`ingot report`: a transient run, and one HTML page that tells of it."""

import json as jsonlib
import warnings
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ingot.cli.run import only_driver
from ingot.errors import IngotError, IngotWarning, Problem, raise_if
from ingot.options import Backend

if TYPE_CHECKING:
    from ingot.cli.viewer.transient_page import Source
    from ingot.drivers import Result, TransientDriver

__all__ = ["Told", "report", "run_transient", "write_page"]


def report(
    file: Path,
    /,
    *words: str,
    output: Annotated[Path | None, Parameter(alias="-o")] = None,
    backend: Backend | None = None,
    json: bool = False,
    strict: bool = False,
    untrusted: bool = False,
) -> int:
    """Run a transient of FILE and write a page: curves, convergence, time taken, model, warnings.

    The page is one file that needs no other. It is written where points fail, too; the exit code
    is 1 then.

    Example: ingot report model.i driver --output report.html

    Parameters
    ----------
    file
        The input file.
    words
        The name of its TransientDriver, then values that replace those of the file.
    output
        Where to write the page, FILE's name with the ending .html in the working folder unless
        given.
    backend
        What runs the model, as ingot run takes it.
    json
        Print what was written as JSON.
    strict
        End with an error at whatever is warned of otherwise.
    untrusted
        Evaluate Python of the file within bounds, by listed names, and run no other code it names.
    """
    from ingot.cli.viewer.transient_page import Source
    from ingot.execute import failures

    told = run_transient(file, words, backend, strict=strict, untrusted=untrusted)
    driver, result = told.driver, told.result
    source = Source(
        f"{file.name}: {driver.block.name}", f"{driver.model.name} by {told.label}", driver,
        file.name, told.text, told.warnings, told.timing,
    )  # fmt: skip
    write_page(result, source, output or Path(f"{file.stem}.html"), json=json)
    raise_if(failures(result.statuses, result.times))
    return 0


@dataclass(frozen=True, slots=True)
class Told:
    """A transient that was run, what it is run by, and what was told and measured on the way."""

    driver: "TransientDriver"
    result: "Result"
    label: str
    text: str
    warnings: tuple[str, ...]
    timing: tuple[tuple[str, float], ...]


def run_transient(
    file: Path, words: tuple[str, ...], backend: Backend | None, *, strict: bool = False,
    untrusted: bool = False,
) -> Told:  # fmt: skip
    """Run a driver of a file; its warnings are gathered, and shown as ever."""
    from ingot.drivers import TransientDriver, build_driver
    from ingot.drivers.formats.choice import FORMATS
    from ingot.execute import DEFAULT_BACKEND
    from ingot.hit import read, read_contents, sections_in
    from ingot.runtime.stub import AOTIModel

    if file.suffix.lower() in FORMATS and file.exists():
        message = f"{file} is a result, and a report runs an input file"
        raise IngotError([Problem("which-driver", message, None, f"look at it: ingot view {file}")])
    text = read_contents(file)
    if "Domain" in sections_in(text):
        message = f"{file} is a simulation on a grid"
        fix = f"run it, and look at its fields with: ingot view {file.stem}.xmf"
        raise IngotError([Problem("which-driver", message, None, fix)])
    named = words[:1] if words and "=" not in words[0] else ()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", IngotWarning)
        start = perf_counter()
        tree = read(file, words[len(named) :], text=text)
        name = named[0] if named else only_driver(tree)
        driver = build_driver(tree, name, strict=strict, untrusted=untrusted)
        if not isinstance(driver, TransientDriver):
            message = f"[Drivers/{name}] judges a result, and has no curves of its own"
            raise IngotError([Problem("which-driver", message, None, "name its TransientDriver")])
        built = perf_counter()
        packaged = isinstance(driver.model.body, AOTIModel)
        if not packaged:
            _ = driver.program
        traced = perf_counter()
        driver.prepare(backend)
        ready = perf_counter()
        result = driver.compute(backend)
    for each in caught:
        warnings.warn(each.message, stacklevel=2)
    told = dict.fromkeys(str(each.message) for each in caught)
    trace = () if packaged else (("trace", traced - built),)
    timing = (("read and build", built - start), *trace, ("prepare, compile", ready - traced))
    return Told(driver, result, driver.label(backend or DEFAULT_BACKEND), text, tuple(told), timing)


def write_page(result: "Result", source: "Source", place: Path, *, json: bool) -> None:
    """Write the page whole, and say what it shows."""
    from ingot.cli.viewer.transient_page import list_data, report_page
    from ingot.package.write import put_text

    put_text(report_page(result, source), place)
    charts = [
        f"{', '.join(c['ys'])} over {', '.join(c['xs'])}" for c in list_data(result)["charts"]
    ]
    report = {
        "page": str(place),
        "charts": charts,
        "steps": result.steps,
        "points": result.points,
        "failed": result.failed,
        "warnings": list(source.warnings),
    }
    if json:
        print(jsonlib.dumps(report))
    else:
        print(f"wrote {place} ({place.stat().st_size / 1e6:.2g} MB): {'; '.join(charts)}")
