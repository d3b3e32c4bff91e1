"""An elimination written out at compile time solves what a dense solve solves, at every state."""

import itertools
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest

import ingot
import ingot.program.forms as module
from ingot.errors import IngotError
from ingot.program import Node, Program, Solve, sort_lines
from ingot.program.eliminate import Attempt, Eliminated, Form, eliminate, solve_again
from ingot.program.forms import choose_form, tell_states
from ingot.program.probe import Probes
from ingot.types import Scalar, add_up, atan, exp, minimum, sqrt
from tests.systems import (
    Array,
    dense,
    evaluated,
    implicit,
    node_of,
    numbers_of,
    overshooting,
    plasticity,
    program_of,
    solved,
)  # fmt: skip

FORMS: tuple[Form, ...] = ("jacobian", "accumulated", "extended")
PATHS = (Path(ingot.__file__).parents[1], Path(__file__).parents[2])
State = Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class System:
    """A program with one solve, eliminated in each form for any right-hand side."""

    program: Program

    @cached_property
    def attempt(self) -> Attempt:
        node = node_of(self.program)
        return Attempt(
            self.program, node.attr, Probes.of_program(self.program).enter(node, node.attr)
        )

    @property
    def solve(self) -> Solve:
        return self.attempt.solve

    @cached_property
    def forms(self) -> dict[Form, Eliminated]:
        return {form: eliminate(self.attempt, form) for form in FORMS}

    @cached_property
    def sides(self) -> dict[Form, list[Node]]:
        """A right-hand side among the lines of each form."""
        size = len(self.solve.columns)
        return {
            form: [found.builder.node("unknown", (), ("side", i)) for i in range(size)]
            for form, found in self.forms.items()
        }

    @cached_property
    def again(self) -> dict[tuple[Form, bool], Eliminated]:
        """Each form for any right-hand side, with the Jacobian and with its transpose."""
        return {
            (form, transposed): solve_again(
                self.attempt, found, self.sides[form], transposed=transposed
            )
            for form, found in self.forms.items()
            for transposed in (False, True)
        }

    def residual(self, state: State) -> Array:
        numbers = numbers_of(self.program, [state])
        return np.array(evaluated(self.solve.rows, numbers), float)[:, 0]

    def matrices(self, states: Sequence[State]) -> Array:
        return dense(self.solve, numbers_of(self.program, states))[0]

    def solutions(
        self, form: Form, states: Sequence[State], right: Array, *, transposed: bool = False
    ) -> tuple[Array, Array]:
        """What a form gives at each state for a right-hand side each, and whether it is suspect."""
        numbers = numbers_of(self.program, states)
        numbers |= {side.id: right[:, i] for i, side in enumerate(self.sides[form])}
        found, suspect = self.again[form, transposed], self.forms[form].suspect
        roots = [*found.update, *([suspect] if suspect else [])]
        values = [np.broadcast_to(x, len(states)) for x in evaluated(roots, numbers)]
        count = len(found.update)
        return np.stack(values[:count], axis=1), np.array(
            [*values[count:], np.zeros(len(states))][0]
        )

    def distances(self, found: Array, expected: Array) -> Array:
        """The largest difference at each state, relative to the largest entry of each unknown."""
        worst, at = np.zeros(len(found)), 0
        for v in self.solve.unknowns:
            part = slice(at, at + len(v.nodes))
            size = np.abs(expected[:, part]).max(axis=1)
            worst = np.maximum(worst, np.abs(found - expected)[:, part].max(axis=1) / size)
            at += len(v.nodes)
        return worst


