"""A step that fails whole is taken in parts: the states and derivatives of the parts prescribed."""

import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import Tensor

from ingot.errors import IngotError
from ingot.execute import Reason, Status
from ingot.execute.inductor import lower, plan_graphs
from ingot.execute.inductor_metadata import ImplicitSegment
from ingot.execute.inductor_run import InductorProgram
from ingot.execute.interpret import Interpreter
from ingot.execute.kernel import Kernel
from ingot.execute.newton import StepsInParts
from ingot.hit import read, read_text
from ingot.model import build
from ingot.program import Program, freeze, trace, with_adjoint, with_jacobian
from ingot.program.pipeline import Choices
from ingot.types import lag
from tests.packages import DIFFUSION
from tests.systems import filled, viscoplasticity

Tensors = dict[str, Tensor]
Executor = Callable[[Program], Callable[[Mapping[str, Tensor]], tuple[Tensors, tuple]]]

LEVEL = 7
CUBIC = """
[Models]
  [load]
    type = ScalarLinearCombination
    from = 'weight bias'
    weights = '2 1'
    to = 'force'
  []
  [scaled]
    type = ScalarMultiplication
    from = 'x force'
    to = 'overstress'
  []
  [rate]
    type = PerzynaPlasticFlowRate
    yield_function = 'overstress'
    flow_rate = 'x_rate'
    reference_stress = 1.1
    exponent = 3
  []
  [integrate]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'x'
  []
  [late]
    type = ScalarLinearCombination
    from = 'x_residual x~2 t~2 still'
    weights = '1 -0.1 -0.02 -0.1'
    to = 'r'
  []
  [follow]
    type = ScalarLinearCombination
    from = 'x y~1 y'
    weights = '0.5 0.3 -1'
    to = 'y_residual'
  []
  [residual]
    type = ComposedModel
    models = 'scaled rate integrate late follow'
  []
  [guess]
    type = ConstantExtrapolationPredictor
    unknowns_Scalar = 'x y'
  []
  [update]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
    predictor = 'guess'
    max_substepping_level = ${level}
    incremental_variables = 'force'
  []
  [after]
    type = ScalarLinearCombination
    from = 'x y force'
    weights = '1 2 3'
    to = 'z'
  []
  [model]
    type = ComposedModel
    models = 'load update after'
    additional_outputs = 'x y'
  []
[]
[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'residual'
    unknowns = 'x y'
    residuals = 'r y_residual'
  []
[]
[Solvers]
  [newton]
    type = Newton
    max_its = 12
    rel_tol = 1e-12
  []
[]
"""
SECOND = """
[Models]
  [scaled2]
    type = ScalarMultiplication
    from = 'v x'
    to = 'overstress2'
  []
  [rate2]
    type = PerzynaPlasticFlowRate
    yield_function = 'overstress2'
    flow_rate = 'v_rate'
    reference_stress = 1.2
    exponent = 3
  []
  [integrate2]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'v'
  []
  [residual2]
    type = ComposedModel
    models = 'scaled2 rate2 integrate2'
  []
  [guess2]
    type = ConstantExtrapolationPredictor
    unknowns_Scalar = 'v'
  []
  [update2]
    type = ImplicitUpdate
    equation_system = 'system2'
    solver = 'newton'
    predictor = 'guess2'
    max_substepping_level = ${level}
    incremental_variables = 'x'
  []
  [both]
    type = ComposedModel
    models = 'load update update2 after'
    additional_outputs = 'x y'
  []
[]
[EquationSystems]
  [system2]
    type = NonlinearSystem
    model = 'residual2'
    unknowns = 'v'
  []
[]
"""
SUBSTEPS = "predictor = 'guess'\n    max_substepping_level = ${level}"


def viscous() -> str:
    text = viscoplasticity().replace("predictor = 'guess'", SUBSTEPS)
    return text.replace("type = Newton\n", "type = Newton\n    max_its = 17\n    rel_tol = 1e-12\n")


def cells() -> str:
    text = DIFFUSION.replace("predictor = 'guess'", SUBSTEPS)
    return text.replace(
        "type = Newton\n",
        "type = Newton\n    max_its = 3\n    rel_tol = 1e-14\n    abs_tol = 1e-13\n",
    )


@dataclass(frozen=True)
class Case:
    """An input file, the update in it, parameters to differentiate by, and points."""

    text: Callable[[], str]
    model: str
    points: Callable[[torch.Generator], Tensors]
    parameters: tuple[str, ...] = ()
    level: int = LEVEL
    shapes: Mapping[str, tuple[int, ...]] | None = None


