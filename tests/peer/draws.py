"""Every type of NEML2 by random draws through NEML2 itself: `python -m tests.peer.draws`.

In: the interpreter of an environment with neml2 3.1.0 (`--peer-python`). Out: how many types,
draws, values and slopes were compared, and every difference; the exit code is 1 where there is one.
"""

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ingot.catalog import CATALOG, Declared, Input, load
from ingot.errors import IngotError
from ingot.execute.interpret import Interpreter
from ingot.hit import read_text
from ingot.model import ELSEWHERE, build
from ingot.program import Program, along_direction, prepared
from ingot.types import Value
from tests.laws.agreement import difference
from tests.laws.samples import Case, cases_of, corners, extents
from tests.peer.models import MODELS, NOT_DRAWN, NOT_ON_AN_AXIS, Small

ROOT = Path(__file__).parents[2]
TABLE = ROOT.parent / "shared" / "reference" / "types.json"
POINTS = 8  # drawn at random for each choice of options, besides the corners
GRAINS = 3  # along an axis that a law does not name
STEP = 1e-5  # of differences of the peer's values
CLOSE = 1e-5  # how far a slope may lie from such a difference, by the size of the value


@dataclass(frozen=True)
class Draw:
    """A model as a file, and points to run it at."""

    type: str
    name: str
    text: str
    model: str
    program: Program
    inputs: Mapping[str, Tensor]
    along: Mapping[str, Tensor]
    random: int
    """How many points, the first, are no corners."""
    whole: bool = False
    """Whether points are coupled."""

    @property
    def batch(self) -> int:
        return len(next(iter(self.inputs.values()))) if self.inputs else 0

    @property
    def question(self) -> dict[str, Any]:
        """What the peer is asked."""
        axes = {v.name: len(v.axes) for v in self.program.inputs}
        return {
            "text": self.text, "model": self.model, "inputs": dict(self.inputs), "axes": axes,
            "along": dict(self.along), "batch": self.batch, "whole": self.whole, "step": STEP,
        }  # fmt: skip


@dataclass
class Tally:
    """What was compared, and what differs."""

    counts: Counter[str] = field(default_factory=Counter)
    types: set[str] = field(default_factory=set)
    found: list[str] = field(default_factory=list)
    refused: dict[str, list[str]] = field(default_factory=dict)
    """By type, the draws that the peer did not run, and what it said."""
    zero: set[str] = field(default_factory=set)
    """Where the peer's slope is not that of its own value, and ours is."""


def draws_of(declared: Declared, seed: int) -> Iterator[Draw]:
    """Every choice of a law's options, at random points, at corners, and where it has no slope."""
    for chosen in cases_of(declared):
        case = replace(chosen, seed=seed)
        start = zlib.crc32(f"{case.name} {seed}".encode())
        at = corners(case)
        inputs = {n: torch.cat([x, at[n]]) for n, x in case.draw(start, POINTS).items()}
        batch = len(next(iter(inputs.values()))) if inputs else 0
        draw = Draw(
            declared.name, case.name, case.text, "law", case.program(), inputs,
            case.draw(start + 1, batch), POINTS,
        )  # fmt: skip
        yield draw
        if outside := points_outside(case):
            yield replace(draw, name=f"{case.name} outside", inputs=outside, along={})
        if inputs and declared.name not in NOT_ON_AN_AXIS:
            yield on_an_axis(case, draw, start)


def on_an_axis(case: Case, draw: Draw, start: int) -> Draw:
    """The same law with one axis more on all it reads, as of grains."""
    shapes = {name: (GRAINS, *extents(slot.axes)) for name, slot in case.slots.items()}

    def fold(flat: dict[str, Tensor]) -> dict[str, Tensor]:
        return {n: x.reshape(POINTS, GRAINS, *x.shape[1:]) for n, x in flat.items()}

    inputs, along = (fold(case.draw(start + k, POINTS * GRAINS)) for k in (2, 3))
    program = prepared(case.model, shapes)
    return replace(
        draw, name=f"{case.name} on an axis", program=program, inputs=inputs, along=along
    )


def points_outside(case: Case) -> dict[str, Tensor]:
    """Points where inputs leave the range in which the law is known to have a value and a slope."""
    kept = [n for n, s in case.slots.items() if isinstance(s, Input) and not case.is_movable(s)]
    base = {n: x[0] for n, x in case.draw(8, 1).items()}
    changes = itertools.product(kept, (0.0, 1.0, -1.0, 3.0))
    rows = [{**base, n: torch.full_like(base[n], number)} for n, number in changes]
    return {n: torch.stack([row[n] for row in rows]) for n in base} if rows else {}


