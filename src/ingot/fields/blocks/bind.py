"""A block of [TensorComputes] or [Postprocessors] -> the steps it stands for."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ingot.errors import IngotError, Problem, did_you_mean
from ingot.fields.blocks.functions import Functions
from ingot.fields.blocks.options import Reader, place
from ingot.fields.blocks.variables import Mapped
from ingot.fields.declare import COMPUTES, REQUIRED, DeclaredCompute
from ingot.fields.lbm.setting import LatticeSetting
from ingot.fields.step import Buffer, Constant, Old, Source, Step, flat
from ingot.hit import Block, Tree
from ingot.model.untrusted import untrusted_code

__all__ = ["Binder", "Bound"]

NOT_READ = "not read"
"""What the sentence of an option begins with that Marlin asks for and that changes nothing."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Bound:
    """A declared function with its arguments found: what changes, what is fixed, what it writes."""

    declared: DeclaredCompute
    arguments: dict[str, Source | tuple[Source, ...]]
    options: dict[str, Any]
    gives: tuple[str, ...]
    past: dict[str, str] = field(default_factory=dict)
    starts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    follows: Mapping[str, str] = field(default_factory=dict)
    mapped: Mapped | None = None
    """The variable of the mesh that stands for a buffer."""

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
    dim: int = 2
    untrusted: bool = False
    lattice: LatticeSetting = field(default_factory=LatticeSetting)
    constants: Mapping[str, float] = field(default_factory=dict)
    variables: Mapping[str, Mapped] = field(default_factory=dict)

    def bound(self, block: Block, declared: DeclaredCompute, also: tuple[str, ...]) -> Bound | None:
        """A block's options as arguments; None where something is wrong, which the reader knows."""
        values = self.reader.values(block, declared.options, also)
        if values is None:
            return None
        own = values.get("marlin_compatible")
        compatible = self.compatible if own is None else bool(own)
        stencil = self.lattice.stencil
        known = {**values, "compatible": compatible, "dim": self.dim, "stencil": stencil}
        found = list(self.lattice.missing(block, declared, values))
        found += [] if declared.check is None else declared.check(block, known)
        self.reader.problems += found
        if found:
            return None
        arguments: dict[str, Source | tuple[Source, ...]] = {}
        options: dict[str, Any] = {}
        past: dict[str, str] = {}
        latest: list[str] = []
        loaded: Any = None
        idle = declared.idle(known) if declared.idle is not None else set()
        idle -= {option.name for option in declared.options if option.default is REQUIRED}
        for option in declared.options:
            if option.name in idle and not option.doc.startswith(NOT_READ):
                self.reader.tell_idle(block, option, values[option.name])
        mapped: Mapped | None = None
        for argument in declared.arguments:
            value: Any = values.get(argument.option.name)
            if argument.option.name in idle:
                continue
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
                case "variable":
                    mapped = self.variable(block, argument.option.name, value)
                    if mapped is None:
                        return None
                    arguments[argument.name] = Buffer(mapped.buffer)
                case "nodal":
                    assert mapped is not None
                    options[argument.name] = mapped.nodal
                case "names":
                    options[argument.name] = tuple(latest)
                case "past":
                    past[argument.name] = latest[0]
                case "compatible":
                    options[argument.name] = compatible
                case "former":
                    arguments[argument.name] = Old(value)
                case "stencil":
                    options[argument.name] = self.lattice.stencil
                case "solid" | "cells":
                    mask = self.lattice.mask(argument.role, values, block)
                    options |= {argument.name: None} if mask is None else {}
                    arguments |= {} if mask is None else {argument.name: Buffer(mask)}
                case "constants":
                    numbers = (self.constants.get(getattr(x, "name", ""), x) for x in value)
                    options[argument.name] = tuple(numbers)
                case "constant" if isinstance(value, Constant):
                    arguments[argument.name] = value
                case "loaded":
                    loaded = options[argument.name] = self.loaded(block, declared, values)
                case "more":
                    arguments[argument.name] = getattr(loaded, "reads", ())
                case "prepared":
                    pass
                case _:
                    options[argument.name] = self.resolved(block, argument.option.type, value)
        gives = [values[name] for name in declared.gives]
        gives.append(getattr(loaded, "gives", ()))
        names = tuple(n for each in gives for n in ((each,) if isinstance(each, str) else each))
        starts, follows = (getattr(loaded, each, {}) for each in ("starts", "follows"))
        names = (*names, *declared.hidden)
        return Bound(declared, arguments, options, names, past, starts, follows, mapped)

    def variable(self, block: Block, option: str, name: str) -> Mapped | None:
        """The variable of a name, which must show a buffer."""
        found, span = self.variables.get(name), place(block, option)
        if found is None:
            fix = did_you_mean(name, self.variables) or "add it to [AuxVariables]"
            problem = Problem("missing-block", f"[AuxVariables] has no block '{name}'", span, fix)
        elif not found.buffer:
            message = f"the variable '{name}' shows no buffer"
            fix = f"map a buffer to it: map_to_aux_variable = {name} in [TensorBuffers]"
            problem = Problem("unknown-buffer", message, span, fix)
        else:
            return found
        self.reader.problems.append(problem)
        return None

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

    def steps(
        self, block: Block, known: Mapping[str, DeclaredCompute] = COMPUTES
    ) -> tuple[Step, ...]:
        """The steps of a compute: what it prepares, if anything, and itself."""
        declared = self.reader.type_of(block, known)
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
        arguments |= {slot: (Old(buffer),) for slot, buffer in bound.past.items()}
        step = Step(
            name, declared.function, arguments, bound.gives, bound.options,
            reason=declared.reason, span=block.span, starts=bound.starts, follows=bound.follows,
            quirk=declared.quirk if bound.options.get("compatible", self.compatible) else None,
        )  # fmt: skip
        return (*before, step)
