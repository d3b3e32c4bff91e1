"""`ingot cache`: what is kept is listed and cleared."""

import json
from pathlib import Path

import pytest

from ingot.cli.main import status
from ingot.codegen.cache import Cache

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return Cache(tmp_path / "ingot")


def test_entries_are_listed_and_cleared(cache: Cache, capsys: Captured) -> None:
    cache.put("kernel", "one", bytes(2**20))
    cache.put("graph", "two", bytes(10))
    assert status(["cache", "list"]) == 0
    said = capsys.readouterr().out
    assert "kernel    one      1.00 MiB" in said
    assert said.endswith(f"{cache.folder}: 2 entries, 1.00 MiB, of 2048 MiB at most\n")
    assert status(["cache", "list", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {(e["kind"], e["key"]) for e in told["entries"]} == {("kernel", "one"), ("graph", "two")}
    assert told["bytes"] == sum(e["bytes"] for e in told["entries"])
    assert status(["cache", "clear", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["removed"] == 2
    assert cache.entries() == []
    assert status(["cache", "clear"]) == 0
    assert capsys.readouterr().out == f"{cache.folder}: removed 0 entries, 0.00 MiB\n"


def test_a_place_that_cannot_be_written_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    (tmp_path / "other").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    assert status(["cache", "list"]) == 0
    assert capsys.readouterr().err.startswith("warning[no-cache]: the cache in ")


def test_wrong_usage_exits_with_two(cache: Cache, capsys: Captured) -> None:
    assert status(["cache", "lost"]) == 2
    assert capsys.readouterr().err
