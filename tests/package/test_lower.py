"""What cannot be compiled soundly, or would not load, is told before a package is written."""

from pathlib import Path

import pytest
import torch
from msgspec.structs import replace

import ingot
from ingot import IngotError
from ingot.codegen import compiler
from ingot.execute.inductor_metadata import ImplicitSegment
from ingot.execute.interpret import Interpreter
from ingot.hit import read_text
from ingot.package import compile_model
from ingot.package.consistent import find_inconsistencies
from ingot.package.stages import advance, load
from ingot.package.target import Target
from tests.compositions import NESTED
from tests.packages import ELASTIC, TWO_UPDATES
from tests.systems import program_of


def test_derivatives_through_solves_in_series_solve_no_more_often_than_values() -> None:
    tree = read_text(TWO_UPDATES)
    lowered = advance(load(tree, "both", Target(derivative=("z:f",))), "lower")
    counts = [len(kernel.solves) for kernel in lowered.kernels.values()]
    assert counts == [3, 3] and len(lowered.metadata.solvers) == 3


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


@pytest.mark.exhaustive
@pytest.mark.slow
def test_graphs_of_a_solve_inside_a_residual_load_as_they_were_described(tmp_path: Path) -> None:
    # the graphs are those that tests/execute/test_inductor.py compiles
    target = Target(output_dir=tmp_path, backend=("inductor",), derivative=(":",))
    package = compile_model(read_text(NESTED), "solve_x", target)
    artifact = ingot.load(tmp_path / "solve_x")
    meta = artifact.metadata
    assert meta == package.metadata
    program = program_of(NESTED, "solve_x")
    given = {v.name: torch.linspace(0.1, 0.4, 5).double() for v in program.inputs}
    given["t"] = given["t~1"] + 0.3
    expected, told = Interpreter(program)(given)
    torch.testing.assert_close(artifact.forward(given), expected, rtol=1e-9, atol=1e-12)
    assert [s.solve for s in artifact.status] == [s.solve for s in told] == ["solve_z", "solve_x"]
    assert list(find_inconsistencies(meta)) == []
    graphs = meta.inductor
    assert graphs is not None
    (segment,) = graphs.segments
    assert isinstance(segment, ImplicitSegment) and segment.inner is not None
    for wrong, message in [
        (replace(segment, inner=None), "lacks a graph"),
        (replace(segment, inner=replace(segment.inner, outputs=())), "one residual for each"),
        (replace(segment, inner=replace(segment.inner, slopes=())), "lacks derivatives"),
        (replace(segment, inner=replace(segment.inner, segments=())), "which is not there"),
    ]:
        other = replace(meta, inductor=replace(graphs, segments=(wrong,)))
        assert any(message in text for text in find_inconsistencies(other))
