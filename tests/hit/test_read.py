"""Reading: spans, paths, overrides, substitution, includes, and files of other projects."""

import hashlib
import shlex
import subprocess
import sys
from pathlib import Path

import nmhit
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingot.errors import IngotError, Span
from ingot.hit import Block, Field, Tree, activate, read, read_text

CASES = Path(__file__).parents[2].parent / "shared" / "cases"


def codes(text: str, *overrides: str) -> list[str]:
    with pytest.raises(IngotError) as raised:
        read_text(text, overrides=overrides)
    return [problem.code for problem in raised.value.problems]


def text_of(tree: Tree, path: str) -> str:
    """The value at a path, whichever block of that name has it."""
    *blocks, name = path.split("/")
    holders: list[Tree | Block] = [tree]
    for each in blocks:
        holders = [inner for holder in holders for inner in holder.blocks if inner.name == each]
    (found,) = (each for holder in holders for each in holder.fields if each.name == name)
    return found.string()


def test_every_value_remembers_its_place() -> None:
    tree = read_text("[Models]\n\t[a]\n    E = 'ü 1'  F = \"2\"\n[]\n[]", "model.i")
    block = tree.require("Models", "a")
    assert block.span == Span("model.i", 2, 2, 3, "Models/a", "\t[a]")
    line = "    E = 'ü 1'  F = \"2\""
    assert block.require("E").span == Span("model.i", 3, 5, 1, "Models/a", line)
    assert block.require("E").value_span == Span("model.i", 3, 9, 5, "Models/a", line)
    assert block.require("F").span == Span("model.i", 3, 16, 1, "Models/a", line)


def test_value_of_several_lines_is_spanned_on_its_first() -> None:
    found = read_text("x = 'a\n b'").field("x")
    assert found is not None and found.value_span.length == 2


def test_paths_are_the_same_as_nesting() -> None:
    nested = read_text("[Models]\n[a]\nE = 1\n[b]\nF = 2\n[]\n[]\n[]")
    assert read_text("[Models/a]\nE = 1\n[b]\nF = 2\n[]\n[]") == nested
    assert read_text("Models/a/E = 1\nModels/a/b/F = 2") == nested
    assert read_text("[Models/a]\nE = 1\nb/F = 2\n[]") == nested


def test_keyword_is_a_block_name() -> None:
    assert read_text("[Models]\n[lambda]\n[]\n[]").names("Models") == ("lambda",)


TWICE = "[M]\n[x]\nE = 1\n[]\n[]\n[M]\n[y]\nF = 1\n[]\n[]\n"


def test_path_field_reaches_every_part_of_a_section() -> None:
    assert text_of(read_text(TWICE + "M/x/E := 3"), "M/x/E") == "3"
    assert text_of(read_text(TWICE + "M/y/F :override= 3"), "M/y/F") == "3"
    assert codes(TWICE + "M/x/E = 3") == ["duplicate-field"]


def test_field_set_in_two_parts_of_a_section_is_a_problem() -> None:
    assert codes("[M]\na = 1\n[]\n[M]\na = 2\n[]") == ["duplicate-field"]


def test_block_written_twice_is_a_problem() -> None:
    assert codes("[M]\n[x]\n[]\n[x]\n[]\n[]") == ["duplicate-block"]
    assert codes(TWICE + "[M/x]\n[]") == ["duplicate-block"]
    assert codes("[M]\n[x]\n[z]\n[]\n[z]\n[]\n[]\n[]") == ["duplicate-block"]


def test_duplicate_field_is_reported_once() -> None:
    assert codes("[M]\na = 1\na = 2\n[]") == ["duplicate-field"]


def test_all_duplicates_are_reported() -> None:
    assert codes("[M]\na = 1\na = 2\nb = 1\nb = 2\n[]") == ["duplicate-field"] * 2


def test_override_reaches_every_part_of_a_section() -> None:
    tree = read_text(TWICE, overrides=["M/x/E:=3", "M/y/F := 4", "n=5"])
    assert [text_of(tree, path) for path in ("M/x/E", "M/y/F", "n")] == ["3", "4", "5"]
    assert tree.overrides == ("M/x/E:=3", "M/y/F := 4", "n=5")


