"""Which device a run takes place on: what the file says, what is asked for, what there is."""

import logging

import pytest
import torch

from ingot.errors import IngotError, Span
from ingot.fields.blocks.device import device_of


def cuda(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)


def test_a_gpu_is_taken_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda(monkeypatch, 0)
    assert device_of(()) == "cpu"
    cuda(monkeypatch, 1)
    assert device_of(()) == "cuda"
    assert device_of((), "cpu") == "cpu"


def test_the_file_comes_first(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cuda(monkeypatch, 2)
    with caplog.at_level(logging.WARNING, "ingot"):
        assert device_of(("cuda:1", "cuda:0"), "cuda:1") == "cuda:1"
        assert not caplog.text
        assert device_of(("cpu",), "cuda") == "cpu"
    assert "takes place on cpu, which device_names in [Domain] says, not on cuda" in caplog.text


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cuda", "there is no device 'cuda': torch"),
        ("cuda:2", "there is no device 'cuda:2'"),
        ("meta", "there is no device 'meta' here"),
        ("gpu", "'gpu' is no device: there are cpu, cuda, mps"),
    ],
)
def test_a_device_that_is_not_there_is_told(
    name: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuda(monkeypatch, 0)
    with pytest.raises(IngotError) as error:
        device_of((), name)
    assert message in str(error.value)
    assert "run it on the CPU: --device cpu" in str(error.value)
    place = Span("input.i", 3, 18, 4, "Domain", f"  device_names = {name}")
    with pytest.raises(IngotError) as error:
        device_of((name,), "cpu", place)
    assert "--> input.i:3:18 in [Domain]" in str(error.value)
    assert "run it on the CPU: Domain/device_names=cpu" in str(error.value)
    cuda(monkeypatch, 2)
    assert name != "cuda" or device_of((name,)) == name
