"""A result is labelled: variables and components by name, as NumPy and xarray have them."""

import copy
import pickle
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
import torch

import ingot
from ingot import laws
from ingot.drivers import Result
from ingot.drivers.series import Series
from ingot.errors import IngotError
from ingot.types import SR2, Scalar
from ingot.types.components import list_component_names, list_scales
from tests.drivers.drawn_results import draw_result


def find_value(result: Result, name: str, place: tuple[int, ...], step: int) -> np.ndarray:
    """The oracle: what a variable is at one point of the batch and one step, as stored."""
    if name in result.outputs and step > 0:
        source = result.outputs[name][step]
    elif name in result.initial and (step == 0 or name not in result.inputs):
        source = result.initial[name] if step == 0 else None
    elif name in result.inputs:
        source = result.inputs[name][step]
    else:
        kept = f"{name}~1" in result.read
        source = torch.zeros_like(result.outputs[name][0]) if kept else None
    inner = (*result.shapes.get(name, ()), *result.kinds[name].base)
    if source is None:
        return np.full(inner, np.nan)
    batch = source.shape[: source.ndim - len(inner)]
    own = place[len(place) - len(batch) :]
    at = tuple(0 if size == 1 else i for i, size in zip(own, batch, strict=True))
    return source[at].numpy()


@pytest.mark.parametrize("seed", range(30))
def test_a_series_holds_the_components_of_every_step_and_point(seed: int) -> None:
    result = draw_result(seed)
    assert list(result) == list(result.names) and len(result) == len(result.names)
    for name in result.names:
        series, kind = result[name], result.kinds[name]
        inner = (*result.shapes.get(name, ()), *kind.base)
        assert series.shape == (result.steps, *result.batch, *inner)
        assert name in result and np.array_equal(np.asarray(series), series.values, equal_nan=True)
        scales = list_scales(kind).astype(series.values.dtype)
        for step in range(result.steps):
            for place in np.ndindex(result.batch):
                wanted = find_value(result, name, place, step) / scales
                found = series.values[(step, *place)]
                assert np.array_equal(found, wanted, equal_nan=True)
        for component, at in zip(list_component_names(kind), np.ndindex(kind.base), strict=True):
            if component:
                assert np.array_equal(series[component], series.values[(..., *at)], equal_nan=True)
                assert getattr(series, component).shape == series.shape[: -len(kind.base)]


@pytest.mark.parametrize("seed", range(20))
def test_xarray_has_the_same_numbers_under_labels(seed: int) -> None:
    pytest.importorskip("xarray", reason="labelled arrays need ingot[xarray]")
    result = draw_result(seed)
    data = result.to_xarray()
    for name in result.names:
        series, array = result[name], data[name]
        assert array.dims[0] in ("time", "step")
        assert np.array_equal(array.values.reshape(series.shape), series.values, equal_nan=True)
        for component in series.components:
            picked = array.sel({series.kind.__name__: component}).values
            assert np.array_equal(picked, series[component], equal_nan=True)
        assert array.attrs.get("units", "") == result.units.get(name, "")
    assert data["time"].dims[0] == data[result.names[0]].dims[0]
    shared = data["time"].ndim == 1
    times = data["time"].values.reshape(-1, *(1 for _ in result.batch)) if shared else data["time"]
    wanted = np.broadcast_to(times, (result.steps, *result.batch))
    assert np.array_equal(wanted, result["time"].values)
    for status in result.statuses:
        found = data[f"{status.solve}.iterations"].values.reshape(result.steps, result.points)
        assert (found[0] == 0).all() and np.array_equal(found[1:], status.iterations.numpy())


def make_result(names: dict[str, torch.Tensor]) -> Result:
    kinds = {name: SR2 if x.shape[-1] == 6 else Scalar for name, x in names.items()}
    times = torch.linspace(0, 1, 3, dtype=torch.float64)
    return Result(3, (2,), names, {}, {}, tuple(names), (), 0.5, times, kinds, {})


