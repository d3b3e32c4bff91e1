"""The stages: each value can be read, and what does not fit is told before anything is compiled."""

from typing import Any

import pytest

from ingot import IngotError
from ingot.hit import read_text
from ingot.package.stages import (
    Partitioned,
    Shaped,
    freeze,
    load,
    partition,
    route,
    select,
    shape,
)
from ingot.package.target import Target
from tests.packages import DIFFUSION, ELASTIC, PLASTIC, RATE, decay, elastic


def shaped(text: str, model: str, **target: Any) -> Shaped:
    """The stages before the trace."""
    return shape(freeze(route(select(load(read_text(text), model, Target(**target))))), {})


def parted(text: str, model: str, **target: Any) -> Partitioned:
    """All stages but the last."""
    return partition(shaped(text, model, **target))


def refused(text: str, model: str, **target: Any) -> str:
    """What the stages say against a target."""
    with pytest.raises(IngotError) as raised:
        parted(text, model, **target)
    return str(raised.value)


def test_every_stage_prints_readably() -> None:
    loaded = load(read_text(ELASTIC, "a.i"), "elastic", Target(parameter=("nu",)))
    selected = select(loaded)
    routed = route(selected)
    frozen = freeze(routed)
    found = shape(frozen, {})
    assert "sha256" in str(loaded) and "elastic" in str(loaded)
    assert str(selected) == "promoted  nu: Scalar = 0.3\n1 other parameters keep their values"
    assert str(routed) == "input      strain: SR2\nparameter  nu: Scalar = 0.3"
    assert str(frozen) == "hidden input  E: Scalar = 100000 125000 150000 175000 200000"
    assert str(found) == "no variable declares a structural extent"
    assert str(partition(found)).startswith("segment 0  forward, ")


def test_nothing_promoted_is_said() -> None:
    stage = shaped(PLASTIC, "update")
    assert str(stage.frozen.routed.selected).startswith("nothing is promoted\n")
    assert "parameter" not in str(stage.frozen.routed)
    assert "constant  residual.surface.yield_stress: Scalar = " in str(stage.frozen)


def test_structural_shapes_and_segments_print() -> None:
    stage = parted(DIFFUSION, "diffusion", example_batch_shape=("c=(2; 5)",), derivative=("c:t",))
    assert str(stage.shaped) == "c  structural extents (5,), an array is (*batch, 5)"
    assert str(stage).startswith("segment 0  implicit [diffusion], ")
    assert str(stage).endswith("\nslope  c:t")


@pytest.mark.parametrize("law", ["SumSlipRates", "PowerLawSlipRule"])
def test_extent_that_nothing_gives_names_the_flags(law: str) -> None:
    options = "gamma0 = 1\n    n = 2" if law == "PowerLawSlipRule" else ""
    text = f"[Models]\n  [slips]\n    type = {law}\n    {options}\n  []\n[]\n"
    assert refused(text, "slips") == (
        "error[unknown-extent]: nothing gives the extent of the axis 'slip'\n"
        "  fix: give --driver, or --example-batch-shape 'VAR=(2; N)' for a variable on it"
    )


def test_files_of_a_package_are_all_digested() -> None:
    one = decay()
    names = {p.name for p in one.folder.iterdir()} - {"decay_meta.json"}
    assert names == set(one.package.metadata.digests)


def test_batched_constant_becomes_a_hidden_input() -> None:
    meta = elastic().package.metadata
    assert [c.variable.name for c in meta.constants] == ["E"]
    assert meta.constants[0].value.shape == (5,)
    assert [p.variable.name for p in meta.parameters] == ["nu"]
    assert [v.name for v in meta.inputs] == ["strain"]


def test_metadata_tells_segments_solvers_and_origin() -> None:
    meta = decay().package.metadata
    assert [s.kind for s in meta.segments] == ["implicit", "forward"]
    assert [(s.unknowns, s.abs_tol) for s in meta.solvers] == [(("alpha",), 1e-10)]
    assert meta.origin.file == "model.i" and len(meta.origin.digest) == 64


def test_unknown_parameter_is_refused_with_the_nearest() -> None:
    text = refused(PLASTIC, "update", parameter=("residual.surface.yeild_stress",))
    assert text == (
        "error[unknown-parameter]: [update] has no parameter 'residual.surface.yeild_stress'\n"
        "  fix: did you mean 'residual.surface.yield_stress'?"
    )


