"""The files that a run writes: tables, HDF5 with XDMF, raw fields, Exodus."""

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import h5py
import numpy as np
import pytest

from ingot.errors import IngotError
from ingot.fields import build, prepared, run
from ingot.fields.compare import read_exodus
from ingot.fields.outputs import xdmf
from ingot.hit import read_text

INPUT = """
[Domain]
  dim = 2
  nx = 3
  ny = 2
  xmin = 1
  xmax = 4
  ymax = 4
  mesh_mode = DOMAIN
[]
[TensorBuffers]
  [c]
    map_to_aux_variable = nodal
  []
[]
[AuxVariables]
  [nodal]
  []
  [cellwise]
    family = MONOMIAL
    order = CONSTANT
  []
[]
[AuxKernels]
  [cellwise]
    type = ProjectTensorAux
    buffer = c
    variable = cellwise
  []
[]
[TensorComputes]
  [Initialize]
    [c]
      type = ParsedCompute
      buffer = c
      extra_symbols = true
      expression = '10*x + y'
    []
    [whole]
      type = ParsedCompute
      buffer = whole
      inputs = c
      expression = c
      is_integer = true
    []
    [v]
      type = GradientTensor
      buffer = v
      input = c
    []
    [I]
      type = RankTwoIdentity
      buffer = I
    []
    [line]
      type = ParsedCompute
      buffer = line
      extra_symbols = true
      expression = 'x'
    []
  []
[]
[Postprocessors]
  [low]
    type = TensorExtremeValuePostprocessor
    buffer = c
    value_type = MIN
    execute_on = INITIAL
  []
  [Late]
    type = TensorAveragePostprocessor
    buffer = c
  []
[]
[VectorPostprocessors]
  [counts]
    type = TensorHistogram
    buffer = c
    min = 10
    max = 40
    bins = 3
  []
[]
[TensorOutputs]
  [x]
    type = XDMFTensorOutput
    buffer = 'c whole v I line'
    enable_hdf5 = true
  []
[]
[Executioner]
  type = Transient
  num_steps = 2
  dt = 0.1
[]
[Outputs]
  file_base = res
  csv = true
  exodus = true
[]
"""
C = np.array([[16.0, 18.0], [26.0, 28.0], [36.0, 38.0]])


def written(folder: Path, *overrides: str) -> Path:
    run(build(read_text(INPUT, overrides=overrides, moose=True)), folder)
    return folder


def test_a_table_has_a_row_for_every_event(tmp_path: Path) -> None:
    lines = (written(tmp_path) / "res.csv").read_text().splitlines()
    assert lines == ["time,Late,low", "0,0,16", "0.1,27,16", "0.2,27,16"]


def test_tables_are_written_when_asked(tmp_path: Path) -> None:
    folder = written(tmp_path, "Outputs/execute_on=TIMESTEP_END")
    lines = (folder / "res.csv").read_text().splitlines()
    assert lines == ["time,Late,low", "0.1,27,16", "0.2,27,16"]


def test_a_number_may_be_hidden_from_files(tmp_path: Path) -> None:
    folder = written(tmp_path, "Postprocessors/low/outputs=none")
    assert (folder / "res.csv").read_text().splitlines()[0] == "time,Late"
    assert list(read_exodus(folder / "res.e").scalar) == ["Late"]
    folder = written(tmp_path, "Postprocessors/low/outputs=csv")
    assert (folder / "res.csv").read_text().splitlines()[0] == "time,Late,low"


def test_numbers_have_fourteen_digits(tmp_path: Path) -> None:
    third = "TensorComputes/Initialize/c/expression='0*x+y-y+1/3'"
    row = (written(tmp_path, third) / "res.csv").read_text().splitlines()[2]
    assert row == "0.1,0.33333333333333,0.33333333333333"


def test_a_vector_has_a_table_for_every_step(tmp_path: Path) -> None:
    folder = written(tmp_path)
    found = sorted(path.name for path in folder.glob("res_counts_*.csv"))
    assert found == ["res_counts_0001.csv", "res_counts_0002.csv"]
    lines = (folder / found[0]).read_text().splitlines()
    assert lines == ["bin,count", "15,2", "25,2", "35,2"]


def test_tables_of_vectors_may_have_a_time_of_their_own(tmp_path: Path) -> None:
    late = ("Outputs/late/type=CSV", "Outputs/late/file_base=late",
            "Outputs/late/execute_vector_postprocessors_on=FINAL")  # fmt: skip
    folder = written(tmp_path, *late)
    assert [path.name for path in folder.glob("late_counts_*.csv")] == ["late_counts_0002.csv"]
    assert len((folder / "late.csv").read_text().splitlines()) == 4


def test_an_output_by_itself_is_named_after_its_block(tmp_path: Path) -> None:
    written(tmp_path, "Outputs/file_base=", "Outputs/csv=false", "Outputs/tab/type=CSV")
    assert (tmp_path / "out_tab.csv").is_file()


