"""Laws say the same on every executor, in either precision, for batches of any rank.

Many laws are one program, so that one compilation serves them all; the oracle is plain torch.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Literal

import pytest
import torch
from torch import Tensor
from torch.func import jvp, vjp

from ingot.execute import Executor, executor
from ingot.execute.interpret import Interpreter
from ingot.execute.kernel import Kernel
from ingot.program import Choices
from tests.laws.agreement import differences
from tests.laws.samples import Case, all_cases, corners
from tests.laws.together import (
    by_family,
    draw_bars,
    one_for_each_function,
    padded,
    with_slopes,
    with_values,
)

Name = Literal["interpret", "kernel"]
Precision = torch.dtype

CHUNK = 40
CASES = all_cases()
USUAL = one_for_each_function(CASES)
REST = [case for case in CASES if case not in USUAL]
LARGEST = max(len(x) for case in CASES for x in corners(case).values())
BATCH = LARGEST + 12 - LARGEST % 12  # folds into two and three axes
ON_AXES = [case for case in USUAL if any(n.axes for n in case.program().lines)]
MOST_OPERATIONS = 100  # of a law whose values, slopes and adjoints the plain suite writes out
SHORT = [case for case in USUAL if case.program().count() < MOST_OPERATIONS]
FAMILIES = by_family(USUAL)
LONG = [case for case in USUAL if case not in SHORT]
PARTS = {"usual": SHORT, "loops": ON_AXES, "rest": [*LONG, *REST]}
DOUBLE, SINGLE = (1e-10, 1e-15), (2e-4, 2e-5)
"""What results may differ by: a part of their point's largest entry, and of all points'."""
FEW_ULP = 1e-14  # torch sums in another order when a batch is longer


def chunks(*parts: str) -> list[object]:
    return [
        pytest.param(part, at, id=f"{part} {at // CHUNK}", marks=marks_of(part))
        for part in parts
        for at in range(0, len(PARTS[part]), CHUNK)
    ]


def marks_of(part: str) -> Sequence[pytest.MarkDecorator]:
    return (pytest.mark.exhaustive,) if part == "rest" else ()


every_chunk = pytest.mark.parametrize(("part", "first"), chunks("usual", "loops", "rest"))
usual_chunks = pytest.mark.parametrize(("part", "first"), chunks("usual"))
every_executor = pytest.mark.parametrize("name", ["interpret", "kernel"])


def cases_of(part: str, first: int) -> list[Case]:
    return PARTS[part][first : first + CHUNK]


@cache
def make(
    name: Name, part: str, first: int, dtype: Precision = torch.float64, *, sloped: bool = True
) -> Executor:
    """The executor of a chunk; the loops of programs with axes are kept, or written out."""
    cases = cases_of(part, first)
    program = with_slopes(cases, dtype) if sloped else with_values(cases, dtype)
    if name == "interpret":
        return Interpreter(program, dtype=dtype)
    return Kernel(program, dtype=dtype, choices=Choices(0 if part == "loops" else 10**6))


def points(case: Case, place: str, *, sloped: bool) -> dict[str, Tensor]:
    """Inputs, directions and adjoints of outputs, all cases in batches of one size."""
    inputs = padded(corners(case), BATCH) if place == "at corners" else case.draw(3, BATCH)
    if not sloped:
        return inputs
    along = {f"d.{n}": x for n, x in case.draw(4, BATCH).items()}
    return {**inputs, **along, **draw_bars(case, BATCH)}


def given(cases: Sequence[Case], place: str, *, sloped: bool = True) -> dict[str, Tensor]:
    return {f"{c.name}/{n}": x for c in cases for n, x in points(c, place, sloped=sloped).items()}


def plain(case: Case, at: Mapping[str, Tensor], *, sloped: bool) -> dict[str, Tensor]:
    """Values, and slopes and adjoints, by torch, of the law's own function."""
    inputs = {n: at[n].double() for n in case.slots}
    if not inputs:
        return {n: x.expand(BATCH, *x.shape) for n, x in case.plain({}).items()}
    if not sloped:
        return case.plain(inputs)
    along = {n: at[f"d.{n}"].double() for n in inputs}
    values, slopes = jvp(case.plain, (inputs,), (along,))
    found = {**values, **{f"d.{n}": x for n, x in slopes.items()}}
    _, pull = vjp(case.plain, inputs)
    adjoints = pull({n: at[f"a.{n}"].double() for n in values})[0]
    return {**found, **{f"a.{n}": x for n, x in adjoints.items()}}


def of(case: Case, results: Mapping[str, Tensor]) -> dict[str, Tensor]:
    start = f"{case.name}/"
    return {n.removeprefix(start): x for n, x in results.items() if n.startswith(start)}


def disagreements(
    cases: Sequence[Case], executor: Executor, inputs: Mapping[str, Tensor],
    allowed: tuple[float, float], *, sloped: bool = True,
) -> dict[str, list[str]]:  # fmt: skip
    """By case, where an executor does not say what plain torch says."""
    results, _ = executor(inputs)
    found = {}
    for case in cases:
        mine = {n: x.double() for n, x in of(case, results).items()}
        theirs = plain(case, of(case, inputs), sloped=sloped)
        found[case.name] = differences(mine, theirs, *allowed)
    return {name: told for name, told in found.items() if told}


