"""A child of test_memory.py: what runs are estimated to take, and the most that they took.

In: inputs as JSON, each with overrides and whether it is compiled. Out: pairs of bytes.
"""

import json
import sys
import tempfile
from pathlib import Path

import torch

from ingot.fields import build, prepared
from ingot.fields.memory import needed_memory
from ingot.fields.runs import Run
from ingot.hit import read_text

SMALL = ("Domain/nx=8", "Domain/ny=6", "Domain/nz=4")


def status(word: str) -> int:
    """A number of bytes that the system tells of this process."""
    rows = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(row.split()[1]) for row in rows if row.startswith(word))


def taken(text: str, overrides: list[str], *, jit: bool) -> tuple[int, int]:
    """The bytes that a run is estimated to take, and the most that it took beyond the rest."""
    small = begun(text, [*overrides, *SMALL[: 3 if "Domain/dim=3" in overrides else 2]], jit=jit)
    small.step()  # compiles, which takes memory of its own
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    run = begun(text, overrides, jit=jit)
    for _ in range(3):
        run.step()
    return needed_memory(run.simulation, "cpu", jit=jit), status("VmHWM") - before


def begun(text: str, overrides: list[str], *, jit: bool) -> Run:
    """A run that has started."""
    simulation = build(read_text(text, overrides=overrides, moose=True))
    run = prepared(simulation, tempfile.gettempdir(), jit=jit)
    run.start()
    return run


if __name__ == "__main__":
    torch.set_num_threads(1)
    found = [taken(text, overrides, jit=jit) for text, overrides, jit in json.load(sys.stdin)]
    print(json.dumps(found))
