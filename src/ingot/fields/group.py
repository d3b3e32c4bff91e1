"""Groups of computes -> steps in order: whoever writes a buffer runs before whoever reads it."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ingot.errors import IngotError, Problem, Span
from ingot.fields.step import Step

__all__ = ["Group", "in_order", "members", "steps_of"]


Part = TypeVar("Part", bound="Step | Group")


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Computes that run together: steps, and groups of them."""

    name: str
    parts: tuple[Step | Group, ...]
    enable_jit: bool = True
    span: Span | None = None

    @property
    def reads(self) -> tuple[str, ...]:
        """What the group reads from outside."""
        own = set(self.writes)
        return tuple(dict.fromkeys(n for p in self.parts for n in p.reads if n not in own))

    @property
    def writes(self) -> tuple[str, ...]:
        """All that the group writes."""
        return tuple(dict.fromkeys(name for part in self.parts for name in given_by(part)))

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of this group and of those inside."""
        inner = (part.groups for part in self.parts if isinstance(part, Group))
        return (self.name, *(name for names in inner for name in names))

    def invalidate(self) -> None:
        """Drop the compiled sequences that hold computes of this group."""
        from ingot.fields.jit import drop

        drop(members(self.parts))


def given_by(part: Step | Group) -> tuple[str, ...]:
    return part.gives if isinstance(part, Step) else part.writes


def members(parts: Sequence[Step | Group]) -> Iterator[Step]:
    """All steps, those of groups included, in the order they are written; each once."""
    found = ((p,) if isinstance(p, Step) else members(p.parts) for p in parts)
    yield from dict.fromkeys(step for steps in found for step in steps)


def steps_of(
    parts: Sequence[Step | Group], rank: Mapping[Step, int] | None = None
) -> tuple[Step, ...]:
    """All steps in an order that works, each once; `rank` is their order in the file.

    Groups are opened, so that longer sequences can be compiled; where the steps of opened groups
    depend on each other in a circle, each group runs as a whole.
    """
    steps = list(members(parts))
    if rank is not None:
        steps.sort(key=rank.__getitem__)
    try:
        return in_order(tuple(steps))
    except IngotError:
        if all(isinstance(part, Step) for part in parts):
            raise
    whole = in_order(tuple(parts))
    inner = (steps_of((p,) if isinstance(p, Step) else p.parts, rank) for p in whole)
    return tuple(dict.fromkeys(step for steps in inner for step in steps))


def in_order(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Writers before readers; parts that have nothing to do with each other keep their order."""
    writers: dict[str, list[int]] = {}
    for at, part in enumerate(parts):
        for name in given_by(part):
            writers.setdefault(name, []).append(at)
    before = [
        {w for n in p.reads for w in writers.get(n, ()) if w != at} for at, p in enumerate(parts)
    ]
    after: list[list[int]] = [[] for _ in parts]
    for at, earlier in enumerate(before):
        for writer in earlier:
            after[writer].append(at)
    waiting = [len(earlier) for earlier in before]
    ready = [at for at, count in enumerate(waiting) if count == 0]
    order: list[int] = []
    while ready:
        at = heapq.heappop(ready)
        order.append(at)
        for later in after[at]:
            waiting[later] -= 1
            if waiting[later] == 0:
                heapq.heappush(ready, later)
    if len(order) < len(parts):
        raise IngotError([circle(parts, before, set(order))])
    return tuple(parts[at] for at in order)


def circle(parts: Sequence[Step | Group], before: list[set[int]], done: set[int]) -> Problem:
    """The problem of computes that wait for each other."""
    at = next(at for at in range(len(parts)) if at not in done)
    path: list[int] = []
    while at not in path:
        path.append(at)
        at = min(before[at] - done)
    names = [parts[each].name for each in (*path[path.index(at) :], at)]
    message = f"these computes wait for each other: {' <- '.join(names)}"
    fix = "let one of them write another buffer, and hand it on with forward_buffer"
    return Problem("circular-computes", message, parts[at].span, fix)
