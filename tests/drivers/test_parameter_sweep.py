"""Sweeps: every point once, the same numbers as one run after another, whoever dies on the way."""

import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ingot.drivers import TransientDriver, build_driver, sweep, sweep_workers
from ingot.errors import IngotError, IngotWarning
from ingot.hit import read_text
from ingot.runtime.sweep_part import Planned

pq: Any = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

TEXT = """
[Tensors]
  [times]
    type = Python
    expr = 'Scalar(torch.linspace(0, 1, 4).reshape(4, 1, 1))'
  []
  [strains]
    type = Python
    expr = 'SR2(torch.rand(4, 3, 6, generator=torch.Generator().manual_seed(0)))'
  []
  [speeds]
    type = Python
    expr = 'Scalar(torch.tensor([[1.0], [2.0]]))'
  []
[]
[Models]
  [elasticity]
    type = LinearIsotropicElasticity
    coefficients = '100.0 0.3'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
  []
  [rate]
    type = ScalarLinearCombination
    from = 'T a'
    to = a_rate
    weights = '1.0 -3.0'
  []
  [residual]
    type = ScalarBackwardEulerTimeIntegration
    variable = a
  []
  [scaled]
    type = ScalarLinearCombination
    from = a
    to = b
    weights = speeds
  []
  [system]
    type = ComposedModel
    models = 'rate residual'
  []
  [update]
    type = ImplicitUpdate
    equation_system = eq
    solver = newton
  []
  [model]
    type = ComposedModel
    models = 'elasticity update scaled'
    additional_outputs = a
  []
[]
[EquationSystems]
  [eq]
    type = NonlinearSystem
    model = system
    unknowns = a
  []
[]
[Solvers]
  [newton]
    type = Newton
    linear_solver = lu
  []
  [lu]
    type = DenseLU
  []
[]
[Drivers]
  [driver]
    type = TransientDriver
    model = model
    prescribed_time = times
    prescribed_SR2_names = strain
    prescribed_SR2_values = strains
    ic_Scalar_names = a
    ic_Scalar_values = 0.25
    prescribed_Scalar_names = T
    prescribed_Scalar_values = ramp
  []
[]
"""
RAMP = "[Tensors]\n  [ramp]\n    type = Python\n    expr = 'Scalar(torch.arange(4.0))'\n  []\n[]\n"
STIFFNESS, TEMPERATURES = [100.0, 150.0, 250.0], [1.0, -2.0]


def make_driver(text: str = TEXT + RAMP) -> TransientDriver:
    driver = build_driver(read_text(text), "driver")
    assert isinstance(driver, TransientDriver)
    return driver


def run_one(stiffness: float, temperature: float | None) -> dict[str, np.ndarray]:
    """The outputs (batch of 6, steps, ...) of one combination, by torch operations."""
    ramp = RAMP if temperature is None else RAMP.replace("arange(4.0)", "ones(4)")
    text = (TEXT + ramp).replace("'100.0 0.3'", f"'{stiffness} 0.3'")
    if temperature is not None:
        text = text.replace("torch.ones(4)", f"{temperature} * torch.ones(4)")
    found = make_driver(text).run("interpret").outputs
    rows = {n: x.reshape(4, 6, -1).transpose(0, 1).numpy() for n, x in found.items()}
    return rows | {"stress": rows["stress"] / np.sqrt([1, 1, 1, 2, 2, 2])}


def read_rows(place: Path) -> dict[str, np.ndarray]:
    """A data set as (points, steps, ...) of each output and axis, whichever format it has."""
    if place.suffix == ".parquet":
        table = pq.read_table(place)
        points = len(set(table["point"].to_pylist()))
        rows = {n: table[n].to_numpy().reshape(points, -1) for n in table.column_names}
        for name in [n for n in rows if n.endswith("_xx")]:
            stem = name.removesuffix("_xx")
            parts = [rows[f"{stem}_{c}"] for c in ("xx", "yy", "zz", "yz", "xz", "xy")]
            rows[stem] = np.stack(parts, -1)
        return rows
    zarr: Any = pytest.importorskip("zarr", reason="zarr is not installed")
    group = zarr.open_group(place, mode="r")
    rows = {name: group[name][...] for name in group}
    return {n: x[:, None] if x.ndim == 1 else x for n, x in rows.items()}


