"""A library runs the bytes it was opened with, and leaves no file behind."""

import subprocess
import tempfile
from pathlib import Path

import pytest

from ingot.codegen import compiler
from ingot.codegen.library import open_library, private_file


def library_of(folder: Path, number: int) -> Path:
    source, library = folder / "source.cpp", folder / "answer.so"
    source.write_text(f'extern "C" int answer() {{ return {number}; }}\n')
    subprocess.run(
        [compiler.find_compiler(), "-shared", "-fPIC", str(source), "-o", str(library)], check=True
    )
    return library


def test_a_file_written_anew_under_its_name_is_another_library(tmp_path: Path) -> None:
    first = open_library(library_of(tmp_path, 1).read_bytes())
    second = open_library(library_of(tmp_path, 2).read_bytes())
    assert (first.answer(), second.answer()) == (1, 2)


def test_equal_bytes_are_mapped_once(tmp_path: Path) -> None:
    content = library_of(tmp_path, 3).read_bytes()
    first, second = open_library(content), open_library(content)
    assert first._handle == second._handle
    first.answer.restype = None
    assert second.answer() == 3


@pytest.mark.parametrize("content", [b"no library", b""])
def test_no_file_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(OSError, match=r"^(invalid ELF header|file too short)$"):
        open_library(content)
    with private_file(b"text", ".txt") as file:
        assert file.read_bytes() == b"text"
    assert not list(tmp_path.iterdir())
