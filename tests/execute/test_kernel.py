"""A kernel gives a point the same bits in any batch, layout, lane and thread."""

import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ingot.errors import IngotError
from ingot.execute import (
    Backend,
    Executor,
    History,
    Reason,
    Status,
    Transient,
    call_layout,
    executor,
    kernel,
)
from ingot.execute.batch_shape import shape_of
from ingot.execute.call_layout import CallLayout
from ingot.execute.kernel import Kernel
from ingot.execute.kernel_run import NativeRunner
from ingot.execute.transient import step_calls
from ingot.hit import read_text
from ingot.model import build
from ingot.program import (
    Builder,
    Newton,
    Program,
    Variable,
    compile_passes,
    prepared,
    with_jacobian,
)
from ingot.program.implicit import read_items
from ingot.types import Scalar, Vec, where
from tests.program.declared import program_of as program_of_law
from tests.systems import implicit, overshooting, plasticity, program_of, update
from tests.threads import threads

Inputs = dict[str, Tensor]


def strained(count: int, seed: int = 0) -> Inputs:
    """One step of the plastic model for many points: elastic and plastic ones, with histories."""
    rng = np.random.default_rng(seed)
    old = 1e-3 * rng.standard_normal((count, 6))
    old[:, :3] -= old[:, :3].mean(axis=1, keepdims=True)
    values = {
        "E": 10 ** rng.uniform(-4, -1.5, (count, 1)) * rng.standard_normal((count, 6)),
        "t": rng.uniform(1.0, 2.0, count),
        "t~1": rng.uniform(0.0, 1.0, count),
        "plastic_strain~1": old,
        "equivalent_plastic_strain~1": np.abs(old).sum(axis=1),
        "flow_rate~1": rng.uniform(0.0, 1e-3, count),
    }
    return {name: torch.from_numpy(value) for name, value in values.items()}


def scattered(count: int, seed: int = 1) -> Inputs:
    """Guesses and givens of the overshooting system."""
    rng = np.random.default_rng(seed)
    values = {"u0": 1.2, "u1": 2.0, "g0": 1.0, "g1": 3.0, "g2": 2.0}
    return {n: torch.from_numpy(rng.uniform(-size, size, count)) for n, size in values.items()}


def elastic() -> Program:
    """Elasticity alone."""
    coefficients = "coefficients = '1e3 0.3' coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'"
    names = "strain = 'strain' stress = 'stress'"
    text = f"[Models] [elastic] type = LinearIsotropicElasticity {coefficients} {names} [] []"
    return prepared(build(read_text(text), "elastic"))


def picked(inputs: Mapping[str, Tensor], which: object) -> Inputs:
    return {name: x[which] for name, x in inputs.items()}


def bits(outputs: Mapping[str, Tensor], statuses: tuple[Status, ...]) -> list[bytes]:
    """Everything that a call gives, point by point."""
    tables = [*outputs.values()]
    for s in statuses:
        tables += [s.reason, s.iterations, s.residual, s.pivoted]
    count = len(tables[0])
    return [b"".join(t[i].contiguous().numpy().tobytes() for t in tables) for i in range(count)]


SEARCH = Newton(linesearch="BACKTRACKING", max_its=9)


@pytest.fixture(scope="module", params=["plastic", "searching"])
def points(request: pytest.FixtureRequest, plastic_kernel: Kernel) -> tuple[Kernel, Inputs]:
    """A kernel, and 17 points for it of which it solves most."""
    if request.param == "plastic":
        return plastic_kernel, strained(17)
    return Kernel(implicit(overshooting, 2, 3, SEARCH)), scattered(17)


# neighbours


