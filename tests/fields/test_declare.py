"""Computes declare themselves by their signatures."""

import ast
import inspect
import re
import textwrap
from pathlib import Path
from typing import Any, Literal

import pytest
import torch

from ingot.fields import COMPUTES, POSTPROCESSORS, Grid, Space, build, compute, run
from ingot.fields.blocks import domain, executioner, functions, measure, problem, variables
from ingot.fields.blocks.compute_list import GroupOptions
from ingot.fields.declare import (
    BOUNDARIES,
    REQUIRED,
    DeclaredCompute,
    Number,
    Time,
    named,
    options_of,
)
from ingot.fields.outputs import table, xdmf
from ingot.fields.solvers import SOLVERS
from ingot.hit import read_text

EVERY = [*COMPUTES.values(), *POSTPROCESSORS.values()]
OPTIONS = [
    domain.Domain, problem.ProblemOptions, variables.BufferOptions, variables.VariableOptions,
    variables.ProjectTensorAux, measure.TensorHistogram, measure.Terminator, table.OutputOptions,
    table.OneOutput, xdmf.XDMFTensorOutput, executioner.Executioner, GroupOptions,
    *executioner.STEPPERS.values(), *functions.FUNCTION_TYPES.values(), *measure.HOST.values(),
]  # fmt: skip


@pytest.mark.parametrize("declared", EVERY, ids=lambda d: d.name)
def test_every_option_of_a_compute_has_its_sentence(declared: DeclaredCompute) -> None:
    assert declared.doc
    assert [option.name for option in declared.options if not option.doc] == []


@pytest.mark.parametrize("cls", [*SOLVERS.values(), *OPTIONS], ids=lambda c: c.__name__)
def test_every_option_of_a_block_has_its_sentence(cls: Any) -> None:
    assert [option.name for option in options_of(cls) if not option.doc] == []


def test_a_signature_is_a_schema() -> None:
    options = {o.name: (o.type, o.default) for o in COMPUTES["FFTGradient"].options}
    assert options["buffer"] == (str, REQUIRED)
    assert options["input"] == (str, REQUIRED)
    assert options["direction"] == (Literal["X", "Y", "Z"], REQUIRED)
    assert options["input_is_reciprocal"] == (bool, False)


C = named("c")
SPREAD = """
[Domain]
  dim = 1
  nx = 2
[]
[Problem]
  scalar_constant_names = w
  scalar_constant_values = 4
[]
[TensorComputes/Initialize]
  [c]
    type = ConstantTensor
    buffer = c
    real = 10
  []
  [spread]
    type = Spread
    low = l
    high = h
    width = w
  []
[]
"""


def test_a_compute_of_the_user_runs(tmp_path: Path) -> None:
    @compute(gives=("low", "high"))
    def Spread(space: Space, time: Time, field: Grid = C, *, width: Number = 1.0) -> Any:
        """Two fields around one."""
        return field - width + time, field + width * space.axes[0]

    try:
        state = run(build(read_text(SPREAD, moose=True)), tmp_path).state
    finally:
        del COMPUTES[Spread.__name__]
    assert state.buffers["l"].tolist() == [6.0, 6.0]
    torch.testing.assert_close(state.buffers["h"], torch.tensor([11.0, 13.0]).double())


def test_leaving_a_compute_out_needs_a_reason() -> None:
    with pytest.raises(TypeError, match="needs a reason"):
        compute(jit=False)


BY_THE_ENGINE = {"compatible", "region_id", "always_update_psi"}
"""Arguments that are read where a compute is bound, to choose what it is given."""


@pytest.mark.parametrize("declared", [*EVERY, *BOUNDARIES.values()], ids=lambda each: each.name)
def test_every_option_of_a_compute_is_read_or_said_not_to_be(declared: DeclaredCompute) -> None:
    if declared.iterates is not None or declared.load is not None:
        return  # their options are read by what they load or iterate
    tree = ast.parse(textwrap.dedent(inspect.getsource(declared.function)))
    read = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)} | BY_THE_ENGINE
    if declared.prepare is not None:
        read |= set(inspect.signature(declared.prepare[0]).parameters)
    ignored = [a.option for a in declared.arguments if a.name not in read]
    assert all(o.doc.startswith(("accepted", "not ")) for o in ignored), ignored


def test_every_option_of_a_block_is_read_or_said_not_to_be() -> None:
    from ingot.fields.schema import sections

    root = Path(inspect.getfile(DeclaredCompute)).parents[1]
    text = "\n".join(file.read_text() for file in root.rglob("*.py"))
    words = {*re.findall(r"[.(](\w+)|[\"'](\w+)[\"']", text)}
    used = {word.removesuffix("_") for pair in words for word in pair}
    kinds = [kind for kinds in sections().values() for kind in kinds.values()]
    for kind in kinds:
        for option in () if isinstance(kind, DeclaredCompute) else options_of(kind):
            said = option.doc.startswith(("accepted", "refused"))
            assert option.name in used or said, (kind, option.name)
