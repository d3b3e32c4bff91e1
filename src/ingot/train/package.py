"""Compiled signatures -> folder -> the same in a process that never saw the source.

One format for joints and for regions, told apart by its `kind`. A package is native code: load only
packages you trust as you trust a program.
"""

import io
import mmap
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import msgspec
import torch
from torch import Tensor, nn

from ingot.codegen.cpu_levels import find_supported_levels
from ingot.errors import IngotError, Problem, raise_if
from ingot.execute.devices import tell_missing
from ingot.keywords import check_keywords
from ingot.package.seal import (
    BLANK,
    GRAPHS,
    Digest,
    find_other_level,
    find_other_torch,
    open_metadata,
    read_files,
    read_torch_version,
    write_sealed,
)
from ingot.train.compile import Half, from_source, inductor
from ingot.train.module import Joint, unite
from ingot.train.ready import Code
from ingot.train.signature import Held, Saved, Signature

__all__ = [
    "NAME", "Described", "Packaged", "from_bytes", "load", "read_package", "save", "to_bytes",
    "with_state", "write",
]  # fmt: skip

FORMAT = "ingot-graphs"
SCHEMA = 7
"""The version of this layout; loaders refuse any other."""

NAME = GRAPHS
STATE = "state.pt"
FILES = {
    "inductor": ("graph{}.txt", "graph{}.pt2"),
    "eager": ("graph{}.txt", "graph{}.py.txt", "graph{}_constants.pt"),
}
"""The files of a compiled graph, by how it was; the first is its text, which nothing runs."""

ALIGNED = 64
"""Bytes, as torch aligns what it allocates."""

LARGE_PAGE = 2 << 20
"""Bytes; less than one is not worth the while."""

AGAIN = {
    "joint": "save it again: ingot.train.joint(...).save(FOLDER)",
    "regions": 'compile it again: ingot.regions.compile(..., mode="aot", output=FOLDER)',
}
WHAT = {"joint": "joint package", "regions": "package of regions"}
LOADER = {"joint": "ingot.train.load(FOLDER)", "regions": "ingot.regions.load(FOLDER)"}
Kind = Literal["joint", "regions"]
T = TypeVar("T")


