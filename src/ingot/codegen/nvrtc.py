"""CUDA source -> machine code of a GPU, by NVRTC: no GPU and no CUDA toolkit are needed for it."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import torch

from ingot.codegen.architectures import OLDEST_ARCHITECTURE
from ingot.codegen.cache import key_of, open_cache
from ingot.codegen.children import run_child
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
    """The code of a source, by NVRTC in a process of its own."""
    job = [source, architecture, OPTIONS, {"cstdint": CSTDINT, **headers}]
    libraries = [open_nvrtc()._name, *_find_candidates()]
    command = [sys.executable, "-I", str(Path(__file__).with_name("nvrtc_child.py"))]
    done = run_child(command, json.dumps([*libraries, job]).encode())
    if done.returncode == 0:
        return done.stdout
    require_architectures([int(architecture.rpartition("_")[2])])
    log = (done.stdout or done.stderr).decode(errors="replace")
    if "failed to open libnvrtc-builtins" in log:
        told = f"NVRTC {read_version()} is not whole: {log.splitlines()[0]}"
        raise IngotError([Problem("no-cuda-compiler", told, None, INSTALL)])
    raise RuntimeError(f"NVRTC cannot compile a kernel for {architecture}: {log}")
