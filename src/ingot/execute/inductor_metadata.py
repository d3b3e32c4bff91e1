"""All that running compiled graphs needs to know, as JSON writes it."""

from typing import Literal

import msgspec

from ingot.execute.batch_shape import ValueShape
from ingot.options import Newton

__all__ = [
    "ForwardSegment", "ImplicitSegment", "InductorDescription", "PartInfo", "SlopeInfo",
    "ValueInfo",
]  # fmt: skip


class ValueInfo(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A named value: graphs see it as (components, points), the entries of its axes outermost."""

    name: str
    kind: str
    axes: tuple[str, ...]
    sizes: tuple[int, ...]
    base: tuple[int, ...]

    @property
    def shape(self) -> ValueShape:
        """What callers see of it."""
        return ValueShape(self.name, self.sizes, self.base)


class SlopeInfo(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A derivative block; a constant one is the same for all points and has no batch."""

    output: str
    input: str
    batch_independent: bool


class _AbstractSegment(
    msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True, tag_field="segment"
):
    """What JSON tells apart by `segment`."""


class ForwardSegment(_AbstractSegment, frozen=True, kw_only=True, tag="forward"):
    """Graphs from values to values.

    value: reads -> gives; jvp: reads -> the blocks of `slopes` (rows, columns, points).
    """

    reads: tuple[str, ...]
    gives: tuple[str, ...]
    value: str
    jvp: str | None
    slopes: tuple[SlopeInfo, ...]

    @property
    def files(self) -> tuple[str, ...]:
        """The graphs that it needs."""
        return tuple(f for f in (self.value, self.jvp) if f is not None)


class PartInfo(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A value read that is another in a part of a step: an end of a force between `name` and
    `other`, `old` or `new`; or carried on, so that it becomes `other`, an unknown or a value read.
    """

    name: str
    role: Literal["old", "new", "carried"]
    other: str


class ImplicitSegment(_AbstractSegment, frozen=True, kw_only=True, tag="implicit"):
    """Graphs of one solve; `gives` are its unknowns, laid end to end in u.

    rhs: u, reads -> -r; step: u, step lengths (points,), reads -> u after an update, -r there;
    ift: u, reads -> -A^-1 B (unknowns, columns, points), columns being those of `columns`;
    inner: in their place where r solves another: what gives r, from unknowns, then from reads;
    predictor: reads -> u to start from, unless `guesses` names what each unknown starts from;
    level: how often a step that fails is halved; parts: what is read otherwise then.
    """

    name: str
    reads: tuple[str, ...]
    gives: tuple[str, ...]
    rhs: str | None
    step: str | None
    ift: str | None
    inner: "InductorDescription | None"
    columns: tuple[str, ...]
    predictor: str | None
    guesses: tuple[str, ...]
    rules: Newton
    level: int = 0
    parts: tuple[PartInfo, ...] = ()

    @property
    def varied(self) -> tuple[str, ...]:
        """What the unknowns have a derivative by, in parts of a step too."""
        forces = [n for p in self.parts if p.role != "carried" for n in (p.name, p.other)]
        names = [*self.columns, *(p.name for p in self.parts), *forces]
        return tuple(dict.fromkeys(names if self.columns else ()))

    @property
    def carried(self) -> dict[str, str]:
        """What is carried from part to part of a step, and what each becomes."""
        return {p.name: p.other for p in self.parts if p.role == "carried"}

    @property
    def files(self) -> tuple[str, ...]:
        """The graphs that it needs."""
        own = (self.rhs, self.step, self.ift, self.predictor)
        inner = self.inner.files if self.inner is not None else ()
        return (*inner, *(f for f in own if f is not None))


class InductorDescription(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """All that running the graphs of a folder needs.

    values: every value by name; inputs, parameters: which the caller gives, under the names of
    `given` where those differ; slopes: the derivative blocks that can be asked for.
    """

    dtype: str
    values: tuple[ValueInfo, ...]
    inputs: tuple[str, ...]
    parameters: tuple[str, ...]
    given: dict[str, str]
    outputs: tuple[str, ...]
    segments: tuple[ForwardSegment | ImplicitSegment, ...]
    slopes: tuple[SlopeInfo, ...]

    @property
    def files(self) -> tuple[str, ...]:
        """Every graph of the folder."""
        return tuple(f for s in self.segments for f in s.files)

    @property
    def solves(self) -> tuple[str, ...]:
        """The name of every solve, those inside another's residuals just before it."""
        found: dict[str, None] = {}
        for s in self.segments:
            if isinstance(s, ImplicitSegment):
                inside = s.inner.solves if s.inner is not None else ()
                found |= dict.fromkeys((*inside, s.name))
        return tuple(found)
