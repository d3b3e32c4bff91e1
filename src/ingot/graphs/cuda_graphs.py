"""A call on a GPU -> a CUDA graph of it, which one launch repeats on the same memory."""

import gc
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Protocol

import torch

from ingot.graphs import torch_private

__all__ = ["Gpu", "Place", "Run", "gpu"]

Run = Callable[[list[Any]], Sequence[Any]]


class Place(Protocol):
    """What recordings are made on."""

    device: torch.device
    memory: int

    def stream(self) -> int:
        """A name of the current stream."""
        ...

    def unfit(self) -> str | None:
        """Why a call can neither be recorded nor replayed now."""
        ...

    def capture(self, run: Run, inputs: list[Any]) -> tuple[Callable[[], None], Sequence[Any], int]:
        """What replays a call, what it gives, and the bytes it holds; nothing has run yet."""
        ...


class Gpu:
    """One GPU."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.device = torch.device("cuda", index)
        self.memory = torch.cuda.get_device_properties(index).total_memory
        self._streams: dict[int, torch.cuda.Stream] = {}
        self._scratch: torch.cuda.MemPool | None = None

    def stream(self) -> int:
        """CUDA's name for the current stream."""
        return torch_private.raw_stream(self.index)

    def unfit(self) -> str | None:
        """Why a call on this GPU can neither be recorded nor replayed now."""
        if torch.cuda.current_device() != self.index:
            return "another device is current"
        return "a capture is under way" if torch.cuda.is_current_stream_capturing() else None

    def capture(self, run: Run, inputs: list[Any]) -> tuple[Callable[[], None], Sequence[Any], int]:
        """Capture a call into a CUDA graph with memory of its own.

        Memory that several shared would hold results of one and scratch values of another.
        """
        stream = self._streams.setdefault(self.stream(), torch.cuda.Stream(self.device))
        graph, pool = torch.cuda.CUDAGraph(), torch.cuda.graph_pool_handle()
        self._reserve_workspace(stream)
        before = torch.cuda.memory_reserved(self.index)
        collects = gc.isenabled()
        gc.disable()  # what the collector frees while a capture is under way may end it
        try:
            with torch.cuda.stream(stream):
                graph.capture_begin(pool, capture_error_mode="thread_local")
                try:
                    outputs = run(inputs)
                finally:
                    self._end(graph, pool)
        finally:
            if collects:
                gc.enable()
        # memory_snapshot(pool) would tell too, and ends torch 2.11 by a fault where a graph is gone
        taken = torch.cuda.memory_reserved(self.index) - before
        return graph.replay, outputs, max(taken, 0)

    def _end(self, graph: torch.cuda.CUDAGraph, pool: Any) -> None:
        """End a capture; what makes a call fail may have made the capture invalid, or not."""
        try:
            graph.capture_end()
        except RuntimeError:
            torch_private.abandon_capture(self.index, pool)
            raise

    def _reserve_workspace(self, stream: torch.cuda.Stream) -> None:
        """Let cuBLAS take its workspace for a stream from memory that is never given back.

        It would come from the first recording's memory, or be freed while recordings write to it.
        """
        if self._scratch is None:
            self._scratch = torch.cuda.MemPool()
        with torch.cuda.use_mem_pool(self._scratch), torch.cuda.stream(stream):
            one = torch.ones(1, 1, device=self.device)
            torch.mm(one, one)


gpu = cache(Gpu)
