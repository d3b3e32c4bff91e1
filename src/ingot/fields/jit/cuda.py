"""CUDA source -> loops that run on a GPU: compiled by NVRTC, which torch brings along, and cached.

Nothing here waits for the GPU, and a loop can be part of a CUDA graph.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch

from ingot.codegen.cache import key_of, open_cache
from ingot.fields.jit.frames import THREADS
from ingot.fields.jit.layout import Layout
from ingot.graphs.torch_private import NVRTC, raw_stream

__all__ = ["OPTIONS", "Launch", "compiled", "loaded"]

OPTIONS = ("--std=c++17", "--fmad=false")
"""Products and sums are rounded one by one, as they are on CPUs."""

BLOCKS = 2**20
"""The most groups of threads that are started; with more points each takes several."""


@functools.cache
def nvrtc() -> ctypes.CDLL:
    """NVRTC, where pip put it or where the system has it."""
    for name in (str(NVRTC), "libnvrtc.so.13", "libnvrtc.so.12"):
        with suppress(OSError):
            return ctypes.CDLL(name)
    raise OSError("no CUDA compiler (libnvrtc) is installed beside torch")


def version() -> str:
    """The version of NVRTC."""
    parts = ctypes.c_int(), ctypes.c_int()
    nvrtc().nvrtcVersion(*map(ctypes.byref, parts))
    return ".".join(str(part.value) for part in parts)


def compiled(source: str, architecture: str, folder: Path | None = None) -> bytes:
    """The machine code of a source, compiled unless an equal one is in the cache."""
    key = key_of(version(), architecture, *OPTIONS, source)
    return open_cache(folder).obtain("cuda", key, lambda: translated(source, architecture))


def translated(source: str, architecture: str) -> bytes:
    """The machine code of a source."""
    library, program = nvrtc(), ctypes.c_void_p()
    options = [each.encode() for each in (f"--gpu-architecture={architecture}", *OPTIONS)]
    text = source.encode()
    library.nvrtcCreateProgram(ctypes.byref(program), text, b"kernels.cu", 0, None, None)
    try:
        array = (ctypes.c_char_p * len(options))(*options)
        if library.nvrtcCompileProgram(program, len(options), array):
            log = taken(program, "ProgramLog").decode(errors="replace").strip("\0\n")
            raise RuntimeError(f"NVRTC cannot compile a kernel for {architecture}: {log}")
        return taken(program, "CUBIN")
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def taken(program: ctypes.c_void_p, what: str) -> bytes:
    """What NVRTC holds of a program."""
    size = ctypes.c_size_t()
    getattr(nvrtc(), f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    found = ctypes.create_string_buffer(size.value)
    getattr(nvrtc(), f"nvrtcGet{what}")(program, found)
    return found.raw


@functools.cache
def driver() -> ctypes.CDLL:
    """The driver of the GPU."""
    library = ctypes.CDLL("libcuda.so.1")
    pointer, number = ctypes.c_void_p, ctypes.c_uint
    library.cuLaunchKernel.argtypes = (pointer, *[number] * 7, pointer, pointer, pointer)
    library.cuCtxPushCurrent_v2.argtypes = (pointer,)
    library.cuModuleGetFunction.argtypes = (pointer, pointer, ctypes.c_char_p)
    return library


def checked(status: int) -> None:
    """An error if the driver tells one."""
    if status:
        words = ctypes.c_char_p()
        driver().cuGetErrorString(status, ctypes.byref(words))
        raise RuntimeError(f"CUDA: {(words.value or b'unknown error').decode()}")


@functools.cache
def context(index: int) -> ctypes.c_void_p:
    """The context of a GPU that torch works in."""
    found = ctypes.c_void_p()
    checked(driver().cuDevicePrimaryCtxRetain(ctypes.byref(found), index))
    return found


@contextmanager
def inside(index: int) -> Iterator[None]:
    """The context of a GPU made current: a thread that never called CUDA has none."""
    checked(driver().cuCtxPushCurrent_v2(context(index)))
    try:
        yield
    finally:
        checked(driver().cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p())))


def loaded(source: str, device: torch.device) -> Callable[[str], DeviceFunction]:
    """The functions of a source by name, on a GPU."""
    index = torch.cuda.current_device() if device.index is None else device.index
    major, minor = torch.cuda.get_device_capability(index)
    code, module = compiled(source, f"sm_{major}{minor}"), ctypes.c_void_p()
    with inside(index):
        checked(driver().cuModuleLoadData(ctypes.byref(module), code))

    def found(name: str) -> DeviceFunction:
        handle = ctypes.c_void_p()
        with inside(index):
            checked(driver().cuModuleGetFunction(ctypes.byref(handle), module, name.encode()))
        return DeviceFunction(handle, index)

    return found


class DeviceFunction:
    """A function on a GPU that takes one structure by value."""

    def __init__(self, handle: ctypes.c_void_p, index: int) -> None:
        self.handle, self.index, self.context = handle, index, context(index)
        library = driver()
        self.enter, self.leave = library.cuCtxPushCurrent_v2, library.cuCtxPopCurrent_v2
        self.launch = library.cuLaunchKernel

    def __call__(self, blocks: int, task: bytes) -> None:
        """Start it on torch's current stream; the driver copies the structure at once."""
        stream = raw_stream(self.index)
        arguments = (ctypes.c_char_p * 1)(task)
        checked(self.enter(self.context))
        status = self.launch(self.handle, blocks, 1, 1, THREADS, 1, 1, 0, stream, arguments, None)
        self.leave(ctypes.byref(ctypes.c_void_p()))
        checked(status)


class Launch:
    """A loop by threads of a GPU, one a point."""

    any_order = True

    def __init__(self, function: Callable[[int, bytes], None]) -> None:
        self.function = function

    def arranged(self, layout: Layout, threads: int) -> Any:
        """How many groups of threads, and the second half of the Task of grid_cuda.h."""
        unused = layout.rank - len(layout.extents)
        strides = [stride for row in layout.strides for stride in ((0,) * unused + row)]
        words = [layout.points, unused, *[1] * unused, *layout.extents, *strides]
        blocks = min(-(-layout.points // THREADS), BLOCKS)
        return blocks, struct.pack(f"={len(words)}q", *words)

    def run(self, addresses: Sequence[int], numbers: Sequence[float], arranged: Any) -> None:
        """Start the loop over all points."""
        blocks, rest = arranged
        values = numbers or (0.0,)
        head = struct.pack(f"={len(addresses)}Q{len(values)}d", *addresses, *values)
        self.function(blocks, head + rest)
