"""The benchmark of fields runs what it says it times."""

import pytest

from benchmarks.fields import materials


def test_a_material_runs_by_its_kernel_and_in_a_sequence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = materials(rounds=1, cells=4)
    assert found.keys() == {"kernel", "sequence"} and min(found.values()) > 0
    assert "material on 4^3" in capsys.readouterr().out
