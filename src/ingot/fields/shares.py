"""Share: which part of a box a rank holds, and what ranks exchange, by torch.distributed.

In: the sizes of a box, a mode, a rank among others. Out: slices of grids and spectra, transforms by
transposes, halos, sums over all ranks. Ingot writes no transport: gloo or NCCL carries everything.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor

from ingot.errors import IngotError, Problem
from ingot.graphs.torch_private import import_collectives

__all__ = [
    "Box",
    "ExchangeError",
    "Mode",
    "Parts",
    "Share",
    "deal",
    "parts_of",
    "share_of",
    "within",
]

Mode = Literal["NONE", "FFT_SLAB", "FFT_PENCIL", "REAL_SPACE"]
Box = tuple[slice, ...]
"""A part of a grid or of a spectrum: where it begins and ends along each axis."""

HALF = {"FFT_PENCIL": 0}
"""The axis along which a mode stores half of the wavenumbers."""


class ExchangeError(RuntimeError):
    """An exchange among ranks in a graph that is being captured; it stays between sequences."""


def deal(count: int, weights: Sequence[int]) -> tuple[int, ...]:
    """Rows dealt out by weight; each part gets one at least, the last takes the rest."""
    parts: list[int] = []
    for at, weight in enumerate(weights):
        left, later = count - sum(parts), len(weights) - at - 1
        whole = max(1, min(left * weight // sum(weights[at:]), left - later))
        parts.append(whole if at < len(weights) - 1 else left)
    return tuple(parts)


@dataclass(frozen=True, slots=True)
class Parts:
    """How a box is cut: along each axis the sizes of the parts, of the grid and of its spectrum.

    Ranks are counted with the last axis running fastest.
    """

    sizes: tuple[int, ...]
    grid: tuple[tuple[int, ...], ...]
    spectrum: tuple[tuple[int, ...], ...]
    mode: Mode

    @property
    def layout(self) -> tuple[int, ...]:
        """How many parts of the grid lie along each axis."""
        return tuple(map(len, self.grid))

    @property
    def count(self) -> int:
        """How many ranks there are."""
        return math.prod(self.layout)

    @property
    def spectrum_sizes(self) -> tuple[int, ...]:
        """The sizes of the whole spectrum."""
        return tuple(map(sum, self.spectrum))

    def place(self, rank: int) -> tuple[int, ...]:
        """Where a rank's part of the grid lies, counted along each axis."""
        found = []
        for extent in reversed(self.layout):
            rank, at = divmod(rank, extent)
            found.append(at)
        return tuple(reversed(found))

    def rank(self, place: Sequence[int]) -> int:
        """Whose part lies at a place."""
        rank = 0
        for at, extent in zip(place, self.layout, strict=True):
            rank = rank * extent + at % extent
        return rank

    def box(self, rank: int) -> Box:
        """The cells of a rank."""
        return tuple(map(within, self.grid, self.place(rank)))

    def spectrum_box(self, rank: int) -> Box:
        """The wavenumbers of a rank."""
        place = self.place(rank)
        match self.mode:
            case "FFT_SLAB":  # the cut goes from y to x
                place = (place[1], place[0], *place[2:])
            case "FFT_PENCIL":  # the cuts go from y and z to x and y
                place = (place[1], place[2], place[0])
            case _:
                pass
        return tuple(map(within, self.spectrum, place))

    def join(self, pieces: Sequence[Tensor], *, spectral: bool) -> Tensor:
        """The whole of a field or a spectrum from the parts of all ranks; narrow ones stay so."""
        find_box = self.spectrum_box if spectral else self.box
        sizes = self.spectrum_sizes if spectral else self.sizes
        first, boxes = pieces[0], [find_box(rank) for rank in range(self.count)]
        if self.count == 1 or first.dim() < len(sizes):
            return first
        # one cell of several along an axis: a part of that size, or a value that holds along it
        narrow = [
            any(piece.shape[axis] == 1 != box[axis].stop - box[axis].start
                for piece, box in zip(pieces, boxes, strict=True))
            for axis in range(len(sizes))
        ]  # fmt: skip
        shape = (1 if thin else n for thin, n in zip(narrow, sizes, strict=True))
        whole = first.new_empty((*shape, *first.shape[len(sizes) :]))
        for box, piece in zip(boxes, pieces, strict=True):
            cut = zip(narrow, box, strict=True)
            whole[tuple(slice(0, 1) if thin else each for thin, each in cut)] = piece
        return whole