class Packaged(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A signature and the numbers of its graphs; equal graphs are stored once."""

    signature: Signature
    saved: Saved
    partition: str
    graphs: dict[Literal["forward", "backward"], int]


class Described(msgspec.Struct, Generic[T], frozen=True, forbid_unknown_fields=True):
    """The metadata of a package; `more` is what its kind has besides."""

    format: str
    schema_version: int
    kind: Kind
    torch_version: str
    level: str
    calls: tuple[Packaged, ...]
    graphs: tuple[Literal["inductor", "eager"], ...]
    more: T
    digests: dict[str, Digest]
    seal: Digest = BLANK

    @property
    def files(self) -> tuple[str, ...]:
        """The state, and the files of all graphs."""
        names = [f.format(i) for i, kind in enumerate(self.graphs) for f in FILES[kind]]
        return (STATE, *names)


# writing


@check_keywords
def save(joint: Joint, folder: str | Path) -> Path:
    """Write a joint in one step: the old one, or the new one, is there at any moment."""
    return write(folder, "joint", joint.codes, joint.held(), None)


def write(
    folder: str | Path, kind: Kind, codes: Sequence[Code], state: Sequence[Tensor], more: Any
) -> Path:
    """Write a package: compiled signatures, the tensors that they hold, and what else there is."""
    # the room of packages imports what reads input files, which loading does not need
    from ingot.package.write import choose_place, open_scratch, put, save_tensors

    place = choose_place(folder)
    graphs: dict[tuple[str, bytes], int] = {}
    calls = []
    with open_scratch(place) as made:
        for code in codes:
            halves: Any = {"forward": code.forward_half, "backward": code.backward_half}
            present = {name: half for name, half in halves.items() if half is not None}
            numbers: Any = {
                name: _write(half, name, made, graphs) for name, half in present.items()
            }
            calls.append(Packaged(code.signature, code.saved, code.strategy, numbers))
        save_tensors(_copy_apart(state), made / STATE)
        kinds: Any = tuple(kind for kind, _ in graphs)
        described = Described(
            FORMAT, SCHEMA, kind, read_torch_version(), find_supported_levels()[0], tuple(calls),
            kinds, more, {},
        )  # fmt: skip
        write_sealed(described, made / NAME)
        put(made, place)
    return place


def _copy_apart(state: Sequence[Tensor]) -> list[Tensor]:
    """Tensors without the rest of the memory that they lie in; those that share it still do."""
    where = [t.untyped_storage().data_ptr() for t in state]
    count = Counter(where)
    found = [t.detach() for t in state]
    copies = [t.clone() if count[w] == 1 else t for t, w in zip(found, where, strict=True)]
    return [c.requires_grad_(t.requires_grad) for c, t in zip(copies, state, strict=True)]


def _write(half: Half, name: str, folder: Path, graphs: dict[tuple[str, bytes], int]) -> int:
    """The number of a graph, whose files are written unless an equal one's were."""
    if half.kind == "callable":
        told = f"the {name} graph was compiled by a callable, which a package cannot hold"
        fix = f"compile_{name}='inductor' or 'eager' can be saved"
        raise IngotError([Problem("unsaveable", told, None, fix)])
    if not all(isinstance(x, Tensor) for x in half.constants.values()):
        told = f"the {name} graph holds graphs, as torch.cond makes them, and runs line by line"
        fix = f"compile_{name}='inductor' can be saved"
        raise IngotError([Problem("unsaveable", told, None, fix)])
    constants = io.BytesIO()
    torch.save(half.constants, constants)
    contents = [half.archive]
    if half.kind == "eager":
        contents = [half.source.encode(), constants.getvalue()]
    key = half.kind, b"\0".join(contents)
    if key in graphs:
        return graphs[key]
    number = graphs.setdefault(key, len(graphs))
    for file, content in zip(FILES[half.kind], [half.text.encode(), *contents], strict=True):
        (folder / file.format(number)).write_bytes(content)
    return number


# reading


@check_keywords
def load(folder: str | Path) -> Joint:
    """The joint of a package, refused where anything does not fit."""
    _, codes, values = read_package(folder, "joint", Described[None])
    states = unite([code.signature for code in codes])
    return Joint(codes, [*map(with_state, states, values)])


def with_state(held: Held, value: Tensor) -> Tensor:
    """A tensor as what it was in the source."""
    wanted = held.tensor.requires_grad and value.requires_grad
    return nn.Parameter(value, requires_grad=wanted) if held.parameter else value.detach()


def read_package(
    folder: object, kind: Kind, form: type[Described[T]]
) -> tuple[T, list[Code], list[Tensor]]:
    """What a package of a kind has besides, its signatures, ready to be called, and its tensors."""
    again = AGAIN[kind]
    place = Path(folder) if isinstance(folder, str | os.PathLike) else None
    if place is None or not (place / NAME).is_file():
        told = f"no {WHAT[kind]} in {str(folder)!r}" + (", which is no folder" * (place is None))
        raise IngotError([Problem("file-not-found", told, None, again)])
    other = open_metadata(place / NAME, Described[Any], FORMAT, SCHEMA, again).kind
    if other != kind:
        told = f"'{place}' holds a {WHAT[other]}, not a {WHAT[kind]}"
        raise IngotError([Problem("file-not-found", told, None, f"load it by {LOADER[other]}")])
    described = open_metadata(place / NAME, form, FORMAT, SCHEMA, again)
    problems = [*find_other_torch(described.torch_version, again)]
    problems += _find_missing_devices(described.calls, again)
    if "inductor" in described.graphs:
        problems += find_other_level(described.level)
    raise_if(problems)
    contents = read_files(described, place, again)
    graphs = [_half(kind, contents, i) for i, kind in enumerate(described.graphs)]
    codes = []
    for call in described.calls:
        halves = {name: graphs[i] for name, i in call.graphs.items()}
        forward, backward = halves["forward"], halves.get("backward")
        codes.append(Code(call.signature, call.saved, forward, backward, call.partition))
    state = torch.load(io.BytesIO(contents[STATE]), weights_only=True)
    return described.more, codes, _settle(state)


def _find_missing_devices(calls: Sequence[Packaged], fix: str) -> Iterator[Problem]:
    shaped = (
        s for c in calls for s in (*(h.tensor for h in c.signature.held), *c.signature.results)
    )
    for device in sorted({s.device for s in shaped}):
        if why := tell_missing(device):
            yield Problem("no-device", f"it was compiled for '{device}': {why}", None, fix)


def _settle(state: list[Tensor]) -> list[Tensor]:
    """Large tensors of the CPU side by side in large pages; those that share memory still do.

    Graphs that hold constants have them so, in the pages of their file: with small pages a call
    that reads 200 MB takes some two in a hundred longer.
    """
    stored = [t.untyped_storage() for t in state if t.device.type == "cpu" and t.numel()]
    whose = {s.data_ptr(): s for s in stored}
    places = [*accumulate((-(-s.nbytes() // ALIGNED) * ALIGNED for s in whose.values()), initial=0)]
    if places[-1] < LARGE_PAGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return state
    memory = mmap.mmap(-1, places[-1], flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # a kernel without them
        memory.madvise(mmap.MADV_HUGEPAGE)
    own: dict[int, Any] = {}
    for at, (address, old) in zip(places, whose.items(), strict=False):
        new = torch.frombuffer(memory, dtype=torch.uint8, count=old.nbytes(), offset=at)
        own[address] = new.untyped_storage().copy_(old)
    settled = []
    for old in state:
        storage = own.get(old.untyped_storage().data_ptr(), old.untyped_storage())
        new = torch.empty(0, dtype=old.dtype, device=old.device)
        new.set_(storage, old.storage_offset(), old.shape, old.stride())
        settled.append(new.requires_grad_(old.requires_grad))
    return settled


def _half(kind: str, contents: Mapping[str, bytes], number: int) -> Half:
    text, *code = (contents[file.format(number)] for file in FILES[kind])
    if kind == "inductor":
        return replace(inductor(code[0]), text=text.decode())
    source = code[0].decode()
    constants = torch.load(io.BytesIO(code[1]), weights_only=True)
    run = from_source(source, constants)
    return Half(kind, run, source=source, constants=constants, text=text.decode())


# pickle


def to_bytes(joint: Joint) -> dict[str, bytes]:
    """The files of a package."""
    with tempfile.TemporaryDirectory(prefix="ingot-") as scratch:
        place = Path(scratch) / "joint"
        joint.save(place)
        return {file.name: file.read_bytes() for file in place.iterdir()}


def from_bytes(files: Mapping[str, bytes], read: Callable[[str], Joint] = load) -> Joint:
    """The joint of a package's files."""
    with tempfile.TemporaryDirectory(prefix="ingot-") as scratch:
        for name, content in files.items():
            (Path(scratch) / name).write_bytes(content)
        return read(scratch)
