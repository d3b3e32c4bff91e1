"""Kernels of a GPU run by this process: their text compiled as C++, their threads one by one."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from ingot.codegen import build, compiler
from ingot.codegen.library import open_library

HOST = """
#include <math.h>
#define __device__
#define __global__
#define __shared__ static
#define INGOT_SLOTS(name) static real name[256 * 128]
#define __grid_constant__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
struct Axis { unsigned x; };
static Axis gridDim, blockDim, blockIdx, threadIdx;
static void __syncthreads() {}
static bool __syncthreads_or(bool one) { return one; }
template <class Task>
static void all(void (*kernel)(Task), const void* task, unsigned blocks, unsigned threads) {
  gridDim.x = blocks, blockDim.x = threads;
  for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
    for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x)
      kernel(*static_cast<const Task*>(task));
}
"""
ENTRY = """
extern "C" void host_{name}(const void* task, unsigned blocks, unsigned threads) {{
  all(ingot::{name}, task, blocks, threads);
}}
"""


class HostFunction:
    """A kernel that this process runs, in the place of one that a GPU does."""

    device = torch.device("cpu")
    threads = 128

    def __init__(self, entry: Callable[[Any, int, int], None]) -> None:
        self.entry = entry

    def __call__(self, blocks: int, threads: int, stream: int, task: bytes) -> None:
        self.entry(task, blocks, threads)

    def bind(self, blocks: int, threads: int, task: Any) -> Callable[[int], None]:
        """What runs it with a structure."""
        return lambda stream: self.entry(task, blocks, threads)


def load_on_host(
    source: str, names: list[str], folder: Path, headers: Mapping[str, str] | None = None
) -> dict[str, HostFunction]:
    """The kernels of a source by name; headers: the texts that it includes."""
    for name, text in (headers or {}).items():
        (folder / name).write_text(text)
    text = HOST + source + "".join(ENTRY.format(name=name) for name in names)
    flags = (*compiler.FLAGS, f"-I{folder}")
    library = open_library(build.compile_library(text, flags, folder))
    return {name: HostFunction(getattr(library, f"host_{name}")) for name in names}
