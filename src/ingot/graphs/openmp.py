"""How many threads a compiled graph wakes: those of OpenMP, which torch and g++ share."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

__all__ = ["run_alone"]


@cache
def _openmp() -> ctypes.CDLL | None:
    library = ctypes.CDLL(None)
    return library if hasattr(library, "omp_set_num_threads") else None


@contextmanager
def run_alone(wanted: bool) -> Iterator[None]:
    """This thread alone, if wanted: a compiled graph wakes all threads even for a single point."""
    openmp = _openmp() if wanted else None
    if openmp is None:
        yield
        return
    before = openmp.omp_get_max_threads()
    openmp.omp_set_num_threads(1)
    try:
        yield
    finally:
        openmp.omp_set_num_threads(before)
