"""Machine code of a GPU -> functions that are started on its streams, through CUDA's driver.

Nothing here waits for the GPU, and what is started can be part of a CUDA graph.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from ingot.codegen.nvrtc import NO_HEADERS, compile_cubin
from ingot.errors import IngotError, Problem
from ingot.messages import refuse

__all__ = ["DeviceFunction", "load_functions", "open_driver", "open_functions", "read_status"]

MAX_THREADS_OF_FUNCTION, MAX_SHARED_BYTES = 0, 8
"""CUDA's numbers for attributes of a function: its launch bound, and the most shared memory that a
block may be started with."""

NOT_FOUND = 500

_NEW_DRIVER = "install a newer driver of NVIDIA"
_PROBLEMS = {
    2: ("no-device-memory", "give it fewer points at a time, or free memory of the GPU"),
    35: ("old-driver", _NEW_DRIVER),
    200: ("broken-package", "compile it again"),
    209: ("wrong-architecture", "compile with --cuda-arch and the architecture of this GPU"),
    218: ("broken-package", "compile it again"),
    221: ("old-driver", "install all of NVIDIA's driver: its compiler of PTX is missing"),
    222: ("old-driver", f"{_NEW_DRIVER}, or compile with --cuda-arch and this GPU's architecture"),
    300: ("broken-package", "compile it again"),
    500: ("broken-package", "compile it again"),
    803: ("old-driver", _NEW_DRIVER),
}
"""Statuses of CUDA's driver that a user can mend, each with a code and a remedy."""


@functools.cache
def open_driver() -> ctypes.CDLL:
    """The driver of the GPU."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise refuse("no driver") from None
    pointer, number = ctypes.c_void_p, ctypes.c_uint
    library.cuLaunchKernel.argtypes = (pointer, *[number] * 7, pointer, pointer, pointer)
    library.cuCtxPushCurrent_v2.argtypes = (pointer,)
    library.cuModuleGetFunction.argtypes = (pointer, pointer, ctypes.c_char_p)
    library.cuFuncGetAttribute.argtypes = (pointer, ctypes.c_int, pointer)
    library.cuFuncSetAttribute.argtypes = (pointer, ctypes.c_int, ctypes.c_int)
    library.cuModuleGetGlobal_v2.argtypes = (pointer, pointer, pointer, ctypes.c_char_p)
    library.cuMemcpyDtoH_v2.argtypes = (pointer, ctypes.c_uint64, ctypes.c_size_t)
    return library


def read_status(status: int) -> str:
    """What the driver says of a status; nothing where all went well."""
    if not status:
        return ""
    words = ctypes.c_char_p()
    open_driver().cuGetErrorString(status, ctypes.byref(words))
    return f"CUDA: {(words.value or b'unknown error').decode()}"


def _check(status: int) -> None:
    """An error if the driver tells one."""
    if not status:
        return
    if status in _PROBLEMS:
        code, fix = _PROBLEMS[status]
        raise IngotError([Problem(code, read_status(status), None, fix)])
    raise RuntimeError(read_status(status))


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
    major, minor = torch.cuda.get_device_capability(device)
    return open_functions(compile_cubin(source, f"sm_{major}{minor}", headers), device)


def open_functions(code: bytes, device: torch.device) -> Callable[[str], DeviceFunction]:
    """The functions of a cubin or of PTX by name, on a GPU."""
    index = torch.cuda.current_device() if device.index is None else device.index
    module = ctypes.c_void_p()
    with _enter(index):
        _check(open_driver().cuModuleLoadData(ctypes.byref(module), code))

    def found(name: str) -> DeviceFunction:
        handle = ctypes.c_void_p()
        with _enter(index):
            _check(open_driver().cuModuleGetFunction(ctypes.byref(handle), module, name.encode()))
            return DeviceFunction(handle, index, _read_number(module, f"{name}_shared_bytes"))

    return found


def _read_number(module: ctypes.c_void_p, name: str) -> int:
    """What a module says under a name, or zero."""
    place, number = ctypes.c_uint64(), ctypes.c_int(0)
    library = open_driver()
    status = library.cuModuleGetGlobal_v2(ctypes.byref(place), None, module, name.encode())
    if status != NOT_FOUND:
        _check(status)
        _check(library.cuMemcpyDtoH_v2(ctypes.byref(number), place, ctypes.sizeof(number)))
    return number.value


class DeviceFunction:
    """A function on a GPU that takes one structure by value.

    threads: how many of a group it was compiled for at most; shared_bytes: the memory that they
    share
    """

    def __init__(self, handle: ctypes.c_void_p, index: int, shared_bytes: int = 0) -> None:
        self.handle, self.context = handle, _find_context(index)
        self.device = torch.device("cuda", index)
        library = open_driver()
        self.enter, self.leave = library.cuCtxPushCurrent_v2, library.cuCtxPopCurrent_v2
        self.launch, self.popped = library.cuLaunchKernel, ctypes.byref(ctypes.c_void_p())
        threads = ctypes.c_int()
        number = MAX_THREADS_OF_FUNCTION
        _check(library.cuFuncGetAttribute(ctypes.byref(threads), number, handle))
        self.threads, self.shared_bytes = threads.value, shared_bytes
        if shared_bytes:
            _check(library.cuFuncSetAttribute(handle, MAX_SHARED_BYTES, shared_bytes))

    def __call__(self, blocks: int, threads: int, stream: int, task: bytes) -> None:
        """Start it on a stream; the driver copies the structure at once."""
        self._start(blocks, threads, (ctypes.c_char_p * 1)(task), stream)

    def bind(self, blocks: int, threads: int, task: Any) -> Callable[[int], None]:
        """What starts it on a stream, any number of times, with a structure that may change."""
        pointer = ctypes.pointer(task)  # unlike an address, it keeps the structure alive
        return functools.partial(self._start, blocks, threads, (type(pointer) * 1)(pointer))

    def _start(self, blocks: int, threads: int, arguments: Any, stream: int) -> None:
        _check(self.enter(self.context))
        status = self.launch(
            self.handle, blocks, 1, 1, threads, 1, 1, self.shared_bytes, stream, arguments, None
        )
        self.leave(self.popped)
        _check(status)
