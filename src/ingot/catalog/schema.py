"""What a block of a law may hold, told from its declaration alone.

In: a Declared. Out: plain data (formula, variables, parameters, options) and an example of a block.
"""

import inspect
import re
from collections.abc import Iterable
from typing import Any, Literal, get_args, get_origin

from ingot.catalog.declare import REQUIRED, Declared, Input, Option, Output, ParameterSlot, key
from ingot.options import fits, name_type, plain, spell

__all__ = ["describe_law", "family_of", "read_docstring"]

_OPTION = re.compile(r"(?:^|\n|;\s+)((?:[\w<>]+)(?:,\s+[\w<>]+)*):\s+(?=\S)")
NUMBERS = ("1.0", "0.3", "0.2")  # of an example: positive, and a Poisson ratio where one is second
WORDS = ("a", "b", "c")
BLOCK, CELLS = "model", 3
DATA = {
    "CubicCrystal": (
        "lattice_parameter = 1.0",
        "slip_directions = '1 1 0'",
        "slip_planes = '1 1 1'",
    )
}
"""The lines of an example of each type of `[Data]`: the slip systems are those of fcc crystals."""


def describe_law(law: Declared) -> dict[str, Any]:
    """A law as plain data."""
    doc, sentences = read_docstring(law.function)
    return {
        "type": law.name,
        "section": "Models",
        "family": family_of(law),
        "doc": doc,
        "inputs": dict(_describe_variable(slot) for slot in law.inputs),
        "outputs": dict(_describe_variable(slot) for slot in law.outputs),
        "parameters": {
            key(p.argument): {**_describe_parameter(p), "doc": sentences.get(key(p.argument), "")}
            for p in law.parameters
        },
        "options": {
            key(o.argument): {**_describe_option(o), "doc": sentences.get(key(o.argument), "")}
            for o in law.options
        },
        "example": _write_example(law),
    }


def family_of(law: Declared) -> str:
    """The physics that a law belongs to: the module it stands in."""
    return law.function.__module__.rpartition(".")[2].replace("_", " ")


def read_docstring(documented: Any) -> tuple[str, dict[str, str]]:
    """What a function or class says it is, and its sentence on each option, `name: sentence`."""
    text = inspect.getdoc(documented) or ""
    first = re.search(r"\n\n(?=" + _OPTION.pattern.removeprefix(r"(?:^|\n|;\s+)") + ")", text)
    if first is None:
        return _join(text), {}
    # the words before a match, its names, the words up to the next, and so on
    _, *parts = _OPTION.split(text[first.end() :])
    sentences: dict[str, str] = {}
    for names, sentence in zip(parts[::2], parts[1::2], strict=True):
        sentences |= dict.fromkeys(map(key, re.split(r",\s+", names)), _join(sentence).rstrip(".;"))
    return _join(text[: first.start()]), sentences


