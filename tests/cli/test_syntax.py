"""`ingot syntax`: the list of types, one of them, as text and as JSON."""

import importlib
import json
import re
from collections.abc import Iterable

import pytest

from ingot.catalog import load
from ingot.catalog.schema import read_docstring
from ingot.cli.main import status
from ingot.cli.syntax import all_types
from ingot.hit import Block, read_text
from ingot.model import ELSEWHERE, Factory
from ingot.options import Newton
from ingot.program import combinators
from ingot.program.solvers import SOLVERS, read_newton

Captured = pytest.CaptureFixture[str]


def test_all_types_are_listed_by_section_and_family(capsys: Captured) -> None:
    assert status(["syntax"]) == 0
    said = capsys.readouterr().out
    assert "[Models] porous flow: 7\n  AdvectiveStress, BrooksCoreyCapillaryPressure," in said
    elsewhere = [name for known in ELSEWHERE.values() for name in known]
    every = [*load(), *elsewhere, *SOLVERS, "NonlinearSystem", "Python", "FFTGradient"]
    assert {name for name in every if name not in said.replace(",", "").split()} == set()


def test_a_type_is_told_with_formula_options_and_example(capsys: Captured) -> None:
    assert status(["syntax", "VanGenuchtenCapillaryPressure"]) == 0
    said = capsys.readouterr().out
    assert "$P = a (S^{-1/m} - 1)^{1-m}$" in said
    table = said.split("[Models]\n")[0].splitlines()
    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in table if line}
    assert rows["transition_saturation"] == "number from 0 to 1 0 where it starts"
    assert rows["m"].startswith("Scalar: number, tensor, model or variable required")
    assert "  [capillary_pressure]\n    type = VanGenuchtenCapillaryPressure\n" in said


def test_json_is_the_same_for_one_type_and_for_all(capsys: Captured) -> None:
    assert status(["syntax", "ResolvedShear", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["outputs"]["resolved_shears"]["axes"] == ["slip"]
    assert told["options"]["crystal_geometry"]["type"] == "CubicCrystal"
    assert status(["syntax", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ResolvedShear"] == told


def test_an_unknown_type_is_an_error_with_the_nearest(capsys: Captured) -> None:
    assert status(["syntax", "YieldFunctoin"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "did you mean 'YieldFunction'?" in said.err
    assert status(["syntax", "qqq"]) == 1
    assert "`ingot syntax` lists all types" in capsys.readouterr().err


def test_types_are_told_once() -> None:
    names = [(told["section"], told["type"]) for told in all_types()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("kind", ["Newton", "NewtonWithLineSearch"])
def test_defaults_of_a_solver_are_those_of_an_empty_block(kind: str) -> None:
    told = next(each for each in all_types() if each["type"] == kind)["options"]
    text = f"[Solvers]\n[newton]\ntype = {kind}\n[]\n[]\n[Models]\n[m]\nsolver = newton\n[]\n[]"
    tree = read_text(text)
    rules = read_newton(Factory(tree), tree.require("Models", "m").require("solver"))
    for name, value in rules.rules().items():
        option = "linesearch_type" if name == "linesearch" else name
        if option in told:
            assert told[option]["default"] == value
    assert isinstance(rules, Newton)


class Taken(Exception):
    """The keys that a block may hold."""


def take(block: Block, known: Iterable[str]) -> None:
    raise Taken(*known)


@pytest.mark.parametrize("kind", ELSEWHERE["Models"])
def test_every_option_of_a_combinator_has_its_sentence(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module(ELSEWHERE["Models"][kind])
    monkeypatch.setattr(combinators, "check_fields", take)
    monkeypatch.setattr(module, "check_fields", take, raising=False)
    tree = read_text(f"[Models]\n[m]\ntype = {kind}\ndim = 0\n[]\n[]")  # one reads it first
    with pytest.raises(Taken) as taken:
        getattr(module, kind).build(tree.require("Models", "m"), Factory(tree))
    assert sorted(read_docstring(getattr(module, kind))[1]) == sorted(taken.value.args)


@pytest.mark.parametrize("kind", ELSEWHERE["Drivers"])
def test_every_option_of_a_driver_has_its_sentence(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module(ELSEWHERE["Drivers"][kind])
    monkeypatch.setattr(module, "unknown_fields", take)
    tree = read_text(f"[Drivers]\n[d]\ntype = {kind}\n[]\n[]")
    with pytest.raises(Taken) as taken:
        getattr(module, kind).build(tree.require("Drivers", "d"), Factory(tree))
    known = set(taken.value.args) - {"type"}
    names = [n.replace("<kind>", r"\w+") for n in read_docstring(getattr(module, kind))[1]]
    assert [n for n in known if not any(re.fullmatch(name, n) for name in names)] == []
    assert [name for name in names if not any(re.fullmatch(name, n) for n in known)] == []
