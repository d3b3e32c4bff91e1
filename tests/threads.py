"""How many threads torch and kernels use, told to OpenMP alone.

`torch.set_num_threads` tells MKL too, and on some machines MKL's factorisation of a matrix of 200
rows by two threads is wrong from then on, in torch by itself.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def threads(count: int) -> Iterator[None]:
    """So many threads, for a while."""
    tell = getattr(ctypes.CDLL(None), "omp_set_num_threads", torch.set_num_threads)
    before = torch.get_num_threads()
    tell(count)
    try:
        yield
    finally:
        tell(before)
