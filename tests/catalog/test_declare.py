"""`@model`: what a function does not say about itself is told at its line, before it is used."""

import re
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest
import torch

from ingot.catalog import CATALOG, Fixed, Many, Parameter, load, model, named
from ingot.errors import IngotError
from ingot.types import SR2, Scalar

TENSOR, LIST, OTHER = torch.tensor(2.0), [1, 2], named("other")


@pytest.fixture(autouse=True)
def catalogue() -> Iterator[None]:
    """The catalogue as it was, afterwards."""
    load()
    before = dict(CATALOG)
    yield
    CATALOG.clear()
    CATALOG.update(before)


def no_return(x: Scalar):  # type: ignore[reportUnknownParameterType]
    return x


def returns_float(x: Scalar) -> float: ...
def returns_none(x: Scalar) -> None: ...
def returns_two(x: Scalar) -> tuple[Scalar, Scalar]: ...
def no_kind(x) -> Scalar: ...  # type: ignore[reportMissingParameterType]
def no_kind_of_option(x: Scalar, *, n) -> Scalar: ...  # type: ignore[reportMissingParameterType]
def float_input(x: float) -> Scalar: ...
def tensor_input(x: torch.Tensor) -> Scalar: ...
def any_number(*x: Scalar) -> Scalar: ...
def any_words(**x: Scalar) -> Scalar: ...
def input_with_default(x: Scalar = 0.0) -> Scalar: ...  # type: ignore[reportArgumentType]
def tensor_default(x: Scalar, *, q: Parameter[Scalar] = TENSOR) -> Scalar: ...
def list_default(x: Scalar, *, q: Parameter[Scalar] = LIST) -> Scalar: ...
def bool_default(x: Scalar, *, q: Fixed[Scalar] = True) -> Scalar: ...
def parameter_of_float(x: Scalar, *, q: Parameter[float]) -> Scalar: ...
def dict_option(x: Scalar, *, n: dict[str, int]) -> Scalar: ...
def list_option(x: Scalar, *, n: list) -> Scalar: ...  # type: ignore[reportMissingTypeArgument]
def wrong_default(x: Scalar, *, n: int = 1.5) -> Scalar: ...  # type: ignore[reportArgumentType]
def wrong_choice(x: Scalar, *, n: Literal["a", "b"] = "c") -> Scalar: ...  # type: ignore[reportArgumentType]
def double(out: Scalar) -> Scalar: ...
def double_option(x: Scalar, *, out: bool = False) -> Scalar: ...
def unknown_annotation(x: "Nowhere") -> Scalar: ...  # type: ignore[reportUndefinedVariable]  # noqa: F821


def generator(x: Scalar) -> Scalar:  # type: ignore[reportInvalidReturnType]
    yield x


WRONG: list[tuple[Callable[..., Any], str]] = [
    (no_return, "no_return has no kind of value after ->"),
    (returns_float, "returns_float is of type float, which is no kind of value"),
    (returns_none, "which is no kind of value"),
    (returns_two, "gives 1 names and returns 2 kinds"),
    (no_kind, "'x' of no_kind has no kind"),
    (no_kind_of_option, "'n' of no_kind_of_option has no kind"),
    (float_input, "'x' of float_input is of type float, which is no kind"),
    (tensor_input, "is of type Tensor, which is no kind"),
    (any_number, "'x' of any_number stands for any number of arguments"),
    (any_words, "stands for any number of arguments"),
    (input_with_default, "is an input, which has no default"),
    (tensor_default, "has a default of type Tensor"),
    (list_default, "has a default of type list"),
    (bool_default, "has a default of type bool"),
    (parameter_of_float, "'q' of parameter_of_float is of type float"),
    (dict_option, r"is of type dict\[str, int\], which is no option"),
    (list_option, "is of type list, which is no option"),
    (wrong_default, r"has the default 1\.5, which is not allowed"),
    (wrong_choice, "has the default 'c', which is not allowed"),
    (double, "has two variables or options called 'out'"),
    (double_option, "has two variables or options called 'out'"),
    (unknown_annotation, "name 'Nowhere' is not defined"),
    (generator, "'generator' does not return its value"),
]


@pytest.mark.parametrize(("function", "words"), WRONG, ids=lambda x: getattr(x, "__name__", ""))
def test_declaration_that_is_not_whole_is_refused(function: Callable[..., Any], words: str) -> None:
    with pytest.raises(IngotError) as raised:
        model(gives="out")(function)
    told = str(raised.value)
    assert re.search(words, told), told
    line = function.__code__.co_firstlineno
    assert f"test_declare.py:{line} in {function.__name__}" in told
    assert " write " in told
    assert function.__name__ not in CATALOG


def test_all_problems_of_a_declaration_are_told() -> None:
    def Law(x: float, y, *z: Scalar): ...  # type: ignore[reportMissingParameterType]

    with pytest.raises(IngotError) as raised:
        model(gives="out")(Law)
    assert len(raised.value.problems) == 4


@pytest.mark.parametrize("gives", ["", "a b", 3, ("a", "b"), (), [], True])
def test_gives_is_a_name_for_each_result(gives: Any) -> None:
    def Law(x: Scalar) -> Scalar: ...

    with pytest.raises(IngotError, match="gives"):
        model(gives=gives)(Law)


def test_decorator_without_gives_is_refused() -> None:
    def Law(x: Scalar) -> Scalar: ...

    for declare in (lambda: model(Law), lambda: model()(Law), lambda: model()):
        with pytest.raises(IngotError, match=r'write @model\(gives="name_of_the_output"\)'):
            declare()


@pytest.mark.parametrize("function", [lambda x: x, Scalar, print, 3, "Law", torch.nn.Linear(1, 1)])
def test_what_is_no_named_function_is_refused(function: Any) -> None:
    with pytest.raises(IngotError, match="it is no function with a name"):
        model(gives="out")(function)


def test_name_of_another_law_is_refused() -> None:
    def VoceIsotropicHardening(x: Scalar) -> Scalar: ...

    with pytest.raises(IngotError, match=r"already a law .* in ingot\.catalog\.hardening"):
        model(gives="out")(VoceIsotropicHardening)


def test_law_may_be_declared_anew_and_with_text_for_annotations() -> None:
    for _ in range(2):

        @model(gives="out")
        def Law(x: "Scalar", y: SR2 = OTHER, *, q: "Many[Parameter[Scalar]]" = 1) -> "Scalar":
            return x

    assert [i.argument for i in CATALOG["Law"].inputs] == ["x", "y"]
    assert CATALOG["Law"].parameters[0].many
