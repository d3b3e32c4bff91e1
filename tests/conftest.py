"""What tests share: the published cases beside the checkout, and the two backends."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def cases() -> Path:
    """The folder of NEML2's input files and reference results; skips where it is not there."""
    folder = ROOT.parent / "shared" / "cases" / "neml2"
    if not folder.is_dir():
        pytest.skip("the published cases do not lie beside the checkout (../shared/cases)")
    return folder


@pytest.fixture(params=["interpret", "kernel"])
def backend(request: pytest.FixtureRequest) -> str:
    """Each way to run a program in turn."""
    return request.param
