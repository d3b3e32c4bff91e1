"""Loops that no point needs are not run, and what comes out is what all lines would give."""

import pytest
import torch
from torch import Tensor

from ingot.execute import interpret
from ingot.execute.interpret import Interpreter
from ingot.program import Program, along_direction
from ingot.types import Scalar, repeat, sin, where
from tests.program.declared import program_of


def Cold(x: Scalar, warm: Scalar) -> tuple[Scalar, Scalar]:
    """A loop for points that are cold, read twice and once more by another selection."""
    guess = repeat(3, lambda y: sin(y) + x, x)
    is_cold = warm <= 0.0
    return where(is_cold, guess * guess, x), where(is_cold, where(x > 0.0, guess, warm), warm)


def Always(x: Scalar, warm: Scalar) -> tuple[Scalar, Scalar]:
    """A loop that one selection and a plain result read."""
    guess = repeat(3, lambda y: sin(y) + x, x)
    return where(warm <= 0.0, guess, x), guess


def Asked(x: Scalar, warm: Scalar) -> tuple[Scalar, Scalar]:
    """A loop whose selection decides what another selects, made before either condition."""
    guess = repeat(3, lambda y: sin(y) + x, x)
    other = repeat(2, lambda y: sin(y) - x, warm * x)
    start = where(warm <= 0.0, guess, x)
    return where(start + warm > 0.0, other, start), where(start + warm > 0.0, other * start, warm)


LAWS = {"cold": Cold, "always": Always, "asked": Asked}


def at(warm: float | Tensor) -> dict[str, Tensor]:
    x = torch.linspace(-1, 1, 5, dtype=torch.float64)
    return {"x": x, "warm": torch.as_tensor(warm, dtype=torch.float64).expand(5)}


def program(name: str, *, sloped: bool) -> Program:
    plain = program_of(LAWS[name], gives=("a", "b"))
    return along_direction(plain) if sloped else plain


@pytest.mark.parametrize("sloped", [False, True])
@pytest.mark.parametrize("name", LAWS)
def test_what_no_point_needs_changes_nothing(
    name: str, sloped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    mixed = torch.tensor([1.0, -1.0, 0.0, 2.0, -2.0])
    for warm in (1.0, -1.0, mixed):
        inputs = at(warm)
        if sloped:
            inputs |= {"d.x": inputs["x"] + 1, "d.warm": inputs["x"] - 2}
        ours, _ = Interpreter(program(name, sloped=sloped))(inputs)
        with monkeypatch.context() as patch:
            patch.setattr(interpret, "find_guards", lambda *_: {})
            all, _ = Interpreter(program(name, sloped=sloped))(inputs)
        for key, value in all.items():
            assert torch.equal(ours[key], value), key


@pytest.mark.parametrize(("name", "warm", "runs"), [("cold", 1.0, False), ("cold", -1.0, True),
                                                    ("always", 1.0, True)])  # fmt: skip
def test_a_loop_runs_where_a_point_needs_it(
    name: str, warm: float, runs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Interpreter(program(name, sloped=False))
    seen: list[int] = []
    replay = interpret._TorchArrays.replay

    def counted(self: object, *args: object) -> object:
        seen.append(1)
        return replay(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(interpret._TorchArrays, "replay", counted)
    run(at(warm))
    assert bool(seen) == runs
