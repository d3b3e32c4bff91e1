"""Compilers run as children that end in time, with all that they started."""

import os
import sys
import time
from pathlib import Path

import pytest

from ingot import IngotError
from ingot.codegen.children import run_child


def test_a_child_gets_its_input_and_gives_its_output() -> None:
    script = "import sys; sys.stdout.write(sys.stdin.read().upper()); sys.exit(3)"
    done = run_child([sys.executable, "-c", script], b"words")
    assert (done.returncode, done.stdout) == (3, b"WORDS")


def test_a_child_without_end_is_ended_with_what_it_started(tmp_path: Path) -> None:
    number = tmp_path / "number"
    command = f"sleep 60 & echo $! > '{number}'; wait"
    start = time.perf_counter()
    with pytest.raises(IngotError, match="was ended after 1 s"):
        run_child(["/bin/sh", "-c", command], limit=1.0)
    assert time.perf_counter() - start < 20
    for _ in range(200):  # until it is reaped
        try:
            os.kill(int(number.read_text()), 0)
        except ProcessLookupError:
            return
        if Path(f"/proc/{number.read_text().strip()}/stat").read_text().split()[2] == "Z":
            return
        time.sleep(0.05)
    pytest.fail("what it started still runs")
