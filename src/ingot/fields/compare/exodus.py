"""Exodus: variables over time on a mesh, read from a file and written to one.

In: the path of an Exodus file, classic netCDF inside. Out: an Exodus; and back.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ingot.errors import IngotError, Problem
from ingot.fields.compare.netcdf import (
    Netcdf,
    NetcdfVariable,
    append_record,
    read_netcdf,
    write_netcdf,
)

__all__ = ["Exodus", "append_exodus", "grid", "read_exodus", "write_exodus"]

Numbers = NDArray[np.float64]
SHAPES = {1: "EDGE2", 2: "QUAD4", 3: "HEX8"}
CORNERS = {
    1: ((0,), (1,)),
    2: ((0, 0), (1, 0), (1, 1), (0, 1)),
    3: ((0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1)),
}
LENGTH = 256


@dataclass(frozen=True, slots=True)
class Exodus:
    """Nodes, elements by their nodes (counted from 0), times, and variables `[time, place]`."""

    nodes: Numbers
    elements: NDArray[np.int64]
    times: Numbers
    nodal: Mapping[str, Numbers] = field(default_factory=dict)
    elemental: Mapping[str, Numbers] = field(default_factory=dict)
    scalar: Mapping[str, Numbers] = field(default_factory=dict)

    @property
    def centres(self) -> Numbers:
        """The middle of every element."""
        return self.nodes[self.elements].mean(axis=1)


def grid(
    counts: tuple[int, ...], lower: tuple[float, ...], upper: tuple[float, ...]
) -> tuple[Numbers, NDArray[np.int64]]:
    """Nodes and elements of a box, one element per cell; the first axis runs fastest."""
    axes = [
        np.linspace(low, high, n + 1) for n, low, high in zip(counts, lower, upper, strict=True)
    ]
    mesh = np.meshgrid(*axes, indexing="ij")
    nodes = np.stack([axis.ravel(order="F") for axis in mesh], axis=1)
    stride = np.cumprod([1, *(n + 1 for n in counts[:-1])])
    cells = np.array([cell[::-1] for cell in product(*(range(n) for n in counts[::-1]))])
    corners = np.array(CORNERS[len(counts)])
    elements = (cells[:, None, :] + corners[None]) @ stride
    return nodes, elements.astype(np.int64)


def read_exodus(path: Path) -> Exodus:
    """Read nodes, elements, times and all variables; blocks follow one another."""
    file = read_netcdf(path)
    try:
        return taken(file)
    except KeyError as error:
        message = f"'{path}' is no Exodus file: it has no {error}"
        fix = "name a file that an Exodus output wrote"
        raise IngotError([Problem("unreadable-reference", message, fix=fix)]) from error


def taken(file: Netcdf) -> Exodus:
    """What a netCDF file says in Exodus' names."""
    held = {name: variable.values for name, variable in file.variables.items()}
    dim = file.dimensions["num_dim"]
    if "coord" in held:
        nodes = held["coord"].T
    else:
        nodes = np.stack([held[f"coord{axis}"] for axis in "xyz"[:dim]], axis=1)
    blocks = range(1, file.dimensions.get("num_el_blk", 0) + 1)
    elements = np.concatenate([held[f"connect{block}"] for block in blocks]) - 1
    times = held["time_whole"]
    nodal = {
        name: held[f"vals_nod_var{i}"] for i, name in enumerate(names(held, "name_nod_var"), 1)
    }
    elemental = {
        name: np.concatenate([element_values(file, held, i, block) for block in blocks], axis=1)
        for i, name in enumerate(names(held, "name_elem_var"), 1)
    }
    labels = names(held, "name_glo_var")
    scalar = {name: held["vals_glo_var"][:, i] for i, name in enumerate(labels)}
    return Exodus(nodes, elements, times, nodal, elemental, scalar)


def element_values(file: Netcdf, held: Mapping[str, Numbers], i: int, block: int) -> Numbers:
    """A variable on a block; where the block does not have it, it is nan."""
    shape = file.dimensions["time_step"], file.dimensions[f"num_el_in_blk{block}"]
    return held.get(f"vals_elem_var{i}eb{block}", np.full(shape, np.nan))


