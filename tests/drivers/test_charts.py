"""A figure draws exactly the curves of its panels, with labels and legend."""

import numpy as np
import pytest

from ingot.drivers.charts import draw, render
from ingot.drivers.curves import find_panels
from ingot.drivers.poles import find_pole_figures
from ingot.types import MRP
from tests.drivers.drawn_results import draw_result
from tests.drivers.test_curves import make_result
from tests.drivers.test_poles import make_result as make_orientations

pytest.importorskip("matplotlib", reason="pictures need ingot[plot]")


@pytest.mark.parametrize("points", [1, 3, 50])
def test_lines_hold_the_numbers_of_the_curves(points: int) -> None:
    result = make_result(points)
    panels = find_panels(result, ["strain.xx:state/stress.xx", "ep", "iterations", "residual"])
    figure = draw(panels)
    assert len(figure.axes) == len(panels)
    for axes, panel in zip(figure.axes, panels, strict=True):
        assert (axes.get_xlabel(), axes.get_ylabel()) == (panel.x_label, panel.y_label)
        assert len(axes.lines) == len(panel.curves)
        drawn = sorted(np.asarray(line.get_ydata()).tobytes() for line in axes.lines)
        assert drawn == sorted(curve.y.tobytes() for curve in panel.curves)
        names = [curve.label for curve in panel.curves if curve.label]
        legend = axes.get_legend()
        texts = [] if legend is None else [text.get_text() for text in legend.get_texts()]
        assert [text for text in texts if text != "middle 80 %"] == names
        assert axes.get_yscale() == ("log" if panel.log else "linear")
        assert len(axes.collections) == (panel.band is not None)


def test_a_pole_figure_has_a_dot_for_each_pole() -> None:
    result = make_orientations(MRP, MRP.rand(2, 30).data)
    figures = find_pole_figures(result, (1, 1, 1), projection="stereographic")
    drawn = draw(figures)
    for axes, figure in zip(drawn.axes, figures, strict=True):
        (dots,) = axes.collections
        assert np.array_equal(dots.get_offsets(), figure.places)
        assert axes.get_title() == figure.title and "stereographic" in axes.get_xlabel()


@pytest.mark.parametrize(
    ("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")]
)
def test_a_picture_is_of_its_kind_and_the_same_twice(suffix: str, start: bytes) -> None:
    panels = find_panels(make_result(), ["ep"])
    first = render(draw(panels), suffix)
    assert first.startswith(start)
    if suffix != ".svg":  # whose ids are drawn at random
        assert first == render(draw(panels), suffix)


@pytest.mark.parametrize("seed", range(3))
def test_any_result_is_drawn(seed: int) -> None:
    result = draw_result(seed)
    assert len(result.plot().axes) == len(find_panels(result))


def test_one_point_may_be_given_without_a_list() -> None:
    one, same = (make_result().plot("ep", points=points) for points in (0, [0]))
    assert len(one.axes[0].lines) == len(same.axes[0].lines) == 1
