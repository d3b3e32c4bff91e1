"""What Ingot works around in torch is still so: where one of these fails, the workaround may go."""

import ctypes
from typing import Any

import torch

from ingot.graphs import torch_private


def settings() -> Any:
    import torch._inductor.config as config

    return config


def test_settings_exist_and_are_not_the_defaults() -> None:
    now = settings().get_config_copy()
    for name, value in torch_private.OPTIONS.items():
        assert now[name] != value, name


def test_long_chains_would_be_inlined() -> None:
    assert settings().realize_opcount_threshold is None
    assert settings().realize_cpu_opcount_threshold == 50
    assert settings().max_fusion_size == 64


def test_threads_would_be_written_into_the_code() -> None:
    assert settings().cpp.threads == -1
    assert not settings().cpp.dynamic_threads


def test_instruction_sets_would_be_tried_one_by_one() -> None:
    assert settings().cpp.vec_isa_ok is None


def test_size_of_one_would_be_a_constant() -> None:
    mode = torch_private.fake_mode()
    one, two = (
        torch_private.fake_tensor(mode, (3, n), (False, True), torch.float32, "cpu") for n in (1, 2)
    )
    assert isinstance(one.shape[1], int)
    assert isinstance(two.shape[1], torch.SymInt)


def test_openmp_is_one_library_whose_threads_are_set_for_each_thread() -> None:
    threads = ctypes.CDLL(None).omp_get_max_threads
    before = threads()
    with torch_private.run_alone(True):
        assert threads() == 1
    with torch_private.run_alone(False):
        assert threads() == before
    assert threads() == before


def test_number_between_numbers_takes_the_default_precision() -> None:
    condition = torch.tensor([True])
    assert torch.where(condition, 1.0, 0.0).dtype == torch.get_default_dtype()
