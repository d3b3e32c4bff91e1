"""The stages: each value can be read, and what does not fit is told before anything is compiled."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import fields
from itertools import permutations
from typing import Any, get_args

import pytest
import torch

from ingot import IngotError, Problem
from ingot.execute import inductor
from ingot.hit import read_text
from ingot.package import Stage, stages
from ingot.package.compilation import Compilation
from ingot.package.describe import describe
from ingot.package.names import rename
from ingot.package.stages import STAGES, advance, load, shape
from ingot.package.target import Target
from ingot.types import Scalar
from tests.packages import DECAY, DIFFUSION, ELASTIC, ORDER, PLASTIC, RATE, decay, elastic


def parted(text: str, model: str, **target: Any) -> Compilation:
    """All stages but the last."""
    return advance(load(read_text(text), model, Target(**target)), "partition")


def refused(text: str, model: str, **target: Any) -> str:
    """What the stages say against a target."""
    with pytest.raises(IngotError) as raised:
        parted(text, model, **target)
    return str(raised.value)


def test_stages_are_those_that_the_command_line_shows() -> None:
    assert ("load", *(stage.__name__ for stage in STAGES)) == get_args(Stage)


def test_every_stage_prints_readably() -> None:
    c = load(read_text(ELASTIC, "a.i"), "elastic", Target(parameter=("nu",), derivative=(":",)))
    printed = {name: describe(advance(c, name), name) for name in get_args(Stage)}
    assert printed["load"].startswith("file  None, sha256 ") and "[elastic]" in printed["load"]
    assert printed["select"] == ("promoted  nu: Scalar = 0.3\n1 other parameters keep their values")
    assert printed["route"] == (
        "input      strain: SR2\nparameter  nu: Scalar = 0.3\noutput     stress: SR2\n"
        "slope      stress:strain\nslope      stress:nu"
    )
    assert printed["freeze"] == "hidden input  E: Scalar = 100000 125000 150000 175000 200000"
    assert printed["shape"] == "no variable has a structural extent"
    assert printed["partition"].startswith("segment 0  forward, ")
    assert printed["lower"].startswith("elastic.h\nelastic.cpp\n  values: ")


def test_a_stage_fills_its_own_fields_and_keeps_the_others() -> None:
    """Each field is given by one stage alone, and a stage says what it gives."""
    c = load(read_text(PLASTIC), "update", Target(derivative=(":",)))
    given = {
        "select": {"promoted", "parameters", "spellings"},
        "route": {"inputs", "parameters", "outputs", "pairs"},
        "freeze": {"constants", "batched"}, "shape": {"program"},
        "partition": {"segments", "slopes"}, "lower": {"kernels", "sources", "metadata"},
    }  # fmt: skip
    for stage in STAGES:
        after = stage(c)
        names = [f.name for f in fields(after)]
        changed = {name for name in names if getattr(after, name) is not getattr(c, name)}
        assert changed == given[stage.__name__]
        assert stage.__name__ in (Compilation.__doc__ or "")
        c = after


def test_values_are_those_of_the_moment_they_were_selected_or_frozen() -> None:
    target = Target(parameter=("residual.surface.yield_stress",))
    untouched = advance(load(read_text(PLASTIC), "update", target), "shape")
    loaded = load(read_text(PLASTIC), "update", target)
    frozen = advance(loaded, "freeze")
    for value in loaded.model.named_values().values():
        value.data.mul_(3)
    program = shape(frozen).program
    assert str(program) == str(untouched.program)
    (promoted,), (before,) = program.parameters, untouched.promoted.values()
    assert torch.equal(promoted.value.data, before.data)
    assert str(advance(loaded, "shape").program) != str(program)


def test_a_promoted_parameter_that_nothing_reads_is_refused() -> None:
    loaded = load(read_text(PLASTIC), "update", Target(parameter=("spare",)))
    loaded.model.values["spare"] = Scalar(1.0)
    with pytest.raises(IngotError, match=r"\[update\] does not read 'spare'"):
        advance(loaded)


def test_nothing_promoted_is_said() -> None:
    stage = parted(PLASTIC, "update")
    assert describe(stage, "select").startswith("nothing is promoted\n")
    assert "parameter" not in describe(stage, "route")
    assert "constant  residual.surface.yield_stress: Scalar = " in describe(stage, "freeze")


def test_structural_shapes_and_segments_print() -> None:
    stage = parted(DIFFUSION, "diffusion", example_batch_shape=("c=(2; 5)",), derivative=("c:t",))
    rows = describe(stage, "shape").splitlines()
    assert rows == [f"{n}  structural extents (5,), an array is (*batch, 5)" for n in ("c~1", "c")]
    assert describe(stage, "partition").startswith("segment 0  implicit [diffusion], ")
    assert describe(stage, "partition").endswith("\nslope  c:t")


@pytest.mark.parametrize("backends", [("kernel",), ("inductor",), ("kernel", "inductor")])
def test_a_program_is_cut_and_differentiated_once(
    backends: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: Counter[str] = Counter()

    def counted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            calls[name] += 1
            return real(*arguments, **named)

        return call

    monkeypatch.setattr(stages, "find_segments", counted("cut", stages.find_segments))
    monkeypatch.setattr(stages, "trace", counted("trace", stages.trace))
    monkeypatch.setattr(inductor, "partition", counted("cut", inductor.partition))
    differentiate = counted("differentiate", stages.with_jacobian)
    monkeypatch.setattr(stages, "with_jacobian", differentiate)
    advance(load(read_text(PLASTIC), "update", Target(derivative=(":",), backend=backends)))
    assert calls == {"trace": 1, "cut": 1, "differentiate": 1}


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


@pytest.mark.parametrize(
    "word",
    ["residual.surface.yield_stress", "residual.surface.sy", "surface.sy", "sy", "yield_stress",
     "update.residual.surface.sy"],
)  # fmt: skip
def test_a_parameter_answers_to_all_its_names(word: str) -> None:
    stage = parted(
        PLASTIC, "update", parameter=(word,), derivative=(":sy",),
        rename_parameter=("surface.yield_stress:limit",),
    )  # fmt: skip
    assert stage.parameters == {"residual.surface.yield_stress": "limit"}
    assert stage.pairs == tuple((y, "limit") for y in stage.outputs)
    shown = parted(PLASTIC, "update", parameter=(word, "sy"))
    assert stage.promoted.keys() == shown.promoted.keys()
    assert [p.variable.name for p in shown.program.parameters] == [word]


def test_a_name_of_several_parameters_is_refused_with_all_of_them() -> None:
    text = refused(DIFFUSION, "diffusion", parameter=("dx", "bc_value"))
    assert "'dx' may be divergence.dx or flux.dx" in text
    assert "'bc_value' may be left.bc_value or right.bc_value" in text


def test_parameter_far_from_all_is_refused_with_the_list() -> None:
    text = refused(ELASTIC, "elastic", parameter=("zzzzzz",))
    assert text.endswith("fix: one of: E, nu")


@pytest.mark.parametrize(
    ("pair", "text"),
    [
        ("stress", "error[wrong-value]: -d stress\n  fix: write OUT:IN"),
        ("stres:strain", "-d stres:strain: there is no output 'stres'\n"
         "  fix: did you mean 'stress'?"),
        ("stress:strian", "there is no input 'strian', and no such parameter is promoted\n"
         "  fix: did you mean 'strain'?"),
        ("stress:nu", "there is no input 'nu', and no such parameter is promoted\n"
         "  fix: promote it: -p nu"),
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
        ({"rename_input": ("strain:a", "strain:b")}, "--rename-input: 'strain' is renamed twice"),
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
    assert describe(stage, "route").splitlines() == [
        "input      eps (strain in the file): SR2", "parameter  poisson (nu in the file): "
        "Scalar = 0.3", "output     sig (stress in the file): SR2", "slope      sig:eps",
    ]  # fmt: skip


def test_promoted_parameters_enter_in_the_order_that_is_asked_for() -> None:
    for asked in permutations([RATE, ORDER]):
        c = parted(DECAY, "decay", parameter=asked, derivative=(":",))
        assert tuple(p.variable.name for p in c.program.parameters) == asked
        assert tuple(c.parameters) == asked
        assert [x for y, x in c.pairs if y == "alpha"][-2:] == list(asked)


def test_a_new_name_is_one_that_a_file_can_write() -> None:
    """Random names: one that is accepted is read back as one word, and as the name of a shape."""
    draw = random.Random(11)
    letters = "ab_T9.~/-+ '\";=:#[]{}$!\t\n(,\u00e9"
    accepted = refusals = 0
    for _ in range(2000):
        name = "".join(draw.choices(letters, k=draw.randint(1, 4)))
        problems: list[Problem] = []
        found = rename("--rename-input", (f"strain:{name}",), {"strain": ()}, problems)
        if problems:
            assert found == {"strain": "strain"}
            refusals += 1
            continue
        accepted += 1
        shape_row = "" if "/" in name else f"  {name} = '(2; 3)'\n"  # a path there, no name
        (block,) = read_text(f"[D]\n  names = 'x {name}'\n{shape_row}[]\n").section("D")
        assert block.require("names").words() == ("x", name)
        assert {f.name for f in block.fields} == ({"names"} if "/" in name else {"names", name})
    assert accepted > 100 and refusals > 100


@pytest.mark.parametrize(
    "name", ["a b", "1st", "-3", "a'b", 'a"', "a;b", "a:b", "a=b", "", "#a", "é"]
)
def test_a_name_that_no_file_can_write_is_refused(name: str) -> None:
    assert "--rename-input strain" in refused(ELASTIC, "elastic", rename_input=(f"strain:{name}",))


def test_a_driver_keeps_variables_and_their_histories_together() -> None:
    tree = read_text(DECAY)

    def said(**target: Any) -> str:
        with pytest.raises(IngotError) as raised:
            advance(load(tree, "decay", Target(**target), driver="driver"), "route")
        return str(raised.value)

    assert "give --rename-input alpha~1:a~1" in said(rename_output=("alpha:a",))
    assert "give --rename-input alpha~1:alpha~1" in said(rename_input=("alpha~1:old",))
    both = Target(rename_output=("alpha:a",), rename_input=("alpha~1:a~1",))
    assert advance(load(tree, "decay", both, driver="driver"), "route").outputs["alpha"] == "a"
    lone = Target(rename_output=("alpha:a",))
    assert advance(load(tree, "decay", lone), "route").outputs["alpha"] == "a"


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


CRYSTAL = """
[Tensors]
  [directions]
    type = Python
    expr = 'MillerIndex(torch.tensor([1, 1, 0]))'
  []
  [planes]
    type = Python
    expr = 'MillerIndex(torch.tensor([1, 1, 1]))'
  []
