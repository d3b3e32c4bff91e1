"""Every Python block of the pages runs, and so does every example; pages keep up with the code."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.pages import PLAIN, RUN, SAVED, find_blocks, saved_files, write_script

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(DOCS.glob("*.md")),
    *sorted(DOCS.glob("tutorials/*.md")),
]
# Why a block is not run; a test compares this with the pages.
NORUN = {
    ("README.md", "$ make run"): "makes an environment; its times are those of one machine",
    (
        "CONTRIBUTING.md",
        "$ make run                 # .venv with pinned versions, and a first result",
    ): "makes an environment; its times are those of one machine",
    ("install.md", "$ make run"): "makes an environment; its times are those of one machine",
    ("install.md", "$ pip install ."): "installs packages from an index",
    ("editor.md", "{"): "files of an extension of VS Code, which is not here",
    (
        "editor.md",
        "const vscode = require('vscode');",
    ): "files of an extension of VS Code, which is not here",
    (
        "editor.md",
        "vim.filetype.add({ extension = { i = 'hit' } })",
    ): "settings of Neovim, which is not here",
    ("fem.md", "$ python examples/fem/plate_skfem.py"): "its times are those of one machine",
    ("fem.md", "def assemble(u, end):"): "a part of examples/fem/plate_skfem.py",
    (
        "fem.md",
        "$ apt-get install python3-dolfinx",
    ): "installs packages of the system and from an index",
    (
        "cpp.md",
        "$ cp -r $(ingot package cpp)/examples . && cd examples",
    ): "builds programs; tests/cpp builds and runs the same",
    (
        "cpp.md",
        "find_package(ingot REQUIRED)                  # COMPONENTS torch for packages of graphs",
    ): "a part of a CMakeLists.txt",
    ("cpp.md", "#include <ingot/ingot.h>"): "a part of a program; tests/cpp builds it",
    (
        "cpp.md",
        "Arrays forward(const Arrays& inputs, With with = {}) const;",
    ): "declarations of the headers; tests/cpp finds each there",
    (
        "cpp.md",
        "const std::vector<double> along(6 * points, 1e-3), weights(6 * points, 1.0);",
    ): "a part of a program; tests/cpp builds it",
    ("cpp.md", "const int64_t steps = 11;"): "a part of a program; tests/cpp builds it",
    (
        "cpp.md",
        "const ingot::Solver& solve = model.metadata().solvers.at(0);  // its name and rules",
    ): "a part of a program; tests/cpp builds it",
    (
        "cpp.md",
        '$ T=$(python -c "import torch; print(torch.__path__[0])")',
    ): "takes a minute of compiling",
    (
        "moose.md",
        "ADDITIONAL_INCLUDES += -I$(shell ingot package cpp --include)",
    ): "a part of a Makefile",
    ("moose.md", "const double r = std::sqrt(2.0);"): "a part of a program",
    (
        "moose.md",
        "$ g++ -std=c++17 -O2 -I$(ingot package cpp --include) moose.cpp -o moose -ldl -pthread",
    ): "builds a program; tests/cpp builds and runs the same",
    (
        "fields-examples.md",
        "$ python examples/pfhub1a.py docs 2e4",
    ): "half a minute of one core, and it writes the picture of this page",
}


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT)).removeprefix("docs/")


def run(*arguments: str, folder: Path) -> None:
    """Run Python on its own, since a page may declare laws of names that exist."""
    here = Path(sys.executable).parent
    env = {"PYTHONPATH": str(ROOT / "src"), "PATH": f"{here}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr


def run_page(page: Path, folder: Path, *, commands: bool) -> None:
    for name in ("examples", "benchmarks"):
        (folder / name).symlink_to(ROOT / name)
    text = page.read_text()
    for name, body in saved_files(text).items():
        (folder / name).write_text(body)
    (folder / "page.py").write_text(write_script(text, commands=commands))
    run("page.py", folder=folder)


@pytest.mark.parametrize(
    "page", [p for p in PAGES if p.parent.name != "tutorials"], ids=lambda page: page.name
)
def test_blocks_of_a_page_run(page: Path, tmp_path: Path) -> None:
    run_page(page, tmp_path, commands=False)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "page",
    [p for p in PAGES if p.parent.name == "tutorials"
     or any(b.language == "console" and not b.norun for b in find_blocks(p.read_text()))],
    ids=name_of,
)  # fmt: skip
def test_blocks_and_commands_of_a_page_run(page: Path, tmp_path: Path) -> None:
    run_page(page, tmp_path, commands=True)


def test_blocks_that_are_not_run_say_why() -> None:
    reasons = {
        (name_of(page), block.body.partition("\n")[0]): block.norun
        for page in PAGES
        for block in find_blocks(page.read_text())
        if block.norun
    }
    assert reasons == NORUN


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_is_run_saved_or_printed(page: Path) -> None:
    for block in find_blocks(page.read_text()):
        known = block.language in (*RUN, *SAVED, *PLAIN) or block.language.startswith("{")
        assert known or block.norun, f"a block of '{block.language}' is not run: say why"
        if block.language in PLAIN:
            assert not re.search(r"^\$ ", block.body, re.MULTILINE), "a command is ```console"


def test_every_page_is_in_the_site() -> None:
    index = (DOCS / "index.md").read_text()
    listed = [e for b in find_blocks(index) if b.language == "{toctree}" for e in b.body.split()]
    pages = {p.relative_to(DOCS).with_suffix("").as_posix() for p in PAGES[2:]} - {"index"}
    assert pages - set(listed) == set(), "name it in a toctree of docs/index.md"


@pytest.mark.exhaustive
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="the site is built by Sphinx: install ingot[docs]")
    run("-m", "sphinx", "-W", "-q", "-b", "html", str(DOCS), "site", folder=tmp_path)
    site = tmp_path / "site"
    assert "VoceIsotropicHardening" in (site / "types" / "hardening.html").read_text()
    assert "voceisotropichardening" in (site / "searchindex.js").read_text()
    fetched = re.compile(r"""<(?:script|link|img)[^>]+(?:src|href)=["']https?:""")
    assert [p for p in site.rglob("*.html") if fetched.search(p.read_text())] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
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


