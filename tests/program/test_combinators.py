"""Models that contain models: gradients, compositions and updates against plain torch."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.func import grad, jacfwd, jvp, vmap

from ingot.catalog import CATALOG
from ingot.errors import IngotError
from ingot.execute.interpret import Interpreter
from ingot.hit import read_text
from ingot.model import build
from ingot.program import Program, along_direction, prepared, verify, with_jacobian
from ingot.types import SR2, Scalar
from tests.laws.agreement import differences

TEXT = """
[Models]
  [overstress]
    type = SR2LinearCombination
    from = 'stress X'
    weights = '1 -1'
    to = 'overstress'
  []
  [vonmises]
    type = SR2Invariant
    invariant_type = 'VONMISES'
    tensor = 'overstress'
    invariant = 'effective'
  []
  [pressure]
    type = SR2Invariant
    invariant_type = 'I1'
    tensor = 'overstress'
    invariant = 'poro'
  []
  [surface]
    type = GTNYieldFunction
    flow_invariant = 'effective'
    poro_invariant = 'poro'
    void_fraction = 'phi'
    isotropic_hardening = 'k'
    yield_stress = 'sy'
    q1 = 1.5
    q2 = 1.0
    q3 = 2.25
  []
  [flow]
    type = ComposedModel
    models = 'surface pressure vonmises overstress'
  []
  [normality]
    type = Normality
    model = 'flow'
    function = 'yield_function'
    from = 'stress k'
    to = 'N Nk'
  []
  [double]
    type = SR2LinearCombination
    from = 'N'
    weights = '2'
    to = 'twice'
  []
  [all]
    type = ComposedModel
    models = 'double normality'
    additional_outputs = 'N'
  []
  [rate]
    type = PerzynaPlasticFlowRate
    yield_function = 'x'
    reference_stress = 'eta'
    exponent = 2.5
    flow_rate = 'x_rate'
  []
  [integrate]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'x'
  []
  [residual]
    type = ComposedModel
    models = 'integrate rate'
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
    model = 'residual'
    unknowns = 'x'
  []
[]
[Solvers]
  [newton]
    type = Newton
    abs_tol = 1e-14
    rel_tol = 1e-14
  []
[]
"""
Values = dict[str, Tensor]


def program_of(name: str) -> Program:
    return verify(prepared(build(read_text(TEXT), name)))


def law(name: str) -> Callable[..., object]:
    return CATALOG[name].function


def yield_function(v: Values) -> Tensor:
    """The surface by hand: the laws' own functions, called one after another."""
    stress, back = SR2(v["stress"]), SR2(v["X"])
    one = (Scalar(1.0), Scalar(-1.0))
    over = law("SR2LinearCombination")((stress, back), weights=one, offset=Scalar(0.0))
    effective = law("SR2Invariant")(over, invariant_type="VONMISES")
    poro = law("SR2Invariant")(over, invariant_type="I1")
    numbers = {"q1": Scalar(1.5), "q2": Scalar(1.0), "q3": Scalar(2.25)}
    scalars = [Scalar(v[n]) for n in ("phi", "k")]
    sy = Scalar(v["sy"])
    surface = law("GTNYieldFunction")(effective, poro, *scalars, yield_stress=sy, **numbers)
    return surface.data


def normals(v: Values) -> Values:
    slopes = vmap(grad(lambda p: yield_function(p)))(v)
    return {"N": slopes["stress"], "Nk": slopes["k"]}


def drawn(seed: int, batch: int = 7) -> Values:
    source = torch.Generator().manual_seed(seed)

    def number(*shape: int, low: float = -1.0, high: float = 1.0) -> Tensor:
        return low + (high - low) * torch.rand(batch, *shape, generator=source, dtype=torch.float64)

    return {
        "stress": number(6, low=-3, high=3),
        "X": number(6),
        "phi": number(low=0.1, high=0.3),
        "k": number(low=0.0, high=1.0),
        "sy": number(low=1.0, high=2.0),
    }


def test_composition_agrees_with_its_laws_called_in_turn() -> None:
    values = drawn(0)
    results, _ = Interpreter(program_of("flow"))(values)
    assert not differences(results, {"yield_function": vmap(yield_function)(values)})


def test_gradient_of_an_inner_model_is_that_of_plain_torch() -> None:
    values = drawn(1)
    results, _ = Interpreter(program_of("normality"))(values)
    assert not differences(results, normals(values))


def test_gradient_is_differentiated_by_every_input_also_those_it_was_not_taken_by() -> None:
    values, along = drawn(2), drawn(3)
    for name in values:
        only = {n: x if n == name else torch.zeros_like(x) for n, x in along.items()}
        program = along_direction(program_of("normality"))
        results, _ = Interpreter(program)({**values, **{f"d.{n}": x for n, x in only.items()}})
        _, theirs = jvp(normals, (values,), (only,))
        assert not differences(results, {f"d.{n}": x for n, x in theirs.items()}), name
        assert any(bool(x.any()) for x in theirs.values()), f"{name} does not matter"