@pytest.mark.parametrize("hopeless", (float("nan"), float("inf"), 1e200, 1e8))
def test_a_hopeless_point_leaves_its_neighbours_their_bits(
    points: tuple[Kernel, Inputs], hopeless: float
) -> None:
    run, inputs = points
    alone = [bits(*run(picked(inputs, slice(i, i + 1))))[0] for i in range(17)]
    victim = "E" if "E" in inputs else "u0"
    for count in range(1, 18):
        for place in range(count):
            batch = {name: x[:count].clone() for name, x in inputs.items()}
            batch[victim][place] = hopeless
            outputs, statuses = run(batch)
            assert hopeless == 1e8 or statuses[0].reason[place] == Reason.NOT_FINITE
            found = bits(outputs, statuses)
            assert [b for i, b in enumerate(found) if i != place] == [
                b for i, b in enumerate(alone[:count]) if i != place
            ]


def test_most_points_converge_and_some_take_longer_than_others(
    points: tuple[Kernel, Inputs],
) -> None:
    run, inputs = points
    _, (status,) = run(inputs)
    assert status.converged.sum() > 8
    assert len(set(status.iterations.tolist())) > 1


@pytest.mark.parametrize("width", (1, 2, 4, 8))
def test_every_lane_width_gives_the_same_bits(
    points: tuple[Kernel, Inputs], width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, inputs = points
    load, lanes = kernel.load_library, f"-DW={width}"
    monkeypatch.setattr(kernel, "load_library", lambda text, flags: load(text, (*flags, lanes)))
    narrow = Kernel(run.program)
    assert isinstance(narrow.entry.run, NativeRunner)
    assert narrow.entry.run.lanes == width and narrow.source == run.source
    assert bits(*narrow(inputs)) == bits(*run(inputs))


def test_threads_give_the_same_bits(plastic_kernel: Kernel) -> None:
    inputs = strained(10_000)
    with threads(1):
        assert torch.get_num_threads() == 1
        alone = bits(*plastic_kernel(inputs))
    with threads(2):
        assert torch.get_num_threads() == 2
        assert bits(*plastic_kernel(inputs)) == alone


def test_calls_from_several_threads_do_not_disturb_one_another(plastic_kernel: Kernel) -> None:
    batches = [strained(300, seed) for seed in range(12)]
    alone = [bits(*plastic_kernel(inputs)) for inputs in batches]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(plastic_kernel, batches * 3))
    assert [bits(*found) for found in together] == alone * 3


# shapes


@pytest.fixture(scope="module")
def executors(plastic: Program, plastic_kernel: Kernel) -> dict[Backend, Executor]:
    return {"kernel": plastic_kernel, "interpret": executor(plastic, "interpret")}


def assert_same(
    found: Mapping[str, Tensor], expected: Mapping[str, Tensor], backend: Backend
) -> None:
    for name, x in expected.items():
        assert found[name].shape == x.shape
        exact = (
            {"rtol": 0.0, "atol": 0.0} if backend == "kernel" else {"rtol": 1e-12, "atol": 1e-16}
        )
        torch.testing.assert_close(found[name], x, equal_nan=True, **exact)


SHAPES = ((), (1,), (12,), (3, 4), (2, 3, 2), (1, 12), (0,), (3, 0), (0, 2, 2))


def shaped(rows: Mapping[str, Tensor], shape: tuple[int, ...]) -> Inputs:
    """The first points in a batch of another shape."""
    count = math.prod(shape)
    return {name: x[:count].reshape((*shape, *x.shape[1:])) for name, x in rows.items()}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_batch_of_any_shape_is_its_points(
    executors: dict[Backend, Executor], backend: Backend, shape: tuple[int, ...]
) -> None:
    run, flat = executors[backend], strained(12)
    outputs, (status,) = run(shaped(flat, shape))
    assert_same(outputs, shaped(run(flat)[0], shape), backend)
    assert len(status.reason) == math.prod(shape) and status.problem() is None