def test_fields_are_stored_by_component_and_frame(tmp_path: Path) -> None:
    with h5py.File(written(tmp_path) / "res.h5") as file:
        names = ["I_0", "I_1", "I_2", "I_3", "c", "line", "v_x", "v_y", "v_z", "whole"]
        assert sorted(file) == sorted(f"{name}.{frame}" for name in names for frame in range(3))
        assert np.array_equal(file["c.2"][()], C.T)
        assert file["whole.0"].dtype == np.int64
        assert np.array_equal(file["line.0"][()], np.array([[1.5, 2.5, 3.5]] * 2))
        assert np.array_equal(file["I_0.0"][()], np.ones((2, 3)))


def test_nodes_repeat_the_first_layer(tmp_path: Path) -> None:
    folder = written(
        tmp_path, "TensorOutputs/x/buffer=c", "TensorOutputs/x/output_mode=Node",
        "TensorOutputs/x/transpose=false",
    )  # fmt: skip
    with h5py.File(folder / "res.h5") as file:
        nodes = np.pad(C, ((0, 1), (0, 1)), mode="wrap")
        assert np.array_equal(file["c.0"][()], nodes)
    tree = ElementTree.parse(folder / "res.xmf").getroot()
    assert tree.find("Domain/Topology").attrib["Dimensions"] == "4 3"  # type: ignore[union-attr]
    assert tree.find("Domain/Grid/Grid/Attribute").attrib == {"Name": "c", "Center": "Node"}  # type: ignore[union-attr]


def test_a_viewer_finds_mesh_times_and_data(tmp_path: Path) -> None:
    tree = ElementTree.parse(written(tmp_path) / "res.xmf").getroot()
    origin, spacing = tree.findall("Domain/Geometry/DataItem")
    assert (origin.text, spacing.text) == ("0 1", "2 1")
    frames = tree.findall("Domain/Grid/Grid")
    assert [frame.attrib["Name"] for frame in frames] == ["T0", "T1", "T2"]
    times = [float(frame.find("Time").attrib["Value"]) for frame in frames]  # type: ignore[union-attr]
    assert times == [0.0, 0.1, 0.2]
    items = [item.text for item in frames[1].findall("Attribute/DataItem")]
    assert "res.h5:/c.1" in items
    assert len(items) == 10


def test_fields_may_be_raw_files(tmp_path: Path) -> None:
    options = ("TensorOutputs/x/enable_hdf5=false", "TensorOutputs/x/buffer=c")
    folder = written(tmp_path, *options)
    data = np.fromfile(folder / "res.c.1.bin", "<f8").reshape(2, 3)
    assert np.array_equal(data, C.T)
    told = (folder / "res.xmf").read_text()
    assert 'Format="Binary" Endian="Little" Precision="8">res.c.1.bin<' in told


def test_a_later_run_replaces_the_files(tmp_path: Path) -> None:
    written(tmp_path)
    written(tmp_path, "Executioner/num_steps=0")
    with h5py.File(tmp_path / "res.h5") as file:
        assert "c.0" in file
        assert "c.1" not in file


def test_a_shared_box_is_a_file_for_each_rank(tmp_path: Path) -> None:
    options = ("Domain/parallel_mode=FFT_SLAB", "TensorOutputs/x/buffer=c")
    folder = written(tmp_path, *options)
    for rank in (0, 1):
        with h5py.File(folder / f"res.rank000{rank}.h5") as file:
            assert np.array_equal(file["c.0"][()], C[:, rank : rank + 1].T)
    grids = ElementTree.parse(folder / "res.xmf").getroot().findall("Domain/Grid/Grid/Grid")
    assert [grid.attrib["Name"] for grid in grids[:2]] == ["Rank0", "Rank1"]