[]
[Data]
  [crystal_geometry]
    type = CubicCrystal
    lattice_parameter = 1.0
    slip_directions = 'directions'
    slip_planes = 'planes'
  []
[]
[Models]
  [shear]
    type = ResolvedShear
  []
  [rule]
    type = PowerLawSlipRule
    slip_strengths = 'strength'
    gamma0 = 1
    n = 3
  []
  [stretching]
    type = PlasticDeformationRate
  []
  [flow]
    type = ComposedModel
    models = 'shear rule stretching'
  []
[]
"""


@pytest.mark.parametrize("reader", ["shear", "stretching"])
def test_geometry_of_a_crystal_is_promoted_by_any_model_that_reads_it(reader: str) -> None:
    c = parted(CRYSTAL, "flow", parameter=(f"{reader}._cg.M_data",), derivative=(":",))
    assert list(c.promoted) == ["shear._cg.M_data"]
    assert c.pairs[-1] == ("plastic_deformation_rate", f"{reader}._cg.M_data")
    assert [p.variable.name for p in c.program.parameters] == [f"{reader}._cg.M_data"]
    assert "no parameter 'rule._cg.M_data'" in refused(
        CRYSTAL, "flow", parameter=("rule._cg.M_data",)
    )
    assert "does not read" in refused(CRYSTAL, "flow", parameter=("shear._cg.W_data",))
