"""Machine code of a GPU -> functions that are started on its streams, through CUDA's driver.

Nothing here waits for the GPU, and what is started can be part of a CUDA graph.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import torch

from ingot.codegen.nvrtc import NO_HEADERS, compile_cubin

__all__ = ["DeviceFunction", "load_functions"]


@functools.cache
def open_driver() -> ctypes.CDLL:
    """The driver of the GPU."""
    library = ctypes.CDLL("libcuda.so.1")
    pointer, number = ctypes.c_void_p, ctypes.c_uint
    library.cuLaunchKernel.argtypes = (pointer, *[number] * 7, pointer, pointer, pointer)
    library.cuCtxPushCurrent_v2.argtypes = (pointer,)
    library.cuModuleGetFunction.argtypes = (pointer, pointer, ctypes.c_char_p)
    return library


def _check(status: int) -> None:
    """An error if the driver tells one."""
    if status:
        words = ctypes.c_char_p()
        open_driver().cuGetErrorString(status, ctypes.byref(words))
        raise RuntimeError(f"CUDA: {(words.value or b'unknown error').decode()}")


@functools.cache
def _find_context(index: int) -> ctypes.c_void_p:
    """The context of a GPU that torch works in."""
    found = ctypes.c_void_p()
    _check(open_driver().cuDevicePrimaryCtxRetain(ctypes.byref(found), index))
    return found


@contextmanager
def _enter(index: int) -> Iterator[None]:
    """The context of a GPU made current: a thread that never called CUDA has none."""
    _check(open_driver().cuCtxPushCurrent_v2(_find_context(index)))
    try:
        yield
    finally:
        _check(open_driver().cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p())))


def load_functions(
    source: str, device: torch.device, headers: Mapping[str, str] = NO_HEADERS
) -> Callable[[str], DeviceFunction]:
    """The functions of a source by name, on a GPU; headers: the texts that it includes."""
    index = torch.cuda.current_device() if device.index is None else device.index
    major, minor = torch.cuda.get_device_capability(index)
    code, module = compile_cubin(source, f"sm_{major}{minor}", headers), ctypes.c_void_p()
    with _enter(index):
        _check(open_driver().cuModuleLoadData(ctypes.byref(module), code))

    def found(name: str) -> DeviceFunction:
        handle = ctypes.c_void_p()
        with _enter(index):
            _check(open_driver().cuModuleGetFunction(ctypes.byref(handle), module, name.encode()))
        return DeviceFunction(handle, index)

    return found


class DeviceFunction:
    """A function on a GPU that takes one structure by value."""

    def __init__(self, handle: ctypes.c_void_p, index: int) -> None:
        self.handle, self.context = handle, _find_context(index)
        self.device = torch.device("cuda", index)
        library = open_driver()
        self.enter, self.leave = library.cuCtxPushCurrent_v2, library.cuCtxPopCurrent_v2
        self.launch = library.cuLaunchKernel

    def __call__(self, blocks: int, threads: int, stream: int, task: bytes) -> None:
        """Start it on a stream; the driver copies the structure at once."""
        arguments = (ctypes.c_char_p * 1)(task)
        _check(self.enter(self.context))
        status = self.launch(self.handle, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, None)
        self.leave(ctypes.byref(ctypes.c_void_p()))
        _check(status)
