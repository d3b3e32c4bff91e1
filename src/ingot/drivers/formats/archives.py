"""`.npz`: arrays over all steps. `.pt`, `.pth`: the flat dictionary that NEML2 writes, and more.

`torch.load` of the latter gives the dictionary alone; what it does not hold lies beside it.
"""

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ingot.drivers.formats.content import (
    Content,
    Header,
    assemble,
    find_rest,
    quote,
    take_apart,
)
from ingot.drivers.result import Result
from ingot.drivers.series import Array

__all__ = ["load_arrays", "read_archive", "read_arrays", "save_arrays", "write_archive",
           "write_arrays"]  # fmt: skip

HEADER = "header"
BESIDE = "ingot.npz"
"""The member of a torch archive that holds the rest."""


def write_arrays(result: Result, file: Path) -> None:
    """Every array over all steps, for `numpy.load`."""
    with file.open("wb") as stream:
        save_arrays(take_apart(result), stream)


def read_arrays(file: Path) -> Result:
    """A result of NumPy's archive."""
    header, arrays = load_arrays(file)
    return assemble(Content(header, arrays))


def save_arrays(content: Content, stream: Any) -> None:
    """Write a content as NumPy's archive."""
    head = np.array(content.header.to_json())
    np.savez(stream, allow_pickle=False, **{HEADER: head, **content.arrays})


def load_arrays(file: Any) -> tuple[Header, dict[str, Array]]:
    """The header and the arrays of NumPy's archive; nothing in it is executed."""
    if isinstance(file, Path) and not zipfile.is_zipfile(file):
        raise ValueError("it is no archive of NumPy")  # which would speak of pickles else
    with np.load(file, allow_pickle=False) as stored:
        arrays = {key: stored[key] for key in stored.files if key != HEADER}
        return Header.from_json(str(stored[HEADER])), arrays


def write_archive(result: Result, file: Path) -> None:
    """The flat dictionary as torch stores it, and what it lacks as a member that torch ignores."""
    with file.open("wb") as stream:
        torch.save(dict(result.flat), stream)
    content = take_apart(result)
    rest = find_rest(content, _stack(content.header, result.flat))
    beside = io.BytesIO()
    save_arrays(Content(content.header, rest), beside)
    with zipfile.ZipFile(file, "a") as archive:
        folder = archive.namelist()[0].partition("/")[0]
        archive.writestr(f"{folder}/{BESIDE}", beside.getvalue())


def read_archive(file: Path) -> Result:
    """A result of torch's archive; one that NEML2 wrote does not say what its values are."""
    flat = torch.load(file, weights_only=True)
    with zipfile.ZipFile(file) as archive:
        name = next((n for n in archive.namelist() if n.endswith(f"/{BESIDE}")), None)
        if name is None:
            raise ValueError("it holds numbers alone, without the kinds of its variables")
        header, rest = load_arrays(io.BytesIO(archive.read(name)))
    return assemble(Content(header, {**_stack(header, flat), **rest}))


def _stack(header: Header, flat: Mapping[str, Any]) -> dict[str, Array]:
    """Arrays over all steps, as far as the values of single steps tell them."""
    found: dict[str, Array] = {}
    for name in header.initial:
        first = flat.get(f"{'input' if name in header.read else 'output'}.0.{name}")
        if first is not None:
            found[f"initial/{quote(name)}"] = first.numpy()
    for side in ("inputs", "outputs"):
        for name in getattr(header, side):
            word = side.removesuffix("s")
            rows = [flat.get(f"{word}.{step}.{name}") for step in range(header.steps)]
            if rows[0] is None and rows[1:] and rows[1] is not None:
                first = found.get(f"initial/{quote(name)}")
                zeros = torch.zeros_like(rows[1])
                rows[0] = zeros if first is None else torch.from_numpy(first)
            known = [row for row in rows if row is not None]
            if len(known) == header.steps:
                spread = torch.broadcast_tensors(*known)
                found[f"{side}/{quote(name)}"] = torch.stack(spread).numpy()
    return found
