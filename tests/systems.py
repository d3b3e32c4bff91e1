"""Equation systems for tests: residuals as functions or as input files, and their numbers."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ingot.hit import read_text
from ingot.model import build
from ingot.program import (
    Builder,
    Newton,
    Node,
    Program,
    Solve,
    Variable,
    prepared,
    sort_lines,
    verify,
)  # fmt: skip
from ingot.program.builder import Symbol
from ingot.program.differentiate import jacobian
from ingot.program.implicit import close_solve, read_items
from ingot.types import Scalar, atan
from ingot.types.elementwise import ELEMENTWISE

Array = np.ndarray
Residual = Callable[[list[Scalar], list[Scalar]], Sequence[Scalar]]


def implicit(
    residual: Residual, unknowns: int, given: int, newton: Newton | None = None
) -> Program:
    """The update u0, u1, ... that makes `residual(u, g)` zero, from guesses u* and givens g*."""
    builder = Builder()

    def variables(letter: str, count: int, op: str) -> list[Variable]:
        names = [f"{letter}{i}" for i in range(count)]
        return [Variable(n, Scalar, (), (builder.node(op, (), (n, 0)),)) for n in names]

    guesses, givens = variables("u", unknowns, "input"), variables("g", given, "input")
    columns = variables("u", unknowns, "unknown")
    node = update(builder, "update", residual, columns, givens, guesses, newton)
    outputs = [
        Variable(v.name, Scalar, (), (item,))
        for v, item in zip(columns, read_items(builder, node), strict=True)
    ]
    return verify(Program(builder.extents, (*guesses, *givens), (), tuple(outputs)))


def update(
    builder: Builder, name: str, residual: Residual, columns: Sequence[Variable],
    given: Sequence[Variable], guesses: Sequence[Variable], newton: Newton | None = None,
) -> Node:  # fmt: skip
    """The node of a solve for `columns`, placeholders of the builder."""

    def scalars(variables: Sequence[Variable]) -> list[Scalar]:
        return [Scalar((Symbol(builder, n),)) for v in variables for n in v.nodes]

    rows = residual(scalars(columns), scalars(given))
    residuals = [
        Variable(f"r{i}", Scalar, (), tuple(x.node for x in row.data)) for i, row in enumerate(rows)
    ]
    solve = Solve(name, tuple(columns), tuple(residuals), (), newton or Newton())
    return close_solve(builder, solve, [n for v in guesses for n in v.nodes])


def overshooting(u: list[Scalar], g: list[Scalar]) -> list[Scalar]:
    """Newton overshoots the root of the first, and may run in circles in the second."""
    return [
        atan(3.0 * u[0]) - g[0],
        u[1] * u[1] * u[1] - g[1] * u[1] + g[2] + 0.05 * u[0],
    ]


def evaluated(nodes: Sequence[Node], numbers: Mapping[int, Array]) -> list[Array]:
    """The values of nodes without axes, given those of inputs and unknowns."""
    known: dict[int, Array] = {}
    with np.errstate(all="ignore"):
        for node in sort_lines(nodes):
            if node.op == "const":
                known[node.id] = np.asarray(node.attr)
            elif node.args:
                known[node.id] = ELEMENTWISE[node.op].numpy(*(known[a.id] for a in node.args))
            else:
                known[node.id] = numbers[node.id]
    return [known[n.id] for n in nodes]


def node_of(program: Program) -> Node:
    """The one solve of a program."""
    (node,) = (n for n in program.lines if n.op == "solve")
    return node


def numbers_of(program: Program, states: Sequence[Mapping[str, Array]]) -> dict[int, Array]:
    """The numbers that the lines of a program's one solve read, at several states.

    Unknowns are as the states say, arguments what the program makes of its inputs.
    """
    node = node_of(program)
    solve: Solve = node.attr

    def numbers(variables: Sequence[Variable]) -> dict[int, Array]:
        found: dict[int, Array] = {}
        for v in variables:
            rows = np.stack([np.asarray(s[v.name], float).reshape(-1) for s in states], axis=1)
            found |= {n.id: row for n, row in zip(v.nodes, rows, strict=True)}
        return found

    outside = evaluated(node.args[len(solve.columns) :], numbers(program.inputs))
    given = zip(solve.given, outside, strict=True)
    return numbers(solve.unknowns) | {g.id: np.broadcast_to(x, len(states)) for g, x in given}


def dense(solve: Solve, numbers: Mapping[int, Array]) -> tuple[Array, Array]:
    """The Jacobians (states, n, n) and residuals (states, n) of a solve."""
    size, count = len(solve.columns), len(numbers[solve.columns[0].id])
    matrix = np.zeros((count, size, size))
    builder = Builder({}, sort_lines((*solve.rows, *solve.columns, *solve.given)))
    tangents = jacobian(builder, solve.rows, solve.columns)
    places = [(i, j) for i, row in enumerate(tangents) for j, _ in row]
    entries = evaluated([a for row in tangents for a in row.values()], numbers)
    for (i, j), entry in zip(places, entries, strict=True):
        matrix[:, i, j] = entry
    rows = [np.broadcast_to(r, count) for r in evaluated(solve.rows, numbers)]
    return matrix, np.stack(rows, axis=1)


def solved(matrix: Array, right: Array) -> Array:
    """The solution of a dense system whose rows and columns may differ widely in scale."""
    left = 1.0 / np.abs(matrix).max(axis=1)
    scaled = matrix * left[:, None]
    across = 1.0 / np.abs(scaled).max(axis=0)
    return across * np.linalg.solve(scaled * across, right * left)


LAWS = """
  [elastic_strain]
    type = SR2LinearCombination
    from = 'E plastic_strain'
    to = 'elastic_strain'
    weights = '1 -1'
  []
  [elasticity]
    type = LinearIsotropicElasticity
    coefficients = '1.2e5 ${nu}'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
    strain = 'elastic_strain'
  []
  [overstress]
    type = SR2LinearCombination
    from = '${stresses}'
    weights = '${signs}'
    to = 'overstress'
  []
  [vonmises]
    type = SR2Invariant
    invariant_type = 'VONMISES'
    tensor = 'overstress'
    invariant = 'effective_stress'
  []
  [flow]
    type = ComposedModel
    models = 'overstress vonmises surface'
  []
  [flow_plastically]
    type = AssociativePlasticFlow
  []
  [integrate_plastic_strain]
    type = SR2BackwardEulerTimeIntegration
    variable = 'plastic_strain'
  []
  [consistency]
    type = ${complementarity}
    a = 'yield_function'
    b = 'flow_rate'
  []
