"""`ingot syntax`: which types there are, and what a block of each may hold."""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, get_args

from cyclopts import Parameter

if TYPE_CHECKING:
    from ingot.hit import Preset

__all__ = ["all_types", "format_type", "option_rows", "syntax"]

Described = dict[str, Any]


def syntax(
    kind: Annotated[str | None, Parameter(name="TYPE")] = None, /, *, as_json: Annotated[
        bool, Parameter(name="--json", negative=())
    ] = False,
) -> None:  # fmt: skip
    """List the types of blocks, or say what one is: its formula, variables and options.

    Example: ingot syntax YieldFunction

    Parameters
    ----------
    kind
        What a block names in `type = ...`; all are listed unless one is given.
    as_json
        Print it as JSON.
    """
    from ingot.errors import IngotError, Problem, did_you_mean

    types = {told["type"]: told for told in all_types()}
    if kind is None:
        print(json.dumps(types, indent=2) if as_json else "\n".join(_list(types)))
        return
    if kind not in types:
        fix = did_you_mean(kind, types) or "`ingot syntax` lists all types"
        raise IngotError([Problem("unknown-type", f"there is no type '{kind}'", fix=fix)])
    print(json.dumps(types[kind], indent=2) if as_json else format_type(types[kind]))


def all_types() -> Iterator[Described]:
    """Every type of a block as plain data, laws first."""
    from ingot.catalog import load
    from ingot.catalog.schema import describe_law
    from ingot.fields.schema import schema

    laws = [describe_law(law) for law in load().values()]
    yield from sorted(laws, key=lambda told: (told["family"], told["type"]))
    yield from _other_types()
    yield from _presets()
    for section, known in schema().items():
        for name, told in known.items():
            if name:
                yield {"type": name, "section": section, "family": "fields", **told}


def _presets() -> Iterator[Described]:
    """The types that stand for several blocks."""
    from ingot.hit import all_presets

    for preset in all_presets().values():
        options: dict[str, Any] = {}
        for name, option in preset.options.items():
            options[name] = {"type": option.values, "doc": option.doc}
            if option.when is not None:
                other, words = option.when
                options[name]["doc"] += f" (where {other} = {' or '.join(words)})"
            if option.required:
                options[name]["required"] = True
            elif option.default is not None:
                options[name]["default"] = " ".join(option.default)
        family = "presets" if preset.section == "Models" else "driver presets"
        told = _told(preset.type, preset.section, family, options, preset.doc)
        yield {**told, "example": _write_preset(preset)}


def _write_preset(preset: "Preset") -> str:
    """A block with all that a preset requires."""
    from ingot.options import find_example

    rows = [f"type = {preset.type}"]
    for name, option in preset.options.items():
        if option.required and option.when is None:
            word = "steel" if option.kind in ("name", "names") else find_example(option.type)
            rows.append(f"{name} = {word}")
    lines = [f"[{preset.section}]", "  [steel]", *(f"    {row}" for row in rows), "  []", "[]"]
    return "\n".join(lines)


def _other_types() -> Iterator[Described]:
    """The types of a file of materials that are no laws."""
    import importlib

    from ingot.catalog.schema import read_docstring
    from ingot.model import ELSEWHERE
    from ingot.model.tensors import TENSORS
    from ingot.options import Newton, fits, knobs_of, meta_of, name_type, plain
    from ingot.program.solvers import REMARKS, SOLVERS, SYSTEMS

    for section, known in ELSEWHERE.items():
        for name, module in known.items():
            made = getattr(importlib.import_module(module), name)
            doc, sentences = read_docstring(made)
            options: dict[str, Any] = {option: {"doc": text} for option, text in sentences.items()}
            if section == "Data":  # all of its fields are required
                for option, kind in made.__annotations__.items():
                    value = {"type": f"{kind.__name__}: number or tensor", "required": True}
                    options[option] = {**value, **options[option]}
            family = "combinators" if section == "Models" else section.lower()
            yield _told(name, section, family, options, doc)
    rules = {knob.option: knob for knob in knobs_of(Newton)}
    for name, kinds in SOLVERS.items():
        options = {
            option: {"type": name_type(kind), "doc": meta_of(kind).description or ""}
            for option, kind in kinds.items()
        }
        # linear solvers have tolerances too, which are not those of Newton's method
        for option in options.keys() & rules.keys() if "stop" in kinds else ():
            rule, kind = rules[option], kinds[option]
            default = rule.default if fits(rule.default, kind) else get_args(plain(kind))[0]
            options[option] |= {"default": default, "doc": rule.sentence}
        yield _told(name, "Solvers", "solvers", options, REMARKS[name])
    blocks = (("EquationSystems", "equation systems", SYSTEMS), ("Tensors", "tensors", TENSORS))
    for section, family, known in blocks:
        for name, sentences in known.items():
            options = {option: {"doc": text} for option, text in sentences.items()}
            yield _told(name, section, family, options)


def _told(
    name: str, section: str, family: str, options: dict[str, Any], doc: str = ""
) -> Described:
    return {"type": name, "section": section, "family": family, "doc": doc, "options": options}


def _list(types: Mapping[str, Described]) -> Iterator[str]:
    """The names of all types, by section and family."""
    import textwrap

    groups: dict[tuple[str, str], list[str]] = {}
    for name, told in types.items():
        groups.setdefault((told["section"], told["family"]), []).append(name)
    for (section, family), names in groups.items():
        yield f"[{section}] {family}: {len(names)}"
        yield textwrap.indent(textwrap.fill(", ".join(names), 96, break_on_hyphens=False), "  ")


def format_type(told: Described) -> str:
    """One type as a person reads it."""
    lines = [f"{told['type']}, a type of [{told['section']}], {told['family']}"]
    lines += ["", told["doc"]] if told["doc"] else []
    rows = list(option_rows(told))
    widths = [max((len(row[i]) for row in rows), default=0) for i in range(3)]
    lines += [""] if rows else []
    for row in rows:
        padded = [text.ljust(width) for text, width in zip(row[:3], widths, strict=True)]
        lines.append("  ".join([*padded, row[3]]).rstrip())
    if "example" in told:
        lines += ["", told["example"]]
    return "\n".join(lines)


def option_rows(told: Described) -> Iterator[tuple[str, str, str, str]]:
    """A row for everything that a block may name: its key, value, default and sentence."""
    from ingot.options import spell

    for role in ("input", "output"):
        for name, each in told.get(f"{role}s", {}).items():
            value = f"{role} {_kind(each)}" if "list" not in each else f"list of {role} variables"
            default = "required" if "required" in each else each.get("name", "none unless named")
            fixed = "" if each.get("renamed", True) else "its name follows from another's"
            yield name, value, default, fixed
    for name, each in told.get("parameters", {}).items():
        source = "number, tensor, model or variable" if each["variable"] else "number or tensor"
        value = f"{'list of ' if 'list' in each else ''}{_kind(each)}: {source}"
        yield name, value, "required" if "required" in each else each["default"], each["doc"]
    for name, each in told.get("options", {}).items():
        default = "required" if "required" in each else spell(each.get("default", ""))
        value = f"a {each['type']} of [Data]" if "section" in each else each.get("type", "")
        yield name, value, default, each.get("doc", "")


def _kind(each: Mapping[str, Any]) -> str:
    return f"{each['kind']}[{', '.join(each['axes'])}]" if "axes" in each else each["kind"]
