"""Fields read as typed values; blocks and sections are found by name."""

import math

import pytest

from ingot.errors import IngotError
from ingot.hit import Field, Tree, read_text, unknown_blocks, unknown_fields, unknown_sections


def value(text: str) -> Field:
    found = read_text(f"x = {text}").field("x")
    assert found is not None
    return found


def message(text: str, reader: str) -> str:
    with pytest.raises(IngotError) as raised:
        getattr(value(text), reader)()
    (problem,) = raised.value.problems
    assert problem.code == "wrong-value" and problem.span is not None
    return problem.message


@pytest.mark.parametrize(
    ("text", "string"),
    [
        ("abc", "abc"),
        ("'a  b'", "a  b"),
        ('"a b"', "a b"),
        ("''", ""),
        ('""', ""),
        ("'  '", ""),
        ("'''  a 'b' # c '''", "  a 'b' # c "),
        ("''''a'''", "'a"),
        ("'a\n  b'", "a\n  b"),
        ("Scalar(1.0)", "Scalar(1.0)"),
        ("'x\\y'", "x\\y"),
        ("größe", "größe"),
    ],
)
def test_string_has_no_quotes(text: str, string: str) -> None:
    assert value(text).string() == string


@pytest.mark.parametrize(
    ("text", "words"),
    [("''", ()), ("a", ("a",)), ("'a b\n c'", ("a", "b", "c")), ("'1,2,3'", ("1,2,3",))],
)
def test_words_are_separated_by_blanks(text: str, words: tuple[str, ...]) -> None:
    assert value(text).words() == words


def test_words_refuse_rows_and_verbatim_text() -> None:
    assert message("'a; b'", "words") == "'x' should be a flat list, but is 'a; b'"
    assert "text between three quotes" in message("'''a b'''", "words")


@pytest.mark.parametrize(
    ("text", "rows"),
    [("''", ()), ("'a b'", (("a", "b"),)), ("'a b;\n c'", (("a", "b"), ("c",)))],
)
def test_rows_are_separated_by_semicolons(text: str, rows: tuple[tuple[str, ...], ...]) -> None:
    assert value(text).rows() == rows


@pytest.mark.parametrize(("text", "integer"), [("5", 5), ("'+5'", 5), ("-07", -7)])
def test_integer(text: str, integer: int) -> None:
    assert value(text).integer() == integer


@pytest.mark.parametrize("text", ["1.0", "1e3", "''", "'1 2'", "1_000", "0x10", "true", "'''1'''"])
def test_integer_refuses(text: str) -> None:
    assert "should be an integer" in message(text, "integer")


@pytest.mark.parametrize(
    ("text", "number"),
    [("1", 1.0), ("-.5e-3", -5e-4), ("5.", 5.0), ("INF", math.inf), ("-infinity", -math.inf)],
)
def test_number(text: str, number: float) -> None:
    assert value(text).number() == number
    assert value(text).numbers() == (number,)


def test_nan_is_a_number() -> None:
    assert math.isnan(value("nan").number())


@pytest.mark.parametrize("text", ["''", "1_000", "0x10", "1d3", "e", ".", "1e999", "1e-999", "a"])
def test_number_refuses(text: str) -> None:
    assert "should be a number" in message(text, "number")


def test_numbers_name_the_word_that_is_wrong() -> None:
    with pytest.raises(IngotError) as raised:
        value("'1 11x 1x'").numbers()
    span = raised.value.problems[0].span
    assert span is not None and (span.column, span.length) == (8, 3)


@pytest.mark.parametrize(("text", "flag"), [("true", True), ("'false'", False)])
def test_flag(text: str, *, flag: bool) -> None:
    assert value(text).flag() is flag


@pytest.mark.parametrize("text", ["True", "yes", "1", "''", "off"])
def test_flag_refuses(text: str) -> None:
    assert "should be true or false" in message(text, "flag")


TWO = """
[Models]
  [a]
    type = A
    E = 1
  []
[]
[Solvers]
  [newton]
  []
[]
[Models]
  [b]
    type = B
  []
[]
"""


@pytest.fixture
def tree() -> Tree:
    return read_text(TWO, "two.i")


def test_section_has_all_its_parts(tree: Tree) -> None:
    assert len(tree.section("Models")) == 2
    assert tree.names("Models") == ("a", "b")
    assert tree.section("Tensors") == ()


def test_find_looks_into_all_parts(tree: Tree) -> None:
    found = tree.find("Models", "b")
    assert found is not None and found.type == "B" and found.path == "Models/b"
    assert tree.find("Models", "c") is None and tree.find("Tensors", "b") is None


def test_missing_block_is_told_where_it_was_asked_for(tree: Tree) -> None:
    asked = tree.require("Models", "a").require("E").value_span
    with pytest.raises(IngotError) as raised:
        tree.require("Models", "aa", asked)
    (problem,) = raised.value.problems
    assert (problem.code, problem.span) == ("missing-block", asked)


def test_missing_option_points_at_the_block(tree: Tree) -> None:
    block = tree.require("Models", "a")
    with pytest.raises(IngotError) as raised:
        block.require("F")
    (problem,) = raised.value.problems
    assert problem.message == "A needs the option 'F'"
    assert problem.span == block.span and block.span.line == 3


def test_block_without_type_is_named_by_its_path(tree: Tree) -> None:
    block = tree.require("Solvers", "newton")
    assert block.type is None and block.title == "[Solvers/newton]"


def test_unknown_names_are_problems(tree: Tree) -> None:
    block = tree.require("Models", "a")
    assert list(unknown_fields(block, {"type", "E"})) == []
    (problem,) = unknown_fields(block, {"type", "e"})
    assert (problem.message, problem.fix) == ("A has no option 'E'", "did you mean 'e'?")
    (problem,) = unknown_blocks(tree.section("Solvers")[0])
    assert problem.message == "[Solvers] has no sub-block 'newton'"
    assert [each.fix for each in unknown_sections(tree, {"Models", "Solver"})] == [
        "did you mean 'Solver'?"
    ]


def test_trees_that_say_the_same_are_equal(tree: Tree) -> None:
    assert tree == read_text("# moved down\n" + TWO.replace("  ", "\t"))
    assert tree != read_text(TWO.replace("E = 1", "E = 2"))


def test_tree_prints_as_text_that_reads_the_same(tree: Tree) -> None:
    assert str(tree).startswith("[Models]\n  [a]\n    type = A\n    E = 1\n  []\n[]\n")
    assert read_text(str(tree)) == tree


@pytest.mark.parametrize(("text", "count"), [("3", 3), ("1e3", 1000), ("'2.0'", 2), ("-1", -1)])
def test_count_may_have_an_exponent(text: str, count: int) -> None:
    assert value(text).count() == count


def test_count_is_whole() -> None:
    assert message("1.5", "count") == "'x' should be a whole number, but is '1.5'"
    assert message("many", "count") == "'x' should be a number, but is 'many'"
