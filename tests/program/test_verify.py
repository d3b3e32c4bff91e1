"""`verify` passes what builders make, and finds every way in which a line can be broken."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from ingot.program import (
    Axis,
    Builder,
    Choices,
    Node,
    Program,
    Variable,
    compile_passes,
    operation,
    verify,
    with_adjoint,
    with_jacobian,
)  # fmt: skip
from ingot.types import Scalar
from ingot.types.elementwise import ELEMENTWISE
from tests.program.graphs import CELL, SHAPES, programs, update

some = settings(
    max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck),
    phases=(Phase.generate,),
)  # fmt: skip


def program_in(*, axes: bool = False, nested: bool = False) -> Program:
    g = Builder({"cell": 5})
    laid = (CELL,) if axes else ()
    x, y = (g.node("input", (), (n, 0), laid) for n in "xy")
    u, v = update(g, "solve", g.emit("mul", x, y), y, nested=nested)
    out = g.emit("sub", g.emit("exp", u), v)
    given = tuple(Variable(n, Scalar, laid, (node,)) for n, node in (("x", x), ("y", y)))
    return verify(Program(g.extents, given, (), (Variable("out", Scalar, laid, (out,)),)))


def mutable(program: Program) -> Program:
    """A copy of everything, solves and their lines included, whose lines may be broken."""
    return copy.deepcopy(program, {id(program.extents): program.extents})


def broken_at(node: Node, **changes: object) -> None:
    for name, value in changes.items():
        setattr(node, name, value)


def refused(program: Program, match: str) -> None:
    with pytest.raises(AssertionError, match=match):
        verify(program)


def lines_with(program: Program, wanted: Callable[[Node], bool]) -> Iterator[Node]:
    return (n for n in program.lines if wanted(n))


def fresh(program: Program) -> Program:
    """The same program, its cached lines left out."""
    return replace(program)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", ["values", "forward", "reverse", "compiled"])
@some
@given(data=st.data())
def test_random_breakage_is_found(shape: str, mode: str, data: st.DataObject) -> None:
    """One line of a drawn program is broken in one of many ways."""
    drawn = data.draw(programs(**SHAPES[shape]))
    program = drawn.program
    if mode == "forward":
        program = with_jacobian(program, [("out", "0")])
    elif mode == "reverse":
        program = with_adjoint(program, ["out"], ["0"])
    elif mode == "compiled":
        program = compile_passes(program, Choices(unroll_limit=0))
    broken = mutable(verify(program))
    lines = [n for n in broken.lines if n.args]
    node = lines[data.draw(st.integers(0, len(lines) - 1))]
    ways = ["foreign", "later", "missing"]
    # some read any number of entries
    fixed = operation(node.op).arity is not None or node.op in ("solve", "linear")
    ways += ["operands"] if fixed else []
    ways += ["axes"] if node.op in ELEMENTWISE else []
    ways += ["square", "arguments"] if node.op == "solve" else []
    ways += ["sides"] if node.op == "linear" else []
    way = data.draw(st.sampled_from(ways))
    match way:
        case "foreign":
            twin = copy.copy(node.args[0])
            broken_at(node, args=(twin, *node.args[1:]))
            assume(_is_read(broken, node, twin))  # else its twin takes its place, and all is well
        case "later":
            late = copy.copy(node.args[0])
            late.id = node.id + 1
            broken_at(node, args=(late, *node.args[1:]))
        case "missing":
            leaf = next(n for n in broken.lines if n.op == "input")
            broken = replace(broken, inputs=tuple(v for v in broken.inputs if leaf not in v.nodes))
        case "operands":
            broken_at(node, args=(*node.args, node.args[0]))
        case "axes":
            broken_at(node, axes=(*node.axes, Axis("nowhere")))
        case "square":
            rows = node.attr.residuals
            broken_at(node, attr=replace(node.attr, residuals=(*rows, rows[0])))
        case "arguments":
            broken_at(node, args=node.args[:-1])
        case "sides":
            broken_at(node, attr=replace(node.attr, sides=node.attr.sides + 1))
    with pytest.raises((AssertionError, KeyError)):
        verify(fresh(broken))


def _is_read(program: Program, reader: Node, twin: Node) -> bool:
    """Whether the line that a twin was made of is still read, or given, elsewhere."""
    lines = [n for n in _all_lines(program) if n is not reader]
    given = [n for v in program.given for n in v.nodes]
    read = [a for n in lines for a in n.args]
    return any(n.id == twin.id and n is not twin for n in (*given, *read))


def _all_lines(program: Program) -> list[Node]:
    found: dict[int, Node] = {}
    stack = list(program.roots)
    while stack:
        node = stack.pop()
        if id(node) not in found:
            found[id(node)] = node
            stack += node.args
    return list(found.values())


# each kind by hand, with its words


def test_an_input_that_is_not_given() -> None:
    program = program_in()
    refused(replace(program, inputs=program.inputs[:1]), "input .* is read but not given")


def test_a_line_of_another_program() -> None:
    program, other = program_in(), program_in()
    stray = replace(program.outputs[0], nodes=other.outputs[0].nodes)
    refused(replace(program, outputs=(stray,)), "not given|another program")


def test_a_line_that_is_read_too_early() -> None:
    program = mutable(program_in())
    (last,) = program.roots
    early = next(lines_with(program, lambda n: n.op == "mul"))
    broken_at(early, args=(last, *early.args[1:]))
    refused(fresh(program), "too early")


def test_an_operation_with_another_number_of_operands() -> None:
    program = mutable(program_in())
    node = next(lines_with(program, lambda n: n.op == "exp"))
    broken_at(node, args=node.args * 2)
    refused(fresh(program), "exp .* has 2 operands")


def test_an_elementwise_line_on_other_axes_than_its_operands() -> None:
    for axes in ((), (Axis("cell", 1),)):
        program = mutable(program_in(axes=True))
        node = next(lines_with(program, lambda n: n.op == "exp"))
        broken_at(node, axes=axes)
        refused(fresh(program), "axes of")


def test_an_output_on_axes_that_its_variable_does_not_have() -> None:
    program = program_in(axes=True)
    flat = replace(program.outputs[0], axes=())
    refused(replace(program, outputs=(flat,)), "axes of 'out'")


def test_a_system_that_is_not_square() -> None:
    program = mutable(program_in())
    node = next(lines_with(program, lambda n: n.op == "solve"))
    broken_at(node, attr=replace(node.attr, residuals=node.attr.residuals[:1]))
    refused(fresh(program), "not square")


def test_a_solve_with_other_arguments_than_it_reads() -> None:
    program = mutable(program_in())
    node = next(lines_with(program, lambda n: n.op == "solve"))
    broken_at(node, args=node.args[:-1])
    refused(fresh(program), "other arguments")


def test_a_solve_whose_residual_reads_a_line_around_it() -> None:
    for nested in (False, True):
        program = mutable(program_in(nested=nested))
        node = next(lines_with(program, lambda n: n.op == "solve"))
        row = node.attr.rows[0]
        outside = program.inputs[0].nodes[0]
        broken_at(row, args=(outside, *row.args[1:]))
        refused(fresh(program), "another program|not given|too early|axes")


def test_an_argument_on_other_axes_than_the_residuals_take_it_for() -> None:
    program = mutable(program_in(axes=True))
    node = next(lines_with(program, lambda n: n.op == "solve"))
    flat = Node(-1, "const", (), 1.0, ())
    broken_at(node, args=(*node.args[:-1], flat))
    refused(fresh(program), "axes|another program|too early")


def test_a_linear_system_at_the_solution_of_another_solve() -> None:
    g = Builder()
    x = g.node("input", (), ("x", 0))
    first, _ = update(g, "first", x, x)
    last, _ = update(g, "second", first, x)
    given = (Variable("x", Scalar, (), (x,)),)
    program = Program({}, given, (), (Variable("out", Scalar, (), (last,)),))
    broken = mutable(with_jacobian(program, [("out", "x")]))
    one, two = lines_with(broken, lambda n: n.op == "linear")
    broken_at(two, args=(*one.args[:2], *two.args[2:]))
    refused(fresh(broken), "another solve")


def test_a_transposed_system_that_was_not_factored() -> None:
    program = program_in()
    forward = mutable(compile_passes(with_jacobian(program, [("out", "x")])))
    node = next(lines_with(forward, lambda n: n.op == "linear"))
    broken_at(node, attr=replace(node.attr, is_transposed=True))
    refused(fresh(forward), "factored without")


def test_lines_are_as_frozen_as_they_look() -> None:
    program = program_in(nested=True)
    with pytest.raises(TypeError):
        program.extents["cell"] = 3  # type: ignore[index]
    with pytest.raises(AttributeError):
        program.inputs = ()  # type: ignore[misc]
    before = {n.id: (n.op, n.args, n.attr, n.axes) for n in program.lines}
    builder = program.builder()
    builder.emit("exp", program.roots[0])
    assert {n.id: (n.op, n.args, n.attr, n.axes) for n in fresh(program).lines} == before


def test_verification_is_linear_in_the_lines() -> None:
    """Every line is looked at once, those of a solve that many lines read too."""
    import time

    def seconds(count: int) -> float:
        g = Builder()
        x = g.node("input", (), ("x", 0))
        last = x
        for k in range(count):
            last = g.emit("sin", g.emit("add", last, 1.0 + k))
        given = (Variable("x", Scalar, (), (x,)),)
        program = Program({}, given, (), (Variable("out", Scalar, (), (last,)),))
        times = []
        for _ in range(5):
            begun = time.process_time()
            verify(program)
            times.append(time.process_time() - begun)
        return float(np.median(times))

    assert seconds(40_000) < 1.6 * 4 * seconds(10_000)
