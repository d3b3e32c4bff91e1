"""`LogarithmicStrain` against stored energies, differences and updates made by hand."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ingot import compose, implicit, laws
from ingot.drivers.plain import plain
from ingot.errors import IngotError
from ingot.execute.interpret import Interpreter
from ingot.execute.kernel import Kernel
from ingot.hit import read_text
from ingot.model import Model, build
from ingot.program import prepared, with_adjoint, with_jacobian
from ingot.program.probe import Probes
from ingot.types import SR2, r2_from_sr2
from tests.types.test_spectral import mandel, rotations

DOUBLE = torch.float64
UNIT = torch.eye(3, dtype=DOUBLE)
YOUNG, POISSON = 100.0, 0.3
LAME = YOUNG * POISSON / ((1 + POISSON) * (1 - 2 * POISSON))
SHEAR = YOUNG / (2 * (1 + POISSON))
PAIR = ("first_piola_kirchhoff_stress", "deformation_gradient")

TEXT = """
[Models]
  [elasticity]
    type = LinearIsotropicElasticity
    coefficients = '100 0.3'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
    strain = 'strain'
  []
  [model]
    type = LogarithmicStrain
    model = 'elasticity'
    cauchy_stress = 'cauchy'
    second_piola_kirchhoff_stress = 'S'
    jaumann_tangent = 'tangent'
  []
[]
"""


def draw_gradients() -> Tensor:
    """Deformations: none, stretches that are equal, nearly so or apart, turned twice, and drawn."""
    gaps = (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-3, 0.5)
    stretches = [[1.0, 1.0, 1.0], [1.3, 1.3, 1.3], [0.6, 0.6, 0.6]]
    stretches += [[1.1, 1.1 + gap, 1.1 + 2 * gap] for gap in gaps]
    stretches += [[0.8, 1.2, 1.2 + gap] for gap in gaps]
    diagonal = torch.diag_embed(torch.tensor(stretches, dtype=DOUBLE))
    count = len(stretches)
    turned = rotations(1, count) @ diagonal @ rotations(2, count).transpose(1, 2)
    source = torch.Generator().manual_seed(3)
    drawn = UNIT + 0.25 * torch.randn(12, 3, 3, generator=source, dtype=DOUBLE)
    return torch.cat([diagonal, turned, drawn[torch.linalg.det(drawn) > 0.1]])


def energy(f: Tensor) -> Tensor:
    """Hencky's: quadratic in the logarithms of stretches, by singular values."""
    logs = torch.linalg.svdvals(f).log()
    return 0.5 * LAME * logs.sum() ** 2 + SHEAR * (logs * logs).sum()


def first_piola(f: Tensor) -> Tensor:
    """The derivative of the energy in closed form, U diag(w' / s) V^T."""
    u, s, vh = torch.linalg.svd(f)
    logs = s.log()
    force = (LAME * logs.sum(-1, keepdim=True) + 2.0 * SHEAR * logs) / s
    return u @ torch.diag_embed(force) @ vh


def extrapolate(function: Any, along: Tensor, step: float = 2e-3) -> Tensor:
    """The slope of a function of a step, by Romberg's central differences."""
    table = [
        (function(along * h) - function(along * -h)) / (2 * h)
        for h in (step / 2**k for k in range(4))
    ]
    for k in range(1, 4):
        table = [
            (fine * 4.0**k - coarse) / (4.0**k - 1.0) for coarse, fine in itertools.pairwise(table)
        ]
    return table[0]


@pytest.fixture(scope="module")
def elastic() -> Model:
    return build(read_text(TEXT), "model")


@pytest.fixture(scope="module")
def stresses(elastic: Model) -> dict[str, Tensor]:
    program = with_jacobian(prepared(elastic), [PAIR])
    return Interpreter(program)({"deformation_gradient": draw_gradients()})[0]


