"""Options have ranges, and Newton's rules are declared once for files, metadata, Python and C."""

import ctypes
import math
import random
from typing import Any

import msgspec
import pytest
import torch

from ingot import IngotError
from ingot.catalog import CATALOG, load
from ingot.codegen.abi import Knobs, pack_knobs, write_rules_struct
from ingot.execute.interpret import Interpreter
from ingot.hit import read_text
from ingot.model import build
from ingot.options import INT32, Newton, allowed, fits, knobs_of, plain
from ingot.program import prepared
from ingot.program.solvers import SOLVERS
from tests.program.test_solvers import FILE, INPUTS

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
    rows = [row.split("//")[0].strip(" ;") for row in write_rules_struct().splitlines()[2:-1]]
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
        row = pack_knobs([rules])[0]
        for knob in knobs_of(Newton):
            assert getattr(row, knob.name) == knob.c_value(getattr(rules, knob.name))


HOSTILE = (
    "nan", "inf", "-inf", "-1", "-3", "0", "-0.0", "3.7", "1e3", "1e30", "1e999", "99999999999",
    "2147483648", "true", "yes", "banana", "", "1 2", "0x10", "1_000", "1e-320", "None",
)  # fmt: skip


def words(draw: random.Random, count: int) -> list[str]:
    """Hostile words, and random ones of digits, signs and letters."""
    letters = "0123456789+-.eEnaif ,'"
    return [
        draw.choice(HOSTILE)
        if draw.random() < 0.5
        else "".join(draw.choice(letters) for _ in range(draw.randint(1, 6))).replace("'", "")
        for _ in range(count)
    ]


SOLVER_OPTIONS = [(kind, name) for kind, options in SOLVERS.items() for name in options]


@pytest.mark.parametrize(("kind", "name"), SOLVER_OPTIONS, ids="-".join)
def test_every_option_of_every_solver_is_refused_at_its_line_or_in_range(
    kind: str, name: str
) -> None:
    for word in words(random.Random(f"{kind} {name}"), 60):
        block = read_text(f"[Solvers]\n[one]\n{name} = '{word}'\n[]\n[]", "one.i").blocks[0]
        field = block.blocks[0].require(name)
        try:
            value = field.option(SOLVERS[kind][name])
        except IngotError as error:
            assert {p.span.line for p in error.problems if p.span} == {3}
        else:
            assert fits(value, SOLVERS[kind][name])


def declared_fields() -> list[tuple[str, Any]]:
    """Every option of every type of a simulation's file."""
    from ingot.fields.declare import DeclaredCompute, options_of
    from ingot.fields.schema import sections

    return [
        (f"{section}/{name}/{option.name}", option)
        for section, kinds in sections().items()
        for name, each in kinds.items()
        for option in (each.options if isinstance(each, DeclaredCompute) else options_of(each))
    ]


@pytest.mark.parametrize(("where", "option"), declared_fields(), ids=lambda x: str(x)[:60])
def test_every_option_of_a_simulation_is_refused_at_its_line_or_in_range(
    where: str, option: Any
) -> None:
    from ingot.fields.blocks.options import Reader

    numeric = plain(option.type) in (int, float) and "constant" not in str(option.type)
    for word in words(random.Random(where), 40):
        tree = read_text(f"[one]\n{option.name} = '{word}'\n[]", "one.i")
        reader = Reader(tree)
        values = reader.values(tree.blocks[0], [option], ())
        if values is None:
            assert {p.span.line for p in reader.problems if p.span} == {2}
        elif numeric:
            assert fits(values[option.name], option.type)


def test_every_option_of_a_law_is_refused_at_its_line_or_in_range() -> None:
    load()
    for law in CATALOG.values():
        for option in law.options:
            if option.data is not None:
                continue
            for word in words(random.Random(f"{law.name} {option.argument}"), 20):
                tree = read_text(f"[one]\n{option.argument} = '{word}'\n[]", "one.i")
                try:
                    value = tree.blocks[0].require(option.argument).option(option.type)
                except IngotError as error:
                    assert {p.span.line for p in error.problems if p.span} == {2}
                else:
                    assert not isinstance(value, int | float) or fits(value, option.type)


@pytest.mark.parametrize("name", [k.option for k in knobs_of(Newton)])
def test_a_model_with_a_hostile_solver_is_refused_or_runs(name: str) -> None:
    inputs = {n: torch.tensor(x, dtype=torch.float64) for n, x in INPUTS.items()}
    for word in words(random.Random(name), 25):
        solver = "type = NewtonWithLineSearch\n" + ("" if name == "max_its" else "max_its = 9\n")
        text = FILE.format(linear="type = DenseLU", unknowns="a b", residuals="ra rb", more="",
                           structure="")  # fmt: skip
        text = text.replace("type = Newton\n", f"{solver}{name} = '{word}'\n")
        text = text.replace("    abs_tol = 1e-14\n    rel_tol = 1e-14\n", "")
        line = next(i for i, row in enumerate(text.splitlines(), 1) if row.startswith(f"{name} ="))
        try:
            program = prepared(build(read_text(text, "file.i"), "update"))
        except IngotError as error:
            assert [p.span.line for p in error.problems if p.span] == [line]
        else:
            results, (status,) = Interpreter(program)(inputs)
            assert bool(status.converged) == bool(results["a"].isfinite())