def test_buffers_are_shown_as_variables_of_a_mesh(tmp_path: Path) -> None:
    exodus = read_exodus(written(tmp_path) / "res.e")
    assert exodus.times.tolist() == [0.0, 0.1, 0.2]
    assert exodus.nodes.shape == (12, 2)
    at = {tuple(p): v for p, v in zip(exodus.nodes.tolist(), exodus.nodal["nodal"][0], strict=True)}
    assert at[1.0, 0.0] == at[4.0, 4.0] == 16.0
    assert at[2.0, 2.0] == 28.0
    cells = dict(
        zip(map(tuple, exodus.centres.tolist()), exodus.elemental["cellwise"][1], strict=True)
    )
    assert cells[1.5, 3.0] == 18.0
    assert exodus.elemental["cellwise"][0].tolist() == [0.0] * 6  # not due at the start
    assert exodus.scalar["low"].tolist() == [16.0] * 3


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["TensorOutputs/x/output_mode='CELL NODE'"], "output_mode has 2 entries, buffer 5"),
        (["TensorOutputs/y/type=XDMFTensorOutput", "TensorOutputs/y/buffer=c"],
         "two outputs write to the files 'res'"),
        (["TensorBuffers/c/map_to_aux_variable=nodel"], "[AuxVariables] has no block 'nodel'"),
        (["Outputs/file_bse=a"], "[Outputs] has no option 'file_bse'"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_output_is_told(
    overrides: list[str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(IngotError) as error:
        written(tmp_path, *overrides)
    assert message in str(error.value)


SECOND = (
    "TensorOutputs/y/type=XDMFTensorOutput",
    "TensorOutputs/y/buffer=c",
    "TensorOutputs/y/file_base=second",
    "TensorOutputs/y/enable_hdf5=true",
)


@pytest.mark.parametrize("safe", [False, True])
def test_two_outputs_need_a_library_for_threads_where_the_reference_does(
    safe: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(xdmf, "thread_safe", lambda: safe)
    if safe:
        assert (written(tmp_path, *SECOND) / "second.h5").is_file()
        return
    with pytest.raises(IngotError) as error:
        written(tmp_path, *SECOND)
    marlin = "Using an hdf5 library that is not threadsafe and multiple XDMF output objects"
    assert marlin in str(error.value)
    assert "or marlin_compatible = false in [Problem]" in str(error.value)
    folder = written(tmp_path, *SECOND, "Problem/marlin_compatible=false")
    with h5py.File(folder / "second.h5") as file:
        assert "c.2" in file
    raw = ("TensorOutputs/y/enable_hdf5=false",)
    assert (written(tmp_path, *SECOND[:-1], *raw) / "second.xmf").is_file()


def test_the_library_says_whether_it_may_be_called_from_threads() -> None:
    folder = Path(h5py.__file__).parents[1] / "h5py.libs"
    libraries = list(folder.glob("libhdf5-*.so*"))
    if not libraries:
        pytest.skip("h5py brings no HDF5 library of its own here")
    # the library holds the settings that it was built with, as text
    assert xdmf.thread_safe() == (b"Threadsafety: ON" in libraries[0].read_bytes())


@pytest.mark.parametrize(
    ("overrides", "place", "step"),
    [
        (["Outputs/checkpoint=true"], "res.checkpoint", 2),
        (["Outputs/cp/type=Checkpoint", "Outputs/cp/file_base=kept"], "kept.checkpoint", 2),
        (["Outputs/cp/type=Checkpoint", "Outputs/cp/time_step_interval=5",
          "Executioner/num_steps=7"], "res.checkpoint", 7),
    ],
)  # fmt: skip
def test_a_file_may_ask_for_checkpoints(
    overrides: list[str], place: str, step: int, tmp_path: Path
) -> None:
    about = written(tmp_path, *overrides) / place / "about.json"
    assert json.loads(about.read_text())["step"] == step


def test_the_end_may_be_written_alone(tmp_path: Path) -> None:
    folder = written(tmp_path, "Outputs/execute_on=FINAL", "TensorOutputs/x/execute_on=FINAL")
    assert (folder / "res.csv").read_text().splitlines() == ["time,Late,low", "0.2,27,16"]
    with h5py.File(folder / "res.h5") as file:
        assert "c.0" in file
        assert "c.1" not in file


def test_tables_may_have_some_steps_only(tmp_path: Path) -> None:
    seven = ("Executioner/num_steps=7", "Outputs/time_step_interval=3")
    folder = written(tmp_path, *seven, "Outputs/execute_on='INITIAL TIMESTEP_END FINAL'")
    rows = (folder / "res.csv").read_text().splitlines()[1:]
    assert [row.split(",")[0] for row in rows] == ["0", "0.3", "0.6", "0.7"]
    assert read_exodus(folder / "res.e").times.tolist() == pytest.approx([0, 0.3, 0.6, 0.7])
    folder = written(tmp_path, *seven, "Outputs/some/type=CSV", "Outputs/some/time_step_interval=5",
                     "Outputs/some/file_base=some")  # fmt: skip
    rows = (folder / "some.csv").read_text().splitlines()[1:]
    assert [row.split(",")[0] for row in rows] == ["0", "0.5"]


def test_the_end_is_not_written_twice(tmp_path: Path) -> None:
    folder = written(tmp_path, "Outputs/execute_on='INITIAL TIMESTEP_END FINAL'")
    assert len((folder / "res.csv").read_text().splitlines()) == 4


def test_frames_are_kept_where_a_run_breaks_off(tmp_path: Path) -> None:
    ready = prepared(
        build(read_text(INPUT, overrides=["Executioner/num_steps=9"], moose=True)), tmp_path
    )
    for now in ready.steps():
        if now.number == 6:
            break
    del now, ready
    assert len(read_exodus(tmp_path / "res.e").times) == 7
