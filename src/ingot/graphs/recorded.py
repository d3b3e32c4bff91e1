"""Compiled code on a GPU -> the same code, recorded as CUDA graphs and replayed by one launch each.

An instance of the code (one block of many) is told by the addresses of its parameters. A recording
reads parameters, and what other recordings gave, where they lie; other operands are copied in. What
it gives lies in its own memory, and it is not replayed while any of that is still in use.
"""

import logging
import threading
import weakref
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef

from ingot.graphs.cuda_graphs import Place, Run
from ingot.graphs.torch_private import any_dispatch, use_count, view_memory

__all__ = ["Dispatcher", "held"]

LOG = logging.getLogger("ingot")

WARM = 2
"""How many calls of an instance run as they come, so that all kernels they need are loaded."""

RECORDINGS = 4
"""How many recordings an instance has: more than one where results outlive the next call, as
gradients that are accumulated do. The last one copies all operands in and results out."""

INSTANCES = 256
"""How many instances of one code are recorded; further ones are launched plainly."""

WAITING = 64
"""How many instances are counted that were not called often enough yet."""

LARGEST = 128 << 20
"""Bytes that one recording may hold: past that a call takes far longer to run than to launch."""

SHARE = 0.05
"""How much of a GPU's memory all recordings may hold together."""

Result = tuple[int, Sequence[int] | None, Sequence[int], int]
"""Which of a recording's memory, constants and operands a result is, in this order; where only a
part of it, the size, the strides and the offset of the part."""


class _Copy:
    """Memory of a recording that an operand is copied into, unless it is known to hold it already.

    at: the operand's place; fixed: whether what a tensor holds there never changes.
    """

    __slots__ = ("at", "fixed", "own", "source")

    def __init__(self, at: int, own: Tensor, *, fixed: bool) -> None:
        self.at, self.own, self.fixed = at, own, fixed
        self.source: weakref.ref[Tensor] | None = None

    def take(self, x: Tensor) -> None:
        """Hold what an operand holds."""
        if self.source is not None and self.source() is x:
            return
        self.own.copy_(x)
        if self.fixed:
            self.source = weakref.ref(x)


@dataclass(frozen=True, slots=True)
class _Recording:
    """A graph, where it reads its operands, and the memory that it writes.

    at, addresses: operands that must lie where they lay; copied: those that are copied first, each
    with what it was copied from where a copy of the same tensor need not be made again.
    memory: whole storages of results; free: how many refer to each of them, and their sizes, when
    nobody has a result; gives: where results lie, unless they are copied out.
    """

    replay: Callable[[], None]
    at: tuple[int, ...]
    addresses: list[int]
    copied: tuple["_Copy", ...]
    memory: list[Tensor]
    constants: list[Any]
    results: list[Result]
    cells: list[int]
    free: tuple[list[int], list[int]]
    gives: list[int]
    copies_out: bool
    size: int

    def takes(self, inputs: Sequence[Any], addresses: Sequence[int]) -> bool:
        """Whether operands lie where this reads them, and nobody uses what it gave before."""
        if [addresses[i] for i in self.at] != self.addresses:
            return False
        for copy in self.copied:
            if inputs[copy.at].shape != copy.own.shape:
                return False
        return self.copies_out or _count_references(self.memory, self.cells) == self.free

    def copies_results(self, addresses: Sequence[int]) -> bool:
        """Whether operands would be copied that lie where a recording gives them."""
        return any(addresses[copy.at] in RESULTS for copy in self.copied)

    def __call__(self, inputs: list[Any]) -> list[Any]:
        for copy in self.copied:
            copy.take(inputs[copy.at])
        self.replay()
        memory = [x.clone() for x in self.memory] if self.copies_out else self.memory
        of = [*memory, *self.constants, *inputs]
        inputs.clear()
        return [
            of[i] if size is None else view_memory(of[i], size, stride, offset)
            for i, size, stride, offset in self.results
        ]


def _count_references(
    memory: Sequence[Tensor], cells: Sequence[int]
) -> tuple[list[int], list[int]]:
    """How many refer to each storage, and where it lies: somebody may have resized it."""
    return [*map(use_count, cells)], [*map(Tensor.data_ptr, memory)]


