"""Types of blocks as an editor needs them: by section, each with its options and their values."""

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ingot.cli.syntax import all_types, format_type, option_rows

__all__ = ["KnownOption", "KnownType", "known_types", "options_of", "sections", "types_of"]

TOP = {
    "Tensors": "values by name: Python expressions or columns of CSV files",
    "Data": "data that laws share, such as crystals",
    "Models": "laws and what is composed of them",
    "EquationSystems": "unknowns and residuals",
    "Solvers": "how equation systems are solved",
    "Drivers": "what is done with a model",
    "Settings": "extents of structural axes; strict",
}
GROUPS = {"TensorComputes": ("Initialize", "Solve", "Postprocess")}

# what an option names, by its own name, where the declaration does not say
NAMES = (
    (re.compile(r"model|models|predictor"), "Models"),
    (re.compile(r"equation_system"), "EquationSystems"),
    (re.compile(r"(?:.*_)?solvers?|preconditioner"), "Solvers"),
    (re.compile(r"driver"), "Drivers"),
    (re.compile(r"prescribed_time|\w+_values"), "Tensors"),
    (re.compile(r"buffers?|inputs?|history_size|.*_buffer"), "TensorBuffers"),
)
VARIABLES = re.compile(
    r"\w+_names|unknowns\w*|residuals|from|to|variables?|time|additional_outputs"
)


@dataclass(frozen=True, slots=True)
class KnownOption:
    """An option of a type: what it may be, its default, its sentence, and what its words name."""

    name: str
    value: str
    default: str
    doc: str

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that it is one of."""
        words = self.value.removeprefix("list of ").split(" | ")
        return (
            tuple(words) if len(words) > 1 and all(re.fullmatch(r"\S+", w) for w in words) else ()
        )

    @property
    def sections(self) -> tuple[str, ...]:
        """The sections whose blocks it may name."""
        if "of [Data]" in self.value:
            return ("Data",)
        if re.search(r"number.*tensor", self.value):
            return ("Tensors", "Models")
        return tuple(section for pattern, section in NAMES if pattern.fullmatch(self.name))[:1]

    @property
    def is_variable(self) -> bool:
        """Whether its words are variables of models."""
        named = self.value.startswith(("input ", "output ", "list of input", "list of output"))
        return named or "variable" in self.value or bool(VARIABLES.fullmatch(self.name))

    @property
    def required(self) -> bool:
        """Whether a block must give it."""
        return self.default == "required"

    def describe(self) -> str:
        """What hovering over it shows."""
        lines = [f"**{self.name}**" + (f": {self.value}" if self.value else "")]
        if self.default:
            lines.append("required" if self.required else f"default: `{self.default}`")
        return "\n\n".join([*lines, self.doc] if self.doc else lines)


@dataclass(frozen=True, slots=True)
class KnownType:
    """A type of a block."""

    name: str
    section: str
    doc: str
    options: Mapping[str, KnownOption]
    variables: tuple[str, ...]
    text: str

    def describe(self) -> str:
        """What hovering over it shows: its formula, and a table of its options."""
        lines = [f"**{self.name}**, a type of [{self.section}]", self.doc]
        rows = [
            f"| `{each.name}` | {each.value} | {each.default} | {each.doc} |".replace(" | | ", " ")
            for each in self.options.values()
        ]
        table = "\n".join(["| option | value | default | |", "|---|---|---|---|", *rows])
        return "\n\n".join([*lines, table] if rows else lines)


@functools.cache
def known_types() -> dict[str, dict[str, KnownType]]:
    """All types by section and name; a section whose own fields are options has the type ''."""
    from ingot.fields.schema import schema

    found: dict[str, dict[str, KnownType]] = {}
    for told in all_types():
        found.setdefault(told["section"], {})[told["type"]] = _known(told)
    for section, known in schema().items():
        if "" in known:
            told = {"type": "", "section": section, "family": "fields", **known[""]}
            found.setdefault(section, {})[""] = _known(told)
    return found


def _known(told: dict[str, Any]) -> KnownType:
    options = {
        name: KnownOption(name, value, default, doc)
        for row, value, default, doc in option_rows(told)
        for name in _spell_out(row)
    }
    named = [*told.get("inputs", {}).values(), *told.get("outputs", {}).values()]
    variables = tuple(
        each["name"] for each in named if each.get("name") and "{" not in each["name"]
    )
    return KnownType(
        told["type"], told["section"], told["doc"], options, variables, format_type(told)
    )


def _spell_out(name: str) -> Iterator[str]:
    """An option's name, or those that it stands for: prescribed_<kind>_names."""
    from ingot.drivers.values import DRIVEN

    if "<" not in name:
        yield name
        return
    for kind in DRIVEN:
        yield re.sub(r"<\w+>", kind, name)


def sections() -> dict[str, str]:
    """The sections of a file, with what each holds."""
    of_fields = (each for each in known_types() if "/" not in each and each not in TOP)
    return {**TOP, **dict.fromkeys(of_fields, "of simulations on a grid")}


def types_of(path: tuple[str, ...]) -> dict[str, KnownType]:
    """The types that a block at a path may have."""
    joined = "/".join(path)
    if joined in known_types():
        return known_types()[joined]
    return known_types().get(path[0], {}) if path else {}


def options_of(path: tuple[str, ...], kind: str | None) -> Mapping[str, KnownOption]:
    """The options of a block at a path, of a type or of the only one there is."""
    known = types_of(path)
    if kind is None:
        kind = next(iter(known)) if len(known) == 1 else ""
    is_list = len(path) == 1 and path[0] in TOP
    return known[kind].options if kind in known and not is_list else {}
