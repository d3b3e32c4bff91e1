"""Seven published cases agree with their published results, by every backend."""

from pathlib import Path

import pytest

from ingot.drivers import build_driver, self_checking, transient_driver
from ingot.execute import Backend
from ingot.hit import read
from ingot.model import Factory

SEVEN = [
    "models/solid_mechanics/elasticity/LinearIsotropicElasticity.i",
    "regression/solid_mechanics/viscoplasticity/chaboche/model.i",
    "regression/solid_mechanics/rate_independent_plasticity/isoharden/model.i",
    "regression/solid_mechanics/viscoplasticity/free_sintering/model.i",
    "regression/solid_mechanics/crystal_plasticity/single_crystal_coupled/model.i",
    "regression/finite_volume/combined/model.i",
    "regression/chemical_reactions/pyrolysis/model.i",
]


@pytest.mark.parametrize("file", SEVEN)
def test_published_case_agrees(file: str, backend: Backend, cases: Path) -> None:
    tree = read(cases / file)
    (name,) = self_checking(tree)
    verdict = build_driver(tree, name).run(backend)
    assert verdict.passed, "\n".join(map(str, verdict.problems))


@pytest.mark.parametrize("file", [f for f in SEVEN if f.startswith("regression")])
def test_fewer_than_one_update_in_a_hundred_needs_the_pivoted_routine(
    file: str, cases: Path
) -> None:
    driver = transient_driver(Factory(read(cases / file)), "driver")
    for status in driver.run("kernel").statuses:
        assert int(status.pivoted.sum()) < 0.01 * int(status.iterations.sum())
