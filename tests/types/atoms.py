"""A function of values run on program atoms, for comparison with the same function on tensors."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ingot.execute.interpret import Interpreter
from ingot.execute.kernel import Kernel
from ingot.program import Builder, Node, Program, Variable, freeze, verify, with_jacobian
from ingot.program.builder import Symbol
from ingot.program.derivatives import block
from ingot.program.differentiate import gradient
from ingot.types import Flag, Scalar, Value, where

EPSILON = torch.finfo(torch.float64).eps


def traced(function: Callable[..., Any], *values: Value) -> Program:
    """The program of a function, with one input a0, a1, ... for every value."""
    builder = Builder()
    inputs = []
    for i, value in enumerate(values):
        size = math.prod(value.base)
        nodes = tuple(builder.node("input", (), (f"a{i}", k)) for k in range(size))
        inputs.append(Variable(f"a{i}", type(value), (), nodes))
    result = function(*(v.kind(symbols(builder, v.nodes)) for v in inputs))
    if isinstance(result, Flag):
        one, zero = symbols(builder, (builder.one, builder.zero))
        result = where(result, Scalar((one,)), Scalar((zero,)))
    nodes = tuple(x.node for x in result.data)
    outputs = (Variable("out", type(result), (), nodes),)
    return verify(Program(builder.extents, tuple(inputs), (), outputs))


def symbols(builder: Builder, nodes: Sequence[Node]) -> tuple[Symbol, ...]:
    """Lines as the atoms that values hold."""
    return tuple(Symbol(builder, n) for n in nodes)


def on_atoms(function: Callable[..., Any], *values: Value) -> Tensor:
    """What the traced function gives for values `(*batch, *base)`."""
    run = Interpreter(traced(function, *values))
    return run({f"a{i}": value.data for i, value in enumerate(values)})[0]["out"]


def slopes_on_atoms(
    function: Callable[..., Any], value: Value, *, reverse: bool = False, kernel: bool = False
) -> Tensor:
    """The derivative `(*batch, outputs, inputs)` of the traced function by its one argument."""
    program = traced(function, value)
    (given,), (result,) = program.inputs, program.outputs
    if reverse:
        builder = program.builder()
        rows = [gradient(builder, node, given.nodes) for node in result.nodes]
        kind = block((len(rows), len(given.nodes)))
        slopes = Variable("out:a0", kind, (), tuple(n for row in rows for n in row))
        program = replace(program, outputs=(slopes,))
    else:
        program = with_jacobian(program, [("out", "a0")])
    run = Kernel(freeze(program, EPSILON)) if kernel else Interpreter(program)
    found = run({"a0": value.data})[0]["out:a0"]
    batch = value.data.shape[: value.data.ndim - len(value.base)]
    return found.reshape(*batch, len(result.nodes), len(given.nodes))
