"""The system's C++ compiler: where it is, which it is, and one source through it."""

import functools
import os
import shutil
import subprocess
from pathlib import Path

from ingot.codegen.children import run_child
from ingot.codegen.disk import raise_if_full
from ingot.errors import IngotError, Problem
from ingot.platform import choose_native_flags

__all__ = [
    "FLAGS",
    "HEADER_FOLDER",
    "find_compiler",
    "join_headers",
    "read_processor_flags",
    "read_version",
    "translate",
]

HEADER_FOLDER = Path(__file__).parent
# Straight lines gain nothing from -O2 but a quarter more compile time. Where code begins is left to
# chance by -O1: a return map took up to a tenth longer after a change of another function.
FLAGS = (
    "-std=c++17", "-O1", "-fno-math-errno", "-ffp-contract=off", "-fPIC", "-shared", "-Wno-psabi",
    "-fno-trapping-math", "-falign-functions=64", "-falign-loops=64",
)  # fmt: skip

# A caller of exp or pow keeps the registers that those leave alone: 8 % of a return map.
GCC_FLAGS = ("-fipa-ra",)


@functools.cache
def find_compiler() -> str:
    """The path of the compiler."""
    path = shutil.which("g++") or shutil.which("c++")
    if path is None:
        raise IngotError([Problem(
            "no-compiler", "no C++ compiler is on the path", None,
            "install g++, or run with --backend interpret",
        )])  # fmt: skip
    return path


@functools.cache
def read_version() -> str:
    """What the compiler says of itself."""
    told = subprocess.run(
        [find_compiler(), "--version"], capture_output=True, text=True, check=True
    )
    return told.stdout.splitlines()[0]


@functools.cache
def read_processor_flags() -> str:
    """What the flags for this CPU stand for: a kernel built elsewhere is another kernel."""
    told = subprocess.run(
        [find_compiler(), *choose_native_flags(), "-E", "-v", "-x", "c++", os.devnull],
        capture_output=True, text=True, check=False,
    ).stderr  # fmt: skip
    line = next((row for row in told.splitlines() if "cc1plus" in row), "")
    return " ".join(word for word in line.split() if word.startswith("-m"))


@functools.cache
def join_headers(names: tuple[str, ...]) -> str:
    """Headers as one text, each standing where the next may use it."""
    rows = (row for name in names for row in (HEADER_FOLDER / name).read_text().splitlines(True))
    return "".join(row for row in rows if not row.startswith(("#pragma once", '#include "')))


def translate(source: Path, flags: tuple[str, ...], library: Path) -> None:
    """Compile one source into a shared library."""
    own = () if "clang" in read_version() else GCC_FLAGS
    done = run_child(
        [find_compiler(), *flags, *own, f"-I{HEADER_FOLDER}", str(source), "-o", str(library)],
        environment={**os.environ, "LC_ALL": "C"},  # in its own words, which are looked into
    )
    if done.returncode != 0:
        told = done.stderr.decode(errors="replace")
        raise_if_full(told)
        raise IngotError([Problem(
            "compiler-failed", f"the C++ compiler failed:\n{told[-2000:]}", None,
            "report this with the model; --backend interpret runs it meanwhile",
        )])  # fmt: skip
