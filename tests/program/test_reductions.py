"""Sums and means over points: as torch has them, and refused where one point is asked."""

import pytest
import torch
from torch import Tensor

from ingot import IngotError
from ingot.execute.inductor import plan_graphs
from ingot.execute.interpret import Interpreter
from ingot.hit import read_text
from ingot.model import build
from ingot.program import (
    Program,
    along_direction,
    compile_passes,
    prepared,
    verify,
    with_adjoint,
    with_jacobian,
)
from ingot.program.describe import describe_pass

TEXT = """
[Models]
  [mix]
    type = SR2LinearCombination
    from = 'A B'
    weights = '2 -1'
    to = 'S'
  []
  [total]
    type = SR2Dynamic{what}
    from = 'S'
    to = 'T'
    dim = {dim}
  []
  [size]
    type = SR2Invariant
    invariant_type = 'VONMISES'
    tensor = 'T'
    invariant = 'size'
  []
  [apart]
    type = SR2LinearCombination
    from = 'S T'
    weights = '1 -1'
    to = 'D'
  []
  [whole]
    type = ComposedModel
    models = 'mix total size {more}'
    additional_outputs = 'S T'
  []
  [again]
    type = SR2DynamicMean
    from = 'T'
    to = 'U'
    dim = 0
  []
  [update]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
  []
[]
[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'total'
    unknowns = 'S'
    residuals = 'T'
  []
[]
[Solvers]
  [newton]
    type = Newton
  []
[]
"""


def program_of(what: str, dim: int, more: str = "", model: str = "whole") -> Program:
    text = TEXT.format(what=what, dim=dim, more=more)
    return verify(prepared(build(read_text(text), model)))


def draw(batch: tuple[int, ...], seed: int) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(seed)
    return {n: torch.rand((*batch, 6), generator=g, dtype=torch.float64) for n in "AB"}


def von_mises(t: Tensor) -> Tensor:
    mean = t[..., :3].mean(-1, keepdim=True)
    dev = torch.cat([t[..., :3] - mean, t[..., 3:]], dim=-1)
    return (1.5 * (dev * dev).sum(-1)).sqrt()


def reduce(x: Tensor, what: str, dim: int) -> Tensor:
    at = dim if dim >= 0 else dim - 1  # components come last
    return x.mean(at) if what == "Mean" else x.sum(at)


@pytest.mark.parametrize("what", ["Sum", "Mean"])
@pytest.mark.parametrize(
    ("batch", "dim"),
    [((5,), 0), ((5,), -1), ((1,), 0), ((4, 3), 0), ((4, 3), 1), ((4, 3), -1), ((2, 3, 4), 1)],
)
def test_a_reduction_is_that_of_torch_and_so_is_its_slope(
    what: str, batch: tuple[int, ...], dim: int
) -> None:
    program = program_of(what, dim)
    inputs, along = draw(batch, 0), draw(batch, 1)

    def plain(x: dict[str, Tensor]) -> dict[str, Tensor]:
        s = 2 * x["A"] - x["B"]
        t = reduce(s, what, dim)
        return {"S": s, "T": t, "size": von_mises(t)}

    expected, slopes = torch.func.jvp(plain, (inputs,), (along,))
    moved = {f"d.{n}": x for n, x in along.items()}
    found = Interpreter(along_direction(program))({**inputs, **moved})[0]
    for name, x in expected.items():
        torch.testing.assert_close(found[name], x)
        torch.testing.assert_close(found[f"d.{name}"], slopes[name])


def test_what_is_reduced_to_nothing_meets_every_point_and_may_be_reduced_again() -> None:
    inputs = draw((5,), 0)
    s = 2 * inputs["A"] - inputs["B"]
    found = Interpreter(program_of("Mean", 0, "apart"))(inputs)[0]
    torch.testing.assert_close(found["D"], s - s.mean(0))
    inputs = draw((4, 3), 0)
    s = 2 * inputs["A"] - inputs["B"]
    found = Interpreter(program_of("Sum", 1, "again"))(inputs)[0]
    torch.testing.assert_close(found["U"], s.sum(1).mean(0))


