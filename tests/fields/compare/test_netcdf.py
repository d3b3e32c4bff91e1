"""Classic netCDF: read as others wrote it, written so that it is read again."""

from pathlib import Path

import numpy as np
import pytest

from ingot.errors import IngotError
from ingot.fields.compare.netcdf import Netcdf, NetcdfVariable, read_netcdf, write_netcdf

# CDF-1 by the format's grammar: x(2) int, y(record, 3) short, z(record) byte; two records.
BY_HAND = bytes.fromhex(
    "43444601 00000002"
    "0000000a 00000003"
    "00000001 74000000 00000000"
    "00000001 61000000 00000002"
    "00000001 62000000 00000003"
    "00000000 00000000"
    "0000000b 00000003"
    "00000001 78000000 00000001 00000001 00000000 00000000 00000004 00000008 000000b4"
    "00000001 79000000 00000002 00000000 00000002 00000000 00000000 00000003 00000008 000000bc"
    "00000001 7a000000 00000001 00000000 00000000 00000000 00000001 00000004 000000c4"
    "00000007 ffffffff"
    "0001 0002 0003 0000 05000000"
    "0004 0005 fffa 0000 06000000"
)


def test_file_is_read_by_the_grammar_of_the_format(tmp_path: Path) -> None:
    (tmp_path / "x.nc").write_bytes(BY_HAND)
    file = read_netcdf(tmp_path / "x.nc")
    assert file.dimensions == {"t": 2, "a": 2, "b": 3} and file.record == "t"
    assert file.variables["x"].values.tolist() == [7, -1]
    assert file.variables["y"].values.tolist() == [[1, 2, 3], [4, 5, -6]]
    assert file.variables["y"].dimensions == ("t", "b")
    assert file.variables["z"].values.tolist() == [5, 6]


@pytest.mark.parametrize("moving", [(), ("y",), ("y", "z")])
def test_what_is_written_is_read(tmp_path: Path, moving: tuple[str, ...]) -> None:
    rng = np.random.default_rng(0)
    units = {"units": np.frombuffer(b"seconds", "S1")}
    variables = {
        "x": NetcdfVariable(("a",), np.array([7, -1, 3], np.int32), units),
        "s": NetcdfVariable((), np.array(2.5)),
        "letters": NetcdfVariable(("a",), np.frombuffer(b"abc", "S1")),
        "y": NetcdfVariable(("t", "a"), rng.random((4, 3)).astype(np.float32)),
        "z": NetcdfVariable(("t",), rng.random(4)),
    }
    kept = {n: v for n, v in variables.items() if n in moving or v.dimensions[:1] != ("t",)}
    attributes = {"title": np.frombuffer(b"a title", "S1"), "version": np.array([1.5])}
    dimensions = {"t": 4, "a": 3}
    write_netcdf(tmp_path / "x.nc", Netcdf(dimensions, kept, attributes, "t"))
    file = read_netcdf(tmp_path / "x.nc")
    assert file.dimensions == dimensions and file.record == "t"
    assert list(file.variables) == list(kept)
    for name, variable in kept.items():
        assert file.variables[name].dimensions == variable.dimensions
        assert np.array_equal(file.variables[name].values, variable.values)
    assert file.variables["x"].attributes["units"].tobytes() == b"seconds"
    assert file.attributes["version"].tolist() == [1.5]


def test_published_files_are_written_byte_for_byte(marlin: Path, tmp_path: Path) -> None:
    golds = sorted(marlin.rglob("gold/*.e"))
    assert golds
    for gold in golds:
        write_netcdf(tmp_path / "x.e", read_netcdf(gold))
        assert (tmp_path / "x.e").read_bytes() == gold.read_bytes()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"text", "is no netCDF file"),
        (b"\x89HDF\r\n", r"is a netCDF-4 \(HDF5\) file"),
        (BY_HAND[:50], "is broken"),
        (BY_HAND[:-4], "is broken"),
        (BY_HAND[:8] + b"\xff" * 40, "is broken"),
    ],
)
def test_file_of_another_kind_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "x.nc").write_bytes(content)
    with pytest.raises(IngotError, match=says):
        read_netcdf(tmp_path / "x.nc")
