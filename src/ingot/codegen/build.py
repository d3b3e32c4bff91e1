"""C++ source -> a loaded library, compiled unless an equal one is in the cache."""

import ctypes
import tempfile
from pathlib import Path

from ingot.codegen import compiler
from ingot.codegen.cache import key_of, open_cache
from ingot.codegen.frames import LANES
from ingot.codegen.library import open_library
from ingot.platform import choose_native_flags

__all__ = ["NATIVE_FLAGS", "compile_library", "load_library"]

NATIVE_FLAGS = (*compiler.FLAGS, *choose_native_flags())
"""Flags for the machine that compiles."""


def compile_library(
    source: str, flags: tuple[str, ...] = NATIVE_FLAGS, folder: Path | None = None
) -> bytes:
    """The library of a source, as the content of its file."""
    known = (
        compiler.read_version(),
        compiler.read_processor_flags(),
        *flags,
        *compiler.GCC_FLAGS,
        LANES.join_headers(),
        source,
    )
    return open_cache(folder).obtain("kernel", key_of(*known), lambda: _run_compiler(source, flags))


def _run_compiler(source: str, flags: tuple[str, ...]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="ingot-") as scratch:
        text, library = Path(scratch) / "kernel.cpp", Path(scratch) / "kernel.so"
        text.write_text(source)
        compiler.translate(text, flags, library)
        return library.read_bytes()


def load_library(source: str, flags: tuple[str, ...] = NATIVE_FLAGS) -> ctypes.CDLL:
    """The loaded library of a source."""
    return open_library(compile_library(source, flags))
