"""MOOSE's way of reading: overrides, scopes, quotes, switched-off blocks, [GlobalParams]."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingot.errors import IngotError
from ingot.hit import (
    Tree,
    activate,
    find_unused_globals,
    read,
    read_text,
    sections_of,
    with_globals,
)


def value(tree: Tree, section: str, name: str) -> str:
    (block,) = tree.section(section)
    return block.require(name).string()


@pytest.mark.parametrize("override", ["B/n=2", "B/n:=2", "B/n = 2", "B/n='2'"])
def test_override_with_equals_replaces(override: str) -> None:
    assert value(read_text("[B]\nn = 1\n[]", overrides=[override], moose=True), "B", "n") == "2"


@pytest.mark.parametrize(
    ("override", "text"),
    [("B/n=a b", "a b"), ("B/n=", ""), ("B/n=it's so", "it's so"), ("B/n=${x}", "7"),
     ("B/n=${fparse x + 1}", "8")],
)  # fmt: skip
def test_override_needs_no_quotes(override: str, text: str) -> None:
    tree = read_text("x = 7\n[B]\nn = 1\n[]", overrides=[override], moose=True)
    assert value(tree, "B", "n") == text


NESTED = "a = 1\n[B]\na = 2\nx = ${a}\nb = 5\n[]\n[C]\na = ${a}\ny = ${fparse a + 1}\n[]"


def test_name_means_the_nearest_block_around_it_for_moose_alone() -> None:
    assert value(read_text(NESTED, moose=True), "B", "x") == "2"
    assert value(read_text(NESTED), "B", "x") == "1"


def test_field_that_refers_to_its_own_name_means_the_one_outside() -> None:
    assert value(read_text(NESTED, moose=True), "C", "a") == "1"
    assert value(read_text(NESTED, moose=True), "C", "y") == "2"
    with pytest.raises(IngotError, match="'a' refers to itself"):
        read_text("a = ${a}", moose=True)


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("'x=1 y=\"2 3\"'", 'x=1 y="2 3"'),
        ('"it\'s"', "it's"),
        ("'#12 $x'", "#12 $x"),
        ("'one '\n    'two'", "one two"),
        ("'a'\n\n  \"b'\" 'c'", "ab'c"),
        ("'${n} #1'", "5 #1"),
        ("'a := 1; a;'", "a := 1; a;"),
        ("'plain' # it's a comment", "plain"),
    ],
)
def test_quoted_value_holds_any_letter_and_is_joined(written: str, text: str) -> None:
    tree = read_text(f"n = 5\n[B]\nx = {written}\ny = 1\n[]", moose=True)
    assert value(tree, "B", "x") == text
    found = tree.blocks[0].require("y").span
    assert found.line == 4 + written.count("\n")


def test_quotes_stay_as_strict_as_they_are_elsewhere() -> None:
    with pytest.raises(IngotError, match="a quoted value cannot hold #"):
        read_text("x = 'a # b'")


def test_quotes_are_strict_in_a_file_with_includes(tmp_path: Path) -> None:
    (tmp_path / "part.i").write_text("m = 1\n")
    (tmp_path / "main.i").write_text("n = 'a \"b\"'\n!include part.i\n")
    with pytest.raises(IngotError, match=r"main\.i:1.*\n.*\n.*between three quotes"):
        read(tmp_path / "main.i", moose=True)
    (tmp_path / "main.i").write_text("n = '1 2; 3 4'\n!include part.i\n")
    tree = read(tmp_path / "main.i", moose=True)
    assert [(field.name, field.string()) for field in tree.fields] == [
        ("n", "1 2; 3 4"),
        ("m", "1"),
    ]


SWITCHED = "[A]\n{}\n[x]\n[]\n[y]\ninactive = z\n[z]\n[]\n[w]\n[]\n[]\n[]"


@pytest.mark.parametrize(
    ("line", "names"),
    [("active = ''", []), ("active = y", ["y"]), ("inactive = 'y'", ["x"]), ("", ["x", "y"]),
     ("active = __all__", ["x", "y"])],
)  # fmt: skip
def test_only_active_blocks_exist(line: str, names: list[str]) -> None:
    (block,) = activate(read_text(SWITCHED.format(line))).blocks
    assert [child.name for child in block.blocks] == names
    assert not block.fields
    assert all([each.name for each in c.blocks] == ["w"] for c in block.blocks if c.name == "y")


def test_a_name_that_is_no_block_cannot_be_active() -> None:
    with pytest.raises(IngotError) as raised:
        activate(read_text("[A]\nactive = 'xdfm q'\n[xdmf]\n[]\n[]", "a.i"))
    assert "[A] has no sub-block 'xdfm'" in str(raised.value)
    assert "did you mean 'xdmf'?" in str(raised.value)
    assert len(raised.value.problems) == 2
    with pytest.raises(IngotError, match="both 'active' and 'inactive'"):
        activate(read_text("[A]\nactive = x\ninactive = ''\n[x]\n[]\n[]"))


GLOBAL = "[GlobalParams]\nm = 1\nn = 2\n[]\n[A]\n[x]\nm = 3\n[]\n[]"


def test_global_parameters_are_defaults_of_what_a_block_knows() -> None:
    tree = read_text(GLOBAL)
    block = tree.require("A", "x")
    full = with_globals(block, tree, {"m", "n"})
    assert [(each.name, each.string()) for each in full.fields] == [("m", "3"), ("n", "2")]
    assert full.require("n").span.line == 3
    assert with_globals(block, tree, {"m"}) == block


def test_global_parameter_that_no_block_knows_is_a_problem() -> None:
    (problem,) = find_unused_globals(read_text(GLOBAL), {"m", "nn"})
    assert problem.code == "unknown-option" and problem.fix == "did you mean 'nn'?"


@given(st.text(st.sampled_from("ab[]/.'\"=:;#${} \n!\\é1"), max_size=30))
@settings(max_examples=300, deadline=None)
def test_any_text_is_read_or_refused_with_a_place(text: str) -> None:
    try:
        read_text(text, moose=True)
    except IngotError as error:
        assert all(problem.span for problem in error.problems)


@given(st.lists(st.sampled_from("ab #$';[]=1"), max_size=12).map("".join))
@settings(max_examples=200, deadline=None)
def test_any_line_is_kept_in_double_quotes(text: str) -> None:
    tree = read_text(f'[B]\nx = "-{text}-"\ny = 1\n[]', moose=True)
    assert value(tree, "B", "x") == f"-{text}-"
    assert tree.blocks[0].require("y").span.line == 3


def test_sections_are_seen_without_reading_values(tmp_path: Path) -> None:
    file = tmp_path / "a.i"
    file.write_text("[Domain]\nx = ${nothing}\n[b]\n[]\n[]\n# [C]\n[D/e]\n[]\n")
    assert sections_of(file) == ("Domain", "D/e")
    file.write_text("x = 'a'\n  'b\n[no]\n'\n[Tests]\n[]\n")
    assert sections_of(file) == ("Tests",)