def test_override_keeps_the_place_of_the_field_and_names_the_command_line() -> None:
    tree = read_text("a = 1\nb = 2", overrides=["c:=1", "a:=3"])
    assert [each.name for each in tree.fields] == ["a", "b", "c"]
    assert tree.fields[0].span == Span("<command line>", 2, 1, 1, "", "a:=3")


def test_override_makes_new_blocks() -> None:
    assert text_of(read_text("", overrides=["M/z/q:=1"]), "M/z/q") == "1"


def test_override_written_as_blocks() -> None:
    assert text_of(read_text(TWICE, overrides=["[M] [x] E := 3 [] []"]), "M/x/E") == "3"


def test_override_of_a_variable_reaches_its_uses() -> None:
    tree = read_text("n = 1\nx = 'a${n}'", overrides=["n:=2"])
    assert text_of(tree, "x") == "a2"


@pytest.mark.parametrize("override", ["n=2", "n", "n=", "n:=a b", "", "# n", "[n", "n=${q}"])
def test_wrong_override_points_at_the_command_line(override: str) -> None:
    with pytest.raises(IngotError) as raised:
        read_text("n = 1", overrides=["m:=1", override])
    (problem,) = raised.value.problems
    assert problem.span is not None
    assert (problem.span.file, problem.span.line) == ("<command line>", 2)


def test_all_wrong_overrides_are_reported() -> None:
    assert codes("n = 1", "n=2", "n") == ["duplicate-field", "parse-error"]


VARIABLES = "n = 5\nl = '1 2'\ne = ''\nnn = n\nv = '''a 'b' ${n}'''\n[B]\nx = 7\n[]\n"


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("${n}", "5"),
        ("${ n }", "5"),
        ("x${n}y", "x5y"),
        ("'0 ${l} 3'", "0 1 2 3"),
        ("'''${n}'''", "5"),
        ("${replace n}", "5"),
        ("${B/x}", "7"),
        ("${e}", ""),
        ("'${e}'", ""),
        ("${v}", "a 'b' 5"),
        ("${raw a b}", "ab"),
        ("${raw ${n} b}", "5b"),
        ("${raw a ${n} b ${n}}", "a5b5"),
        ("${raw x${n}y z}", "x5yz"),
        ("${raw ${raw a b} c}", "abc"),
        ("${raw ${l} x}", "1 2x"),
        ("${raw}", ""),
        ("${replace ${nn}}", "5"),
        ("${${nn}}", "5"),
        ("${env INGOT_TEST}", "from outside"),
        ("${env INGOT_UNSET}", ""),
        ("'''$n {n}'''", "$n {n}"),
    ],
)
def test_substitution(written: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INGOT_TEST", "from outside")
    monkeypatch.delenv("INGOT_UNSET", raising=False)
    assert text_of(read_text(f"{VARIABLES}y = {written}"), "y") == text


@pytest.mark.parametrize(
    "written", ["${m}", "${B}", "${x}", "${}", "${fparse}", "'''${n'''", "${B/y}", "${n m}"]
)
def test_substitution_that_means_nothing_is_a_problem(written: str) -> None:
    assert codes(f"{VARIABLES}y = {written}") == ["unresolved-substitution"]


NUMBERS = "w = 3\nword = abc\nlist = '1 2'\nL = '5'\n"


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("${fparse 2*pi}", "6.283185307179586"),
        ("${fparse w*2}", "6"),
        ("'${fparse ${w} * ${L} }'", "15"),
        ("'a ${fparse w^2} b'", "a 9 b"),
        ("${fparse ${units 3 m -> cm} * ${raw 1 0}}", "3000"),
        ("${fparse if(w > 2, 1, 1/0)}", "1"),
        ("${units 10 s }", "10"),
        ("${units 90 MPa -> Pa}", "90000000"),
        ("${units ${w} kg*m/s^2 -> kN}", "0.003"),
        ("${units 25 degC -> K}", "298.15"),
    ],
)
def test_arithmetic_and_units(written: str, text: str) -> None:
    assert text_of(read_text(f"{NUMBERS}y = {written}"), "y") == text


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("${fparse 2*(3}", "found the end instead of ')'"),
        ("${fparse 2*q}", "there is no value 'q'"),
        ("${fparse 2*word}", "'word' is 'abc', which is not a number"),
        ("${fparse list}", "'list' is '1 2', which is not a number"),
        ("${fparse 1/0}", "'1/0' divides by zero"),
        ("${fparse 2*${q}}", "there is no value 'q'"),
        ("${fparse}", "there is no value 'fparse'"),
        ("${units 1 m -> s}", "'m' cannot be converted to 's'"),
        ("${units 1 parsec}", "there is no unit 'parsec'"),
        ("${units m}", "'m' is not a number"),
        ("${units 1}", "there is no unit"),
        ("${env A B}", "'env' has not what it needs"),
        ("${fpars 1+1}", "did you mean 'fparse'?"),
    ],
)
def test_arithmetic_without_a_value_is_one_problem_at_its_place(written: str, says: str) -> None:
    with pytest.raises(IngotError) as raised:
        read_text(f"{NUMBERS}y = {written}", "input.i")
    (problem,) = raised.value.problems
    assert problem.code == "unresolved-substitution" and problem.fix
    assert problem.span is not None and (problem.span.line, problem.span.column) >= (5, 5)
    assert says in str(problem)


