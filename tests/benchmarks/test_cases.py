"""The cases of the benchmark: load paths that fit their files, and JAX models equal to ours."""

from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks import ours
from benchmarks.bench import difference
from benchmarks.load_paths import CASES, IN_JAX, STEPS, Case, Folders, histories, overrides
from ingot.drivers import TransientDriver, build_driver
from ingot.execute import Transient
from ingot.execute.kernel import Kernel
from ingot.hit import read

EVERY_CASE = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def test_all_that_is_measured_is_there() -> None:
    measured = "isoharden chaboche crystal radial_return gtn mixed_control decoupled taylor"
    assert set(CASES) == set(measured.split())
    assert set(IN_JAX) <= set(CASES)


@EVERY_CASE
def test_a_point_is_the_same_in_every_batch(case: Case) -> None:
    few, many = histories(case, 2), histories(case, 5)
    assert set(few) == set(many) == set(case.kinds)
    for name, value in few.items():
        assert np.isfinite(value).all()
        if value.shape[0] == STEPS:
            assert np.array_equal(value, many[name][:, :2])
        else:
            assert np.array_equal(value, many[name][:2])


@EVERY_CASE
def test_a_file_is_driven_by_the_load_paths(case: Case, shared: Path, tmp_path: Path) -> None:
    driver = build_driver(read(shared / case.file, overrides(case, 3, tmp_path)), case.driver)
    assert isinstance(driver, TransientDriver)
    assert (driver.steps, driver.batch) == (STEPS, (3,))


@pytest.mark.slow
@pytest.mark.parametrize("route", ("steps", "scan"))
@pytest.mark.parametrize("name", IN_JAX)
def test_jax_models_equal_ours(name: str, route: str, shared: Path, tmp_path: Path) -> None:
    pytest.importorskip("jax", reason="JAX is not installed: `make bench` checks the same")
    from benchmarks import jax_side

    theirs = jax_side.last_step(name, jax_side.prepare(name, 3, route)())
    mine = ours.results(ours.prepare(CASES[name], 3, Folders(shared, tmp_path)).driver)
    assert set(theirs) == set(mine)
    assert max(difference(value, mine[n]) for n, value in theirs.items()) < 1e-9


@pytest.fixture
def shared(cases: Path) -> Path:
    """The folder of all published cases."""
    return cases.parent


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["isoharden", "chaboche", "radial_return", "gtn", "mixed_control"])
def test_a_point_has_the_same_bits_in_batches_of_any_size(
    name: str, shared: Path, tmp_path: Path
) -> None:
    case, rng = CASES[name], np.random.default_rng(0)
    driver = build_driver(read(shared / case.file, overrides(case, 40, tmp_path)), case.driver)
    kernel, whole = Kernel(driver.program), driver.transient
    outputs = kernel.transient(whole).outputs
    for size in (1, 2, 3, *rng.integers(1, 41, 9).tolist()):
        which = torch.from_numpy(rng.permutation(40)[:size])
        prescribed = {
            n: x[:, which] if x.ndim > 1 and x.shape[1] == 40 else x
            for n, x in whole.prescribed.items()
        }
        initial = {
            n: x[which] if x.ndim and x.shape[0] == 40 else x for n, x in whole.initial.items()
        }
        found = kernel.transient(Transient(whole.steps, prescribed, initial)).outputs
        for n, x in outputs.items():
            assert torch.equal(found[n][1:].contiguous(), x[1:, which].contiguous())
