"""Tables of a law: linear between knots, along one axis or several."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ingot.types.value import Scalar, atoms_of, on_atoms, padded

__all__ = ["interpolate"]


def interpolate(x: Any, abscissas: Any, ordinates: Any, axis: str | Sequence[str]) -> Any:
    """The linear interpolant of a table at x; multilinear where x, abscissas and axis are tuples.

    Abscissas ascend along their axis. At a knot the slope is that of the segment to its right;
    beyond its ends a table goes on as its first and last segments do. One knot is a constant.
    """
    alone = isinstance(axis, str)
    names = (axis,) if isinstance(axis, str) else tuple(axis)
    at, knots = ((x,), (abscissas,)) if alone else (tuple(x), tuple(abscissas))
    if not len(at) == len(knots) == len(names):
        raise ValueError(
            f"a table along {len(names)} axes takes as many arguments and abscissas, not"
            f" {len(at)} and {len(knots)}"
        )
    atom = on_atoms(*at, *knots, ordinates)
    if atom is None:
        return _on_tensors(at, knots, ordinates)
    scalars = [_require_one(atoms_of(atom, v)) for v in (*at, *knots)]
    entries = atoms_of(atom, ordinates)
    kind = type(ordinates)
    return kind(tuple(atom.emit("interpolate", *scalars, y, axis=names) for y in entries))


def _require_one(atoms: tuple[Any, ...]) -> Any:
    if len(atoms) != 1:
        raise TypeError("the arguments and abscissas of a table are scalars")
    return atoms[0]


def _on_tensors(at: Sequence[Any], knots: Sequence[Any], ordinates: Any) -> Any:
    """The same on tensors: axes of the table are the last structural ones, in order."""
    count, kind = len(at), type(ordinates)
    at = [v if isinstance(v, Scalar) else Scalar(v) for v in at]
    sub = max(ordinates.sub - count, *(v.sub for v in at), *(v.sub - 1 for v in knots))
    values = padded(ordinates, sub + count)
    for i in range(count):
        x, table = padded(at[i], sub), padded(knots[i], sub + 1)
        trailing = count - i - 1 + len(kind.base)
        if table.shape[-1] == 1:
            values = values.select(-trailing - 1, 0)
            continue
        first = (table[..., 1:-1] <= x[..., None]).sum(-1)
        start, end = (_pick(table, first + k, 0) for k in (0, 1))
        ratio = (x - start) / (end - start)
        start, end = (_pick(values, first + k, trailing) for k in (0, 1))
        values = start + (end - start) * ratio.reshape((*ratio.shape, *[1] * trailing))
    return kind(values, sub_batch_ndim=sub)


def _pick(values: Tensor, index: Tensor, trailing: int) -> Tensor:
    """The entries along the dimension before some trailing ones."""
    index = index.reshape((*index.shape, *[1] * (trailing + 1)))
    rank = max(values.ndim, index.ndim)
    values, index = (t[(None,) * (rank - t.ndim)] for t in (values, index))
    return torch.take_along_dim(values, index, dim=-trailing - 1).squeeze(-trailing - 1)
