"""Variables of the mesh that show buffers, and the numbers that MOOSE takes off them."""

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ingot.errors import IngotError
from ingot.fields import Result

Simulate = Callable[..., Result]


def text_of(dim: int, sizes: tuple[int, ...], point: tuple[float, ...], also: str = "") -> str:
    cells = "\n".join(f"n{axis} = {n}" for axis, n in zip("xyz", sizes, strict=False))
    measures = "".join(
        f"[{kind}_{how}]\ntype={name}\nvariable={kind}\n{options}\n"
        "execute_on='INITIAL TIMESTEP_END'\n[]\n"
        for kind in ("nodes", "cells")
        for how, name, options in (
            ("mean", "ElementAverageValue", ""),
            ("sum", "ElementIntegralVariablePostprocessor", ""),
            ("max", "ElementExtremeValue", ""),
            ("min", "ElementExtremeValue", "value_type=min"),
            ("abs", "ElementExtremeValue", "value_type=MAX_ABS"),
            ("at", "PointValue", f"point = '{point[0]} {point[1]} {point[2]}'"),
        )
    )
    return f"""
[Domain]
  dim = {dim}
  {cells}
  xmin = -1
  xmax = 2
  ymin = 0.5
  ymax = 1.5
  zmax = 4
  mesh_mode = DOMAIN
[]
[TensorBuffers]
  [c]
    map_to_aux_variable = nodes
  []
[]
[AuxVariables]
  [nodes]
  []
  [cells]
    family = MONOMIAL
    order = CONSTANT
    initial_condition = 0.25
  []
[]
[AuxKernels]
  [copy]
    type = ProjectTensorAux
    buffer = c
    variable = cells
  []
[]
[TensorComputes]
  [Initialize]
    [c]
      type = RandomTensor
      buffer = c
      seed = 3
      min = -1.5
      max = 1
    []
  []
[]
[Postprocessors]
{measures}
[]
[Executioner]
  type = Transient
  num_steps = 1
[]
{also}
"""


def shape_functions(at: tuple[float, ...]) -> list[tuple[tuple[int, ...], float]]:
    """The nodes of an element and their weights at a point of it, each axis from 0 to 1."""
    corners = itertools.product((0, 1), repeat=len(at))
    return [
        (c, float(np.prod([x if up else 1 - x for up, x in zip(c, at, strict=True)])))
        for c in corners
    ]


def element_values(nodes: Any, cell: tuple[int, ...], at: tuple[float, ...]) -> float:
    return sum(
        weight * nodes[tuple(i + up for i, up in zip(cell, corner, strict=True))]
        for corner, weight in shape_functions(at)
    )


@pytest.mark.parametrize("seed", range(6))
def test_numbers_of_variables_are_those_of_a_mesh_of_elements(
    seed: int, simulate: Simulate
) -> None:
    draw = random.Random(seed)
    dim = 1 + seed % 3
    sizes = tuple(draw.choice((1, 2, 3, 5)) for _ in range(dim))
    low, high = (-1.0, 0.5, 0.0), (2.0, 1.5, 4.0)
    point = tuple(draw.uniform(a, b) for a, b in zip(low, high, strict=True))
    result = simulate(text_of(dim, sizes, point))
    first, found = result.values
    cells = result.state.buffers["c"].numpy()
    nodes = np.pad(cells, [(0, 1)] * dim, mode="wrap")
    gauss = [0.5 - 0.5 / 3**0.5, 0.5 + 0.5 / 3**0.5]
    every = list(itertools.product(*(range(n) for n in sizes)))
    points = list(itertools.product(gauss, repeat=dim))
    values = np.array([[element_values(nodes, cell, at) for at in points] for cell in every])
    volume = float(np.prod([b - a for a, b in zip(low[:dim], high[:dim], strict=True)]))
    along = [(p - a) / (b - a) * n for p, a, b, n in zip(point, low, high, sizes, strict=False)]
    inside = tuple(int(x) for x in along)
    expected = {
        "nodes_mean": values.mean(), "nodes_sum": values.mean() * volume,
        "nodes_max": values.max(), "nodes_min": values.min(), "nodes_abs": abs(values).max(),
        "nodes_at": element_values(nodes, inside, tuple(x % 1 for x in along)),
        "cells_mean": cells.mean(), "cells_sum": cells.mean() * volume,
        "cells_max": cells.max(), "cells_min": cells.min(), "cells_abs": abs(cells).max(),
        "cells_at": cells[inside],
    }  # fmt: skip
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-13)
    # what a kernel sets after steps has its own value before the first
    assert first["cells_mean"] == first["cells_at"] == first["cells_min"] == 0.25
    assert first["cells_sum"] == pytest.approx(0.25 * volume)
    assert first["nodes_max"] == pytest.approx(expected["nodes_max"])


