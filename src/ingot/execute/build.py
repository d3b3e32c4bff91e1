"""C++ source -> a loaded library: the system compiler, and a cache that processes share."""

import ctypes
import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ingot.errors import IngotError, Problem

__all__ = ["FLAGS", "built", "cache_folder", "compiled"]

# Straight lines gain nothing from -O2 but a quarter more compile time.
FLAGS = (
    "-std=c++17", "-O1", "-march=native", "-mprefer-vector-width=512", "-fno-math-errno",
    "-ffp-contract=off", "-fPIC", "-shared", "-Wno-psabi", "-fno-trapping-math",
)  # fmt: skip
HEADERS = ("lanes.h", "newton.h", "band.h", "entry.h", "run.h")
_HERE = Path(__file__).parent


def cache_folder() -> Path:
    """Where compiled kernels are kept from one process to the next."""
    return Path.home() / ".cache" / "ingot" / "kernels"


@functools.cache
def _compiler() -> tuple[str, str]:
    path = shutil.which("g++") or shutil.which("c++")
    if path is None:
        raise IngotError([Problem(
            "no-compiler", "no C++ compiler is on the path", None,
            "install g++, or run with --backend interpret",
        )])  # fmt: skip
    told = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    return path, told.splitlines()[0]


@functools.cache
def _headers() -> str:
    return "".join((_HERE / name).read_text() for name in HEADERS)


@functools.cache
def _processor() -> str:
    """What `-march=native` stands for here: a kernel built elsewhere is another kernel."""
    path, _ = _compiler()
    told = subprocess.run(
        [path, "-march=native", "-E", "-v", "-x", "c++", os.devnull],
        capture_output=True, text=True, check=False,
    ).stderr  # fmt: skip
    line = next((row for row in told.splitlines() if "cc1plus" in row), "")
    return " ".join(word for word in line.split() if word.startswith("-m"))


def compiled(source: str, flags: tuple[str, ...] = FLAGS, folder: Path | None = None) -> Path:
    """The library of a source, compiled unless an equal one is in the cache."""
    path, version = _compiler()
    content = "\0".join([version, _processor(), *flags, _headers(), source])
    digest = hashlib.sha256(content.encode()).hexdigest()[:32]
    folder = folder if folder is not None else cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / f"{digest}.so"
    if library.exists():
        return library
    with _locked(folder / f"{digest}.lock"):
        if not library.exists():
            _compile(path, source, flags, library)
    return library


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One process at a time; the lock goes with the process that holds it."""
    with path.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _compile(path: str, source: str, flags: tuple[str, ...], library: Path) -> None:
    with tempfile.TemporaryDirectory(dir=library.parent) as scratch:
        text = Path(scratch) / "kernel.cpp"
        text.write_text(source)
        result = Path(scratch) / "kernel.so"
        done = subprocess.run(
            [path, *flags, f"-I{_HERE}", str(text), "-o", str(result)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise IngotError([Problem(
                "compiler-failed", f"the C++ compiler failed:\n{done.stderr[-2000:]}", None,
                "report this with the model; --backend interpret runs it meanwhile",
            )])  # fmt: skip
        text.replace(library.with_suffix(".cpp"))
        result.replace(library)


def built(source: str, flags: tuple[str, ...] = FLAGS) -> ctypes.CDLL:
    """The loaded library of a source."""
    return ctypes.CDLL(str(compiled(source, flags)))