def read_parts(place: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in place.iterdir()}


@pytest.mark.parametrize("ending", ["parquet", "zarr"])
def test_all_combinations_are_as_one_run_after_another(ending: str, tmp_path: Path) -> None:
    place = tmp_path / f"all of it.{ending}"
    over = {"elasticity.E": STIFFNESS, "T": TEMPERATURES}
    done = sweep(make_driver(), over, place, part=7)
    assert (done.points, done.parts, done.computed, done.failed) == (36, 6, 6, 0)
    rows = read_rows(place)
    for i, (e, t) in enumerate(itertools.product(STIFFNESS, TEMPERATURES)):
        own = slice(6 * i, 6 * i + 6)
        assert np.all(rows["elasticity.E"][own] == e) and np.all(rows["T"][own] == t)
        for name, want in run_one(e, t).items():
            have = rows[name][own].reshape(want.shape)
            np.testing.assert_allclose(have[:, 1:], want[:, 1:], rtol=1e-12)
            assert np.all(have[:, 0] == 0.25 if name == "a" else np.isnan(have[:, 0]))
    assert rows["converged"].all() and rows["iterations"][:, 1:].min() >= 1


def test_pairs_steps_and_outputs_are_chosen(tmp_path: Path) -> None:
    place = tmp_path / "some.parquet"
    over = {"E": STIFFNESS[:2], "nu": [0.1, 0.2]}
    done = sweep(make_driver(), over, place, paired=True, keep=["stress"], steps=(1, -1))
    assert done.points == 12 and done.steps == 2
    table = pq.read_table(place)
    assert table["step"].to_pylist() == [1, 3] * 12
    assert table["E"].to_pylist() == [100.0] * 12 + [150.0] * 12
    assert table["nu"].to_pylist() == [0.1] * 12 + [0.2] * 12
    assert "a" not in table.column_names and "stress_xy" in table.column_names


def test_a_sweep_goes_on_where_it_stopped_and_is_the_same(tmp_path: Path) -> None:
    place, driver, over = tmp_path / "s.parquet", make_driver(), {"E": STIFFNESS}
    assert sweep(driver, over, place, part=4).computed == 5
    before = read_parts(place)
    for name in ("part-000001.parquet", "part-000004.parquet"):
        (place / name).unlink()
    assert sweep(driver, over, place).computed == 2
    assert read_parts(place) == before
    assert sweep(driver, over, place).computed == 0


def told(work: Callable[[], object]) -> str:
    with pytest.raises(IngotError) as caught:
        work()
    return "\n".join(f"{p.code}: {p.message}; {p.fix}" for p in caught.value.problems)


def test_what_cannot_be_swept_is_told(tmp_path: Path) -> None:
    driver, place = make_driver(), tmp_path / "s.parquet"

    def ask(over: dict[str, Any], **options: Any) -> str:
        where = options.pop("where", place)
        return told(lambda: sweep(driver, over, where, **options))

    assert ask({"Youngs": [1.0]}).startswith(
        "unknown-parameter: [model] has no parameter or input 'Youngs'"
    )
    assert ask({"strain": [1.0]}) == (
        "wrong-value: 'strain' is no single number, and cannot be an axis of a sweep;"
        " give it as a batch in the driver's block, which is run for each combination"
    )
    assert ask({"E": []}).startswith("wrong-value: 'E' should be")
    assert ask({"E": [1.0, np.nan]}).startswith("wrong-value: 'E' should be a row of finite")
    assert ask({"E": "1e5"}).startswith("wrong-value: 'E' should be numbers")
    assert ask({"E": [1.0], "elasticity.E": [2.0]}).startswith("duplicate-variable: ")
    assert ask({"E": [1.0, 2.0], "nu": [0.1]}, paired=True) == (
        "shapes-differ: paired values are as many of each, but 'E' has 2, 'nu' has 1;"
        " give as many of each"
    )
    assert ask({"E": [1.0]}, where="s.csv").startswith("unknown-ending: ")
    assert ask({"E": [1.0]}, keep=["stres"]) == (
        "unknown-output: [model] has no output 'stres'; did you mean 'stress'?"
    )
    assert ask({"E": [1.0]}, steps=(9,)).startswith("wrong-value: 'steps' should be all, last")
    assert ask({"E": [1.0]}, workers=0).startswith("wrong-value: 'workers' should be")
    assert not any(tmp_path.iterdir())


