"""A compiler that is missing, broken, killed or hangs is told by its name, with what it said."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingot.cli.main import status
from ingot.codegen import compiler
from ingot.codegen.build import compile_library
from ingot.errors import IngotError
from tests.packages import ELASTIC, written

CACHES = (compiler.find_compiler, compiler._examine, compiler.read_processor_flags)


@pytest.fixture
def forget() -> Iterator[None]:
    """What is known of compilers is asked anew, here and afterwards."""
    for each in CACHES:
        each.cache_clear()
    yield
    for each in CACHES:
        each.cache_clear()


def put_compiler(script: str, folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """A script that is g++, and the only one on the path."""
    file = folder / "bin" / "g++"
    file.parent.mkdir()
    file.write_text(script)
    file.chmod(0o755)
    patch.setenv("PATH", str(file.parent))
    return file


def refuse(folder: Path) -> str:
    with pytest.raises(IngotError) as refused:
        compile_library("int x;", folder=folder / "cache")
    (problem,) = refused.value.problems
    assert "ingot run --backend interpret" in (problem.fix or "")
    return f"[{problem.code}] {problem.message}"


ANSWER = '#!/bin/sh\ncase "$*" in *--version*) echo mine 1.0; exit 0;; esac\n'


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("#!/bin/sh\nexit 1\n", "ended with status 1 and said nothing"),
        ("#!/bin/sh\n", "ended with status 0 and said nothing"),
        ("#!/bin/sh\necho no license >&2; exit 3\n", "ended with status 3 and said 'no license'"),
        ("#!/bin/sh\nkill -9 $$\n", "was killed (signal 9, Killed) and said nothing"),
        ("#!/bin/sh\nsleep 60\n", "g++ was ended after 1 s"),
        ("#!/no/such/shell\n", "cannot be run: No such file or directory"),
        ("", "cannot be run: Exec format error"),
    ],
    ids=["fails", "silent", "speaks", "killed", "hangs", "no interpreter", "empty"],
)
def test_a_broken_compiler_is_named_and_quoted(
    script: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forget: None
) -> None:
    path = os.environ["PATH"]
    file = put_compiler(script, tmp_path, monkeypatch)
    monkeypatch.setattr(compiler, "VERSION_LIMIT", 1.0)
    monkeypatch.setattr(compiler.shutil, "which", lambda name: str(file))
    monkeypatch.setenv("PATH", path)  # the script has its own commands
    for _ in range(2):
        found = refuse(tmp_path)
        assert f"[no-compiler] the C++ compiler '{file}' does not work: " in found and told in found


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("kill -9 $$", "was killed (signal 9, Killed); it said:\nnothing"),
        ("echo internal error >&2; exit 4", "ended with status 4; it said:\ninternal error"),
        ("echo on stdout; exit 4", "ended with status 4; it said:\non stdout"),
        ("exit 0", "ended with status 0, and wrote no library; it said:\nnothing"),
    ],
)
def test_a_compiler_that_crashes_is_named_and_quoted(
    script: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forget: None
) -> None:
    path = os.environ["PATH"]
    file = put_compiler(ANSWER + script + "\n", tmp_path, monkeypatch)
    monkeypatch.setenv("PATH", f"{file.parent}{os.pathsep}{path}")
    assert refuse(tmp_path) == f"[compiler-failed] the C++ compiler '{file}' {told}"


def test_what_is_not_executable_is_no_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forget: None
) -> None:
    put_compiler("#!/bin/sh\n", tmp_path, monkeypatch).chmod(0o644)
    assert refuse(tmp_path) == "[no-compiler] no C++ compiler is on the path"


def test_the_remedy_of_a_compile_is_no_flag_that_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forget: None,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(shutil, "which", lambda name: None)
    words = ["compile", str(written(ELASTIC, tmp_path)), "--model", "elastic"]
    assert status([*words, "--output-dir", str(tmp_path / "out")]) == 1
    told = capsys.readouterr().err
    assert "install g++; ingot run --backend interpret needs none" in told
    assert not (tmp_path / "out").exists() or not any((tmp_path / "out").rglob("*.json"))
