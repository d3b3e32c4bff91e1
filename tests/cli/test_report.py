"""`ingot report` and `ingot view` write a page of a transient that a browser draws."""

import base64
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ingot.cli.main import status
from ingot.cli.viewer.transient_page import Source, list_data, report_page
from ingot.drivers import Result
from ingot.drivers.curves import find_quantities
from tests.cli.browser import probe
from tests.cli.test_plot import BAR
from tests.drivers.drawn_results import draw_result
from tests.drivers.test_curves import make_result
from tests.drivers.test_failure import TEXT

Captured = pytest.CaptureFixture[str]
EVIL = "<script>alert(1)</script>"


@pytest.fixture
def bar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my bar.i").write_text(f"# {EVIL} & more\n{BAR}")
    return tmp_path / "my bar.i"


class Page(HTMLParser):
    """The texts of a page outside of its scripts, its tags and ids, and its data."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.sources: list[str] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)
        self.data = json.loads(self.scripts[0])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        inside = self.cdata_elem == "script"
        (self.scripts if inside else self.texts).append(data)


def test_a_report_tells_all_of_a_run(bar: Path, capsys: Captured) -> None:
    assert status(["report", str(bar), "stretch", "--backend", "interpret", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["page"] == "my bar.html" and told["charts"] == ["stress.xx over strain.xx"]
    page = Page(Path("my bar.html").read_text())
    assert page.tags.count("script") == 2
    wanted = {"my bar.i: stretch", "elasticity by interpret", "stress", "strain", "SR2", "Inputs",
              "read and build", "trace", "prepare, compile", "run"}  # fmt: skip
    assert wanted <= {text.strip() for text in page.texts}
    assert {"curves", "timing", "variables", "model", "source"} <= set(page.ids)
    assert f"# {EVIL} & more" in page.texts  # as text, in the listing of the file
    (picture,) = page.sources
    svg = base64.b64decode(picture.removeprefix("data:image/svg+xml;base64,")).decode()
    assert svg.startswith("<svg") and "LinearIsotropicElasticity" in svg


def test_a_page_needs_nothing_else(bar: Path) -> None:
    assert status(["report", str(bar), "--backend", "interpret"]) == 0
    text = Path("my bar.html").read_text()
    assert not re.search(r"https?:|<link|@import|url\(|import\(|fetch\(|src=\"(?!data:)", text)


@pytest.mark.parametrize("seed", range(15))
def test_a_page_holds_the_numbers_of_the_result(seed: int) -> None:
    result = draw_result(seed)
    page = Page(report_page(result, Source(EVIL)))
    assert page.tags.count("script") == 2 and EVIL in page.texts
    assert len(page.data["rows"]) == result.points <= 8
    labels = [quantity["label"] for quantity in page.data["quantities"]]
    assert len(set(labels)) == len(labels)
    for stored in page.data["quantities"]:
        (wanted,) = find_quantities(result, stored["label"])
        shown = np.array(stored["values"], dtype=float).reshape(result.points, result.steps)
        values = np.where(np.isfinite(wanted.values), wanted.values, np.nan).T
        np.testing.assert_allclose(shown, values.astype(float), rtol=1e-6, atol=1e-40)
    for chart in page.data["charts"]:
        assert {*chart["xs"], *chart["ys"]} <= set(labels)


def test_of_many_points_and_steps_some_and_the_mean_are_held() -> None:
    result = make_result(20, 2500)
    data = list_data(result)
    assert len(data["steps"]) == 2000 and data["steps"][-1] == 2499
    assert data["rows"][-1] == "mean of 20 points" and data["mean"] == 8
    ep = next(q for q in data["quantities"] if q["label"] == "ep")
    wanted = result["ep"].values[data["steps"]].mean(1)
    assert ep["values"][8] == pytest.approx(wanted.tolist(), rel=1e-5)


def fail_some(result: Result) -> Result:
    """The same, some points of which did not converge."""
    (status_,) = result.statuses
    reason = status_.reason.clone()
    reason[2:, 1] = 1
    reason[1:, 2] = 2
    return replace(result, statuses=(replace(status_, reason=reason),))


def test_points_that_failed_are_listed_with_their_step_and_reason() -> None:
    result = fail_some(make_result())
    page = Page(report_page(result, Source("failed")))
    texts = " ".join(" ".join(page.texts).split())
    assert re.search(r"return_map 2 2 [\d.]+ not finite", texts)
    assert re.search(r"return_map 1 3 [\d.]+ out of steps", texts)
    assert "convergence" in page.ids


def test_a_report_of_points_that_fail_is_written_and_ends_with_an_error(
    bar: Path, capsys: Captured
) -> None:
    text = TEXT.replace("type = CSVScalar", "type = Python\n    expr = 'Scalar(torch.arange(4.0))'")
    bar.write_text(re.sub(r"\n    (csv_file = 'times.csv'|variable = 'time')", "", text))
    assert status(["report", str(bar), "--backend", "interpret"]) == 1
    said = capsys.readouterr()
    assert "not-converged" in said.err and "wrote my bar.html" in said.out
    page = Page(Path("my bar.html").read_text())
    assert {"root", "out of steps"} <= set(page.texts)
    assert status(["view", str(bar), "--output", "seen.html"]) == 1
    said = capsys.readouterr()
    assert "not-converged" in said.err and "wrote seen.html" in said.out


def test_a_report_of_a_result_names_what_shows_it(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "r.npz").write_text("any")
    assert status(["report", str(tmp_path / "r.npz")]) == 1
    assert "ingot view" in capsys.readouterr().err


DRAWN = """
const count = canvas => {
  const image = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const seen = new Set();
  for (let k = 0; k < image.length; k += 4) seen.add(image.slice(k, k + 4).join());
  return seen.size;
};
const look = () => {
  const canvas = document.querySelector("#charts canvas"), hint = document.querySelector(".hint");
  const box = canvas.getBoundingClientRect();
  for (let x = 50; x < box.width; x += 5) for (let y = 10; y < box.height - 40; y += 5) {
    const place = { clientX: box.left + x, clientY: box.top + y };
    canvas.dispatchEvent(new MouseEvent("mousemove", place));
    if (hint.style.display === "block") return hint.textContent;
  }
  return "";
};
setTimeout(() => {
  const told = { colours: [...document.querySelectorAll("canvas")].map(count), hint: look() };
  told.text = document.body.innerText;
  told.options = [...at("y").options].map(option => option.value);
  told.injected = document.querySelectorAll("b#evil").length;
  at("y").value = told.options[told.options.length - 1];
  at("y").dispatchEvent(new Event("change"));
  told.explored = document.querySelector("#explorer figcaption").innerText;
  tell(told);
}, 100);
"""


@pytest.mark.parametrize("points", [30, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_a_browser_draws_every_chart(points: int, tmp_path: Path) -> None:
    name = "<b id=evil>x</b>"
    result = fail_some(make_result(max(points, 3)))
    kinds = {**result.kinds, name: result.kinds["ep"]}
    outputs: dict[str, Any] = {**result.outputs, name: torch.rand(5, max(points, 3))}
    result = replace(result, outputs=outputs, kinds=kinds, units={name: "<i>MPa</i>", "ep": "-"})
    page = tmp_path / "page.html"
    page.write_text(report_page(result, Source(f"a {name} page", warnings=[f"warning: {name}"])))
    told = probe(page, DRAWN, tmp_path)
    assert len(told["colours"]) >= 5 and min(told["colours"]) > 20  # none is blank
    for label in (f"a {name} page", f"warning: {name}", "strain.xx", "iterations", "not finite"):
        assert label in told["text"]
    assert name in told["options"] and told["injected"] == 0
    assert told["options"][-1] in told["explored"]
    assert re.search(r"strain.xx = -?[\d.e-]+, -?[\d.e-]+ at step \d", told["hint"])


@pytest.mark.parametrize("suffix", [".npz", ".h5"])
def test_view_shows_the_curves_of_a_result(suffix: str, bar: Path, capsys: Captured) -> None:
    if suffix == ".h5":
        pytest.importorskip("h5py", reason=".h5 files need ingot[fields]")
    make_result().save(f"r{suffix}")
    assert status(["view", f"r{suffix}", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["page"] == "r.html" and told["points"] == 3
    page = Page(Path("r.html").read_text())
    assert "model" not in page.ids and "strain.xx" in {q["label"] for q in page.data["quantities"]}


def test_view_runs_the_transient_of_an_input(bar: Path, capsys: Captured) -> None:
    assert status(["view", str(bar), "stretch", "Drivers/stretch/model:=elasticity"]) == 0
    assert "stress.xx over strain.xx" in capsys.readouterr().out
    assert "model" not in Page(Path("my bar.html").read_text()).ids


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["report", "nowhere.i"], 1, "file-not-found"),
        (["report", "my bar.i", "strech"], 1, "did you mean 'stretch'"),
        (["view", "my bar.i", "--png", "frames"], 2, "--png has no meaning"),
        (["view", "r.npz"], 1, "there is no 'r.npz'"),
        (["view", "fields.xmf", "driver"], 2, "'driver' is no flag of view"),
    ],
)
def test_what_cannot_be_shown_is_told(
    bar: Path, capsys: Captured, words: list[str], code: int, said: str
) -> None:
    assert status(words) == code
    assert said in capsys.readouterr().err
    assert not list(bar.parent.glob("*.html"))