def within(sizes: Sequence[int], at: int) -> slice:
    """The rows of one of the parts along an axis."""
    begin = sum(sizes[:at])
    return slice(begin, begin + sizes[at])


def parts_of(sizes: tuple[int, ...], mode: Mode, weights: Sequence[int]) -> Parts:
    """The cut of a box among ranks, one for each weight; a problem where it has too few cells."""
    count, whole = len(weights), tuple((n,) for n in sizes)
    half = HALF.get(mode)
    kept = tuple(n // 2 + 1 if axis == half else n for axis, n in enumerate(sizes))
    grid: list[tuple[int, ...]] = list(whole)
    spectrum: list[tuple[int, ...]] = [(n,) for n in kept]
    match mode:
        case "FFT_SLAB":
            grid[1], spectrum[0] = deal(sizes[1], weights), deal(kept[0], weights)
        case "FFT_PENCIL":
            rows, columns = nearly_square(count)
            grid[1:] = deal(sizes[1], (1,) * rows), deal(sizes[2], (1,) * columns)
            spectrum[:2] = deal(kept[0], (1,) * rows), deal(kept[1], (1,) * columns)
        case "REAL_SPACE":
            layout = least_surface(sizes, count)
            grid = [deal(n, (1,) * p) for n, p in zip(sizes, layout, strict=True)]
            spectrum = list(grid)
        case "NONE":
            pass
    if count > 1 and (mode == "NONE" or min(map(min, (*grid, *spectrum))) < 1):
        cells = " x ".join(map(str, sizes))
        message = f"a box of {cells} cells cannot be shared among {count} ranks by {mode}"
        fix = "use fewer ranks"
        if mode == "NONE":
            fix = "set parallel_mode = FFT_SLAB in [Domain], or REAL_SPACE for a lattice"
        raise IngotError([Problem("wrong-ranks", message, fix=fix)])
    return Parts(sizes, tuple(grid), tuple(spectrum), mode)


def nearly_square(count: int) -> tuple[int, int]:
    """Two factors of a number, as close to each other as can be, the larger first."""
    low = next(n for n in range(math.isqrt(count), 0, -1) if count % n == 0)
    return count // low, low


def least_surface(sizes: tuple[int, ...], count: int) -> tuple[int, ...]:
    """How many parts to cut along each axis, so that ranks exchange as little as can be."""
    found: list[tuple[float, float, tuple[int, ...]]] = []

    def try_axes(left: int, chosen: tuple[int, ...]) -> None:
        if len(chosen) == len(sizes) - 1:
            layout = (*chosen, left)
            if all(p <= n for p, n in zip(layout, sizes, strict=True)):
                edges = [n / p for n, p in zip(sizes, layout, strict=True)]
                surface = sum(math.prod(edges) / e for e, p in zip(edges, layout, strict=True)
                              if p > 1)  # fmt: skip
                found.append((surface, max(edges) / min(edges), layout))
            return
        for n in range(1, left + 1):
            if left % n == 0:
                try_axes(left // n, (*chosen, n))

    try_axes(count, ())
    return min(found)[2] if found else (count, *(1 for _ in sizes[1:]))


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """What one rank holds, and its ways to the others."""

    parts: Parts
    rank: int
    groups: dict[str, Any] = field(default_factory=dict)
    """Ranks that exchange in the first and in the second transpose of a pencil."""

    @property
    def box(self) -> Box:
        """The cells of this rank."""
        return self.parts.box(self.rank)

    @property
    def spectrum_box(self) -> Box:
        """The wavenumbers of this rank."""
        return self.parts.spectrum_box(self.rank)

    def forward(self, local: Tensor) -> Tensor:
        """The rank's part of the spectrum of a field, from its part of the field."""
        parts = self.parts
        if parts.mode == "FFT_SLAB":
            others = [axis for axis in range(len(parts.sizes)) if axis != 1]
            mixed = torch.fft.fftn(local, dim=others)
            return torch.fft.fft(self.transpose(mixed, "all", (0, 1)), dim=1)
        mixed = self.transpose(torch.fft.rfft(local, dim=0), "first", (0, 1))
        mixed = self.transpose(torch.fft.fft(mixed, dim=1), "second", (1, 2))
        return torch.fft.fft(mixed, dim=2)

    def inverse(self, local: Tensor) -> Tensor:
        """The rank's part of the field of a spectrum."""
        parts = self.parts
        if parts.mode == "FFT_SLAB":
            mixed = self.transpose(torch.fft.ifft(local, dim=1), "all", (0, 1), back=True)
            others = [axis for axis in range(len(parts.sizes)) if axis != 1]
            return torch.fft.ifftn(mixed, dim=others).real.contiguous()
        mixed = self.transpose(torch.fft.ifft(local, dim=2), "second", (1, 2), back=True)
        mixed = self.transpose(torch.fft.ifft(mixed, dim=1), "first", (0, 1), back=True)
        return torch.fft.irfft(mixed, n=parts.sizes[0], dim=0)

    def transpose(
        self, local: Tensor, group: str, axes: tuple[int, int], *, back: bool = False
    ) -> Tensor:
        """Cut the first of two axes instead of the second, or the other way round."""
        # a part is cut along an axis of the spectrum by the sizes of the spectrum's parts
        first, second = self.parts.spectrum[axes[0]], self.parts.grid[axes[1]]
        if len(first) == 1 and len(second) == 1:
            return local
        (cut, sizes), (joined, others) = (axes[0], first), (axes[1], second)
        if back:
            (cut, sizes), (joined, others) = (axes[1], second), (axes[0], first)
        pieces = [piece.contiguous() for piece in local.split(sizes, dim=cut)]
        mine = pieces[self.within(group)].shape
        shapes = [(*mine[:joined], n, *mine[joined + 1 :]) for n in others]
        received = self.exchange(pieces, shapes, self.groups.get(group))
        return torch.cat(received, dim=joined)

    def within(self, group: str) -> int:
        """The number of this rank in a group."""
        place = self.parts.place(self.rank)
        return {"all": place[1], "first": place[1], "second": place[-1]}[group]

    def exchange(
        self, pieces: Sequence[Tensor], shapes: Sequence[Sequence[int]], group: Any
    ) -> list[Tensor]:
        """A piece to each rank of a group, and one from each, of these shapes."""
        flat = torch.cat([torch.view_as_real(piece).reshape(-1) for piece in pieces])
        counts = [2 * math.prod(shape) for shape in shapes]
        received = flat.new_empty(sum(counts))
        dist.all_to_all_single(received, flat, counts, [2 * p.numel() for p in pieces], group)
        return [
            torch.view_as_complex(part.reshape(*shape, 2))
            for part, shape in zip(received.split(counts), shapes, strict=True)
        ]

    def pad(self, local: Tensor, axis: int, width: int) -> Tensor:
        """A part of a field with `width` layers of its neighbours on both sides along an axis."""
        low = local.narrow(axis, 0, width).contiguous()
        high = local.narrow(axis, local.shape[axis] - width, width).contiguous()
        if self.parts.layout[axis] == 1:
            return torch.cat([high, local, low], axis)
        place = list(self.parts.place(self.rank))
        before, after = (
            self.parts.rank([*place[:axis], place[axis] + step, *place[axis + 1 :]])
            for step in (-1, 1)
        )
        from_before, from_after = torch.empty_like(high), torch.empty_like(low)
        # both neighbours may be one rank: messages between two ranks arrive in the order sent
        requests = dist.batch_isend_irecv([
            dist.P2POp(dist.isend, high, after),
            dist.P2POp(dist.irecv, from_before, before),
            dist.P2POp(dist.isend, low, before),
            dist.P2POp(dist.irecv, from_after, after),
        ])  # fmt: skip
        for request in requests:
            request.wait()
        return torch.cat([from_before, local, from_after], axis)

    def require_rows(self, axis: int, count: int) -> None:
        """Refuse a cut along an axis whose parts are thinner than this; all ranks do so alike."""
        least = self.thinnest(axis)
        if self.parts.layout[axis] > 1 and least < count:
            message = f"a rank holds {least} cells along {'xyz'[axis]}, and {count} are needed"
            raise IngotError([Problem("wrong-ranks", message, fix="use fewer ranks")])

    def thinnest(self, axis: int) -> int:
        """The fewest rows that a rank holds along an axis."""
        return min(self.parts.grid[axis])

    def add(self, number: Tensor) -> Tensor:
        """The sum over all ranks."""
        total = number.clone()
        dist.all_reduce(total)
        return total

    def largest(self, number: Tensor) -> Tensor:
        """The largest over all ranks; NaN where one has it."""
        found = number.clone()
        dist.all_reduce(found, dist.ReduceOp.MAX)
        odd = self.add(torch.isnan(number).to(number.dtype))
        return torch.where(odd > 0, torch.full_like(found, torch.nan), found)

    def is_spectral(self, local: Tensor, *, spectral: bool) -> bool:
        """Whether a tensor lies as a spectrum does; `spectral` where both could be."""
        fits = [
            all(n in (1, each.stop - each.start) for n, each in zip(local.shape, box, strict=False))
            for box in (self.box, self.spectrum_box)
        ]
        return fits[1] and (spectral or not fits[0])

    def own(self, whole: Tensor, *, spectral: bool = False) -> Tensor:
        """The part of this rank of a field or a spectrum, which may be narrow."""
        box = self.spectrum_box if spectral else self.box
        if whole.dim() < len(box):
            return whole
        cut = tuple(slice(None) if n == 1 else each
                    for n, each in zip(whole.shape, box, strict=False))  # fmt: skip
        return whole[cut].contiguous()

    def gather(self, local: Tensor, *, spectral: bool = False) -> Tensor:
        """The whole of a field or a spectrum, on every rank."""
        spectral = self.is_spectral(local, spectral=spectral)
        plain = torch.view_as_real(local) if local.is_complex() else local
        shapes = self.agree(tuple(plain.shape))
        sent = plain.new_zeros(max(map(math.prod, shapes)))
        sent[: plain.numel()] = plain.reshape(-1)
        received = [torch.empty_like(sent) for _ in shapes]
        dist.all_gather(received, sent)
        pieces = [
            each[: math.prod(shape)].reshape(shape)
            for each, shape in zip(received, shapes, strict=True)
        ]
        if local.is_complex():
            pieces = [torch.view_as_complex(piece) for piece in pieces]
        return self.parts.join(pieces, spectral=spectral)

    def agree(self, value: Any) -> list[Any]:
        """What every rank says, in their order."""
        said: list[Any] = [None] * self.parts.count
        dist.all_gather_object(said, value)
        return said


def share_of(parts: Parts, rank: int) -> Share:
    """The share of a rank; all ranks must ask for theirs, since groups are made together."""
    import_collectives()
    groups: dict[str, Any] = {}
    if parts.mode == "FFT_PENCIL" and parts.count > 1:
        _, rows, columns = parts.layout
        for name, axis, many, other in (("first", 1, columns, rows), ("second", 2, rows, columns)):
            for line in range(many):
                places = [(0, k, line) if axis == 1 else (0, line, k) for k in range(other)]
                members = [parts.rank(place) for place in places]
                group = dist.new_group(members)
                if rank in members:
                    groups[name] = group
    return Share(parts, rank, groups)
