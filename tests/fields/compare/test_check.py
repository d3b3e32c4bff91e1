"""Checking: runs go to their own folder, and only what fits the reference passes."""

import logging
import sys
from pathlib import Path

import pytest

from ingot.drivers import Verdict
from ingot.errors import IngotError, Problem, warn_of
from ingot.fields.compare import Skipped, Spec, chains, check_all, read_specs

TABLE = "time,a\n0,1\n1,2\n"


class Fake:
    """A runner that writes a table, says a word, or stops, as its overrides tell."""

    def __init__(self) -> None:
        self.runs: list[tuple[str, tuple[str, ...], str]] = []

    def __call__(self, spec: Spec, folder: Path) -> None:
        assert spec.input is not None
        self.runs.append((spec.input.name, spec.overrides, folder.name))
        assert not list(folder.iterdir()), "a run begins in an empty folder"
        given = dict(word.split("=", 1) for word in spec.overrides)
        if "stop" in given:
            raise IngotError([Problem("wrong-value", given["stop"])])
        if "bug" in given:
            raise ZeroDivisionError("division by zero")
        if "warn" in given:
            warn_of([Problem("unused-override", given["warn"])])
        if "say" in given:
            print(given["say"])
            print("to stderr", file=sys.stderr)
            logging.getLogger("ingot").warning("logged")
        (folder / "out.csv").write_text(TABLE.replace("1,2", f"1,{given.get('a', '2')}"))
        (folder / "sub").mkdir()
        (folder / "sub" / "more.csv").write_text(TABLE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "case" / "gold" / "sub").mkdir(parents=True)
    (tmp_path / "case" / "in.i").write_text("")
    (tmp_path / "case" / "gold" / "out.csv").write_text(TABLE)
    (tmp_path / "case" / "gold" / "sub" / "more.csv").write_text(TABLE)
    return tmp_path


def results(folder: Path, blocks: str, run: Fake) -> dict[str, Verdict | Skipped]:
    (folder / "case" / "tests").write_text(f"[Tests]\n{blocks}\n[]\n")
    before = sorted((folder / "case").rglob("*"))
    work = folder / "work"
    chained = chains(read_specs(folder / "case" / "tests"))
    found = {
        spec.name: result
        for number, chain in enumerate(chained)
        for spec, result in check_all(chain, run, work / str(number))
    }
    assert sorted((folder / "case").rglob("*")) == before, "nothing is written beside the spec"
    return found


def block(name: str, lines: str, kind: str = "CSVDiff") -> str:
    files = "csvdiff = out.csv\n" if kind == "CSVDiff" else ""
    return f"[{name}]\ntype = {kind}\ninput = in.i\n{files}{lines}\n[]\n"


def says(result: Verdict | Skipped) -> str:
    assert isinstance(result, Verdict) and not result.passed
    return result.problems[0].message


def test_run_that_fits_passes_and_one_that_does_not_fails(folder: Path) -> None:
    run = Fake()
    found = results(folder, block("good", "") + block("bad", "cli_args = a=3"), run)
    good = found["good"]
    assert isinstance(good, Verdict) and good.passed and good.checks == 4
    assert says(found["bad"]) == (
        "out.csv differs from gold/out.csv: column 'a': in row 2 (time = 1) is 3 instead of 2,"
        " off by 1 (0.33 relative) (allowed: 5.5e-06 relative, 1e-10 counts as zero);"
        " 1 of 2 differ"
    )
    assert run.runs == [("in.i", (), "good"), ("in.i", ("a=3",), "bad")]


def test_every_listed_file_is_compared(folder: Path) -> None:
    (folder / "case" / "gold" / "sub" / "more.csv").write_text(TABLE.replace("a", "b"))
    lines = "[two]\ntype = CSVDiff\ninput = in.i\ncsvdiff = 'out.csv sub/more.csv'\n[]\n"
    found = results(folder, lines, Fake())
    assert says(found["two"]).startswith("sub/more.csv differs from gold/sub/more.csv: column 'b'")


