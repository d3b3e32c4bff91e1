"""Laws as native code say what plain torch says; a point's bits do not depend on its batch."""

from collections.abc import Mapping, Sequence
from functools import cache

import pytest
import torch
from torch import Tensor
from torch.func import jvp

from ingot.execute.interpret import Interpreter
from ingot.execute.kernel import Kernel
from ingot.program import Choices
from tests.laws.agreement import differences
from tests.laws.samples import Case, all_cases, corners
from tests.laws.together import one_for_each_function, padded, with_slopes

CHUNK = 40
CASES = all_cases()
USUAL = one_for_each_function(CASES)
REST = [case for case in CASES if case not in USUAL]
BATCH = 1 + max(len(x) for case in CASES for x in corners(case).values())
ON_AXES = [case for case in USUAL if any(n.axes for n in case.program().lines)]


def chunks(cases: Sequence[Case], what: str) -> list[object]:
    mark = pytest.mark.exhaustive if what == "rest" else ()
    parts = range(0, len(cases), CHUNK)
    return [pytest.param(what, at, id=f"{what} {at // CHUNK}", marks=mark) for at in parts]


every_chunk = pytest.mark.parametrize(
    ("what", "first"), [*chunks(USUAL, "usual"), *chunks(ON_AXES, "loops"), *chunks(REST, "rest")]
)


@cache
def compiled(what: str, first: int) -> tuple[list[Case], Kernel]:
    cases = {"usual": USUAL, "loops": ON_AXES, "rest": REST}[what][first : first + CHUNK]
    limit = 0 if what == "loops" else 10**6
    return cases, Kernel(with_slopes(cases), choices=Choices(unroll_limit=limit))


def points(case: Case, place: str) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Inputs and directions, all cases in batches of one size."""
    inputs = case.draw(3, BATCH)
    if place == "at corners":
        inputs = padded(corners(case), BATCH)
    return inputs, case.draw(4, BATCH)


def given(cases: Sequence[Case], place: str) -> dict[str, Tensor]:
    found = {}
    for case in cases:
        inputs, along = points(case, place)
        found.update({f"{case.name}/{n}": x for n, x in inputs.items()})
        found.update({f"{case.name}/d.{n}": x for n, x in along.items()})
    return found


def plain(case: Case, place: str) -> dict[str, Tensor]:
    inputs, along = points(case, place)
    if not inputs:
        return {n: x.expand(BATCH, *x.shape) for n, x in case.plain({}).items()}
    values, slopes = jvp(case.plain, (inputs,), (along,))
    return {**values, **{f"d.{n}": x for n, x in slopes.items()}}


def of(case: Case, results: Mapping[str, Tensor]) -> dict[str, Tensor]:
    start = f"{case.name}/"
    return {n.removeprefix(start): x for n, x in results.items() if n.startswith(start)}


@every_chunk
@pytest.mark.parametrize("place", ["at random", "at corners"])
def test_native_values_and_slopes_agree_with_plain_torch(what: str, first: int, place: str) -> None:
    cases, kernel = compiled(what, first)
    results, _ = kernel(given(cases, place))
    found = {case.name: differences(of(case, results), plain(case, place)) for case in cases}
    assert {name: told for name, told in found.items() if told} == {}


@every_chunk
def test_native_and_interpreted_programs_agree_to_a_few_ulp(what: str, first: int) -> None:
    cases, kernel = compiled(what, first)
    inputs = given(cases, "at corners")
    ours, _ = kernel(inputs)
    theirs, _ = Interpreter(with_slopes(cases))(inputs)
    assert differences(ours, theirs, 1e-13) == []


@every_chunk
def test_native_batch_is_a_loop_bit_for_bit(what: str, first: int) -> None:
    cases, kernel = compiled(what, first)
    inputs = given(cases, "at corners")
    whole, _ = kernel(inputs)
    for part in (slice(0, 1), slice(5, 6), slice(3, 12), slice(BATCH - 1, BATCH)):
        alone, _ = kernel({name: x[part] for name, x in inputs.items()})
        for name, x in whole.items():
            assert torch.equal(bits(alone[name]), bits(x[part])), name


def bits(x: Tensor) -> Tensor:
    return x.contiguous().view(torch.int64)
