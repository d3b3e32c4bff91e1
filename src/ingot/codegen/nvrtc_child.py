"""The process in which NVRTC works: JSON in, machine code or the compiler's own words out.

Started by its file name, so that nothing but the standard library is imported.
"""

import ctypes
import glob
import json
import os
import sys
from typing import Any


def open_first(names: list[str]) -> ctypes.CDLL:
    """The first library that loads; what the last says where none does."""
    for name in names[:-1]:
        try:
            return open_with_builtins(name)
        except OSError:
            continue
    return open_with_builtins(names[-1])


def open_with_builtins(name: str) -> ctypes.CDLL:
    """NVRTC; wheels of CUDA 13 do not say that the library it opens later lies beside it."""
    library = ctypes.CDLL(name)
    for file in glob.glob(os.path.join(os.path.dirname(name), "libnvrtc-builtins.so*")):
        if os.path.dirname(name) and "alt" not in os.path.basename(file):
            ctypes.CDLL(file, ctypes.RTLD_GLOBAL)
    return library


def translate(
    library: Any, source: str, architecture: str, options: list[str], headers: dict[str, str]
) -> tuple[bool, bytes]:
    """Whether it compiles, and its code or the log."""
    texts = (ctypes.c_char_p * len(headers))(*(text.encode() for text in headers.values()))
    names = (ctypes.c_char_p * len(headers))(*(name.encode() for name in headers))
    words = [f"--gpu-architecture={architecture}", *options]
    array = (ctypes.c_char_p * len(words))(*(word.encode() for word in words))
    program, text = ctypes.c_void_p(), source.encode()
    library.nvrtcCreateProgram(
        ctypes.byref(program), text, b"kernels.cu", len(headers), texts, names
    )
    if library.nvrtcCompileProgram(program, len(words), array):
        return False, take(library, program, "ProgramLog").strip(b"\0\n")
    if architecture.startswith("sm_"):
        return True, take(library, program, "CUBIN")
    return True, take(library, program, "PTX").rstrip(b"\0")


def take(library: Any, program: ctypes.c_void_p, what: str) -> bytes:
    """What NVRTC holds of a program."""
    size = ctypes.c_size_t()
    getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    found = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{what}")(program, found)
    return found.raw


if __name__ == "__main__":
    *names, job = json.load(sys.stdin)
    compiled, told = translate(open_first(names), *job)
    sys.stdout.buffer.write(told)
    sys.exit(0 if compiled else 1)
