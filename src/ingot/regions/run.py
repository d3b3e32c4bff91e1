"""Units of a package in turn: a module as calls of compiled pieces over numbered values."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec
import torch
from torch import Tensor

from ingot.graphs.cuda_graphs import Place, gpu
from ingot.graphs.recorded import Dispatcher
from ingot.graphs.sizes import Size, evaluated
from ingot.graphs.torch_private import any_autocast
from ingot.train.ready import Code, Entry, Ready, make_outputs
from ingot.train.signature import Signature

__all__ = ["Chain", "UnitCall"]


class UnitCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One call of a unit: which values it reads and gives, and which nobody reads after it.

    Values are numbered, the primals of the module first; those that a call gives follow one
    another. place: what runs there, for readers. sizes: the unit's open sizes as Python over the
    module's; carries: whether the unit is given them by the shape of an empty tensor.
    """

    unit: int
    place: str
    reads: tuple[int, ...]
    gives: tuple[int, ...]
    ends: tuple[int, ...]
    sizes: dict[str, Size]
    carries: bool


class Chain(Entry):
    """Code that runs units in turn; `results` are the values that the module's outputs are of."""

    def __init__(
        self, signature: Signature, calls: Sequence[UnitCall], results: Sequence[int],
        units: Sequence[Code], *, cuda_graphs: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(signature, partial(_Ready, self))
        self.unit_calls, self.results, self.units = calls, results, units
        self.cuda_graphs = cuda_graphs
        first = len(signature.held) + len(signature.tensors)
        self.count = max((i for c in calls for i in c.gives), default=first - 1) + 1 - first

    def find_written(self) -> set[int]:
        """The primals that units write to, also by views of them that other units made."""
        written: set[int] = set()
        origins: dict[int, int] = {}
        for call in self.unit_calls:
            signature = self.units[call.unit].signature
            read = [origins.get(i, i) for i in call.reads]
            written.update(read[i] for i, _ in signature.mutated)
            for value, output in zip(call.gives, signature.outputs, strict=True):
                if output.source == "primal":
                    origins[value] = read[output.index]
        return {i for i in written if i < len(self.signature.held) + len(self.signature.tensors)}


Link = tuple[Callable[[list[Any]], Sequence[Any]], tuple[int, ...], list[Tensor], int, int,
             tuple[int, ...]]  # fmt: skip


class _Ready:
    """A call of a chain; once it has run, the calls of its units are laid out too."""

    def __init__(self, chain: Chain, primals: Sequence[Tensor], sizes: dict[str, int]) -> None:
        self.chain, self.sizes = chain, sizes
        self.links: list[Link] = []
        self.outputs = make_outputs(chain.signature, sizes)
        self.run: Callable[[list[Any]], Sequence[Any]] = self._run
        differs = torch.is_grad_enabled() and any(x.requires_grad for x in primals)
        place = _find_place(primals) if chain.cuda_graphs and not differs else None
        if place is not None:
            static = range(len(chain.signature.held))
            self.run = Dispatcher(self._run, place, static=static, writes=chain.find_written())

    def __call__(self, primals: list[Tensor]) -> Any:
        """What the module gives for tensors that lie as those did."""
        return self._finish(self.run([*primals]), primals)

    def checked(self, primals: list[Tensor]) -> Any:
        """The same where the units' calls may not be laid out yet."""
        if self.links and not any_autocast():
            return self(primals)
        values: list[Any] = [*primals, *[None] * self.chain.count]
        links: list[Link] = []
        for call in self.chain.unit_calls:
            unit = self.chain.units[call.unit]
            sizes = {name: evaluated(text, self.sizes) for name, text in call.sizes.items()}
            carried = [torch.empty([*sizes.values(), 0], device=unit.device)] * call.carries
            given = [*(values[i] for i in call.reads), *carried]
            ready = Ready(unit, given, sizes)
            first = call.gives[0] if call.gives else len(values)
            last = first + len(call.gives)
            values[first:last] = ready.checked(given)
            links.append((ready.fastest(), call.reads, carried, first, last, call.ends))
        self.links = links
        return self._finish([values[i] for i in self.chain.results], primals)

    def _run(self, values: list[Any]) -> list[Any]:
        values += [None] * self.chain.count
        value = values.__getitem__
        for run, reads, carried, first, last, ends in self.links:
            values[first:last] = run([*map(value, reads), *carried])[: last - first]
            for i in ends:
                values[i] = None
        return [values[i] for i in self.chain.results]

    def _finish(self, results: Sequence[Any], primals: Sequence[Tensor]) -> Any:
        for primal, result in self.chain.signature.mutated:
            to, value = primals[primal], results[result]
            # what carries a gradient on to the next call is told there, by the checks of a call
            with torch.set_grad_enabled(value.requires_grad and not to.requires_grad):
                to.copy_(value)
        return self.outputs(results, primals)


def _find_place(primals: Sequence[Tensor]) -> Place | None:
    """The one GPU that a call runs on, if it does."""
    devices = {x.device for x in primals}
    on_gpu = len(devices) == 1 and primals[0].is_cuda
    return gpu(primals[0].device.index) if on_gpu else None
