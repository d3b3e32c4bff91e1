# ruff: noqa: F821 - names of axes
"""Matrix products along an axis: small dense layers are laws like any other."""

import pytest
import torch
from torch import Tensor

from ingot.catalog import Parameter
from ingot.codegen.source import write_source
from ingot.errors import IngotError
from ingot.hit import read_text
from ingot.model import build
from ingot.program import Program, compile_passes, freeze, trace, verify, with_jacobian
from ingot.types import SR2, Scalar, contract, tanh
from tests.program.agreement import LOOPS, agree, every_executor, on_tensors
from tests.program.declared import declared, program_of

F64 = torch.float64


def Network(
    x: Scalar["feature"],
    *,
    first: Parameter[Scalar["hidden", "feature"]],
    bias: Parameter[Scalar["hidden"]],
    second: Parameter[Scalar["result", "hidden"]],
) -> Scalar["result"]:
    """Two layers.

    first: weights of the hidden layer
    bias: its offsets
    second: weights of the result
    """
    return contract(second, tanh(contract(first, x, "feature") + bias), "hidden")


def sample(features: int, hidden: int, results: int, *batch: int) -> dict[str, Tensor]:
    """Random weights and a point."""
    draw = torch.Generator().manual_seed(features)
    shapes = {"x": (features,), "first": (hidden, features), "bias": (hidden,),
              "second": (results, hidden)}  # fmt: skip
    return {n: torch.randn(*batch, *s, generator=draw, dtype=F64) for n, s in shapes.items()}


@pytest.mark.parametrize("sizes", [(3, 4, 2), (1, 2, 1), (2, 1, 3)])
def test_a_network_agrees_with_torch_by_inputs_and_weights(sizes: tuple[int, int, int]) -> None:
    point = sample(*sizes, 5)
    shapes = {n: tuple(t.shape[1:]) for n, t in point.items()}
    plain = on_tensors(Network, **dict.fromkeys(point, Scalar))
    agree(program_of(Network, shapes=shapes), plain, point)

    def layers(x: Tensor, first: Tensor, bias: Tensor, second: Tensor) -> Tensor:
        return second @ torch.tanh(first @ x + bias)

    agree(program_of(Network, shapes=shapes), layers, point)


FILE = """
[Tensors]
{tensors}
[]
[Models]
  [law]
    type = Network
    first = 'first'
    bias = 'bias'
    second = 'second'
  []
[]
"""
TENSOR = """
  [{name}]
    type = Python
    expr = 'Scalar(torch.tensor({data}, dtype=torch.float64), sub_batch_ndim={rank})'
  []
"""


def program_of_file(weights: dict[str, Tensor], keep: tuple[str, ...]) -> Program:
    """The network of a file, its weights frozen but for some."""
    ranks = {"first": 2, "bias": 1, "second": 2}
    told = [TENSOR.format(name=n, data=weights[n].tolist(), rank=r) for n, r in ranks.items()]
    with declared(Network):
        model = build(read_text(FILE.format(tensors="".join(told))), "law")
        return verify(freeze(trace(model, {"x": weights["x"].shape[-1:]}), 2.0**-52, keep))


def test_weights_are_frozen_promoted_or_batched() -> None:
    one, many = sample(3, 4, 2), sample(3, 4, 2, 5)
    x = many["x"]
    plain = on_tensors(Network, **dict.fromkeys(one, Scalar))
    value = torch.vmap(lambda x: plain(**{**one, "x": x}))(x)
    slope = torch.vmap(torch.func.jacrev(lambda x: plain(**{**one, "x": x})))(x)
    by_weights = torch.vmap(
        torch.func.jacrev(lambda w, x: plain(**{**one, "first": w, "x": x})), in_dims=(None, 0)
    )(one["first"], x)
    for keep in ((), ("first",), ("first", "bias", "second")):
        program = program_of_file(one, keep)
        pairs = [("out", "x"), *([("out", "first")] if keep else [])]
        for found in every_executor(with_jacobian(program, pairs), {"x": x}):
            torch.testing.assert_close(found["out"], value)
            torch.testing.assert_close(found["out:x"], slope)
            if keep:
                torch.testing.assert_close(found["out:first"], by_weights)
    for found in every_executor(program_of_file(many, ()), {"x": x}):
        torch.testing.assert_close(found["out"], torch.vmap(lambda p: plain(**p))(many))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_nan_passes_through_a_network_as_through_torch(dtype: torch.dtype) -> None:
    point = {n: t.to(dtype) for n, t in sample(2, 3, 2, 3).items()}
    point["x"][1, 0] = float("nan")
    point["second"][2] = 0.0
    point["bias"][2, 1] = float("nan")  # 0 * NaN is NaN
    shapes = {n: tuple(t.shape[1:]) for n, t in point.items()}
    plain = on_tensors(Network, **dict.fromkeys(point, Scalar))
    want = torch.vmap(lambda p: plain(**p))(point)
    assert want[2].isnan().all()
    for found in every_executor(program_of(Network, shapes=shapes), point, dtype=dtype):
        torch.testing.assert_close(found["out"], want, equal_nan=True)


def test_loops_hold_no_table_of_products() -> None:
    sizes = (30, 40, 20)
    shapes = {n: tuple(t.shape) for n, t in sample(*sizes).items()}
    text = write_source(compile_passes(program_of(Network, shapes=shapes), LOOPS))
    assert "[1200]" in text  # the weights as they are loaded
    assert sum("[1200]" in line for line in text.splitlines()) == 1


def Tensors(weights: Scalar["slip"], x: SR2["slip"]) -> SR2:
    """A sum of tensors by weights."""
    return contract(weights, x, "slip")


def wrong_matrix(x: SR2["slip"]) -> SR2:
    """A matrix whose entries are tensors."""
    return contract(x, x, "slip")


def test_tensors_are_contracted_and_matrices_of_tensors_refused() -> None:
    draw = torch.Generator().manual_seed(0)
    point = {
        "weights": torch.randn(4, 3, generator=draw, dtype=F64),
        "x": torch.randn(4, 3, 6, generator=draw, dtype=F64),
    }
    program = program_of(Tensors, shapes={"weights": (3,), "x": (3,)})
    agree(program, lambda weights, x: weights @ x, point)
    with pytest.raises(IngotError, match="a matrix of SR2: its entries are scalars"):
        program_of(wrong_matrix, shapes={"x": (3,)})
