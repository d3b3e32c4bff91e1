"""CUDA source -> machine code of a GPU, by NVRTC: no GPU and no CUDA toolkit are needed for it."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import torch

from ingot.codegen.architectures import OLDEST_ARCHITECTURE
from ingot.codegen.cache import key_of, open_cache
from ingot.errors import IngotError, Problem, raise_if

__all__ = ["NO_HEADERS", "OPTIONS", "compile_cubin", "require_architectures"]

OPTIONS = ("--std=c++17", "--fmad=false", "--device-as-default-execution-space")
"""Products and sums are rounded one by one, as they are on CPUs; and all is for the GPU."""

CSTDINT = """typedef signed char int8_t;
typedef int int32_t;
typedef unsigned uint32_t;
typedef long int64_t;
"""
"""The header of that name, of which NVRTC has none."""

INSTALL = 'install a torch with CUDA, or NVRTC alone: pip install "ingot[cuda]"'

NO_HEADERS: Mapping[str, str] = {}


@functools.cache
def open_nvrtc() -> ctypes.CDLL:
    """NVRTC: torch's own, that of its wheel, or the system's."""
    broken = []
    for name in _find_candidates():
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            if Path(name).exists():
                broken.append(f"{name} does not load: {error}")
    told = broken[0] if broken else "no CUDA compiler (libnvrtc) is installed"
    raise IngotError([Problem("no-cuda-compiler", told, None, INSTALL)])


def _find_candidates() -> Iterator[str]:
    """Where NVRTC may lie: torch's front to it finds it where pip has put it."""
    yield str(Path(torch.__file__).parent / "lib" / "libcaffe2_nvrtc.so")
    wheel = importlib.util.find_spec("nvidia")
    for folder in wheel.submodule_search_locations or () if wheel else ():
        found = sorted(Path(folder).glob("*/lib/libnvrtc.so.*"), reverse=True)
        yield from (str(file) for file in found if "alt" not in file.name)
    yield from ("libnvrtc.so.13", "libnvrtc.so.12")


def read_version() -> str:
    """The version of NVRTC."""
    parts = ctypes.c_int(), ctypes.c_int()
    open_nvrtc().nvrtcVersion(*map(ctypes.byref, parts))
    return ".".join(str(part.value) for part in parts)


def require_architectures(architectures: Iterable[int]) -> None:
    """Refuse architectures of GPUs that the NVRTC of this machine does not know."""
    library, count = open_nvrtc(), ctypes.c_int()
    library.nvrtcGetNumSupportedArchs(ctypes.byref(count))
    found = (ctypes.c_int * count.value)()
    library.nvrtcGetSupportedArchs(found)
    known = [each for each in found if each >= OLDEST_ARCHITECTURE]
    raise_if(
        Problem("wrong-architecture", f"NVRTC {read_version()} compiles no kernel for sm_{each}",
                None, f"it compiles for: {', '.join(map(str, known))}")
        for each in architectures if each not in known
    )  # fmt: skip


def compile_cubin(
    source: str, architecture: str, headers: Mapping[str, str] = NO_HEADERS,
    folder: Path | None = None,
) -> bytes:  # fmt: skip
    """A cubin for `sm_90`, PTX for `compute_90`, compiled unless an equal one is in the cache.

    headers: the texts that it includes, by name
    """
    key = key_of(read_version(), architecture, *OPTIONS, *headers, *headers.values(), source)
    return open_cache(folder).obtain("cuda", key, lambda: _translate(source, architecture, headers))


def _translate(source: str, architecture: str, headers: Mapping[str, str]) -> bytes:
    """The code of a source."""
    given = {"cstdint": CSTDINT, **headers}
    texts = (ctypes.c_char_p * len(given))(*(text.encode() for text in given.values()))
    names = (ctypes.c_char_p * len(given))(*(name.encode() for name in given))
    library, program = open_nvrtc(), ctypes.c_void_p()
    options = [each.encode() for each in (f"--gpu-architecture={architecture}", *OPTIONS)]
    text = source.encode()
    library.nvrtcCreateProgram(ctypes.byref(program), text, b"kernels.cu", len(given), texts, names)
    try:
        array = (ctypes.c_char_p * len(options))(*options)
        if library.nvrtcCompileProgram(program, len(options), array):
            require_architectures([int(architecture.rpartition("_")[2])])
            log = _take(program, "ProgramLog").decode(errors="replace").strip("\0\n")
            if "failed to open libnvrtc-builtins" in log:
                told = f"NVRTC {read_version()} is not whole: {log.splitlines()[0]}"
                raise IngotError([Problem("no-cuda-compiler", told, None, INSTALL)])
            raise RuntimeError(f"NVRTC cannot compile a kernel for {architecture}: {log}")
        if architecture.startswith("sm_"):
            return _take(program, "CUBIN")
        return _take(program, "PTX").rstrip(b"\0")
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _take(program: ctypes.c_void_p, what: str) -> bytes:
    """What NVRTC holds of a program."""
    size = ctypes.c_size_t()
    getattr(open_nvrtc(), f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    found = ctypes.create_string_buffer(size.value)
    getattr(open_nvrtc(), f"nvrtcGet{what}")(program, found)
    return found.raw