def test_a_driver_that_solves_around_a_solve_is_swept(tmp_path: Path) -> None:
    text = """
    [Models]
      [steel]
        type = J2Plasticity
        E = 200e3
        nu = 0.3
        yield_stress = 250
      []
    []
    [Drivers]
      [driver]
        type = UniaxialTest
        model = steel
        strain = '0.004 -0.004'
        steps = 4
      []
    []
    """
    place, strengths = tmp_path / "out.parquet", [200.0, 300.0]
    sweep(make_driver(text), {"yield_stress": strengths}, place, keep=("stress", "strain"))
    rows = read_rows(place)
    assert rows["converged"].all()
    for i, strength in enumerate(strengths):
        one = make_driver(text.replace("= 250", f"= {strength}")).run("interpret")
        for name in ("stress", "strain"):
            parts = np.stack([one[name][c] for c in ("xx", "yy", "zz", "yz", "xz", "xy")], -1)
            scale = np.abs(parts[1:]).max()
            assert np.abs(rows[name][i, 1:] - parts[1:]).max() < 1e-9 * scale


def test_another_sweep_at_the_same_place_is_refused(tmp_path: Path) -> None:
    place, driver = tmp_path / "s.parquet", make_driver()
    sweep(driver, {"E": [1.0]}, place, part=6)
    other = told(lambda: sweep(driver, {"E": [2.0]}, place))
    assert other.startswith(f"sweep-differs: '{place}' was begun by another sweep")
    smaller = told(lambda: sweep(driver, {"E": [1.0]}, place, part=5))
    assert smaller.startswith(f"sweep-differs: '{place}' was begun in parts of 6 points, not 5")
    shutil.rmtree(tmp_path / "s.parquet.plan")
    foreign = told(lambda: sweep(driver, {"E": [1.0]}, place))
    assert foreign.startswith(f"sweep-differs: '{place}' is there, and no sweep")


def test_points_that_fail_are_nan_and_counted(tmp_path: Path) -> None:
    with pytest.warns(IngotWarning, match="6 of 12 points did not converge"):
        done = sweep(make_driver(), {"rate.weights_0": [1.0, 1e308]}, tmp_path / "s.parquet")
    assert done.failed == 6
    rows = read_rows(tmp_path / "s.parquet")
    failed = np.arange(12) >= 6
    for step in (2, 3):  # where the load overflows
        assert (np.isnan(rows["a"][:, step]) == failed).all()
        assert (rows["converged"][:, step] == ~failed).all()


# workers that die


