"""A function of values run on program atoms, for comparison with the same function on tensors."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ingot.execute.interpret import Interpreter
from ingot.program import Program, Variable, check
from ingot.program.graph import Graph
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
