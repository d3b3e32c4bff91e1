"""C++ source -> a loaded library, from a cache that processes share."""

import ctypes
import fcntl
import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ingot.execute import compiler

__all__ = ["NATIVE", "built", "cache_folder", "compiled", "put_in_cache"]

NATIVE = (*compiler.FLAGS, "-march=native", "-mprefer-vector-width=512")
"""Flags for the machine that compiles."""


def cache_folder() -> Path:
    """Where compiled kernels are kept from one process to the next."""
    return Path.home() / ".cache" / "ingot" / "kernels"


def put_in_cache(file: Path, content: bytes) -> None:
    """Write a file that other processes look for, in one step."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as copy:
        copy.write(content)
    Path(copy.name).replace(file)


def compiled(source: str, flags: tuple[str, ...] = NATIVE, folder: Path | None = None) -> Path:
    """The library of a source, compiled unless an equal one is in the cache."""
    known = [compiler.version(), compiler.processor(), *flags, compiler.headers(), source]
    digest = hashlib.sha256("\0".join(known).encode()).hexdigest()[:32]
    folder = folder if folder is not None else cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / f"{digest}.so"
    if library.exists():
        return library
    with _locked(folder / f"{digest}.lock"):
        if not library.exists():
            _compile(source, flags, library)
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


def _compile(source: str, flags: tuple[str, ...], library: Path) -> None:
    with tempfile.TemporaryDirectory(dir=library.parent) as scratch:
        text, result = Path(scratch) / "kernel.cpp", Path(scratch) / "kernel.so"
        text.write_text(source)
        compiler.translate(text, flags, result)
        text.replace(library.with_suffix(".cpp"))
        result.replace(library)


def built(source: str, flags: tuple[str, ...] = NATIVE) -> ctypes.CDLL:
    """The loaded library of a source."""
    return ctypes.CDLL(str(compiled(source, flags)))
