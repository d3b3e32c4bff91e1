"""What editors are told of `ingot.laws`: `python -m benchmarks.stubs` writes src/ingot/laws.pyi.

In: the declarations of the catalogue. Out: a function for each law, with its keywords, their types
and defaults, and its docstring with the formula.
"""

import inspect
import json
import textwrap
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from ingot import laws
from ingot.catalog import Declared, Option, key
from ingot.catalog.declare import REQUIRED
from ingot.laws import Maker, describe_options
from ingot.model import ELSEWHERE
from ingot.options import plain

STUB = Path(__file__).parents[1] / "src" / "ingot" / "laws.pyi"
HEAD = '''\
"""Printed by `python -m benchmarks.stubs` from the declarations of the catalogue."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from torch import Tensor

from ingot.catalog.crystal import CubicCrystal as _CubicCrystal
from ingot.catalog.declare import Declared
from ingot.model import Model
from ingot.model.given import OutputOf
from ingot.types import Value

Constant: TypeAlias = float | Sequence[Any] | np.ndarray[Any, Any] | Tensor | Value
"""Numbers: leading axes of an array are a batch."""
Parameter: TypeAlias = Constant | str | Model | OutputOf
"""Numbers, the name of a variable, or a model whose output stands in."""

class Maker:
    type: str
    law: Declared | None
    @property
    def options(self) -> tuple[str, ...]: ...
    def __init__(self, type: str, law: Declared | None = None) -> None: ...
    def __call__(self, *, name: str | None = None, **options: Any) -> Any: ...

def of(function: Callable[..., Any]) -> Maker:
    """The maker of a law of your own: a function under `@model`."""

def declaration_of(function: Callable[..., Any]) -> Declared: ...
def describe_options(maker: Maker) -> list[tuple[str, Any]]: ...
'''
MODELS = {"model": "Model | None", "rate_law": "Model | None"}
"""Options of types that are no laws which hold models; the others are words or numbers."""


def stub() -> str:
    """The whole file."""
    makers = [getattr(laws, name) for name in dir(laws) if name != "of"]
    return HEAD + "".join(f"\n{print_maker(maker)}" for maker in makers)


def print_maker(maker: Maker) -> str:
    """The function of one type."""
    hints = hints_of(maker.law) if maker.law else {}
    rows = [
        f"{option}: {hints.get(option) or MODELS.get(option, 'Any')}"
        + ("" if default is REQUIRED else f" = {print_default(default)}")
        for option, default in describe_options(maker)
    ]
    gives = "_CubicCrystal" if maker.type in ELSEWHERE["Data"] else "Model"
    body = "".join(f"    {row},\n" for row in [*rows, "name: str | None = None"])
    doc = textwrap.indent(inspect.cleandoc(maker.__doc__ or ""), "    ").lstrip()
    doc += print_variables(maker.law) if maker.law else ""
    end = "\n    " if "\n" in doc else ""
    return f'def {maker.type}(\n    *,\n{body}) -> {gives}:\n    r"""{doc}{end}"""\n'


def print_default(default: Any) -> str:
    return json.dumps(default) if isinstance(default, str) else repr(default)


def print_variables(law: Declared) -> str:
    """The kinds of what a law reads and gives, as lines of its docstring."""
    reads = [f"{key(i.argument)}: {i.kind.__name__}" for i in law.inputs if not i.name.is_bound]
    gives = [f"{o.name.option or o.name.template}: {o.kind.__name__}" for o in law.outputs]
    rows = [f"reads {', '.join(reads)}"] if reads else []
    return "".join(f"\n\n    {row}" for row in [*rows, f"gives {', '.join(gives)}"])


def hints_of(law: Declared) -> dict[str, str]:
    """The type of each argument of a law."""
    found = {}
    for slot in law.parameters:
        kind = "Parameter" if slot.variable else "Constant"
        found[slot.argument] = f"Sequence[{kind}] | {kind}" if slot.many else kind
    found |= {option.argument: hint_of(option) for option in law.options}
    found |= {i.argument: "Sequence[str]" if i.many else "str" for i in law.inputs}
    found |= {i.argument: "str | None" for i in law.inputs if i.name.absent()}
    found |= {o.name.option: "str" for o in law.outputs if o.name.option}
    return found


def hint_of(option: Option) -> str:
    """The type of an option."""
    if option.data is not None:
        return f"_{option.data}"
    none = " | None" if option.default is None else ""
    return hint_text(plain(option.type)) + none


def hint_text(hint: Any) -> str:
    if get_origin(hint) is tuple:
        return f"Sequence[{hint_text(get_args(hint)[0])}]"
    if get_origin(hint) is Literal:
        return f"Literal[{', '.join(map(repr, get_args(hint)))}]"
    return hint.__name__


if __name__ == "__main__":
    STUB.write_text(stub())
