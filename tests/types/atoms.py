"""A function of values run on program atoms, for comparison with the same function on tensors."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ingot.execute.interpret import Interpreter
from ingot.execute.kernel import Kernel
from ingot.program import Program, Variable, check, freeze, with_jacobian
from ingot.program.differentiate import gradient
from ingot.program.graph import Graph
from ingot.program.tangent import block
from ingot.types import Flag, Scalar, Value, where

EPSILON = torch.finfo(torch.float64).eps


def traced(function: Callable[..., Any], *values: Value) -> Program:
    """The program of a function, with one input a0, a1, ... for every value."""
    graph = Graph()
    inputs = []
    for i, value in enumerate(values):
        size = math.prod(value.base)
        nodes = tuple(graph.node("input", (), (f"a{i}", k)) for k in range(size))
        inputs.append(Variable(f"a{i}", type(value), (), nodes))
    result = function(*(v.kind(v.nodes) for v in inputs))
    if isinstance(result, Flag):
        result = where(result, Scalar((graph.one,)), Scalar((graph.zero,)))
    program = Program(graph, tuple(inputs), (), (Variable("out", type(result), (), result.data),))
    check(program)
    return program


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
        rows = [gradient(node, given.nodes) for node in result.nodes]
        kind = block((len(rows), len(given.nodes)))
        slopes = Variable("out:a0", kind, (), tuple(n for row in rows for n in row))
        program = replace(program, outputs=(slopes,))
    else:
        program = with_jacobian(program, [("out", "a0")])
    run = Kernel(freeze(program, EPSILON)) if kernel else Interpreter(program)
    found = run({"a0": value.data})[0]["out:a0"]
    batch = value.data.shape[: value.data.ndim - len(value.base)]
    return found.reshape(*batch, len(result.nodes), len(given.nodes))
