"""What compiling took: blocks, their instances, seconds; beside the whole model's if measured."""

import logging
from collections import Counter
from typing import TYPE_CHECKING

import msgspec
import torch

from ingot.graphs import torch_private

if TYPE_CHECKING:
    from ingot.regions.cut import Piece
    from ingot.regions.units import Unit

__all__ = ["BlockReport", "Report"]

LOG = logging.getLogger("ingot")


class BlockReport(msgspec.Struct):
    """A distinct block, or piece between blocks; `seconds` is 0 where it was found compiled.

    again: whether it serves only graphs that were compiled for other sizes or modes later.
    merged: how many blocks are compiled together in it, being dearer apart; 0 for one alone.
    """

    name: str
    kind: str
    instances: int
    seconds: float
    compiled: bool
    training: bool
    again: bool = False
    merged: int = 0


class Report(msgspec.Struct, kw_only=True, dict=True):
    """What was compiled for a module so far; it grows with calls that need other code.

    seconds: of all of it; whole_seconds: of torch.compile on the whole, where that was measured.
    breaks: where graphs end because Dynamo cannot follow, and why; what lies there runs eagerly.
    whole: why graphs are compiled whole instead of block by block.
    eager: what runs eagerly because it was compiled too often.
    """

    mode: str
    blocks: tuple[BlockReport, ...] = ()
    seconds: float = 0.0
    whole_seconds: float | None = None
    breaks: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    eager: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._rows: dict[int, tuple[Unit, BlockReport, Counter[tuple[int, int]]]] = {}
        self._frames: dict[int, int] = {}

    def note_unit(self, piece: "Piece", unit: "Unit", *, found: bool) -> None:
        """Count a call of a unit in the graph that is compiled now."""
        frame, compilation = torch_private.compilation_now()
        first = self._frames.setdefault(frame, compilation)
        if id(unit) not in self._rows:
            row = BlockReport(
                piece.name or "glue", "block" if piece.name else "glue", 0,
                0.0 if found else unit.seconds, not found, torch.is_grad_enabled(),
                compilation > first, piece.merged,
            )  # fmt: skip
            self._rows[id(unit)] = unit, row, Counter()
            self.blocks += (row,)
        _, row, counts = self._rows[id(unit)]
        counts[frame, compilation] += 1
        # a frame that is compiled again, for other sizes or modes, has the same instances
        most = {f: max(n for (g, _), n in counts.items() if g == f) for f, _ in counts}
        row.instances = sum(most.values())

    def note_break(self, told: str | None) -> None:
        """A place where a graph ends before its function does."""
        if told is not None and told not in self.breaks:
            self.breaks += (told,)

    def note_whole(self, why: str) -> None:
        """A graph that is compiled whole."""
        if why not in self.whole:
            self.whole += (why,)

    def note_eager(self, told: str) -> None:
        """Code that is compiled no more; it is told of once."""
        if told not in self.eager:
            self.eager += (told,)
            LOG.warning("runs eagerly from now on: %s", told)

    def _first(self) -> list[BlockReport]:
        """The blocks of the graphs that were compiled first."""
        return [b for b in self.blocks if b.kind == "block" and not b.again]

    @property
    def distinct(self) -> int:
        """How many different blocks there are."""
        return len(self._first())

    @property
    def instances(self) -> int:
        """How many places call a block."""
        return sum(b.instances * max(b.merged, 1) for b in self._first())

    @property
    def compiled(self) -> int:
        """How many compilations of blocks ran; other sizes or modes may need one more."""
        return sum(b.compiled for b in self.blocks if b.kind == "block")

    def json(self) -> str:
        """The same as JSON."""
        counts = {"distinct": self.distinct, "instances": self.instances, "compiled": self.compiled}
        return msgspec.json.encode(msgspec.to_builtins(self) | counts).decode()

    def __str__(self) -> str:
        head = f"{self.instances} blocks, {self.distinct} distinct, {self.compiled} compiled now"
        lines = [f"{head} ({self.mode}, {self.seconds:.2f} s)"]
        if not (self.blocks or self.whole or self.breaks or self.eager):
            lines.append("  nothing is compiled before the first call")
        wide = max((len(b.name) for b in self.blocks), default=0)
        for b in self.blocks:
            took = f"{b.seconds:7.2f} s" if b.compiled else "    found"
            how = f", {b.merged} blocks together, dearer apart" if b.merged else ""
            how += ", with its gradient" if b.training else ""
            how += ", for other sizes or modes" if b.again else ""
            lines.append(f"  {b.kind:5} {b.name:{wide}} x {b.instances:<4d}{took}{how}")
        lines += [f"  compiled whole: {why}" for why in self.whole]
        lines += [f"  graph breaks: {place}" for place in self.breaks]
        lines += [f"  runs eagerly: {what}" for what in self.eager]
        if self.whole_seconds is not None:
            lines.append(f"  the whole by torch.compile: {self.whole_seconds:.2f} s")
        return "\n".join(lines)