def test_a_point_on_a_face_belongs_to_the_lower_cell(simulate: Simulate) -> None:
    for place, cell in ((-1.0, 0), (0.0, 0), (0.5, 1), (1.0, 1), (2.0, 2)):
        result = simulate(text_of(1, (3,), (place, 0, 0)))
        cells = result.state.buffers["c"].numpy()
        assert result.values[-1]["cells_at"] == cells[cell]
        nodes = np.append(cells, cells[0])
        between = np.interp(place, [-1, 0, 1, 2], nodes)
        assert result.values[-1]["nodes_at"] == pytest.approx(between)


def test_a_variable_may_copy_another(simulate: Simulate) -> None:
    also = """
[AuxVariables]
  [second]
  []
[]
[AuxKernels]
  [again]
    type = CopyValueAux
    source = nodes
    variable = second
  []
[]
[Postprocessors]
  [high]
    type = ElementExtremeValue
    variable = second
  []
[]
"""
    values = simulate(text_of(2, (3, 4), (0, 1, 0), also)).values[-1]
    assert values["high"] == values["nodes_max"] != 0


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("Domain/mesh_mode=DUMMY", "'nodes' shows no field where mesh_mode = DUMMY"),
        ("Postprocessors/nodes_at/variable=noodes", "[AuxVariables] has no block 'noodes'"),
        ("AuxVariables/x/order=FIRST Postprocessors/nodes_at/variable=x", "'x' shows no buffer"),
        ("Postprocessors/nodes_at/point='0 7 0'", "'point' lies outside the box: y = 7"),
        ("Postprocessors/nodes_at/point='0 7'", "'point' has 2 numbers, not 3"),
        ("Postprocessors/nodes_max/value_type=mid", "'value_type' should be one of MAX, MIN"),
        ("AuxKernels/copy/execute_on=INITIAL", "'cells' is not renewed after steps"),
        ("AuxKernels/copy/variable=celsl", "[AuxVariables] has no block 'celsl'"),
        ("AuxKernels/copy/variable=nodes", "the variable 'nodes' is to show two buffers"),
        ("AuxKernels/copy/type=ParsedAux", "no type 'ParsedAux' in [AuxKernels]"),
        ("AuxVariables/cells/order=FIRST", "'cells' is MONOMIAL FIRST, which shows no buffer"),
        ("TensorBuffers/c/map_from_aux_variable=cells", "to be read from a variable"),
    ],
)  # fmt: skip
def test_what_no_variable_can_show_is_refused(
    override: str, message: str, simulate: Simulate
) -> None:
    with pytest.raises(IngotError) as error:
        overrides = override.split(" ") if "'" not in override else [override]
        simulate(text_of(2, (2, 3), (0, 1, 0)), *overrides)
    assert message in str(error.value)


def test_a_vector_is_no_variable(simulate: Simulate) -> None:
    text = text_of(2, (2, 3), (0, 1, 0)).replace("type = RandomTensor", "type = RankTwoIdentity")
    text = text.replace("seed = 3", "").replace("min = -1.5", "").replace("max = 1\n", "\n")
    with pytest.raises(IngotError) as error:
        simulate(text)
    assert "real numbers, not a field of 2 x 3 x 2 x 2 numbers" in str(error.value)
