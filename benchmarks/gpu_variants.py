"""Other ways to write a kernel of a GPU, measured side by side: what a part of it costs.

    python -m benchmarks.gpu_variants ../shared/cases

A way is a change of the headers, of the threads that are started together and of those that a
multiprocessor holds, or of the order of lines. Milliseconds of 99 steps, as benchmarks.gpu.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import torch

from benchmarks.floor import find_floor, measure_gpu
from benchmarks.gpu import CUDA, describe, drawn, repeated, timed
from benchmarks.load_paths import Folders
from ingot.codegen import compiler, lines, spill
from ingot.codegen.cuda import open_driver
from ingot.execute import Transient
from ingot.execute.kernel import Kernel
from ingot.execute.kernel_cuda import DeviceRunner

SHARED_CARVEOUT = 9
"""CUDA's number for that attribute of a function."""

Edit = tuple[str, str, str]
"""A header, what stands in it, and what stands there instead."""


@dataclass(frozen=True, slots=True)
class Way:
    """What is different: threads of a block, blocks at once, edits of headers, the order of lines.

    spills: whether values that are too many for registers go to shared memory on purpose;
    carveout: the part of a multiprocessor's memory that is no cache, in percent; headers: the
    folder that they are taken from
    """

    name: str
    threads: int = 128
    blocks: int = 2
    edits: Sequence[Edit] = ()
    ordered: bool = True
    spills: bool = True
    carveout: int | None = None
    headers: Path = compiler.HEADER_FOLDER

    @contextmanager
    def apply(self) -> Iterator[None]:
        """Kernels are written this way meanwhile."""
        with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
            folder = Path(scratch)
            for header in self.headers.glob("*.h"):
                (folder / header.name).write_text(header.read_text())
            threads = (
                "lane_cuda.h",
                "threads_of_block = 128;",
                f"threads_of_block = {self.threads};",
            )
            blocks = ("lane_cuda.h", "most_blocks = 2;", f"most_blocks = {self.blocks};")
            for header, old, new in (threads, blocks, *self.edits):
                text = (folder / header).read_text()
                assert old in text, f"{header} has no {old}"
                (folder / header).write_text(text.replace(old, new))
            stack.enter_context(mock.patch.object(compiler, "HEADER_FOLDER", folder))
            if not self.spills:
                never = mock.patch.object(spill, "MIN_PEAK_TO_SPILL", 1 << 30)
                stack.enter_context(never)
            if not self.ordered:
                as_read = mock.patch.object(lines, "shorten_lives", lambda lines, *_: [*lines])
                stack.enter_context(as_read)
            yield


NO_CHECK = ("newton.h", "    if (proven) return false;", "    return false;")
NO_PARKING = (
    "lane_cuda.h",
    "  held<n>(a, [&](V* copy) {\n    asm volatile",
    "  f(), held<n>(a, [&](V* copy) {\n    return; asm volatile",
)
LOAD = ("lane_cuda.h", "load(const real* p, int64_t, int) { return *p; }")
STORE = ("lane_cuda.h", "store(real* p, int64_t, int, V a) { *p = a; }")
PAST_L1 = (
    (*LOAD, "load(const real* p, int64_t, int) { return __ldcg(p); }"),
    (*STORE, "store(real* p, int64_t, int, V a) { __stcg(p, a); }"),
)
STREAMED = (
    (*LOAD, "load(const real* p, int64_t, int) { return __ldcs(p); }"),
    (*STORE, "store(real* p, int64_t, int, V a) { __stcs(p, a); }"),
)
WAYS = (
    Way("as it is"),
    Way("lines as first read", ordered=False),
    Way("nothing in shared memory", spills=False),
    Way("128 threads, 3 blocks, past L1, all of it a cache", 128, 3, PAST_L1, carveout=0),
    Way("256 threads, 1 block", 256, 1),
    Way("no check of updates", edits=(NO_CHECK,)),
    Way("nothing parked", edits=(NO_PARKING,)),
    Way("all of L1 a cache", carveout=0),
    Way("past L1", edits=PAST_L1),
    Way("streamed", edits=STREAMED),
    Way("past L1, all of it a cache", edits=PAST_L1, carveout=0),
)


def prefer(kernel: Kernel, carveout: int) -> None:
    """Tell CUDA how much of a multiprocessor's memory a kernel has no use for as a cache."""
    assert isinstance(kernel.entry.run, DeviceRunner)
    handle = kernel.entry.run.function.handle
    status = open_driver().cuFuncSetAttribute(handle, SHARED_CARVEOUT, carveout)
    assert status == 0, f"CUDA: {status}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--names", nargs="*", default=["isoharden", "chaboche", "gtn", "crystal"])
    parser.add_argument("--points", type=int, default=1 << 18)
    parser.add_argument("--ways", nargs="*", default=[way.name for way in WAYS])
    parser.add_argument("--headers", type=Path, help="a folder of other headers, all of them")
    options = parser.parse_args()
    ways = [way for way in WAYS if way.name in options.ways]
    if options.headers:
        ways.append(Way("other headers", headers=options.headers))
    machine = measure_gpu()
    print(machine, flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        for name in options.names:
            driver = drawn(name, Folders(options.cases, Path(scratch)))
            first = driver.transient.to(CUDA)
            prescribed = {n: repeated(x, 1, options.points) for n, x in first.prescribed.items()}
            initial = {n: repeated(x, 0, options.points) for n, x in first.initial.items()}
            whole = Transient(first.steps, prescribed, initial)
            steps = (first.steps - 1) * options.points
            floor = (find_floor(name, machine) or 0) * steps * 1e3
            for way in ways:
                with way.apply():
                    kernel = Kernel(driver.program, device=CUDA)
                if way.carveout is not None:
                    prefer(kernel, way.carveout)
                took = timed(kernel.arrange(whole), 5)
                told = {
                    "case": name,
                    "way": way.name,
                    "ms": round(took, 3),
                    "floor_ms": round(floor, 3),
                }
                rate = f"{steps / took * 1e3:.3g}"
                print(json.dumps(told | {"rate": rate} | describe(kernel)), flush=True)
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