def test_the_table_of_extras_is_that_of_the_project() -> None:
    from ingot.extras import PURPOSES

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (DOCS / "install.md").read_text().partition("## Extras")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \|[^|]+\| (.+) \|$", page, re.MULTILINE))
    assert list(rows) == list(project["optional-dependencies"])
    assert {name: text.replace("`", "") for name, text in rows.items()} == PURPOSES


def test_hooks_and_workflow_call_what_is_there() -> None:
    yaml = pytest.importorskip("yaml", reason="the files are YAML, and pyyaml is not installed")
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert {repo["repo"] for repo in hooks} == {"local"}
    (job,) = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"].values()
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert ".ci/run" in commands and os.access(ROOT / ".ci" / "run", os.X_OK)
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert "docs" in targets and "make docs" in commands


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
              "--compute-device", "--n-threads", "--load", "--ranks"}  # fmt: skip
    assert {f for f in flags - fields if not re.search(rf"{f}\b", part)} == set()
    assert {f for f in theirs.split() if f"`{f}" not in part} == set()


QUICK = ("crystal.py", "pfhub1a.py", "j2.py")


@pytest.mark.slow
@pytest.mark.parametrize(
    "example",
    [pytest.param(file, marks=() if file.name in QUICK else pytest.mark.exhaustive)
     for file in sorted((ROOT / "examples").glob("*.py"))],
    ids=lambda example: example.name,
)  # fmt: skip
def test_an_example_runs(example: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the examples plot: install ingot[plot]")
    run(str(example), str(tmp_path), folder=tmp_path)
    assert sorted(tmp_path.glob(f"{example.stem}.*"))


@pytest.mark.parametrize(("example", "below"), [("j2.py", 25), ("cyclic.i", 40)])
def test_a_first_model_is_short(example: str, below: int) -> None:
    assert len((ROOT / "examples" / example).read_text().splitlines()) < below


def test_every_example_is_in_the_gallery() -> None:
    page = (DOCS / "examples.md").read_text()
    shown = re.findall(r"\(\.\./examples/(\w+\.py)\)", page)
    assert sorted(shown) == sorted(file.name for file in (ROOT / "examples").glob("*.py"))
