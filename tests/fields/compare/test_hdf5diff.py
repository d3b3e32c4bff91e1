"""HDF5: datasets, shapes and numbers must be those of the reference."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ingot.errors import IngotError
from ingot.fields.compare import Limits, compare_hdf5

h5py = pytest.importorskip("h5py")
LIMITS = Limits(0.0, 0.0, 1e-13)


def write(file: Path, datasets: dict[str, Any]) -> Path:
    with h5py.File(file, "w") as opened:
        for name, values in datasets.items():
            opened.create_dataset(name, data=values)
    return file


def content() -> dict[str, Any]:
    return {"c.0": np.arange(6.0).reshape(2, 3), "c.1": np.ones((2, 3)), "g/n": np.arange(3)}


def findings(folder: Path, change: Callable[[dict[str, Any]], object]) -> list[str]:
    datasets = content()
    change(datasets)
    gold, out = write(folder / "gold.h5", content()), write(folder / "out.h5", datasets)
    compared = compare_hdf5(out, gold, LIMITS)
    assert compared.parts == 3
    return [str(finding) for finding in compared.findings]


def test_equal_files_pass(tmp_path: Path) -> None:
    assert not findings(tmp_path, lambda d: None)
    assert not findings(tmp_path, lambda d: np.add(d["c.1"], 9e-14, out=d["c.1"]))


def test_changed_number_fails_with_its_place(tmp_path: Path) -> None:
    (said,) = findings(tmp_path, lambda d: d["c.0"].__setitem__((1, 2), 5.5))
    assert said == (
        "dataset 'c.0': at [1, 2] is 5.5 instead of 5, off by 0.5 (allowed: 1e-13); 1 of 6 differ"
    )


def test_nan_fails(tmp_path: Path) -> None:
    (said,) = findings(tmp_path, lambda d: d["c.1"].__setitem__((0, 0), np.nan))
    assert "dataset 'c.1': at [0, 0] is nan instead of 1" in said


def test_changed_integer_fails(tmp_path: Path) -> None:
    (said,) = findings(tmp_path, lambda d: d["g/n"].__setitem__(1, 7))
    assert "dataset 'g/n': at [1] is 7 instead of 1" in said


def test_missing_and_additional_datasets_fail(tmp_path: Path) -> None:
    said = findings(tmp_path, lambda d: d.__setitem__("c.2", d.pop("c.1")))
    assert said == ["dataset 'c.1': is missing", "dataset 'c.2': is not in the reference"]


def test_other_shape_fails(tmp_path: Path) -> None:
    (said,) = findings(tmp_path, lambda d: d.__setitem__("c.0", d["c.0"].T))
    assert said == "dataset 'c.0': has shape (3, 2) instead of (2, 3)"


def test_file_of_another_kind_fails(tmp_path: Path) -> None:
    gold = write(tmp_path / "gold.h5", content())
    (tmp_path / "out.h5").write_text("text")
    (finding,) = compare_hdf5(tmp_path / "out.h5", gold, LIMITS).findings
    assert str(finding) == "'out.h5': is not an HDF5 file"


def test_missing_library_is_named_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gold = write(tmp_path / "gold.h5", content())
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(IngotError, match=r"pip install 'ingot\[fields\]'"):
        compare_hdf5(gold, gold, LIMITS)


def test_published_files_equal_themselves_and_spoiled_ones_fail(
    marlin: Path, tmp_path: Path
) -> None:
    golds = sorted(marlin.rglob("gold/*.h5"))
    assert golds
    for gold in golds:
        assert not compare_hdf5(gold, gold, LIMITS).findings
        spoiled = tmp_path / gold.name
        spoiled.write_bytes(gold.read_bytes())
        with h5py.File(spoiled, "r+") as opened:
            name = sorted(opened)[-1]
            at = (0,) * opened[name].ndim
            opened[name][at] = opened[name][at] + 1e-9
        (finding,) = compare_hdf5(spoiled, gold, LIMITS).findings
        assert f"dataset '{name}': at {list(at)} is" in str(finding)
