"""What tests share: the published cases beside the checkout, and the two backends."""

import gc
import os
import shutil
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def pytest_configure() -> None:
    """Before workers begin: a folder for what is compiled once for all of them."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        os.environ["INGOT_TEST_HOME"] = tempfile.mkdtemp(prefix="ingot-tests-")


def pytest_unconfigure() -> None:
    """After the last worker."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        shutil.rmtree(os.environ["INGOT_TEST_HOME"], ignore_errors=True)


def pytest_collection_finish() -> None:
    """Sixteen thousand collected tests live to the end: garbage is not looked for among them."""
    gc.collect()
    gc.freeze()


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
