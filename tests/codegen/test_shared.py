"""Definitions that kernels share: once each, and never another one of the same name."""

import re

import pytest

from ingot.codegen.shared import SharedDefinitions
from ingot.codegen.source import write_section
from ingot.program import Choices, compile_passes, with_adjoint, with_jacobian
from tests.systems import plasticity, program_of

ONE = "constexpr int one = 1;"
OTHER = "constexpr int one = 2;"
READS = "INGOT_CALL int more() {\n  return one + 1;\n}"
ABOVE = "[[maybe_unused]] INGOT_COLD int most() {\n  return more() + 1;\n}"


def test_equal_definitions_stand_once() -> None:
    shared = SharedDefinitions()
    assert shared.write([ONE, READS], "a") == [ONE, READS]
    assert shared.write([ONE, READS, ABOVE], "b") == ["using a::one;", "using a::more;", ABOVE]
    assert shared.write([ONE, READS, ABOVE], "c") == [
        "using a::one;", "using a::more;", "using b::most;"
    ]  # fmt: skip


def test_equal_text_that_reads_another_definition_is_not_shared() -> None:
    shared = SharedDefinitions()
    shared.write([ONE, READS, ABOVE], "a")
    assert shared.write([OTHER, READS, ABOVE], "b") == [OTHER, READS, ABOVE]
    # each with the definitions that it reads, whichever came first
    assert shared.write([OTHER, READS, ABOVE], "c") == [
        "using b::one;", "using b::more;", "using b::most;"
    ]  # fmt: skip
    assert shared.write([ONE, READS, ABOVE], "d") == [
        "using a::one;", "using a::more;", "using a::most;"
    ]  # fmt: skip


@pytest.mark.parametrize("derivative", ["slopes", "adjoints"])
def test_newton_is_written_once_for_values_and_derivatives(derivative: str) -> None:
    program = program_of(plasticity("FBComplementarity", isotropic=True, kinematic=False))
    outputs, inputs = [v.name for v in program.outputs], [v.name for v in program.inputs]
    other = (
        with_jacobian(program, [(y, x) for y in outputs for x in inputs])
        if derivative == "slopes" else with_adjoint(program, outputs, inputs)
    )  # fmt: skip
    values = compile_passes(program)
    like = {s.factored.source: s for s in values.solves if s.factored is not None}
    shared = SharedDefinitions()
    first = write_section(values, "forward", shared=shared)
    second = write_section(compile_passes(other, Choices(like=like)), "other", shared=shared)
    assert re.search(r"void newton_0\(", first)
    assert not re.search(r"void (newton|slopes)_0\(", second)
    assert "using forward_lines::newton_0;" in second