def assert_forms_agree(
    system: System, states: Mapping[str, State], tolerance: float = 1e-10
) -> None:
    """Every form agrees with a dense solve, and none refuses its own result."""
    matrix = system.matrices(list(states.values()))
    right = np.random.default_rng(len(states)).standard_normal(matrix.shape[:2])
    right *= np.abs(matrix).max(axis=2)
    expected = np.stack([solved(a, b) for a, b in zip(matrix, right, strict=True)])
    for form in FORMS:
        found, suspect = system.solutions(form, list(states.values()), right)
        left = np.einsum("sij,sj->si", matrix, found) - right
        refused = ~((left**2).sum(axis=1) <= 1e-12 * (right**2).sum(axis=1))
        assert not suspect.any(), (form, list(states), suspect)
        assert not refused.any(), (form, list(states), refused)
        far = system.distances(found, expected) > tolerance
        assert not far.any(), (
            form,
            [name for name, wrong in zip(states, far, strict=True) if wrong],
        )


# rate-independent plasticity

LOADING = np.array([1.0, -0.45, -0.55, 0.3, -0.2, 0.4])
PLASTIC = list(itertools.product(("MinMap", "FB"), (False, True), (False, True)))


def room(system: System, state: State, flow: str = "flow_rate") -> float:
    """How far a state is below yield: what its complementarity is where the flow rate is large."""
    return float(system.residual({**state, flow: np.array(1e7)})[-1])


def at_yield(system: System, state: State, by: str) -> State:
    """The state with one of its values scaled until it is at yield."""
    low, high = 0.0, 1.0
    for _ in range(100):
        scale = (low + high) / 2
        inside = room(system, {**state, by: scale * state[by]}) > 0
        low, high = (scale, high) if inside else (low, scale)
    return {**state, by: low * state[by]}


def plastic_states(system: System) -> dict[str, State]:
    """Zero, elastic, plastic, at yield, and where both sides of a minimum are equal."""
    variables = (*system.program.inputs, *system.solve.unknowns)
    zero: dict[str, Array] = {v.name: np.zeros(v.kind.base) for v in variables}
    zero["t"] = np.array(1.0)
    flow = {
        "E": 1e-2 * LOADING, "plastic_strain": 4e-3 * LOADING, "flow_rate": np.array(6e-3),
        "equivalent_plastic_strain": np.array(5e-3), "X": 20 * LOADING, "X~1": 15 * LOADING,
    }  # fmt: skip
    yielding = at_yield(system, {**zero, "E": 1e-2 * LOADING}, "E")
    below = {**yielding, "E": yielding["E"] * (1 - 1e-5)}
    assert 0 < room(system, below) < 0.1
    return {
        "zero": zero,
        "elastic": {**zero, "E": 5e-4 * LOADING},
        "plastic": {**zero, **{name: x for name, x in flow.items() if name in zero}},
        "yield": yielding,
        "tie": {**below, "flow_rate": np.array(room(system, below))},
    }


@pytest.fixture(scope="module", params=PLASTIC, ids=lambda p: f"{p[0]}-iso{p[1]:d}-kin{p[2]:d}")
def plastic(request: pytest.FixtureRequest) -> System:
    map_, isotropic, kinematic = request.param
    text = plasticity(f"{map_}Complementarity", isotropic=isotropic, kinematic=kinematic)
    return System(program_of(text))


def test_every_form_solves_plasticity_at_corner_states(plastic: System) -> None:
    assert_forms_agree(plastic, plastic_states(plastic))


def test_every_form_solves_plasticity_at_random_states(plastic: System) -> None:
    rng = np.random.default_rng(7)
    middle = plastic_states(plastic)["plastic"]

    def drawn() -> State:
        spread = {
            n: 10 ** rng.uniform(-3, 1) + rng.normal(0, 0.3, x.shape) for n, x in middle.items()
        }
        return {n: x if n.startswith("t") else x * spread[n] for n, x in middle.items()}

    # The slope of FB's root loses the digits that a stiffness of 1e5 has more than a rate.
    assert_forms_agree(plastic, {f"random {i}": drawn() for i in range(40)}, tolerance=1e-8)


def test_the_same_factors_solve_the_transposed_system(plastic: System) -> None:
    states = [s for name, s in plastic_states(plastic).items() if name in ("elastic", "plastic")]
    matrix = plastic.matrices(states)
    right = np.random.default_rng(5).standard_normal(matrix.shape[:2])
    expected = np.stack([solved(a.T, b) for a, b in zip(matrix, right, strict=True)])
    for form in FORMS:
        found, _ = plastic.solutions(form, states, right, transposed=True)
        scale = np.abs(expected).max(axis=1, keepdims=True)
        np.testing.assert_allclose(found / scale, expected / scale, atol=1e-9, err_msg=form)


