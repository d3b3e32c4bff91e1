"""Specs of Marlin whose references are not at hand, against the numbers published of them.

Last rows of tables, and the least, largest and mean entry of a field with one more of its entries.
"""

import shlex
from pathlib import Path

import h5py
import numpy as np
import pytest

from ingot.errors import IngotError
from ingot.fields import run_file

NL_FIRST = {"u_max": 0.00797820356519, "v_max": 0.0079763214504}
COUPLED = {"u_max": 0.00794325886011, "v_max": 0.0079451613825, "v_min": -0.0079451613825}
DIAGONAL_FIRST = {
    "U": 18.761727109, "V": 119.631598057, "u_max": 1.21284109878, "u_min": 0.298332291693,
    "v_max": 3.7778076919, "v_min": 1.97235857253,
}  # fmt: skip
DIAGONAL_SECOND = {
    "U": 18.4598173758, "V": 122.058909476, "u_max": 1.13320972929, "u_min": 0.303143883264,
    "v_max": 3.82844272843, "v_min": 2.0624934944,
}  # fmt: skip

TABLES = [
    ("gradient/gradient.i", "", {"diff": 0.0}),
    ("gradient/gradient.i",
     "Domain/device_names='cpu cpu cpu cpu' Domain/parallel_mode=FFT_PENCIL", {"diff": 0.0}),
    ("postprocessors/postprocessors.i", 'Postprocessors/active="avg_c"', {"avg_c": 0.8}),
    ("postprocessors/postprocessors.i", 'Postprocessors/active="int_c_bar"', {"int_c_bar": 4.8}),
    ("tensor_compute/backandforth.i", "Domain/dim=1 Domain/nx=11", {"norm": 0.0}),
    ("tensor_compute/backandforth.i",
     "Domain/dim=1 Domain/nx=10 TensorComputes/Initialize/zero/real=null"
     " TensorComputes/Initialize/zero/imaginary=zero"
     " Problem/scalar_constant_names='null zero' Problem/scalar_constant_values='0 0'",
     {"norm": 0.0}),
    ("solvers/diagonal.i", "ss=10 cs=0 order=1", DIAGONAL_FIRST),
    ("solvers/diagonal.i", "ss=10 cs=2 order=1", DIAGONAL_FIRST),
    ("solvers/diagonal.i", "ss=10 cs=0 order=2", DIAGONAL_SECOND),
    ("solvers/coupled.i", "ss=10 cs=0 order=1", COUPLED),
    ("solvers/coupled.i", "ss=10 cs=2 order=2", COUPLED),
    ("solvers/nl_coupled.i", "ss=10 cs=2 order=1", NL_FIRST),
    ("solvers/nl_coupled.i", "ss=10 cs=0 order=2",
     {"u_max": 0.00796452887946, "v_max": 0.00796263677107}),
    ("solvers/nl_coupled.i", "ss=10 cs=0 order=3",
     {"u_max": 0.00796469387125, "v_max": 0.00796280194583}),
    ("solvers/nl_coupled.i", "ss=20 cs=0 order=4",
     {"u_max": 0.00778031065756, "v_max": 0.00777846883071}),
]  # fmt: skip
SLOW_TABLES = [
    ("kks/KKS_no_flux_bc.i", "", {"total_C": 5125.05120893, "total_eta": 3146.58796324}),
]


@pytest.mark.parametrize(
    "jit", [False, pytest.param(True, marks=pytest.mark.exhaustive)], ids=["direct", "jit"]
)
@pytest.mark.parametrize(
    ("file", "overrides", "row"),
    [*TABLES, *(pytest.param(*each, marks=pytest.mark.exhaustive) for each in SLOW_TABLES)],
)
def test_a_table_ends_as_published(
    file: str, overrides: str, row: dict[str, float], jit: bool, marlin: Path, tmp_path: Path
) -> None:
    found = run_file(marlin / file, shlex.split(overrides), tmp_path, jit=jit).values[-1]
    assert {name: found[name] for name in row} == pytest.approx(row, rel=1e-10, abs=1e-10)


FIELDS = [
    ('TensorOutputs/active="xdmf"', "cahnhilliard.h5", "c.10", (7, 7),
     (0.452995307991, 0.557051198658, 0.499698566021, 0.466410725059)),
    ('TensorOutputs/active="xdmf"', "cahnhilliard.h5", "mu.10", (6, 6),
     (-0.00563295824641, 0.00466941467131, 1.01305484005e-05, 0.000261998767762)),
    ('TensorOutputs/active="xdmf2" Domain/parallel_mode=FFT_SLAB Domain/device_names=cpu',
     "cahnhilliard.rank0001.h5", "c.10", (6, 3),
     (0.457958048512, 0.542936032091, 0.499593119344, 0.5427760237)),
]  # fmt: skip


@pytest.mark.parametrize("jit", [False, True], ids=["direct", "jit"])
@pytest.mark.parametrize(("overrides", "file", "name", "place", "numbers"), FIELDS)
def test_a_field_ends_as_published(
    overrides: str,
    file: str,
    name: str,
    place: tuple[int, int],
    numbers: tuple[float, ...],
    jit: bool,
    marlin: Path,
    tmp_path: Path,
) -> None:
    run_file(marlin / "cahnhilliard" / "cahnhilliard.i", shlex.split(overrides), tmp_path, jit=jit)
    with h5py.File(tmp_path / file) as stored:
        array = np.asarray(stored[name])
    found = (array.min(), array.max(), array.mean(), array[place])
    assert found == pytest.approx(numbers, rel=1e-11)


@pytest.mark.parametrize(
    ("file", "overrides", "message"),
    [
        ("cahnhilliard/cahnhilliard.i", "TensorOutputs/active='xdmf xdmf2'",
         "Using an hdf5 library that is not threadsafe and multiple XDMF output objects"),
        ("tensor_compute/backandforth.i",
         "Domain/dim=1 Domain/nx=10 TensorComputes/Initialize/zero/real=null"
         " TensorComputes/Initialize/zero/imaginary=zero",
         "Constants null, zero were requested but never declared"),
    ],
)  # fmt: skip
def test_a_run_stops_with_the_words_published(
    file: str,
    overrides: str,
    message: str,
    marlin: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ingot.fields.outputs.xdmf.thread_safe", lambda: False)
    with pytest.raises(IngotError) as error:
        run_file(marlin / file, shlex.split(overrides), tmp_path)
    assert message in str(error.value)
