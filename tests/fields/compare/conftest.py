"""What the tests of comparisons share: the published references beside the checkout."""

from pathlib import Path

import pytest

CASES = Path(__file__).parents[4] / "shared" / "cases" / "marlin"


@pytest.fixture(scope="session")
def marlin() -> Path:
    """The folder of Marlin's inputs and references; skips where it is not there."""
    if not CASES.is_dir():
        pytest.skip("the published cases do not lie beside the checkout (../shared/cases)")
    return CASES
