"""Packages that only some features need: the table of them, and their import where one is used."""

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from typing import Any

from ingot.errors import IngotError, Problem, Span

__all__ = ["EXTRAS", "PURPOSES", "find_missing", "require_extra"]

EXTRAS = {
    "h5py": "fields",
    "matplotlib": "plot",
    "pyarrow": "parquet",
    "pygls": "editor",
    "xarray": "xarray",
    "zarr": "zarr",
}
"""What is imported, and the extra of pyproject.toml that installs it."""

PURPOSES = {
    "cuda": "kernels for GPUs, where torch was built without CUDA",
    "plot": "pictures: ingot plot, ingot view --png, the examples",
    "editor": "help in editors: ingot lsp",
    "fields": "HDF5 files of simulations and results",
    "fem": "the examples of finite elements: scikit-fem, FElupe, torch-fem",
    "xarray": "results as labelled arrays: Result.to_xarray",
    "parquet": "results as Parquet files",
    "zarr": "results as Zarr folders",
    "scale": "sweeps over a Ray cluster, into Parquet or Zarr",
    "docs": "the site of the documentation: make docs",
    "dev": "tests and linters: make test, make lint",
}
"""What each extra of pyproject.toml is for."""


def require_extra(module: str, purpose: str, instead: str = "") -> Any:
    """A module that may not be installed, or an error with the command that installs it.

    purpose: what needs it, as "HDF5 files"; instead: what else the user may do.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        if error.name is not None and error.name.partition(".")[0] != package:
            raise  # it is there, and lacks something of its own
        raise IngotError([_explain_missing(package, purpose, instead, None)]) from None


def find_missing(package: str, purpose: str, *, span: Span | None = None) -> Iterator[Problem]:
    """A problem where a package is not installed, found without importing it."""
    if package in sys.modules:
        missing = sys.modules[package] is None
    else:
        missing = importlib.util.find_spec(package) is None
    if missing:
        yield _explain_missing(package, purpose, "", span)


def _explain_missing(package: str, purpose: str, instead: str, span: Span | None) -> Problem:
    message = f"{purpose} need {package}, which is not installed"
    fix = f"pip install 'ingot[{EXTRAS[package]}]'" + (f", or {instead}" if instead else "")
    return Problem("not-installed", message, span, fix)
