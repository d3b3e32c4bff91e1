"""Steps, sequences of them, and the state they change."""

import pytest
import torch

from ingot.errors import IngotError
from ingot.fields import space
from ingot.fields.step import Ambient, Buffer, Constant, Eager, Old, State, Step, evaluate


def add(a: torch.Tensor, b: torch.Tensor, *, scale: float = 1.0) -> torch.Tensor:
    return scale * (a + b)


def state(**values: float) -> State:
    made = State(space((4,)), {"alpha": 3.0}, {"u": 2})
    made.buffers |= {name: made.space.full(value) for name, value in values.items()}
    return made


def test_a_sequence_hands_values_on() -> None:
    steps = (
        Step("p", add, {"a": Buffer("x"), "b": Buffer("y")}, ("p",)),
        Step("q", add, {"a": Buffer("p"), "b": Constant("alpha")}, ("q",), {"scale": 2.0}),
    )
    now = state(x=1.0, y=2.0)
    asked: list[object] = []

    def look_up(source: object) -> object:
        asked.append(source)
        return now.look_up(source)  # type: ignore[reportArgumentType]

    found = evaluate(steps, look_up)
    read = [each for each in asked if each != Ambient("space")]  # what results are held against
    assert read == [Buffer("x"), Buffer("y"), Constant("alpha")]
    assert found["q"].tolist() == [12.0] * 4
    Eager().run(steps, now)
    assert now.buffers["q"].tolist() == [12.0] * 4


def test_old_states_start_empty_and_are_bounded() -> None:
    now = state(u=0.0)
    assert now.age("u") == 0
    for value in (1.0, 2.0, 3.0):
        now.advance()
        now.buffers["u"] = now.space.full(value)
    assert now.age("u") == 2
    assert [now.look_up(Old("u", age))[0].item() for age in (1, 2)] == [2.0, 1.0]


def test_an_unwritten_buffer_holds_zeros() -> None:
    assert state().look_up(Buffer("nobody")).tolist() == [0.0] * 4


def test_the_clock_is_a_tensor() -> None:
    now = state()
    now.time, now.dt = 2.5, 0.1
    assert now.look_up(Ambient("time")).shape == ()
    assert float(now.look_up(Ambient("time"))) == 2.5
    assert float(now.look_up(Ambient("dt"))) == 0.1


def test_a_step_may_run_once() -> None:
    steps = (
        Step("first", add, {"a": Buffer("x"), "b": Buffer("x")}, ("m",), once=True),
        Step("each", add, {"a": Buffer("m"), "b": Buffer("x")}, ("n",)),
    )
    now = state(x=1.0)
    Eager().run(steps, now)
    now.buffers["x"] = now.space.full(10.0)
    Eager().run(steps, now)
    assert now.buffers["m"][0] == 2.0
    assert now.buffers["n"][0] == 12.0


def test_a_step_says_what_it_reads_and_why_it_is_left_out() -> None:
    step = Step("s", add, {"a": (Buffer("x"), Buffer("y")), "b": Buffer("x")}, ("z",), reason="no")
    assert step.reads == ("x", "y")
    assert not step.jit
    assert str(step) == "s*: x, y -> z"


def test_a_step_that_fails_is_told_with_what_it_reads() -> None:
    now = state(x=1.0)
    now.buffers["y"] = torch.zeros(2, dtype=torch.float64)
    failing = Step("sum", add, {"a": Buffer("x"), "b": Buffer("y")}, ("z",))
    with pytest.raises(IngotError) as error:
        Eager().run((failing,), now)
    said = str(error.value)
    line = add.__code__.co_firstlineno + 1
    assert "error[compute-failed]: 'sum' cannot be computed: The size of tensor a (4)" in said
    assert f"(at test_step.py:{line})" in said
    assert "'x' is a field of 4, 'y' is a field of 2" in said


def test_a_spectrum_that_nobody_has_written_is_zero_over_wavenumbers() -> None:
    now = State(space((4, 6)), spectra=frozenset({"bar"}))
    zeros = now.look_up(Buffer("bar"))
    assert (zeros.shape, zeros.dtype) == ((4, 4), torch.complex128)
    assert now.described("bar") == "a spectrum of 4 x 4, not written yet"
    now.buffers["one"] = torch.ones(1, 6, dtype=torch.float64)
    assert now.described("one") == "a field of 1 x 6"
