"""A pass changes how a program is written, never what it computes; the program it reads stays."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ingot.execute.interpret import Interpreter
from ingot.program import (
    PASSES,
    Builder,
    Choices,
    Node,
    Parameter,
    Program,
    Variable,
    compile_passes,
    sort_lines,
    verify,
    walk_passes,
    with_adjoint,
    with_jacobian,
)  # fmt: skip
from ingot.program.rewrite import renew
from ingot.program.unroll import unroll
from ingot.types import Scalar
from tests.program.graphs import CELL, NEST_ON_AXES, SHAPES, Drawn, programs, update
from tests.program.oracle import evaluate_program

some = settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate,),
)
LIMITS = {"lines": 10**9, "loops": 0}
INPUTS = ("0", "1", "2")


def differentiated(program: Program, which: str) -> Program:
    """The program with its derivative by every input, in one mode or the other."""
    if which == "forward":
        return with_jacobian(program, [("out", x) for x in INPUTS])
    return with_adjoint(program, ["out"], INPUTS) if which == "reverse" else program


def numbers_for(program: Program, drawn: Drawn) -> dict[str, np.ndarray]:
    more = {v.name: np.ones(1) for v in program.inputs if v.name.startswith("a.")}
    return drawn.numbers() | more


def assert_equal(found: dict[str, Any], expected: dict[str, Any], what: str) -> None:
    assert list(found) == list(expected)
    for name, x in expected.items():
        np.testing.assert_allclose(found[name], x, rtol=1e-9, atol=1e-10, err_msg=f"{what}: {name}")


@pytest.mark.parametrize("mode", ["values", "forward", "reverse"])
@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("shape", SHAPES)
@some
@given(data=st.data())
def test_every_pass_keeps_what_a_program_computes(
    shape: str, limit: str, mode: str, data: st.DataObject
) -> None:
    drawn = data.draw(programs(**SHAPES[shape]))
    program = verify(differentiated(drawn.program, mode))
    numbers = numbers_for(program, drawn)
    expected = evaluate_program(program, numbers)
    digest = program.digest
    for name, after in walk_passes(program, Choices(unroll_limit=LIMITS[limit])):
        verify(after)
        assert_equal(evaluate_program(after, numbers), expected, name)
        if name in ("factor", "hoist", "schedule"):
            written = evaluate_program(after, numbers, factored=True)
            assert_equal(written, expected, f"the systems written out by {name}")
    assert program.digest == digest


@pytest.mark.parametrize("mode", ["values", "forward", "reverse"])
@pytest.mark.parametrize("shape", SHAPES)
@some
@given(data=st.data())
def test_the_interpreter_computes_what_the_oracle_does(
    shape: str, mode: str, data: st.DataObject
) -> None:
    drawn = data.draw(programs(**SHAPES[shape]))
    program = verify(differentiated(drawn.program, mode))
    numbers = numbers_for(program, drawn)
    expected = evaluate_program(program, numbers)
    found, statuses = Interpreter(program)({n: torch.from_numpy(x) for n, x in numbers.items()})
    assert all(bool(s.converged.all()) for s in statuses)
    assert_equal({n: x.numpy() for n, x in found.items()}, expected, "interpret")


@pytest.mark.parametrize("mode", ["values", "forward", "reverse"])
@some
@given(drawn=programs(**NEST_ON_AXES))
def test_a_nest_on_axes_is_written_out(drawn: Drawn, mode: str) -> None:
    program = verify(differentiated(drawn.program, mode))
    numbers = numbers_for(program, drawn)
    expected = evaluate_program(program, numbers)
    after = compile_passes(program, Choices(unroll_limit=10**9))
    assert_equal(evaluate_program(after, numbers, factored=True), expected, "all passes")


@pytest.mark.parametrize("shape", SHAPES)
@some
@given(data=st.data())
def test_forward_is_reverse_through_solves(shape: str, data: st.DataObject) -> None:
    drawn = data.draw(programs(**SHAPES[shape]))
    forward = evaluate_program(differentiated(drawn.program, "forward"), drawn.numbers())
    program = differentiated(drawn.program, "reverse")
    backward = evaluate_program(program, numbers_for(program, drawn))
    for x in INPUTS:
        np.testing.assert_allclose(forward[f"out:{x}"], backward[f"a.{x}"], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("shape", [s for s in SHAPES if "solve" in s])
@settings(some, max_examples=4)
@given(data=st.data())
def test_derivatives_through_solves_are_differences(shape: str, data: st.DataObject) -> None:
    drawn = data.draw(programs(**SHAPES[shape]))
    program = differentiated(drawn.program, "forward")
    numbers = drawn.numbers()
    found = evaluate_program(program, numbers)
    step = 1e-6
    for x in INPUTS:
        at = numbers[x]
        for place in np.ndindex(at.shape[1:]):
            sides = []
            for sign in (1.0, 0.0, -1.0):
                moved = at.copy()
                moved[0, *place] += sign * step
                sides.append(evaluate_program(drawn.program, {**numbers, x: moved})["out"][0])
            ahead, here, behind = sides
            if abs(ahead - 2 * here + behind) < 1e-8:  # not at a kink
                slope = (ahead - behind) / (2 * step)
                assert found[f"out:{x}"][0, *place] == pytest.approx(slope, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
@settings(some, max_examples=5)
@given(data=st.data())
def test_passes_run_twice_give_the_same_program(shape: str, data: st.DataObject) -> None:
    program = data.draw(programs(**SHAPES[shape])).program
    first, second = compile_passes(program), compile_passes(program)
    assert first.digest == second.digest
    assert str(first) == str(second)
    cleaned = PASSES[0](program, Choices())
    assert PASSES[0](cleaned, Choices()).digest == cleaned.digest


def test_the_passes_that_are_told_are_those_that_run() -> None:
    names = [each.__name__ for each in PASSES]
    assert names == ["clean", "loops", "factor", "hoist", "schedule"]
    g = Builder()
    x = g.node("input", (), ("x", 0))
    variable = Variable("x", Scalar, (), (x,))
    assert [name for name, _ in walk_passes(Program({}, (variable,), (), (variable,)))] == names


def test_axes_are_written_out_where_asked_and_only_there() -> None:
    g = Builder({"cell": 5})
    x = g.node("input", (), ("0", 0), (CELL,))
    u, _ = update(g, "solve", x, x)
    given = (Variable("0", Scalar, x.axes, (x,)),)
    program = Program(g.extents, given, (), (Variable("out", Scalar, u.axes, (u,)),))
    numbers = {"0": np.linspace(-1, 1, 10).reshape(2, 5)}
    expected = evaluate_program(program, numbers)
    flat = verify(unroll(program))
    assert not any(n.axes for n in flat.lines)
    assert_equal(evaluate_program(flat, numbers), expected, "unroll")
    kept = compile_passes(program, Choices(unroll_limit=0))
    assert any(n.axes for s in kept.solves for n in s.rows)


def promoted(drawn: Drawn, count: int) -> Program:
    """The program with its last inputs as parameters."""
    program = drawn.program
    b = Builder(program.extents)
    changed = program.inputs[-count:]
    fresh = {v.nodes[0].id: b.node("parameter", (), (v.name, 0), v.axes) for v in changed}
    moved = renew(program, fresh, b)
    parameters = [
        Parameter(v, Scalar(x, sub_batch_ndim=len(v.axes)))
        for v, x in zip(moved.inputs[-count:], drawn.point[-count:], strict=True)
    ]
    return replace(moved, inputs=moved.inputs[:-count], parameters=tuple(parameters))


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("shape", SHAPES)
@some
@given(data=st.data())
def test_what_parameters_alone_decide_is_hoisted(
    shape: str, count: int, data: st.DataObject
) -> None:
    drawn = data.draw(programs(**SHAPES[shape]))
    program = verify(promoted(drawn, count))
    numbers = {v.name: drawn.numbers()[v.name] for v in program.inputs}
    expected = evaluate_program(drawn.program, drawn.numbers())
    for name, after in walk_passes(program):
        assert_equal(evaluate_program(after, numbers), expected, name)
        if name not in ("hoist", "schedule"):
            assert not after.hoisted
            continue
        given_once = {n.id for p in after.parameters for n in p.variable.nodes}
        alone = {n.id for n in after.lines if _decided(n, given_once)}
        hoisted = {n.id for n in sort_lines(after.hoisted)}
        assert hoisted <= alone | given_once | {n.id for n in after.lines if n.is_number}
        for node in after.lines:
            if node.id not in hoisted and node.op != "solve" and not node.is_condition:
                read = ({a.id for a in node.args} & alone) - hoisted - given_once
                assert not read or all(_waits(a) for a in node.args if a.id in read)


def _decided(node: Node, given_once: set[int]) -> bool:
    """Whether a line reads parameters and numbers alone, and no solve."""
    lines = sort_lines([node])
    leaves = [n for n in lines if not n.args and not n.is_number]
    plain = all(n.op != "solve" for n in lines)
    return plain and bool(leaves) and all(n.id in given_once for n in leaves)


def _waits(node: Node) -> bool:
    """Whether a line is told anew at every point: a condition is no number to be kept."""
    return node.is_condition or any(_waits(a) for a in node.args)
