"""Every Python block of the pages runs, and so does every example; pages keep up with the code."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILE_NAME = re.compile(r"[Ss]aved as `([^`]+)`")


def run(*arguments: str, folder: Path) -> None:
    """Run Python on its own, since a page may declare laws of names that exist."""
    path = {"PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_of_a_page_run(page: Path, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    text = page.read_text()
    blocks = BLOCK.findall(text)
    files = [body for language, body in blocks if language in ("ini", "c")]
    for name, body in zip(FILE_NAME.findall(text), files, strict=True):
        (tmp_path / name).write_text(body)
    (tmp_path / "page.py").write_text(
        "\n".join(b for language, b in blocks if language == "python")
    )
    run("page.py", folder=tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_are_there(page: Path) -> None:
    named = re.findall(r"[`(]((?:\w+/)+\w+\.(?:py|h|md))\b", page.read_text())
    places = (ROOT, ROOT / "src" / "ingot", page.parent)
    assert [name for name in named if not any((place / name).exists() for place in places)] == []


def test_the_table_of_support_is_the_one_printed() -> None:
    from benchmarks.support import CASES, types

    written = (ROOT / "docs" / "support.md").read_text().split(CASES)[0]
    assert written.strip() == types().strip(), "run: python -m benchmarks.support"


def test_the_pages_of_types_are_those_printed() -> None:
    from benchmarks.syntax import INDEX, PAGES, pages

    printed = pages()
    stale = [str(f.relative_to(ROOT)) for f, text in printed.items() if f.read_text() != text]
    assert stale == [], "run: python -m benchmarks.syntax"
    assert set(PAGES.glob("*.md")) <= set(printed), "run: python -m benchmarks.syntax"
    named = {link.partition("#") for link in re.findall(r"\((types/[^)]+)\)", printed[INDEX])}
    for file, _, anchor in named:
        titles = re.findall(r"^## (\w+)$", printed[ROOT / "docs" / file], re.MULTILINE)
        assert anchor in map(str.lower, titles)


def test_every_promise_names_a_test_that_exists() -> None:
    page = (ROOT / "docs" / "trust.md").read_text()
    named = re.findall(r"`(tests/[\w/.]+\.py)::(\w+)`", page)
    rows = [row for row in page.splitlines() if row.startswith("| ")][1:]
    assert len(named) >= len(rows) >= 2
    missing = [
        f"{file}::{test}" for file, test in named
        if not (ROOT / file).exists() or f"def {test}(" not in (ROOT / file).read_text()
    ]  # fmt: skip
    assert missing == []


def test_the_schema_of_the_metadata_is_the_one_printed() -> None:
    from ingot.package.metadata import json_schema

    written = json.loads((ROOT / "docs" / "metadata.schema.json").read_text())
    now = json.loads(json.dumps(json_schema()))
    assert written == now, "run: ingot package schema > docs/metadata.schema.json"


def test_every_key_of_the_metadata_is_explained() -> None:
    from ingot.package.metadata import Metadata

    page = (ROOT / "docs" / "package.md").read_text()
    assert [key for key in Metadata.__struct_fields__ if f"`{key}`" not in page] == []


def test_every_flag_of_compiling_is_mapped() -> None:
    from ingot.cli.main import app

    page = (ROOT / "docs" / "from-neml2.md").read_text()
    found = app["compile"].assemble_argument_collection(default_parameter=app.default_parameter)
    flags = {name for argument in found for name in argument.names if name.startswith("--")}
    assert flags >= {"--model", "--parameter", "--example-batch-shape"}
    assert {flag for flag in flags if not re.search(rf"{flag}\b", page)} == set()
    theirs = (
        "--dynamic-batch --no-dynamic-batch --interactive --no-stub --load --output-dir -q -j -i"
    )
    assert {flag for flag in theirs.split() if f"`{flag}" not in page} == set()


@pytest.mark.parametrize(
    ("verb", "theirs"),
    [("run", "--device --dtype"), ("inspect", "--json"),
     ("syntax", "--json --section --type --summary --server")],
)  # fmt: skip
def test_every_flag_of_other_commands_is_mapped(verb: str, theirs: str) -> None:
    from ingot.cli.main import app

    page = (ROOT / "docs" / "from-neml2.md").read_text()
    part = page.partition(f"| `neml2-{verb}`")[2].partition("\n\n")[0]
    found = app[verb].assemble_argument_collection(default_parameter=app.default_parameter)
    flags = {name for argument in found for name in argument.names if name.startswith("--")}
    fields = {"--file", "--checkpoint", "--checkpoint-every", "--restart", "--eager",
              "--compute-device", "--n-threads", "--load"}  # fmt: skip
    assert {f for f in flags - fields if not re.search(rf"{f}\b", part)} == set()
    assert {f for f in theirs.split() if f"`{f}" not in part} == set()


@pytest.mark.slow
@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda e: e.name)
def test_an_example_runs(example: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the examples plot: install ingot[plot]")
    run(str(example), str(tmp_path), folder=tmp_path)
    assert sorted(tmp_path.glob(f"{example.stem}.*"))
