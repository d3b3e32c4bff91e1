"""Who may import whom, and what importing may cost."""

import ast
import importlib
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingot.model import ELSEWHERE

SOURCE = Path(__file__).parents[1] / "src" / "ingot"
ROOMS = [
    "errors", "options", "hit", "types", "catalog", "model", "program", "codegen", "graphs",
    "execute", "package", "runtime", "drivers", "fields", "train", "regions", "cli",
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


PRIVATE = SOURCE / "graphs" / "torch_private.py"
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


def test_private_names_of_torch_live_in_one_file() -> None:
    files = [file for file in FILES if file != PRIVATE]
    told = {str(f): list(private_names(ast.parse(f.read_text()))) for f in files}
    assert {file: names for file, names in told.items() if names} == {}
