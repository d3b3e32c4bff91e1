"""Every remedy leads somewhere: the commands, flags and keywords that texts name are there."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclopts import App

import ingot
from ingot.catalog import model
from ingot.cli.explained import EXPLAIN
from ingot.cli.main import app

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "ingot"
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
GAP = "\x00"
"""What stands for a value that is filled in."""


def commands(of: App = app) -> dict[str, App]:
    """The commands by their names, those of a command too."""
    found: dict[str, App] = {}
    for name in of:
        if not name.startswith("-"):
            found[name] = of[name]
            found |= {f"{name} {inner}": each for inner, each in commands(of[name]).items()}
    return found


def flags() -> dict[str, tuple[str, ...]]:
    """Every flag of every command, and the words that it takes where these are listed."""
    found: dict[str, tuple[str, ...]] = {"--help": (), "--version": (), "-h": ()}
    for command in (each for each in commands().values() if each.default_command):
        for argument in command.assemble_argument_collection():
            choices = tuple(argument.get_choices() or ())
            for name in argument.names:
                if name.startswith("-"):
                    found[name] = (*found.get(name, ()), *choices)
    return found


def literal(node: ast.AST) -> str:
    """The text of a string, a gap where a value is filled in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(literal(part) or GAP for part in node.values)
    return ""


def remedies(file: Path) -> Iterator[str]:
    """The texts of a module that a user may read: what is given to an error, and what is a fix."""
    for node in ast.walk(ast.parse(file.read_text())):
        called = node.func if isinstance(node, ast.Call) else None
        name = getattr(called, "id", getattr(called, "attr", ""))
        if isinstance(node, ast.Call) and re.search("roblem|refuse|wrong|Fault|Unlawful", name):
            texts = [each for part in (*node.args, *node.keywords) for each in ast.walk(part)]
        elif isinstance(node, ast.Assign) and "fix" in ast.unparse(node.targets[0]):
            texts = list(ast.walk(node.value))
        else:
            continue
        yield from filter(None, map(literal, texts))


def texts() -> dict[str, list[str]]:
    """All texts by where they stand."""
    found = {str(file.relative_to(ROOT)): list(remedies(file)) for file in SOURCE.rglob("*.py")}
    found["ingot explain"] = list(EXPLAIN.values())
    for page in PAGES:
        paragraphs = re.split(r"\n\s*\n|\n(?=[-|#])", page.read_text())
        lines = (line for text in paragraphs for line in text.split(". "))
        # the first column of this page is what the peer has
        lines = (
            re.sub(r"^\| [^|]*\|", "", each) if "neml2" in page.name else each for each in lines
        )
        # what is to come is said to be so
        found[page.name] = [line for line in lines if "to come" not in line.lower()]
    return found


TEXTS = texts()
COMMANDS, FLAGS = commands(), flags()
COMPILERS = {
    "--std", "--compressed-storage", "--user", "--index-url", "--extra-index-url", "--build",
    "--install",
}  # fmt: skip
SCRIPTS = re.compile(r"python -m ((?:benchmarks|tests)\.[\w.]+)([^`\n]*)")
"""A script of the repository and its arguments: these are its own flags, not those of `ingot`."""


@pytest.mark.parametrize("place", [place for place, found in TEXTS.items() if found])
def test_commands_flags_and_keywords_are_there(place: str) -> None:
    keywords = inspect.signature(model.__call__).parameters
    for text in TEXTS[place]:
        text = SCRIPTS.sub("", text)
        for command in re.findall(r"(?:^|`|: |\b(?:by|with|write|run|use) )ingot ([a-z]+)\b", text):
            assert command in COMMANDS, f"`ingot {command}` in: {text}"
        if "ingot" in text or place.startswith("src") or place == "ingot explain":
            for flag, word in re.findall(r"(?<![\w-])(--[a-z][a-z-]+)(?: ([a-z]\w*)\b)?", text):
                known = FLAGS.get(flag)
                assert known is not None or flag in COMPILERS, f"{flag} in: {text}"
                near = re.search(rf"{flag} {word}[\s`,;.)]*$|{flag} {word}`", text)
                assert not (known and word and near) or word in known, f"{flag} {word} in: {text}"
        for keyword in re.findall(r"@model\((\w+)=", text):
            assert keyword in keywords, f"@model({keyword}=...) in: {text}"
        for name in re.findall(r"\bingot\.([a-z_]\w*)\(", text):
            assert name in ingot.__all__, f"ingot.{name}(...) in: {text}"
        assert not re.search(rf"(?<![\w-])-p {GAP}", text), (
            f"-p takes the name that show prints: {text}"
        )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_scripts_and_their_flags_are_there(page: Path) -> None:
    for script, given in SCRIPTS.findall(page.read_text()):
        file = ROOT / f"{script.replace('.', '/')}.py"
        assert file.exists(), f"python -m {script} in {page.name}"
        for flag in re.findall(r"(?<!\S)--[a-z][a-z-]+", given):
            assert f'"{flag}"' in file.read_text(), f"{flag} of {script} in {page.name}"


def test_remedies_that_lead_nowhere_are_found() -> None:
    assert "format" not in COMMANDS
    assert "mps" not in FLAGS["--device"]
    assert {"cpu", "float32"} <= {word for words in FLAGS.values() for word in words}
    assert sum(map(len, TEXTS.values())) > 500