def test_value_that_cannot_be_computed_is_reported_where_it_is_written_only() -> None:
    wrong = "a = ${fparse 1/0}\nb = ${a}\nc = ${fparse a+1}"
    assert codes(wrong) == ["unresolved-substitution"]


def test_circular_substitution_is_a_problem() -> None:
    assert codes("a = ${b}\nb = ${c}\nc = ${a}") == ["circular-substitution"]
    assert codes("a = ${a}") == ["circular-substitution"]


def test_all_unresolved_values_are_reported() -> None:
    assert codes("a = ${x}\nb = '${y} ${z}'") == ["unresolved-substitution"] * 3


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "part.i").write_text("n = 1\n!include other part.i # here\n")
    (tmp_path / "sub" / "other part.i").write_text("[M]\nq = ${n}\n[]\n")
    return tmp_path


def test_spans_name_the_included_file(folder: Path) -> None:
    (folder / "main.i").write_text("!include sub/part.i\nm = 2\n")
    tree = read("main.i")
    assert [(each.span.file, each.span.line) for each in tree.fields] == [
        (str(Path("sub/part.i")), 1),
        ("main.i", 2),
    ]
    assert tree.blocks[0].fields[0].span.file == str(Path("sub/other part.i"))
    assert text_of(tree, "M/q") == "1"
    assert read_text("!include sub/part.i\nm = 2") == tree


def test_field_of_an_included_file_is_replaced_with_colon_equals_only(folder: Path) -> None:
    (folder / "main.i").write_text("!include sub/part.i\nn := 2\nM/q := 3")
    tree = read("main.i")
    assert (text_of(tree, "n"), text_of(tree, "M/q")) == ("2", "3")
    (folder / "main.i").write_text("!include sub/part.i\nn = 2")
    with pytest.raises(IngotError, match=r"'n' is already set in sub.part\.i:1"):
        read("main.i")


def test_include_inside_a_block(folder: Path) -> None:
    assert text_of(read_text("[A]\n!include sub/part.i\n[]\nn = 9"), "A/M/q") == "9"


def test_include_that_cannot_be_read(folder: Path) -> None:
    assert codes("!include sub") == ["file-not-found"]
    assert codes("!include nowhere/x.i") == ["file-not-found"]
    (folder / "a.i").write_text("!include b.i")
    (folder / "b.i").write_text("\n!include a.i")
    with pytest.raises(IngotError, match="circular-include") as raised:
        read("a.i")
    span = raised.value.problems[0].span
    assert span is not None and (span.file, span.line) == ("b.i", 2)


def test_include_in_text_or_comment_is_none() -> None:
    assert text_of(read_text("x = '''\n!include a.i'''\n# !include b.i"), "x") == "\n!include a.i"


def test_file_that_cannot_be_read(folder: Path) -> None:
    (folder / "model.i").write_bytes(b"\xef\xbb\xbfa = 1")
    (folder / "latin.i").write_bytes(b"# \xe4\na = 1")
    for name, says in [
        ("modl.i", "did you mean 'model.i'?"),
        ("sub", "is a folder, not a file"),
        ("model.i", "byte order mark"),
        ("latin.i", "byte 3 is not UTF-8"),
        ("nowhere/x.i", "there is no file"),
    ]:
        with pytest.raises(IngotError) as raised:
            read(name)
        assert says in str(raised.value)


