"""Laws give the numbers that others computed: every entry `[[check]]` of `tests/gold/*.toml`.

An entry has a type, options as Python gives them, inputs, outputs, and slopes `output:input`.
"""

import tomllib
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from ingot.catalog import Declared, key, load
from ingot.execute.interpret import Interpreter
from ingot.model import bind
from ingot.program import freeze, trace, with_jacobian
from ingot.types import Value

GOLD = Path(__file__).parents[1] / "gold"
FILES = {file.stem: tomllib.loads(file.read_text()) for file in sorted(GOLD.glob("*.toml"))}
CHECKS = [
    pytest.param(check, id=f"{check['type']} {place}")
    for file in FILES.values()
    for place, check in enumerate(file.get("check", ()))
]


@pytest.mark.parametrize("check", CHECKS)
def test_a_law_gives_the_numbers_of_the_reference(check: dict[str, Any]) -> None:
    law = load()[check["type"]]
    model = bind(law, marked(law, check.get("options", {})), None)
    inputs = {name: tensor(value) for name, value in check.get("inputs", {}).items()}
    shapes = {}
    for slot in law.inputs:
        name = model.body.inputs[slot.argument]
        if slot.axes:
            shapes[name] = inputs[name].shape[-len(slot.axes) :]
    program = freeze(trace(model, shapes), torch.finfo(torch.float64).eps)
    pairs = [tuple(name.split(":")) for name in check.get("slopes", {})]
    results, _ = Interpreter(with_jacobian(program, pairs))(inputs)
    for name, value in (check["outputs"] | check.get("slopes", {})).items():
        assert_close(results[name], value)


def marked(law: Declared, options: dict[str, Any]) -> dict[str, Any]:
    """The options, tables of numbers along the axes of a law as values that say so."""
    slots = {key(p.argument): p for p in law.parameters if p.axes and not p.listed}
    return {name: along(slots[name], value) if name in slots else value
            for name, value in options.items()}  # fmt: skip


def along(slot: Any, value: Any) -> Value | float:
    numbers = tensor(value)
    return slot.kind(numbers, sub_batch_ndim=len(slot.axes)) if numbers.ndim else value


def tensor(value: Any) -> Tensor:
    return torch.tensor(value, dtype=torch.float64)


def assert_close(ours: Tensor, theirs: Any) -> None:
    torch.testing.assert_close(ours, tensor(theirs), rtol=1e-13, atol=1e-300)


@pytest.mark.parametrize("file", FILES)
def test_a_file_of_numbers_says_where_they_come_from(file: str) -> None:
    assert FILES[file]["source"]
