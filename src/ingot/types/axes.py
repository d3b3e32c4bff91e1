"""Operations along a named axis of a value: slip systems, cells, bins.

On tensors the axis is the last structural one; on atoms it is known by name.
"""

from typing import Any, Literal

import torch

from ingot.types.value import Scalar, Value, atoms_of, on_atoms

__all__ = ["append", "contract", "difference", "positions", "total", "trim"]


def total(x: Any, axis: str) -> Any:
    """The sum along an axis, which is gone afterwards."""
    if on_atoms(x) is not None:
        return type(x)(tuple(a.emit("sum", a, axis=axis) for a in x.data))
    if x.sub == 0:
        raise ValueError(f"the value has no axis '{axis}' to sum over")
    at = x.data.ndim - len(x.base) - 1
    return type(x)(x.data.sum(dim=at), sub_batch_ndim=x.sub - 1)


def contract(matrix: Any, x: Any, axis: str) -> Any:
    r"""The product with a matrix of scalars along an axis, which is gone afterwards,
    $y_i = \sum_j W_{ij} x_j$; the axis is the last of both.
    """
    atom = on_atoms(matrix, x)
    if atom is None:
        return total(matrix * x, axis)
    weight, entries = (atoms_of(atom, v) for v in (matrix, x))
    if len(weight) != 1:
        raise TypeError(f"a matrix of {type(matrix).__name__}: its entries are scalars")
    return type(x)(tuple(atom.emit("contract", weight[0], a, axis=axis) for a in entries))


def trim(x: Any, axis: str, *, first: int = 0, last: int = 0) -> Any:
    """The entries left when `first` leading and `last` trailing ones are dropped."""
    if on_atoms(x) is not None:
        return type(x)(
            tuple(a.emit("window", a, axis=axis, first=first, last=last) for a in x.data)
        )
    at = x.data.ndim - len(x.base) - 1
    return type(x)(x.data.narrow(at, first, x.data.shape[at] - first - last), sub_batch_ndim=x.sub)


def difference(x: Any, axis: str) -> Any:
    """Each entry less the one before; the axis is one shorter."""
    return trim(x, axis, first=1) - trim(x, axis, last=1)


def append(x: Any, value: Any, axis: str, *, side: Literal["left", "right"]) -> Any:
    """The entries with one more at an end; the axis is one longer."""
    atom = on_atoms(x)
    if atom is not None:
        pairs = zip(x.data, atoms_of(atom, value), strict=True)
        return type(x)(tuple(a.emit("append", a, b, axis=axis, side=side) for a, b in pairs))
    at = x.data.ndim - len(x.base) - 1
    shape = list(x.data.shape)
    shape[at] = 1
    extra = _last_axis(value).expand(shape)
    parts = [extra, x.data] if side == "left" else [x.data, extra]
    return type(x)(torch.cat(parts, dim=at), sub_batch_ndim=x.sub)


def positions(like: Any, axis: str) -> Any:
    """0, 1, 2, ... along an axis of a value."""
    atom = on_atoms(like)
    if atom is not None:
        return Scalar((atom.emit("arange", like.data[0], axis=axis),))
    size = like.data.shape[like.data.ndim - len(like.base) - 1]
    return Scalar(torch.arange(size, dtype=like.data.dtype), sub_batch_ndim=1)


def _last_axis(value: Value) -> Any:
    """The data of a value without structural axes, given one of size one before its components."""
    data = value.data
    return data if value.sub else data.unsqueeze(data.ndim - len(value.base))
