"""`ingot.compile`: laws and live models become artifacts, and nothing is left behind."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import ingot
from ingot import IngotError
from ingot.catalog.declare import Parameter
from ingot.hit import read_text
from ingot.types import Scalar, exp
from tests.packages import DECAY, ELASTIC, written
from tests.program.declared import declared


def Hardening(strain: Scalar, *, size: Parameter[Scalar], rate: Parameter[Scalar]) -> Scalar:
    """Saturates."""
    return size * (1 - exp(-strain * rate))


@pytest.fixture(autouse=True)
def law() -> Iterator[None]:
    """The law is in the catalogue while a test runs."""
    with declared(Hardening, gives="stress"):
        yield


def plain(strain: Scalar) -> Scalar:
    """No law."""
    return strain


def test_law_of_ones_own_is_compiled_with_its_slopes() -> None:
    artifact = ingot.compile(
        Hardening, {"size": 100.0, "rate": 2}, parameter=("rate",), derivative=(":", ":rate")
    )
    strain = torch.linspace(0, 1, 7, dtype=torch.float64)
    inputs = {"strain": strain}
    decay = torch.exp(-2 * strain)
    torch.testing.assert_close(artifact(inputs)["stress"].detach(), 100 * (1 - decay))
    torch.testing.assert_close(artifact.jacobian(inputs)["stress"]["strain"], 200 * decay)
    torch.testing.assert_close(
        artifact.param_jacobian(inputs)["stress"]["rate"], 100 * strain * decay
    )


def test_live_model_is_compiled(tmp_path: Path) -> None:
    file = written(DECAY, tmp_path)
    live = ingot.build(ingot.read(file), "decay")
    artifact = ingot.compile(live)
    inputs = {n: torch.full((3,), 0.1, dtype=torch.float64) for n in artifact.inputs}
    inputs["T"] += 1000
    inputs["t"] += 0.5
    wanted, _ = ingot.executor(ingot.prepared(live))(inputs)
    torch.testing.assert_close(artifact(inputs)["alpha"], wanted["alpha"])


def test_nothing_is_left_on_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    artifact = ingot.compile(ingot.build(read_text(ELASTIC), "elastic"))
    assert list(tmp_path.iterdir()) == []
    assert artifact({"strain": torch.zeros(5, 6, dtype=torch.float64)})["stress"].shape == (5, 6)


def test_single_precision() -> None:
    artifact = ingot.compile(Hardening, {"size": 1, "rate": 1}, dtype=torch.float32)
    assert artifact({"strain": torch.ones(2)})["stress"].dtype == torch.float32


def test_function_that_is_no_law_is_refused() -> None:
    with pytest.raises(IngotError, match=r"(?s)'plain' is not declared as a law.*@model"):
        ingot.compile(plain)


def test_wrong_options_are_told_at_the_line_of_the_call() -> None:
    with pytest.raises(IngotError, match=r"(?s)siez.*test_in_process.py:\d+ in test_wrong_options"):
        ingot.compile(Hardening, {"siez": 1, "rate": 1})


def test_tensors_are_bound_as_values_and_batches_too() -> None:
    size = np.array([1.0, 2.0, 3.0], dtype=">f4")
    artifact = ingot.compile(Hardening, {"size": size, "rate": torch.tensor(2.0)})
    assert list(artifact.inputs) == ["strain"]
    strain = torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64)
    wanted = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64) * (1 - torch.exp(-2 * strain))
    torch.testing.assert_close(artifact({"strain": strain})["stress"], wanted)


def test_precision_that_there_is_not_is_refused() -> None:
    for dtype in (torch.float16, "float16", "half"):
        with pytest.raises(IngotError, match=r"not '(float16|half)'(.|\n)*mean 'float32'"):
            ingot.compile(Hardening, {"size": 1, "rate": 1}, dtype=dtype)  # type: ignore[arg-type]
    single = ingot.compile(Hardening, {"size": 1, "rate": 1}, dtype="float32")
    assert single.dtype == torch.float32


def test_live_model_takes_no_values() -> None:
    with pytest.raises(IngotError, match="has its values already"):
        ingot.compile(ingot.build(read_text(ELASTIC), "elastic"), {"E": 3.0})


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"derivative": ("stres:strain",)}, r"derivative=\('stres:strain',\): there is no output"),
        ({"example_batch_shape": ("x",)}, "'example_batch_shape' should be a shape"),
        ({"train": True, "backend": "inductor"}, "in Python backend='kernel'"),
    ],
)
def test_mistakes_are_told_in_words_of_python(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(IngotError, match=told) as error:
        ingot.compile(ingot.build(read_text(ELASTIC), "elastic"), **wrong)
    assert "-d " not in str(error.value)
