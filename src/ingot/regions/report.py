"""What compiling took: blocks, their instances, seconds; beside the whole model's if measured."""

import msgspec

__all__ = ["BlockReport", "Report"]


class BlockReport(msgspec.Struct, frozen=True):
    """A distinct block or piece of glue; `seconds` is 0 where it was found compiled."""

    name: str
    kind: str
    instances: int
    seconds: float
    compiled: bool
    training: bool


class Report(msgspec.Struct, kw_only=True):
    """What was compiled for a module so far; it grows when a call first needs gradients.

    seconds: of all of it, those for capturing among them; whole_seconds: of torch.compile on the
    whole, where that was measured.
    """

    mode: str
    blocks: tuple[BlockReport, ...] = ()
    capture_seconds: float = 0.0
    seconds: float = 0.0
    whole_seconds: float | None = None

    def _first(self) -> list[BlockReport]:
        """The blocks of one way to run, with or without gradients."""
        return [
            b for b in self.blocks if b.kind == "block" and b.training == self.blocks[0].training
        ]

    @property
    def distinct(self) -> int:
        """How many different blocks there are."""
        return len(self._first())

    @property
    def instances(self) -> int:
        """How many places call a block."""
        return sum(b.instances for b in self._first())

    @property
    def compiled(self) -> int:
        """How many compilations of blocks ran; with gradients a block is compiled once more."""
        return sum(b.compiled for b in self.blocks if b.kind == "block")

    def json(self) -> str:
        """The same as JSON."""
        counts = {"distinct": self.distinct, "instances": self.instances, "compiled": self.compiled}
        return msgspec.json.encode(msgspec.to_builtins(self) | counts).decode()

    def __str__(self) -> str:
        head = f"{self.instances} blocks, {self.distinct} distinct, {self.compiled} compiled now"
        lines = [
            f"{head} ({self.mode}, {self.seconds:.2f} s, capture {self.capture_seconds:.2f} s)"
        ]
        wide = max((len(b.name) for b in self.blocks), default=0)
        for b in self.blocks:
            took = f"{b.seconds:7.2f} s" if b.compiled else "    found"
            how = ", with its gradient" if b.training else ""
            lines.append(f"  {b.kind:5} {b.name:{wide}} x {b.instances:<4d}{took}{how}")
        if self.whole_seconds is not None:
            lines.append(f"  the whole by torch.compile: {self.whole_seconds:.2f} s")
        return "\n".join(lines)
