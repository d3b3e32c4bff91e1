"""What cannot be compiled soundly, or would not load, is told before a package is written."""

from pathlib import Path

import pytest

from ingot import IngotError
from ingot.execute import compiler
from ingot.hit import read_text
from ingot.package import compile_model
from ingot.package.target import Target
from tests.packages import ELASTIC, TWO_UPDATES


def test_derivatives_through_two_solves_are_refused_in_kernels(tmp_path: Path) -> None:
    target = Target(output_dir=tmp_path / "out", derivative=("z:f",))
    with pytest.raises(IngotError, match=r"a solve reads another one.*\n.*--backend inductor"):
        compile_model(read_text(TWO_UPDATES), "both", target)
    assert not [*(tmp_path / "out").rglob("*_meta.json")]


@pytest.mark.parametrize(
    "wrong",
    [
        {"parameter": ("nu",), "rename_parameter": ("nu:strain",)},
        {"example_batch_shape": ("strain=(2; 0)",)},
    ],
)
def test_a_package_that_no_loader_takes_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: dict[str, tuple[str, ...]]
) -> None:
    def compile_anyway(*_: object) -> None:
        pytest.fail("a compiler runs although the package is refused")

    monkeypatch.setattr(compiler, "translate", compile_anyway)
    target = Target(output_dir=tmp_path / "out", **wrong)
    with pytest.raises(IngotError, match="no loader would take the package"):
        compile_model(read_text(ELASTIC), "elastic", target)
    assert not [*(tmp_path / "out").rglob("*_meta.json")]


@pytest.mark.parametrize("jobs", [0, -1])
def test_no_compiler_at_all_is_refused(jobs: int) -> None:
    with pytest.raises(IngotError, match="leaves no compiler to run"):
        Target(jobs=jobs)
