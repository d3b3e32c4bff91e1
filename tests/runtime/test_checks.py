"""Every call is checked before anything is computed."""

import random
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from ingot import IngotError
from ingot.execute.call_layout import FastCall
from ingot.execute.inductor_run import InductorProgram
from ingot.execute.kernel_run import KernelEntry
from ingot.runtime import Artifact
from tests import packages
from tests.packages import RATE, inputs_of

Inputs = dict[Any, Any]


@pytest.fixture
def artifact() -> Artifact:
    """Plasticity: kinds with and without base, six inputs; a call was made before."""
    made = packages.plastic().artifact()
    made(inputs_of(packages.plastic(), 2))
    assert made._calls.is_guarding
    return made


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with every native call."""
    made: list[int] = []

    def counted(whole: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            made.append(1)
            return whole(*args, **options)

        return call

    monkeypatch.setattr(KernelEntry, "call", counted(KernelEntry.call))
    monkeypatch.setattr(FastCall, "__call__", counted(FastCall.__call__))
    monkeypatch.setattr(InductorProgram, "run", counted(InductorProgram.run))
    return made


def told(artifact: Artifact, inputs: Any) -> str:
    """What a refused call says."""
    with pytest.raises(IngotError) as refused:
        artifact(inputs)
    return str(refused.value)


def test_unknown_name_is_told_with_the_nearest(artifact: Artifact) -> None:
    inputs = inputs_of(packages.plastic(), 2)
    inputs["plastic_strian~1"] = inputs.pop("plastic_strain~1")
    assert told(artifact, inputs) == (
        "error[unknown-input]: there is no input 'plastic_strian~1'\n"
        "  fix: did you mean 'plastic_strain~1'?\n\n"
        "error[missing-input]: the input 'plastic_strain~1' is missing\n"
        "  fix: give 'plastic_strain~1'"
    )


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("E", torch.zeros(2, 5, dtype=torch.float64),
         "error[wrong-shape]: 'E' has shape (2, 5), expected (*batch, 6)\n"
         "  fix: give the batch axes first"),
        ("E", torch.zeros((), dtype=torch.float64),
         "error[wrong-shape]: 'E' has shape (), expected (*batch, 6)\n"
         "  fix: give the batch axes first"),
        ("t", torch.zeros(2),
         "error[wrong-dtype]: 't' is float32, the package computes in float64\n"
         "  fix: convert it to float64, or compile with --dtype float32"),
        ("t", torch.zeros(2, dtype=torch.int64),
         "error[wrong-dtype]: 't' is int64, the package computes in float64\n"
         "  fix: convert it to float64"),
        ("t", torch.zeros(2, dtype=torch.float64, device="meta"),
         "error[wrong-device]: 't' is on meta, the package runs on cpu\n"
         "  fix: move it to cpu"),
        ("t", [0.0, 1.0],
         "error[wrong-input]: 't' is a list, not a tensor or an array of numbers\n"
         "  fix: give a torch or NumPy array"),
        ("t", np.array(["a", "b"]),
         "error[wrong-input]: 't' is an array of <U1, not a tensor or an array of numbers\n"
         "  fix: give a torch or NumPy array"),
        ("t", torch.zeros(2, dtype=torch.float64).to_sparse(),
         "error[wrong-input]: 't' is a sparse tensor, not a tensor or an array of numbers\n"
         "  fix: give a torch or NumPy array"),
        ("t", torch.zeros(3, dtype=torch.float64),
         "error[batches-differ]: batch shapes (2,) and (3,) do not broadcast\n"
         "  fix: give every input, and every batched parameter, the same batch shape or none"),
    ],
)  # fmt: skip
def test_refusal_reads(artifact: Artifact, name: str, value: Any, text: str) -> None:
    assert told(artifact, {**inputs_of(packages.plastic(), 2), name: value}) == text


@pytest.mark.parametrize(
    ("command", "fix"),
    [
        ("", "compile the model again with example_batch_shape=('c~1=(; 7)',)"),
        ("ingot compile a.i --model m",
         "compile the model again: ingot compile a.i --model m --example-batch-shape 'c~1=(; 7)'"),
    ],
)  # fmt: skip
def test_other_extents_are_told_with_what_to_compile(command: str, fix: str) -> None:
    artifact = packages.diffusion().artifact()
    origin = msgspec.structs.replace(artifact.metadata.origin, command=command)
    artifact._checks._meta = msgspec.structs.replace(artifact.metadata, origin=origin)
    inputs = inputs_of(packages.diffusion(), 2)
    assert told(artifact, {**inputs, "c~1": torch.zeros(2, 7, dtype=torch.float64)}) == (
        f"error[wrong-shape]: 'c~1' has shape (2, 7), expected (*batch, 5)\n  fix: {fix}"
    )
    few = torch.zeros((), dtype=torch.float64)
    assert "fix: give the batch axes first" in told(artifact, {**inputs, "c~1": few})


def test_inputs_must_have_names(artifact: Artifact) -> None:
    assert told(artifact, list(inputs_of(packages.plastic(), 2).values())) == (
        "error[wrong-input]: the inputs are a list, not values by name\n"
        f"  fix: give a dictionary of {', '.join(artifact.inputs)}"
    )


def test_all_problems_of_a_call_are_told_at_once(artifact: Artifact) -> None:
    with pytest.raises(IngotError) as refused:
        artifact({"x": 1, "E": torch.zeros(3), "t": 0.0})
    codes = [p.code for p in refused.value.problems]
    assert sorted(set(codes)) == [
        "missing-input", "unknown-input", "wrong-dtype", "wrong-input", "wrong-shape",
    ]  # fmt: skip
    assert codes.count("missing-input") == 4


def renamed(x: Inputs, name: str, dice: random.Random) -> None:
    x[dice.choice([name + "~7", name.upper() + "_", "", 3, None])] = x.pop(name)


def reshaped(x: Inputs, name: str, dice: random.Random) -> None:
    bad = (
        [(7, 5), (2, 7), (3, 1), (4, 0, 5), (3,), (3, 6)] if x[name].ndim > 1 else [(7,), (4, 0, 5)]
    )
    x[name] = torch.zeros(dice.choice(bad), dtype=torch.float64)


def converted(x: Inputs, name: str, dice: random.Random) -> None:
    kinds = (torch.float32, torch.float16, torch.int32, torch.bool, torch.complex128)
    value = x[name].to(dice.choice(kinds))
    x[name] = value.numpy() if dice.random() < 0.5 else value


def listed(x: Inputs, name: str, dice: random.Random) -> None:
    value = x[name]
    x[name] = dice.choice([
        value.tolist(), None, 1.0, "1", {}, value.to_sparse(), value.numpy().astype(object),
        value.numpy().astype(str), value.to("meta"), [value],
    ])  # fmt: skip


def removed(x: Inputs, name: str, dice: random.Random) -> None:
    for n in dice.sample(sorted(x), dice.randint(1, len(x))):
        del x[n]


def added(x: Inputs, name: str, dice: random.Random) -> None:
    x[f"{name}{dice.randint(0, 99)}"] = x[name]


WAYS: tuple[Callable[[Inputs, str, random.Random], None], ...] = (
    renamed, reshaped, converted, listed, removed, added,
)  # fmt: skip


def test_wrong_calls_are_refused_and_compute_nothing(artifact: Artifact, calls: list[int]) -> None:
    artifact(inputs_of(packages.plastic(), 2))
    assert calls == [1]
    calls.clear()
    monkey = random.Random(7)
    right = inputs_of(packages.plastic(), 2)
    back = {"flow_rate": torch.ones(2, dtype=torch.float64)}
    ways: list[Callable[[Inputs], Any]] = [
        artifact, artifact.jacobian, artifact.param_jacobian,
        lambda x: artifact.vjp(x, back), lambda x: artifact.jvp(x, right),
    ]  # fmt: skip
    for number in range(1000):
        inputs = dict(right)
        change = WAYS[number % len(WAYS)]
        change(inputs, monkey.choice(list(right)), monkey)
        try:
            monkey.choice(ways)(inputs)
        except IngotError as error:
            if error.problems[0].code != "batches-differ":
                assert not calls, change
            calls.clear()
        else:
            pytest.fail(f"{change.__name__} was computed: {inputs}")


def test_graphs_are_not_run_by_wrong_calls(calls: list[int]) -> None:
    artifact = packages.diffusion().artifact("inductor")
    right = inputs_of(packages.diffusion(), 2)
    artifact(right)
    calls.clear()
    monkey = random.Random(9)
    for number in range(200):
        inputs = dict(right)
        WAYS[number % len(WAYS)](inputs, monkey.choice(list(right)), monkey)
        with pytest.raises(IngotError) as refused:
            monkey.choice([artifact, artifact.jacobian])(inputs)
        assert not calls or refused.value.problems[0].code == "batches-differ"
        calls.clear()


@pytest.mark.parametrize("inputs", [None, 3, [1.0], "E", iter(())])
def test_inputs_that_are_no_mapping_are_refused(artifact: Artifact, inputs: Any) -> None:
    assert "not values by name" in told(artifact, inputs)


def test_wrong_tangents_are_refused_and_compute_nothing(
    artifact: Artifact, calls: list[int]
) -> None:
    monkey = random.Random(8)
    right = inputs_of(packages.plastic(), 2)
    back = {n: torch.ones(2, *v.base, dtype=torch.float64) for n, v in artifact.outputs.items()}
    for number in range(100):
        change = (renamed, reshaped, converted, listed, added)[number % 5]
        along, against = dict(right), dict(back)
        change(along, monkey.choice(list(along)), monkey)
        change(against, monkey.choice(list(against)), monkey)
        with pytest.raises(IngotError):
            artifact.jvp(right, along)
        with pytest.raises(IngotError):
            artifact.vjp(right, against)
        assert not calls


def test_unknown_output_of_a_cotangent_is_told(artifact: Artifact) -> None:
    with pytest.raises(IngotError, match=r"no output 'flow_rat'\n.*did you mean 'flow_rate'"):
        artifact.vjp(inputs_of(packages.plastic(), 2), {"flow_rat": torch.ones(2)})


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        (RATE[:-1], 1.0, f"did you mean '{RATE}'"),
        ("nothing", 1.0, "compile with -p NAME, a name"),
        (RATE, "high", "'update.reaction.coefficient.reference_value' is a str"),
        (RATE, torch.zeros(2, device="meta"), "wrong-device"),
    ],
)
def test_wrong_parameter_values_are_refused(name: str, value: Any, text: str) -> None:
    artifact = packages.decay().artifact()
    with pytest.raises(IngotError) as refused:
        artifact.set_parameter(name, value)
    assert text in str(refused.value)
    assert dict(artifact.named_parameters())[RATE].item() == 4.0


def test_parameter_without_its_base_is_refused() -> None:
    artifact = packages.diffusion().artifact()
    with pytest.raises(IngotError, match="unknown-parameter"):
        artifact.set_parameter("cells.flux.dx", torch.ones(4))