def test_parameter_far_from_all_is_refused_with_the_list() -> None:
    text = refused(ELASTIC, "elastic", parameter=("zzzzzz",))
    assert text.endswith("fix: one of: E, nu")


@pytest.mark.parametrize(
    ("pair", "text"),
    [
        ("stress", "error[wrong-value]: -d stress\n  fix: write OUT:IN"),
        ("stres:strain", "-d stres:strain: there is no output 'stres'\n"
         "  fix: did you mean 'stress'?"),
        ("stress:strian", "there is no input 'strian'\n  fix: did you mean 'strain'?"),
        ("stress:nu", "there is no input 'nu'"),
    ],
)  # fmt: skip
def test_wrong_pair_is_refused(pair: str, text: str) -> None:
    assert text in refused(ELASTIC, "elastic", derivative=(pair,))


def test_all_wrong_pairs_are_told_at_once() -> None:
    assert refused(ELASTIC, "elastic", derivative=("a:", ":b", "c")).count("error[") == 3


@pytest.mark.parametrize(
    ("pairs", "wanted"),
    [
        ((":",), [("stress", "strain"), ("stress", "nu")]),
        (("stress:",), [("stress", "strain"), ("stress", "nu")]),
        ((":strain",), [("stress", "strain")]),
        ((":nu",), [("stress", "nu")]),
        ((":", ":nu"), [("stress", "strain"), ("stress", "nu")]),
    ],
)
def test_either_side_of_a_pair_may_be_left_out(
    pairs: tuple[str, ...], wanted: list[tuple[str, str]]
) -> None:
    stage = parted(ELASTIC, "elastic", derivative=pairs, parameter=("nu",))
    assert list(stage.pairs) == wanted


def test_derivative_by_a_promoted_batched_parameter_can_be_asked_for() -> None:
    stage = parted(ELASTIC, "elastic", derivative=("stress:E",), parameter=("E",))
    assert stage.pairs == (("stress", "E"),)


def test_derivative_by_a_constant_is_refused() -> None:
    assert "there is no input 'E'" in refused(ELASTIC, "elastic", derivative=("stress:E",))


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ({"rename_input": ("strain",)}, "--rename-input strain\n  fix: write OLD:NEW"),
        ({"rename_input": ("strain:",)}, "--rename-input strain:\n  fix: write OLD:NEW"),
        ({"rename_output": ("stres:s",)}, "there is no 'stres'\n  fix: did you mean 'stress'?"),
        ({"rename_parameter": ("E:stiffness",)}, "--rename-parameter: there is no 'E'"),
    ],
)
def test_wrong_rename_is_refused(target: dict[str, Any], text: str) -> None:
    assert text in refused(ELASTIC, "elastic", parameter=("nu",), **target)


def test_two_inputs_of_one_name_are_refused() -> None:
    text = refused(PLASTIC, "update", rename_input=("E:t",))
    assert "error[duplicate-variable]: --rename-input: two are called 't'" in text


def test_renamed_variables_are_renamed_everywhere() -> None:
    stage = parted(
        ELASTIC, "elastic", parameter=("nu",), rename_input=("strain:eps",),
        rename_output=("stress:sig",), rename_parameter=("nu:poisson",), derivative=("sig:eps",),
    )  # fmt: skip
    program = stage.program
    assert [v.name for v in (*program.inputs, *program.outputs)] == ["eps", "sig"]
    assert program.parameters[0].variable.name == "poisson"


@pytest.mark.parametrize(
    ("shapes", "code"),
    [
        (("c=5",), "wrong-value"),
        (("(2; x)",), "wrong-value"),
        (("q=(2; 5)",), "unknown-variable"),
        (("c=(2; 5)", "c=(2; 6)"), "duplicate-field"),
        (("c=(2; 5)", "(2; 5)"), ""),
    ],
)
def test_wrong_example_shape_is_refused(shapes: tuple[str, ...], code: str) -> None:
    assert f"error[{code}" in refused(DIFFUSION, "diffusion", example_batch_shape=shapes)


def test_missing_extent_names_the_flag() -> None:
    assert "example_batch_shape" in refused(DIFFUSION, "diffusion")


def test_promoted_parameter_inside_the_solve_is_found_by_its_whole_name() -> None:
    assert RATE in [p.variable.name for p in decay().package.metadata.parameters]
