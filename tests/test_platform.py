"""What differs between systems lies in one file, and no other system is needed to import Ingot."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ingot import platform

SOURCE = Path(platform.__file__).parent
# what Windows, or a system other than Linux, lacks
MODULES = ("fcntl", "resource", "termios", "pwd", "grp", "pty", "tty", "syslog", "posix")
NAMES = {
    "os": ("fork", "killpg", "setsid", "getpgid", "sched_getaffinity", "memfd_create", "uname"),
    "signal": ("SIGKILL", "SIGALRM", "setitimer"),
    "sys": ("platform",),
}
FILES = sorted(SOURCE.rglob("*.py"))


def words_of(file: Path) -> set[str]:
    """The names of one system that a file speaks."""
    tree = ast.parse(file.read_text())
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names} & {*MODULES, "platform"}
        if isinstance(node, ast.ImportFrom) and node.module in MODULES:
            found.add(str(node.module))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = node.value.id
            if node.attr in NAMES.get(owner, ()) or (owner, node.attr) == ("os", "name"):
                found.add(f"{owner}.{node.attr}")
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= {"/proc"} if node.value.startswith("/proc") else set()
    return found


def test_one_file_asks_which_system_it_is_on() -> None:
    speaking = {str(f.relative_to(SOURCE)): words for f in FILES if (words := words_of(f))}
    assert {"fcntl", "os.killpg", "os.name", "platform", "/proc"} <= speaking.pop("platform.py")
    assert speaking.pop("cli/doctor.py") == {"platform"}  # it tells the system to the user
    assert speaking == {}


def test_two_may_not_hold_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    a, b = (os.open(tmp_path / "file", os.O_RDWR) for _ in range(2))
    assert platform.lock_file(a, wait=False)
    assert not platform.lock_file(b, wait=False)
    os.close(a)
    assert platform.lock_file(b, wait=False)
    os.close(b)


def test_names_are_exchanged_or_left(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b c"
    a.write_text("a")
    b.write_text("b")
    done = platform.exchange_names(a, b)
    assert (a.read_text(), b.read_text()) == (("b", "a") if done else ("a", "b"))
    assert not platform.exchange_names(a, tmp_path / "none")


def test_no_flag_of_one_family_is_given_to_another() -> None:
    assert any("vector-width" in flag for flag in platform.choose_native_flags("x86_64"))
    assert platform.choose_native_flags("aarch64") == ("-mcpu=native",)


def test_a_function_that_no_library_has_is_none() -> None:
    assert platform.find_in_process("ingot_has_no_such_function") is None


HIDE = """
import ctypes, importlib, importlib.abc, os, pkgutil, signal, sys
import torch, torch._dynamo, torch._inductor.config  # which ask for the same, where they may

class Hidden(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name in {modules}:
            raise ModuleNotFoundError(f"no module named {{name!r}} on this system", name=name)

for name in {modules}:
    if name != "posix":
        sys.modules.pop(name, None)
sys.meta_path.insert(0, Hidden())
for owner, names in ((os, {os}), (signal, {signal})):
    for name in names:
        if hasattr(owner, name):
            delattr(owner, name)
library = ctypes.CDLL
class Windows(library):
    def __init__(self, name, *given, **named):
        if name is None:
            raise TypeError("expected a name")
        super().__init__(name, *given, **named)
ctypes.CDLL = Windows

import ingot
failed = {{}}
for module in pkgutil.walk_packages(ingot.__path__, "ingot."):
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        if error.name in {modules}:
            raise
        failed[module.name] = error.name  # an extra that is not installed
driver = ingot.build_driver(ingot.read({file!r}), "stretch")
result = driver.run("interpret")
assert result.failed == 0
print("ran", float(result.outputs["stress"][-1, 0]), failed)
"""


@pytest.mark.exhaustive
def test_a_system_without_posix_imports_everything_and_interprets() -> None:
    file = str(SOURCE.parents[1] / "examples" / "viscoplastic.i")
    code = HIDE.format(modules=MODULES, os=NAMES["os"], signal=NAMES["signal"], file=file)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(SOURCE.parent)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("ran ")
