"""Measured numbers of the pages are those that scripts have stored."""

import json
import re
from pathlib import Path

import pytest

from benchmarks import bench, figures


@pytest.mark.parametrize("page", figures.pages(), ids=lambda page: page.name)
def test_a_page_holds_no_stale_number(page: Path) -> None:
    assert page.read_text() == figures.fill(page.read_text()), "run: python -m benchmarks.figures"


def test_every_result_is_whole_and_shown() -> None:
    text = "".join(page.read_text() for page in figures.pages())
    tables = {at[2] for at in figures.TABLE.finditer(text)}
    numbers = {(at[2], at[3]) for at in figures.NUMBER.finditer(text)}
    for file in sorted(figures.RESULTS.glob("*.json")):
        result = figures.read_result(file.stem)
        assert all(result[key] for key in ("taken", "machine", "command")), file
        assert all(len(row) == len(result["columns"]) for row in result["rows"]), file
        assert (file.stem in tables) == bool(result["rows"]), f"no page shows {file}"
        assert {(file.stem, key) for key in result["values"]} <= numbers, file


def test_tables_of_a_page_are_marked() -> None:
    """A table of times that no script fills would grow old unseen."""
    for page in figures.pages():
        unmarked = figures.TABLE.sub("", page.read_text())
        timed = re.findall(r"^\|.*\b(?:µs|ms|compile s)\b.*\|\n\|[-:|]+\|$", unmarked, re.MULTILINE)
        assert timed == [], page


def test_what_is_stored_is_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "RESULTS", tmp_path)
    rows = [("a", 1, 0.12345, None), ("b", 1000, 123456.0, "")]
    figures.write_result(tmp_path, "new", "python -m x", ("case", "n", "µs", "s"), rows, {"k": 2.5})
    empty = "<!-- table: new -->\n<!-- end -->\nbetween\n"
    assert figures.fill(empty + empty).count("between\n<!-- table") == 1
    page = "x\n<!-- table: new -->\nold\n<!-- end -->\n\nat <!-- new.k -->7<!-- end --> µs\n"
    filled = figures.fill(page)
    assert "| case | n | µs | s |\n|---|--:|--:|--:|\n| a | 1 | 0.123 |  |\n" in filled
    assert "| b | 1000 | 1.23e+05 |  |\n<!-- end -->" in filled
    assert filled.endswith("at <!-- new.k -->2.5<!-- end --> µs\n")
    assert figures.fill(filled) == filled


def test_the_benchmark_stores_the_tables_that_it_prints(tmp_path: Path) -> None:
    cost = bench.Cost(2.0, 2.0, [(1.0, 1.0)])
    half = bench.Cost(1.0, 1.0, [(1.0, 1.0)])
    costs = {"peer": cost, "jax steps": cost, "jax scan": cost, "ingot": half, "ingot steps": half}
    seconds = {"peer": 10.0, "ingot": 0.5, "jax steps": 3.0}
    rows = [bench.Row("chaboche", n, costs, seconds, {}, 0.25) for n in (1, 1000)]
    bench.store(rows, tmp_path)
    stored = {file.stem: json.loads(file.read_text()) for file in tmp_path.glob("*.json")}
    assert set(stored) == {"neml2", "jax", "floor"}
    assert stored["neml2"]["rows"][1] == ["chaboche", "1000", "2", "1", "2", "10", "0.5"]
    assert stored["neml2"]["values"] == {"mean": "2"}
    assert stored["floor"]["rows"] == [["chaboche", "1000", "1", "0.25", "25"]]
    for name, result in stored.items():
        shown = figures.read_result(name)
        assert result["columns"] == shown["columns"]
        assert set(result["values"]) >= set(shown["values"])


def test_times_of_compiling_are_stored_side_by_side(tmp_path: Path) -> None:
    regions = pytest.importorskip("benchmarks.regions")
    rows = [
        {"what": "compile", "train": False, "state": state, "count": 4, "way": "ingot", "cpu": cpu}
        for state, cpu in (("cold", 8.0), ("cold", 9.0), ("cold", 8.2), ("warm", 1.0))
    ]
    regions.store(rows, tmp_path)
    (file,) = tmp_path.glob("*.json")
    stored = json.loads(file.read_text())
    assert stored["columns"] == ["blocks", "", "ingot"]
    assert stored["rows"] == [["4", "inference", "8.2 / 1.0"], ["4", "training", ""]]