# mixed control

BULK, SHEAR, YIELD, SLOPE = 9e4, 4e4, 150.0, 2e3
PATTERNS = list(itertools.product((False, True), repeat=6))


def mixed(pattern: Sequence[bool]) -> Program:
    """Unknown: the stress where a component's strain is prescribed, its strain where its stress is.

    u6 is the plastic multiplier; g0..g5 are prescribed, g6..g11 the old plastic strain, g12 yield.
    """

    def residual(u: list[Scalar], g: list[Scalar]) -> list[Scalar]:
        stress = [g[i] if given else u[i] for i, given in enumerate(pattern)]
        strain = [u[i] if given else g[i] for i, given in enumerate(pattern)]
        third = add_up(stress[:3]) * (1 / 3)
        shear = [s - third if i < 3 else s for i, s in enumerate(stress)]
        size = sqrt(add_up([1.5 * s * s for s in shear]) + 2.0**-52)
        elastic = [strain[i] - g[6 + i] - u[6] * (1.5 * shear[i] / size) for i in range(6)]
        volume = add_up(elastic[:3]) * (BULK - 2 * SHEAR / 3)
        rows = [
            stress[i] - 2 * SHEAR * elastic[i] - volume
            if i < 3
            else stress[i] - 2 * SHEAR * elastic[i]
            for i in range(6)
        ]
        return [*rows, minimum(g[12] + SLOPE * u[6] - size, u[6])]

    return implicit(residual, 7, 13)


def mixed_states(system: System, pattern: Sequence[bool]) -> dict[str, State]:
    names = [f"u{i}" for i in range(7)] + [f"g{i}" for i in range(13)]
    zero = {name: np.array(YIELD if name == "g12" else 0.0) for name in names}

    def loaded(stress: float, multiplier: float) -> dict[str, Array]:
        state = {**zero, "u6": np.array(multiplier)}
        for i, given in enumerate(pattern):
            s, e = stress * LOADING[i], stress * LOADING[i] / SHEAR
            state[f"g{i}"], state[f"u{i}"] = (s, e) if given else (e, s)
            state[f"g{i + 6}"] = np.array(1e-4 * LOADING[i])
        return state

    tie = loaded(80.0, 0.0)
    tie["g12"] = -system.residual({**tie, "g12": np.array(0.0)})[6]
    assert system.residual({**tie, "u6": np.array(-1.0)})[6] == -SLOPE, "not at yield"
    return {
        "zero": zero,
        "elastic": loaded(40.0, 0.0),
        "plastic": loaded(120.0, 2e-4),
        "tie": tie,
    }


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: "".join("es"[c] for c in p))
def test_every_form_solves_mixed_control(pattern: tuple[bool, ...]) -> None:
    system = System(mixed(pattern))
    states = mixed_states(system, pattern)
    assert_forms_agree(system, states)
    branch = {name: system.residual({**s, "u6": s["u6"] + 1e-9})[6] for name, s in states.items()}
    assert branch["elastic"] == 1e-9 and branch["plastic"] < 0, (
        "states are not what they are called"
    )


