"""Image data for ParaView, read back by a reader that knows nothing of the writer."""

import base64
import struct
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ingot.fields import build, prepared, run
from ingot.fields.checkpoint import restore, store
from ingot.hit import read_text

TYPES = {"Float64": "<f8", "Float32": "<f4", "Int64": "<i8", "UInt8": "<u1"}


def read_vti(path: Path) -> tuple[dict[str, str], dict[tuple[str, str], Any]]:
    """The attributes of an image, and its arrays by place and name, indexed z, y, x, component."""
    root = ElementTree.parse(path).getroot()
    assert root.attrib["byte_order"] == "LittleEndian" and root.attrib["header_type"] == "UInt64"
    image = root.find("ImageData")
    appended = root.find("AppendedData")
    assert image is not None and appended is not None and appended.text is not None
    text = appended.text.strip()
    assert text[0] == "_"
    low = list(map(int, image.attrib["WholeExtent"].split()))
    cells = [high - begin for begin, high in zip(low[::2], low[1::2], strict=True)]
    arrays: dict[tuple[str, str], Any] = {}
    for place in ("PointData", "CellData"):
        shape = [n + 1 if place == "PointData" else max(n, 1) for n in cells][::-1]
        for each in image.findall(f"Piece/{place}/DataArray"):
            begin = 1 + int(each.attrib["offset"])
            (count,) = struct.unpack("<Q", base64.b64decode(text[begin : begin + 12])[:8])
            length = -(-(8 + count) // 3) * 4
            content = base64.b64decode(text[begin : begin + length])[8 : 8 + count]
            numbers = np.frombuffer(content, TYPES[each.attrib["type"]])
            width = int(each.attrib["NumberOfComponents"])
            arrays[place, each.attrib["Name"]] = numbers.reshape(*shape, width)
    return image.attrib, arrays


def text_of(dim: int, precision: str = "DOUBLE") -> str:
    return f"""
[Domain]
  dim = {dim}
  nx = 3
  ny = 2
  nz = 4
  xmin = 1
  xmax = 4
  ymax = 4
  floating_precision = {precision}
[]
[TensorComputes]
  [Initialize]
    [c]
      type = RandomTensor
      buffer = c
      seed = 1
      min = 0
      max = 1
    []
    [n]
      type = ParsedCompute
      buffer = n
      inputs = c
      expression = '10*c'
      is_integer = true
    []
  []
  [Solve]
    [c]
      type = ParsedCompute
      buffer = c
      inputs = c
      expression = '2*c'
    []
    [node]
      type = ParsedCompute
      buffer = node
      inputs = c
      expression = '3*c'
    []
    [grad]
      type = GradientTensor
      buffer = grad
      input = c
    []
  []
[]
[TensorOutputs]
  [vtk]
    type = VTITensorOutput
    buffer = 'c n grad node'
    output_mode = 'CELL CELL CELL NODE'
    file_base = 'a&b'
  []
[]
[Executioner]
  num_steps = 3
  dt = 0.125
[]
"""


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("precision", ["DOUBLE", "SINGLE"])
def test_frames_are_read_back(dim: int, precision: str, tmp_path: Path) -> None:
    result = run(build(read_text(text_of(dim, precision), moose=True)), tmp_path)
    listed = ElementTree.parse(tmp_path / "a&b.pvd").getroot().findall("Collection/DataSet")
    assert [float(each.attrib["timestep"]) for each in listed] == [0, 0.125, 0.25, 0.375]
    files = [each.attrib["file"] for each in listed]
    assert files == [f"a&b.{k:04d}.vti" for k in range(4)]
    about, arrays = read_vti(tmp_path / files[-1])
    cells = [3, 2, 4][:dim] + [0] * (3 - dim)
    assert about["WholeExtent"] == " ".join(f"0 {n}" for n in cells)
    assert [float(x) for x in about["Origin"].split()] == [1, 0, 0]
    assert [float(x) for x in about["Spacing"].split()][:dim] == [1, 2, 0.25][:dim]
    state = result.state
    for (place, name), found in arrays.items():
        value = state.space.whole(state.buffers[name]).numpy()
        value = value.reshape(*value.shape[:dim], -1)
        if place == "PointData":
            value = np.pad(value, [(0, 1)] * dim + [(0, 0)], mode="wrap")
        expected = np.zeros_like(found)
        for index in np.ndindex(value.shape[:dim]):
            at = (*index, 0, 0)[:3]
            expected[at[2], at[1], at[0], : value.shape[-1]] = value[index]
        assert np.array_equal(found, expected), name
        assert found.dtype == value.dtype
    places = {name: place for place, name in arrays}
    assert places == {"c": "CellData", "n": "CellData", "grad": "CellData", "node": "PointData"}
    if dim == 2:  # a vector of the plane lies in space
        assert arrays["CellData", "grad"].shape[-1] == 3


def test_a_run_that_is_taken_up_again_lists_every_frame_once(tmp_path: Path) -> None:
    text = text_of(2)
    for name in ("whole", "cut"):
        (tmp_path / name).mkdir()
    run(build(read_text(text, moose=True)), tmp_path / "whole")
    first = prepared(build(read_text(text, moose=True)), tmp_path / "cut")
    for now in first.steps():
        if now.number == 1:
            store(now, tmp_path / "here")
        if now.number == 2:
            break
    again = prepared(build(read_text(text, moose=True)), tmp_path / "cut")
    restore(again, tmp_path / "here")
    for _ in again.steps():
        pass
    for path in (tmp_path / "whole").iterdir():
        assert (tmp_path / "cut" / path.name).read_bytes() == path.read_bytes(), path.name
