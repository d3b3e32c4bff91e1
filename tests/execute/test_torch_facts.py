"""What Ingot works around in torch is still so: where one of these fails, the workaround may go."""

import ctypes
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    ShapeEnv,
    StatelessSymbolicContext,
)

from ingot.execute import torch_facts


def settings() -> Any:
    import torch._inductor.config as config

    return config


def test_settings_exist_and_are_not_the_defaults() -> None:
    now = settings().get_config_copy()
    for name, value in torch_facts.OPTIONS.items():
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


def test_batch_of_one_would_be_a_constant() -> None:
    mode = torch._subclasses.FakeTensorMode(shape_env=ShapeEnv())
    context = StatelessSymbolicContext(
        dynamic_sizes=[DimDynamic.STATIC, DimDynamic.DUCK], constraint_sizes=[None, None]
    )
    one = mode.from_tensor(torch.empty(3, 1), symbolic_context=context)
    assert isinstance(one.shape[1], int)
    _, (many,) = torch_facts.fake_inputs([3], torch.float64)
    assert isinstance(many.shape[1], torch.SymInt)


def test_all_inputs_have_one_batch() -> None:
    _, (a, b) = torch_facts.fake_inputs([3, 0], torch.float32)
    assert str(a.shape[1]) == str(b.shape[0])
    assert a.dtype == torch.float32


def test_batch_that_a_trace_bakes_in_is_seen() -> None:
    mode, (a,) = torch_facts.fake_inputs([3], torch.float64)
    assert torch_facts.baked(mode) == []
    assert a.shape[1] == torch_facts.TRACED_BATCH
    assert torch_facts.baked(mode)


def test_openmp_is_one_library_whose_threads_are_set_for_each_thread() -> None:
    threads = ctypes.CDLL(None).omp_get_max_threads
    before = threads()
    with torch_facts.one_thread(True):
        assert threads() == 1
    with torch_facts.one_thread(False):
        assert threads() == before
    assert threads() == before


def test_number_between_numbers_takes_the_default_precision() -> None:
    condition = torch.tensor([True])
    assert torch.where(condition, 1.0, 0.0).dtype == torch.get_default_dtype()