def _join(text: str) -> str:
    """The lines of each paragraph as one."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def _name_kind(slot: Input | Output | ParameterSlot) -> dict[str, Any]:
    told: dict[str, Any] = {"kind": slot.kind.__name__}
    if slot.axes:
        told["axes"] = [axis.lstrip("*") for axis in slot.axes]  # a star is about other laws
    if not isinstance(slot, Output) and slot.many:
        told["list"] = True
    return told


def _describe_variable(slot: Input | Output) -> tuple[str, dict[str, Any]]:
    """A variable by the option that names it, or by its name where none does."""
    told = _name_kind(slot)
    if isinstance(slot, Input) and slot.many:
        return key(slot.argument), {**told, "required": True}
    told |= {"name": slot.name.template} if slot.name.template is not None else {"optional": True}
    if slot.name.option is None:
        return slot.name.template or "", {**told, "renamed": False}
    return slot.name.option, told


def _describe_parameter(slot: ParameterSlot) -> dict[str, Any]:
    told = {**_name_kind(slot), "variable": slot.variable}
    return {**told, **({"required": True} if slot.default is None else {"default": slot.default})}


def _describe_option(option: Option) -> dict[str, Any]:
    told: dict[str, Any] = {"type": option.data or name_type(option.type)}
    if option.data is not None:
        told["section"] = "Data"
    if option.default is REQUIRED:
        return {**told, "required": True}
    return told if option.default is None else {**told, "default": option.default}


def _write_example(law: Declared) -> str:
    """A block with all that is required, and the `[Data]` that it reads.

    What it may leave out is a comment with its default.
    """
    chosen = {o.argument: _choose(o) for o in law.options if o.default is REQUIRED}
    lines = [f"type = {law.name}"]
    for slot in law.inputs:
        if slot.many:
            lines.append(f"{key(slot.argument)} = '{' '.join(WORDS[:2])}'")
    options = {o.argument: chosen.get(o.argument, o.default) for o in law.options}
    for slot in law.parameters:
        if slot.default is None:
            lines.append(f"{key(slot.argument)} = {_quote(_choose_numbers(law, slot, options))}")
    lines += [f"{key(name)} = {_quote(value)}" for name, value in chosen.items()]
    lines += [f"# {line}" for line in _spare_lines(law)]
    name = law.outputs[0].name.template or ""
    block = name if name.isidentifier() else BLOCK
    data = {
        str(options[o.argument]): [f"type = {o.data}", *DATA.get(o.data, ())]
        for o in law.options
        if o.data is not None
    }
    sections = {"Data": data, "Models": {block: lines}}
    return "\n".join(row for name, blocks in sections.items() for row in _write(name, blocks))


def _write(section: str, blocks: dict[str, list[str]]) -> Iterable[str]:
    """The lines of a section, none where it has no block."""
    for name, lines in blocks.items():
        yield from (f"[{section}]", f"  [{name}]", *(f"    {x}" for x in lines), "  []", "[]")


def _choose_numbers(law: Declared, slot: ParameterSlot, options: dict[str, Any]) -> tuple[Any, ...]:
    """Some numbers that a parameter may be: one, one for each entry of a list, or a grid."""
    if slot.listed and len(slot.axes) == 1 and not slot.kind.base:
        offset = re.search(r"[+-]\d+$", slot.axes[0])
        more = int(offset[0]) if offset else 0
        return tuple(1.0 + i - more / 2 for i in range(CELLS + more))
    labels = law.labels.get(slot.argument)
    return NUMBERS[: len(labels(options)) if labels else 2 if slot.many else 1]


def _spare_lines(law: Declared) -> Iterable[str]:
    """The lines that a block may do without."""
    for slot in (*law.inputs, *law.outputs):
        many = isinstance(slot, Input) and slot.many
        if slot.name.option is not None and not many:
            name = (slot.name.template or slot.name.option).replace("{block}", BLOCK)
            yield f"{slot.name.option} = {_quote(re.sub(r'[{}]', '', name))}"
    for slot in law.parameters:
        if slot.default is not None:
            yield f"{key(slot.argument)} = {_quote(slot.default)}"
    for option in law.options:
        if option.default not in (REQUIRED, None):
            yield f"{key(option.argument)} = {_quote(option.default)}"


def _quote(value: Any) -> str:
    """A value as a file writes it, in quotes where it is more than a word."""
    text = spell(tuple(value) if isinstance(value, list) else value)
    return text if re.fullmatch(r"[\w.+~/-]+", text) else f"'{text}'"


def _choose(option: Option) -> Any:
    """Some value that a required option may have."""
    if option.data is not None:
        return option.data.lower()
    hint = plain(option.type)
    if get_origin(hint) is tuple:
        each, *more = get_args(hint)
        words = get_args(each) if get_origin(each) is Literal else WORDS
        return tuple(words[: 2 if Ellipsis in more else 1 + len(more)])
    if get_origin(hint) is Literal:
        return get_args(hint)[0]
    return next(x for x in (1.0, 0.5, 1, True, WORDS[0]) if fits(x, option.type))
