"""Who may import whom, what importing may cost, that one name is one thing, lines of prose."""

import ast
import importlib
import re
import resource
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from ingot.model import ELSEWHERE

SOURCE = Path(__file__).parents[1] / "src" / "ingot"
ROOMS = [
    "errors", "keywords", "messages", "platform", "extras", "options", "hit", "types", "catalog",
    "model", "laws", "program", "codegen", "graphs", "execute", "package", "runtime", "hosts",
    "drivers", "fields", "train", "regions", "cli", "__main__",
]  # fmt: skip
FILES = [file for file in sorted(SOURCE.rglob("*.py")) if file != SOURCE / "__init__.py"]


def imports_of(file: Path) -> Iterator[str]:
    """The dotted names that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        if isinstance(node, ast.ImportFrom) and node.module == "ingot":
            yield from (f"ingot.{name.name}" for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def rooms_imported_by(file: Path) -> set[str]:
    parts = (name.split(".") for name in imports_of(file))
    return {p[1] for p in parts if p[0] == "ingot" and len(p) > 1} - {"__version__"}


def said_by(code: str) -> str:
    """What a fresh interpreter prints for a line of Python."""
    command = [
        sys.executable,
        "-c",
        f"import sys; sys.path.insert(0, {str(SOURCE.parent)!r}); {code}",
    ]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_imports_point_upwards(file: Path) -> None:
    room = file.relative_to(SOURCE).parts[0].removesuffix(".py")
    assert rooms_imported_by(file) <= set(ROOMS[: ROOMS.index(room) + 1])


@pytest.mark.parametrize("room", [room for room in ROOMS if (SOURCE / room).is_dir()])
def test_a_room_says_what_belongs_there(room: str) -> None:
    text = ast.get_docstring(ast.parse((SOURCE / room / "__init__.py").read_text())) or ""
    assert "Here:" in text
    assert "Not here:" in text


@pytest.mark.parametrize(
    ("kind", "module"), [pair for types in ELSEWHERE.values() for pair in types.items()]
)
def test_a_type_found_elsewhere_is_there(kind: str, module: str) -> None:
    assert hasattr(importlib.import_module(module), kind)


def test_reading_files_never_imports_torch() -> None:
    for file in (SOURCE / "hit").glob("*.py"):
        assert not any(name.split(".")[0] == "torch" for name in imports_of(file))
    assert said_by("import ingot.hit; print('torch' in sys.modules)") == "False"


def test_importing_ingot_imports_no_torch() -> None:
    assert said_by("import ingot; print('torch' in sys.modules)") == "False"


def test_names_of_torch_cost_no_compiler_and_no_algebra() -> None:
    code = "import ingot.graphs.torch_private; print({'sympy', 'torch._inductor'} & {*sys.modules})"
    assert said_by(code) == "set()"


def test_importing_ingot_costs_little() -> None:
    """Processor time beyond that of torch, which it does not import; the least of a few."""
    code = "import time; t = time.process_time(); import ingot; print(time.process_time() - t)"
    assert min(float(said_by(code)) for _ in range(3)) < 0.2


def test_public_names_are_all_found() -> None:
    said = said_by("import ingot; print(all(hasattr(ingot, name) for name in ingot.__all__))")
    assert said == "True"


def test_help_is_instant() -> None:
    """Processor time, the least of a few runs: the wall clock depends on who else is working."""
    took = []
    for _ in range(4):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        said_by("from ingot.cli.main import status; status(['--help'])")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(took) < 0.3


PRIVATE = {SOURCE / "graphs" / "replay.py", *(SOURCE / "graphs" / "torch_private").glob("*.py")}
ATTRIBUTES = {
    "_base", "_buffers", "_current_level", "_flat_weights", "_modules", "_parameters", "_schema",
    "_non_persistent_buffers_set", "framework_loc", "maybe_user_loc", "shape_env", "sloc",
}  # fmt: skip
"""Names of tensors, modules and sizes that torch does not promise."""


def private_names(tree: ast.AST) -> Iterator[str]:
    """What a file reads of torch that is private, and the versions of torch it asks for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            words = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            words = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute):
            words = [ast.unparse(node)]
            own = isinstance(node.value, ast.Name) and node.value.id == "self"
            of_size = words[0].endswith((".node.expr", ".node.hint"))
            if of_size or (node.attr in ATTRIBUTES and not own):
                yield words[0]
        else:
            continue
        for word in words:
            root, *parts = word.removesuffix(".__file__").split(".")
            hidden = any(p.startswith("_") or p in ("experimental", "version") for p in parts)
            if root == "torch" and hidden:
                yield word


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import torch._inductor", True), ("from torch import _guards", True),
        ("from torch.fx.experimental import proxy_tensor", True), ("torch._C.f()", True),
        ("x = torch.__version__", True), ("torch.version.cuda", True), ("y = tensor._base", True),
        ("size.node.hint", True), ("self._parameters", False), ("torch.ops.aten.view", False),
        ("torch.__file__", False), ("from torch.fx import Graph", False),
    ],
)  # fmt: skip
def test_private_names_are_told_from_public_ones(code: str, found: bool) -> None:
    assert any(private_names(ast.parse(code))) == found