def test_expanded_transposed_and_sliced_inputs_are_read_right(
    executors: dict[Backend, Executor], backend: Backend
) -> None:
    run = executors[backend]
    flat = strained(12)
    flat["t"], flat["flow_rate~1"] = flat["t"][:1].expand(12), flat["flow_rate~1"][:1].expand(12)
    expected, _ = run({name: x.contiguous() for name, x in flat.items()})
    strange = dict(flat)
    strange["E"] = flat["E"].T.contiguous().T
    strange["t"] = flat["t"][0]
    wide = torch.full((24, 13), 7.0, dtype=torch.float64)
    wide[::2, 1::2] = flat["plastic_strain~1"]
    strange["plastic_strain~1"] = wide[::2, 1::2]
    strange["t~1"] = flat["t~1"].flip(0).contiguous().flip(0)
    assert {x.stride() for x in strange.values()} >= {(26, 2), (1, 12), (), (0,)}
    assert_same(run(strange)[0], expected, backend)


def test_a_batch_of_two_axes_broadcasts_with_one(
    executors: dict[Backend, Executor], backend: Backend
) -> None:
    run, flat = executors[backend], strained(12)
    inputs = {n: x[:4] for n, x in flat.items()}
    inputs["E"] = flat["E"].reshape(3, 4, 6).transpose(0, 1).contiguous().transpose(0, 1)
    found, _ = run(inputs)
    for i in range(3):
        expected, _ = run({**inputs, "E": inputs["E"][i].contiguous()})
        assert_same({n: x[i] for n, x in found.items()}, expected, backend)


def test_inputs_are_left_as_they_were(plastic_kernel: Kernel) -> None:
    inputs = strained(9)
    kept = {name: x.clone() for name, x in inputs.items()}
    plastic_kernel(inputs)
    assert all(torch.equal(inputs[name], kept[name]) for name in kept)


# hidden parameters

BATCHED = """
[Tensors]
  [yields]
    type = Python
    expr = 'Scalar(torch.tensor([100.0, 150.0, 200.0, 250.0], dtype=torch.float64))'
  []
[]
"""


@pytest.fixture(scope="module")
def hidden() -> dict[Backend, Executor]:
    """The plastic model with a yield stress for each of four points."""
    text = plasticity("MinMapComplementarity", isotropic=True, kinematic=False)
    program = program_of(BATCHED + text.replace("yield_stress = 180", "yield_stress = 'yields'"))
    assert [p.variable.name for p in program.parameters] == ["residual.surface.yield_stress"]
    return {b: executor(program, b) for b in ("kernel", "interpret")}


def test_a_batched_parameter_broadcasts_with_the_batch(
    hidden: dict[Backend, Executor], backend: Backend
) -> None:
    run, flat = hidden[backend], strained(12)
    rows, _ = run(shaped(flat, (3, 4)))
    for i in range(3):
        row, _ = run(picked(flat, slice(4 * i, 4 * i + 4)))
        assert_same({n: x[i] for n, x in rows.items()}, row, backend)
    one, _ = run(picked(flat, 1))
    assert one["flow_rate"].shape == (4,)
    spread, _ = run({n: x[1].expand(4, *x.shape[1:]) for n, x in flat.items()})
    assert_same(one, spread, backend)


def test_a_batched_parameter_is_that_of_its_point(
    hidden: dict[Backend, Executor], backend: Backend
) -> None:
    inputs = strained(4)
    found, _ = hidden[backend](inputs)
    for i, stress in enumerate((100, 150, 200, 250)):
        text = plasticity("MinMapComplementarity", isotropic=True, kinematic=False)
        plain = program_of(text.replace("yield_stress = 180", f"yield_stress = {stress}"))
        expected, _ = executor(plain, "interpret")(picked(inputs, slice(i, i + 1)))
        for name, x in expected.items():
            torch.testing.assert_close(found[name][i : i + 1], x, rtol=1e-9, atol=1e-13)


def test_batches_that_do_not_fit_are_both_named(
    hidden: dict[Backend, Executor], backend: Backend
) -> None:
    with pytest.raises(IngotError, match=r"\(5,\).*\(4,\)|\(4,\).*\(5,\)"):
        hidden[backend](strained(5))


# precision


