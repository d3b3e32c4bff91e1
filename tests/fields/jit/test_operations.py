"""Every operation that a loop holds gives what torch gives: at any strides and at odd values."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from ingot.fields.jit import Jit
from ingot.fields.jit.operations import OPERATIONS
from ingot.fields.spaces import space
from ingot.fields.step import Buffer, Eager, State, Step

from .conftest import copied, largest_difference
from .every import ARGUMENTS, CALLS, STEP, fields, operation


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


def test_complex_quotients_at_odd_divisors_are_those_of_torch() -> None:
    """Where a divisor is not so small that torch's own reciprocal of it overflows."""
    parts = [0.0, -0.0, 1.0, -2.5, 1e200, -1e300, 1e-200, -1e-300, torch.inf, -torch.inf, torch.nan]
    odd = torch.tensor([complex(x, y) for x in parts for y in parts], dtype=torch.complex128)
    sizes = (len(odd), len(odd))
    over, below = odd[:, None].expand(sizes).clone(), odd.expand(sizes).clone()

    def functions(z: Tensor, y: Tensor, a: Tensor) -> tuple[Tensor, ...]:
        return z / y, torch.reciprocal(y), a / y, 1 / (1 + torch.abs(a / (y * 0)))

    given = {"z": over, "y": below, "a": torch.full(sizes, -1.5, dtype=torch.float64)}
    gives = ("q", "r", "s", "t")
    state = State(space(sizes), buffers=dict(given))
    executor = Jit()
    executor.run((Step("quotients", functions, {n: Buffer(n) for n in given}, gives),), state)
    assert executor.statistics.fallbacks == 0
    for name, wanted in zip(gives, functions(**given), strict=True):
        found = state.buffers[name]
        limit = 1e-14 * wanted.abs().nan_to_num(torch.inf) + 1e-300
        mine, torchs = (torch.view_as_real(x + 0j) for x in (found, wanted))
        same = (mine == torchs) | (mine.isnan() & torchs.isnan())
        near = torchs.isfinite() & ((mine - torchs).abs() <= limit[..., None])
        assert (same | near).all(), (
            name,
            over[~(same | near).all(-1)],
            below[~(same | near).all(-1)],
        )
    zero = odd == 0
    assert zero.sum() == 4 and (state.buffers["t"][:, zero] == 0).all()


ODD = (0.0, -0.0, 1.0, -1.5, 2.5, 1e-310, 1e300, -1e300, torch.inf, -torch.inf, torch.nan, 0.3)
ROUNDED_ONCE = (
    "add", "sub", "rsub", "mul", "div", "neg", "reciprocal", "square", "abs", "sqrt", "minimum",
    "maximum", "clamp", "where", "logical", "bitwise", "eq", "ne", "lt", "gt", "le", "ge", "floor",
    "ceil", "trunc", "round", "sign", "_conj", "real", "imag",
)  # fmt: skip
"""Operations that give the same bits everywhere, so that what follows them does not differ."""


def drawn(seed: int) -> Callable[..., tuple[Tensor, ...]]:
    """A random graph of operations: of numbers at odd values, of complex ones, of truth values."""
    dice = random.Random(seed)
    # of an infinite number and a complex one torch makes NaNs, taking both for complex
    rows = [(n, a) for n, a in CALLS if not ({*"ab"} & {*a} and {"z", "y", 1j} & {*a})]
    inner = [(n, a) for n, a in rows if n.startswith(ROUNDED_ONCE)]
    inner = [(n, a) for n, a in inner if not {*"zy"} & {*a} or n[:3] not in ("div", "rec", "abs")]
    taken = [
        (*row, dice.random()) for row in [*dice.choices(inner, k=30), *dice.choices(rows, k=9)]
    ]

    def function(**given: Tensor) -> tuple[Tensor, ...]:
        pools: dict[str, list[Tensor]] = {name: [x] for name, x in given.items()}
        last: list[Tensor] = []
        for name, arguments, at in taken:
            pick = [pools[x][int(at * len(pools[x]))] if isinstance(x, str) else x
                    for x in arguments]  # fmt: skip
            last.append(operation(name)(*pick))
            if len(last) <= 30:
                where = (
                    "m" if last[-1].dtype == torch.bool else "z" if last[-1].is_complex() else "a"
                )
                pools[where].append(last[-1])
        return tuple(last)

    return function


@pytest.mark.parametrize("seed", range(4))
def test_drawn_graphs_give_what_torch_gives(executor: Jit, seed: int) -> None:
    function, sizes = drawn(seed), (len(ODD), len(ODD))
    odd, plain = torch.tensor(ODD, dtype=torch.float64), fields(sizes)
    given = {"a": odd[:, None].expand(sizes), "b": odd.expand(sizes)}
    given |= {name: plain[name] for name in ("z", "y", "m", "n")}
    expected = function(**given)
    gives = tuple(f"r{k}" for k in range(len(expected)))
    step = Step(f"drawn{seed}", function, {n: Buffer(n) for n in given}, gives)
    state = State(space(sizes), buffers=dict(given))
    executor.run((step,), state)
    for name, each in zip(gives, expected, strict=True):
        found = state.buffers[name]
        assert found.dtype == each.dtype
        assert torch.allclose(found, each, rtol=1e-12, atol=1e-14, equal_nan=True), name
    assert executor.statistics.fallbacks == 0


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


def test_signs_that_torch_has_not_written_yet_are_seen(tmp_path: Path) -> None:
    def function(a: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        return 2 * a, z * z

    state = State(space((8, 9)), buffers=fields((8, 9)))
    z = state.buffers["z"].conj()
    state.buffers |= {"a": z.imag, "z": z}
    assert z.imag.is_neg() and z.is_conj()
    executor = Jit(folder=tmp_path)
    step = Step("signs", function, {"a": Buffer("a"), "z": Buffer("z")}, ("d", "e"))
    executor.run((step,), state)
    assert torch.allclose(state.buffers["d"], 2 * z.imag, rtol=1e-14)
    assert torch.allclose(state.buffers["e"], z * z, rtol=1e-14)
    assert executor.statistics.fallbacks == 0
