"""A program cut at its solves computes what it computed whole, in the user's names."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from ingot.drivers import build_driver, self_checking
from ingot.execute.interpret import Interpreter
from ingot.hit import read, read_text
from ingot.model import build
from ingot.program import Program, freeze, prepared, trace
from ingot.program.partition import Segment, check_segments
from ingot.program.partition import partition as cut
from tests.compositions import TEXTS, X, combination, composed, models
from tests.systems import plasticity, program_of

KINDS = {
    "explicit": "forward", "root": "implicit", "no predictor": "implicit",
    "after": "implicit forward", "before": "forward implicit",
    "middle": "forward implicit forward", "two": "forward implicit implicit forward",
    "two apart": "forward implicit implicit",
    "chained": "forward implicit forward implicit forward",
}  # fmt: skip


def program(name: str) -> Program:
    return program_of(TEXTS[name], "model")


def parts(name: str) -> tuple[Segment, ...]:
    return cut(program(name))


def sampled(whole: Program, batch: int = 3) -> dict[str, Tensor]:
    source = torch.Generator().manual_seed(1)
    found = {}
    for v in whole.inputs:
        sizes = [whole.extent(a) for a in v.axes]
        shape = (batch, *sizes, *v.kind.base)
        found[v.name] = 0.1 * torch.rand(shape, generator=source, dtype=torch.float64)
    if "t" in found:
        found["t"] = found["t~1"] + 0.1
    return found


def in_turn(segments: tuple[Segment, ...], inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """All segments by the interpreter, values handed on by name."""
    gives = {n for s in segments for n in s.gives}
    known = {f"{n} given" if n in gives else n: x for n, x in inputs.items()}
    for segment in segments:
        outputs, _ = Interpreter(segment.program)(
            {n: known[n] for n in segment.reads if n in known}
        )
        known |= outputs
    return known


def assert_same(whole: Program, segments: tuple[Segment, ...], batch: int = 3) -> None:
    check_segments(segments, whole)
    inputs = sampled(whole, batch)
    expected, _ = Interpreter(whole)(inputs)
    found = in_turn(segments, inputs)
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-13, atol=1e-14, equal_nan=True)


@pytest.mark.parametrize("name", TEXTS)
def test_segments_in_turn_are_the_whole(name: str) -> None:
    whole = program(name)
    assert_same(whole, cut(whole))


@pytest.mark.parametrize("name", TEXTS)
def test_cut_at_every_solve_and_nowhere_else(name: str) -> None:
    assert " ".join(s.kind for s in parts(name)) == KINDS[name]


def test_values_keep_the_users_names() -> None:
    first, solve, last = parts("middle")
    assert first.reads == ("a", "b")
    assert first.gives == ("drive",)
    assert solve.name == "solve_x"
    assert set(solve.reads) == {"t", "t~1", "x~1", "drive"}
    assert solve.gives == ("x",)
    assert set(last.reads) == {"x", "drive"}
    assert last.gives == ("y",)


def test_what_solves_do_not_need_waits_for_the_end() -> None:
    *_, last = parts("after")
    assert last.gives == ("y",)
    assert "drive" in last.reads


def test_one_forward_segment_serves_two_solves() -> None:
    first, *_ = parts("two apart")
    assert set(first.gives) == {"drive", "g"}


def test_guess_of_the_same_name_is_told_apart() -> None:
    (only,) = parts("no predictor")
    assert "x given" in only.reads
    assert only.gives == ("x",)


def test_names_inside_do_not_meet_names_outside() -> None:
    inner = models(combination("inner", {"a": 1.0, "b": 2.0}, "drive"))
    inner += composed("inner solve_x", name="inside") + X
    outer = models(combination("outer", {"a": 7.0, "x": 1.0}, "drive"))
    outer += models(combination("again", {"drive": 5.0}, "y"))
    whole = program_of(inner + outer + composed("inside outer again", "drive"), "model")
    segments = cut(whole)
    assert "drive of solve_x" in segments[0].gives
    assert_same(whole, segments)


def test_promoted_parameter_reaches_its_solve() -> None:
    traced = trace(build(read_text(TEXTS["middle"]), "model"))
    name = next(p.variable.name for p in traced.parameters if "rate_x" in p.variable.name)
    whole = freeze(traced, 2.2e-16, keep=[name])
    first, solve, last = cut(whole)
    assert name in solve.reads
    assert [p.variable.name for p in solve.program.parameters] == [name]
    assert not first.program.parameters
    assert not last.program.parameters
    assert_same(whole, (first, solve, last))


def test_input_that_is_an_output_needs_no_segment() -> None:
    whole = program("explicit")
    (a, *_) = whole.inputs
    both = replace(whole, outputs=(*whole.outputs, a))
    (only,) = cut(both)
    assert only.gives == ("drive",)
    renamed = replace(whole, outputs=(*whole.outputs, replace(a, name="copy")))
    (only,) = cut(renamed)
    assert set(only.gives) == {"drive", "copy"}
    assert_same(renamed, (only,))


def test_renamed_output_is_the_unknown_itself() -> None:
    whole = program("root")
    renamed = replace(whole, outputs=(replace(whole.outputs[0], name="solution"),))
    (only,) = cut(renamed)
    assert only.gives == ("solution",)
    assert_same(renamed, (only,))


def test_constant_output_has_a_batch() -> None:
    whole = program("explicit")
    fixed = replace(whole.outputs[0], name="fixed", nodes=(whole.builder().const(3.0),))
    constant = replace(whole, outputs=(fixed,))
    (only,) = cut(constant)
    assert only.reads == ("a",)
    assert_same(constant, (only,))


def test_long_lines_are_passed_on_short_ones_computed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`drive` is named; what it is made of is not, and `y` reads that too."""
    names = [f"a{i}" for i in range(80)]
    blocks = [combination("first", dict.fromkeys(names, 1.5), "sum")]
    blocks += [combination("second", {"sum": 2.0, "b": 1.0}, "drive")]
    blocks += [combination("third", {"sum": 3.0, "x": 1.0}, "y")]
    text = models(*blocks) + X + composed("first second solve_x third")
    whole = program_of(text, "model")
    first, _, last = cut(whole)
    assert first.gives == ("drive", "line 1")
    assert "line 1" in last.reads
    assert_same(whole, cut(whole))
    monkeypatch.setattr("ingot.program.partition.MIN_LINES_TO_PASS", 1000)
    first, _, last = cut(whole)
    assert first.gives == ("drive",)
    assert "a0" in last.reads
    assert_same(whole, cut(whole))


