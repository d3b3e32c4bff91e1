"""Parallel for: work on ranges -> done by a thread each.

Long work runs on the OpenMP pool of torch, which spins after its loops: a second pool would
oversubscribe the cores. Short work runs on a pool of our own, since OpenMP's barrier spins too.
"""

import ctypes
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from ingot.platform import find_in_process

__all__ = ["Work", "run_parallel"]

Work = Callable[[int, int], None]

IMPORTING_PROCESS = os.getpid()
GOMP_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@cache
def _find_openmp(process: int) -> Any:
    """What runs a function on the threads of OpenMP."""
    if process != IMPORTING_PROCESS:  # forked, and OpenMP does not know that its threads are gone
        return None
    return find_in_process("GOMP_parallel")


@cache
def _open_pool(_process: int) -> ThreadPoolExecutor:
    """The threads of one process; those of its parent are not in it."""
    return ThreadPoolExecutor(os.cpu_count())


def run_parallel(
    work: Work, ranges: Sequence[tuple[int, int]], threads: int | None = None, *, is_long: bool
) -> None:
    """Work on all ranges by threads, each of which takes the next when it has done one.

    threads: as many as ranges if not given.
    """
    process, count = os.getpid(), len(ranges) if threads is None else threads
    left, raised = iter(ranges), list[BaseException]()

    def share(_: int | None = None) -> None:
        try:
            while (each := next(left, None)) is not None and not raised:
                work(*each)
        except BaseException as error:  # which would be lost on its way through C
            raised.append(error)

    team = _find_openmp(process) if is_long else None
    if team is None:
        helpers = [_open_pool(process).submit(share) for _ in range(count - 1)]
        share()
        for helper in helpers:
            if not helper.cancel():  # it has begun
                helper.result()
    else:
        team(GOMP_FUNCTION(share), None, ctypes.c_uint(count), ctypes.c_uint(0))
    if raised:
        raise raised[0]