def test_digest_follows_text_includes_and_overrides(folder: Path) -> None:
    plain = read_text("a = 1")
    assert plain.digest == hashlib.sha256(b"a = 1").hexdigest()
    assert read_text("a = 1", overrides=["b:=1"]).digest != plain.digest
    before = read_text("!include sub/part.i").digest
    (folder / "sub" / "other part.i").write_text("")
    assert read_text("!include sub/part.i").digest != before


@pytest.mark.parametrize(
    "text",
    ["x = \\mu", "x = 1 2", "x", "=", "[x", "]", "x = 'a", "x = '''a", "x = ${a", "[]", "[a]",
     "[./a]\n[]", "[a] [../]", "[a b]\n[]", "é = 1", "x = 'é\" y", "x = ';'", "!include", "x : 1",
     "[ ]", "x = a'b", "\0"],
)  # fmt: skip
def test_broken_text_is_one_problem_with_a_place_and_a_fix(text: str) -> None:
    with pytest.raises(IngotError) as raised:
        read_text("# é\n" + text)
    (problem,) = raised.value.problems
    assert problem.code == "parse-error" and problem.span is not None
    assert problem.span.line == 2


@given(st.text(st.sampled_from("ab[]/.'\"=:;#${} \n!\\é1"), max_size=30))
@settings(max_examples=300, deadline=None)
def test_any_text_is_read_or_refused_with_a_place(text: str) -> None:
    try:
        read_text(text)
    except IngotError as error:
        assert all(problem.span for problem in error.problems)


NOWHERE = Span("", 0)
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.~<>+-]{0,6}", fullmatch=True)
words = st.from_regex(r"[A-Za-z0-9_.,()/+*-]{1,6}", fullmatch=True)
plain = st.lists(words, max_size=4).map(" ".join)
raw = st.text(st.sampled_from("ab 1#'\"\n\t[]{}=;$é"), max_size=12).filter(
    lambda text: (
        not any(mark in text for mark in ("'''", '"""', "${"))
        and not text.startswith(("'", '"'))
        and not text.endswith(("'", '"'))
    )
)


def fields_of(name: str) -> st.SearchStrategy[Field]:
    flat = plain.map(lambda text: Field(name, text, NOWHERE, NOWHERE))
    return flat | raw.map(lambda text: Field(name, text, NOWHERE, NOWHERE, verbatim=True))


@st.composite
def parts(draw: st.DrawFn, path: str, depth: int) -> tuple[tuple[Field, ...], tuple[Block, ...]]:
    fields = [draw(fields_of(name)) for name in draw(st.lists(names, max_size=3, unique=True))]
    below = draw(st.lists(names, max_size=3 if depth else 0, unique=True))
    inner = [(name, f"{path}/{name}".strip("/")) for name in below]
    blocks = [Block(name, full, *draw(parts(full, depth - 1)), NOWHERE) for name, full in inner]
    return tuple(fields), tuple(blocks)


@given(parts("", 2))
@settings(max_examples=100, deadline=None)
def test_tree_printed_and_read_is_the_same(
    content: tuple[tuple[Field, ...], tuple[Block, ...]],
) -> None:
    tree = Tree(*content)
    assert read_text(str(tree)) == tree


def test_reading_needs_no_torch() -> None:
    check = "import sys, ingot.hit; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def cases(project: str) -> list[Path]:
    """Files of another project, where they lie beside the checkout."""
    found = sorted((CASES / project).rglob("*.i"))
    if not found:
        pytest.skip("the cases of other projects do not lie beside this checkout (../shared/cases)")
    return found


def every_field(holder: Tree | Block, path: str = "") -> list[tuple[str, int, str]]:
    own = [(f"{path}{each.name}", each.span.line, each.string()) for each in holder.fields]
    return own + [
        found for block in holder.blocks for found in every_field(block, f"{path}{block.name}/")
    ]


def nmhit_fields(node: nmhit.Node) -> list[tuple[str, int, str]]:
    found: list[tuple[str, int, str]] = []
    for child in node.children():
        if isinstance(child, nmhit.Field):
            text = child.param_str()
            found.append((child.fullpath(), child.line(), "" if text == "''" else text))
        found += nmhit_fields(child)
    return found


def test_files_of_neml2_say_what_nmhit_says() -> None:
    for file in cases("neml2"):
        assert sorted(every_field(read(file))) == sorted(nmhit_fields(nmhit.parse_file(file)))


