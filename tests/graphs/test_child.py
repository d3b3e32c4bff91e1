"""Work in child processes: results, faults of all kinds, and the parent that outlives them."""

import ctypes
import logging
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingot.errors import IngotError, Problem
from ingot.graphs import child
from ingot.graphs.child import Children, share_children

HERE = "tests.graphs.test_child"


def write_number(folder: Path) -> None:
    print("not a verdict")
    (folder / "pid").write_text(str(os.getpid()))


def fail(_: Path) -> None:
    raise ValueError("no such size")


def refuse(_: Path) -> None:
    raise IngotError([Problem("fixed-size", "one size only", None, "leave it out")])


def crash(_: Path) -> None:
    ctypes.string_at(0)


def run_out(_: Path) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def linger(_: Path) -> None:
    time.sleep(600)


@pytest.fixture(scope="module")
def children() -> Iterator[Children]:
    made = Children()
    yield made
    made.close()


def test_a_child_works_on_after_a_fault_of_python(children: Children, tmp_path: Path) -> None:
    wall, busy = children.run(f"{HERE}:write_number", tmp_path, "it", "wait")
    assert wall >= 0 and busy >= 0
    first = (tmp_path / "pid").read_text()
    assert first != str(os.getpid())
    with pytest.raises(IngotError, match=r"compiler-failed.*it: ValueError: no such size\n.*wait"):
        children.run(f"{HERE}:fail", tmp_path, "it", "wait")
    with pytest.raises(IngotError, match=r"fixed-size.*one size only\n.*leave it out"):
        children.run(f"{HERE}:refuse", tmp_path, "it", "wait")
    children.run(f"{HERE}:write_number", tmp_path, "it", "wait")
    assert (tmp_path / "pid").read_text() == first


@pytest.mark.parametrize(
    ("work", "told"),
    [
        ("crash", r"it: its process was ended by SIGSEGV(.|\n)*wait"),
        ("run_out", r"it: its process was ended by SIGKILL; memory may have run out\n.*wait"),
    ],
)
def test_the_end_of_a_child_is_told(
    work: str, told: str, children: Children, tmp_path: Path
) -> None:
    with pytest.raises(IngotError, match=rf"compiler-failed.*{told}"):
        children.run(f"{HERE}:{work}", tmp_path, "it", "wait")


def test_work_without_end_is_ended_and_told_of_meanwhile(
    children: Children, tmp_path: Path, caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(child, "TOLD_EVERY", 0.2)
    caplog.set_level(logging.INFO, "ingot")
    with pytest.raises(IngotError, match=r"it took longer than 1 s\n.*raise time_limit, or wait"):
        children.run(f"{HERE}:linger", tmp_path, "the graph", "wait", 1)
    assert "the graph: at work for 0 s" in caplog.text
    children.run(f"{HERE}:write_number", tmp_path, "it", "wait")


def test_a_child_that_went_for_lack_of_work_is_replaced(tmp_path: Path) -> None:
    one = Children()
    one.run(f"{HERE}:write_number", tmp_path, "it", "wait")
    first = (tmp_path / "pid").read_text()
    (idle,) = one._all  # pyright: ignore[reportPrivateUsage]
    assert idle.process.stdin is not None
    idle.process.stdin.close()  # as silence does, it ends a child without a fault
    idle.process.stdin = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    idle.process.wait()
    one.run(f"{HERE}:write_number", tmp_path, "it", "wait")
    assert (tmp_path / "pid").read_text() != first
    one.close()


def test_a_process_shares_its_children() -> None:
    assert share_children() is share_children()