def test_gradient_at_zero_overstress_is_finite_and_agrees() -> None:
    values = drawn(4, 1)
    values["X"] = values["stress"].clone()
    program = along_direction(program_of("normality"))
    along = drawn(5, 1)
    results, _ = Interpreter(program)({**values, **{f"d.{n}": x for n, x in along.items()}})
    theirs, slopes = jvp(normals, (values,), (along,))
    assert not differences(results, {**theirs, **{f"d.{n}": x for n, x in slopes.items()}})


def test_a_gradient_feeds_other_models_of_a_composition() -> None:
    values = drawn(6)
    results, _ = Interpreter(program_of("all"))(values)
    theirs = normals(values)
    assert not differences(results, {**theirs, "twice": 2 * theirs["N"]})


def residual(x: Tensor, given: Values) -> Tensor:
    rate = law("PerzynaPlasticFlowRate")(
        Scalar(x), reference_stress=Scalar(given["eta"]), exponent=Scalar(2.5)
    )
    times = [Scalar(given[n]) for n in ("x~1", "t", "t~1")]
    return law("ScalarBackwardEulerTimeIntegration")(Scalar(x), rate, *times).data


@pytest.fixture(scope="module")
def states() -> tuple[Values, Tensor]:
    """Givens and the solution that plain torch finds by bisection."""
    given = {
        "x~1": torch.linspace(0.1, 0.3, 5, dtype=torch.float64),
        "t": torch.linspace(0.5, 0.7, 5, dtype=torch.float64),
        "t~1": torch.linspace(0.0, 0.2, 5, dtype=torch.float64),
        "eta": torch.linspace(1.0, 2.0, 5, dtype=torch.float64),
    }
    low, high = given["x~1"].clone(), given["x~1"] * 1.2
    for _ in range(80):
        middle = 0.5 * (low + high)
        above = residual(middle, given) > 0
        low, high = torch.where(above, low, middle), torch.where(above, middle, high)
    return given, 0.5 * (low + high)


def test_update_solves_the_residual_of_plain_torch(states: tuple[Values, Tensor]) -> None:
    given, solution = states
    results, (status,) = Interpreter(program_of("update"))({**given, "x": given["x~1"]})
    assert bool(status.converged.all())
    torch.testing.assert_close(results["x"], solution, rtol=1e-12, atol=0.0)


def test_derivative_of_an_update_is_that_of_the_implicit_function(
    states: tuple[Values, Tensor],
) -> None:
    given, solution = states
    names = list(given)
    program = with_jacobian(program_of("update"), [("x", n) for n in [*names, "x"]])
    results, _ = Interpreter(program)({**given, "x": given["x~1"]})
    by_unknown = vmap(jacfwd(residual))(solution, given)
    by_given = vmap(jacfwd(residual, argnums=1))(solution, given)
    expected = {f"x:{n}": -by_given[n] / by_unknown for n in names}
    assert not differences(results, expected, 1e-9)
    assert not bool(results["x:x"].any()), "a first guess does not move the solution"


OVERRIDE = """
[Models]
  [rate]
    type = MRPConstantParameter
    value = 'given'
    parameter = 'r'
  []
  [fix]
    type = FixOrientation
    input = '{read}'
    output = 'r'
  []
  [again]
    type = FixOrientation
    input = 'r'
    output = 'r'
  []
  [matrix]
    type = RotationMatrix
    from = 'r'
    to = 'R'
  []
  [all]
    type = ComposedModel
    models = '{models}'
    additional_outputs = 'r'
  []
[]
[Tensors]
  [given]
    type = Python
    expr = 'MRP(torch.tensor([1.0, -0.1, -0.05]))'
  []
[]
"""


@pytest.mark.parametrize("models", ["matrix fix rate", "rate matrix fix", "fix rate matrix"])
@pytest.mark.parametrize("read", ["r", "other"])
def test_what_overrides_runs_after_what_it_overrides(models: str, read: str) -> None:
    model = build(read_text(OVERRIDE.format(models=models, read=read)), "all")
    assert [m.name for m in model.body.order] == ["rate", "fix", "matrix"]
    assert list(model.inputs) == (["other"] if read == "other" else [])
    other = {"other": torch.tensor([0.0, 2.0, 0.0], dtype=torch.float64)}
    results, _ = Interpreter(prepared(model))({n: other[n] for n in model.inputs})
    start = other["other"] if read == "other" else torch.tensor([1.0, -0.1, -0.05]).double()
    torch.testing.assert_close(results["r"], -start / (start @ start), rtol=1e-6, atol=1e-7)


def test_two_that_override_one_value_are_refused() -> None:
    with pytest.raises(IngotError, match=r"\[fix\] and \[again\] both give 'r'"):
        build(read_text(OVERRIDE.format(models="rate fix again", read="r")), "all")