@pytest.fixture
def killer(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Kills a worker of this machine at a random moment, again and again; the list of those."""
    from ingot.graphs import child

    killed: list[int] = []
    real = child.Children._start

    def start(self: Any) -> Any:
        made = real(self)
        if len(killed) < 2:

            def kill() -> None:
                time.sleep(random.uniform(0.0, 6.0))
                if made.process.poll() is None:
                    made.kill()
                    killed.append(made.process.pid)

            threading.Thread(target=kill, daemon=True).start()
        return made

    monkeypatch.setattr(child.Children, "_start", start)
    yield killed


@pytest.mark.exhaustive
@pytest.mark.parametrize("_", range(3))
def test_a_worker_that_is_killed_costs_nothing(tmp_path: Path, killer: list[int], _: int) -> None:
    driver, over = make_driver(), {"E": list(range(1, 41))}
    sweep(driver, over, tmp_path / "quiet.parquet", part=12)
    sweep(driver, over, tmp_path / "killed.parquet", part=12, workers=2)
    quiet = read_parts(tmp_path / "quiet.parquet")
    assert len(quiet) == 20 and quiet == read_parts(tmp_path / "killed.parquet")


def test_a_part_that_kills_every_worker_ends_the_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ingot.graphs.child import Children, LostChildError

    tries: list[str] = []

    def run(self: Any, work: str, folder: Path, what: str, fix: str) -> None:
        tries.append(what)
        raise LostChildError([])

    monkeypatch.setattr(Children, "run", run)
    with pytest.raises(LostChildError):
        sweep(make_driver(), {"E": [1.0, 2.0]}, tmp_path / "s.parquet", part=6, workers=2)
    most = max(tries.count(f"part {n} of 2") for n in (0, 1))
    assert most == sweep_workers.TRIES


@pytest.mark.exhaustive
def test_ten_sweeps_of_a_cluster_whose_workers_are_killed_are_whole(tmp_path: Path) -> None:
    ray: Any = pytest.importorskip("ray", reason="Ray is not installed")
    driver, over = make_driver(), {"E": list(range(1, 81))}
    sweep(driver, over, tmp_path / "quiet.parquet", part=8)
    quiet = read_parts(tmp_path / "quiet.parquet")
    assert len(quiet) == 60
    ray.init(num_cpus=2, log_to_driver=False, include_dashboard=False)
    try:
        for turn in range(10):
            place = tmp_path / f"{turn}.parquet"
            stop = threading.Event()
            thread = threading.Thread(target=kill_one_of_ray, args=(stop,))
            thread.start()
            counted: list[tuple[int, int]] = []
            sweep(driver, over, place, part=8, ray=True, progress=lambda *n: counted.append(n))  # noqa: B023
            stop.set()
            thread.join()
            assert read_parts(place) == quiet
            assert counted == [(n, 60) for n in range(1, 61)]
    finally:
        ray.shutdown()


def kill_one_of_ray(stop: threading.Event) -> None:
    """Kill a worker that computes, at a random moment, unless all is done before."""
    time.sleep(random.uniform(0.0, 1.0))
    while not stop.is_set():
        found = subprocess.run(
            ["pgrep", "-f", "ray::_compute_there"], capture_output=True, text=True, check=False
        ).stdout.split()
        if found:
            os.kill(int(random.choice(found)), signal.SIGKILL)
            return
        time.sleep(0.01)


def test_a_worker_that_does_not_see_the_plan_sends_its_part(tmp_path: Path) -> None:
    driver, over = make_driver(), {"E": STIFFNESS}
    place, folder = tmp_path / "s.parquet", tmp_path / "s.parquet.plan"
    sweep(driver, over, place, part=18)
    planned, files, before = Planned(folder), sweep_workers._pack(folder), read_parts(place)
    sent = sweep_workers._compute_there(files, "/nowhere/at/all", planned.plan.digest, 0)
    assert sent is not None
    (place / "part-000000.parquet").unlink()
    sweep_workers.put_part(planned, 0, sent)
    assert read_parts(place) == before


LONG = """
import sys
from tests.drivers.test_parameter_sweep import make_driver, TEXT, RAMP
from ingot import sweep
import torch
text = (TEXT + RAMP).replace("linspace(0, 1, 4).reshape(4", "linspace(0, 1, 100).reshape(100")
text = text.replace("arange(4.0)", "arange(100.0) / 100").replace("rand(4, 3", "rand(100, 1")
text = text.replace("[[1.0], [2.0]]", "[1.0]")
values = torch.linspace(1.0, 2.0, 1000, dtype=torch.float64)
if __name__ == "__main__":
    over = {"E": values, "nu": values / 10}
    sweep(make_driver(text), over, sys.argv[1], keep=["stress", "a"], steps="last", workers=2)
"""


@pytest.mark.exhaustive
def test_a_million_points_killed_and_gone_on_with_are_the_same_bits(tmp_path: Path) -> None:
    script = tmp_path / "long.py"
    script.write_text(LONG)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    whole, torn = tmp_path / "whole.parquet", tmp_path / "torn.parquet"
    command = [sys.executable, str(script)]
    subprocess.run([*command, str(whole)], check=True, env=environment)
    parts = len(read_parts(whole))
    for enough in sorted(random.sample(range(1, parts - 6), 3)):
        process = subprocess.Popen([*command, str(torn)], env=environment, start_new_session=True)
        while process.poll() is None and len([*torn.glob("part-*")]) < enough:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert 0 < len([*torn.glob("part-*")]) < parts
    subprocess.run([*command, str(torn)], check=True, env=environment)
    assert read_parts(torn) == read_parts(whole)
    assert pq.read_table(torn, columns=["point"])["point"].to_numpy().tolist() == [*range(10**6)]
