"""A compute that writes into what it was given is refused, directly and compiled alike."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ingot.errors import IngotError, IngotWarning
from ingot.fields import (
    COMPUTES,
    POSTPROCESSORS,
    Dt,
    Grid,
    Space,
    build,
    compute,
    postprocessor,
    run,
)
from ingot.hit import read_text

TEXT = """
[Domain]
  dim = 2
  nx = 4
  ny = 3
[]
[TensorComputes]
  [Initialize]
    [c]
      type = ConstantTensor
      buffer = c
      real = 1
    []
  []
  [Solve]
    [d]
      type = Tried
      buffer = d
      field = c
    []
    [e]
      type = ParsedCompute
      buffer = e
      inputs = 'c d'
      expression = 'c + d'
    []
  []
[]
[Executioner]
  type = Transient
  num_steps = 4
[]
"""
KEPT = torch.ones(4, 3, dtype=torch.float64)


def doubled(field: Tensor) -> Tensor:
    return field.mul_(2)


def through_a_view(field: Tensor) -> Tensor:
    field[1:, :].add_(1)
    return field + 1


def by_an_index(field: Tensor) -> Tensor:
    field[0] = 7
    return field * 2


def through_a_flat_view(field: Tensor) -> Tensor:
    field.view(-1)[::2] *= 3
    return field.clone()


def by_out(field: Tensor) -> Tensor:
    return torch.exp(field, out=field)


def by_copy(field: Tensor) -> Tensor:
    field.copy_(field + 1)
    return field * 1


def of_a_global(field: Tensor) -> Tensor:
    KEPT.add_(field)
    return KEPT + 0


def enclosing() -> Callable[[Tensor], Tensor]:
    total = torch.zeros(4, 3, dtype=torch.float64)

    def of_an_enclosed_tensor(field: Tensor) -> Tensor:
        total.add_(field)
        return total.clone()

    return of_an_enclosed_tensor


def through_numpy(field: Tensor) -> Tensor:
    field.numpy()[0] = 5
    return field * 2


def through_an_array(field: Tensor) -> Tensor:
    np.asarray(field)[...] *= 2
    return field + 0


def through_data(field: Tensor) -> Tensor:
    field.data[0] = 5
    return field * 2


def through_dlpack(field: Tensor) -> Tensor:
    torch.from_dlpack(field).mul_(2)
    return field * 2


def in_inference(field: Tensor) -> Tensor:
    with torch.inference_mode():
        field.mul_(2)
    return field + 0


def of_a_global_by_numpy(field: Tensor) -> Tensor:
    KEPT.numpy()[0] += 1
    return KEPT + 0


def itself(field: Tensor) -> Tensor:
    return field


def a_view(field: Tensor) -> Tensor:
    return field[:, :]


def of_a_copy(field: Tensor) -> Tensor:
    mine = field.clone()
    mine[0] += 1
    return mine.mul_(2)


@pytest.fixture
def declared() -> Iterator[Callable[[Callable[[Tensor], Tensor]], None]]:
    """Declare a compute `Tried` that does something to its field."""

    def declare(body: Any) -> None:
        body.__annotations__ = {"field": Grid, "return": Grid}
        body.__doc__, body.__name__ = "Something.\n\nfield: the field", "Tried"
        compute(body)

    yield declare
    COMPUTES.pop("Tried", None)


@pytest.mark.parametrize("jit", [False, True], ids=["direct", "compiled"])
@pytest.mark.parametrize(
    "body",
    [doubled, through_a_view, by_an_index, through_a_flat_view, by_out, by_copy, of_a_global,
     enclosing(), through_numpy, through_an_array, through_data, through_dlpack, in_inference,
     of_a_global_by_numpy],
    ids=lambda body: body.__name__,
)  # fmt: skip
def test_a_compute_that_writes_is_refused(
    body: Any, jit: bool, declared: Any, tmp_path: Path
) -> None:
    declared(body)
    made = build(read_text(TEXT, moose=True))
    with pytest.raises(IngotError) as error:
        run(made, tmp_path, jit=jit)
    (problem,) = error.value.problems
    assert problem.code == "writes-argument" and problem.span is not None
    assert "'field'" in problem.message or "which it keeps" in problem.message


def test_a_compute_that_writes_is_refused_in_inference(declared: Any, tmp_path: Path) -> None:
    declared(through_a_view)
    for jit in (False, True, False):
        with torch.inference_mode(), pytest.raises(IngotError, match="writes into its argument"):
            run(build(read_text(TEXT, moose=True)), tmp_path, jit=jit)


def test_a_field_of_nans_is_not_taken_for_written(declared: Any, tmp_path: Path) -> None:
    declared(of_a_copy)
    text = TEXT.replace("ConstantTensor", "ParsedCompute").replace(
        "real = 1", "extra_symbols = true\nexpand = REAL\nexpression = 'sqrt(-x)'"
    )
    made = build(read_text(text, moose=True))
    with pytest.warns(IngotWarning, match="not finite"):
        assert run(made, tmp_path, jit=False).state.buffers["d"].isnan().all()


@pytest.mark.parametrize("body", [itself, a_view, of_a_copy], ids=lambda body: body.__name__)
def test_a_compute_that_writes_into_its_own_is_the_same_both_ways(
    body: Any, declared: Any, tmp_path: Path
) -> None:
    declared(body)
    made = build(read_text(TEXT, moose=True))
    direct, compiled = (run(made, tmp_path, jit=jit).state.buffers for jit in (False, True))
    for name in ("c", "d", "e"):
        assert torch.equal(direct[name], compiled[name]), name
    assert torch.all(direct["c"] == 1)


def test_the_box_and_the_step_size_are_not_written_either(tmp_path: Path) -> None:
    try:

        @compute
        def Tried(field: Grid, space: Space, dt: Dt) -> Grid:
            """Something.

            field: the field
            """
            dt.mul_(2)
            return field * dt

        with pytest.raises(IngotError, match="Tried writes into its argument 'dt'"):
            run(build(read_text(TEXT, moose=True)), tmp_path, jit=False)

        @compute
        def TriedOnSpace(field: Grid, space: Space) -> Grid:
            """Something.

            field: the field
            """
            space.k2[0, 0] = 1
            return field

        text = TEXT.replace("Tried", "TriedOnSpace")
        with pytest.raises(IngotError, match="TriedOnSpace writes into its argument 'space'"):
            run(build(read_text(text, moose=True)), tmp_path, jit=False)
    finally:
        for name in ("Tried", "TriedOnSpace"):
            COMPUTES.pop(name, None)


def test_a_postprocessor_that_writes_is_refused(declared: Any, tmp_path: Path) -> None:
    declared(itself)
    try:

        @postprocessor
        def Emptying(buffer: Grid) -> Tensor:
            """Something.

            buffer: the field
            """
            return buffer.zero_().sum()

        asked = ["Postprocessors/p/type=Emptying", "Postprocessors/p/buffer=c"]
        with pytest.raises(IngotError, match="Emptying writes into its argument 'buffer'"):
            run(build(read_text(TEXT, overrides=asked, moose=True)), tmp_path, jit=False)
    finally:
        del POSTPROCESSORS["Emptying"]
