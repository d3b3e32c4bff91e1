"""The versions of torch that the suite is run under are those that pyproject.toml allows."""

from pathlib import Path

from tests.torch_versions import ROOT, VERSIONS, Row, add_report, allowed, pins, rooms, table

REPORT = """<testsuites><testsuite>
<testcase classname="tests.train.test_trace" name="test_a"/>
<testcase classname="tests.train.test_trace" name="test_b[1-2]"><failure/></testcase>
<testcase classname="tests.train.test_trace" name="test_c"><skipped/></testcase>
</testsuite></testsuites>"""


def test_every_allowed_version_is_run_and_no_other() -> None:
    assert all(map(allowed, VERSIONS))
    minors = [int(version.split(".")[1]) for version in VERSIONS]
    assert minors == list(range(minors[0], minors[-1] + 1))
    assert not allowed(f"2.{minors[0] - 1}.9") and not allowed(f"2.{minors[-1] + 1}.0")


def test_the_pinned_version_is_among_them() -> None:
    pinned = (ROOT / "constraints.txt").read_text()
    assert [v for v in VERSIONS if f"torch=={v}" in pinned] == ["2.13.0"]
    assert set(pinned.splitlines()) >= {*pins("2.13.0")}
    assert "torch==2.11.0" in pins("2.11.0")


def test_rooms_are_all_that_hold_tests() -> None:
    assert {"tests/graphs", "tests/train", "tests/test_docs.py"} <= set(rooms([]))
    assert rooms(["fields/jit"]) == ["tests/fields/jit"]


def test_a_report_becomes_a_row(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(REPORT)
    row = Row("2.13.0")
    add_report(tmp_path / "report.xml", row)
    name = "tests/train/test_trace.py::test_b[1-2]"
    assert list(table([row]))[-1] == f"| 2.13.0 | 1 | 1 | 1 | `{name}` |"