def draw(g: torch.Generator, low: float, high: float, *shape: int) -> Tensor:
    return low + (high - low) * torch.rand(shape, dtype=torch.float64, generator=g)


def cubic_points(g: torch.Generator) -> Tensors:
    low = {"x~1": 0.1, "x~2": 0.0, "t": 0.3, "t~1": 0.0, "t~2": -1.0, "weight": 0.1, "bias": 0.1,
           "force~1": 0.2, "still": 0.0, "y~1": -1.0}  # fmt: skip
    high = {"x~1": 0.7, "x~2": 0.2, "t": 5.0, "t~1": 0.2, "t~2": -0.5, "weight": 0.5, "bias": 0.5,
            "force~1": 0.6, "still": 0.3, "y~1": 1.0}  # fmt: skip
    return {n: draw(g, low[n], high[n], 3, 4) for n in low}


def viscous_points(g: torch.Generator) -> Tensors:
    size = draw(g, 0.0, 1.0, 3, 4, 1)
    points = {n: draw(g, -1.0, 1.0, 3, 4, 6) for n in ("E", "E~1", "stress~1", "X~1", "Y~1")}
    scale = {"E": 0.02 * size, "E~1": 1e-3, "stress~1": 5.0, "X~1": 1.0, "Y~1": 1.0}
    found = {n: scale[n] * x for n, x in points.items()}
    return found | {
        "equivalent_plastic_strain~1": draw(g, 0.0, 1e-3, 3, 4), "t": draw(g, 0.5, 2.0, 3, 4),
        "t~1": torch.zeros(3, 4, dtype=torch.float64),
    }  # fmt: skip


def cell_points(g: torch.Generator) -> Tensors:
    return {
        "c~1": draw(g, 0.0, 0.9, 3, 4, 5), "t": 10 ** draw(g, -3.0, 0.3, 3, 4),
        "t~1": torch.zeros(3, 4, dtype=torch.float64),
    }  # fmt: skip


CASES = {
    "forces, history and what stands around": Case(
        lambda: CUBIC, "model", cubic_points, ("update.residual.rate.reference_stress",)
    ),
    "guesses that look further back": Case(
        lambda: CUBIC.replace("Constant", "Linear", 1),
        "model",
        lambda g: cubic_points(g) | {"y~2": draw(g, -1.0, 1.0, 3, 4)},
    ),
    "updates in series": Case(
        lambda: CUBIC + SECOND,
        "both",
        lambda g: cubic_points(g) | {"v~1": draw(g, 0.2, 0.6, 3, 4)},
    ),
    "tensors": Case(viscous, "update", viscous_points, level=5),
    "an axis": Case(cells, "diffusion", cell_points, level=5, shapes={"c": (5,)}),
}


@cache
def program(name: str, level: int | None = None) -> Program:
    case = CASES[name]
    text = filled(case.text(), {"level": case.level if level is None else level})
    traced = trace(build(read_text(text), case.model), case.shapes)
    kept = [p.variable.name for p in traced.parameters if p.variable.name in case.parameters]
    assert len(kept) == len(case.parameters), [p.variable.name for p in traced.parameters]
    return freeze(traced, torch.finfo(torch.float64).eps, kept)


def looped(program: Program) -> Kernel:
    return Kernel(program, choices=Choices(unroll_limit=0, band_from=1))


EXECUTORS: dict[str, Executor] = {"interpret": Interpreter, "kernel": Kernel}
FORCES, EXTRAPOLATED, SERIES, TENSORS, AXIS = CASES
EVERY = [
    (FORCES, "interpret"), (FORCES, "kernel"), (AXIS, "looped"),
    *(pytest.param(c, e, marks=pytest.mark.exhaustive) for c, e in [
        (TENSORS, "interpret"), (TENSORS, "kernel"), (AXIS, "interpret"), (AXIS, "kernel"),
        (EXTRAPOLATED, "interpret"), (EXTRAPOLATED, "kernel"),
    ]),
]  # fmt: skip
EXECUTORS["looped"] = looped


def points_of(name: str, seed: int = 0) -> Tensors:
    return CASES[name].points(torch.Generator().manual_seed(seed))