def test_shear_is_that_of_the_tensor() -> None:
    tensor = SR2.fill(1.0, 2.0, 3.0, 4.0, 5.0, 6.0).data
    result = make_result({"stress": tensor.expand(3, 2, 6)})
    wanted = {"xx": 1, "yy": 2, "zz": 3, "yz": 4, "xz": 5, "xy": 6}
    found = {name: float(getattr(result.stress, name)[0, 0]) for name in wanted}
    assert found == pytest.approx(wanted)
    assert result.stress.xx.dtype == np.float64


def test_a_variable_that_is_called_as_an_attribute_is_found_by_brackets() -> None:
    result = make_result({"steps": torch.ones(3, 2), "time": torch.zeros(3, 2)})
    assert result.steps == 3 and isinstance(result["steps"], Series)
    assert (result["time"].values == 0).all()
    pytest.importorskip("xarray", reason="labelled arrays need ingot[xarray]")
    assert (result.to_xarray()["time_"].values == 0).all()


def test_a_wrong_name_is_told_with_the_right_one() -> None:
    result = make_result({"stress": torch.zeros(3, 2, 6), "ep": torch.zeros(3, 2)})
    with pytest.raises(IngotError, match="did you mean 'stress'"):
        result["strss"]
    with pytest.raises(IngotError, match=r"no component 'xxx'.*\n.*did you mean 'xx'"):
        result["stress"]["xxx"]
    with pytest.raises(IngotError, match="write 'ep' alone"):
        result["ep"]["xx"]
    with pytest.raises(AttributeError, match="strss"):
        result.strss  # noqa: B018
    with pytest.raises(AttributeError, match="choose one of: xx, yy"):
        result.stress.mises  # noqa: B018
    assert not hasattr(result, "ep_") and hasattr(result, "ep") and "ep" in dir(result)
    assert "xy" in dir(result.stress)


def test_a_result_is_copied_and_pickled() -> None:
    result = draw_result(4)
    for other in (copy.copy(result), copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert other.names == result.names


class Cells(HTMLParser):
    """The texts of a page, and its tags."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.mark.parametrize("seed", range(12))
def test_what_a_prompt_shows_names_every_variable(seed: int) -> None:
    result = draw_result(seed)
    text = repr(result)
    assert text.startswith(f"Result: {result.steps} step")
    for name in result.names:
        (line,) = [line for line in text.splitlines() if line.split()[:1] == [name]]
        assert result.kinds[name].__name__ in line
    assert ("unit" in text.splitlines()[1]) == bool(result.units)
    assert all(status.solve in text for status in result.statuses)
    cells = Cells()
    cells.feed(result._repr_html_())
    assert {*result.names} <= {*cells.texts}


def test_names_are_escaped_in_a_notebook() -> None:
    name = "<script>alert(1)</script>"
    cells = Cells()
    cells.feed(replace(make_result({name: torch.ones(3, 2)}), units={name: "<b>"})._repr_html_())
    assert name in cells.texts and not {"script", "img"} & {*cells.tags}


def test_without_xarray_the_command_that_installs_it_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(IngotError, match=r"pip install 'ingot\[xarray\]'"):
        draw_result(1).to_xarray()


def test_ranges_are_those_of_finite_numbers() -> None:
    odd = torch.tensor([[-2.0, torch.nan], [torch.inf, 7.0], [-torch.inf, 1.0]])
    rows = repr(make_result({"odd": odd, "lost": torch.full((3, 2), torch.nan)})).splitlines()
    assert rows[2].split()[-2:] == ["-2", "7"] and rows[3].split()[-2:] == ["nan", "nan"]


def test_a_run_of_no_points_tells_no_speed() -> None:
    law = laws.ScalarLinearCombination(from_=["a"], to="b")
    result = ingot.transient(law, time=[0.0, 1.0], a=np.ones((2, 0))).run("interpret")
    assert result.microseconds == 0.0 and "nothing computed" in str(result)


def test_a_result_has_no_value_beyond_its_steps() -> None:
    law = laws.ScalarLinearCombination(from_=["a"], to="b")
    result = ingot.transient(law, time=[0.0, 1.0], a=[1.0, 2.0]).run("interpret")
    assert [result.at("b", step) is None for step in (-1, 0, 1, 2)] == [True, True, False, True]
    with pytest.raises(IngotError, match="no point a"):
        result.plot("a:b", points="a")  # type: ignore[reportArgumentType]
