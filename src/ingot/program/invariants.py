"""What must hold of every program, checked after every pass; linear in its lines."""

from collections.abc import Iterable, Sequence

from ingot.program.builder import Node, Space, sort_lines
from ingot.program.implicit import Solve
from ingot.program.operations import operation
from ingot.program.program import Program
from ingot.types.elementwise import ELEMENTWISE

__all__ = ["verify"]


def verify(program: Program, done: dict[int, Solve] | None = None) -> Program:
    """The program itself, if nothing is read before it is given and every line is well formed.

    done: solves, by identity, that are known to be so; those that are found so join them.
    """
    given = [n for v in program.given for n in v.nodes]
    for v in (*program.given, *program.outputs):
        for node in v.nodes:
            assert {a.key for a in node.axes} <= {a.key for a in v.axes}, f"axes of '{v.name}'"
    _verify_lines(program, (*program.roots, *program.hoisted), given, {} if done is None else done)
    return program


def _verify_lines(
    space: Space, roots: Sequence[Node], given: Iterable[Node], done: dict[int, Solve]
) -> None:
    known = {n.id: n for n in given}
    for node in sort_lines(roots):
        rule = operation(node.op)
        for arg in node.args:
            assert arg.id < node.id, f"{node.op} {node} reads {arg} too early"
            assert known.get(arg.id) is arg, f"{node.op} {node} reads a line of another program"
        if rule.is_placeholder:
            assert known.get(node.id) is node, f"{node.op} {node.attr} is read but not given"
        reads = len(node.args)
        assert rule.arity in (None, reads), f"{node.op} {node} has {reads} operands"
        if node.op in ELEMENTWISE:
            axes = {a for arg in node.args for a in arg.axes}
            assert axes == set(node.axes), f"axes of {node.op} {node}"
        for axis in node.axes:
            space.extent(axis)
        rule.verify(space, node)
        inner, placeholders = rule.inside(node)
        if inner:
            _verify_lines(space, inner, placeholders, done)
        if node.op == "solve":
            _verify_solve(space, node, done)
        known[node.id] = node


def _verify_solve(space: Space, node: Node, done: dict[int, Solve]) -> None:
    solve: Solve = node.attr
    width = len(solve.columns)
    assert len(solve.rows) == width, f"{solve} is not square"
    assert len(node.args) == width + len(solve.given), f"{solve} has other arguments than it reads"
    for row, column in zip(solve.rows, solve.columns, strict=True):
        assert set(row.axes) <= set(column.axes), f"{solve}: axes of {row} and {column}"
    for arg, given in zip(node.args[width:], solve.given, strict=True):
        assert set(arg.axes) == set(given.axes), f"{solve}: axes of an argument"
    if id(solve) in done:
        return
    done[id(solve)] = solve
    _verify_lines(space, solve.roots, (*solve.columns, *solve.given, *solve.system_inputs), done)
