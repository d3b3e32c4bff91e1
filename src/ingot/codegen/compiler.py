"""The system's C++ compiler: where it is, which it is, and one source through it."""

import functools
import os
import shutil
import signal
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

# A caller of exp or pow keeps the registers that those leave alone, 8 % of a return map, and saves
# others around the call alone: up to 4 % of small models, none of a crystal (benchmarks.compare).
GCC_FLAGS = ("-fipa-ra", "-fcaller-saves")


WITHOUT = "ingot run --backend interpret needs none"
"""What computes without a compiler, whatever command has asked for one."""

VERSION_LIMIT = 60.0
"""Seconds; a compiler tells its version in some milliseconds, from a slow disk in a few seconds."""


@functools.cache
def find_compiler() -> str:
    """The path of the compiler."""
    path = shutil.which("g++") or shutil.which("c++")
    if path is None:
        raise IngotError([Problem(
            "no-compiler", "no C++ compiler is on the path", None,
            f"install g++; {WITHOUT}",
        )])  # fmt: skip
    return path


def read_version() -> str:
    """What the compiler says of itself; an error where it does not run, or says nothing."""
    told = _examine(find_compiler())
    if isinstance(told, Problem):
        raise IngotError([told])
    return told


@functools.cache
def _examine(path: str) -> str | Problem:
    """The version of a compiler, or why it is none, which is not asked twice: it may take long."""
    try:
        done = run_child([path, "--version"], limit=VERSION_LIMIT)
        said = (done.stdout or done.stderr).decode(errors="replace").strip()
        if done.returncode == 0 and said:
            return said.splitlines()[0]
        why = f"asked for its version it {_tell_end(done.returncode)} and said {_quote(said)}"
    except IngotError as error:
        why = error.problems[0].message
    fix = f"install g++ anew, or put another first on PATH; {WITHOUT}"
    return Problem("no-compiler", f"the C++ compiler '{path}' does not work: {why}", None, fix)


def _tell_end(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    return f"was killed (signal {-status}, {signal.strsignal(-status)})"


def _quote(said: str) -> str:
    return f"'{said[-300:]}'" if said else "nothing"


@functools.cache
def read_processor_flags() -> str:
    """What the flags for this CPU stand for: a kernel built elsewhere is another kernel."""
    command = [find_compiler(), *choose_native_flags(), "-E", "-v", "-x", "c++", os.devnull]
    told = run_child(command, limit=VERSION_LIMIT).stderr.decode(errors="replace")
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
    if done.returncode != 0 or not library.is_file():
        told = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise_if_full(told)
        how = _tell_end(done.returncode) + ("" if done.returncode else ", and wrote no library")
        killed = done.returncode < 0 or "Killed signal" in told  # by the system, out of memory
        fix = "give it more memory, or fewer --jobs" if killed else "report this with the model"
        raise IngotError([Problem(
            "compiler-failed",
            f"the C++ compiler '{find_compiler()}' {how}; it said:\n{told[-2000:] or 'nothing'}",
            None, f"{fix}; {WITHOUT}",
        )])  # fmt: skip