def prescribe(
    name: str, inputs: Tensors, executor: Executor = Interpreter
) -> tuple[Tensors, Tensor]:
    """The outputs of one step, halved by this function where the model without the option fails;
    and into how many parts, 0 where that is more than its level allows.
    """
    case, run = CASES[name], executor(program(name, 0))
    solved = {v.name for v in program(name, 0).solves[0].unknowns}
    batch = inputs["t"].shape
    flat = {n: x.reshape(-1, *x.shape[len(batch) :]) for n, x in inputs.items()}
    outputs: list[Tensors] = []
    counts = []
    for i in range(math.prod(batch)):
        point = {n: x[i] for n, x in flat.items()}
        count = 0

        def take(a: float, b: float, state: Tensors, depth: int, point: Tensors = point) -> Tensors:
            """The values of the end of a part that goes on from a state of all lagged values."""
            nonlocal count
            given = dict(point) | state
            for n in point:
                base, steps = lag(n)
                if steps == 0 and f"{n}~1" in point:
                    given[n] = point[f"{n}~1"] + b * (point[n] - point[f"{n}~1"])
                elif steps == 1 and base in point:
                    given[n] = point[n] + a * (point[base] - point[n])
            if "force~1" in point:  # which the first law gives as 2 weight + bias
                force = 2 * point["weight"] + point["bias"]
                given["weight"] = torch.zeros_like(force)
                given["bias"] = point["force~1"] + b * (force - point["force~1"])
                given["force~1"] = point["force~1"] + a * (force - point["force~1"])
            found, (status,) = run(given)
            if bool(status.converged):
                count += 1
                return {**given, **found}
            if depth == case.level:
                raise ArithmeticError
            middle = take(a, (a + b) / 2, state, depth + 1)
            later = {}
            for n in point:
                base, steps = lag(n)
                if steps > 1 or (steps == 1 and base in solved):
                    later[n] = middle[base if steps == 1 else f"{base}~{steps - 1}"]
            return take((a + b) / 2, b, later, depth + 1)

        first = {
            n: x for n, x in point.items() if lag(n)[1] > 1 or (lag(n)[0] in solved and "~" in n)
        }
        try:
            outputs.append(take(0.0, 1.0, first, 0))
            counts.append(count)
        except ArithmeticError:
            nothing, _ = run(point)
            outputs.append({n: torch.full_like(x, math.nan) for n, x in nothing.items()})
            counts.append(0)
    names = [v.name for v in program(name).outputs]
    stacked = {n: torch.stack([o[n] for o in outputs]) for n in names}
    return {n: x.reshape(*batch, *x.shape[1:]) for n, x in stacked.items()}, torch.tensor(counts)


def close(a: Tensor, b: Tensor, tolerance: float) -> bool:
    return torch.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize(("name", "executor"), EVERY)
def test_a_step_in_parts_is_the_parts_prescribed(name: str, executor: str) -> None:
    inputs = points_of(name)
    found, (status,) = EXECUTORS[executor](program(name))(inputs)
    wanted, counts = prescribe(name, inputs)
    assert (counts == 1).any() and (counts > 2).any(), counts
    assert torch.equal(status.converged, counts > 0)
    for n, x in wanted.items():
        assert close(found[n], x, 1e-8), n


