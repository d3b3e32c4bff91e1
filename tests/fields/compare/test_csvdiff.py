"""Tables: header, rows and numbers must be those of the reference."""

from pathlib import Path

import pytest

from ingot.fields.compare import Compared, Limits, compare_csv

TABLE = "time,a,b\n0,0,1\n0.5,2,-3e-12\n1,4.5,nan\n"


def compared(folder: Path, text: str, **columns: Limits) -> Compared:
    (folder / "gold.csv").write_text(TABLE)
    (folder / "out.csv").write_text(text)
    return compare_csv(folder / "out.csv", folder / "gold.csv", Limits(), columns)


def test_equal_tables_pass(tmp_path: Path) -> None:
    assert compared(tmp_path, TABLE) == Compared(4)
    assert not compared(tmp_path, TABLE.replace("4.5", "4.50001")).findings
    assert not compared(tmp_path, TABLE.replace("-3e-12", "0")).findings
    shuffled = "b,time,a\r\n1,0,0\r\n0,0.5,2\r\nnan,1,4.5\r\n"
    assert not compared(tmp_path, shuffled).findings


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("4.5", "4.51", "column 'a': in row 3 (time = 1) is 4.51 instead of 4.5, off by 0.01"),
        ("-3e-12", "2e-10", "column 'b': in row 2 (time = 0.5) is 2e-10 instead of -3e-12"),
        ("time,a", "time,A", "column 'a': is missing"),
        ("time,a", "time,b", "'out.csv': has two columns of one name"),
        ("1,4.5,nan\n", "", "number of rows: is 2 instead of 3"),
        ("1,4.5,nan\n", "1,4.5,nan\n2,1,1\n", "number of rows: is 4 instead of 3"),
        ("nan", "1", "column 'b': in row 3 (time = 1) is 1 instead of nan"),
        ("4.5", "word", "column 'a': in row 3 (time = 1) is 'word' instead of '4.5'"),
        ("4.5,nan", "4.5", "'out.csv': has 2 values for 3 columns in line 4"),
        (TABLE, "", "'out.csv': is empty"),
        ("time,a,b\n0,0,1", "time,a,b,c\n0,0,1,1", "'out.csv': has 3 values for 4 columns"),
    ],
)
def test_spoiled_table_fails(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in TABLE
    findings = compared(tmp_path, TABLE.replace(old, new)).findings
    assert any(says in str(finding) for finding in findings)


def test_a_reference_that_is_no_text_fails(tmp_path: Path) -> None:
    for name, content in (("found", TABLE.encode()), ("expected", bytes(range(256)))):
        (tmp_path / name).write_bytes(content)
    (finding,) = compare_csv(tmp_path / "found", tmp_path / "expected", Limits()).findings
    assert str(finding).startswith("'expected': is no table of text: ")


def test_additional_column_fails(tmp_path: Path) -> None:
    wide = "".join(f"{line},7\n" for line in TABLE.replace("b", "b,c", 1).split()).replace(
        "c,7", "c"
    )
    (finding,) = compared(tmp_path, wide).findings
    assert str(finding) == "column 'c': is not in the reference"


def test_column_may_have_limits_of_its_own(tmp_path: Path) -> None:
    text = TABLE.replace("4.5", "4.6")
    assert compared(tmp_path, text).findings
    assert not compared(tmp_path, text, a=Limits(0.1, 1e-10)).findings


def test_published_tables_are_read_and_spoiled_ones_fail(marlin: Path, tmp_path: Path) -> None:
    golds = sorted(marlin.rglob("gold/*.csv"))
    assert golds
    for gold in golds:
        assert not compare_csv(gold, gold, Limits()).findings
        lines = gold.read_text().splitlines()
        first, _, last = lines[-1].rpartition(",")
        lines[-1] = f"{first},{float(last) * 1.0001 + 1e-9}"
        spoiled = tmp_path / gold.name
        spoiled.write_text("\n".join(lines))
        (finding,) = compare_csv(spoiled, gold, Limits()).findings
        assert f"in row {len(lines) - 1} " in str(finding)
