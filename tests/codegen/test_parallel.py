"""Ranges of work are all done, once each, whatever threads there are."""

import os
import subprocess
import sys
import threading

import pytest

from ingot.codegen import parallel
from ingot.codegen.parallel import run_parallel

RANGES = [(i, i + 10) for i in range(0, 640, 10)]


def worked_on(ranges: list[tuple[int, int]], *, is_long: bool = True) -> list[tuple[int, int]]:
    done: list[tuple[int, int]] = []
    run_parallel(lambda begin, end: done.append((begin, end)), ranges, is_long=is_long)
    return done


@pytest.mark.parametrize("is_long", [True, False])
@pytest.mark.parametrize("count", [1, 2, 64])
def test_every_range_is_worked_on_once(count: int, is_long: bool) -> None:
    assert sorted(worked_on(RANGES[:count], is_long=is_long)) == RANGES[:count]


def test_long_work_is_done_where_torch_has_another_openmp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_find_openmp", lambda _: None)
    assert sorted(worked_on(RANGES)) == RANGES


@pytest.mark.parametrize("is_long", [True, False])
def test_ranges_are_worked_on_at_the_same_time(is_long: bool) -> None:
    both = threading.Barrier(2, timeout=30)

    def meet(_begin: int, _end: int) -> None:
        both.wait()

    run_parallel(meet, RANGES[:2], is_long=is_long)


def test_ranges_that_a_smaller_team_leaves_are_worked_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def alone(share: object, *_: object) -> None:
        share(None)  # type: ignore[reportCallIssue]

    monkeypatch.setattr(parallel, "_find_openmp", lambda _: alone)
    assert worked_on(RANGES[:3]) == RANGES[:3]


@pytest.mark.parametrize("is_long", [True, False])
def test_a_thread_that_is_done_takes_the_next_range(is_long: bool) -> None:
    rest, done = threading.Event(), list[int]()

    def work(begin: int, _end: int) -> None:
        if begin == 0:
            assert rest.wait(30)
        done.append(begin)
        if len(done) == len(RANGES) - 1:
            rest.set()

    run_parallel(work, RANGES, 2, is_long=is_long)
    assert done[-1] == 0 and sorted(done) == [begin for begin, _ in RANGES]


@pytest.mark.parametrize("is_long", [True, False])
def test_an_error_in_a_thread_reaches_the_caller(is_long: bool) -> None:
    def fails(begin: int, _end: int) -> None:
        if begin:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_parallel(fails, RANGES[:2], is_long=is_long)


FORKED = """
import os
from ingot.codegen.parallel import run_parallel
done = []
run_parallel(lambda *each: done.append(each), [(0, 1), (1, 2)], is_long=True)
child = os.fork()
run_parallel(lambda *each: done.append(each), [(2, 3), (3, 4)], is_long=True)
if child == 0:
    os._exit(len(done))
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_process_works_with_threads_of_its_own() -> None:
    made = subprocess.run([sys.executable, "-c", FORKED], timeout=60, check=False)
    assert made.returncode == 4