def test_stress_is_the_derivative_of_the_stored_energy(stresses: dict[str, Tensor]) -> None:
    f = draw_gradients()
    expected = first_piola(f)
    torch.testing.assert_close(stresses[PAIR[0]], expected, rtol=1e-13, atol=1e-12)
    apart = f[-6:]
    by_torch = torch.vmap(torch.func.grad(energy))(apart)
    torch.testing.assert_close(stresses[PAIR[0]][-6:], by_torch, rtol=1e-12, atol=1e-11)
    kirchhoff = expected @ f.transpose(1, 2)
    torch.testing.assert_close(
        stresses["kirchhoff_stress"], mandel(kirchhoff), rtol=1e-12, atol=1e-12
    )
    volume = torch.linalg.det(f)[:, None]
    torch.testing.assert_close(stresses["cauchy"], stresses["kirchhoff_stress"] / volume)
    second = torch.linalg.solve(f, expected)
    torch.testing.assert_close(stresses["S"], mandel(second), rtol=1e-12, atol=1e-11)


def test_tangent_is_that_of_differences_also_at_equal_stretches(
    stresses: dict[str, Tensor],
) -> None:
    f = draw_gradients()
    found = stresses[":".join(PAIR)].reshape(-1, 9, 9)
    for k in range(9):
        along = torch.zeros(9, dtype=DOUBLE).index_fill(0, torch.tensor(k), 1.0).reshape(3, 3)
        expected = extrapolate(lambda h: first_piola(f + h), along)
        torch.testing.assert_close(found[:, :, k], expected.reshape(-1, 9), rtol=1e-9, atol=2e-8)
    # of a stored energy
    torch.testing.assert_close(found, found.transpose(1, 2), rtol=0, atol=1e-10)


def test_jaumann_tangent_is_the_change_under_stretch_without_spin(
    stresses: dict[str, Tensor],
) -> None:
    f = draw_gradients()
    for k in range(6):
        along = torch.zeros(6, dtype=DOUBLE).index_fill(0, torch.tensor(k), 1.0)
        rate = r2_from_sr2(SR2(along)).data

        def kirchhoff(h: Tensor) -> Tensor:
            moved = f + h @ f
            return mandel(first_piola(moved) @ moved.transpose(1, 2))

        expected = extrapolate(kirchhoff, rate)
        torch.testing.assert_close(stresses["tangent"][:, :, k], expected, rtol=1e-9, atol=2e-8)


def test_a_rotation_turns_spatial_stresses_and_leaves_the_others(elastic: Model) -> None:
    f = draw_gradients()
    q = rotations(7, len(f))
    run = Interpreter(prepared(elastic))
    plain_one = run({"deformation_gradient": f})[0]
    turned = run({"deformation_gradient": q @ f})[0]
    torch.testing.assert_close(turned["S"], plain_one["S"], rtol=1e-12, atol=1e-11)
    torch.testing.assert_close(turned[PAIR[0]], q @ plain_one[PAIR[0]], rtol=1e-12, atol=1e-11)


def test_kernels_agree_with_torch_and_with_adjoints() -> None:
    text = TEXT.replace("    jaumann_tangent = 'tangent'\n", "")
    model = build(read_text(text), "model")
    f = draw_gradients()
    program = prepared(model)
    sloped = with_jacobian(program, [PAIR])
    given = {"deformation_gradient": f}
    expected = Interpreter(sloped)(given)[0]
    found = Kernel(sloped)(given)[0]
    for name in found:
        torch.testing.assert_close(found[name], expected[name], rtol=1e-11, atol=1e-10)
    adjoint = with_adjoint(program, [PAIR[0]], [PAIR[1]])
    bar = torch.randn(f.shape, generator=torch.Generator().manual_seed(0), dtype=DOUBLE)
    back = Interpreter(adjoint)(given | {f"a.{PAIR[0]}": bar})[0][f"a.{PAIR[1]}"]
    slopes = expected[":".join(PAIR)].reshape(-1, 9, 9)
    expected_back = torch.einsum("bi,bij->bj", bar.reshape(-1, 9), slopes).reshape(f.shape)
    torch.testing.assert_close(back, expected_back, rtol=1e-10, atol=1e-10)
    oracle = plain(model, {})
    assert oracle is not None
    for name, x in oracle(given).items():
        torch.testing.assert_close(expected[name], x, rtol=1e-12, atol=1e-11)


