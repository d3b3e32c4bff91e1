"""Options have ranges, and Newton's rules are declared once for files, metadata, Python and C."""

import ctypes
import math
import random
from typing import Any

import msgspec
import pytest

from ingot import IngotError
from ingot.execute.abi import Knobs, knobs, rules_struct
from ingot.options import INT32, Newton, allowed, fits, knobs_of

WRONG: list[dict[str, Any]] = [
    {"max_its": -3}, {"max_its": 0}, {"max_its": 2**31}, {"max_its": 3.0}, {"max_its": True},
    {"abs_tol": math.nan}, {"abs_tol": -1e-9}, {"rel_tol": math.inf}, {"rel_tol": "1e-8"},
    {"linesearch_cutback": 0}, {"linesearch_cutback": 1.0}, {"linesearch_stopping_criteria": 1.0},
    {"max_linesearch_iterations": -1}, {"stop": "never"}, {"linesearch": None},
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_rules_out_of_range_are_refused_from_python(wrong: dict[str, Any]) -> None:
    ((name, value),) = wrong.items()
    for make in (lambda: Newton(**wrong), lambda: msgspec.structs.replace(Newton(), **wrong)):
        with pytest.raises(IngotError) as refused:
            make()
        kind = next(k.kind for k in knobs_of(Newton) if k.name == name)
        assert f"'{name}' should be {allowed(kind)}, but is {value!r}" in str(refused.value)


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_rules_out_of_range_are_refused_from_json(wrong: dict[str, Any]) -> None:
    text = msgspec.json.encode({**Newton().rules(), **wrong})
    with pytest.raises((msgspec.ValidationError, IngotError)):
        msgspec.json.decode(text, type=Newton)


def test_every_rule_says_its_range_and_has_a_default_within() -> None:
    for knob in knobs_of(Newton):
        assert knob.sentence and fits(knob.default, knob.kind)


def test_c_holds_every_rule_in_the_order_declared() -> None:
    rows = [row.split("//")[0].strip(" ;") for row in rules_struct().splitlines()[2:-1]]
    names = {ctypes.c_double: "double", ctypes.c_int32: "int32_t"}
    assert rows == [f"{names[held]} {name}" for name, held in Knobs._fields_]  # type: ignore[reportUnknownMemberType]
    draw = random.Random(1)
    for _ in range(50):
        rules = Newton(
            abs_tol=draw.random(), rel_tol=draw.random(), max_its=draw.randint(1, INT32),
            stop=draw.choice(["point", "batch"]), linesearch=draw.choice(["NONE", "STRONG_WOLFE"]),
            max_linesearch_iterations=draw.randint(0, INT32), linesearch_cutback=1 + draw.random(),
            linesearch_stopping_criteria=draw.random() / 2,
        )  # fmt: skip
        row = knobs([rules])[0]
        for knob in knobs_of(Newton):
            assert getattr(row, knob.name) == knob.c_value(getattr(rules, knob.name))
