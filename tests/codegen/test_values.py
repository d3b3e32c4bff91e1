"""Definitions that kernels share: once each, and never another one of the same name."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from ingot.codegen.frames import LANES
from ingot.codegen.source import _KernelWriter, write_section
from ingot.codegen.values import Definition, SharedDefinitions
from ingot.hit import read, read_text
from ingot.model import build
from ingot.program import (
    Choices,
    Program,
    compile_passes,
    prepared,
    with_adjoint,
    with_jacobian,
)
from tests.execute.test_substeps import program as in_parts
from tests.program.test_implicit import nested_file
from tests.systems import plasticity, program_of

ONE = Definition("constexpr int one = 1;", ("one",))
OTHER = Definition("constexpr int one = 2;", ("one",))
READS = Definition("int more() { return one + 1; }", ("more",), frozenset(["one"]))
ABOVE = Definition("int most() { return more() + 1; }", ("most",), frozenset(["more"]))


def test_equal_definitions_stand_once() -> None:
    shared = SharedDefinitions()
    assert shared.write([ONE, READS], "a") == [ONE.text, READS.text]
    assert shared.write([ONE, READS, ABOVE], "b") == [
        "using a::one;", "using a::more;", ABOVE.text
    ]  # fmt: skip
    assert shared.write([ONE, READS, ABOVE], "c") == [
        "using a::one;", "using a::more;", "using b::most;"
    ]  # fmt: skip


def test_equal_text_that_reads_another_definition_is_not_shared() -> None:
    shared = SharedDefinitions()
    shared.write([ONE, READS, ABOVE], "a")
    texts = [OTHER.text, READS.text, ABOVE.text]
    assert shared.write([OTHER, READS, ABOVE], "b") == texts
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


def with_slopes(program: Program) -> Iterator[Program]:
    outputs, inputs = [v.name for v in program.outputs], [v.name for v in program.inputs]
    yield with_jacobian(program, [(y, x) for y in outputs for x in inputs])
    yield with_adjoint(program, outputs, inputs)


EXAMPLE = Path(__file__).parents[2] / "examples" / "crystal.i"
PROGRAMS: dict[str, Callable[[], Program]] = {
    "plain": lambda: program_of(plasticity("FBComplementarity", isotropic=True, kinematic=True)),
    "in parts": lambda: in_parts("tensors"),
    "in parts on axes": lambda: in_parts("an axis"),
    "nested": lambda: prepared(build(read_text(nested_file(2)), "solve1")),
    "in regions": lambda: prepared(build(read(EXAMPLE), "crystal")),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_definition_tells_all_that_it_reads(name: str) -> None:
    """Held against the words of its text: one that is not told might be shared wrongly."""
    for program in with_slopes(PROGRAMS[name]()):
        looped = Choices(unroll_limit=0, band_from=1) if "axes" in name else Choices()
        check_definitions(_KernelWriter(compile_passes(program, looped), "none", LANES).write())


def check_definitions(definitions: Sequence[Definition]) -> None:
    defined: set[str] = set()
    for each in definitions:
        defined |= {*each.names}
        words = {*re.findall(r"\w+", "\n".join(line.partition("//")[0]
                                               for line in each.text.splitlines()))}  # fmt: skip
        assert words & defined - {*each.names} <= each.reads, each.names
        named = re.findall(r"^(?:\[\[maybe_unused\]\] )?(?:INGOT_\w+|constexpr) \w+ (\w+)",
                           each.text, re.MULTILINE)  # fmt: skip
        assert {*named} == {*each.names}
    assert {"hoist", "point", "newton_0", "slopes_0"} <= defined
