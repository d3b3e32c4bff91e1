"""Curves hold the numbers of the result that their words name."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from ingot.drivers import Result
from ingot.drivers.curves import MOST_LINES, choose_words, find_panels, find_quantities
from ingot.errors import IngotError
from ingot.execute import Status
from ingot.types import MRP, SR2, Scalar, Value
from tests.drivers.drawn_results import draw_result


def make_result(points: int = 3, steps: int = 5, **more: torch.Tensor) -> Result:
    """A stretched bar with a solve."""
    numbers = torch.Generator().manual_seed(points)
    strain = torch.linspace(0, 1, steps)[:, None, None] * torch.tensor([1.0, -0.3, -0.3, 0, 0, 0.1])
    stress = torch.rand(steps, points, 6, generator=numbers)
    ep = torch.rand(steps, points, generator=numbers)
    slip = torch.rand(steps, points, 4, generator=numbers)
    counts = torch.randint(0, 9, (steps - 1, points), generator=numbers, dtype=torch.int32)
    flags = torch.zeros_like(counts, dtype=torch.int8)
    residual = torch.rand(steps - 1, points, generator=numbers)
    status = Status("return_map", flags, counts, residual, counts, flags, begin=1)
    kinds: dict[str, type[Value]] = {
        "strain": SR2, "state/stress": SR2, "ep": Scalar, "slip": Scalar, "turn": MRP,
    }  # fmt: skip
    outputs = {"state/stress": stress, "ep": ep, "slip": slip, **more}
    return Result(steps, (points,), {"strain": strain}, {}, outputs, ("strain", "ep~1"), (status,),
                  0.1, torch.linspace(0, 2, steps), kinds, {"slip": (4,)}, {"slip": ("system",)},
                  {"state/stress": "MPa"})  # fmt: skip


@pytest.mark.parametrize("seed", range(30))
def test_every_component_of_every_variable_has_a_word(seed: int) -> None:
    result = draw_result(seed)
    for name in result.names:
        series = result[name]
        found = find_quantities(result, name)
        axes = series.shape[1 + len(result.batch) :][: len(series.axes)]
        assert len(found) == int(np.prod(axes)) * max(1, len(series.components))
        for quantity in found:
            (again,) = find_quantities(result, quantity.label)
            assert np.array_equal(again.values, quantity.values, equal_nan=True)
            assert quantity.values.shape == (result.steps, result.points)
        flat = np.stack([q.values for q in found], -1)
        assert np.array_equal(flat.reshape(-1), series.values.reshape(-1), equal_nan=True)


def test_a_pair_is_drawn_with_its_numbers_and_labels() -> None:
    result = make_result()
    (panel,) = find_panels(result, ["strain.xx:state/stress.xx"])
    assert (panel.x_label, panel.y_label) == ("strain.xx", "state/stress.xx [MPa]")
    assert [curve.label for curve in panel.curves] == ["point 0", "point 1", "point 2"]
    for point, curve in enumerate(panel.curves):
        assert np.array_equal(curve.x, result["strain"].xx[:, point])
        assert np.array_equal(curve.y, result["state/stress"].xx[:, point], equal_nan=True)


def test_the_time_is_meant_where_no_axis_is_named() -> None:
    result = make_result()
    (first, second) = find_panels(result, ["ep", "time:ep"], [1])
    assert first.x_label == second.x_label == "time"
    assert np.array_equal(first.curves[0].y, second.curves[0].y)
    assert np.array_equal(first.curves[0].x, result.times.numpy())
    assert [curve.label for curve in first.curves] == ["point 1"]


def test_components_of_two_tensors_are_paired() -> None:
    (panel,) = find_panels(make_result(1), ["strain:state/stress"])
    assert (panel.x_label, panel.y_label) == ("strain", "state/stress [MPa]")
    assert [curve.label for curve in panel.curves] == ["xx", "yy", "zz", "yz", "xz", "xy"]
    assert len({curve.hue for curve in panel.curves}) == 6


def test_entries_of_an_axis_and_several_curves_have_one_panel() -> None:
    result = make_result(1)
    (panel,) = find_panels(result, ["strain.xx:ep,slip[2]"])
    assert [curve.label for curve in panel.curves] == ["ep", "slip[2]"]
    assert np.array_equal(panel.curves[1].y, result["slip"].values[:, 0, 2], equal_nan=True)
    assert panel.y_label == "ep, slip"


def test_curves_of_two_solves_are_named_by_them() -> None:
    result = make_result(1)
    (first,) = result.statuses
    both = replace(result, statuses=(first, replace(first, solve="outer/update")))
    (panel,) = find_panels(both, ["iterations"])
    assert panel.y_label == "iterations"
    assert [curve.label for curve in panel.curves] == ["return_map", "outer/update"]
    (panel,) = find_panels(both, ["step:outer/update.residual"])
    assert panel.y_label == "outer/update.residual" and panel.log


def test_iterations_and_residuals_are_drawn_by_step() -> None:
    result = make_result()
    (counts, residuals) = find_panels(result, ["step:iterations", "return_map.residual"], [2])
    assert np.array_equal(counts.curves[0].x, np.arange(5.0))
    assert np.isnan(counts.curves[0].y[0])
    assert counts.curves[0].y[1:].tolist() == result.statuses[0].iterations[:, 2].tolist()
    assert counts.whole and residuals.log and not residuals.whole


def test_of_many_points_the_mean_and_the_middle_are_drawn() -> None:
    result = make_result(1000)
    (panel,) = find_panels(result, ["ep"])
    clear = [curve for curve in panel.curves if not curve.faint]
    values = result["ep"].values
    assert [curve.label for curve in clear] == ["mean of 1000 points"]
    assert clear[0].y == pytest.approx(values.mean(1), rel=1e-5)
    assert panel.band is not None
    low, high = panel.band[1:]
    share = ((values >= low[:, None]) & (values <= high[:, None])).mean(1)
    assert share[1:] == pytest.approx(0.8, abs=0.01)  # at step 0 all are zero


def test_points_that_failed_are_left_out_of_a_mean() -> None:
    result = make_result(MOST_LINES + 1)
    ep = result.outputs["ep"].clone()
    ep[3:, 0] = torch.nan
    ep[4:] = torch.nan
    (panel,) = find_panels(make_result(MOST_LINES + 1, ep=ep), ["ep"])
    mean = panel.curves[-1].y
    assert mean[3] == pytest.approx(float(ep[3, 1:].mean())) and np.isnan(mean[4])


def test_what_is_most_telling_is_chosen() -> None:
    words = choose_words(make_result())
    assert words == ["strain.xx:state/stress.xx", "ep", "slip[0]", "iterations"]
    many = make_result(50, turn=torch.rand(5, 50, 3))
    assert "turn" not in choose_words(many)
    assert "turn" in choose_words(make_result(2, turn=torch.rand(5, 2, 3)))


@pytest.mark.parametrize("seed", range(40))
def test_any_result_has_something_to_show(seed: int) -> None:
    result = draw_result(seed)
    for panel in find_panels(result):
        assert all(len(c.x) == len(c.y) == result.steps for c in panel.curves)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("strain.xx:stres.xx", "did you mean 'strain.xx'|did you mean 'state/stress.xx'"),
        ("strain.xx:state/stress.xxy", r"no component 'xxy'.*\n.*did you mean 'x[xy]'"),
        ("time:epp", "no 'epp'.*\n.*did you mean 'ep'"),
        ("itrations", "did you mean 'iterations'"),
        ("slip[4]", r"no entry \[4\]\n.*choose \[0\] to \[3\]"),
        ("slip[0 1]", "no entry"),
        ("ep[0]", r"'ep' has no entry \[0\]\n.*leave it out"),
        ("ep.xx", "write 'ep' alone"),
        ("strain:ep", "is 6 curves, and 'ep' 1\n.*name one component: strain.xx:ep"),
        ("time:", "no ''"),
    ],
)
def test_a_word_that_names_nothing_is_told(word: str, said: str) -> None:
    with pytest.raises(IngotError, match=said):
        find_panels(make_result(), [word])


def test_a_point_that_is_not_there_is_told() -> None:
    with pytest.raises(IngotError, match=r"no point 3\n.*choose 0 to 2"):
        find_panels(make_result(), ["ep"], [3])
