"""A job run again and again, the disk full or the process ended at each of its writes in turn.

The calls that change files below a folder are counted by a library that stands before the system's.
"""

import mmap
import os
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Outcome", "run_job", "run_script", "try_job"]

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Outcome:
    """What became of a job: at which write it was disturbed, its exit code, what it printed."""

    at: int
    code: int
    said: str


def run_script(script: str, below: Path, scratch: Path, *arguments: str) -> str:
    """What a script prints that may call `try_job` for files below a folder."""
    library, control = scratch / "faults.so", scratch / "control"
    control.write_bytes(bytes(24))
    build = ["gcc", "-shared", "-fPIC", str(HERE / "faults.c"), "-o", str(library), "-ldl"]
    subprocess.run(build, check=True)
    environment = {
        "LD_PRELOAD": str(library), "FAULTS_AT": str(below), "FAULTS_CONTROL": str(control),
        "PYTHONPATH": os.pathsep.join(map(str, (HERE.parent, HERE.parent / "src"))),
        "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def try_job(
    job: Callable[[], int], prepare: Callable[[], object], *, kill: bool, most: int | None = None
) -> Iterator[Outcome]:
    """Outcomes of a job disturbed at its first write, its second, and so on; or at most so many.

    prepare: what brings the files back to where they were before each.
    """
    prepare()
    whole = run_job(job)
    assert whole.code == 0, whole.said
    writes = struct.unpack("q", _control()[:8])[0]
    count = writes if most is None else min(writes, most)
    for turn in range(count):
        prepare()
        yield run_job(job, 1 + turn * writes // count, kill=kill)


def _control() -> mmap.mmap:
    with Path(os.environ["FAULTS_CONTROL"]).open("r+b") as file:
        return mmap.mmap(file.fileno(), 24)


def run_job(job: Callable[[], int], at: int = 0, *, kill: bool = False) -> Outcome:
    """The outcome of a job in a process of its own, disturbed at one of its writes, or at none."""
    said, control = Path(os.environ["FAULTS_CONTROL"]).with_name("said"), _control()
    control[:24] = struct.pack("3q", 0, at, kill)
    child = os.fork()
    if child == 0:
        try:
            number = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(number, 1)
            os.dup2(number, 2)
            code = job()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        except BaseException:
            import traceback

            traceback.print_exc()
            sys.stderr.flush()
            os._exit(99)
    _, status = os.waitpid(child, 0)
    control[8:16] = bytes(8)
    return Outcome(at, os.waitstatus_to_exitcode(status), said.read_text(errors="replace"))