# orders


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("form", FORMS)
def test_a_permuted_identity_is_solved_exactly(form: Form, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(7)
    assert_solves_permutation(form, order)


@pytest.mark.parametrize("form", FORMS)
def test_a_permutation_with_a_zero_diagonal_is_solved_exactly(form: Form) -> None:
    assert_solves_permutation(form, np.roll(np.arange(7), 1))


def assert_solves_permutation(form: Form, order: Array) -> None:
    def residual(u: list[Scalar], g: list[Scalar]) -> list[Scalar]:
        return [u[j] - g[i] for i, j in enumerate(order)]

    system = System(implicit(residual, 7, 7))
    right = np.random.default_rng(1).standard_normal((1, 7))
    zero = {f"{letter}{i}": np.array(0.0) for letter in "ug" for i in range(7)}
    found, suspect = system.solutions(form, [zero], right)
    assert not suspect.any()
    np.testing.assert_array_equal(found[0, order], right[0])


def test_unknowns_that_miss_their_own_residuals_are_solved() -> None:
    def residual(u: list[Scalar], g: list[Scalar]) -> list[Scalar]:
        return [
            u[1] * u[1] * u[1] + u[1] - g[0],
            exp(u[2]) + u[1] - g[1],
            u[0] + u[1] * u[2] - g[2],
        ]

    rng = np.random.default_rng(3)
    names = [f"{letter}{i}" for letter in "ug" for i in range(3)]
    states = {str(k): {n: np.array(rng.normal()) for n in names} for k in range(20)}
    states["zero"] = dict.fromkeys(names, np.array(0.0))
    assert_forms_agree(System(implicit(residual, 3, 3)), states)


def chain(shift: float) -> Program:
    """An entry (0, 0) that is the cheapest pivot, and vanishes at u0 = -shift."""

    def rising(x: Scalar) -> Scalar:
        return 2.0 * x + atan(x)

    def residual(u: list[Scalar], g: list[Scalar]) -> list[Scalar]:
        near = u[0] + shift
        return [
            0.5 * near * near + rising(u[1]) - g[0],
            rising(u[0]) + 2.0 * rising(u[1]) + rising(u[2]) - g[1],
            3.0 * rising(u[1]) - rising(u[2]) - g[2],
        ]

    return implicit(residual, 3, 3)


@pytest.mark.parametrize("form", ("jacobian", "accumulated"))
def test_a_pivot_that_vanishes_at_a_probe_state_is_not_used(form: Form) -> None:
    system = System(chain(shift=0.0))
    assert (0, 0) not in unknown_pivots(system, form)
    states = {"zero": dict.fromkeys((v.name for v in system.program.inputs), np.array(0.0))}
    assert_forms_agree(system, states)
    assert (0, 0) in unknown_pivots(System(chain(shift=500.0)), form), "it was no temptation"


def unknown_pivots(system: System, form: Form) -> list[tuple[int, int]]:
    """Pivots of residual rows, the rows of intermediates not counted."""
    found = system.forms[form]
    lines = len(found.pivots) - len(system.solve.columns)
    return [(i - lines, j) for i, j in found.pivots if i >= lines]


def nowhere(u: list[Scalar], g: list[Scalar]) -> list[Scalar]:
    return [u[0] - g[0], u[0] * u[0] - g[1]]


def constant(u: list[Scalar], g: list[Scalar]) -> list[Scalar]:
    return [u[0] + u[1] - g[0], g[1] * g[0]]


def twice(u: list[Scalar], g: list[Scalar]) -> list[Scalar]:
    return [u[0] + u[1] - g[0], u[0] + u[1] - g[1]]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("residual", (nowhere, constant, twice))
def test_a_system_that_is_singular_whatever_its_values_is_refused(residual, form: Form) -> None:
    system = System(implicit(residual, 2, 2))
    with pytest.raises(IngotError, match=r"\[update\] are singular .* decide 'u[01]'") as raised:
        eliminate(system.attempt, form)
    assert raised.value.problems[0].code == "singular-system"


# costs


def test_the_extended_form_is_taken_only_where_it_saves_a_third(plastic: System) -> None:
    best, costs = choose_form(plastic.attempt)
    safe = min(costs["jacobian"], costs["accumulated"])
    assert best.operations == costs[best.form]
    if best.form == "extended":
        assert best.operations <= safe * 2 / 3
        assert best.risk == 0
    else:
        assert best.operations == safe


def test_plasticity_is_worth_the_extended_form_and_two_equations_are_not() -> None:
    for isotropic, kinematic in ((False, False), (False, True), (True, False)):
        text = plasticity("MinMapComplementarity", isotropic=isotropic, kinematic=kinematic)
        assert choose_form(System(program_of(text)).attempt)[0].form == "extended"
    plain = implicit(overshooting, 2, 3)
    assert choose_form(System(plain).attempt)[0].form != "extended"


def test_a_border_is_tried_only_where_most_probe_states_are_states_of_the_model() -> None:
    def rooted(u: list[Scalar], g: list[Scalar]) -> list[Scalar]:
        """Defined where all givens are above ten, which no random state is."""
        return [u[0] - sqrt(g[0] - 10.0) * sqrt(g[1] - 10.0), u[1] + u[0] * u[0]]

    attempt = System(implicit(rooted, 2, 2)).attempt
    assert not tell_states(attempt, eliminate(attempt, "jacobian"))
    plain = System(implicit(overshooting, 2, 3)).attempt
    assert tell_states(plain, eliminate(plain, "jacobian"))


def meeting(u: list[Scalar], g: list[Scalar]) -> list[Scalar]:
    """Neighbours in a chain, each fed by what the sum of all has left."""
    left = g[0] - add_up(u)
    return [
        x - 0.3 * before - exp(-0.1 * i) * left * x
        for i, (x, before) in enumerate(zip(u, [g[1], *u[:-1]], strict=True))
    ]


def test_unknowns_that_all_meet_in_a_sum_are_eliminated_around_it() -> None:
    count = 48
    system = System(implicit(meeting, count, 2))
    newton, costs = choose_form(system.attempt)
    assert (newton.form, list(costs)) == ("extended", ["extended"])
    assert newton.operations < 60 * count  # its Jacobian alone has 2 304 entries
    source = np.random.default_rng(1)
    names = [v.name for v in system.program.inputs]
    states = [{name: source.uniform(0.1, 1.0, 1) for name in names} for _ in range(5)]
    numbers = numbers_of(system.program, states)
    update = np.stack(evaluated(newton.update, numbers), axis=1)
    residuals = np.stack([system.residual(state) for state in states])
    exact = np.linalg.solve(system.matrices(states), -residuals[..., None])[..., 0]
    np.testing.assert_allclose(update, exact, rtol=1e-9, atol=1e-12)


def test_a_dense_system_that_no_sum_explains_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def crossed(u: list[Scalar], g: list[Scalar]) -> list[Scalar]:
        return [
            add_up([exp(0.1 * (1 + (i * j + i) % 7) * x) for j, x in enumerate(u)])
            for i in range(9)
        ]

    monkeypatch.setattr(module, "MIN_DENSE_UNKNOWNS", 9)
    monkeypatch.setattr(module, "MAX_DENSE_OPERATIONS", 100)
    with pytest.raises(IngotError) as raised:
        choose_form(System(implicit(crossed, 9, 1)).attempt)
    (problem,) = raised.value.problems
    assert problem.code == "program-too-long"
    assert "9 unknowns of [update]" in problem.message


def test_operations_are_those_that_the_residual_does_not_have(plastic: System) -> None:
    found = plastic.forms["jacobian"]
    lines: dict[int, Node] = {}
    stack = [*found.update]
    residual = {n.id for n in sort_lines(plastic.solve.rows)}
    while stack:
        node = stack.pop()
        if node.id not in lines and node.id not in residual:
            lines[node.id] = node
            stack += node.args
    leaves = ("const", "unknown", "given")
    assert found.operations == sum(node.op not in leaves for node in lines.values())


SAME = """
from hashlib import sha256
from ingot.codegen.source import write_source
from ingot.program import compile_passes
from tests.systems import plasticity, program_of
text = plasticity("MinMapComplementarity", isotropic=True, kinematic=True)
print(sha256(write_source(compile_passes(program_of(text))).encode()).hexdigest())
"""


def test_two_processes_write_the_same_source() -> None:
    path = os.pathsep.join(map(str, PATHS))
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", SAME],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": seed},
        )
        for seed in ("1", "2")
    ]
    first, second = (run.communicate()[0].strip() for run in runs)
    assert len(first) == 64 and first == second
