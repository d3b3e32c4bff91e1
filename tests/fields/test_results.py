"""A compute that returns what its buffer cannot hold is refused, directly and compiled alike."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from ingot.errors import IngotError
from ingot.fields import (
    COMPUTES,
    POSTPROCESSORS,
    Grid,
    Narrow,
    Spectrum,
    build,
    compute,
    postprocessor,
    run,
)
from ingot.hit import read_text

TEXT = """
[Domain]
  dim = 2
  nx = 6
  ny = 5
[]
[TensorComputes]
  [Initialize]
    [c]
      type = ParsedCompute
      buffer = c
      expression = 'x + y'
      extra_symbols = true
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
      inputs = d
      expression = '2*d'
    []
  []
[]
[Postprocessors]
  [total]
    type = TensorIntegralPostprocessor
    buffer = d
  []
[]
[Executioner]
  type = Transient
  num_steps = 4
[]
"""

Body = Callable[[Tensor], Any]


@pytest.fixture
def declared() -> Iterator[Callable[..., None]]:
    """Declare a compute `Tried` that returns something."""

    def declare(body: Body, takes: Any = Grid, gives: Any = Grid) -> None:
        def Tried(field: Tensor) -> Any:
            return body(field)

        Tried.__annotations__ = {"field": takes, "return": gives}
        Tried.__doc__ = "Something.\n\nfield: the field"
        compute(Tried)

    yield declare
    COMPUTES.pop("Tried", None)


WRONG: dict[str, tuple[Body, str]] = {
    "cut": (lambda x: x[:-1, :2], "5 x 2 numbers where 6 x 5 belong"),
    "transposed": (lambda x: x.T, "5 x 6 numbers where 6 x 5 belong"),
    "flat": (lambda x: x.reshape(-1), "30 numbers where 6 x 5 belong"),
    "one axis": (lambda x: x.sum(0), "5 numbers where 6 x 5 belong"),
    "components first": (lambda x: torch.stack([x, x]), "2 x 6 x 5 numbers where 6 x 5 belong"),
    "spectrum": (lambda x: torch.fft.rfft2(x), "6 x 3 numbers where 6 x 5 belong"),
    "nothing": (lambda x: None, "None, not a tensor"),
    "number": (lambda x: 3.0, "a value of type float, not a tensor"),
    "array": (lambda x: x.numpy() * 2, "a value of type ndarray, not a tensor"),
    "pair": (lambda x: (x, x), "2 results, not 1"),
    "empty": (lambda x: (), "0 results, not 1"),
}


@pytest.mark.parametrize("jit", [False, True], ids=["direct", "compiled"])
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_result_is_refused(name: str, jit: bool, declared: Any, tmp_path: Path) -> None:
    body, told = WRONG[name]
    declared(body)
    with pytest.raises(IngotError) as error:
        run(build(read_text(TEXT, moose=True)), tmp_path, jit=jit)
    (problem,) = error.value.problems
    assert problem.code == "wrong-result" and problem.fix
    assert problem.message == f"Tried returns {told}"
    assert problem.span is not None and problem.span.block == "TensorComputes/Solve/d"


RIGHT: dict[str, tuple[Body, Any]] = {
    "whole": (lambda x: x * 2, Grid),
    "narrow": (lambda x: x.sum(1, keepdim=True), Grid),
    "one": (lambda x: x.sum(), Grid),
    "components": (lambda x: torch.stack([x, x], -1), Grid),
    "list": (lambda x: [x * 2], Grid),
    "spectrum": (lambda x: torch.fft.rfft2(x).real, Spectrum),
}


@pytest.mark.parametrize("jit", [False, True], ids=["direct", "compiled"])
@pytest.mark.parametrize("name", RIGHT)
def test_what_a_buffer_may_hold_is_taken(
    name: str, jit: bool, declared: Any, tmp_path: Path
) -> None:
    body, gives = RIGHT[name]
    declared(body, gives=gives)
    assert run(build(read_text(TEXT, moose=True)), tmp_path, jit=jit).values


def test_what_is_taken_narrow_may_be_returned_as_a_spectrum(declared: Any, tmp_path: Path) -> None:
    declared(lambda x: torch.fft.rfft2(x.expand(6, 5)).real, takes=Narrow)
    assert run(build(read_text(TEXT, moose=True)), tmp_path, jit=False).values


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (lambda x: None, "None"),
        (lambda x: "3", "a value of type str"),
        (lambda x: x, "6 x 5 numbers"),
        (lambda x: (x.sum(), x.mean()), "a value of type tuple"),
    ],
)
def test_a_postprocessor_gives_one_number(
    body: Body, told: str, declared: Any, tmp_path: Path
) -> None:
    declared(lambda x: x * 2)

    def Number(buffer: Grid) -> Any:
        """Something.

        buffer: the field
        """
        return body(buffer)

    postprocessor(Number)
    try:
        asked = ["Postprocessors/p/type=Number", "Postprocessors/p/buffer=c"]
        with pytest.raises(IngotError, match=f"Number returns {told}, not one number") as error:
            run(build(read_text(TEXT, overrides=asked, moose=True)), tmp_path, jit=False)
        assert error.value.problems[0].span is not None
    finally:
        del POSTPROCESSORS["Number"]