@pytest.mark.parametrize(
    ("name", "executor"),
    [
        *EVERY,
        *(pytest.param(SERIES, e, marks=pytest.mark.exhaustive) for e in ("interpret", "kernel")),
    ],
)
def test_derivatives_through_parts_are_those_of_differences(name: str, executor: str) -> None:
    inputs = points_of(name, 1)
    own, run = program(name), EXECUTORS[executor]
    names = list(inputs)
    pairs = [(v.name, n) for v in own.outputs for n in (*names, *CASES[name].parameters)]
    values = run(own)
    found, statuses = run(with_jacobian(own, pairs))(inputs)
    plain, _ = values(inputs)
    for v in own.outputs:
        assert torch.equal(found[v.name].nan_to_num(), plain[v.name].nan_to_num())
    bars = {f"a.{v.name}": torch.randn_like(plain[v.name]) for v in own.outputs}
    asked = [v.name for v in own.outputs], [*names, *CASES[name].parameters]
    adjoint, _ = run(with_adjoint(own, *asked))({**inputs, **bars})
    assert all((s.iterations > 12).any() for s in statuses)
    fine, step = torch.stack([s.converged for s in statuses]).all(0).reshape(3, 4), 1e-6
    total = torch.zeros(3, 4, dtype=torch.float64)
    back = torch.zeros(3, 4, dtype=torch.float64)
    along = {n: torch.randn_like(x) for n, x in inputs.items()}
    ends = [values({n: x + s * step * along[n] for n, x in inputs.items()})[0] for s in (1, -1)]
    for v in own.outputs:
        slope = (ends[0][v.name] - ends[1][v.name]) / (2 * step)
        product = torch.zeros_like(slope)
        for n in names:
            # one row for each entry of the output, one column for each of the input
            block = found[f"{v.name}:{n}"].reshape(3, 4, slope[0, 0].numel(), -1)
            product += (block @ along[n].reshape(3, 4, -1, 1))[..., 0].reshape(slope.shape)
        error = (slope - product)[fine].abs().max()
        assert error <= 1e-6 * (1 + product[fine].abs().max()), (v.name, error)
        total += (bars[f"a.{v.name}"] * product).reshape(3, 4, -1).sum(-1)
    for n in names:
        back += (adjoint[f"a.{n}"] * along[n]).reshape(3, 4, -1).sum(-1)
    assert close(back[fine], total[fine], 1e-9 * float(1 + total[fine].abs().max()))
    for n in CASES[name].parameters:
        ends = [run(shifted(own, n, s * step))(inputs)[0] for s in (1, -1)]
        for v in own.outputs:
            slope = (ends[0][v.name] - ends[1][v.name]) / (2 * step)
            block = found[f"{v.name}:{n}"]
            assert (slope - block)[fine].abs().max() <= 1e-6 * (1 + block[fine].abs().max())
            assert block[fine].abs().max() > 1e-3
        back = sum(bars[f"a.{v.name}"] * found[f"{v.name}:{n}"] for v in own.outputs)
        assert close(adjoint[f"a.{n}"][fine], back[fine], 1e-9 * float(1 + back[fine].abs().max()))


def shifted(program: Program, name: str, by: float) -> Program:
    """The program with another value of a parameter."""
    return replace(program, parameters=tuple(
        replace(p, value=type(p.value)(p.value.data + by)) if p.variable.name == name else p
        for p in program.parameters
    ))  # fmt: skip


@pytest.mark.parametrize("run", [Interpreter, Kernel])
def test_parts_and_their_derivatives_are_those_of_the_peer(run: Executor, cases: Path) -> None:
    gold = tomllib.loads((Path(__file__).parents[1] / "gold" / "substeps.toml").read_text())
    tree = read(cases / "aoti" / "implicit_substep_nl" / "model.i")
    own = freeze(trace(build(tree, "model")), 1e-16)
    inputs = {n: torch.tensor(x, dtype=torch.float64) for n, x in gold["given"].items()}
    found, (status,) = run(with_jacobian(own, [("x", n) for n in inputs]))(inputs)
    assert int((status.iterations > 25).sum()) == 8
    wanted = {"x": gold["found"]["x"]} | {f"x:{n}": x for n, x in gold["slopes"].items()}
    for n, x in wanted.items():
        assert torch.allclose(found[n], torch.tensor(x, dtype=torch.float64), rtol=1e-10)


def test_points_that_converge_whole_have_the_bits_of_a_model_without_the_option() -> None:
    inputs = points_of(FORCES, 2)
    for run in (Interpreter, Kernel):
        (found, _), (wanted, (status,)) = (run(program(FORCES, k))(inputs) for k in (None, 0))
        whole = status.converged.reshape(3, 4)
        assert whole.any()
        for n, x in wanted.items():
            assert torch.equal(found[n][whole], x[whole])


def test_graphs_are_told_what_is_read_in_parts() -> None:
    plan = plan_graphs(program(FORCES), (), "model")
    (segment,) = (s for s in plan.description.segments if isinstance(s, ImplicitSegment))
    assert {(p.name, p.role, p.other) for p in segment.parts} == {
        ("t", "new", "t~1"), ("t~1", "old", "t"), ("force", "new", "force~1"),
        ("x~1", "carried", "x"), ("y~1", "carried", "y"), ("x~2", "carried", "x~1"),
        ("t~2", "carried", "t~1"),
    }  # fmt: skip