def test_missing_files_fail(folder: Path) -> None:
    (folder / "case" / "gold" / "other.csv").write_text(TABLE)
    lines = block("a", "").replace("out.csv", "other.csv") + block("b", "gold_dir = silver")
    found = results(folder, lines, Fake())
    assert says(found["a"]) == "the run wrote no 'other.csv', but out.csv, sub/more.csv"
    assert "there is no reference" in says(found["b"]) and "silver" in says(found["b"])


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ("'Constant null was .* never'", None),
        ("'Constants null'", "the run stopped with 'Constant null was requested but never"),
        ("'null('", "is not a pattern"),
    ],
)
def test_error_that_is_wanted(folder: Path, wanted: str, told: str | None) -> None:
    stop = "cli_args = 'stop=\"Constant null was requested but never declared\"'"
    lines = block("stops", f"{stop}\nexpect_err = {wanted}", "RunException")
    result = results(folder, lines, Fake())["stops"]
    if told is None:
        assert isinstance(result, Verdict) and result.passed
    else:
        assert told in says(result)


def test_error_that_does_not_come_fails(folder: Path) -> None:
    found = results(folder, block("stops", "expect_err = boom", "RunException"), Fake())
    assert says(found["stops"]) == "the run should stop with 'boom', but did not"


def test_error_that_is_not_wanted_fails(folder: Path) -> None:
    lines = block("a", "cli_args = stop=boom") + block("b", "cli_args = stop=boom", "RunApp")
    found = results(folder, lines, Fake())
    assert says(found["a"]) == says(found["b"]) == "boom"


def test_bug_in_one_run_fails_that_spec_alone(folder: Path) -> None:
    found = results(folder, block("a", "cli_args = bug=1") + block("b", ""), Fake())
    assert says(found["a"]) == "the run broke off: ZeroDivisionError: division by zero"
    assert isinstance(found["b"], Verdict) and found["b"].passed


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("expect_out = 'h[ae]llo'", None),
        ("expect_out = 'to stderr'", None),
        ("expect_out = logged", None),
        ("expect_out = 'h[ae]llo'\nmatch_literal = true", "the run did not print 'h[ae]llo'"),
        ("expect_out = bye", "the run did not print 'bye'"),
        ("absent_out = bye", None),
        ("absent_out = hello", "the run printed 'hello'"),
    ],
)
def test_words_that_are_printed(folder: Path, lines: str, told: str | None) -> None:
    given = block("says", f"cli_args = say=hello\n{lines}", "RunApp")
    result = results(folder, given, Fake())["says"]
    if told is None:
        assert isinstance(result, Verdict) and result.passed
    else:
        assert says(result) == told


def test_a_warning_is_seen_in_every_spec_that_gives_it(folder: Path) -> None:
    lines = "cli_args = warn=careful\n"
    some = [block(f"is{n}", lines + "expect_out = careful", "RunApp") for n in range(2)]
    some += [block("not", lines + "absent_out = careful", "RunApp")]
    found = results(folder, "".join(some), Fake())
    assert says(found["not"]) == "the run printed 'careful'"
    for name in ("is0", "is1"):
        result = found[name]
        assert isinstance(result, Verdict) and result.passed


def test_spec_that_runs_nothing_compares_the_results_of_another(folder: Path) -> None:
    run = Fake()
    again = "should_execute = false\nprereq = first"
    found = results(folder, block("second", again) + block("first", ""), run)
    assert [each.passed for each in found.values() if isinstance(each, Verdict)] == [True, True]
    assert list(found) == ["first", "second"] and len(run.runs) == 1


def test_what_waits_for_a_failure_is_skipped(folder: Path) -> None:
    lines = block("a", "cli_args = a=3") + block("b", "prereq = a") + block("c", "skip = 'slow'")
    found = results(folder, lines, Fake())
    assert found["b"] == Skipped("'a' comes first, and did not pass")
    assert found["c"] == Skipped("slow")


def test_specs_that_wait_for_one_another_fail(folder: Path) -> None:
    found = results(folder, block("a", "prereq = b") + block("b", "prereq = a"), Fake())
    assert says(found["a"]) == says(found["b"]) == "these tests wait for one another: a, b"


def test_specs_are_cut_into_chains(folder: Path) -> None:
    lines = "".join(block(n, w) for n, w in [("a", ""), ("b", ""), ("c", "prereq = a"), ("d", "")])
    (folder / "case" / "tests").write_text(f"[Tests]\n{lines}[]\n")
    cut = chains(read_specs(folder / "case" / "tests"))
    assert [[spec.name for spec in chain] for chain in cut] == [["b"], ["a", "c"], ["d"]]
