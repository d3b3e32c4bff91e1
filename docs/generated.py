"""Pages of the site that follow from the code: commands, errors, and the names for Python.

They are written into `docs/reference` when the site is built, and kept nowhere else.
"""

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(__file__).parent / "reference"
MODULES = ("ingot", "ingot.catalog", "ingot.types", "ingot.drivers", "ingot.fields", "ingot.hosts",
           "ingot.train", "ingot.regions", "ingot.errors")  # fmt: skip


def write_pages() -> None:
    """Write every page that is not there as it should be."""
    FOLDER.mkdir(exist_ok=True)
    pages = {"commands": describe_commands(), "errors": describe_errors()}
    pages |= {f"api-{name}": describe_module(name) for name in MODULES}
    pages["api"] = index_modules()
    for file in set(FOLDER.glob("*.md")) - {FOLDER / f"{name}.md" for name in pages}:
        file.unlink()
    for name, text in pages.items():
        file = FOLDER / f"{name}.md"
        if not file.exists() or file.read_text() != text:
            file.write_text(text)


def describe_commands() -> str:
    """What `ingot --help` and `ingot COMMAND --help` say."""
    from ingot.cli.main import app

    text = app.generate_docs(output_format="markdown").replace("```console", "```text")
    head = "# Commands\n\nWhat `ingot --help` and `ingot COMMAND --help` print.\n\n## ingot"
    text = re.sub(r"\A# ingot", head, text)
    return re.sub(r"(?ms)^## Table of Contents.*?(?=^\*\*Commands)", "", text)


def describe_errors() -> str:
    """What `ingot explain CODE` says, of every code."""
    from ingot.cli.explained import EXPLAIN

    head = (
        "# Errors and warnings\n\nThe words between the brackets of `error[...]` and"
        " `warning[...]`; `ingot explain CODE` prints the same.\n"
    )
    parts = (f"## {code}\n\n{_escape(text)}\n" for code, text in EXPLAIN.items())
    return "\n".join([head, *parts])


def _escape(text: str) -> str:
    """Plain words as Markdown that shows them."""
    return re.sub(r"([\\`*_\[\]<>$])", r"\\\1", text)


def index_modules() -> str:
    """A line for each module."""
    rows = (f"- [`{name}`](api-{name}.md): {_sentence(importlib.import_module(name))}"
            for name in MODULES)  # fmt: skip
    toctree = "\n".join(f"api-{name}" for name in MODULES)
    head = (
        "# Python\n\nEvery public name, by the module that it is imported from. What begins with an"
        " underscore, and what stands in no list here, may change with any commit.\n"
    )
    return "\n".join([head, *rows, "", f"```{{toctree}}\n:hidden:\n\n{toctree}\n```", ""])


def _sentence(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").partition("\n\n")[0].replace("\n", " ")


def describe_module(name: str) -> str:
    """The names of a module: functions with their arguments, classes with their methods."""
    module = importlib.import_module(name)
    parts = [f"# {name}\n\n{inspect.getdoc(module)}\n"]
    for public in sorted(module.__all__, key=str.lower):
        parts += [f"## {public}\n", *describe_name(module, public)]
    return "\n".join(parts)


def describe_name(module: ModuleType, name: str) -> Iterator[str]:
    """How a name is called and what it says of itself."""
    thing = getattr(module, name)
    if inspect.isclass(thing) and _tree(thing) is not None:
        yield from _describe_class(thing)
    elif inspect.isfunction(thing) and _tree(thing) is not None:
        yield _describe_function(thing)
    else:
        # a value has no words of its own but those of its class, which say nothing of it
        yield f"A value, `{type(thing).__name__}`.\n"


def _describe_class(thing: type) -> Iterator[str]:
    tree = _tree(thing)
    assert isinstance(tree, ast.ClassDef)
    bases = ", ".join(ast.unparse(base) for base in tree.bases)
    fields = [
        ast.unparse(node)
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and not ast.unparse(node.target).startswith("_")
    ]
    lines = [f"class {thing.__name__}({bases})" if bases else f"class {thing.__name__}"]
    lines += [f"    {field}" for field in fields]  # fmt: skip
    yield "```text\n" + "\n".join(lines) + "\n```\n"
    yield f"{inspect.cleandoc(thing.__doc__ or '')}\n"
    for name, member in vars(thing).items():
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if name.startswith("_") and name != "__call__":
            continue
        if isinstance(member, property):
            yield f"`.{name}`: {_sentence(member)}\n"
        elif inspect.isfunction(function) and _tree(function) is not None:
            yield _describe_function(function)


def _describe_function(thing: Any) -> str:
    tree = _tree(thing)
    assert isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef)
    tree.body, tree.decorator_list = [ast.Expr(ast.Constant(...))], []
    head = re.sub(r":\s+\.\.\.$", "", ast.unparse(tree))
    if len(head) > 88:
        arguments = ast.unparse(tree.args)
        returns = f" -> {ast.unparse(tree.returns)}" if tree.returns else ""
        spread = textwrap.indent("\n".join(_split(arguments)), "    ")
        head = f"def {tree.name}(\n{spread}\n){returns}"
    return f"```text\n{head.removeprefix('def ')}\n```\n\n{inspect.getdoc(thing) or ''}\n"


def _split(arguments: str) -> list[str]:
    """Arguments, one a line: cut at commas that no bracket or quote encloses."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(arguments):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(arguments[start : at + 1].strip())
            start = at + 1
    return [*parts, f"{arguments[start:].strip()},"]


def _tree(thing: Any) -> ast.AST | None:
    """The declaration as it is written, or None for what has no source."""
    try:
        source = textwrap.dedent(inspect.getsource(inspect.unwrap(thing)))
        return ast.parse(source).body[0]
    except (OSError, TypeError, SyntaxError):
        return None