def test_files_of_marlin_are_read() -> None:
    given_outside = ["ss=1", "cs=1", "order=1"]
    for file in cases("marlin"):
        uses = "${ss}" in file.read_text()
        activate(read(file, given_outside if uses else (), moose=True))


VARIED = """
count = 3
[Tensors]
  [times]
    type = Scalar
    values = '${count} ${Tensors/scale}'
  []
  scale = 2
[]
[Models]
  [elasticity]
    type = Elasticity
    E = 1
  []
[]
[Drivers]
  [stretch]
    type = TransientDriver
    model = elasticity
    times = times
  []
[]
"""


@pytest.mark.parametrize(
    ("override", "fix"),
    [
        ("coun:=7", "did you mean 'count'?"),
        ("foo:=bar", "mend the name, or leave it out"),
        ("Tensors/scal:=7", "did you mean 'Tensors/scale'?"),
        ("Models/elasticity:=3", "'Models/elasticity' is a block"),
        ("Models/elasticty/E:=3", "did you mean 'Models/elasticity'?"),
        ("Solvers/newton/abs_tol:=3", "mend the name, or leave it out"),
        ("Tensors/time/values:='1 2'", "did you mean 'Tensors/times'?"),
        ("Drivers/stretched/model:=other", "did you mean 'Drivers/stretch'?"),
    ],
)
def test_an_override_that_changes_nothing_is_a_doubt(override: str, fix: str) -> None:
    (doubt,) = read_text(VARIED, overrides=[override]).doubts
    assert doubt.code == "unused-override"
    assert doubt.fix is not None
    assert fix in doubt.fix
    assert doubt.span is not None
    assert doubt.span.file == "<command line>"


@pytest.mark.parametrize(
    "overrides",
    [
        ("count:=7",),
        ("Tensors/scale:=7",),
        ("Models/elasticity/nu:=0.3",),
        ("twice:=7", "count:=${twice}"),
        ("Models/part/E:=7", "count:=${Models/part/E}"),
        ("Models/other/type:=Elasticity", "Models/other/E:=3"),
        ("Solvers/newton/type:=Newton", "Models/elasticity/solver:=newton"),
        ("Settings/strict:=true",),
    ],
)
def test_an_override_that_is_read_is_no_doubt(overrides: tuple[str, ...]) -> None:
    assert not read_text(VARIED, overrides=overrides).doubts


def test_overrides_of_a_simulation_are_doubted_where_no_block_reads_them() -> None:
    text = "n = 3\n[TensorComputes]\n[Solve]\n[a]\ntype = P\nx = ${n}\n[]\n[]\n[]\n[Domain]\n[]"
    lawful = (
        "n=4", "TensorComputes/n=5", "Executioner/TimeStepper/type=ConstantDT", "Outputs/csv=true",
        "Domain/nx=5", "TensorComputes/Solve/active=a", "TensorComputes/Solve/b/type=Q",
    )  # fmt: skip
    assert not read_text(text, overrides=lawful, moose=True).doubts
    idle = ("nn=4", "TensorComputes/k=4", "TensorComputes/Solve/m=4", "Postprocessors/x=4")
    assert len(read_text(text, overrides=idle, moose=True).doubts) == len(idle)


def test_no_override_of_a_published_spec_is_doubted() -> None:
    table = CASES / "marlin" / "SPECS.md"
    if not table.is_file():
        pytest.skip("the published specs are not here")
    lines = [line for line in table.read_text().splitlines() if line.startswith("| ")][1:]
    for line in lines:
        _, file, overrides, *_ = (cell.strip() for cell in line.strip("|").split("|"))
        given = shlex.split(overrides.strip("`"))
        assert not read(table.parent / file, given, moose=True).doubts, line


def test_a_block_that_a_command_asks_for_in_vain_is_met_with_what_is_there() -> None:
    tree = read_text(VARIED)
    with pytest.raises(IngotError, match="did you mean 'stretch'"):
        tree.require("Drivers", "strech")
    with pytest.raises(IngotError, match="choose one of: stretch"):
        tree.require("Drivers", "nosuch")


def test_one_override_may_be_a_string() -> None:
    one, many = (read_text("a = 1\n", overrides=given) for given in ("a:=2", ["a:=2"]))
    assert one == many and one.fields[0].text == "2"
