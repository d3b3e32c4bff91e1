"""real_field: a spectrum -> its field, by the FFTs that torch brings along, without torch's copies.

Torch lets MKL transform all axes but the last into another order of memory, which the last must
then read across: at 64 cells a side that takes twice the time of transforms that stay in place.
"""

from __future__ import annotations

import ctypes
import math
import weakref
from collections.abc import Sequence
from ctypes import c_double, c_long
from enum import IntEnum
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from ingot.graphs.torch_private import find_dfti, real_transform

__all__ = ["real_field"]

MAX_PLANS = 64
"""Of how many boxes plans are kept: making one takes 0.2 ms, two transforms of 32 cells a side."""


class Dfti(IntEnum):
    """Settings of a plan and their values, numbered as in mkl_dfti.h."""

    BACKWARD_SCALE = 5
    NUMBER_OF_TRANSFORMS = 7
    CONJUGATE_EVEN_STORAGE = 10
    PLACEMENT = 11
    INPUT_STRIDES = 12
    OUTPUT_STRIDES = 13
    INPUT_DISTANCE = 14
    OUTPUT_DISTANCE = 15
    COMPLEX = 32
    REAL = 33
    COMPLEX_COMPLEX = 39
    INPLACE = 43
    NOT_INPLACE = 44


def real_field(
    spectrum: Tensor, axes: Sequence[int], normalization: int, size: int, spare: bool = False
) -> Tensor:
    """The field of a half spectrum, as aten::_fft_c2r has it.

    spare: whether nothing reads the spectrum any more, so that its memory may be used
    """
    shape = (*spectrum.shape[:-1], size)
    usual = list(axes) == list(range(spectrum.dim())) and spectrum.shape[-1] == size // 2 + 1
    # conjugates and signs that are only noted are not in memory; 1 cell is no transform of MKL's
    plain = spectrum.is_contiguous() and not spectrum.is_conj() and not spectrum.is_neg()
    plans = None
    if usual and plain and spectrum.is_cpu and len(shape) > 1 and min(shape) > 1:
        single, threads = spectrum.dtype == torch.complex64, torch.get_num_threads()
        plans = inverse_plans(shape, single, normalization, spare, threads)
    if plans is None:
        return real_transform(spectrum, axes, normalization, size)
    outer, last = plans
    held = spectrum if spare else torch.empty_like(spectrum)
    outer.run(spectrum, held)
    field = torch.empty(shape, dtype=spectrum.real.dtype)
    last.run(held, field)
    return field


class MklPlan:
    """Inverse transforms that MKL has made ready; any thread may run it."""

    def __init__(
        self, dfti: Any, domain: Dfti, sizes: Sequence[int], single: bool, settings: dict[Dfti, Any]
    ) -> None:
        self.dfti, self.handle = dfti, ctypes.c_void_p()
        create = dfti.DftiCreateDescriptor_s_md if single else dfti.DftiCreateDescriptor_d_md
        rank = c_long(len(sizes))
        require(dfti, create(ctypes.byref(self.handle), domain, rank, longs(*sizes)))
        weakref.finalize(self, dfti.DftiFreeDescriptor, ctypes.byref(self.handle))
        for name, value in settings.items():
            require(dfti, dfti.DftiSetValue(self.handle, name, value))
        require(dfti, dfti.DftiCommitDescriptor(self.handle))

    def run(self, given: Tensor, into: Tensor) -> None:
        """Transform what lies in one tensor into another, or the same."""
        places = (ctypes.c_void_p(given.data_ptr()), ctypes.c_void_p(into.data_ptr()))
        require(self.dfti, self.dfti.DftiComputeBackward(self.handle, *places))


@lru_cache(MAX_PLANS)
def inverse_plans(
    shape: tuple[int, ...], single: bool, normalization: int, in_place: bool, threads: int
) -> tuple[MklPlan, MklPlan] | None:
    """Along all axes but the last, and along that; None where torch has no MKL.

    threads: how many there are, since a plan keeps the number that it was made with
    """
    dfti = find_dfti()
    if dfti is None:
        return None
    *outer, size = shape
    half, cells = size // 2 + 1, math.prod(shape)
    scale = (1.0, 1 / math.sqrt(cells), 1 / cells)[normalization]
    strides = [half * math.prod(outer[at + 1 :]) for at in range(len(outer))]
    together: dict[Dfti, Any] = {
        Dfti.PLACEMENT: Dfti.INPLACE if in_place else Dfti.NOT_INPLACE,
        Dfti.INPUT_STRIDES: longs(0, *strides), Dfti.OUTPUT_STRIDES: longs(0, *strides),
        Dfti.NUMBER_OF_TRANSFORMS: c_long(half),
        Dfti.INPUT_DISTANCE: c_long(1), Dfti.OUTPUT_DISTANCE: c_long(1),
    }  # fmt: skip
    alone: dict[Dfti, Any] = {
        Dfti.PLACEMENT: Dfti.NOT_INPLACE, Dfti.CONJUGATE_EVEN_STORAGE: Dfti.COMPLEX_COMPLEX,
        Dfti.NUMBER_OF_TRANSFORMS: c_long(math.prod(outer)), Dfti.BACKWARD_SCALE: c_double(scale),
        Dfti.INPUT_DISTANCE: c_long(half), Dfti.OUTPUT_DISTANCE: c_long(size),
    }  # fmt: skip
    return (
        MklPlan(dfti, Dfti.COMPLEX, outer, single, together),
        MklPlan(dfti, Dfti.REAL, [size], single, alone),
    )


def longs(*values: int) -> ctypes.Array[c_long]:
    """Numbers as MKL takes a list of them."""
    return (c_long * len(values))(*values)


def require(dfti: Any, status: int) -> None:
    """Fail as MKL tells it."""
    if status:
        raise RuntimeError(f"an FFT failed: {dfti.DftiErrorMessage(status).decode()}")
