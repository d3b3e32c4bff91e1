"""A Result -> Content, named arrays and a header of JSON that say all of it, and back."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

import msgspec
import numpy as np
import torch

from ingot.drivers.result import Result
from ingot.drivers.series import Array
from ingot.execute import Status
from ingot.execute.status import STATUS_ROWS
from ingot.types import KINDS

__all__ = ["SIDES", "Content", "Header", "assemble", "find_rest", "quote", "take_apart", "unquote"]

FORMAT = "ingot-result"
SIDES = ("inputs", "initial", "outputs")


class SolveHeader(msgspec.Struct, frozen=True):
    """Which solve a status is of, and the step of its first row."""

    name: str
    begin: int


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What a Result is besides its arrays."""

    format: str = FORMAT
    version: int = 1
    steps: int
    batch: tuple[int, ...]
    read: tuple[str, ...]
    seconds: float
    kinds: dict[str, str]
    shapes: dict[str, tuple[int, ...]]
    axes: dict[str, tuple[str, ...]]
    units: dict[str, str]
    inputs: tuple[str, ...]
    initial: tuple[str, ...]
    outputs: tuple[str, ...]
    solves: tuple[SolveHeader, ...]

    @property
    def points(self) -> int:
        """How many points the batch holds."""
        return int(np.prod(self.batch, dtype=np.int64))

    def inner(self, name: str) -> tuple[int, ...]:
        """The shape of a variable at one step and point."""
        return (*self.shapes.get(name, ()), *KINDS[self.kinds[name]].base)

    def to_json(self) -> str:
        """One line of JSON."""
        return msgspec.json.encode(self).decode()

    @staticmethod
    def from_json(text: str | bytes) -> "Header":
        """The header that a text is; anything else is a ValueError."""
        header = msgspec.json.decode(text, type=Header)
        if header.format != FORMAT or header.version != 1:
            raise ValueError(f"it is '{header.format}' of version {header.version}")
        return header


@dataclass(frozen=True, slots=True)
class Content:
    """A header, and arrays `times`, `outputs/stress`, `statuses/return_map/iterations`, ..."""

    header: Header
    arrays: Mapping[str, Array]


def take_apart(result: Result) -> Content:
    """All that a result holds."""
    sides = {side: getattr(result, side) for side in SIDES}
    header = Header(
        steps=result.steps, batch=tuple(result.batch), read=tuple(result.read),
        seconds=result.seconds, kinds={n: k.__name__ for n, k in result.kinds.items()},
        shapes={n: tuple(s) for n, s in result.shapes.items()}, axes=dict(result.axes),
        units=dict(result.units), inputs=tuple(result.inputs), initial=tuple(result.initial),
        outputs=tuple(result.outputs),
        solves=tuple(SolveHeader(s.solve, s.begin) for s in result.statuses),
    )  # fmt: skip
    arrays = {"times": result.times.detach().numpy()}
    for side, rows in sides.items():
        arrays |= {f"{side}/{quote(n)}": x.detach().numpy() for n, x in rows.items()}
    for status in result.statuses:
        where = f"statuses/{quote(status.solve)}"
        arrays |= {f"{where}/{row}": getattr(status, row).numpy() for row in STATUS_ROWS}
    return Content(header, arrays)


def assemble(content: Content) -> Result:
    """The result that was taken apart; a ValueError or KeyError where something is missing."""
    header = content.header
    tensors = {key: torch.from_numpy(np.array(x)) for key, x in content.arrays.items()}
    sides = {
        side: {name: tensors[f"{side}/{quote(name)}"] for name in getattr(header, side)}
        for side in SIDES
    }
    for side, rows in sides.items():
        for name, values in rows.items():
            _check_shape(header, side, name, tuple(values.shape))
    statuses = tuple(
        Status(s.name, *(tensors[f"statuses/{quote(s.name)}/{row}"] for row in STATUS_ROWS),
               begin=s.begin)
        for s in header.solves
    )  # fmt: skip
    kinds = {name: KINDS[kind] for name, kind in header.kinds.items()}
    return Result(
        header.steps, header.batch, sides["inputs"], sides["initial"], sides["outputs"],
        header.read, statuses, header.seconds, tensors["times"], kinds, header.shapes, header.axes,
        header.units,
    )  # fmt: skip


def _check_shape(header: Header, side: str, name: str, shape: tuple[int, ...]) -> None:
    inner = header.inner(name)
    lead = () if side == "initial" else (header.steps,)
    if shape[: len(lead)] != lead or shape[len(shape) - len(inner) :] != inner:
        raise ValueError(f"'{name}' has the shape {shape}")


def find_rest(content: Content, rebuilt: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays that a format does not give back bit for bit, and must hold besides."""

    def same(a: Array, b: Array | None) -> bool:
        if b is None or (a.dtype, a.shape) != (b.dtype, b.shape):
            return False
        return a.tobytes() == b.tobytes()

    return {key: x for key, x in content.arrays.items() if not same(x, rebuilt.get(key))}


def quote(name: str) -> str:
    """A name as one part of a path; `urllib.parse.unquote` takes it back."""
    part = name.replace("%", "%25").replace("/", "%2F")
    # Zarr keeps names that begin so, and names of dots alone, for itself
    if part.startswith("__") or not part.strip("."):
        part = "".join(f"%{ord(letter):02X}" for letter in part[:2]) + part[2:]
    return part
