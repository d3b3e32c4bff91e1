"""A list of [TensorComputes] -> groups of steps, and what a solver evaluates of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ingot.errors import IngotError, Problem, did_you_mean
from ingot.fields.blocks.bind import Binder
from ingot.fields.blocks.options import place
from ingot.fields.declare import COMPUTES
from ingot.fields.group import Group, members, steps_of
from ingot.fields.solvers.solve import Root, forwards
from ingot.fields.step import Step
from ingot.hit import Block

__all__ = ["ComputeList", "GroupOptions", "all_steps"]

AUTOMATIC = "automatic_root_compute"
"""What the group of all computes is called where a solver names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOptions:
    """Computes that run together.

    computes: names of further computes of [Solve] that belong to the group
    enable_jit: whether runs of its computes are compiled
    """

    computes: tuple[str, ...] = ()
    enable_jit: bool = True


@dataclass(slots=True)
class ComputeList:
    """Reads a list of [TensorComputes] into groups of steps; both are found by name.

    A step is one object however many groups name it, so that it runs once.
    """

    binder: Binder
    block: Block | None
    steps: dict[str, tuple[Step, ...]] = field(default_factory=dict)
    groups: dict[str, tuple[Block, GroupOptions]] = field(default_factory=dict)

    @property
    def rank(self) -> dict[Step, int]:
        """The place of each step in the file, which is their order unless one needs another."""
        written = (step for steps in self.steps.values() for step in steps)
        return {step: at for at, step in enumerate(written)}

    def parts(self) -> tuple[Step | Group, ...]:
        """The steps and groups that stand directly in the list."""
        if self.block is None:
            return ()
        self.binder.reader.problems += repeated_names(every(self.block))
        self.gather(self.block)
        try:
            for name, (asked, options) in self.groups.items():
                if not options.enable_jit:
                    self.leave_out(members(self.named(name, asked)), name)
            for name, steps in list(self.steps.items()):
                self.steps[name] = tuple(self.iterating(name, step) for step in steps)
            return tuple(p for each in self.block.blocks for p in self.named(each.name, each))
        except IngotError as error:
            self.binder.reader.problems += error.problems
            return ()

    def gather(self, block: Block) -> None:
        """Read every compute and the options of every group."""
        reader = self.binder.reader
        for each in block.blocks:
            if each.type in (None, "ComputeGroup"):
                options = reader.made(each, GroupOptions, ("type",), None)
                self.groups[each.name] = (each, options or GroupOptions())
                self.gather(each)
            else:
                self.steps[each.name] = self.binder.steps(each)

    def leave_out(self, steps: Iterable[Step], group: str) -> None:
        """Let steps stay out of compiled sequences, as a group of theirs asks."""
        some, reason = set(steps), f"[{group}] has enable_jit = false"
        for name, each in self.steps.items():
            self.steps[name] = tuple(
                dataclasses.replace(step, reason=step.reason or reason) if step in some else step
                for step in each
            )

    def iterating(self, name: str, step: Step) -> Step:
        """A step as it is, or with the steps of other computes that it runs until they converge."""
        declared = COMPUTES.get(step.function.__name__)
        if declared is None or declared.iterates is None:
            return step
        assert self.block is not None
        block = next(each for each in every(self.block) if each.name == name)

        def steps_named(option: str) -> tuple[Step, ...]:
            found = self.named(str(step.options[option]), block, (name,), option)
            return steps_of(found, self.rank)

        return declared.iterates(step, steps_named)

    def named(
        self, name: str, asked: Block, inside: tuple[str, ...] = (), option: str = ""
    ) -> list[Step | Group]:
        """The parts that a name stands for, which an option of a block says, or the block has."""
        span = place(asked, option) if option else asked.span
        if name in inside:
            what = "the group" if name in self.groups else "the compute"
            raise IngotError(
                [Problem("circular-computes", f"{what} '{name}' contains itself", span)]
            )
        if name in self.steps:
            return list(self.steps[name])
        if name not in self.groups:
            fix = did_you_mean(name, [*self.steps, *self.groups])
            title = "Solve" if self.block is None else self.block.name
            message = f"[{title}] has no compute '{name}'"
            raise IngotError([Problem("missing-block", message, span, fix)])
        block, options = self.groups[name]
        names = dict.fromkeys([*(each.name for each in block.blocks), *options.computes])
        parts = [p for each in names for p in self.named(each, block, (*inside, name))]
        return [Group(name, tuple(parts), options.enable_jit, block.span)]

    def missing_root(self, solver: Any, block: Block | None) -> Iterator[Problem]:
        """A problem where a lattice names a root that is not there; all of [Solve] is evaluated."""
        if block is not None and solver.root_compute:
            known = [*self.steps, *self.groups]
            if solver.root_compute not in known:
                message = f"[Solve] has no compute '{solver.root_compute}'"
                fix = did_you_mean(solver.root_compute, known)
                yield Problem("missing-block", message, place(block, "root_compute"), fix)

    def root(self, parts: Sequence[Step | Group], solver: Any, block: Block | None) -> Root:
        """What the solver evaluates: the group it names, or all of [Solve]."""
        reader = self.binder.reader
        try:
            more: tuple[Step, ...] = ()
            if solver is not None and block is not None:
                if solver.root_compute:
                    parts = self.named(solver.root_compute, block)
                more = forwards(solver.forward_buffer, solver.forward_buffer_new)
            names = [name for part in parts if isinstance(part, Group) for name in part.groups]
            names += [] if solver is None or solver.root_compute else [AUTOMATIC]
            return Root((*steps_of(parts, self.rank), *more), tuple(dict.fromkeys(names)))
        except IngotError as error:
            reader.problems += error.problems
            return Root(())


def every(block: Block) -> Iterator[Block]:
    """All computes and groups in a block."""
    for each in block.blocks:
        yield each
        if each.type in (None, "ComputeGroup"):
            yield from every(each)


def repeated_names(blocks: Iterator[Block]) -> Iterator[Problem]:
    seen: dict[str, Block] = {}
    for block in blocks:
        if seen.setdefault(block.name, block) is not block:
            message = (
                f"there is already a compute '{block.name}', on line {seen[block.name].span.line}"
            )
            yield Problem("duplicate-block", message, block.span, "rename one of the two")


def all_steps(block: Block | None, binder: Binder) -> tuple[Step, ...]:
    """The steps of [Initialize] or [Postprocess] in order."""
    listed = ComputeList(binder, block)
    try:
        return steps_of(listed.parts(), listed.rank)
    except IngotError as error:
        binder.reader.problems += error.problems
        return ()