def test_private_names_of_torch_live_in_two_files() -> None:
    files = [file for file in FILES if file not in PRIVATE]
    told = {str(f): list(private_names(ast.parse(f.read_text()))) for f in files}
    assert {file: names for file, names in told.items() if names} == {}


# one name, one thing

HIDDEN = {"ingot.cli.main": "installed commands ask for `ingot.cli:main`"}
"""Functions under the name of the submodule that holds them, and why they stay."""


def exported_by(package: Path) -> set[str]:
    """The names that a package's own file binds, submodules as such left out."""
    name = ".".join(("ingot", *package.relative_to(SOURCE).parts))
    found: set[str] = set()
    for node in ast.parse((package / "__init__.py").read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module != name:
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
    return found


@pytest.mark.parametrize(
    "package", sorted(f.parent for f in SOURCE.rglob("__init__.py") if f.parent != SOURCE), ids=str
)
def test_no_package_hides_a_submodule_behind_a_function(package: Path) -> None:
    name = ".".join(("ingot", *package.relative_to(SOURCE).parts))
    inside = {
        f.stem for f in package.iterdir() if f.suffix == ".py" or (f / "__init__.py").exists()
    }
    assert {f"{name}.{n}" for n in exported_by(package) & inside} <= HIDDEN.keys()


@cache
def classes() -> dict[str, list[str]]:
    """Where each class is declared, by its name."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(str(file.relative_to(SOURCE)))
    return found


def test_no_class_name_stands_twice_in_a_room() -> None:
    rooms = {name: [f.split("/")[0] for f in files] for name, files in classes().items()}
    assert {name: classes()[name] for name, r in rooms.items() if len(r) > len({*r})} == {}


@pytest.mark.parametrize("name", ["Program", "Graph", "Node", "Model", "Solve", "Kernel", "Plan"])
def test_what_carries_a_room_has_a_name_of_its_own(name: str) -> None:
    assert len(classes().get(name, [])) <= 1


SAME_FILES = {
    ("fields", "exodus.py"): "read to compare, written as output",
    ("fields", "schema.py"): "of input files, of captured sequences",
}
"""Names of files that a room of several folders has twice, and what each is about."""


def test_a_file_has_a_name_of_its_own_in_its_room() -> None:
    found: defaultdict[tuple[str, str], list[Path]] = defaultdict(list)
    for file in FILES:
        parts = file.relative_to(SOURCE).parts
        if len(parts) > 1 and file.name != "__init__.py":
            found[parts[0], file.name].append(file)
    assert {name for name, files in found.items() if len(files) > 1} == SAME_FILES.keys()


def test_no_file_is_named_after_nothing() -> None:
    empty = ("util", "helper", "manager", "handler", "misc")
    assert [str(f) for f in FILES if any(word in f.stem for word in empty)] == []


@pytest.mark.parametrize("room", ["types", "catalog", "model", "program", "execute", "package"])
def test_a_room_speaks_one_dialect(room: str) -> None:
    """Annotations that refer to what comes later are quoted, in every file alike."""
    files = [f for f in FILES if f.relative_to(SOURCE).parts[0] == room]
    assert [str(f) for f in files if "from __future__ import annotations" in f.read_text()] == []


# one table of operations

TABLES = {
    "types/elementwise.py", "program/operations.py", "program/axis_operations.py",
    "program/implicit.py",
}  # fmt: skip
OTHER_WORDS = {
    "types/__init__.py": "the names that laws call",
    "types/algebra.py": "the names that laws call",
    "types/value.py": "operators of Python, by the names that NumPy has for them",
    "hit/arithmetic.py": "functions of ${...} in HIT",
    "fields/expressions/exact.py": "functions of parsed expressions in input files",
    "fields/jit/operations.py": "operations of torch's graphs",
    "package/header.py": "headings of a C header",
}
"""Files whose words happen to be names of operations, and what they are."""
FORMS = {"program/complement.py": "complementarity: its laws do not mark their multipliers"}
"""Passes that find what they are about by its form, out of elementwise operations."""


def operation_names() -> tuple[set[str], set[str]]:
    """The elementwise operations, and the structural ones."""
    import ingot.program
    from ingot.program import operations

    assert ingot.program.PASSES
    structural = {name for name in operations._KNOWN if name not in operations.ELEMENTWISE}
    return set(operations.ELEMENTWISE), structural


def words_in(nodes: list[ast.expr | None]) -> set[str]:
    return {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def listed_in(tree: ast.AST) -> Iterator[set[str]]:
    """The words of every list, tuple, set or dictionary of a file, and of its match statements."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Set | ast.List | ast.Tuple):
            yield words_in([*node.elts])
        elif isinstance(node, ast.Dict):
            yield words_in(node.keys)
            yield words_in([*node.values])
        elif isinstance(node, ast.Match):
            inside = (n for case in node.cases for n in ast.walk(case.pattern))
            yield words_in([n.value for n in inside if isinstance(n, ast.MatchValue)])


def compared_in(tree: ast.AST) -> set[str]:
    """The words that a file compares the operation of a line with."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and ast.unparse(node.left).endswith(".op"):
            for other in node.comparators:
                parts = other.elts if isinstance(other, ast.Tuple | ast.Set) else [other]
                found |= words_in([*parts])
    return found


@pytest.mark.parametrize(
    ("code", "listed"),
    [
        ("x = ('add', 'mul', 'sub')", True), ("x = {'exp': 1, 'log': 2, 'sin': 3}", True),
        ("x = node.op in ('add', 'mul')", False), ("x = ['adder', 'mul', 'mul']", False),
        ("match op:\n  case 'add' | 'sub': 1\n  case 'mul': 2", True),
    ],
)  # fmt: skip
def test_lists_of_operations_are_told_from_others(code: str, listed: bool) -> None:
    elementwise, structural = operation_names()
    names = elementwise | structural
    assert any(len(words & names) >= 3 for words in listed_in(ast.parse(code))) == listed


def test_operations_are_listed_in_their_table_alone() -> None:
    """A pass may ask for the structural operations it is about, and for no elementwise one."""
    elementwise, structural = operation_names()
    names = elementwise | structural
    found: dict[str, list[set[str]]] = {}
    for file in (str(f.relative_to(SOURCE)) for f in FILES):
        if file not in TABLES | OTHER_WORDS.keys() | FORMS.keys():
            tree = ast.parse((SOURCE / file).read_text())
            lists = [words & names for words in listed_in(tree) if len(words & names) >= 3]
            found[file] = [*lists, *([asked] if (asked := compared_in(tree) & elementwise) else [])]
    assert {file: lists for file, lists in found.items() if lists} == {}


def test_words_that_are_no_operations_are_still_there() -> None:
    elementwise, structural = operation_names()
    for file in OTHER_WORDS:
        lists = listed_in(ast.parse((SOURCE / file).read_text()))
        assert any(len(words & (elementwise | structural)) >= 3 for words in lists), file


# source as data


@pytest.mark.parametrize("room", ["program", "codegen", "execute", "fields/jit"])
def test_nothing_is_found_by_matching_text(room: str) -> None:
    """What is printed is looked up as data, never searched."""
    files = [f for f in FILES if (SOURCE / room) in (SOURCE / f).parents]
    assert files
    trees = {str(f.relative_to(SOURCE)): ast.parse((SOURCE / f).read_text()) for f in files}
    imported = {
        file for file, tree in trees.items() for node in ast.walk(tree)
        if (isinstance(node, ast.Import) and "re" in [each.name for each in node.names])
        or (isinstance(node, ast.ImportFrom) and node.module == "re")
    }  # fmt: skip
    assert imported == set()


# pages

ROOT = SOURCE.parents[1]


@pytest.mark.parametrize(
    "page",
    [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")),
     *sorted((ROOT / "docs" / "tutorials").glob("*.md"))],
    ids=lambda page: page.name,
)  # fmt: skip
def test_prose_is_wrapped(page: Path) -> None:
    """Tables, indented figures and blocks of code have lines of their own length."""
    lines = re.sub(r"(?ms)^```.*?^```$|<!--.*?-->", "", page.read_text()).splitlines()
    assert [n for n in lines if len(n) > 120 and not n.startswith(("|", "    "))] == []
