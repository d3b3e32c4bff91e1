"""The longest runs of steps that can be compiled, and the others one by one."""

from ingot.fields.jit import plan
from ingot.fields.step import Step


def named(name: str) -> Step:
    reason = "of its own" if name.endswith("*") else ""
    return Step(name.rstrip("*"), print, {}, (name,), reason=reason)


STEPS = tuple(map(named, ("A", "B", "C*", "D", "E", "F*", "G")))


def test_a_plan_cuts_at_what_is_not_compiled() -> None:
    made = plan(STEPS)
    assert ["".join(s.name for s in part.steps) for part in made.parts] == [
        "AB",
        "C",
        "DE",
        "F",
        "G",
    ]
    assert [part.compiled for part in made.parts] == [True, False, True, False, True]


def test_a_plan_is_printed_with_its_reasons() -> None:
    assert str(plan(STEPS)) == "A B | C* | D E | F* | G\nC*: of its own\nF*: of its own"


def test_two_steps_that_run_directly_are_two_parts() -> None:
    assert [len(part.steps) for part in plan(STEPS[2:3] + STEPS[5:6]).parts] == [1, 1]


def test_steps_found_unfit_are_left_out() -> None:
    made = plan(STEPS, {STEPS[0]: "it failed"})
    assert str(made).startswith("A* | B | C*")
    assert "A*: it failed" in str(made)


def test_no_steps_are_no_parts() -> None:
    assert plan(()).parts == ()
    assert str(plan(())) == ""
