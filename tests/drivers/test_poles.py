"""Pole figures show where the normals of crystals point in the sample."""

import numpy as np
import pytest
import torch

from ingot.drivers import Result
from ingot.drivers.poles import find_pole_figures, list_family, project
from ingot.errors import IngotError
from ingot.types import MRP, R2, Quaternion, Scalar, Value


def make_result(kind: type[Value], values: torch.Tensor, name: str = "orientation") -> Result:
    steps, points = values.shape[:2]
    times = torch.arange(float(steps))
    return Result(
        steps, (points,), {name: values}, {}, {}, (name,), (), 0.0, times, {name: kind}, {}
    )


@pytest.mark.parametrize(
    ("indices", "count"), [((1, 1, 1), 4), ((1, 0, 0), 3), ((1, 1, 0), 6), ((1, 2, 3), 24),
                           ((0, -2, 0), 3), ((1, 1, 2), 12)]
)  # fmt: skip
def test_a_family_has_the_multiplicity_of_the_cube(indices: tuple, count: int) -> None:
    family = list_family(indices)
    assert len(family) == count
    assert np.linalg.norm(family, axis=1) == pytest.approx(1)
    opposite = family @ family.T
    assert (opposite > -1 + 1e-12).all()  # none beside its opposite


def find_rotation(axis: np.ndarray, angle: float) -> np.ndarray:
    """The matrix of a rotation by Rodrigues' formula."""
    x, y, z = axis
    w = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * w + (1 - np.cos(angle)) * w @ w


@pytest.mark.parametrize("seed", range(5))
def test_kinds_of_rotations_agree_with_rodrigues(seed: int) -> None:
    draw = np.random.default_rng(seed)
    axis = draw.normal(size=3)
    axis /= np.linalg.norm(axis)
    angle = draw.uniform(0.1, 3.0)
    matrix = find_rotation(axis, angle)
    stored = {
        MRP: axis * np.tan(angle / 4),
        Quaternion: np.array([np.cos(angle / 2), *(axis * np.sin(angle / 2))]),
        R2: matrix,
    }
    wanted = np.array([matrix @ n for n in list_family((1, 1, 1))])
    wanted[wanted[:, 2] < 0] *= -1
    radius = np.sqrt(2) * np.sin(np.arccos(wanted[:, 2]) / 2)
    wanted = wanted[:, :2] / np.linalg.norm(wanted[:, :2], axis=1, keepdims=True) * radius[:, None]
    for kind, value in stored.items():
        result = make_result(kind, torch.from_numpy(value)[None, None])
        (figure,) = find_pole_figures(result, (1, 1, 1))
        assert figure.places == pytest.approx(wanted)


@pytest.mark.parametrize("projection", ["equal-area", "stereographic"])
def test_projections_end_at_the_circle(projection) -> None:
    places = project(np.array([[0, 0, 1.0], [0, 0, -1.0], [1, 0, 0], [0, -1.0, 0]]), projection)
    assert places[:2] == pytest.approx(0)
    assert np.linalg.norm(places[2:], axis=1) == pytest.approx(1)
    halfway = project(np.array([[np.sqrt(0.5), 0, np.sqrt(0.5)]]), projection)[0, 0]
    wanted = np.sqrt(2) * np.sin(np.pi / 8) if projection == "equal-area" else np.tan(np.pi / 8)
    assert halfway == pytest.approx(wanted)


def test_equal_area_spreads_random_poles_evenly() -> None:
    result = make_result(MRP, MRP.rand(1, 20000).data)
    (figure,) = find_pole_figures(result, (1, 0, 0))
    inside = (np.linalg.norm(figure.places, axis=1) < np.sqrt(0.5)).mean()
    assert inside == pytest.approx(0.5, abs=0.01)


def test_steps_points_and_failed_points_are_chosen() -> None:
    values = torch.zeros(4, 3, 3, dtype=torch.float64)
    values[2, 1] = torch.nan
    result = make_result(MRP, values)
    titles = [figure.title for figure in find_pole_figures(result, (1, 1, 1))]
    assert titles == ["{111} of orientation, step 0", "{111} of orientation, step 3"]
    (figure,) = find_pole_figures(result, (1, 1, 1), steps=[2])
    assert len(figure.places) == 2 * 4
    (figure,) = find_pole_figures(result, (1, 1, 1), steps=[-1], points=[0])
    assert len(figure.places) == 4 and figure.title.endswith("step 3")


def test_what_has_no_poles_is_told() -> None:
    with pytest.raises(IngotError, match="has no orientation"):
        find_pole_figures(make_result(Scalar, torch.zeros(2, 3)), (1, 1, 1))
    result = make_result(MRP, torch.zeros(2, 3, 3))
    with pytest.raises(IngotError, match="is no family of planes"):
        find_pole_figures(result, (0, 0, 0))
    with pytest.raises(IngotError, match="did you mean 'orientation'"):
        find_pole_figures(result, (1, 1, 1), orientation="orientatin")
    with pytest.raises(IngotError, match=r"no step 2\n.*choose 0 to 1"):
        find_pole_figures(result, (1, 1, 1), steps=[2])
