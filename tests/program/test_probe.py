"""States at which lines are evaluated have a number for every entry of an axis."""

from pathlib import Path

import numpy as np

from ingot.hit import read
from ingot.package.stages import advance, load
from ingot.package.target import Target
from ingot.program.probe import Probes

CRYSTAL = Path(__file__).parents[2] / "examples" / "crystal.i"


def test_times_on_an_axis_run_forward_at_every_entry() -> None:
    target = Target(example_batch_shape=("(2; 12)",))
    program = advance(load(read(CRYSTAL), "crystal", target), "shape").program
    times = {v.name: v for v in program.inputs if v.name in ("t", "t~1")}
    assert all(program.extent(axis) == 12 for v in times.values() for axis in v.axes)
    probes = Probes.of_program(program)
    new, old = (probes.numbers(v.nodes[0], v.axes) for v in (times["t"], times["t~1"]))
    assert len(new) % probes.count == 0 and len(new) > probes.count
    assert np.all(new > old) and len(np.unique(new)) == len(new)


def test_a_model_with_all_variables_on_an_axis_is_lowered() -> None:
    """As `--example-batch-shape "(2;12)"` gives it, the example of the option's own help."""
    target = Target(example_batch_shape=("(2;12)",))
    lowered = advance(load(read(CRYSTAL), "crystal", target))
    assert {v.sub_batch for v in lowered.metadata.inputs} == {(12,)}
