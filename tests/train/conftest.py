"""Packages compiled by Inductor, made once a run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.threads import threads
from tests.train.models import packaged


@pytest.fixture(scope="package", autouse=True)
def one_thread() -> Iterator[None]:
    """These models are small: a second thread would only wait."""
    with threads(1):
        yield


@pytest.fixture(scope="session")
def mlp_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return packaged("mlp", tmp_path_factory.mktemp("joints") / "mlp")


@pytest.fixture(scope="session")
def cnn_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return packaged("cnn", tmp_path_factory.mktemp("joints") / "cnn")


@pytest.fixture(scope="session")
def block_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return packaged("block", tmp_path_factory.mktemp("joints") / "block")
