"""Files are written by a thread: in order, bounded, and nothing that fails stays untold."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ingot.errors import IngotError
from ingot.fields import build, prepared, run
from ingot.fields.compare import read_exodus, write_exodus
from ingot.fields.outputs.background import MOST_FRAMES, MOST_ROWS, Background
from ingot.fields.outputs.frames import read_frames
from ingot.fields.outputs.xdmf import XDMFWriter
from ingot.hit import read_text
from tests.fields.outputs.test_vti import text_of

XDMF = """
[TensorOutputs]
  [raw]
    type = XDMFTensorOutput
    buffer = 'c grad'
  []
[]
"""


TABLES = """
[AuxVariables]
  [shown]
    family = MONOMIAL
    order = CONSTANT
  []
  [corners]
  []
[]
[AuxKernels]
  [shown]
    type = ProjectTensorAux
    variable = shown
    buffer = c
    execute_on = 'TIMESTEP_END'
  []
  [corners]
    type = ProjectTensorAux
    variable = corners
    buffer = c
    execute_on = 'INITIAL TIMESTEP_END'
  []
[]
[Postprocessors]
  [mean]
    type = TensorAveragePostprocessor
    buffer = c
  []
[]
[VectorPostprocessors]
  [bins]
    type = TensorHistogram
    buffer = c
    min = 0
    max = 1
    bins = 4
  []
[]
[Outputs]
  csv = true
  exodus = true
[]
"""


def text_with_tables(dim: int) -> str:
    """An input that writes files of all kinds."""
    return text_of(dim).replace("[Domain]", "[Domain]\n  mesh_mode = DOMAIN") + XDMF + TABLES


def test_jobs_are_done_in_order_by_one_other_thread() -> None:
    done: list[tuple[int, int]] = []
    background = Background()
    for number in range(20):
        background.submit(
            lambda n=number: done.append((n, threading.get_ident())), is_frame=number % 2 == 0
        )
    background.flush()
    assert [number for number, _ in done] == list(range(20))
    threads = {thread for _, thread in done}
    assert len(threads) == 1 and threads != {threading.get_ident()}
    background.close()
    background.submit(lambda: done.append((20, 0)), is_frame=True)
    background.flush()
    background.close()
    assert len(done) == 21


def test_a_job_that_fails_is_told_and_those_after_it_are_not_done() -> None:
    done: list[int] = []
    background, go = Background(), threading.Event()

    def fail() -> None:
        go.wait(10)
        raise OSError("full")

    background.submit(fail, is_frame=True)
    background.submit(lambda: done.append(1), is_frame=True)
    go.set()
    with pytest.raises(OSError, match="full"):
        background.flush()
    with pytest.raises(OSError, match="full"):
        background.submit(lambda: done.append(2), is_frame=False)
    background.close()
    assert done == []


def test_a_run_goes_on_while_frames_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = threading.Event()
    write = XDMFWriter.write

    def slow(self: XDMFWriter, *given: object) -> None:
        assert go.wait(30)
        write(self, *given)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(XDMFWriter, "write", slow)
    ready = prepared(build(read_text(text_of(2) + XDMF, moose=True)), tmp_path)
    for now in ready.steps():
        if now.number == MOST_FRAMES - 1:  # the first frame is not written yet
            assert not list(tmp_path.glob("*.bin"))
            go.set()
    assert len(list(tmp_path.glob("*.c.*.bin"))) == 4


def test_rows_of_tables_do_not_wait_for_a_frame_and_are_bounded() -> None:
    background, go, done = Background(), threading.Event(), list[int]()

    def wait() -> None:
        assert go.wait(30)

    background.submit(wait, is_frame=True)
    for number in range(MOST_ROWS):
        background.submit(lambda n=number: done.append(n), is_frame=False)
    assert done == []

    late = threading.Timer(0.2, go.set)
    late.start()
    background.submit(lambda: done.append(MOST_ROWS), is_frame=False)
    assert go.is_set()  # one row too many waits for the frame
    background.flush()
    background.close()
    assert done == list(range(MOST_ROWS + 1))


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_files_are_those_that_are_written_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dim: int
) -> None:
    def at_once(_: Background, job: Callable[[], None], *, is_frame: bool) -> None:
        job()

    text = text_with_tables(dim)
    first = run(build(read_text(text, moose=True)), tmp_path / "thread")
    monkeypatch.setattr(Background, "submit", at_once)
    second = run(build(read_text(text, moose=True)), tmp_path / "once")
    names = sorted(path.name for path in (tmp_path / "once").iterdir())
    assert {name.rpartition(".")[2] for name in names} == {"csv", "e", "bin", "xmf", "vti", "pvd"}
    assert names == sorted(path.name for path in (tmp_path / "thread").iterdir())
    for name in names:
        parts = [(tmp_path / where / name).read_bytes() for where in ("once", "thread")]
        assert parts[0] == parts[1], name
    assert [path.name for path in first.files] == [path.name for path in second.files]


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_an_exodus_file_that_grew_is_one_written_whole(tmp_path: Path, dim: int) -> None:
    taken: list[tuple[float, float, np.ndarray]] = []
    ready = prepared(build(read_text(text_with_tables(dim), moose=True)), tmp_path)
    for now in ready.steps():
        field = now.state.buffers["c"].numpy().copy()
        taken.append((now.time, now.values["mean"], field))
    file = tmp_path / "out_out.e"
    found = read_exodus(file)
    assert found.times.tolist() == [0.0, *(time for time, _, _ in taken)]
    assert found.scalar["mean"][1:].tolist() == [mean for _, mean, _ in taken]
    assert (found.elemental["shown"][0] == 0).all()  # not due at the start
    for row, (_, _, field) in enumerate(taken, 1):
        assert np.array_equal(found.elemental["shown"][row], field.ravel(order="F"))
        nodes = np.pad(field, [(0, 1)] * dim, mode="wrap")
        assert np.array_equal(found.nodal["corners"][row], nodes.ravel(order="F"))
    (tmp_path / "whole").mkdir()
    write_exodus(tmp_path / "whole" / file.name, found)
    assert (tmp_path / "whole" / file.name).read_bytes() == file.read_bytes()


@pytest.mark.parametrize("kind", ["xdmf", "hdf5", "vti", "csv", "exodus"])
def test_a_folder_that_is_removed_ends_the_run(tmp_path: Path, kind: str) -> None:
    text = text_of(2).partition("[TensorOutputs]")[0]
    text += "[Executioner]\nnum_steps = 200\n[]\n"
    outputs = {
        "xdmf": XDMF,
        "hdf5": XDMF.replace("buffer", "enable_hdf5 = true\n    buffer"),
        "vti": XDMF.replace("XDMF", "VTI"),
        "csv": TABLES.replace("exodus = true", ""),
        "exodus": TABLES.replace("csv = true", ""),
    }
    folder = tmp_path / "run"
    ready = prepared(build(read_text(text + outputs[kind], moose=True)), folder)
    with pytest.raises(IngotError, match="cannot be written") as caught:
        for now in ready.steps():
            if now.number == 3:
                now.flush()
                shutil.rmtree(folder)
    assert caught.value.problems[0].code == "unwritable" and ready.number < 200
    assert not folder.exists()  # nothing is begun again in the middle


RUN = """
import sys
from ingot.fields import build, prepared
from ingot.hit import read_text
ready = prepared(build(read_text(open(sys.argv[1]).read(), moose=True)), sys.argv[2], jit=False)
for now in ready.steps():
    print(now.number, flush=True)
