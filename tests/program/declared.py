"""Laws that exist for one test: declared, built, traced, and gone from the catalogue afterwards."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ingot.catalog import CATALOG, key, load, model
from ingot.hit import read_text
from ingot.model import Model, build
from ingot.program import Program, prepared, verify


@contextmanager
def declared(
    *functions: Callable[..., Any], gives: Any = "out", opaque: bool = False
) -> Iterator[None]:
    """The functions as laws of the catalogue."""
    load()
    before = dict(CATALOG)
    try:
        for function in functions:
            model(gives=gives, opaque=opaque)(function)
        yield
    finally:
        CATALOG.clear()
        CATALOG.update(before)


def model_of(function: Callable[..., Any], **options: str) -> Model:
    """A declared law as a model, its parameters free variables of their own names."""
    law = CATALOG[function.__name__]
    fields = {key(p.argument): key(p.argument) for p in law.parameters} | options
    rows = [f"{name} = '{value}'" for name, value in {"type": law.name, **fields}.items()]
    return build(read_text("\n".join(["[Models]", "[law]", *rows, "[]", "[]"])), "law")


def program_of(
    function: Callable[..., Any], gives: Any = "out", shapes: Any = None, **options: str
) -> Program:
    """The program of a function declared for a moment."""
    with declared(function, gives=gives):
        return verify(prepared(model_of(function, **options), shapes))
