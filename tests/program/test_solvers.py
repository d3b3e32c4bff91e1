"""Blocks of `[Solvers]`: linear solvers are checked, and all give the same exact elimination."""

import pytest
import torch

from ingot import IngotError
from ingot.execute.interpret import Interpreter
from ingot.hit import read_text
from ingot.model import build
from ingot.program import Newton, prepared, verify
from ingot.program.combinators import ImplicitUpdate

FILE = """
[Models]
  [first]
    type = ScalarLinearCombination
    from = 'a b f'
    weights = '3 1 -1'
    to = 'ra'
  []
  [second]
    type = ScalarMultiplication
    from = 'b b'
    to = 'square'
  []
  [third]
    type = ScalarLinearCombination
    from = 'a square g'
    weights = '0.1 1 -1'
    to = 'rb'
  []
  [residual]
    type = ComposedModel
    models = 'first second third'
  []
  [update]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
    {more}
  []
[]
[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'residual'
    unknowns = '{unknowns}'
    residuals = '{residuals}'
    {structure}
  []
[]
[Solvers]
  [newton]
    type = Newton
    abs_tol = 1e-14
    rel_tol = 1e-14
    linear_solver = 'linear'
  []
  [linear]
    {linear}
  []
  [lu]
    type = DenseLU
  []
  [jacobi]
    type = JacobiPreconditioner
  []
[]
"""

SCHUR = "type = SchurComplement\nprimary_solver = 'lu'\nschur_solver = 'lu'"
INPUTS = {"a": 0.0, "b": 1.0, "f": 1.0, "g": 2.0}
LINEAR = {
    "lu": "type = DenseLU",
    "schur": SCHUR + "\nresidual_primary_group = 1\nunknown_primary_group = 0",
    "nested": "type = SchurComplement\nprimary_solver = 'inner'\nschur_solver = 'lu'",
    "gmres": "type = GMRES\nrestart = 5\nrel_tol = 1e-3\npreconditioner = 'jacobi'",
    "bicgstab": "type = BiCGStab\nmax_its = 7\ncache_strategy = 'chord'\ncache_max_its = 3",
}


def text(
    linear: str, *, more: str = "", unknowns: str = "a; b", residuals: str = "ra; rb",
    structure: str = "",
) -> str:  # fmt: skip
    inner = "[inner]\n    type = GMRES\n  []\n  [lu]"
    filled = FILE.format(
        linear=linear, more=more, unknowns=unknowns, residuals=residuals, structure=structure
    )
    return filled.replace("[lu]", inner, 1)


def refused(linear: str, **more: str) -> str:
    with pytest.raises(IngotError) as raised:
        build(read_text(text(linear, **more), "file.i"), "update")
    return str(raised.value)


@pytest.mark.parametrize("name", LINEAR)
def test_every_linear_solver_leads_to_the_same_exact_updates(name: str) -> None:
    more = "input_sensitivity_solver = 'linear'\nparam_sensitivity_solver = 'lu'"
    program = verify(prepared(build(read_text(text(LINEAR[name], more=more)), "update")))
    inputs = {n: torch.tensor(x, dtype=torch.float64) for n, x in INPUTS.items()}
    results, (status,) = Interpreter(program)(inputs)
    reference = prepared(build(read_text(text(LINEAR["lu"])), "update"))
    expected, (told,) = Interpreter(reference)(inputs)
    assert torch.equal(results["a"], expected["a"]) and torch.equal(results["b"], expected["b"])
    assert int(status.iterations) == int(told.iterations)
    a, b = float(results["a"]), float(results["b"])
    assert abs(3 * a + b - 1.0) < 1e-14 and abs(0.1 * a + b * b - 2.0) < 1e-14


def test_tolerance_of_a_krylov_solve_is_not_that_of_newton() -> None:
    model = build(read_text(text(LINEAR["gmres"])), "update")
    assert isinstance(model.body, ImplicitUpdate)
    assert model.body.newton == Newton(abs_tol=1e-14, rel_tol=1e-14)