@every_chunk
@pytest.mark.parametrize("place", ["at random", "at corners"])
def test_native_values_slopes_and_adjoints_agree_with_plain_torch(
    part: str, first: int, place: str
) -> None:
    cases = cases_of(part, first)
    assert disagreements(cases, make("kernel", part, first), given(cases, place), DOUBLE) == {}


@every_chunk
def test_native_and_interpreted_programs_agree_to_a_few_ulp(part: str, first: int) -> None:
    inputs = given(cases_of(part, first), "at corners")
    mine, _ = make("kernel", part, first)(inputs)
    theirs, _ = make("interpret", part, first)(inputs)
    adjoints = {n: x for n, x in theirs.items() if "/a." in n}
    rest = {n: x for n, x in theirs.items() if n not in adjoints}
    assert differences(mine, rest, 1e-13) == []
    assert differences(mine, adjoints, 1e-12) == []  # sums of many terms, in another order


in_single_precision = pytest.mark.parametrize(
    ("name", "sloped"),
    [
        pytest.param("interpret", True, id="interpret"),
        pytest.param("kernel", False, id="kernel"),
        pytest.param("kernel", True, id="kernel with slopes", marks=pytest.mark.exhaustive),
    ],
)


@usual_chunks
@in_single_precision
def test_single_precision_is_double_precision_with_fewer_digits(
    name: Name, sloped: bool, part: str, first: int
) -> None:
    cases = cases_of(part, first)
    executor = make(name, part, first, torch.float32, sloped=sloped)
    inputs = {n: x.float() for n, x in given(cases, "at random", sloped=sloped).items()}
    assert disagreements(cases, executor, inputs, SINGLE, sloped=sloped) == {}
    results, _ = executor(inputs)
    assert [n for n, x in results.items() if x.dtype != torch.float32] == []


@every_chunk
def test_native_batch_is_a_loop_bit_for_bit(part: str, first: int) -> None:
    kernel, inputs = make("kernel", part, first), given(cases_of(part, first), "at corners")
    whole, _ = kernel(inputs)
    for piece in (slice(0, 1), slice(5, 6), slice(3, 12), slice(BATCH - 1, BATCH)):
        alone, _ = kernel({n: x[piece] for n, x in inputs.items()})
        assert [n for n, x in whole.items() if not same_bits(alone[n], x[piece])] == []


@usual_chunks
def test_interpreted_batch_is_a_loop_to_a_few_ulp(part: str, first: int) -> None:
    executor = make("interpret", part, first)
    inputs = given(cases_of(part, first), "at corners")
    whole, _ = executor(inputs)
    for piece in (slice(0, 1), slice(5, 6), slice(3, 12), slice(BATCH - 1, BATCH)):
        alone, _ = executor({n: x[piece] for n, x in inputs.items()})
        assert differences(alone, {n: x[piece] for n, x in whole.items()}, FEW_ULP) == []


@usual_chunks
@every_executor
def test_a_batch_of_any_rank_is_a_flat_batch(name: Name, part: str, first: int) -> None:
    executor, inputs = make(name, part, first), given(cases_of(part, first), "at random")
    flat, _ = executor(inputs)
    for lead in ((2, BATCH // 2), (3, 2, BATCH // 6)):
        folded, _ = executor({n: x.reshape(*lead, *x.shape[1:]) for n, x in inputs.items()})
        assert [n for n, x in flat.items() if folded[n].shape != (*lead, *x.shape[1:])] == []
        assert [n for n, x in flat.items() if not same_bits(folded[n].reshape(x.shape), x)] == []
    point, _ = executor({n: x[0] for n, x in inputs.items()})
    none, _ = executor({n: x[:0] for n, x in inputs.items()})
    assert (
        differences(
            {n: x[None] for n, x in point.items()}, {n: x[:1] for n, x in flat.items()}, FEW_ULP
        )
        == []
    )
    assert [n for n, x in flat.items() if none[n].shape != (0, *x.shape[1:])] == []


@usual_chunks
@every_executor
def test_inputs_that_are_not_batched_are_spread(name: Name, part: str, first: int) -> None:
    cases = cases_of(part, first)
    executor, inputs = make(name, part, first), given(cases, "at random")
    for place in (0, 1):
        fixed = {f"{case.name}/{n}" for case in cases for n in list(case.slots)[place::2]}
        one, _ = executor({n: x[0] if n in fixed else x for n, x in inputs.items()})
        same, _ = executor({
            n: x[:1].expand_as(x) if n in fixed else x for n, x in inputs.items()
        })  # fmt: skip
        spread = {n: x.expand_as(same[n]) for n, x in one.items()}
        assert differences(spread, same, FEW_ULP) == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("family", sorted(FAMILIES))
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["double", "single"])
def test_graphs_agree_with_plain_torch(family: str, dtype: Precision) -> None:
    cases = FAMILIES[family]
    run = executor(with_slopes(cases, dtype), "inductor", dtype)
    allowed = SINGLE if dtype == torch.float32 else DOUBLE
    inputs = {n: x.to(dtype) for n, x in given(cases, "at random").items()}
    assert disagreements(cases, run, inputs, allowed) == {}


def same_bits(one: Tensor, other: Tensor) -> bool:
    return torch.equal(one.contiguous().view(torch.int64), other.contiguous().view(torch.int64))