def test_text_names_what_is_read_and_given() -> None:
    text = "\n".join(map(str, parts("middle")))
    assert "implicit [solve_x]" in text
    assert "reads  a, b" in text
    assert "gives  y" in text


def test_check_sees_a_value_read_too_early() -> None:
    whole = program("middle")
    first, solve, last = cut(whole)
    with pytest.raises(AssertionError, match="too early"):
        check_segments((solve, first, last), whole)
    with pytest.raises(AssertionError, match="never given"):
        check_segments((first, solve), whole)


def test_plasticity_is_one_segment() -> None:
    whole = program_of(plasticity("FBComplementarity", isotropic=True, kinematic=False))
    (only,) = cut(whole)
    assert only.kind == "implicit"
    assert set(only.gives) == {"plastic_strain", "equivalent_plastic_strain", "flow_rate"}


@pytest.mark.parametrize(
    "file",
    [
        "regression/solid_mechanics/rate_independent_plasticity/isoharden/model.i",
        "regression/solid_mechanics/viscoplasticity/free_sintering/model.i",
        "regression/finite_volume/combined/model.i",
        "regression/chemical_reactions/pyrolysis/model.i",
    ],
)
def test_published_models_are_the_sum_of_their_segments(file: str, cases: Path) -> None:
    tree = read(cases / file)
    (name,) = self_checking(tree)
    driver = build_driver(tree, name).driver
    whole = prepared(driver.model, driver.shapes)
    assert_same(whole, cut(whole), batch=10)
