"""Every law, traced and run by the interpreter, says what its own function says as plain torch."""

from typing import Literal, get_args, get_origin

import pytest
import torch
from torch.func import jvp

from ingot.catalog import Declared, load
from ingot.execute.interpret import Interpreter
from ingot.options import plain
from ingot.program import along_direction, verify
from tests.laws.agreement import blocks, differences, plain_blocks, with_blocks
from tests.laws.samples import Case, all_cases, corners

CASES = all_cases()
every_case = pytest.mark.parametrize("case", CASES, ids=str)
every_place = pytest.mark.parametrize("place", ["at random", "at corners"])


def at(case: Case, place: str) -> dict[str, torch.Tensor]:
    return corners(case) if place == "at corners" else case.draw(3, 5)


@every_case
@every_place
def test_values_and_jacobians_agree_with_plain_torch(case: Case, place: str) -> None:
    inputs = at(case, place)
    program = verify(with_blocks(case.program()))
    results, _ = Interpreter(program)(inputs)
    theirs = case.plain(inputs)
    slopes = plain_blocks(case, inputs)
    assert not differences({**results, **blocks(case, results)}, {**theirs, **slopes})


@pytest.mark.parametrize("case", [case for case in CASES if case.slots], ids=str)
def test_slope_along_a_direction_agrees_with_plain_torch(case: Case) -> None:
    inputs, along = case.draw(5, 4), case.draw(6, 4)
    results, _ = Interpreter(along_direction(case.program()))(
        {**inputs, **{f"d.{name}": x for name, x in along.items()}}
    )
    _, theirs = jvp(case.plain, (inputs,), (along,))
    assert not differences(results, {f"d.{name}": x for name, x in theirs.items()})


def test_every_law_has_a_case() -> None:
    assert {case.declared.name for case in CASES} == set(load())


@pytest.mark.parametrize("declared", load().values(), ids=lambda d: d.name)
def test_every_word_of_an_option_has_a_case(declared: Declared) -> None:
    own = [case for case in CASES if case.declared is declared]
    for option in declared.options:
        if get_origin(plain(option.type)) is Literal:
            drawn = {case.options[option.argument] for case in own}
            assert drawn == set(get_args(plain(option.type))), option.argument