@pytest.mark.parametrize(
    ("linear", "told"),
    [
        ("type = GMRS", "no linear solver 'GMRS'"),
        ("type = JacobiPreconditioner", "no linear solver 'JacobiPreconditioner'"),
        ("type = DenseLU\nrestart = 4", "DenseLU has no option 'restart'"),
        ("type = DenseLU\nprimary_solver = 'linear'", "DenseLU has no option 'primary_solver'"),
        ("type = BiCGStab\nrestart = 4", "BiCGStab has no option 'restart'"),
        ("type = GMRES\nrestart = 1.5", "'restart' should be an integer"),
        (
            "type = GMRES\nmax_its = 0",
            "'max_its' should be a whole number of at least 1 and at most 2147483647, but is '0'",
        ),
        (
            "type = GMRES\nrel_tol = -1",
            "'rel_tol' should be a finite number of at least 0, but is '-1'",
        ),
        ("type = GMRES\ncache_strategy = 'cord'", "did you mean 'chord'?"),
        ("type = GMRES\npreconditioner = 'lu'", "no preconditioner 'DenseLU'"),
        ("type = GMRES\npreconditioner = 'jacob'", "jacob"),
        ("type = SchurComplement\nprimary_solver = 'lu'", "needs the option 'schur_solver'"),
        (SCHUR + "\nunknown_primary_group = 2", "should be a whole number from 0 to 1, but is '2'"),
        (SCHUR.replace("'lu'", "'linear'", 1), "solves 2 groups of unknowns, not 1"),
    ],
)
def test_wrong_linear_solver_is_told(linear: str, told: str) -> None:
    assert told in refused(linear)


def test_all_problems_of_a_linear_solver_are_told_at_once() -> None:
    found = refused("type = GMRES\nrestrt = 4\nmax_its = no\nabs_tol = -1\npreconditioner = 'lu'")
    assert found.count("error[") == 4


def test_schur_complement_needs_two_groups() -> None:
    assert "2 groups of unknowns, not 1" in refused(SCHUR, unknowns="a b", residuals="ra rb")


def test_sensitivity_solvers_are_checked() -> None:
    for name in ("input_sensitivity_solver", "param_sensitivity_solver"):
        assert "no linear solver 'Newton'" in refused(LINEAR["lu"], more=f"{name} = 'newton'")


def test_residuals_are_grouped_as_unknowns_are() -> None:
    assert "same groups" in refused(LINEAR["lu"], residuals="ra rb")


@pytest.mark.parametrize(
    ("structure", "told"),
    [("dense", "1 entries, but there are 2 groups"), ("dense blok", "did you mean 'block'?")],
)
def test_structure_has_a_known_entry_for_each_group(structure: str, told: str) -> None:
    assert told in refused(LINEAR["lu"], structure=f"structure = '{structure}'")


def test_structure_is_read_whatever_its_capitals() -> None:
    build(read_text(text(LINEAR["lu"], structure="structure = 'BLOCK dense'")), "update")


def test_old_value_of_a_ramped_given_is_an_input() -> None:
    more = "incremental_variables = 'f'\nmax_substepping_level = 0"
    model = build(read_text(text(LINEAR["lu"], more=more)), "update")
    assert list(model.inputs) == ["a", "b", "f", "g", "f~1"]
    results, _ = Interpreter(prepared(model))(
        {n: torch.tensor(x, dtype=torch.float64) for n, x in {**INPUTS, "f~1": 9.0}.items()}
    )
    assert abs(3 * float(results["a"]) + float(results["b"]) - 1.0) < 1e-14


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("incremental_variables = 'a'", "[residual] is not given 'a'"),
        ("incremental_variables = 'force'", "[residual] is not given 'force'"),
        (
            "max_substepping_level = -1",
            "'max_substepping_level' should be a whole number of at least 0",
        ),
    ],
)
def test_wrong_substeps_are_told(more: str, told: str) -> None:
    assert told in refused(LINEAR["lu"], more=more)