def test_single_precision_is_close_to_double(plastic: Program, plastic_kernel: Kernel) -> None:
    text = plasticity("MinMapComplementarity", isotropic=True, kinematic=False)
    loose = text.replace(
        "type = Newton\n", "type = Newton\n    abs_tol = 1e-4\n    rel_tol = 1e-4\n"
    )
    single = Kernel(program_of(loose), dtype=torch.float32)
    inputs = strained(40)
    outputs, (status,) = single(inputs)
    expected, _ = plastic_kernel(inputs)
    assert status.converged.all()
    for name, x in outputs.items():
        assert x.dtype == torch.float32
        scale = float(expected[name].abs().max())
        torch.testing.assert_close(x.double(), expected[name], rtol=1e-3, atol=2e-4 * scale)


# transients


def assert_same_history(run: Kernel, transient: Transient) -> History:
    """All steps in one call are the calls of each step, to the bit."""
    once = run.transient(transient)
    given = {v.name: shape_of(v, run.program) for v in run.program.inputs}
    gives = [v.name for v in run.program.outputs]
    steps = step_calls(run, given, gives, transient, torch.float64)
    assert once.outputs.keys() == steps.outputs.keys()
    for name, x in steps.outputs.items():
        assert torch.equal(once.outputs[name], x), name
    for a, b in zip(once.statuses, steps.statuses, strict=True):
        for table in ("reason", "iterations", "residual", "pivoted"):
            assert torch.equal(getattr(a, table), getattr(b, table)), table
    return once


