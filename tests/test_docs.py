"""Every Python block of the pages runs, and so does every example."""

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
    files = [body for language, body in blocks if language == "ini"]
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


@pytest.mark.slow
@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda e: e.name)
def test_an_example_runs(example: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the examples plot: install ingot[plot]")
    run(str(example), str(tmp_path), folder=tmp_path)
    assert sorted(tmp_path.glob(f"{example.stem}.*"))