def make_plastic() -> Model:
    """J2 plasticity at small strain, by an update that reads its own histories."""
    moduli = {"coefficients": [YOUNG, POISSON],
              "coefficient_types": ["YOUNGS_MODULUS", "POISSONS_RATIO"]}  # fmt: skip
    elastic = laws.LinearIsotropicElasticity(strain="elastic_strain", **moduli)
    split = laws.SR2LinearCombination(from_=["E", "Ep"], weights=[1, -1], to="elastic_strain")
    update = implicit(
        split, elastic, laws.SR2BackwardEulerTimeIntegration(variable="Ep"),
        laws.SR2Invariant(tensor="stress", invariant="effective_stress", invariant_type="VONMISES"),
        laws.LinearIsotropicHardening(hardening_modulus=5.0),
        laws.YieldFunction(yield_stress=2.0, isotropic_hardening="isotropic_hardening"),
        laws.AssociativeJ2FlowDirection(mandel_stress="stress"),
        laws.AssociativePlasticFlow(flow_rate="gamma", plastic_strain_rate="Ep_rate"),
        laws.ScalarBackwardEulerTimeIntegration(variable="equivalent_plastic_strain", rate="gamma"),
        laws.MinMapComplementarity(a="yield_function", b="gamma", complementarity="gamma_residual"),
        unknowns=["Ep", "equivalent_plastic_strain", "gamma"], guess="old")  # fmt: skip
    return compose(update, split, elastic)


def test_a_model_with_histories_keeps_them_and_has_its_consistent_tangent() -> None:
    inner = make_plastic()
    model = laws.LogarithmicStrain(
        model=inner, strain="E", deformation_gradient="F", jaumann_tangent="tangent"
    )
    assert {"F", "Ep~1", "equivalent_plastic_strain~1", "t", "t~1"} <= set(model.inputs)
    assert {"stress", "Ep", "kirchhoff_stress"} <= set(model.outputs)
    f = draw_gradients()
    count = len(f)
    given: dict[str, Any] = {
        n: torch.zeros(count, *k.base, dtype=DOUBLE) for n, k in model.inputs.items()
    } | {"F": f, "t": torch.ones(count, dtype=DOUBLE)}  # fmt: skip
    pairs = [("first_piola_kirchhoff_stress", "F"), ("Ep", "F")]
    run = Interpreter(with_jacobian(prepared(model), pairs))
    found = run(given)[0]
    c = f.transpose(1, 2) @ f
    values, directions = torch.linalg.eigh(c)
    strain = directions @ torch.diag_embed(0.5 * values.log()) @ directions.transpose(1, 2)
    alone = {n: x for n, x in given.items() if n != "F"} | {"E": mandel(strain)}
    small = Interpreter(prepared(inner))(alone)[0]
    assert float(small["Ep"].abs().amax()) > 0.1
    for name in ("stress", "Ep"):
        torch.testing.assert_close(found[name], small[name], rtol=1e-10, atol=1e-9)
    source = torch.Generator().manual_seed(5)
    along = torch.randn(3, 3, generator=source, dtype=DOUBLE)

    def moved(name: str) -> Any:
        return lambda h: run({**given, "F": f + h})[0][name]

    for name in ("first_piola_kirchhoff_stress", "Ep"):
        expected = extrapolate(moved(name), along, 2e-4)
        slopes = found[f"{name}:F"]
        product = torch.einsum("...ij,ij->...", slopes, along)
        yields = (small["equivalent_plastic_strain"] > 1e-3) | (
            small["equivalent_plastic_strain"] == 0.0
        )
        torch.testing.assert_close(product[yields], expected[yields], rtol=1e-5, atol=1e-5)


def test_old_strains_come_from_old_gradients() -> None:
    rate = laws.SR2VariableRate(variable="strain")
    viscous = laws.SR2LinearCombination(from_=["strain_rate"], weights=[3.0], to="stress")
    inner = compose(rate, viscous)
    model = laws.LogarithmicStrain(model=inner)
    assert "deformation_gradient~1" in model.inputs
    assert "strain~1" not in model.inputs
    f, old = 1.2 * UNIT, 1.1 * UNIT
    given = {"deformation_gradient": f, "deformation_gradient~1": old,
             "t": torch.tensor(2.0).double(), "t~1": torch.tensor(1.5).double()}  # fmt: skip
    found = model(given)["stress"]
    expected = 3.0 * torch.log(torch.tensor(1.2 / 1.1, dtype=DOUBLE)) / 0.5
    torch.testing.assert_close(found[0], expected)


