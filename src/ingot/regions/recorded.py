"""Calls on a GPU: those that lie alike are recorded as one CUDA graph, and replayed by one launch.

A recording reads its own copies of the inputs and the module's tensors where they lie, so that it
is good for one stream and as long as none of those tensors has moved. Results are copied out.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Dispatcher", "recordable"]

LOG = logging.getLogger("ingot")

WARM = 2
"""How many calls of a thread on a stream run as they come, so that all they need is loaded."""

RECORDINGS = 4
"""How many recordings one layout may have over its life; afterwards calls run as they come."""

KNOWN = 64
"""How many threads and streams are counted."""

LOCK = threading.Lock()
"""One recording at a time: all of them register the generator of random numbers."""

Run = Callable[[Sequence[Tensor]], list[Tensor]]
Place = tuple[int, list[int]]


def recordable(inputs: Sequence[Tensor], state: Sequence[Tensor]) -> bool:
    """Whether a call takes something, and all of it lies on one GPU."""
    devices = {x.device for x in (*inputs, *state)}
    return len(inputs) > 0 and len(devices) == 1 and inputs[0].is_cuda


@dataclass(frozen=True, slots=True)
class Recording:
    """A graph, where its operands lie, and the memory that it reads and writes."""

    graph: torch.cuda.CUDAGraph
    place: Place
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]

    def __call__(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        for own, given in zip(self.inputs, inputs, strict=True):
            own.copy_(given)
        self.graph.replay()
        return [x.clone() for x in self.outputs]


class Dispatcher:
    """Runs calls of one layout, by a recording where there is one for the stream and addresses."""

    def __init__(self, run: Run, state: Sequence[Tensor]) -> None:
        self.run, self.state = run, tuple(state)
        self.recordings: list[Recording] = []
        self.calls: dict[tuple[int, int], int] = {}
        self.left = RECORDINGS
        self.lock = threading.Lock()

    def __call__(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The outputs, in memory that belongs to the caller."""
        elsewhere = inputs[0].device.index != torch.cuda.current_device()
        if elsewhere or torch.cuda.is_current_stream_capturing():
            return self.run(inputs)
        place = self.place()
        with self.lock:
            for recording in self.recordings:
                if recording.place == place:
                    return recording(inputs)
            if self.left == 0 or not self.warm(place[0]):
                return self.run(inputs)
            self.left -= 1
            recording = self.recorded(inputs, place)
            if recording is None:
                self.left = 0
                return self.run(inputs)
            return self.first(recording, inputs)

    def warm(self, stream: int) -> bool:
        """Whether this thread has called often enough on a stream."""
        key = (threading.get_ident(), stream)
        if key not in self.calls and len(self.calls) >= KNOWN:
            self.calls.clear()
        self.calls[key] = self.calls.get(key, 0) + 1
        return self.calls[key] > WARM

    def first(self, recording: Recording, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Replay for the first time; one that writes to its inputs is not kept."""
        found = recording(inputs)
        pairs = zip(inputs, recording.inputs, strict=True)
        written = [(given, own) for given, own in pairs if not equal(given, own)]
        for given, own in written:
            given.copy_(own)
        if written:
            self.left = 0
        else:
            self.recordings.append(recording)
        return found

    def place(self) -> Place:
        """What a recording holds for: a stream, and where the module's tensors lie."""
        return torch.cuda.current_stream().cuda_stream, [*map(Tensor.data_ptr, self.state)]

    def recorded(self, inputs: Sequence[Tensor], place: Place) -> Recording | None:
        """A recording, or None where calls do what a graph cannot repeat."""
        with torch.inference_mode(False), torch.no_grad():
            own = tuple(torch.empty_like(x).copy_(x) for x in inputs)
            graph = torch.cuda.CUDAGraph()
            try:
                with LOCK, torch.cuda.graph(graph, capture_error_mode="thread_local"):
                    outputs = tuple(self.run(own))
            except RuntimeError as error:
                LOG.warning("calls are not recorded as a CUDA graph: %s", str(error).split("\n")[0])
                free_generator(own[0].device)
                return None
        return None if self.shares(own, outputs) else Recording(graph, place, own, outputs)

    def shares(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> bool:
        """Whether an output is a view of what the caller has besides: its copy would be none."""
        held = [x.untyped_storage().data_ptr() for x in (*inputs, *self.state)]
        given = [x.untyped_storage().data_ptr() for x in outputs]
        return len(set(given)) < len(given) or not set(held).isdisjoint(given)


def free_generator(device: torch.device) -> None:
    """2.11: after a recording that failed, random numbers would be refused ever after."""
    generator = torch.cuda.default_generators[device.index]
    generator.graphsafe_set_state(generator.clone_state())


def equal(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors hold the same numbers, or none at the same places."""
    return bool(((a == b) | (a != a)).all())
