"""A block of [TensorComputes] or [Postprocessors] -> the steps it stands for."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ingot.errors import IngotError
from ingot.fields.blocks.functions import Functions
from ingot.fields.blocks.options import Reader
from ingot.fields.declare import COMPUTES, DeclaredCompute
from ingot.fields.step import Buffer, Constant, Source, Step, flat
from ingot.hit import Block, Tree
from ingot.model.untrusted import untrusted_code

__all__ = ["Binder", "Bound"]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Bound:
    """A declared function with its arguments found: what changes, what is fixed, what it writes."""

    declared: DeclaredCompute
    arguments: dict[str, Source | tuple[Source, ...]]
    options: dict[str, Any]
    gives: tuple[str, ...]
    past: dict[str, str] = field(default_factory=dict)

    @property
    def reads(self) -> tuple[str, ...]:
        """The buffers that are read."""
        found = flat(self.arguments.values())
        return tuple(dict.fromkeys(s.name for s in found if isinstance(s, Buffer)))


@dataclass(slots=True)
class Binder:
    """What blocks may refer to: functions, constants, the file they stand in."""

    tree: Tree
    reader: Reader
    functions: Functions
    compatible: bool
    untrusted: bool = False

    def bound(self, block: Block, declared: DeclaredCompute, also: tuple[str, ...]) -> Bound | None:
        """A block's options as arguments; None where something is wrong, which the reader knows."""
        values = self.reader.values(block, declared.options, also)
        if values is None:
            return None
        if declared.check is not None:
            found = list(declared.check(block, values))
            self.reader.problems += found
            if found:
                return None
        arguments: dict[str, Source | tuple[Source, ...]] = {}
        options: dict[str, Any] = {}
        past: dict[str, str] = {}
        latest: list[str] = []
        for argument in declared.arguments:
            value: Any = values.get(argument.option.name)
            match argument.role:
                case "ambient":
                    assert argument.ambient is not None
                    arguments[argument.name] = argument.ambient
                case "grid":
                    if value is not None:
                        arguments[argument.name] = Buffer(value)
                        latest = [value]
                case "grids":
                    arguments[argument.name] = tuple(map(Buffer, value))
                    latest = list(value)
                case "names":
                    options[argument.name] = tuple(latest)
                case "past":
                    past[argument.name] = latest[0]
                case "compatible":
                    options[argument.name] = self.compatible
                case "constant" if isinstance(value, Constant):
                    arguments[argument.name] = value
                case "loaded":
                    options[argument.name] = self.loaded(block, declared, values)
                case "prepared":
                    pass
                case _:
                    options[argument.name] = self.resolved(block, argument.option.type, value)
        gives = [values[name] for name in declared.gives]
        names = tuple(n for each in gives for n in ((each,) if isinstance(each, str) else each))
        return Bound(declared, arguments, options, names, past)

    def loaded(self, block: Block, declared: DeclaredCompute, values: dict[str, Any]) -> Any:
        """What a compute loads from files before the run."""
        assert declared.load is not None
        folder = self.tree.file.parent if self.tree.file is not None else Path()
        try:
            if not self.untrusted:
                return declared.load(block, values, folder)
            if "untrusted" in inspect.signature(declared.load).parameters:
                return declared.load(block, values, folder, untrusted=True)
            message = f"[{block.path}] loads code from a file, which is not run"
            raise IngotError([untrusted_code(message, block.span)])
        except IngotError as error:
            self.reader.problems += error.problems
            return None

    def resolved(self, block: Block, kind: Any, value: Any) -> Any:
        """An option's value, a function being found by its name."""
        if "function" not in getattr(kind, "__metadata__", ()):
            return value
        try:
            return self.functions.function(value, block.require("function").value_span)
        except IngotError as error:
            self.reader.problems += error.problems
            return None

    def steps(self, block: Block) -> tuple[Step, ...]:
        """The steps of a compute: what it prepares, if anything, and itself."""
        declared = self.reader.type_of(block, COMPUTES)
        bound = None if declared is None else self.bound(block, declared, ("type",))
        if declared is None or bound is None:
            return ()
        name, arguments, before = block.name, dict(bound.arguments), ()
        if declared.prepare is not None:
            function, count = declared.prepare
            hidden = tuple(f"{block.path}#{number}" for number in range(count))
            wanted = {each: arguments[each] for each in inspect.signature(function).parameters}
            once = not (declared.always and bound.options[declared.always])
            before = (Step(f"{block.path}#", function, wanted, hidden, once=once, span=block.span),)
            slot = next(a.name for a in declared.arguments if a.role == "prepared")
            arguments[slot] = tuple(map(Buffer, hidden))
        step = Step(
            name, declared.function, arguments, bound.gives, bound.options,
            reason=declared.reason, span=block.span,
        )  # fmt: skip
        return (*before, step)