def test_graphs_refuse_a_force_that_has_no_name_there() -> None:
    text = filled(CUBIC, {"level": LEVEL})
    begin, end = text.index("type = ScalarLinear"), text.index("to = 'force'")
    constant = "type = ScalarConstantParameter\n    value = 0.5\n    parameter = 'force'"
    text = text.replace(text[begin : end + len("to = 'force'")], constant)
    own = freeze(trace(build(read_text(text), "model")), 1e-16)
    with pytest.raises(IngotError) as error:
        plan_graphs(own, (), "model")
    assert error.value.problems[0].code == "unnamed-part"
    inputs = {n: x for n, x in points_of(FORCES).items() if n in {v.name for v in own.inputs}}
    found = [run(own)(inputs)[0]["x"] for run in (Interpreter, Kernel)]
    assert close(*found, 1e-9)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [FORCES, EXTRAPOLATED, TENSORS, AXIS])
def test_compiled_graphs_take_the_same_parts(name: str, tmp_path: Path) -> None:
    own, inputs = program(name), points_of(name, 1)
    pairs = [(v.name, n) for v in own.outputs for n in inputs]
    plan = plan_graphs(own, pairs, "model")
    lower(plan, tmp_path, jobs=2)
    held = {p.variable.name: p.value.data for p in own.parameters}
    graphs = InductorProgram(
        lambda file: (tmp_path / file).read_bytes(), plan.description, parameters=held
    )
    found, (status,), blocks = graphs.run(inputs, slopes=True)
    wanted, (said,) = Interpreter(with_jacobian(own, pairs))(inputs)
    assert torch.equal(status.iterations, said.iterations)
    for v in own.outputs:
        assert close(found[v.name], wanted[v.name], 1e-9)
    for y, x in pairs:
        whole = wanted[f"{y}:{x}"]
        assert close(
            blocks[y, x].expand_as(whole), whole, 1e-9 * float(1 + whole.nan_to_num().abs().max())
        )


@pytest.mark.parametrize("executor", ["interpret", "kernel"])
def test_a_batch_is_its_points(executor: str) -> None:
    name = FORCES
    inputs = points_of(name, 3)
    run = EXECUTORS[executor](program(name))
    found, (status,) = run(inputs)
    for i in range(3):
        for j in range(4):
            alone, (said,) = run({n: x[i, j] for n, x in inputs.items()})
            assert close(found["z"][i, j], alone["z"], 1e-12)
            assert int(said.iterations) == int(status.iterations[4 * i + j])


@pytest.mark.parametrize("executor", ["interpret", "kernel"])
def test_a_point_that_fails_in_the_shortest_part_has_failed(executor: str) -> None:
    name = FORCES
    inputs = points_of(name, 4)
    inputs["t"][0, 0] = 400.0  # the state grows beyond all bounds before that
    inputs["weight"][0, 0] = 2.0
    run = EXECUTORS[executor]
    names = list(inputs)
    found, (status,) = run(with_jacobian(program(name), [("x", n) for n in names]))(inputs)
    assert int(status.reason[0]) != Reason.CONVERGED
    assert found["x"][0, 0].isnan() and all(found[f"x:{n}"][0, 0].isnan() for n in names)
    assert bool(status.converged[1:].any())


def test_in_parts_a_small_residual_is_accepted_after_a_small_update_alone() -> None:
    text = filled(CUBIC, {"level": LEVEL})
    inputs = points_of(FORCES)
    inputs["force"] = 2 * inputs.pop("weight") + inputs.pop("bias")
    loose = text.replace("rel_tol = 1e-12", "rel_tol = 1e-3\n    abs_tol = 0")
    for run in (Interpreter, Kernel):
        found = {}
        for tolerance in (1e-9, 1e9):
            own = loose.replace("max_its = 12", f"max_its = 12\n    substep_del_tol = {tolerance}")
            found[tolerance] = run(freeze(trace(build(read_text(own), "update")), 1e-16))(inputs)
        wanted, (status,) = run(freeze(trace(build(read_text(text), "update")), 1e-16))(inputs)
        ((tight, (said,)), (wide, _)) = found.values()
        parts = (status.iterations >= 12) & status.converged & said.converged
        assert parts.any()
        errors = [
            (x["x"].flatten() - wanted["x"].flatten())[parts].abs().max() for x in (tight, wide)
        ]
        assert errors[0] < 1e-8 < errors[1]