"""


@pytest.mark.parametrize(
    "pause",
    [0.013, *(pytest.param(0.007 * k, marks=pytest.mark.exhaustive) for k in range(6))],
)
def test_a_run_that_is_killed_leaves_files_that_can_be_read(tmp_path: Path, pause: float) -> None:
    text = text_with_tables(2).replace("num_steps = 3", "num_steps = 100000")
    text = text.replace("expression = '2*c'", "expression = '0.999*c'")
    text = text.replace("buffer = 'c grad'", "buffer = 'c grad'\n    enable_hdf5 = true")
    (tmp_path / "input.i").write_text(text)
    folder = tmp_path / "run"
    command = [sys.executable, "-c", RUN, str(tmp_path / "input.i"), str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while (line := process.stdout.readline()) and int(line) < 20:
            pass
        time.sleep(pause)
        os.kill(process.pid, signal.SIGKILL)
    exodus = read_exodus(folder / "out_out.e")
    rows = (folder / "out_out.csv").read_text().splitlines()[1:]
    assert all(len(row.split(",")) == 2 for row in rows)
    assert len(rows) >= 10 and len(exodus.times) >= 10
    for name in ("out.xmf", "a&b.pvd"):
        frames = read_frames(folder / name)
        last = len(frames.times) - 1
        assert last >= 10 and np.isfinite(frames.array("c", last)).all()
    assert abs(len(rows) - len(exodus.times)) <= 1


def test_a_disk_that_refuses_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(XDMFWriter, "write", refuse)
    with pytest.raises(IngotError, match="No space left"):
        run(build(read_text(text_of(2) + XDMF, moose=True)), tmp_path)
