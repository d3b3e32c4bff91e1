"""Laws of ordinary torch: called for all points at once, differentiated by autograd."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn

from ingot import IngotError
from ingot.catalog import Many, Parameter
from ingot.drivers.plain import plain
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
from ingot.program.unroll import unroll
from ingot.types import R2, SR2, Scalar, Vec, log
from tests.program.declared import declared

Tensors = dict[str, Tensor]
Function = Callable[[Tensors], Tensors]
torch.manual_seed(3)
NET = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 6)).double().requires_grad_(False)


def Stretch(f: R2, *, factor: Parameter[Scalar]) -> tuple[Vec, R2]:
    """Singular values, and the rotation, by torch."""
    u, s, v = torch.linalg.svd(f)
    return s * factor[..., None], u @ v


def Surrogate(strain: SR2, terms: Many[Scalar]) -> SR2:
    """A trained module."""
    return NET(torch.cat([strain, torch.stack(terms, dim=-1)], dim=-1))


def Spread(c: Scalar["cell"]) -> Scalar["cell"]:  # noqa: F821
    """Each cell sees all others."""
    return torch.softmax(c, dim=-1) * c.sum(-1, keepdim=True)


def Deform(A: R2, B: R2) -> R2:
    """Traced as any other law."""
    return A + 0.3 * B


def Logs(x: Vec) -> Vec:
    """Traced as any other law."""
    return Vec.of(*(log(c) for c in x.components))


TEXT = """
[Models]
  [deform]
    type = Deform
  []
  [stretch]
    type = Stretch
    factor = 'k'
  []
  [log]
    type = Logs
    x = 'values'
  []
  [both]
    type = ComposedModel
    models = 'log stretch deform'
    additional_outputs = 'values'
  []
  [goal]
    type = SR2LinearCombination
    from = 'net E G'
    weights = '0.1 1 -1'
    to = 'E_residual'
  []
  [equations]
    type = ComposedModel
    models = 'net goal'
  []
  [net]
    type = Surrogate
    strain = 'E'
    terms = 'a b'
    out = 'net'
  []
  [update]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
  []
  [spread]
    type = Spread
  []
  [double]
    type = ScalarMultiplication
    from = 'out w'
    to = 'doubled'
  []
  [cells]
    type = ComposedModel
    models = 'spread double'
  []