def test_parts_are_those_of_recursive_bisection() -> None:
    def walk(begin: int, length: int, level: int, fails: set[tuple[int, int]]) -> list | None:
        if (begin, length) not in fails:
            return [(begin, length)]
        if length == 1:
            return None
        left = walk(begin, length // 2, level, fails)
        right = walk(begin + length // 2, length // 2, level, fails) if left is not None else None
        return None if left is None or right is None else [*left, *right]

    def judged(is_taken: bool) -> Status:
        reason = torch.tensor([Reason.CONVERGED if is_taken else Reason.OUT_OF_STEPS])
        count = torch.ones_like(reason)
        return Status("update", reason, count, torch.zeros(1), count, count)

    draws = torch.Generator().manual_seed(0)
    for level in (1, 2, 5):
        every = [
            (b, n) for k in range(level + 1) for n in [1 << k] for b in range(0, 1 << level, n)
        ]
        for _ in range(60):
            few = torch.rand(len(every), generator=draws) < 0.4
            fails = {s for s, fail in zip(every, few, strict=True) if fail} | {(0, 1 << level)}
            unknowns = torch.zeros(1, 1, dtype=torch.float64)
            steps = StepsInParts(level, unknowns, judged(False))
            taken = []
            for index, begin, end in steps:
                part = int(begin * 2**level), int((end - begin) * 2**level)
                if part not in fails:
                    taken.append(part)
                steps.keep(index, unknowns, judged(part not in fails))
            wanted = walk(0, 1 << level, level, fails)
            assert bool(steps.done) == (wanted is not None)
            assert wanted is None or taken == wanted


def test_inputs_that_only_guesses_read_stay_so() -> None:
    from ingot.program.program import find_first_guesses

    text = filled(CUBIC, {"level": LEVEL}).replace("    predictor = 'guess'\n", "")
    own = trace(build(read_text(text), "update"))
    assert find_first_guesses(own) == {"x", "y"}


def test_solves_inside_solves_are_not_taken_in_parts() -> None:
    text = filled(CUBIC, {"level": LEVEL}).replace(
        "integrate late follow'", "integrate inner late'"
    )
    text = text.replace("'x_residual x~2", "'x_residual y").replace("'x y'", "'x'")
    text = text.replace("residuals = 'r y_residual'", "residuals = 'r'")
    text += """
[Models]
  [inner]
    type = ImplicitUpdate
    equation_system = 'one'
    solver = 'newton'
  []
[]
[EquationSystems]
  [one]
    type = NonlinearSystem
    model = 'follow'
    unknowns = 'y'
  []
[]
"""
    with pytest.raises(IngotError) as error:
        trace(build(read_text(text), "update"))
    assert error.value.problems[0].code == "nested-solves"
    trace(build(read_text(text.replace(f"level = {LEVEL}", "level = 0")), "update"))


def test_a_value_two_steps_back_needs_that_of_one_step() -> None:
    text = filled(CUBIC, {"level": LEVEL}).replace("x_residual x~2 t~2", "x_residual y~3 t~2")
    with pytest.raises(IngotError) as error:
        trace(build(read_text(text), "update"))
    assert error.value.problems[0].code == "broken-history"


STATELESS = """
[Models]
  [square]
    type = ScalarMultiplication
    from = 'x x'
    to = 'square'
  []
  [r]
    type = ScalarLinearCombination
    from = 'square f f~1'
    weights = '1 -1 1'
    to = 'r'
  []
  [residual]
    type = ComposedModel
    models = 'square r'
  []
  [update]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
    max_substepping_level = 3
  []
[]
[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'residual'
    unknowns = 'x'
    residuals = 'r'
  []
[]
[Solvers]
  [newton]
    type = Newton
    max_its = 6
    rel_tol = 1e-12
  []
[]
"""


def test_parts_that_carry_nothing_on_are_alike_on_all_executors() -> None:
    own = freeze(trace(build(read_text(STATELESS), "update")), 1e-16)
    ends = torch.tensor([1.0, 100.0, 20.0, 40.0], dtype=torch.float64)
    inputs = {"x": torch.ones_like(ends), "f": ends, "f~1": torch.zeros_like(ends)}
    pushed = with_jacobian(own, [("x", "f"), ("x", "f~1")])
    pulled = with_adjoint(own, ["x"], ["f", "f~1"])
    for wide, given in ((pushed, inputs), (pulled, {**inputs, "a.x": torch.ones_like(ends)})):
        found, (status,) = Interpreter(wide)(given)
        wanted, (told,) = Kernel(wide)(given)
        assert status.converged.tolist() == told.converged.tolist() == [True, False, True, True]
        assert status.iterations.tolist() == told.iterations.tolist()
        assert all(close(found[n], wanted[n], 1e-12) for n in wanted)
