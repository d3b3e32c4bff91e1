"""A call with wrong arguments says which are right, wherever in the public surface it is made."""

# mistakes are meant; an editor tells most of them before
# pyright: reportCallIssue=false, reportArgumentType=false, reportAttributeAccessIssue=false

import importlib
import inspect
import random
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import ingot
from ingot import IngotError, Model, laws
from ingot.catalog import load, model
from ingot.execute import Transient
from ingot.package.target import Target

REFUSALS = {"IngotError", "IngotWarning", "Problem"}
"""What refusals are made of: whoever makes one reads Python's own."""


def list_calls() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every function and class that users are shown, and every public method of theirs."""
    shown = {f"ingot.{name}": getattr(ingot, name) for name in ingot.__all__}
    shown |= {f"hosts.{name}": getattr(ingot.hosts, name) for name in ingot.hosts.__all__}
    for room, names in {
        "regions": "Compiled compile load noinline",
        "train": "compare_partitions joint load save",
        "fields": "build compute postprocessor prepared run run_file",
    }.items():
        module = importlib.import_module(f"ingot.{room}")
        shown |= {f"{room}.{name}": getattr(module, name) for name in names.split()}
    shown |= {"Target": Target, "Transient": Transient, "@model": model, "laws.of": laws.of}
    for title, called in shown.items():
        if not callable(called) or title.partition(".")[2] in REFUSALS:
            continue
        yield title, called
        if isinstance(called, type):
            for name, method in vars(called).items():
                is_method = isinstance(method, FunctionType | staticmethod | classmethod)
                if is_method and not name.startswith("_"):
                    yield f"{title}.{name}", getattr(called, name)


CALLS = dict(list_calls())


def misspell(name: str, draw: random.Random) -> str:
    """A name with a letter doubled, dropped or swapped with the next."""
    at = draw.randrange(len(name) - 1) if len(name) > 1 else 0
    swapped = name[:at] + name[at : at + 2][::-1] + name[at + 2 :]
    return draw.choice([name[: at + 1] + name[at:], swapped])


@pytest.mark.parametrize("title", CALLS)
def test_misspelt_argument_is_told_with_the_right_one(title: str) -> None:
    called = CALLS[title]
    slots = [*inspect.signature(called).parameters.values()]
    owner = [object()] if slots and slots[0].name == "self" else []
    names = [p.name for p in slots[len(owner) :] if not str(p).startswith("*")]
    draw = random.Random(title)
    for name in names:
        wrong = misspell(name, draw)
        if wrong in names or len(name) < 3 or title == "ingot.transient":  # see below
            continue
        with pytest.raises(IngotError) as caught:
            called(*owner, **{wrong: None})
        told = [p.fix for p in caught.value.problems if f"'{wrong}'" in p.message]
        assert told == [f"did you mean '{name}'?"], str(caught.value)
        assert caught.value.problems[0].span is not None
    if all(p.kind is not p.VAR_KEYWORD for p in slots):
        with pytest.raises(IngotError, match=r"has no argument 'quite_another'|one dictionary"):
            called(*owner, quite_another=None)


@pytest.mark.parametrize("title", CALLS)
def test_arguments_that_are_missing_or_too_many_are_told(title: str) -> None:
    called = CALLS[title]
    slots = [*inspect.signature(called).parameters.values()]
    owner = [object()] if slots and slots[0].name == "self" else []
    needed = [p for p in slots[len(owner) :] if p.default is p.empty and not str(p).startswith("*")]
    if needed:
        with pytest.raises(IngotError) as caught:
            called(*owner)
        assert all(p.name in str(caught.value) for p in needed)
    if all(p.kind is not p.VAR_POSITIONAL for p in slots):
        with pytest.raises(IngotError, match="by place"):
            called(*owner, *[None] * 40)


def hooke() -> Model:
    types = ["YOUNGS_MODULUS", "POISSONS_RATIO"]
    return laws.LinearIsotropicElasticity(coefficients=[1e5, 0.3], coefficient_types=types)


def test_every_option_of_every_law_is_told_where_it_is_misspelt() -> None:
    draw = random.Random(1)
    for kind in load():
        maker = getattr(laws, kind)
        names = [*inspect.signature(maker).parameters]
        for name in names:
            wrong = misspell(name, draw)
            if wrong in names or wrong.endswith("_") or name.endswith("_") or len(name) < 3:
                continue
            with pytest.raises(IngotError) as caught:
                maker(**{wrong: 1.0})
            (problem,) = caught.value.problems
            assert problem.code == "unknown-option"
            assert problem.fix is not None and problem.fix.startswith("did you mean")
        with pytest.raises(IngotError, match="by place"):
            maker(1.0)


@pytest.mark.parametrize("make", [hooke, lambda: ingot.compile(hooke())], ids=["live", "compiled"])
def test_inputs_by_keyword_are_told_to_be_one_dictionary(make: Callable[[], Any]) -> None:
    made = make()
    calls = {
        "": made,
        **{f".{n}": getattr(made, n) for n in ("forward", "jacobian", "jvp", "param_vjp")},
    }
    for name, call in calls.items():
        for named in ({"strain": np.zeros(6)}, {}):
            with pytest.raises(IngotError, match="called with one dictionary") as caught:
                call(**named)
            word = type(made).__name__.lower() + name.removesuffix(".forward")
            fix = caught.value.problems[0].fix or ""
            assert fix.startswith(f'write {word}({{"strain": ...}}')


def test_misspelt_argument_beside_inputs_is_told_with_the_right_one() -> None:
    given = {"time": np.linspace(0.0, 1.0, 3), "strain": np.zeros((3, 6))}
    for name in (n for n in inspect.signature(ingot.transient).parameters if n != "named"):
        wrong = misspell(name, random.Random(name))
        with pytest.raises(IngotError) as caught:
            ingot.transient(
                *([] if name == "model" else [hooke()]),
                **{n: x for n, x in given.items() if n != name},
                **{wrong: None},
            )
        told = [p.fix for p in caught.value.problems if f"'{wrong}'" in p.message]
        assert told == [f"did you mean '{name}'?"], str(caught.value)


def test_input_that_is_called_as_an_argument_is_told_where_to_stand() -> None:
    law = laws.ScalarLinearCombination(from_=["model"], to="b")
    time = np.linspace(0.0, 1.0, 3)
    with pytest.raises(IngotError, match="given by its place and by its name") as caught:
        ingot.transient(law, time=time, model=time)
    assert caught.value.problems[0].fix == 'give inputs={"model": ...}'
    result = ingot.transient(law, time=time, inputs={"model": time}).run("interpret")
    assert result["b"].to_numpy()[-1] == 1.0


WRONG_KINDS: dict[str, tuple[Callable[[], Any], str]] = {
    "diagnose": (lambda: ingot.diagnose(hooke()), "'driver' of diagnose should be a Transient"),
    "build": (lambda: ingot.build("a.i", "b"), "'tree' of build should be a Tree, not 'a.i'"),
    "build_driver": (lambda: ingot.build_driver("a.i", "b"), "'source' of build_driver should be"),
    "compile_model": (lambda: ingot.compile_model(hooke(), "b", Target()), "should be a Tree or"),
    "executor": (lambda: ingot.executor(hooke()), "'program' of executor should be a Program"),
    "prepared": (lambda: ingot.prepared("hooke"), "'model' of prepared should be a Model"),
    "read": (lambda: ingot.read(3), "'path' of read should be a Path or a str, not 3"),
    "read_text": (lambda: ingot.read_text(3), "'text' of read_text should be a str, not 3"),
    "Factory": (lambda: ingot.Factory("a.i"), "'tree' of Factory should be a Tree, not 'a.i'"),
}


@pytest.mark.parametrize("name", WRONG_KINDS)
def test_argument_of_another_class_is_told_with_where_one_comes_from(name: str) -> None:
    call, told = WRONG_KINDS[name]
    with pytest.raises(IngotError, match=told) as caught:
        call()
    assert caught.value.problems[0].fix


def test_errors_of_a_body_are_its_own() -> None:
    with pytest.raises(TypeError, match="unsupported operand"):
        ingot.keywords.check_keywords(lambda x: x + None)(1)


def test_misspelt_name_of_the_package_is_told_with_the_right_one() -> None:
    with pytest.raises(AttributeError, match="did you mean 'transient'"):
        ingot.trasient  # noqa: B018
    assert not hasattr(ingot, "__wrapped__")