def draw_small(name: str, small: Small, seed: int) -> Draw:
    """A type that is no law, in a small file, at random points."""
    model = build(read_text(small.text), "law")
    program = prepared(model, small.axes)
    source = torch.Generator().manual_seed(zlib.crc32(f"{name} {seed}".encode()))

    def drawn(variable: str, kind: type[Value]) -> Tensor:
        low, high = small.ranges.get(variable, (-1.5, 1.5))
        shape = (POINTS, *small.axes.get(variable, ()), *kind.base)
        return low + (high - low) * torch.rand(shape, generator=source, dtype=torch.float64)

    inputs = {n: drawn(n, kind) for n, kind in model.inputs.items()}
    along = {n: drawn(n, kind) for n, kind in model.inputs.items() if small.sloped}
    return Draw(
        name, f"{name} {seed}", small.text, "law", program, inputs, along, POINTS, small.whole
    )


def ours(draw: Draw) -> tuple[dict[str, Tensor], dict[str, dict[str, Tensor]]]:
    """Our values, and our slopes along the direction of each input alone."""
    values, _ = Interpreter(draw.program)(dict(draw.inputs))
    sloped = Interpreter(along_direction(draw.program) if draw.along else draw.program)
    slopes = {}
    for name in draw.along:
        directions = {
            f"d.{n}": draw.along[n] if n == name else torch.zeros_like(x)
            for n, x in draw.inputs.items()
        }
        results, _ = sloped({**draw.inputs, **directions})
        slopes[name] = {n.removeprefix("d."): x for n, x in results.items() if n not in values}
    return values, slopes


def compare(draw: Draw, theirs: dict[str, Any], tally: Tally) -> None:
    """Count what agrees and tell what does not."""
    tally.counts["draws"] += 1
    if "error" in theirs:
        tally.refused.setdefault(draw.type, []).append(f"{draw.name}: {theirs['error']}")
        return
    tally.types.add(draw.type)
    values, slopes = ours(draw)
    if set(values) != set(theirs["values"]):
        tally.found.append(f"{draw.name}: gives {set(values)}, the peer {set(theirs['values'])}")
        return
    for name, value in values.items():
        if not draw.inputs:
            value = value.expand(theirs["values"][name].shape)
        compare_values(draw, name, value, theirs["values"][name], tally)
    alike = [n for n, x in values.items() if x.shape == theirs["values"][n].shape]
    for by, answered in theirs["moved"].items():
        for name in alike:
            compare_slopes(
                draw, (name, by), slopes[by][name], theirs["slopes"].get(by, {}).get(name),
                theirs["values"][name], [at[name] for at in answered], tally,
            )  # fmt: skip


def compare_values(draw: Draw, name: str, mine: Tensor, theirs: Tensor, tally: Tally) -> None:
    """Every value of ours is the peer's; where the peer has none, ours may be anything."""
    if not draw.inputs:
        mine, theirs = mine[None], theirs[None]
    if mine.shape != theirs.shape:
        tally.found.append(f"{draw.name}: {name} {tuple(mine.shape)}, peer {tuple(theirs.shape)}")
        return
    known = theirs.isfinite()
    tally.counts["values compared"] += int(known.sum())
    tally.counts["values that the peer has not"] += int((~known).sum())
    told = difference(torch.where(known, mine, 0.0), torch.where(known, theirs, 0.0))
    if told is not None:
        tally.found.append(f"{draw.name}: {name} {told}")


