"""Errors read as the house style shows them, and every code is explained."""

import ast
import pickle
import warnings
from pathlib import Path

import pytest

from ingot.cli.explained import EXPLAIN
from ingot.errors import (
    IngotError,
    IngotWarning,
    Problem,
    Span,
    did_you_mean,
    nearest,
    raise_if,
    warn_of,
)
from ingot.messages import MESSAGES

SOURCE = Path(__file__).parents[1] / "src" / "ingot"


def test_problem_in_text_shows_place_line_carets_and_fix() -> None:
    span = Span("model.i", 14, 5, 14, "Models/hardening", "    saturation_rte = 1.1")
    message = "VoceIsotropicHardening has no option 'saturation_rte'"
    problem = Problem("unknown-option", message, span, "did you mean 'saturation_rate'?")
    assert str(problem) == (
        "error[unknown-option]: VoceIsotropicHardening has no option 'saturation_rte'\n"
        "  --> model.i:14:5 in [Models/hardening]\n"
        "14 |     saturation_rte = 1.1\n"
        "   |     ^^^^^^^^^^^^^^ did you mean 'saturation_rate'?"
    )


def test_problem_in_python_names_the_function_and_no_column() -> None:
    line = "    u, s, v = torch.linalg.svd(f)"
    span = Span("my_models.py", 31, 15, 0, "ShearFlow", line)
    message = "'ShearFlow' uses torch.linalg.svd, which a point program cannot hold"
    problem = Problem("untraceable", message, span, "use ingot.types.polar(f)")
    assert str(problem) == (
        f"error[untraceable]: {message}\n"
        "  --> my_models.py:31 in ShearFlow\n"
        "31 |     u, s, v = torch.linalg.svd(f)\n"
        "   |               use ingot.types.polar(f)"
    )


def test_python_place_without_column_puts_the_fix_at_the_indent() -> None:
    span = Span("my_models.py", 7, block="Flow", text="    return f")
    assert str(Problem("x", "m", span, "mend it")).splitlines()[-1] == "  |     mend it"


def test_problem_without_place_shows_the_fix_below() -> None:
    problem = Problem("not-converged", "1 of 4096 points did not converge", fix="halve the step")
    assert str(problem) == (
        "error[not-converged]: 1 of 4096 points did not converge\n  fix: halve the step"
    )


def test_problem_with_place_but_no_line_shows_the_fix_below() -> None:
    problem = Problem("x", "m", Span("a.i", 3, 1, 1), "mend it")
    assert str(problem) == "error[x]: m\n  --> a.i:3:1\n  fix: mend it"


def test_carets_alone_without_a_fix() -> None:
    problem = Problem("x", "m", Span("a.i", 3, 2, 2, "", " ab"))
    assert str(problem).splitlines()[2:] == ["3 |  ab", "  |  ^^"]


def test_carets_keep_tabs() -> None:
    problem = Problem("x", "m", Span("a.i", 3, 2, 1, "", "\ta = 1"))
    assert str(problem).splitlines()[-1] == "  | \t^"


def test_problems_are_sorted_by_place_and_separated_by_a_blank_line() -> None:
    nowhere = Problem("c", "third")
    late, early = Problem("b", "second", Span("a.i", 9)), Problem("a", "first", Span("a.i", 2))
    error = IngotError([nowhere, late, early])
    assert error.problems == (early, late, nowhere)
    assert str(error) == f"{early}\n\n{late}\n\n{nowhere}"


def test_error_survives_pickling() -> None:
    error = IngotError([Problem("a", "first", Span("a.i", 2), "mend it")])
    assert pickle.loads(pickle.dumps(error)).problems == error.problems


def test_a_warning_is_told_as_an_error_is_and_is_one_where_strict() -> None:
    problem = Problem("unknown-option", "a word that nothing reads", Span("a.i", 2), "leave it out")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        warn_of([problem])
        warn_of([])
    (warning,) = seen
    assert warning.category is IngotWarning
    assert str(warning.message) == str(problem).replace("error[", "warning[", 1)
    with pytest.raises(IngotError) as raised:
        warn_of([problem], strict=True)
    assert raised.value.problems == (problem,)


def test_raise_if_raises_only_if_there_are_problems() -> None:
    raise_if([])
    with pytest.raises(IngotError) as raised:
        raise_if(Problem(code, code) for code in "ab")
    assert len(raised.value.problems) == 2


@pytest.mark.parametrize(
    ("word", "meant"),
    [("saturation_rte", "saturation_rate"), ("modles", "Models"), ("zzz", None)],
)
def test_nearest_finds_the_word_that_was_meant(word: str, meant: str | None) -> None:
    known = {"saturation_rate", "saturated_hardening", "Models"}
    assert nearest(word, known) == meant
    assert did_you_mean(word, known) == (f"did you mean '{meant}'?" if meant else None)


def codes_in(file: Path) -> set[str]:
    """The first argument of every `Problem(...)` that is written out."""
    calls = (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call))
    named = (node for node in calls if getattr(node.func, "id", None) == "Problem" and node.args)
    first = (node.args[0] for node in named)
    return {str(code.value) for code in first if isinstance(code, ast.Constant)}


@pytest.mark.parametrize(
    "file", sorted(SOURCE.rglob("*.py")), ids=lambda file: str(file.relative_to(SOURCE))
)
def test_every_code_is_explained(file: Path) -> None:
    assert codes_in(file) <= EXPLAIN.keys()


def test_every_code_of_shared_texts_is_explained() -> None:
    assert {message.code for message in MESSAGES.values()} <= EXPLAIN.keys()


def test_codes_are_found_in_the_source() -> None:
    assert "duplicate-block" in codes_in(SOURCE / "hit" / "reader.py")


def test_explanations_are_whole_sentences() -> None:
    for code, text in EXPLAIN.items():
        assert code == code.lower() and " " not in code
        assert text.endswith(".") and "  " not in text
