"""The seven models of the spine: operations after each pass, forms of elimination, what they cost.

Compile seconds are cold, from a traced program to a loaded kernel; microseconds are per point and
step of the file's own driver, on one thread. `python -m benchmarks.spine [CASES]`.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from unittest import mock

import torch

from ingot.drivers import TransientDriver, structural_shapes, transient_driver
from ingot.execute.kernel import Kernel
from ingot.hit import read
from ingot.model import Factory
from ingot.program import Program, prepared, sort_lines, trace, walk_passes
from ingot.program.band import Band
from ingot.program.eliminate import TIES, Attempt, Eliminated, NotWorth, eliminate
from ingot.program.forms import BORDERS, tell_states
from ingot.program.operations import operation
from ingot.program.probe import Probes
from ingot.program.program import count_operations

EXTENDED = [(border, ties) for border in BORDERS for ties in TIES]
FORMS = ("jacobian", "accumulated", *(f"extended {b} {t}" for b, t in EXTENDED), "condensed")
LONGEST = 20  # times the chosen form's operations: what is longer is not worth the seconds

SEVEN = (
    ("models/solid_mechanics/elasticity/LinearIsotropicElasticity.i", "model", None),
    ("regression/solid_mechanics/viscoplasticity/chaboche/model.i", None, "driver"),
    ("regression/solid_mechanics/rate_independent_plasticity/isoharden/model.i", None, "driver"),
    ("regression/solid_mechanics/viscoplasticity/free_sintering/model.i", None, "driver"),
    (
        "regression/solid_mechanics/crystal_plasticity/single_crystal_coupled/model.i",
        None,
        "driver",
    ),
    ("regression/finite_volume/combined/model.i", None, "driver"),
    ("regression/chemical_reactions/pyrolysis/model.i", None, "driver"),
)


def main(cases: Path) -> None:
    """Print one row a model."""
    torch.set_num_threads(1)
    print("| model | traced | frozen, clean | loops | residual | update | compile s | µs |")
    print("|---|--:|--:|--:|--:|---|--:|--:|")
    for file, model, driver in SEVEN:
        print(row(cases / "neml2" / file, model, driver), flush=True)
    print(f"\n| solve | {' | '.join(FORMS)} | chosen | by the cheapest safe one |")
    print(f"|---|{'--:|' * len(FORMS)}---|--:|")
    for file, model, driver in SEVEN:
        for line in form_rows(cases / "neml2" / file, model, driver):
            print(line, flush=True)


def form_rows(file: Path, model: str | None, driver: str | None) -> Iterator[str]:
    """A row for each solve with no axes: the operations of every form, `!` where it is a risk.

    A form is safe whose pivots vanish at no more probe states than those of the chosen one; with a
    border it is so only where most of these are states of the model (`tell_states`).
    """
    factory = Factory(read(file))
    live = factory.model(model) if model is not None else transient_driver(factory, driver).model
    after = dict(walk_passes(prepared(live, structural_shapes(factory, live, driver))))
    chosen = {s.factored.source: s.factored for s in after["factor"].solves if s.factored}
    before = after["loops"]
    for node in (n for n in before.lines if n.op == "solve"):
        factored = chosen[node.attr.digest]
        newton = factored.newton
        if isinstance(newton, Band):
            continue
        probes = Probes.of_program(before).enter(node, node.attr)
        attempt = Attempt(before, node.attr, probes)
        forms = try_forms(attempt, newton)
        if not tell_states(attempt, forms["jacobian"]):
            forms = {
                n: e for n, e in forms.items() if not n.startswith(("extended -", "extended 1"))
            }
        safe = [e.operations for e in forms.values() if e.risk <= newton.risk]
        cells = (
            f"{forms[name].operations}{'!' * (forms[name].risk > newton.risk)}"
            if name in forms else "-" for name in FORMS
        )  # fmt: skip
        name = file.parent.name if file.name == "model.i" else file.stem
        told = f"{newton.form} {newton.operations} | {newton.operations / min(safe):.2f}"
        yield f"| {name} [{node.attr.name}] | {' | '.join(cells)} | {told} |"


def try_forms(attempt: Attempt, chosen: Eliminated) -> dict[str, Eliminated]:
    """Every elimination of a solve that is not many times longer than the chosen one."""
    found = {"jacobian": eliminate(attempt, "jacobian")}
    if not any(n.axes or operation(n.op).is_block for n in sort_lines(attempt.solve.rows)):
        found["accumulated"] = eliminate(attempt, "accumulated")
        limit = LONGEST * chosen.operations
        for border, ties in EXTENDED:
            with suppress(NotWorth):
                found[f"extended {border} {ties}"] = eliminate(
                    attempt, "extended", limit=limit, ties=ties, border=border
                )
    if chosen.form == "condensed":
        found["condensed"] = chosen
    return found


def row(file: Path, model: str | None, driver: str | None) -> str:
    """What the passes make of one model, and what it costs."""
    factory = Factory(read(file))
    run = transient_driver(factory, driver) if driver is not None else None
    live = factory.model(model) if model is not None else driven(run).model
    shapes = structural_shapes(factory, live, driver)
    program = prepared(live, shapes)
    after = dict(walk_passes(program))
    factored = after["factor"]
    residual = sum(count_operations(factored, s.rows) for s in factored.solves)
    seconds = statistics.median(compile_seconds(program) for _ in range(3))
    name = file.parent.name if file.name == "model.i" else file.stem
    speed = f"{microseconds(run):.3f}" if run is not None else "-"
    return (
        f"| {name} | {trace(live, shapes).count()} | {after['clean'].count()} |"
        f" {after['loops'].count()} | {residual} | {form(factored)} | {seconds:.2f} | {speed} |"
    )


def driven(run: TransientDriver | None) -> TransientDriver:
    assert run is not None
    return run


def form(program: Program) -> str:
    """How the update of each solve is found, and the operations of every form that was tried."""
    found = []
    for solve in program.solves:
        factored = solve.factored
        assert factored is not None
        if isinstance(factored.newton, Band):
            found.append(f"band, reach {factored.newton.reach}")
            continue
        tried = ", ".join(f"{name} {n}" for name, n in factored.costs.items())
        found.append(f"{factored.newton.form} {factored.newton.operations} of ({tried})")
    return ", ".join(found) or "none"


def compile_seconds(program: Program) -> float:
    """Wall seconds from the traced program to a loaded kernel, nothing cached."""
    with tempfile.TemporaryDirectory() as cache:
        start = time.perf_counter()
        with mock.patch.dict(os.environ, {"XDG_CACHE_HOME": cache}):
            Kernel(program)
        return time.perf_counter() - start


def microseconds(run: TransientDriver) -> float:
    """CPU time of a run, per point and step, on one thread."""
    run.run("kernel")
    times = []
    for _ in range(9):
        start = time.process_time()
        result = run.run("kernel")
        times.append(time.process_time() - start)
    return 1e6 * statistics.median(times) / (result.points * (result.steps - 1))


if __name__ == "__main__":
    here = Path(__file__).resolve().parent.parent
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else here.parent / "shared" / "cases")