def names(held: Mapping[str, NDArray[np.bytes_]], key: str) -> list[str]:
    """The names in a table of letters; none where there is no table."""
    rows = held.get(key, np.empty((0, 0), "S1"))
    return [b"".join(row).split(b"\0")[0].decode().strip() for row in rows]


def write_exodus(path: Path, exodus: Exodus) -> None:
    """Write a file of one block that Exodus readers open."""
    dim, steps = exodus.nodes.shape[1], len(exodus.times)
    count, corners = exodus.elements.shape
    dimensions = {"len_name": LENGTH, "time_step": steps, "num_dim": dim}
    dimensions |= {"num_nodes": len(exodus.nodes), "num_elem": count, "num_el_blk": 1}
    dimensions |= {"num_el_in_blk1": count, "num_nod_per_el1": corners}
    variables = {
        "time_whole": NetcdfVariable(("time_step",), np.asarray(exodus.times, np.float64)),
        "eb_status": NetcdfVariable(("num_el_blk",), np.array([1], np.int32)),
        "eb_prop1": NetcdfVariable(("num_el_blk",), np.array([0], np.int32), {"name": text("ID")}),
        "coor_names": NetcdfVariable(("num_dim", "len_name"), letters("xyz"[:dim])),
        "connect1": NetcdfVariable(
            ("num_el_in_blk1", "num_nod_per_el1"),
            (exodus.elements + 1).astype(np.int32),
            {"elem_type": text(SHAPES[dim])},
        ),
    }
    for axis in range(dim):
        variables[f"coord{'xyz'[axis]}"] = NetcdfVariable(("num_nodes",), exodus.nodes[:, axis])
    for kind, held, place in (
        ("nod", exodus.nodal, "num_nodes"),
        ("elem", exodus.elemental, "num_el_in_blk1"),
    ):
        if held:
            dimensions[f"num_{kind}_var"] = len(held)
            label = NetcdfVariable((f"num_{kind}_var", "len_name"), letters(held))
            variables[f"name_{kind}_var"] = label
        for i, values in enumerate(held.values(), 1):
            ending = "eb1" if kind == "elem" else ""
            variables[f"vals_{kind}_var{i}{ending}"] = NetcdfVariable(("time_step", place), values)
    if exodus.elemental:
        table = np.ones((1, len(exodus.elemental)), np.int32)
        variables["elem_var_tab"] = NetcdfVariable(("num_el_blk", "num_elem_var"), table)
    if exodus.scalar:
        dimensions["num_glo_var"] = len(exodus.scalar)
        label = NetcdfVariable(("num_glo_var", "len_name"), letters(exodus.scalar))
        variables["name_glo_var"] = label
        together = np.stack(list(exodus.scalar.values()), axis=1)
        variables["vals_glo_var"] = NetcdfVariable(("time_step", "num_glo_var"), together)
    attributes = {
        "api_version": np.array([8.11], np.float32),
        "version": np.array([8.11], np.float32),
        "floating_point_word_size": np.array([8], np.int32),
        "file_size": np.array([1], np.int32),
        "maximum_name_length": np.array([32], np.int32),
        "int64_status": np.array([0], np.int32),
        "title": text(path.name),
    }
    write_netcdf(path, Netcdf(dimensions, variables, attributes, "time_step"))


def append_exodus(
    path: Path,
    time: float,
    nodal: Iterable[Numbers],
    elemental: Iterable[Numbers],
    scalar: Sequence[float],
) -> None:
    """Add a time to a file, its variables in the order they were written in."""
    numbers = [np.array(scalar, np.float64)] if scalar else []
    append_record(path, [np.array(time, np.float64), *nodal, *elemental, *numbers])


def text(words: str) -> NDArray[np.bytes_]:
    """A text as the value of an attribute."""
    return np.frombuffer(words.encode() + b"\0", "S1")


def letters(words: Mapping[str, Numbers] | str) -> NDArray[np.bytes_]:
    """Names as a table of letters."""
    rows = [np.frombuffer(word.encode().ljust(LENGTH, b"\0"), "S1") for word in words]
    return np.stack(rows)
