"""Every law, traced and run by the interpreter, says what its own function says as plain torch."""

from typing import Literal, get_args, get_origin

import pytest

from ingot.catalog import Declared, load
from ingot.options import plain
from tests.laws.agreement import (
    blocks,
    differences,
    interpret,
    plain_adjoints,
    plain_blocks,
)
from tests.laws.samples import Case, all_cases

CASES = all_cases()
every_case = pytest.mark.parametrize("case", CASES, ids=str)


@every_case
def test_values_jacobians_and_adjoints_agree_with_plain_torch(case: Case) -> None:
    given, results = interpret(case)
    inputs = {name: given[name] for name in case.slots}
    slopes = plain_blocks(case, inputs)
    theirs = {**case.plain(inputs), **slopes, **plain_adjoints(slopes, given)}
    assert not differences({**results, **blocks(case, results)}, theirs)


def test_every_law_has_a_case() -> None:
    assert {case.declared.name for case in CASES} == set(load())


@pytest.mark.parametrize("declared", load().values(), ids=lambda d: d.name)
def test_every_word_of_an_option_has_a_case(declared: Declared) -> None:
    own = [case for case in CASES if case.declared is declared]
    for option in declared.options:
        if get_origin(plain(option.type)) is Literal:
            drawn = {case.options[option.argument] for case in own}
            assert drawn == set(get_args(plain(option.type))), option.argument
