"""The library of laws: `@model`, and one file per physics family.

Here: laws as functions of one point, and the data they are built from (crystals). Not here: names
in files, wiring, derivatives, batches. `load()` imports every family.
"""

import importlib
import pkgutil

from ingot.catalog.declare import (
    CATALOG, Ascending, Data, Declared, Fixed, Input, Listed, Many, Name, Option, Output, Parameter,
    ParameterSlot, T, derived, follows, key, model, named, old, optional,
)  # fmt: skip
from ingot.catalog.files import law_files, laws_of, load_file

__all__ = [
    "CATALOG", "Ascending", "Data", "Declared", "Fixed", "Input", "Listed", "Many", "Name",
    "Option", "Output", "Parameter", "ParameterSlot", "T", "derived", "follows", "key", "law_files",
    "laws_of", "load", "load_file", "model", "named", "old", "optional",
]  # fmt: skip


def load() -> dict[str, Declared]:
    """All laws of the library by their type name."""
    for found in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{found.name}")
    return CATALOG
