"""Every type of NEML2 that we have takes what NEML2's does: names, kinds, defaults, what may vary.

Read from the table of its types, where that lies beside the checkout; skipped elsewhere.
"""

import json
import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_origin

import pytest

from ingot.catalog import CATALOG, Declared, Input, Name, Option, ParameterSlot, key, load
from ingot.catalog.declare import REQUIRED
from ingot.catalog.stored_names import STORED_NAMES
from ingot.drivers import build_driver
from ingot.errors import IngotError
from ingot.hit import read_text
from ingot.model import ELSEWHERE, Factory
from ingot.model.tensors import TENSORS
from ingot.options import plain
from ingot.program.solvers import SOLVERS, SYSTEMS

ROOT = Path(__file__).parents[2]
TABLE = ROOT.parent / "shared" / "reference" / "types.json"
TYPES: list[dict[str, Any]] = json.loads(TABLE.read_text())["types"] if TABLE.exists() else []
load()
LAWS = [t for t in TYPES if t["type"] in CATALOG]


def every(types: list[dict[str, Any]]) -> Any:
    """One test for each type; one that is skipped where there is no table."""
    skipped = pytest.param(None, marks=pytest.mark.skip(reason=f"{TABLE} is not here"))
    return pytest.mark.parametrize("theirs", types or [skipped], ids=lambda t: t and t["type"])


@every(LAWS)
def test_a_law_takes_what_the_type_of_the_peer_takes(theirs: dict[str, Any]) -> None:
    law = CATALOG[theirs["type"]]
    ours, wanted = dict(facts(law)), dict(peer_facts(theirs, law))
    assert ours == wanted


@every(LAWS)
def test_a_parameter_is_also_known_by_the_name_that_the_peer_stores(theirs: dict[str, Any]) -> None:
    law = CATALOG[theirs["type"]]
    kinds = {"parameter": "{}", "buffer": "{}", "parameters": "{}_3", "buffers": "{}_3"}
    wanted = {
        kinds[o["kind"]].format(o["name"]): kinds[o["kind"]].format(o.get("stored_as", o["name"]))
        for o in theirs["options"] if o["kind"] in kinds
    }  # fmt: skip
    assert {name: law.stored_as(name) for name in wanted} == wanted


def test_stored_names_are_of_types_and_options_that_exist() -> None:
    for name, table in STORED_NAMES.items():
        options = [key(p.argument) for p in CATALOG[name].parameters]
        assert set(table) <= set(options), name
        assert not set(table.values()) & {*options} - set(table), name


@every([t for t in TYPES if t["section"] in ELSEWHERE and t not in LAWS])
def test_a_type_that_is_no_law_knows_every_option_of_the_peer(theirs: dict[str, Any]) -> None:
    section = theirs["section"]
    fields = "\n".join(f"{o['name']} = none" for o in theirs["options"])
    factory = Factory(read_text(f"[{section}]\n[it]\ntype = {theirs['type']}\n{fields}\n[]\n[]"))
    driver = partial(build_driver, factory)
    make = {"Models": factory.model, "Data": factory.data, "Drivers": driver}[section]
    unknown = []
    try:
        make("it")
    except IngotError as error:
        unknown = [p.message for p in error.problems if p.code.startswith("unknown-option")]
    assert unknown == []


@every([t for t in TYPES if t["section"] in ("Solvers", "Tensors")])
def test_a_solver_or_tensor_knows_every_option_of_the_peer(theirs: dict[str, Any]) -> None:
    options = {**SOLVERS, **TENSORS}[theirs["type"]]
    assert {o["name"] for o in theirs["options"]} <= set(options)


def test_every_type_of_the_peer_is_here() -> None:
    families = tomllib.loads((ROOT / "benchmarks" / "peer_types.toml").read_text())["NEML2"]
    named = {name for names in families.values() for name in names.split()}
    elsewhere = {name for types in ELSEWHERE.values() for name in types}
    here = {*CATALOG, *elsewhere, *SOLVERS, *TENSORS, *SYSTEMS}
    assert named - here == set()
    assert {t["type"] for t in TYPES} <= named | {"ModelUnitTest"}


def facts(law: Declared) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """What a block of the law may say, and what is true where it does not."""
    for slot in (*law.inputs, *law.outputs):
        role = "input" if isinstance(slot, Input) else "output"
        if isinstance(slot, Input) and slot.many:
            yield key(slot.argument), ("inputs", slot.kind.__name__)
        elif "[" not in variable(slot.name):  # else a list of names, which is an option
            yield variable(slot.name), (role, slot.kind.__name__, slot.name.template)
    for slot in law.parameters:
        role = "parameters" if slot.many else "parameter"
        default = None if slot.default is None else float(slot.default)
        yield key(slot.argument), (role, slot.kind.__name__, default, slot.variable)
    for option in law.options:
        role = ("data", option.data) if option.data else ("option", kind_of(option))
        default = "required" if option.default is REQUIRED else shown(option.default)
        yield key(option.argument), (*role, default)


def variable(name: Name) -> str:
    """How a variable is told apart: by the option that names it, or by what it is called after."""
    return name.option or name.template or ""


def kind_of(option: Option) -> str:
    inner = plain(option.type)
    if get_origin(inner) is tuple:
        return "list"
    return "str" if get_origin(inner) is Literal else inner.__name__


def shown(value: Any) -> Any:
    """A default as the table holds it: words of a list are compared as text."""
    if isinstance(value, list | tuple):
        return [str(word).lower() for word in value]
    return value


def peer_facts(theirs: dict[str, Any], law: Declared) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """The same of the peer's type; derived names are told by what they are called after."""
    derived = theirs.get("derived_variables", [])
    overrides = {d["override_option"] for d in derived if "override_option" in d}
    for option in theirs["options"]:
        if option["name"] not in overrides:
            yield option["name"], peer_option(option, law)
    for each in derived:
        template = "{" + each["base_option"] + "}" + each["suffix"]
        name = each.get("override_option") or each.get("rename_option") or template
        yield name, (each["role"], each["tensor_type"], template)


def peer_option(option: dict[str, Any], law: Declared) -> tuple[Any, ...]:
    name = option["name"]
    match option["kind"]:
        case "input" | "output" as role:
            default = option["default"]
            if default is None and role == "output":  # called by a rule of the law's own
                default = next(o.name.template for o in law.outputs if variable(o.name) == name)
            return role, option["tensor_type"], "{block}" if default == "<block name>" else default
        case "var_inputs":
            return "inputs", option["tensor_type"]
        case "parameter" | "parameters" as role:
            default = option.get("default")
            default = default[0] if isinstance(default, list) else default
            number = None if default is None else float(default)
            return role, option["tensor_type"], number, option["may_be_variable"]
        case "dependency":
            default = "required" if option["required"] else option["default"]
            return "data", next(o.data for o in law.options if o.data), default
        case _:
            return plain_option(option, law)


def plain_option(option: dict[str, Any], law: Declared) -> tuple[Any, ...]:
    """A plain value; a list of it may be a list of parameters of ours, which says more."""
    ours = next((p for p in law.parameters if key(p.argument) == option["name"]), None)
    if option["value_type"] == "list" and isinstance(ours, ParameterSlot) and ours.many:
        return "parameters", ours.kind.__name__, None, ours.variable
    default = "required" if option["required"] else shown(option["default"])
    return "option", option["value_type"], default