[]
[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'equations'
    unknowns = 'E'
  []
[]
[Solvers]
  [newton]
    type = Newton
    abs_tol = 1e-12
    rel_tol = 1e-14
  []
[]
"""


@pytest.fixture(autouse=True)
def laws() -> Iterator[None]:
    with (
        declared(Stretch, gives=("values", "turn"), opaque=True),
        declared(Surrogate, Spread, opaque=True),
        declared(Logs, gives="log"),
        declared(Deform, gives="f"),
    ):
        yield


def program_of(model: str, **shapes: tuple[int, ...]) -> Program:
    """The program of a model of the text."""
    return verify(prepared(build(read_text(TEXT), model), shapes))


def draw(program: Program, seed: int, batch: tuple[int, ...]) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(seed)
    return {
        v.name: torch.rand(
            (*batch, *(program.extent(a) for a in v.axes), *v.kind.base),
            generator=g, dtype=torch.float64,
        )
        for v in program.inputs
    }  # fmt: skip


def assert_is(program: Program, function: Function, seed: int) -> None:
    """Values, tangents, adjoints and blocks are those of plain torch."""
    outs, ins = [[v.name for v in vs] for vs in (program.outputs, program.inputs)]
    for batch in ((), (3,), (2, 2)):
        inputs, along = draw(program, seed, batch), draw(program, seed + 100, batch)
        expected, slopes = torch.func.jvp(function, (inputs,), (along,))
        moved = {f"d.{n}": x for n, x in along.items()}
        found = Interpreter(along_direction(program))({**inputs, **moved})[0]
        for y in outs:
            close(found[y], expected[y])
            close(found[f"d.{y}"], slopes[y])
        bars = {f"a.{y}": torch.rand_like(expected[y]) for y in outs}
        (expected,) = torch.func.vjp(function, inputs)[1]({y: bars[f"a.{y}"] for y in outs})
        found = Interpreter(with_adjoint(program, outs, ins))({**inputs, **bars})[0]
        for x in ins:
            close(found[f"a.{x}"], expected[x])
    inputs = draw(program, seed, ())
    blocks = torch.func.jacrev(function)(inputs)
    found = Interpreter(with_jacobian(program, [(y, x) for y in outs for x in ins]))(inputs)[0]
    for y in outs:
        for x in ins:
            close(found[f"{y}:{x}"], blocks[y][x])


def close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-8)


def stretched(x: Tensors) -> Tensors:
    values, turn = Stretch(x["A"] + 0.3 * x["B"], factor=x["k"])
    return {"values": values, "turn": turn, "log": values.log()}


def solved(x: Tensors) -> Tensors:
    """The fixed point, whose steps shrink a hundredfold each."""
    strain = x["G"]
    for _ in range(40):
        strain = x["G"] - 0.1 * Surrogate(strain, (x["a"], x["b"]))
    return {"E": strain}


def spread(x: Tensors) -> Tensors:
    return {"doubled": Spread(x["c"]) * x["w"][..., None]}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("model", "function", "shapes"), [
    ("both", stretched, {}), ("update", solved, {}), ("cells", spread, {"c": (4,)}),
])  # fmt: skip
def test_a_law_of_ordinary_torch_has_the_values_and_derivatives_of_torch(
    model: str, function: Function, shapes: dict[str, tuple[int, ...]], seed: int
) -> None:
    program = program_of(model, **shapes)
    names = [v.name for v in program.inputs]
    unread = {"E"} & set(names)

    def padded(x: Tensors) -> Tensors:
        # a first guess has no slope, but torch asks for its part
        return {n: y + 0.0 * sum(x[u].sum() for u in unread) for n, y in function(x).items()}

    assert_is(program, padded, seed)


def test_axes_of_a_file_are_a_part_of_the_batch() -> None:
    program = program_of("both", A=(5,))
    inputs = draw(program, 0, (2,))
    found = Interpreter(program)(inputs)[0]
    spread_out = {**inputs, "B": inputs["B"][:, None], "k": inputs["k"][:, None]}
    for name, x in stretched(spread_out).items():
        close(found[name], x)


def test_models_of_such_laws_have_an_oracle_and_weights_may_change_between_calls() -> None:
    model = build(read_text(TEXT), "equations")
    program = prepared(model)
    inputs = draw(program, 0, (3,))
    evaluate = plain(model, {})
    assert evaluate is not None
    run = Interpreter(program)
    before = run(inputs)[0]["E_residual"]
    close(before, evaluate(inputs)["E_residual"])
    with torch.no_grad():
        NET[0].weight.mul_(2.0)
    try:
        after = run(inputs)[0]["E_residual"]
        close(after, evaluate(inputs)["E_residual"])
        assert not torch.equal(before, after)
    finally:
        with torch.no_grad():
            NET[0].weight.mul_(0.5)


def test_gradients_of_a_call_pass_through_such_a_law() -> None:
    program = program_of("both")
    inputs = {n: x.requires_grad_() for n, x in draw(program, 0, (3,)).items()}
    found = Interpreter(program)(inputs)[0]["values"].sum()
    expected = stretched(inputs)["values"].sum()
    for x, y in zip(*(torch.autograd.grad(t, inputs["A"]) for t in (found, expected)), strict=True):
        close(x, y)


def test_passes_refuse_such_a_law_by_name() -> None:
    program = program_of("update")
    for refuse in (lambda: compile_passes(program), lambda: unroll(program)):
        with pytest.raises(IngotError, match=r"\[net\] is a law of ordinary torch") as raised:
            refuse()
        assert raised.value.problems[0].code == "opaque-model"
        assert raised.value.problems[0].span is not None


def test_a_result_of_another_shape_or_without_a_graph_is_told() -> None:
    def Short(x: Vec) -> Vec:
        return x[..., :2]

    def Cut(x: Vec) -> Vec:
        return x.detach() * 2.0

    text = "[Models]\n[law]\ntype = {}\n[]\n[]"
    with declared(Short, Cut, opaque=True):
        short, cut = (prepared(build(read_text(text.format(n)), "law")) for n in ("Short", "Cut"))
    with pytest.raises(IngotError, match=r"\[law\] returns 'out' as shape \(4, 2\)"):
        Interpreter(short)(draw(short, 0, (4,)))
    with pytest.raises(IngotError, match=r"\[law\] returns a value that torch cannot diff"):
        Interpreter(with_jacobian(cut, [("out", "x")]))(draw(cut, 0, (4,)))


def test_what_fails_inside_such_a_law_is_told_at_its_line() -> None:
    def Odd(x: Vec) -> Vec:
        return x @ torch.ones(4, 4)

    def Pair(x: Vec) -> Vec:
        return x, x  # pyright: ignore[reportReturnType]

    text = "[Models]\n[law]\ntype = {}\n[]\n[]"
    with declared(Odd, Pair, opaque=True):
        odd, pair = (prepared(build(read_text(text.format(n)), "law")) for n in ("Odd", "Pair"))
    with pytest.raises(IngotError, match="Odd: RuntimeError") as raised:
        Interpreter(odd)(draw(odd, 0, (4,)))
    (problem,) = raised.value.problems
    assert (problem.code, problem.span and problem.span.text.strip()) == (
        "law-failed",
        "return x @ torch.ones(4, 4)",
    )
    with pytest.raises(IngotError, match="Pair returns 2 values, not 1"):
        Interpreter(pair)(draw(pair, 0, (4,)))


def test_a_derivative_of_its_derivative_is_refused() -> None:
    program = program_of("both")
    once = with_jacobian(program, [("values", "A")])
    with pytest.raises(IngotError, match=r"\[stretch\], which is opaque, is differentiated again"):
        with_jacobian(once, [("values:A", "A")])