@dataclass(slots=True)
class _Instance:
    """The calls with one set of parameters, on one stream and for one set of sizes.

    parameters: addresses by which it is found; owners: what must live for it to be called again.
    """

    parameters: list[int]
    owners: list[StorageWeakRef] = field(default_factory=list)
    calls: int = 0
    recordings: list[_Recording] = field(default_factory=list)
    refused: str | None = None


LOCK = threading.RLock()
"""Held while recordings are found, replayed and made: all of them register one generator."""

PARAMETERS: Counter[int] = Counter()
"""Addresses of parameters, and of views of them, by the number of instances that have them."""

RESULTS: Counter[int] = Counter()
"""Addresses of what recordings give."""

DISPATCHERS: "weakref.WeakSet[Dispatcher]" = weakref.WeakSet()


def held() -> tuple[int, int]:
    """How many recordings there are in this process, and the bytes that they hold."""
    with LOCK:
        found = [d.instances.values() for d in DISPATCHERS]
        sizes = [r.size for instances in found for i in instances for r in i.recordings]
        return len(sizes), sum(sizes)


class Dispatcher:
    """Runs one compiled code, by a recording where there is one for the operands' addresses.

    run: the code, which takes a list and may empty it; static: where in the list tensors stay at
    their address for long, beside parameters; fixed: where what a tensor holds never changes, so
    that the same one is copied once; writes: where tensors are written to; open_sizes: whether
    sizes and strides may differ between calls.
    plain: how many calls were launched plainly, by cause; replayed: how many were not.
    """

    def __init__(
        self, run: Run, place: Place, *, static: Collection[int] = (), fixed: Collection[int] = (),
        writes: Collection[int] = (), backward: bool = False, open_sizes: bool = True,
    ) -> None:  # fmt: skip
        self.run, self.place, self.backward, self.open_sizes = run, place, backward, open_sizes
        # where a code writes to what moves from call to call, no instance is met again
        self.static, self.fixed = {*static, *writes}, frozenset(fixed)
        self.instances: dict[Any, _Instance] = {}
        self.waiting: OrderedDict[Any, _Instance] = OrderedDict()
        self.tensors: tuple[int, ...] = ()
        self.numbers: tuple[int, ...] = ()
        self.never: str | None = None
        self.plain: Counter[str] = Counter()
        self.replayed = 0
        DISPATCHERS.add(self)

    def __del__(self) -> None:
        with LOCK:
            for instance in (*self.instances.values(), *self.waiting.values()):
                _forget(instance)

    def __call__(self, inputs: list[Any]) -> Sequence[Any]:
        """What the code gives; the list is emptied."""
        cause = self.never or self.place.unfit()
        if cause is None and any_dispatch():
            cause = "operations are being traced"
        if cause is None:
            with LOCK:
                found = self._replay(inputs)
            if not isinstance(found, str):
                return found
            cause = found
        self.plain[cause] += 1
        return self.run(inputs)

    def _replay(self, inputs: list[Any]) -> list[Any] | str:
        """The results of a recording, or why there is none."""
        if not self.tensors:
            self.never = self._examine(inputs)
            if self.never is not None:
                return self.never
        key, addresses = self._key(inputs)
        instance = self.instances.get(key) or self._count(key, inputs)
        if isinstance(instance, str):
            return instance
        spare = None
        for recording in instance.recordings:
            if recording.takes(inputs, addresses):
                if not recording.copies_results(addresses):
                    self.replayed += 1
                    return recording(inputs)
                spare = recording
        # what lay anywhere and is copied may now be given by another recording, and stay there
        if spare is None or len(instance.recordings) < RECORDINGS - 1:
            made = self._record(instance, inputs, addresses)
            if not isinstance(made, str):
                spare = made
            elif spare is None:
                return made
        self.replayed += 1
        return spare(inputs)

    def _examine(self, inputs: Sequence[Any]) -> str | None:
        """Note which operands are tensors, at all calls the same, and why none is recorded."""
        self.tensors = tuple(i for i, x in enumerate(inputs) if isinstance(x, Tensor))
        self.numbers = tuple(i for i, x in enumerate(inputs) if not isinstance(x, Tensor))
        if not self.backward:
            self.static |= {i for i in self.tensors if isinstance(inputs[i], nn.Parameter)}
        if not self.tensors:
            return "no operand is a tensor"
        if not all(isinstance(inputs[i], int | None) for i in self.numbers):
            return "an operand is neither a tensor nor a whole number"
        return None

    def _key(self, inputs: Sequence[Any]) -> tuple[Any, list[int]]:
        """What tells instances apart, and the address of each tensor, 0 in place of a number."""
        if self.numbers:
            addresses = [x.data_ptr() if isinstance(x, Tensor) else 0 for x in inputs]
            numbers = tuple([inputs[i] for i in self.numbers])
        else:
            addresses, numbers = [*map(Tensor.data_ptr, inputs)], ()
        if self.open_sizes:
            numbers += tuple([(x.shape, x.stride()) for x in inputs if isinstance(x, Tensor)])
        known = tuple([address if address in PARAMETERS else 0 for address in addresses])
        return (self.place.stream(), numbers, known), addresses

    def _count(self, key: Any, inputs: Sequence[Any]) -> _Instance | str:
        """An instance that is recorded from now on, or why it is not yet."""
        instance = self.waiting.get(key)
        if instance is None:
            static = [inputs[i].data_ptr() for i in self.tensors if i in self.static]
            instance = _Instance([address for address in static if address])
            PARAMETERS.update(instance.parameters)
            key, _ = self._key(inputs)
            self.waiting[key] = instance
            if len(self.waiting) > WAITING:
                _forget(self.waiting.popitem(last=False)[1])
        self._note_owners(instance, inputs)
        instance.calls += 1
        if instance.calls <= WARM:
            return "it is not warm"
        if len(self.instances) >= INSTANCES:
            drop_dead()
        if len(self.instances) >= INSTANCES:
            return "the table is full"
        self.instances[key] = self.waiting.pop(key)
        return instance

    def _note_owners(self, instance: _Instance, inputs: Sequence[Any]) -> None:
        """Note whose memory an instance reads: others may lie by now where those before lay."""
        instance.owners = [
            StorageWeakRef(inputs[i].untyped_storage())
            for i in self.tensors if inputs[i].data_ptr() in PARAMETERS
        ]  # fmt: skip

    def _record(
        self, instance: _Instance, inputs: Sequence[Any], addresses: Sequence[int]
    ) -> _Recording | str:
        """A new recording of an instance, which has not run yet, or why there is none."""
        if instance.refused is not None:
            return instance.refused
        # attention gives the seed of its dropout on the CPU unless it is captured
        if any(inputs[i].device != self.place.device for i in self.tensors):
            return "an operand lies on another device"
        self._note_owners(instance, inputs)
        drop_dead()
        if held()[1] >= SHARE * self.place.memory:
            return "recordings hold all the memory they may"
        last = len(instance.recordings) == RECORDINGS - 1
        at = tuple(
            i for i in self.tensors
            if addresses[i] in PARAMETERS or (addresses[i] in RESULTS and not last)
        )  # fmt: skip
        made = self._capture(inputs, addresses, at, copies_out=last)
        if isinstance(made, str):
            instance.refused = made
            return made
        instance.recordings.append(made)
        RESULTS.update(made.gives)
        if not self.backward:  # what is saved of a parameter may be a view of it
            first = len(made.memory) + len(made.constants)
            parts = [
                addresses[i - first] + offset * inputs[i - first].element_size()
                for i, size, _, offset in made.results
                if i - first in self.static and size is not None
            ]
            PARAMETERS.update(parts)
            instance.parameters += parts
        return made

    def _capture(
        self, inputs: Sequence[Any], addresses: Sequence[int], at: tuple[int, ...], *,
        copies_out: bool,
    ) -> _Recording | str:  # fmt: skip
        """A recording that reads the operands `at` where they lie, and copies of the others."""
        own = list(inputs)
        with torch.inference_mode(False), torch.no_grad():
            for i in self.tensors:
                if i in at:
                    continue
                x = inputs[i]
                if any(s == 0 < n - 1 for s, n in zip(x.stride(), x.shape, strict=True)):
                    return "an operand overlaps itself"
                own[i] = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)
            try:
                replay, outputs, size = self.place.capture(self.run, list(own))
            except RuntimeError as error:
                self.never = f"it cannot be captured: {str(error).splitlines()[0]}"
                LOG.warning("calls are not recorded as a CUDA graph: %s", self.never)
                return self.never
            copied = tuple(
                _Copy(i, own[i], fixed=i in self.fixed) for i in self.tensors if i not in at
            )
            size += sum(copy.own.untyped_storage().nbytes() for copy in copied)
            if size > LARGEST:
                return "it is large"
            # a backward pass may write its results over operands: those in copies are ours
            theirs = [(i, own[i]) for i in self.tensors if i in at or not self.backward]
            described = _describe(outputs, theirs)
        del outputs, theirs, own
        if isinstance(described, str):
            return described
        memory, constants, results = described
        cells = [x.untyped_storage()._cdata for x in memory]
        mine = Counter(copy.own.untyped_storage()._cdata for copy in copied)
        free = _count_references(memory, cells)
        # a tensor and its storage refer to memory that is ours; others have a constant besides
        if any(n > 2 + mine[cell] for n, cell in zip(free[0], cells, strict=True)):
            return "it gives a constant"
        gives = [
            memory[i].data_ptr() + offset * memory[i].element_size()
            for i, size, _, offset in results
            if i < len(memory) and memory[i].numel() and not copies_out
        ]
        return _Recording(
            replay, at, [addresses[i] for i in at], copied, memory, constants, results, cells,
            free, gives, copies_out, size,
        )  # fmt: skip


