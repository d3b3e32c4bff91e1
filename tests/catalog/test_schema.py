"""What is told of a law is what its declaration says, and its example is a block that runs."""

import pytest

from ingot.catalog import Declared, load
from ingot.catalog.schema import describe_law, read_docstring
from ingot.hit import read_text
from ingot.model import build
from ingot.program import trace
from ingot.program.layouts import parse_axis

every_law = pytest.mark.parametrize("law", load().values(), ids=lambda law: law.name)
EXTENTS = {"slip": 12, "cell": 3}


def traced(law: Declared, example: str) -> None:
    """Read, build and trace the example."""
    tree = read_text(example)
    (block,) = (b for part in tree.section("Models") for b in part.blocks)
    model = build(tree, block.name)
    inputs = {s.argument: s for s in law.inputs if s.axes}
    shapes = {
        model.body.inputs[a]: tuple(EXTENTS[x.name] + x.offset for x in map(parse_axis, slot.axes))
        for a, slot in inputs.items()
    }
    trace(model, shapes)


@every_law
def test_an_example_is_a_block_that_runs(law: Declared) -> None:
    traced(law, describe_law(law)["example"])


@every_law
def test_what_an_example_leaves_out_is_what_holds_without_it(law: Declared) -> None:
    example = describe_law(law)["example"]
    traced(law, example.replace("# ", ""))
    assert all(f" {name} = " in example for name in law.options_known)


@every_law
def test_every_key_of_a_block_is_told(law: Declared) -> None:
    told = describe_law(law)
    groups = [told[group] for group in ("inputs", "outputs", "parameters", "options")]
    renamed = [n for group in groups for n, each in group.items() if each.get("renamed", True)]
    assert sorted(renamed) == sorted(law.options_known)
    assert all(each["doc"] for group in groups[2:] for each in group.values())


def test_a_law_is_told_by_its_declaration() -> None:
    told = describe_law(load()["YieldFunction"])
    assert told["family"] == "plasticity"
    assert r"$f = \sqrt{2/3}\,(\bar\sigma - \sigma_y - h)$" in told["doc"]
    assert told["inputs"]["isotropic_hardening"] == {"kind": "Scalar", "optional": True}
    assert told["outputs"] == {"yield_function": {"kind": "Scalar", "name": "yield_function"}}
    assert told["parameters"]["yield_stress"] == {
        "kind": "Scalar", "variable": True, "required": True,
        "doc": r"initial size of the surface, $\sigma_y$",
    }  # fmt: skip


def test_names_that_follow_from_others_are_told_as_such() -> None:
    told = describe_law(load()["SR2BackwardEulerTimeIntegration"])["inputs"]
    assert told["rate"]["name"] == "{variable}_rate"
    assert told["{variable}~1"]["renamed"] is False


def documented() -> None:
    """What it is,
    in two lines.

    A remark: not an option.

    one, two: of two
    lines; three: with a `word: in it`;
    four: the last.
    """


def test_a_docstring_tells_what_it_is_and_each_option() -> None:
    assert read_docstring(documented) == (
        "What it is, in two lines.\n\nA remark: not an option.",
        {"one": "of two lines", "two": "of two lines", "three": "with a `word: in it`",
         "four": "the last"},
    )  # fmt: skip
