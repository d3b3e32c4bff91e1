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

__all__ = ["Work", "run_parallel"]

Work = Callable[[int, int], None]

IMPORTING_PROCESS = os.getpid()
GOMP_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@cache
def _find_openmp(process: int) -> tuple[Any, Any] | None:
    """What runs a function on the threads of OpenMP, and what tells a thread its number."""
    if process != IMPORTING_PROCESS:  # forked, and OpenMP does not know that its threads are gone
        return None
    try:
        names = ctypes.CDLL(None)
        return names.GOMP_parallel, names.omp_get_thread_num
    except (AttributeError, TypeError):  # another OpenMP, another system
        return None


@cache
def _open_pool(_process: int) -> ThreadPoolExecutor:
    """The threads of one process; those of its parent are not in it."""
    return ThreadPoolExecutor(os.cpu_count())


def run_parallel(work: Work, ranges: Sequence[tuple[int, int]], *, is_long: bool) -> None:
    """Work on all ranges, each in a thread of its own."""
    process = os.getpid()
    team = _find_openmp(process) if is_long else None
    if team is None:
        for job in [_open_pool(process).submit(work, *each) for each in ranges]:
            job.result()
        return
    parallel, number = team
    left, raised = dict(enumerate(ranges)), list[BaseException]()

    def share(_: int | None) -> None:
        try:
            each = number()
            work(*ranges[each])
            del left[each]
        except BaseException as error:  # which would be lost on its way through C
            raised.append(error)

    parallel(GOMP_FUNCTION(share), None, ctypes.c_uint(len(ranges)), ctypes.c_uint(0))
    if raised:
        raise raised[0]
    for each in left.values():  # the team may be smaller than asked for
        work(*each)
