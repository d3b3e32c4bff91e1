"""How many threads a compiled graph wakes: those of OpenMP, which torch and g++ share."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from ingot.platform import find_in_process

__all__ = ["run_alone"]


@cache
def _openmp() -> tuple[Any, Any] | None:
    """What reads and what sets the number of threads, where OpenMP is loaded."""
    read, write = (find_in_process(f"omp_{do}_threads") for do in ("get_max", "set_num"))
    return (read, write) if read and write else None


@contextmanager
def run_alone(wanted: bool) -> Iterator[None]:
    """This thread alone, if wanted: a compiled graph wakes all threads even for a single point."""
    openmp = _openmp() if wanted else None
    if openmp is None:
        yield
        return
    read, write = openmp
    before = read()
    write(1)
    try:
        yield
    finally:
        write(before)
