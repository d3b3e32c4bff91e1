"""A source is compiled once, whoever asks for it, and a compilation that fails leaves nothing."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ingot.codegen import build, compiler
from ingot.codegen.cache import Cache
from ingot.codegen.library import open_library
from ingot.errors import IngotError

SOURCE = Path(build.__file__).parents[2]
TINY = 'extern "C" int answer() {{ return {number}; }}\n'


def answer(library: bytes) -> int:
    return open_library(library).answer()


def test_an_equal_source_is_not_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = build.compile_library(TINY.format(number=41), folder=tmp_path)

    def refuse(*command: object, **named: object) -> None:
        raise AssertionError(f"called {command}")

    monkeypatch.setattr(compiler, "run_child", refuse)
    assert build.compile_library(TINY.format(number=41), folder=tmp_path) == first
    assert answer(first) == 41
    with pytest.raises(AssertionError, match="called"):
        build.compile_library(TINY.format(number=42), folder=tmp_path)
    with pytest.raises(AssertionError, match="called"):
        build.compile_library(TINY.format(number=41), ("-shared", "-fPIC"), folder=tmp_path)


CHILD = """
from pathlib import Path
from ingot.codegen import build, compiler
from ingot.codegen.library import open_library
print(open_library(build.compile_library({source!r}, folder=Path({folder!r}))).answer())
"""


def child(source: str, folder: Path, **environment: str) -> "subprocess.Popen[str]":
    """A process of its own group that compiles a source."""
    return subprocess.Popen(
        [sys.executable, "-c", CHILD.format(source=source, folder=str(folder))],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE), **environment},
    )


# The result is the last argument; it is half written while the script sleeps.
SLOW = """#!/bin/sh
case "$*" in *" -o "*)
  for result; do :; done
  echo half > "$result"
  echo one >> {log}
  sleep {seconds}
esac
exec {compiler} "$@"
"""


def slow_compiler(folder: Path, seconds: float) -> str:
    """A PATH on which g++ notes each compilation, and waits before it begins."""
    compiler = shutil.which("g++")
    script = folder / "bin" / "g++"
    script.parent.mkdir()
    script.write_text(SLOW.format(log=folder / "log", seconds=seconds, compiler=compiler))
    script.chmod(0o755)
    return f"{script.parent}{os.pathsep}{os.environ['PATH']}"


def test_two_processes_compile_an_equal_source_once(tmp_path: Path) -> None:
    path, cache = slow_compiler(tmp_path, 1.0), tmp_path / "cache"
    both = [child(TINY.format(number=43), cache, PATH=path) for _ in range(2)]
    assert [process.communicate()[0].strip() for process in both] == ["43", "43"]
    assert (tmp_path / "log").read_text().split() == ["one"]


def test_a_killed_compilation_leaves_no_library(tmp_path: Path) -> None:
    path, cache = slow_compiler(tmp_path, 60.0), tmp_path / "cache"
    process = child(TINY.format(number=44), cache, PATH=path)
    deadline = time.monotonic() + 30
    while not (tmp_path / "log").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert not Cache(cache).entries()
    assert answer(build.compile_library(TINY.format(number=44), folder=cache)) == 44


def test_a_source_that_does_not_compile_leaves_no_library(tmp_path: Path) -> None:
    with pytest.raises(IngotError, match="nonsense"):
        build.compile_library("nonsense", folder=tmp_path)
    assert not Cache(tmp_path).entries()
    with pytest.raises(IngotError, match="nonsense"):
        build.compile_library("nonsense", folder=tmp_path)


@pytest.mark.parametrize("keep", [0, 31, 32, 40, -1])
def test_a_library_that_was_cut_short_is_compiled_anew(tmp_path: Path, keep: int) -> None:
    """A library of which a part is mapped ends the process (SIGBUS)."""
    assert answer(build.compile_library(TINY.format(number=45), folder=tmp_path)) == 45
    (file,) = (tmp_path / "kernel").iterdir()
    os.truncate(file, keep % file.stat().st_size)
    assert answer(build.compile_library(TINY.format(number=45), folder=tmp_path)) == 45
    assert Cache(tmp_path).find("kernel", file.name) is not None
