"""Compiled in this process: the same stages as a package's, nothing left on disk."""

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast, get_args

import torch

from ingot.codegen.architectures import DEFAULT_ARCHITECTURES
from ingot.errors import IngotError, Problem, caller, raise_if
from ingot.execute.devices import name_device, require_device
from ingot.keywords import check_keywords
from ingot.laws import declaration_of
from ingot.model import Model, bind
from ingot.options import PackagedBackend, Precision, find_no_choice
from ingot.package.compilation import Compilation
from ingot.package.stages import advance
from ingot.package.target import IN_PROCESS, Target
from ingot.package.translate import translate
from ingot.runtime.artifact import Artifact
from ingot.runtime.loader import load

__all__ = ["compile"]


@check_keywords
def compile(
    source: Model | Callable[..., Any], values: Mapping[str, Any] | None = None, *,
    backend: PackagedBackend = "kernel", dtype: torch.dtype | Precision = torch.float64,
    parameter: tuple[str, ...] = (), derivative: tuple[str, ...] = (), train: bool = False,
    example_batch_shape: tuple[str, ...] = (), device: str = "cpu", jobs: int = 2,
) -> Artifact:  # fmt: skip
    """An artifact of a live model, or of a law: a function under `@model`.

    values: the options of a law by their names: numbers, arrays, tensors (a leading axis is a
    batch) or values of `ingot.types` for a parameter, a string for a variable or a choice; numbers
    are bound as float64, refused where that would change them. device: cpu, cuda or cuda:1; backend
    to jobs: as `ingot compile` takes them.
    """
    if isinstance(source, Model) and values is not None:
        message, fix = "a live model has its values already", "leave the values out"
        raise IngotError([Problem("wrong-value", message, caller(), fix)])
    model = source if isinstance(source, Model) else _bind(source, values)
    raise_if(model.find_unprovided())
    precision = str(dtype).removeprefix("torch.")
    raise_if(find_no_choice("dtype", precision, get_args(Precision), caller()))
    raise_if(find_no_choice("backend", backend, get_args(PackagedBackend), caller()))
    place = require_device(name_device(device), "compile it for the CPU: device='cpu'")
    cuda = place.type == "cuda"
    major, minor = torch.cuda.get_device_capability(place) if cuda else (0, 0)
    architectures = (10 * major + minor,) if cuda else DEFAULT_ARCHITECTURES
    target = Target(
        backend=(backend,), device=("cuda" if cuda else "cpu",), cuda_arch=architectures,
        dtype=cast(Precision, precision),
        parameter=parameter, derivative=derivative, train=train,
        example_batch_shape=example_batch_shape, jobs=jobs, stub=False, baseline=False,
    )  # fmt: skip
    lowered = advance(
        Compilation(
            model=model,
            target=target,
            device=target.device[0],
            driven=model.shapes,
            command=IN_PROCESS,
        )
    )
    with tempfile.TemporaryDirectory(prefix="ingot-") as folder:
        translate(lowered, Path(folder))
        return load(folder, device=device)


def _bind(law: Callable[..., Any], values: Mapping[str, Any] | None) -> Model:
    return bind(declaration_of(law), {} if values is None else values, caller())
