"""Graphs that torch compiled and torch itself share their threads."""

import ctypes

from ingot.graphs.openmp import run_alone


def test_openmp_is_one_library_whose_threads_are_set_for_each_thread() -> None:
    threads = ctypes.CDLL(None).omp_get_max_threads
    before = threads()
    with run_alone(True):
        assert threads() == 1
    with run_alone(False):
        assert threads() == before
    assert threads() == before