# the last is more points than the kernel steps together (`tile` of steps.h), and no whole blocks
@pytest.mark.parametrize("batch", ((), (11,), (2, 3), (0,), (1101,)))
def test_a_transient_is_its_steps_bit_for_bit(
    plastic_kernel: Kernel, batch: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(5)
    ramp = torch.linspace(0.0, 1.0, 8, dtype=torch.float64)
    strain = torch.from_numpy(1e-2 * rng.standard_normal((8, *batch, 6)).cumsum(axis=0))
    initial = {"equivalent_plastic_strain": torch.from_numpy(rng.uniform(0, 1e-3, batch))}
    found = assert_same_history(plastic_kernel, Transient(8, {"E": strain, "t": ramp}, initial))
    assert 0 in batch or found.statuses[0].iterations.max() > 1


DECAY = """
[Models]
  [rate]
    type = ScalarLinearCombination
    from = 'x y~2'
    to = 'x_rate'
    weights = '-2 1'
  []
  [integrate]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'x'
  []
  [residual]
    type = ComposedModel
    models = 'rate integrate'
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
  []
[]
"""


def test_a_prescribed_guess_is_the_start_of_its_history() -> None:
    steps = torch.linspace(0.0, 1.0, 5, dtype=torch.float64)
    prescribed = {"t": steps, "x": 3.0 + steps[:, None].expand(5, 4), "y": steps * steps}
    run = Kernel(program_of(DECAY))
    found = assert_same_history(run, Transient(5, prescribed, {}))
    late = torch.tensor([0.0, 0.0, 0.0, 1 / 16, 1 / 4], dtype=torch.float64)
    x = torch.tensor(3.0, dtype=torch.float64)
    for k in range(1, 5):
        x = (x + 0.25 * late[k]) / 1.5
        torch.testing.assert_close(found.outputs["x"][k], x.expand(4))


# several solves


def two_updates() -> Program:
    """Roots of g0 and of g1; the output that is listed first belongs to the solve made last."""
    builder = Builder()
    one = Variable("one", Scalar, (), (builder.one,))
    inputs, outputs = [], []
    for name, newton in (("first", Newton(max_its=3)), ("second", Newton(max_its=30))):
        given = Variable(f"{name}_square", Scalar, (), (builder.node("input", (), (name, 0)),))
        root = Variable(name, Scalar, (), (builder.placeholder("unknown", (), name),))
        node = update(builder, name, lambda u, g: [u[0] * u[0] - g[0]], [root], [given], [one],
                      newton)  # fmt: skip
        inputs.append(given)
        outputs.append(Variable(name, Scalar, (), tuple(read_items(builder, node))))
    return Program(builder.extents, tuple(inputs), (), tuple(reversed(outputs)))


def test_a_solve_whose_slope_reads_the_unknown_of_another(backend: Backend) -> None:
    """The root z of x z = 8, where x is the root of x x = g: the slope by z is x itself."""
    builder = Builder()
    one = Variable("one", Scalar, (), (builder.one,))
    given = Variable("g", Scalar, (), (builder.node("input", (), ("g", 0)),))
    x, z = (Variable(n, Scalar, (), (builder.placeholder("unknown", (), n),)) for n in "xz")
    first = update(builder, "x", lambda u, g: [u[0] * u[0] - g[0]], [x], [given], [one])
    root = Variable("x", Scalar, (), tuple(read_items(builder, first)))
    second = update(builder, "z", lambda u, g: [g[0] * u[0] - 8.0], [z], [root], [one])
    last = Variable("z", Scalar, (), tuple(read_items(builder, second)))
    run = executor(Program(builder.extents, (given,), (), (last,)), backend)
    g = torch.tensor([1.0, 4.0, 16.0], dtype=torch.float64)
    torch.testing.assert_close(run({"g": g})[0]["z"], 8 / g.sqrt())


def test_each_solve_follows_its_own_rules_and_reports_under_its_name(backend: Backend) -> None:
    square = torch.tensor([1e6, 2e4], dtype=torch.float64)
    run = executor(two_updates(), backend)
    outputs, statuses = run({"first_square": square, "second_square": square})
    told = {s.solve: s for s in statuses}
    assert told["first"].iterations.tolist() == [2, 2] and not told["first"].converged.any()
    assert told["second"].converged.all() and told["second"].iterations.min() > 5
    assert outputs["first"].isnan().all()
    torch.testing.assert_close(outputs["second"], square.sqrt())


def test_passes_keep_solves_in_order() -> None:
    compiled = compile_passes(two_updates())
    assert [s.name for s in compiled.solves] == ["first", "second"]


def counting(x: Scalar, y: Scalar) -> Vec:
    above, below = x > 0.5, y < x
    return Vec.fill(
        above * x - below / 2 + (1 - (above & ~below)) ** 2 * y,
        -above + where(below, above, below) + (above < below) * 3.0,
        above,
    )


@pytest.mark.parametrize("backend", ["interpret", "kernel"])
def test_conditions_count_as_one_or_zero(backend: Backend) -> None:
    x, y = torch.from_numpy(np.random.default_rng(3).uniform(0, 1, (2, 200)))
    found, _ = executor(program_of_law(counting), backend)({"x": x, "y": y})
    above, below = (x > 0.5).double(), (y < x).double()
    expected = [
        above * x - below / 2 + (1 - above * (1 - below)) ** 2 * y,
        -above + below * above + 3.0 * (above < below),
        above,
    ]
    torch.testing.assert_close(found["out"], torch.stack(expected, dim=-1), rtol=1e-15, atol=1e-15)


def test_the_slope_of_a_condition_times_a_value_is_the_condition() -> None:
    program = with_jacobian(program_of_law(kinked), [("out", "x")])
    x = torch.tensor([0.25, 0.75], dtype=torch.float64)
    found, _ = executor(program, "kernel")({"x": x})
    assert sorted(map(tuple, (v.tolist() for v in found.values()))) == [(0.0, 0.5625), (0.0, 1.5)]


def kinked(x: Scalar) -> Scalar:
    return (x > 0.5) * x * x


def test_a_history_keeps_its_numbers_when_the_transient_runs_again(plastic_kernel: Kernel) -> None:
    ramp = torch.linspace(0.0, 1.0, 4, dtype=torch.float64)
    strain = 1e-2 * torch.randn(4, 11, 6, dtype=torch.float64).cumsum(0)
    run = plastic_kernel.arrange(Transient(4, {"E": strain, "t": ramp}, {}))
    first = run()
    copies = {name: x.clone() for name, x in first.outputs.items()}
    part = first.outputs["plastic_strain"][1:, 2]
    assert run().outputs.keys() == copies.keys()
    for name, x in first.outputs.items():
        x.fill_(7.0)
        assert torch.equal(run().outputs[name], copies[name])
    del first, x
    for _ in range(2):
        assert torch.equal(run().outputs["plastic_strain"], copies["plastic_strain"])
    assert torch.equal(part, torch.full_like(part, 7.0))


def raised(x: Scalar) -> Vec:
    return Vec.fill(x**6.0, x**31.0, x ** (-8.0))


def test_whole_powers_are_right_to_four_ulp() -> None:
    x = np.random.default_rng(31).uniform(0.5, 2.0, 2000) * np.array([1.0, -1.0] * 1000)
    found, _ = executor(program_of_law(raised), "kernel")({"x": torch.from_numpy(x)})
    for i, n in enumerate((6, 31, -8)):
        exact = x.astype(np.longdouble) ** n
        error = np.abs(found["out"][:, i].numpy() - exact) / np.spacing(np.abs(exact.astype(float)))
        assert error.max() <= 4.0


@pytest.mark.parametrize("seed", range(4))
def test_a_point_has_the_same_bits_in_batches_of_any_size(
    points: tuple[Kernel, Inputs], seed: int
) -> None:
    run, _ = points
    rng = np.random.default_rng(seed)
    inputs = strained(40, seed) if "E" in points[1] else scattered(40, seed)
    whole = bits(*run(inputs))
    for size in (1, 2, 3, *rng.integers(1, 41, 12).tolist()):
        which = rng.permutation(40)[:size]
        assert bits(*run(picked(inputs, which))) == [whole[i] for i in which]


LAYOUTS = {
    "components side by side": lambda x: x.contiguous(),
    "points side by side": lambda x: x.t().contiguous().t(),
    "every second point": lambda x: torch.stack([x, x], 1).flatten(0, 1)[::2],
    "some of more components": lambda x: torch.cat([x, x, x], -1)[..., 6:12],
    "one point for all": lambda x: x[:1].expand(len(x), -1),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_arrays_are_read_where_they_lie(layout: str, plastic_kernel: Kernel) -> None:
    inputs = strained(17)
    for name in ("E", "plastic_strain~1"):
        inputs[name] = LAYOUTS[layout](inputs[name])
    entry, values = plastic_kernel.entry, [inputs[v.name] for v in plastic_kernel.entry.inputs]
    ready = CallLayout(entry.inputs, entry.hidden, entry.outputs, entry.dtype, values)
    assert ready.in_place
    held, _ = ready.pack_given(values)
    assert all(a is b for a, b in zip(held, values, strict=True))
    copied = {n: x.clone(memory_format=torch.contiguous_format) for n, x in inputs.items()}
    assert bits(*plastic_kernel(inputs)) == bits(*plastic_kernel(copied))


def test_memory_of_large_results_is_used_again_once_nobody_reads_it() -> None:
    run = Kernel(elastic())
    (name,), size = (v.name for v in run.entry.inputs), 1 << 15
    first, second = (torch.full((size, 6), x, dtype=torch.float64) for x in (1.0, 2.0))
    one = run({name: first})[0]["stress"]
    two = run({name: second})[0]["stress"]
    assert one.data_ptr() != two.data_ptr() and torch.equal(2 * one, two)
    row = two[5]  # a view reads the memory, too
    place = two.data_ptr()
    del two
    assert run({name: first})[0]["stress"].data_ptr() != place
    del row
    found = {run({name: second})[0]["stress"].data_ptr() for _ in range(2)}
    assert len(found) == 1


def test_a_call_makes_no_tables_of_its_status(
    plastic_kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, inputs, views = plastic_kernel, strained(3), list[object]()
    make = call_layout.view_memory

    def count(*given: Any) -> Tensor:
        views.append(given)
        return make(*given)

    monkeypatch.setattr(call_layout, "view_memory", count)
    told = [run(inputs)[1] for _ in range(4)]
    assert not views
    for status in told:  # the first two calls are laid out, the others repeat a task
        assert [s.solve for s in status] == [s.name for s in run.program.solves]
        assert torch.equal(status[0].iterations, told[0][0].iterations)
        assert status[0].reason.shape == (3,)
    assert views