def _describe(
    outputs: Sequence[Any], operands: Sequence[tuple[int, Tensor]]
) -> tuple[list[Tensor], list[Any], list[Result]] | str:
    """The memory of outputs that lie in no operand, constants, and how to make each output."""
    of = {x.untyped_storage()._cdata: (i, x) for i, x in reversed(operands)}
    same = {id(x): i for i, x in operands}
    memory: dict[int, tuple[int, Tensor]] = {}
    constants = [y for y in outputs if not isinstance(y, Tensor)]
    for y in outputs:
        if isinstance(y, Tensor) and y.untyped_storage()._cdata not in of:
            storage = y.untyped_storage()
            flat = torch.empty(0, dtype=y.dtype, device=y.device)
            flat.set_(storage, 0, (storage.nbytes() // y.element_size(),), (1,))
            memory.setdefault(storage._cdata, (len(memory), flat))
    first, seen = len(memory) + len(constants), 0
    results: list[Result] = []
    for y in outputs:
        if not isinstance(y, Tensor):
            results.append((len(memory) + seen, None, (), 0))
            seen += 1
        elif id(y) in same:
            results.append((first + same[id(y)], None, (), 0))
        else:
            at = y.untyped_storage()._cdata
            i, x = of.get(at) or memory[at]
            if x.dtype != y.dtype:
                return "it gives a view of another type"
            offset = int(y.storage_offset() - x.storage_offset())
            number = i if at in memory else first + i
            results.append((number, tuple(y.shape), y.stride(), offset))
    if any(x.device != y.device for _, x in memory.values() for _, y in operands):
        return "it gives a tensor on another device"
    return [x for _, x in memory.values()], constants, results


def drop_dead() -> None:
    """Drop recordings whose parameters are gone: nobody can call with them again."""
    tables = [table for d in DISPATCHERS for table in (d.instances, d.waiting)]
    for table in tables:
        for key, instance in list(table.items()):
            if any(owner.expired() for owner in instance.owners):
                _forget(table.pop(key))


def _forget(instance: _Instance) -> None:
    for address in instance.parameters:
        _release(PARAMETERS, address)
    _drop_recordings(instance)


def _drop_recordings(instance: _Instance) -> None:
    for recording in instance.recordings:
        for address in recording.gives:
            _release(RESULTS, address)
    instance.recordings.clear()


def _release(counter: Counter[int], address: int) -> None:
    counter[address] -= 1
    if counter[address] <= 0:
        del counter[address]
