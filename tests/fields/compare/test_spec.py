"""Specs: what a `tests` file says, and what in it is wrong."""

from pathlib import Path

import pytest

from ingot.errors import IngotError
from ingot.fields.compare import Limits, Spec, read_specs

FILE = """
[Tests]
  design = 'a.md'
  issues = '#1 #22'
  [table]
    type = CSVDiff
    input = solve.i
    csvdiff = 'solve_out.csv more.csv'
    cli_args = 'Domain/nx=9 Postprocessors/active="min_c max_c"'
    requirement = "The system shall do what's right,"
                  " also with 'quotes'."
    rel_err = 1e-3
    abs_zero = 1e-7
    capabilities = 'neml2'
    allow_warnings = true
  []
  [fields]
    requirement = 'Fields'
    [h5]
      type = HDF5Diff
      input = solve.i
      hdf5diff = solve.h5
      abs_tol = 1e-13
      min_parallel = 2
      prereq = table
    []
    [xml]
      type = XMLDiff
      xmldiff = solve.xmf
      should_execute = false
      prereq = h5
    []
    [exodus]
      type = Exodiff
      input = solve.i
      exodiff = 'solve.e'
      skip = 'later #3'
    []
  []
  [wrong]
    type = RunException
    input = solve.i
    expect_err = 'Constants? null .* declared$'
  []
  [runs]
    type = 'RunApp'
    input = solve.i
    expect_out = 'JIT executor built'
  []
[]
"""


def specs(folder: Path, text: str = FILE) -> dict[str, Spec]:
    (folder / "tests").write_text(text)
    return {spec.name: spec for spec in read_specs(folder / "tests")}


def test_every_spec_is_found_by_its_group_and_name(tmp_path: Path) -> None:
    found = specs(tmp_path)
    names = ["table", "fields/h5", "fields/xml", "fields/exodus", "wrong", "runs"]
    assert list(found) == names
    assert not any(spec.problems for spec in found.values())


def test_options_say_what_to_run_and_compare(tmp_path: Path) -> None:
    found = specs(tmp_path)
    table = found["table"]
    assert table.input == tmp_path / "solve.i"
    assert table.overrides == ("Domain/nx=9", "Postprocessors/active=min_c max_c")
    assert table.outputs == ("solve_out.csv", "more.csv")
    assert table.limits == Limits(1e-3, 1e-7)
    assert found["fields/h5"].limits == Limits(0.0, 0.0, 1e-13)
    assert (found["fields/h5"].ranks, found["fields/h5"].after) == (2, ("table",))
    assert found["fields/xml"].limits == Limits(5.5e-6, 1e-10)
    assert not found["fields/xml"].executes and found["fields/xml"].after == ("fields/h5",)
    assert found["fields/exodus"].skip == "later #3"
    assert found["wrong"].fails and found["wrong"].error == "Constants? null .* declared$"
    assert found["runs"].says == "JIT executor built" and not found["runs"].fails


def test_hdf5_has_a_limit_of_its_own_where_none_is_given(tmp_path: Path) -> None:
    text = FILE.replace("      abs_tol = 1e-13\n", "")
    assert specs(tmp_path, text)["fields/h5"].limits == Limits(0.0, 0.0, 1e-15)


def test_columns_may_have_limits(tmp_path: Path) -> None:
    given = "override_columns = 'a b'\noverride_rel_err = '0.1 0.2'\noverride_abs_zero = '0 1'\n"
    table = specs(tmp_path, FILE.replace("    rel_err = 1e-3\n", given))["table"]
    assert table.columns == {"a": Limits(0.1, 0.0), "b": Limits(0.2, 1.0)}
    wrong = given.replace("0.1 0.2", "0.1")
    (problem,) = specs(tmp_path, FILE.replace("    rel_err = 1e-3\n", wrong))["table"].problems
    assert "should be 2 numbers, one for each of 'override_columns'" in problem.message


@pytest.mark.parametrize(
    ("old", "new", "name", "says"),
    [
        ("rel_err = 1e-3", "rel_er = 1e-3", "table", "CSVDiff has no option 'rel_er'"),
        ("abs_tol = 1e-13", "rel_err = 1", "fields/h5", "HDF5Diff has no option 'rel_err'"),
        ("abs_zero = 1e-7", "custom_cmp = a", "table", "CSVDiff has no option 'custom_cmp'"),
        ("type = CSVDiff", "type = CSVdiff", "table", "there is no test type 'CSVdiff'"),
        ("type = CSVDiff", "", "table", "needs the option 'type'"),
        ("input = solve.i\n    csvdiff", "csvdiff", "table", "CSVDiff needs the option 'input'"),
        ("hdf5diff = solve.h5", "", "fields/h5", "HDF5Diff needs the option 'hdf5diff'"),
        ("hdf5diff = solve.h5", "hdf5diff = ''", "fields/h5", "the names of files to compare"),
        ("prereq = table", "prereq = tabel", "fields/h5", "waits for 'tabel', which is no test"),
        ("prereq = h5", "", "fields/xml", "does not say whose results it compares"),
        ("Domain/nx=9", "--n-threads=2", "table", "holds '--n-threads=2'"),
        ("Domain/nx=9", "nx", "table", "should be a list of overrides, but holds 'nx'"),
        ("should_execute = false", "should_execute = no", "fields/xml", "should be true or false"),
        ("abs_tol = 1e-13", "abs_tol = small", "fields/h5", "should be a number"),
        ("expect_err", "expect_error", "wrong", "RunException has no option 'expect_error'"),
        ("abs_zero = 1e-7", "[sub]\n[]", "table", "CSVDiff has no sub-block 'sub'"),
    ],
)
def test_wrong_spec_carries_its_problem_and_the_others_do_not(
    tmp_path: Path, old: str, new: str, name: str, says: str
) -> None:
    assert old in FILE
    found = specs(tmp_path, FILE.replace(old, new))
    assert says in str(found[name].problems[0].message)
    assert found[name].problems[0].span is not None
    assert [each.name for each in found.values() if each.problems] == [name]


def test_unknown_option_of_a_group_is_an_error_with_its_line(tmp_path: Path) -> None:
    text = FILE.replace("requirement = 'Fields'", "requirment = 'Fields'")
    with pytest.raises(IngotError, match=r"did you mean 'requirement'\?"):
        specs(tmp_path, text)
    with pytest.raises(IngotError, match=r"has no block \[Tests\]"):
        specs(tmp_path, "[Test]\n[]\n")


def test_inactive_specs_do_not_exist(tmp_path: Path) -> None:
    found = specs(tmp_path, FILE.replace("[Tests]\n", "[Tests]\n  active = runs\n"))
    assert list(found) == ["runs"]
