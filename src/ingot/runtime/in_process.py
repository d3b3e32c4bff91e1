"""Compiled in this process: the same stages as a package's, nothing left on disk."""

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from ingot.errors import IngotError, Problem, did_you_mean
from ingot.hit import Tree, read_text
from ingot.model import Factory, Model
from ingot.package.lower import lower
from ingot.package.stages import Loaded, freeze, partition, route, select, shape
from ingot.package.target import Backend, Target
from ingot.runtime.artifact import Artifact
from ingot.runtime.load import load

__all__ = ["compile"]


def compile(
    source: Model | Callable[..., Any], values: Mapping[str, Any] | None = None, *,
    backend: Backend = "kernel", dtype: torch.dtype = torch.float64,
    parameter: tuple[str, ...] = (), derivative: tuple[str, ...] = (),
    example_batch_shape: tuple[str, ...] = (), jobs: int = 2,
) -> Artifact:  # fmt: skip
    """An artifact of a live model, or of a law: a function under `@model`.

    values: the options of a law, as a block of an input file would give them; backend to jobs: as
    `ingot compile` takes them.
    """
    model = source if isinstance(source, Model) else _law(source, values or {})
    target = Target(
        backend=(backend,), dtype="float64" if dtype == torch.float64 else "float32",
        parameter=parameter, derivative=derivative, example_batch_shape=example_batch_shape,
        jobs=jobs, stub=False, baseline=False,
    )  # fmt: skip
    stage = partition(shape(freeze(route(select(Loaded(Tree((), ()), model, None, target)))), {}))
    with tempfile.TemporaryDirectory(prefix="ingot-") as folder:
        lower(stage, model.name, Path(folder), "ingot.compile")
        return load(folder)


def _law(function: Callable[..., Any], values: Mapping[str, Any]) -> Model:
    """The live model of a law with such options."""
    from ingot.catalog import CATALOG

    name = function.__name__
    declared = CATALOG.get(name)
    if declared is None or declared.function is not function:
        raise IngotError([Problem(
            "unknown-type", f"'{name}' is not declared as a law", None,
            did_you_mean(name, CATALOG) or "write @model(gives=...) above it",
        )])  # fmt: skip
    rows = [f"    {key} = '{_written(value)}'" for key, value in values.items()]
    text = "\n".join(["[Models]", f"  [{name}]", f"    type = {name}", *rows, "  []", "[]", ""])
    return Factory(read_text(text, f"<{name}>")).model(name)


def _written(value: Any) -> str:
    """A value as an input file has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return " ".join(map(_written, value))
    return str(value)
