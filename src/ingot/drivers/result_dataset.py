"""make_dataset: a Result -> an xarray Dataset, with the time, the batch and components by name."""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ingot.drivers.series import Array, name_batch_axes
from ingot.execute import Status
from ingot.extras import require_extra

if TYPE_CHECKING:
    import xarray as xr

    from ingot.drivers.result import Result

__all__ = ["TOLD", "make_dataset", "spread_status"]

TOLD = ("iterations", "residual", "reason")
"""What of a status is told by step and point, in this order."""


def make_dataset(result: "Result") -> "xr.Dataset":
    """Every variable, and `<solve>.iterations`, `.residual`, `.reason` of every solve.

    A variable that is called as a dimension, such as `time`, has an underscore added.
    """
    xarray = require_extra("xarray", "labelled arrays")
    times = find_times(result)
    arrays: dict[Any, Any] = {name: result[name].to_xarray(times) for name in result.names}
    taken = {dim for array in arrays.values() for dim in (*array.dims, *array.coords)}
    arrays = {f"{name}_" if name in taken else name: array for name, array in arrays.items()}
    dims = ["time" if times.ndim == 1 else "step", *name_batch_axes(len(result.batch))]
    for status in result.statuses:
        for row in TOLD:
            values = spread_status(result, status, row)
            arrays[f"{status.solve}.{row}"] = (dims, values.reshape(result.steps, *result.batch))
    told = {"seconds": result.seconds, "failed": result.failed}
    return xarray.Dataset(arrays, attrs=told)


def find_times(result: "Result") -> Array:
    """The times, (steps,) where all points share them, else (steps, *batch)."""
    times = result.times
    shared = times.ndim == 1 or times[0].numel() == 1
    return (times.reshape(-1) if shared else result.spread(times, 0)).numpy()


def spread_status(result: "Result", status: Status, row: str) -> Array:
    """What a status tells, (steps, points): zero at steps that are not solved, a residual NaN."""
    values: Tensor = torch.atleast_2d(getattr(status, row)).cpu()
    fill = np.nan if values.is_floating_point() else 0
    whole = torch.full((result.steps, result.points), fill, dtype=values.dtype)
    whole[status.begin : status.begin + len(values)] = values
    return whole.numpy()
