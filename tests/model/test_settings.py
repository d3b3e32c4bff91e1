"""`[Settings]` declare shapes in one grammar."""

import random

import pytest

from ingot.errors import IngotError
from ingot.hit import read_text
from ingot.model import Factory
from ingot.model.settings import Settings, Shape, settings, settings_of_flags


def declared(*rows: str) -> Settings:
    return settings(read_text("\n".join(["[Settings]", *rows, "[]"])))


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("(2,)", Shape((2,), None)),
        ("(2)", Shape((2,), None)),
        ("()", Shape((), None)),
        ("(2,3)", Shape((2, 3), None)),
        ("(2;100)", Shape((2,), (100,))),
        ("(2; 100, 5)", Shape((2,), (100, 5))),
        ("(2; 100, 5,)", Shape((2,), (100, 5))),
        ("(; 100)", Shape((), (100,))),
        ("(2; )", Shape((2,), ())),
    ],
)
def test_shapes_are_read(text: str, shape: Shape) -> None:
    assert declared(f"example_batch_shape = '{text}'").shared == shape


@pytest.mark.parametrize("text", ["2", "(2", "(2; 3; 4)", "(a)", "(2:slip)", "(-1)", "(2,,3)"])
def test_other_shapes_are_refused(text: str) -> None:
    with pytest.raises(IngotError, match="should be a shape"):
        declared(f"example_batch_shape = '{text}'")


def test_a_declaration_covers_the_history() -> None:
    found = declared("[example_batch_shape]", "x = '(2; 12)'", "y = '(2,)'", "[]")
    assert found.structural("x") == found.structural("x~2") == (12,)
    assert found.structural("y") is None
    assert found.structural("z") is None


def test_histories_must_agree() -> None:
    with pytest.raises(IngotError, match="different structural extents"):
        declared("[example_batch_shape]", "x = '(2; 12)'", "x~1 = '(2; 13)'", "[]")


def test_a_value_and_a_block_exclude_each_other() -> None:
    with pytest.raises(IngotError, match="both a value and a block"):
        declared("example_batch_shape = '(2)'", "[example_batch_shape]", "x = '(2)'", "[]")


@pytest.mark.parametrize(
    ("word", "flag"), [("true", True), ("off", False), ("1", True), ("No", False)]
)
def test_dynamic_batch_is_spelled_generously(word: str, flag: bool) -> None:
    assert declared(f"dynamic_batch = {word}").dynamic_batch == flag


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(IngotError, match="no option 'example_batch_shap'"):
        declared("example_batch_shap = '(2)'")


def test_a_file_is_strict_where_its_settings_or_the_caller_say_so() -> None:
    assert not declared().strict
    assert declared("strict = true").strict
    tree = read_text("[Settings]\n  strict = yes\n[]\n")
    assert Factory(tree).strict
    assert Factory(read_text(""), strict=True).strict
    assert not Factory(read_text("")).strict
    with pytest.raises(IngotError, match="true or false"):
        declared("strict = banana")


def written_out(words: list[str]) -> Settings:
    """The settings of a file that declares what flags declare."""
    if words and "=" not in words[0]:
        return declared(f"example_batch_shape = '{words[0]}'")
    rows = [f"{name} = '{text}'" for name, _, text in (word.partition("=") for word in words)]
    return declared("[example_batch_shape]", *rows, "[]")


def test_flags_declare_what_a_file_would() -> None:
    """Random words, right and wrong: the same shapes, or refused by both under the same code."""
    draw = random.Random(3)
    texts = ["(2; 12)", "(2)", "()", "(; 5, 6)", "(2; )", "2", "(a)", "(2; 3; 4)", "(-1)", ""]
    outcomes = set()
    for _ in range(400):
        names = draw.sample(["c", "c~1", "T", "forces.E"], draw.randint(0, 3))
        words = [f"{name}={draw.choice(texts)}" for name in names] or [draw.choice(texts[:-1])]
        try:
            wanted = written_out(words)
        except IngotError as refused:
            with pytest.raises(IngotError) as raised:
                settings_of_flags(words)
            codes = [p.code for p in refused.problems]
            assert [p.code for p in raised.value.problems] == codes
            places = {p.span.text for p in raised.value.problems if p.span is not None}
            assert places <= set(words) and places
            outcomes.add(codes[0])
        else:
            found = settings_of_flags(words)
            assert (found.shared, found.shapes) == (wanted.shared, wanted.shapes)
            outcomes.add("read")
    assert outcomes == {"read", "wrong-value", "shapes-differ"}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("c=(2; 5)", "c=(2; 6)"), "duplicate-field"),
        (("(2; 5)", "(2; 5)"), "duplicate-field"),
        (("(2; 5)", "c=(2; 5)"), "wrong-value"),
    ],
)
def test_flags_that_exclude_each_other_are_told(words: tuple[str, ...], code: str) -> None:
    with pytest.raises(IngotError) as raised:
        settings_of_flags(words)
    assert [p.code for p in raised.value.problems] == [code]
    assert "--example-batch-shape" in str(raised.value)