@pytest.mark.parametrize(
    ("batch", "dim", "more", "told"),
    [
        ((4, 3), 1, "apart", r"of batch \(4,\), and meets values of batch \(4, 3\)"),
        ((4, 3), 2, "", r"the batch \(4, 3\) has no axis 2"),
        ((), 0, "", r"the batch \(\) has no axis 0"),
        ((0,), 0, "", "is given none"),
    ],
)
def test_what_does_not_go_together_is_told(
    batch: tuple[int, ...], dim: int, more: str, told: str
) -> None:
    with pytest.raises(IngotError, match=told) as raised:
        Interpreter(program_of("Sum", dim, more))(draw(batch, 0))
    assert raised.value.problems[0].code == "batch-reduction"


def test_what_asks_one_point_alone_refuses_a_reduction_at_its_block() -> None:
    program = program_of("Sum", 0)
    for refuse in (
        lambda: compile_passes(program),
        lambda: plan_graphs(program, (), "model"),
        lambda: with_jacobian(program, [("T", "A")]),
        lambda: program_of("Sum", 0, model="update"),
    ):
        with pytest.raises(IngotError, match=r"\[total\] is a sum over points") as raised:
            refuse()
        (problem,) = raised.value.problems
        assert problem.code == "batch-reduction"
        assert problem.span is not None
        assert problem.span.block == "Models/total"
    assert "S:A" in Interpreter(with_jacobian(program, [("S", "A")]))(draw((3,), 0))[0]


@pytest.mark.parametrize("what", ["Sum", "Mean"])
@pytest.mark.parametrize(("batch", "dim", "more"), [
    ((5,), 0, "apart"), ((1,), -1, "apart"), ((4, 3), 0, ""), ((4, 3), 1, ""), ((2, 3, 4), 1, ""),
    ((4, 3), 1, "again"),
])  # fmt: skip
def test_an_adjoint_through_a_reduction_is_that_of_torch(
    what: str, batch: tuple[int, ...], dim: int, more: str
) -> None:
    program = program_of(what, dim, more)
    inputs = draw(batch, 0)
    inputs["B"] = inputs["B"][(0,) * len(batch)]  # has no batch: its adjoint is a sum over points

    def plain(x: dict[str, Tensor]) -> dict[str, Tensor]:
        s = 2 * x["A"] - x["B"]
        t = reduce(s, what, dim)
        found = {"S": s, "T": t, "size": von_mises(t)}
        return found | ({"D": s - t} if more == "apart" else {"U": t.mean(0)} if more else {})

    expected, back = torch.func.vjp(plain, inputs)
    bars = {n: torch.rand_like(x) for n, x in expected.items()}
    (slopes,) = back(bars)
    lost = {"T": dim, "size": dim}
    spread = {f"a.{n}": x for n, x in bars.items()}
    for n, axis in lost.items():
        # given for the whole batch, and so with an axis of one where the sum has lost its own
        spread[f"a.{n}"] = bars[n].unsqueeze(axis % len(batch))
    if more == "again":
        spread["a.U"] = bars["U"][None, None]
    made = with_adjoint(program, [*expected], ["A", "B"])
    for found in (Interpreter(verify(made))({**inputs, **spread})[0],):
        torch.testing.assert_close(found["a.A"], slopes["A"])
        torch.testing.assert_close(found["a.B"].sum(tuple(range(len(batch)))), slopes["B"])


def test_passes_of_a_program_that_is_cut_are_shown_part_by_part() -> None:
    shown = describe_pass(program_of("Mean", 0, "apart"), "clean")
    assert [row for row in shown.splitlines() if row.startswith("# part")] == [
        "# part 0", "# part 1", "# part 2",
    ]  # fmt: skip
