"""Every shared spec against its reference."""

import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from ingot.errors import IngotError
from ingot.fields import run_file
from ingot.fields.compare import (
    Limits,
    compare_csv,
    compare_exodus,
    compare_hdf5,
    compare_xml,
)

MARLIN = Path(__file__).parents[3] / "shared" / "cases" / "marlin"
LONG = (
    "kks/",
    "lbm/mixed_bcs_d3",
    "lbm/phase",
    "solvers/adams_bashforth_coupled/order_4",
    "solvers/adams_bashforth_diagonal/order_4",
    "solvers/adams_bashforth_moulton_coupled/corrector_steps_2_order_1",
)
COMPARE = {
    "CSVDiff": compare_csv,
    "HDF5Diff": compare_hdf5,
    "XMLDiff": compare_xml,
    "Exodiff": compare_exodus,
}


@dataclass(frozen=True)
class Row:
    spec: str
    input: str
    overrides: tuple[str, ...]
    check: str
    gold: str
    tolerance: str


def rows() -> list[Row]:
    table = MARLIN / "SPECS.md"
    lines = table.read_text().splitlines() if table.is_file() else []
    cells = [[c.strip() for c in line.strip("|").split("|")] for line in lines if line[:2] == "| "]
    found = [Row(s, i, tuple(shlex.split(o.strip("`"))), k, g, t) for s, i, o, k, g, t in cells[1:]]
    return found


def marked(row: Row) -> object:
    marks = [pytest.mark.exhaustive] if row.spec.startswith(LONG) else []
    return pytest.param(row, id=row.spec, marks=marks)


@pytest.mark.parametrize("jit", [False, True], ids=["direct", "jit"])
@pytest.mark.parametrize("row", [marked(row) for row in rows()])
def test_a_spec_agrees_with_its_reference(row: Row, jit: bool, tmp_path: Path) -> None:
    file = MARLIN / row.input
    if row.check == "RunException":
        with pytest.raises(IngotError) as error:
            run_file(file, row.overrides, tmp_path, jit=jit)
        assert row.gold.removeprefix("message: ") in str(error.value)
        return
    run_file(file, row.overrides, tmp_path, jit=jit)
    gold = file.parent / row.gold
    absolute = row.check == "HDF5Diff"
    limits = Limits(0.0, 0.0, float(row.tolerance.split()[1])) if absolute else Limits()
    compared = COMPARE[row.check](tmp_path / gold.name, gold, limits)
    assert compared.parts > 0
    assert not compared.findings, [str(finding) for finding in compared.findings]


def test_the_table_of_specs_is_read(marlin: Path) -> None:
    assert len(rows()) == 46
