"""Multipliers of complementarity are scaled for single precision, and for it alone."""

from unittest.mock import patch

import pytest
import torch

from ingot.execute import executor
from ingot.hit import read_text
from ingot.model import build
from ingot.program import Program, combinators, prepared
from ingot.program.builder import Builder, Node
from ingot.program.complement import balance_complements
from tests.systems import plasticity

LAWS = ("FBComplementarity", "MinMapComplementarity")


def trace_plastic(law: str, dtype: torch.dtype, *, kinematic: bool = True) -> Program:
    text = plasticity(law, isotropic=True, kinematic=kinematic)
    return prepared(build(read_text(text), "update"), dtype=dtype)


@pytest.mark.parametrize("law", LAWS)
def test_lines_of_double_precision_stay_as_they_are(law: str) -> None:
    with patch.object(combinators, "balance_complements", lambda b, rows, c, g: rows):
        plain = [trace_plastic(law, dtype) for dtype in (torch.float64, torch.float32)]
    scaled = [trace_plastic(law, dtype) for dtype in (torch.float64, torch.float32)]
    assert str(scaled[0]) == str(plain[0])
    assert scaled[0].solves[0].digest == plain[0].solves[0].digest
    assert scaled[1].solves[0].digest != plain[1].solves[0].digest


@pytest.mark.parametrize("law", LAWS)
def test_the_length_of_a_step_changes_nothing_where_nothing_depends_on_it(law: str) -> None:
    """Flow rates of 1e-9 among stresses of 1e3 flow as those of 1 do."""
    program = trace_plastic(law, torch.float32)
    run = executor(program, "interpret", torch.float32)
    rng = torch.Generator().manual_seed(5)
    inputs = {v.name: torch.zeros(100, *v.kind.base) for v in program.inputs}
    inputs["E"] = 2e-2 * torch.randn(100, 6, generator=rng)
    found = []
    for duration in (1e-3, 1.0, 1e7):
        inputs["t"] = torch.full((100,), duration)
        outputs, (status,) = run(inputs)
        assert bool(status.converged.all())
        found.append(outputs["plastic_strain"])
    assert float(found[0].abs().max()) > 1e-2
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], rtol=0, atol=1e-6)


def is_scaled(write: str) -> bool:
    """Whether the last row of a system of the unknowns x and m, and the line a, is rewritten."""
    b = Builder({})
    x, m = (b.node("unknown", (), (i,)) for i in range(2))
    a = b.emit("sub", b.emit("mul", 1e5, x), 3.0)
    known: dict[str, Node | float] = {"x": x, "m": m, "a": a}

    def emit(op: str, *names: str | float | Node) -> Node:
        return b.emit(op, *(known[n] if isinstance(n, str) else n for n in names))

    rows = [b.emit("sub", x, b.emit("mul", 2e-3, m)), eval(write, {"emit": emit})]
    new = balance_complements(b, rows, [x, m], [b.zero, b.zero])
    assert new[0] is rows[0]
    return new[1] is not rows[1]


SMALLER = "emit('where', emit('ge', 'a', 'm'), 'm', {})"
SQUARES = "emit('add', emit('mul', {0}, {0}), emit('mul', 'm', 'm'))"
FISCHER = "emit('sub', emit('add', 'a', 'm'), emit('sqrt', " + SQUARES + "))"


@pytest.mark.parametrize("row, expected", [
    (SMALLER.format("'a'"), True),
    (SMALLER.format("'x'"), False),
    ("emit('where', emit('ge', 'a', 'x'), 'x', 'a')", False),
    ("emit('where', emit('ge', emit('add', 'a', 'm'), 'm'), 'm', emit('add', 'a', 'm'))", False),
    ("emit('sub', 'a', 'm')", False),
    (FISCHER.format("'a'"), True),
    (FISCHER.format("'x'"), False),
    (FISCHER.format("emit('neg', 'a')"), True),
])  # fmt: skip
def test_only_complementarity_with_an_unknown_is_scaled(row: str, expected: bool) -> None:
    assert is_scaled(row) == expected