def compare_slopes(
    draw: Draw, pair: tuple[str, str], mine: Tensor, theirs: Tensor | None, value: Tensor,
    moved: Sequence[Tensor], tally: Tally,
) -> None:  # fmt: skip
    """A slope of ours is the peer's, or else the difference of the peer's values."""
    steps = torch.tensor([STEP, -STEP, STEP / 4, -STEP / 4]).double()
    sides = torch.stack([(at - value) / step for at, step in zip(moved, steps, strict=True)])
    size = value.abs().nan_to_num(posinf=0.0).max() + sides[2:].abs().nan_to_num(posinf=0.0).amax(0)
    known = sides.isfinite().all(0) & value.isfinite()
    # where a shorter step says otherwise there is a jump, or next to one: no slope
    known &= ((sides[:2] - sides[2:]).abs() <= 1e-2 * sides.abs().amax(0) + CLOSE * size).all(0)
    # on a kink, what lies between the slopes to its sides is a slope
    low, high = sides.amin(0) - CLOSE * size, sides.amax(0) + CLOSE * size
    differenced = (mine >= low) & (mine <= high)
    agrees = torch.zeros_like(known)
    if theirs is not None and theirs.shape == mine.shape:  # a predictor's is of another
        scale = theirs.abs().nan_to_num(posinf=0.0).amax() + 1e-300
        agrees = (mine - theirs).abs() <= 1e-10 * (theirs.abs() + scale)
        tally.counts["slopes compared with the peer's"] += int((agrees & known).sum())
        own = (theirs >= low) & (theirs <= high)
        if (known & differenced & ~own)[: draw.random].any():
            tally.zero.add(f"{draw.type} {pair[0]}:{pair[1]}")
    tally.counts["slopes compared with differences of the peer's values"] += int(
        (~agrees & known).sum()
    )
    bad = known & ~agrees & ~differenced
    if bad.any():
        place = tuple(bad.nonzero()[0].tolist())
        peer = "nothing" if theirs is None else f"{theirs[place].item()!r}"
        around = [f"{s[place].item():.9g}" for s in sides]
        tally.found.append(
            f"{draw.name}: {pair[0]}:{pair[1]} {mine[place].item()!r} at {place}; the peer says"
            f" {peer}, differences of its values {', '.join(around)}"
        )


def ask(python: Path, draws: Sequence[Draw]) -> list[dict[str, Any]]:
    """The peer's answers, from one process for all."""
    with tempfile.TemporaryDirectory() as folder:
        questions, answers = Path(folder) / "questions.pt", Path(folder) / "answers.pt"
        torch.save([draw.question for draw in draws], questions)
        script = Path(__file__).with_name("answers.py")
        subprocess.run([python, script, questions, answers], check=True)
        return torch.load(answers)


def all_draws(types: Sequence[str], seeds: Sequence[int], tally: Tally) -> Iterator[Draw]:
    """The draws of all types that are here; a file that we refuse is a difference."""
    load()
    for name, seed in itertools.product(types, seeds):
        if name in CATALOG:
            yield from draws_of(CATALOG[name], seed)
        elif name in ELSEWHERE["Models"]:
            for small in MODELS.get(name, ()):
                try:
                    yield draw_small(name, small, seed)
                except IngotError as error:
                    tally.found.append(f"{name}: refused, {error.problems[0].message}")


def report(tally: Tally, missing: Sequence[str]) -> str:
    """The counts and all differences, for a person."""
    lines = [f"{len(tally.types)} types"]
    lines += [f"{count} {what}" for what, count in tally.counts.items()]
    lines += [f"{len(tally.zero)} slopes of the peer's that are not those of its values:"]
    lines += [f"  {each}" for each in sorted(tally.zero)]
    lines += [f"{sum(map(len, tally.refused.values()))} draws that the peer refuses:"]
    for name, told in tally.refused.items():
        whole = "" if name in tally.types else ", all of its type"
        lines.append(f"  {len(told)}{whole}: {told[0]}")
    lines += [f"{len(missing)} types without a draw: {', '.join(missing)}"]
    lines += [f"{len(tally.found)} differences", *(f"  {each}" for each in tally.found)]
    return "\n".join(lines)


def draw_and_compare(python: Path, types: Sequence[str], seeds: Sequence[int]) -> Tally:
    """Draw, ask and compare."""
    tally = Tally()
    draws = list(all_draws(types, seeds, tally))
    for draw, theirs in zip(draws, ask(python, draws), strict=True):
        compare(draw, theirs, tally)
    return tally


def peer_types() -> list[str]:
    """Every model type of the peer that can be drawn."""
    types = json.loads(TABLE.read_text())["types"]
    return [t["type"] for t in types if t["section"] == "Models" and t["type"] not in NOT_DRAWN]


def main() -> None:
    """Tell whether all agrees."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer-python", type=Path, default=ROOT / ".peer" / "bin" / "python")
    parser.add_argument("--only", nargs="+", help="types to draw; all if not given")
    parser.add_argument("--seeds", type=int, default=2, help="draws of every choice of options")
    options = parser.parse_args()
    types = options.only or peer_types()
    tally = draw_and_compare(options.peer_python, types, range(options.seeds))
    missing = [name for name in types if name not in tally.types]
    print(report(tally, missing))
    sys.exit(1 if tally.found or missing else 0)


if __name__ == "__main__":
    main()