"""
SOFT = """
  [surface]
    type = YieldFunction
    yield_stress = 180
  []
  [normality]
    type = Normality
    model = 'flow'
    function = 'yield_function'
    from = 'stress'
    to = 'flow_direction'
  []
"""
ISOTROPIC = """
  [surface]
    type = YieldFunction
    yield_stress = 180
    isotropic_hardening = 'isotropic_hardening'
  []
  [normality]
    type = Normality
    model = 'flow'
    function = 'yield_function'
    from = 'stress isotropic_hardening'
    to = 'flow_direction isotropic_hardening_direction'
  []
  [harden]
    type = VoceIsotropicHardening
    saturated_hardening = 90
    saturation_rate = 14
  []
  [accumulate]
    type = AssociativeIsotropicPlasticHardening
  []
  [integrate_equivalent]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'equivalent_plastic_strain'
  []
"""
KINEMATIC = """
  [shift]
    type = ChabochePlasticHardening
    back_stress = 'X'
    C = 4000
    g = 0
    A = 0
    a = 1
  []
  [integrate_shift]
    type = SR2BackwardEulerTimeIntegration
    variable = 'X'
  []
"""
UPDATE = """
[Models]
  [update]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
    predictor = 'guess'
  []
[]
[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'residual'
    unknowns = '${unknowns}'
    residuals = '${residuals}'
  []
[]
[Solvers]
  [newton]
    type = ${solver}
  []
[]
"""


def plasticity(complementarity: str, *, isotropic: bool, kinematic: bool, nu: float = 0.3) -> str:
    """A rate-independent model: `update` solves for plastic strain, hardening and flow rate."""
    models = "elastic_strain elasticity overstress vonmises surface normality flow_plastically"
    models += " integrate_plastic_strain consistency"
    scalars, tensors = ["flow_rate"], ["plastic_strain"]
    laws = LAWS + (ISOTROPIC if isotropic else SOFT)
    if isotropic:
        models += " harden accumulate integrate_equivalent"
        scalars.insert(0, "equivalent_plastic_strain")
    if kinematic:
        laws += KINEMATIC
        models += " shift integrate_shift"
        tensors.append("X")
    unknowns = [*tensors, *scalars]
    residuals = [f"{name}_residual" for name in unknowns[:-1]] + ["complementarity"]
    words = {
        "nu": nu,
        "complementarity": complementarity,
        "stresses": "stress X" if kinematic else "stress",
        "signs": "1 -1" if kinematic else "1",
        "unknowns": " ".join(unknowns),
        "residuals": " ".join(residuals),
        "solver": "Newton",
    }
    rest = f"""
  [residual]
    type = ComposedModel
    models = '{models}'
  []
  [guess]
    type = ConstantExtrapolationPredictor
    unknowns_SR2 = '{" ".join(tensors)}'
    unknowns_Scalar = '{" ".join(scalars)}'
  []
"""
    return filled(f"[Models]{laws}{rest}[]{UPDATE}", words)


VISCOUS = """
  [harden]
    type = VoceIsotropicHardening
    saturated_hardening = 60
    saturation_rate = 3
  []
  [shift]
    type = SR2LinearCombination
    from = 'X Y'
    to = 'shift'
    weights = '1 1'
  []
  [overstress]
    type = SR2LinearCombination
    from = 'stress shift'
    to = 'overstress'
    weights = '1 -1'
  []
  [vonmises]
    type = SR2Invariant
    invariant_type = 'VONMISES'
    tensor = 'overstress'
    invariant = 'effective_stress'
  []
  [surface]
    type = YieldFunction
    yield_stress = 12
    isotropic_hardening = 'isotropic_hardening'
  []
  [flow]
    type = ComposedModel
    models = 'overstress vonmises surface'
  []
  [normality]
    type = Normality
    model = 'flow'
    function = 'yield_function'
    from = 'stress isotropic_hardening'
    to = 'flow_direction isotropic_hardening_direction'
  []
  [rate]
    type = PerzynaPlasticFlowRate
    reference_stress = 150
    exponent = 4
  []
  [accumulate]
    type = AssociativeIsotropicPlasticHardening
  []
  [flow_plastically]
    type = AssociativePlasticFlow
  []
  [X_rate]
    type = ChabochePlasticHardening
    back_stress = 'X'
    C = 8000
    g = 120
    A = 1e-7
    a = 1.3
  []
  [Y_rate]
    type = ChabochePlasticHardening
    back_stress = 'Y'
    C = 900
    g = 7
    A = 1e-9
    a = 2.7
  []
  [strain_rate]
    type = SR2VariableRate
    variable = 'E'
  []
  [elastic_rate]
    type = SR2LinearCombination
    from = 'E_rate plastic_strain_rate'
    to = 'strain_rate'
    weights = '1 -1'
  []
  [elasticity]
    type = LinearIsotropicElasticity
    coefficients = '1.5e5 ${nu}'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
    rate_form = true
  []
  [integrate_equivalent]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'equivalent_plastic_strain'
  []
  [integrate_X]
    type = SR2BackwardEulerTimeIntegration
    variable = 'X'
  []
  [integrate_Y]
    type = SR2BackwardEulerTimeIntegration
    variable = 'Y'
  []
  [integrate_stress]
    type = SR2BackwardEulerTimeIntegration
    variable = 'stress'
  []
  [residual]
    type = ComposedModel
    models = 'harden shift overstress vonmises surface normality rate accumulate flow_plastically
              X_rate Y_rate strain_rate elastic_rate elasticity integrate_stress
              integrate_equivalent integrate_X integrate_Y'
  []
  [guess]
    type = ConstantExtrapolationPredictor
    unknowns_SR2 = 'stress X Y'
    unknowns_Scalar = 'equivalent_plastic_strain'
  []
"""


def viscoplasticity(*, nu: float = 0.3) -> str:
    """A viscoplastic model with two back stresses: `update` solves for stress and hardening."""
    unknowns = ("stress", "equivalent_plastic_strain", "X", "Y")
    words = {
        "nu": nu,
        "unknowns": " ".join(unknowns),
        "residuals": " ".join(f"{name}_residual" for name in unknowns),
        "solver": "Newton",
    }
    return filled(f"[Models]{VISCOUS}[]{UPDATE}", words)


def filled(text: str, words: Mapping[str, object]) -> str:
    """An input file with its ${...} written out."""
    for name, value in words.items():
        text = text.replace(f"${{{name}}}", str(value))
    return text


def program_of(text: str, model: str = "update") -> Program:
    """The program of a model in an input file."""
    return prepared(build(read_text(text), model))