def test_single_precision_is_right_to_its_digits(elastic: Model) -> None:
    f = draw_gradients()
    run = Interpreter(prepared(elastic, dtype=torch.float32), dtype=torch.float32)
    found = run({"deformation_gradient": f.float()})[0][PAIR[0]]
    torch.testing.assert_close(found.double(), first_piola(f.float().double()), rtol=0, atol=2e-4)


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        ("strain = 'strian'", "unknown-input", "has no input 'strian'"),
        ("stress = 'sterss'", "unknown-output", "has no output 'sterss'"),
        ("stretch = 'u'", "unknown-option", "has no option 'stretch'"),
    ],
)
def test_wrong_names_are_told_where_they_stand(line: str, code: str, told: str) -> None:
    text = TEXT.replace("    cauchy_stress = 'cauchy'\n", f"    {line}\n")
    with pytest.raises(IngotError, match=told) as raised:
        build(read_text(text), "model")
    (problem,) = raised.value.problems
    assert problem.code == code
    assert problem.span is not None


def test_a_strain_that_is_no_tensor_is_refused() -> None:
    inner = laws.ScalarLinearCombination(from_=["strain"], weights=[1.0], to="stress")
    with pytest.raises(IngotError, match="is of kind Scalar, not SR2"):
        laws.LogarithmicStrain(model=inner)


def draw_inverted() -> Tensor:
    """Deformations that no body has: mirrored, flattened, turned inside out, not a number."""
    source = torch.Generator().manual_seed(9)
    drawn = UNIT + 0.25 * torch.randn(8, 3, 3, generator=source, dtype=DOUBLE)
    drawn = drawn * -torch.linalg.det(drawn).sign()[:, None, None]
    flat = torch.diag(torch.tensor([1.0, 0.0, 1.0], dtype=DOUBLE))
    mirror = torch.diag(torch.tensor([1.0, 1.0, -1.0], dtype=DOUBLE))
    return torch.cat([torch.stack([mirror, -UNIT, flat, UNIT * torch.nan]), drawn])


@pytest.mark.parametrize("executor", [Interpreter, Kernel])
def test_a_body_turned_inside_out_fails_and_no_other_point(executor: Any) -> None:
    model = laws.LogarithmicStrain(model=make_plastic(), strain="E", deformation_gradient="F")
    good, bad = draw_gradients()[::3], draw_inverted()
    run = executor(with_jacobian(prepared(model), [("kirchhoff_stress", "F")]))

    def call(f: Tensor) -> Any:
        zero = {n: torch.zeros(len(f), *k.base, dtype=DOUBLE) for n, k in model.inputs.items()}
        return run(zero | {"F": f, "t": torch.ones(len(f), dtype=DOUBLE)})

    order = torch.randperm(len(good) + len(bad), generator=torch.Generator().manual_seed(2))
    place = order.argsort()
    alone, _ = call(good)
    mixed, (status,) = call(torch.cat([good, bad])[order])
    assert status.converged[place[: len(good)]].all()
    assert not status.converged[place[len(good) :]].any()
    for name, values in mixed.items():
        rtol, atol = (0, 0) if executor is Kernel else (1e-12, 1e-12)
        torch.testing.assert_close(values[place[: len(good)]], alone[name], rtol=rtol, atol=atol)
        assert values[place[len(good) :]].isnan().all(), name


@pytest.mark.parametrize("executor", [Interpreter, Kernel])
def test_what_solves_nothing_is_nan_where_a_body_is_turned_inside_out(executor: Any) -> None:
    model = build(read_text(TEXT.replace("    jaumann_tangent = 'tangent'\n", "")), "model")
    run = executor(with_jacobian(prepared(model), [PAIR]))
    for name, values in run({"deformation_gradient": draw_inverted()})[0].items():
        assert values.isnan().flatten(1).any(1).all(), name


def test_probe_states_of_a_strain_are_numbers_though_some_bodies_are_inside_out() -> None:
    program = prepared(build(read_text(TEXT), "model"))
    probes = Probes.of_program(program)
    stress = next(v for v in program.outputs if v.name == "kirchhoff_stress")
    for node in stress.nodes:
        assert np.isfinite(probes.values(node)[1:]).all()  # but for the first: all inputs are zero
