"""Every operation that a loop holds gives what torch gives: at any strides and at odd values."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

from ingot.fields.jit import Jit
from ingot.fields.jit.operations import OPERATIONS
from ingot.fields.space import space
from ingot.fields.step import Buffer, Eager, State, Step

from .conftest import copied, largest_difference

A, B, Z, Y, M, N = "a", "b", "z", "y", "m", "n"
"""Two fields of numbers, two of complex numbers, two of truth values."""

BINARY = [(A, B), (A, Z), (Z, A), (Z, Y), (A, M), (A, 2), (Z, 0.5), (Z, 1j)]
REAL = [(A, B), (A, M)]
ARGUMENTS: dict[str, Sequence[tuple[object, ...]]] = {
    "add.Tensor": BINARY, "sub.Tensor": [*BINARY[:4], *BINARY[5:]], "mul.Tensor": BINARY,
    "div.Tensor": BINARY, "true_divide.Tensor": [(A, B)],
    "add.Scalar": [(A, 2), (Z, 1j)], "sub.Scalar": [(A, 2.5)], "mul.Scalar": [(A, 2), (Z, 2.5)],
    "div.Scalar": [(A, 3)], "rsub.Scalar": [(A, 1), (Z, 1)], "rsub.Tensor": [(A, B), (Z, A)],
    "neg.default": [(A,), (Z,)], "reciprocal.default": [(A,), (Z,)], "square.default": [(A,), (Z,)],
    "pow.Tensor_Scalar": [(A, e) for e in (2, 3, 4, -1, -2, 0.5, -0.5, 1, 2.7, 0, 17)] + [(Z, 3)],
    "pow.Tensor_Tensor": [(A, B)], "pow.Scalar": [(2.0, A)],
    "exp.default": [(A,), (Z,)], "abs.default": [(A,), (Z,)], "rsqrt.default": [(A,)],
    "sign.default": [(A,)], "_conj.default": [(Z,)], "conj_physical.default": [(Z,)],
    "_conj_physical.default": [(Z,)],
    "complex.default": [(A, B)], "clone.default": [(A,), (Z,), (M,)],
    "clamp.default": [(A, 0.3, 0.6), (A, None, 0.5), (A, 0.4)], "clamp.Tensor": [(A, B, None)],
    "clamp_min.default": [(A, 0.4)], "clamp_max.default": [(A, 0.4)],
    "minimum.default": [(A, B)], "maximum.default": [(A, B)],
    "where.self": [(M, A, B), (M, Z, Y), (M, N, M)], "where.ScalarSelf": [(M, 1.5, A)],
    "where.ScalarOther": [(M, A, 2.5), (M, Z, 0)], "where.Scalar": [],
    "logical_and.default": [(M, N), (A, M)], "logical_or.default": [(M, N)],
    "logical_not.default": [(M,), (A,)], "bitwise_and.Tensor": [(M, N)],
    "bitwise_or.Tensor": [(M, N)], "bitwise_not.default": [(M,)],
    "_to_copy.default": [], "real": [(Z,)], "imag": [(Z,)],
    **{f"{n}.Tensor": [(A, B)] for n in ("eq", "ne", "lt", "gt", "le", "ge")},
    **{f"{n}.Scalar": [(A, 0.5)] for n in ("eq", "ne", "lt", "gt", "le", "ge")},
    **{f"{n}.default": [(A,)] for n in (
        "sqrt", "log", "log10", "log1p", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh",
        "floor", "ceil", "trunc", "round",
    )},
}  # fmt: skip
ARGUMENTS["eq.Tensor"] = [(A, B), (Z, Y), (Z, A)]


def operation(name: str) -> Callable[..., Tensor]:
    if name in ("real", "imag"):
        return getattr(torch, name)
    base, overload = name.split(".")
    return getattr(getattr(torch.ops.aten, base), overload)


CALLS = [(name, arguments) for name, rows in ARGUMENTS.items() for arguments in rows]


def every(**fields: Tensor) -> tuple[Tensor, ...]:
    found = []
    for name, arguments in CALLS:
        given = [fields[x] if isinstance(x, str) else x for x in arguments]
        found.append(operation(name)(*given))
    found += [fields[A].to(torch.complex128), fields[M].to(torch.float64), fields[A].bool()]
    return tuple(found)


STEP = Step(
    "every", every, {name: Buffer(name) for name in (A, B, Z, Y, M, N)},
    tuple(f"r{k}" for k in range(len(CALLS) + 3)),
)  # fmt: skip


def fields(sizes: tuple[int, ...]) -> dict[str, Tensor]:
    torch.manual_seed(1)
    a, b, c, d = (0.2 + 0.6 * torch.rand(4, *sizes, dtype=torch.float64)).unbind()
    return {A: a, B: b, Z: torch.complex(a, c - 0.5), Y: torch.complex(d, b - 0.5), M: a > 0.5,
            N: b > c}  # fmt: skip


@pytest.fixture(scope="module")
def executor(tmp_path_factory: pytest.TempPathFactory) -> Jit:
    return Jit(folder=tmp_path_factory.mktemp("programs"))


def judged(executor: Jit, state: State, tolerance: float = 1e-13) -> None:
    other = copied(state)
    executor.run((STEP,), state)
    Eager().run((STEP,), other)
    for k, (name, arguments) in enumerate([*CALLS, *[("to", ())] * 3]):
        one, two = state.buffers[f"r{k}"], other.buffers[f"r{k}"]
        assert one.dtype == two.dtype and one.shape == two.shape, (name, arguments)
        close = torch.allclose(one, two, rtol=tolerance, atol=tolerance, equal_nan=True)
        assert close, (name, arguments, one.flatten()[:4], two.flatten()[:4])


def test_every_operation_is_tried() -> None:
    assert set(ARGUMENTS) == set(OPERATIONS)


@pytest.mark.parametrize("sizes", [(7, 5), (16, 24), (33, 129)])
def test_operations_give_what_torch_gives(executor: Jit, sizes: tuple[int, ...]) -> None:
    judged(executor, State(space(sizes), buffers=fields(sizes)))
    assert executor.statistics.fallbacks == 0


def test_no_operation_is_left_outside_the_loop(executor: Jit) -> None:
    judged(executor, State(space((7, 5)), buffers=fields((7, 5))))
    assert executor.statistics.passes == 1


@pytest.mark.parametrize("how", ["turned", "spread", "sliced", "reversed part"])
def test_operands_may_have_any_strides(executor: Jit, how: str) -> None:
    sizes = (12, 10)
    whole = fields((24, 20))
    turn: dict[str, Callable[[Tensor], Tensor]] = {
        "turned": lambda x: x[:10, :12].T,
        "spread": lambda x: x[:1, :10].expand(12, 10),
        "sliced": lambda x: x[::2, ::2],
        "reversed part": lambda x: x[3:15, 4:14],
    }
    state = State(space(sizes), buffers={n: turn[how](x) for n, x in whole.items()})
    judged(executor, state)
    assert executor.statistics.fallbacks == 0


def test_odd_values_are_what_torch_makes_of_them() -> None:
    odd = torch.tensor(
        [0.0, -0.0, torch.inf, -torch.inf, torch.nan, 1e-310, -1.5, 2.5, -2.5, 1e300]
    )
    grid = odd.double()[:, None] + torch.zeros(10, 10).double()
    other = odd.double()[None, :] + torch.zeros(10, 10).double()

    def functions(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        return (
            torch.minimum(a, b), torch.maximum(a, b), a < b, a == b, torch.sign(a), a.clamp(-1, 1),
            torch.where(a > b, a, b), torch.exp(a), torch.sqrt(a.abs()), torch.floor(a),
            torch.round(a), torch.trunc(a), torch.ceil(a), a.logical_not(), a * b, a / b,
            torch.log(a.abs()), a.pow(2), torch.pow(a.abs(), b), torch.tanh(a),
        )  # fmt: skip

    gives = tuple(f"r{k}" for k in range(20))
    step = Step("odd", functions, {"a": Buffer("a"), "b": Buffer("b")}, gives)
    state = State(space((10, 10)), buffers={"a": grid, "b": other})
    executor = Jit()
    executor.run((step,), state)
    for name, expected in zip(gives, functions(grid, other), strict=True):
        found = state.buffers[name]
        assert torch.allclose(found, expected, rtol=1e-14, atol=0, equal_nan=True), name
    assert executor.statistics.passes == 1


def test_values_of_a_part_of_the_axes_are_spread(tmp_path: Path) -> None:
    def function(space_x: Tensor, space_y: Tensor, a: Tensor) -> tuple[Tensor, Tensor]:
        return torch.sin(space_x) * a + torch.exp(space_y) * 2, space_x * 3

    state = State(space((12, 9)), buffers=fields((12, 9)))
    state.buffers |= {"x": state.space.axes[0], "k": state.space.axes[1]}
    step = Step(
        "spread", function,
        {"space_x": Buffer("x"), "space_y": Buffer("k"), "a": Buffer("a")}, ("d", "e"),
    )  # fmt: skip
    other = copied(state)
    executor = Jit(folder=tmp_path)
    executor.run((step,), state)
    Eager().run((step,), other)
    assert largest_difference(state, other, "d", "e") < 1e-14
    assert state.buffers["e"].shape == (12, 1)
