"""Boxes shared among ranks: parts fit together, and real processes give what one gives."""

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ingot.errors import IngotError
from ingot.fields import Result, build, run
from ingot.fields.checkpoint import restore
from ingot.fields.outputs.frames import read_frames
from ingot.fields.runs import prepared
from ingot.fields.shares import Share, deal, least_surface, nearly_square, parts_of
from ingot.hit import read_text
from tests.fields.drawn_inputs import block, draw, section
from tests.fields.ranks_cases import BODIES, DISPLACED, LATTICES, TRANSFORMED
from tests.fields.ranks_worker import start_world, users_computes

Simulate = Callable[..., Result]

SPECTRAL = "\n".join(
    (
        block("Domain", dim=2, nx=21, ny=18, xmax=3, parallel_mode="FFT_SLAB"),
        section(
            "TensorComputes",
            section(
                "Initialize",
                block("c", type="RandomTensor", buffer="c", min=0.44, max=0.56, seed=3),
                block(
                    "linear",
                    type="ReciprocalLaplacianSquareFactor",
                    factor="-1e-7",
                    buffer="linear",
                ),
                block("M", type="ReciprocalLaplacianFactor", factor=0.2, buffer="M"),
                block("sharp", type="DeAliasingTensor", buffer="sharp", method="SHARP"),
                block("smooth", type="DeAliasingTensor", buffer="smooth", method="HOULI"),
                block(
                    "wave",
                    type="ParsedCompute",
                    buffer="wave",
                    extra_symbols="true",
                    expression="sin(6.283185307179586*y)",
                ),
            ),
            section(
                "Solve",
                block(
                    "mu",
                    type="ParsedCompute",
                    buffer="mu",
                    expression="0.1*c^2*(c-1)^2 + 0.01*wave*c",
                    derivatives="c",
                    inputs="c wave",
                ),
                block("mubar", type="ForwardFFT", buffer="mubar", input="mu"),
                block(
                    "rate",
                    type="ParsedCompute",
                    buffer="rate",
                    expression="M*mubar",
                    inputs="M mubar",
                ),
                block("cbar", type="ForwardFFT", buffer="cbar", input="c"),
            ),
            section(
                "Postprocess",
                block("slope", type="FFTGradientSquare", buffer="slope", input="c"),
            ),
        ),
        block(
            "TensorSolver",
            type="AdamsBashforthMoulton",
            buffer="c",
            reciprocal_buffer="cbar",
            linear_reciprocal="linear",
            nonlinear_reciprocal="rate",
            substeps=3,
        ),
        section(
            "Postprocessors",
            block("average", type="TensorAveragePostprocessor", buffer="c"),
            block("change", type="TensorIntegralChangePostprocessor", buffer="c"),
            block(
                "largest", type="TensorExtremeValuePostprocessor", buffer="slope", value_type="MAX"
            ),
        ),
        section(
            "VectorPostprocessors",
            block("bins", type="TensorHistogram", buffer="c", min=0.4, max=0.6, bins=7),
        ),
        section(
            "TensorOutputs",
            block(
                "parts",
                type="XDMFTensorOutput",
                buffer="c slope",
                file_base="parts",
                enable_hdf5="true",
            ),
        ),
        block("Outputs", csv="true", file_base="out"),
        block("Executioner", type="Transient", num_steps=20, dt="1e-3"),
    )
)

REAL = """
[Domain]
  dim = 2
  nx = 13
  ny = 10
  parallel_mode = REAL_SPACE
  periodic_directions = 'X Y'
[]
[TensorComputes]
  [Initialize]
    [c]
      type = RandomTensor
      buffer = c
      min = 0
      max = 1
      seed = 5
    []
  []
  [Solve]
    [lap]
      type = FiniteDifferenceLaplacian
      buffer = lap
      input = c
      stencil_width = 5
    []
  []
[]
[TensorSolver]
  type = RealSpaceForwardEuler
  buffer = c
  time_derivative = lap
  substeps = 2
[]
[Postprocessors]
  [average]
    type = TensorAveragePostprocessor
    buffer = c
  []
[]
[Executioner]
  type = Transient
  num_steps = 20
  dt = 1e-4
[]
"""

THREE = ("Domain/dim=3", "Domain/nz=7", "Domain/nx=10", "Domain/ny=9")
SECANT = (
    "TensorSolver/type=SecantSolver", "TensorSolver/max_iterations=40",
    "TensorSolver/relative_tolerance=1e-11", "TensorSolver/absolute_tolerance=1e-11",
)  # fmt: skip

USERS = (
    "TensorComputes/Solve/less/type=BoxMean", "TensorComputes/Solve/less/buffer=less",
    "TensorComputes/Solve/less/field=c", "Executioner/num_steps=2",
)  # fmt: skip

DRAWN = (305, 308, 318, 323, 325, 326, 333, 336, 339, 350, 358, 370, 380, 398)
"""Seeds of inputs in double precision that two ranks can share, some of them a row each."""
NARROW = tuple(f"drawn-{seed}" for seed in (305, 308, 323, 339, 370))
"""Those of which four ranks cannot have a row each."""

SCENARIOS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "slab": (SPECTRAL, (), ("c", "cbar", "slope", "wave", "sharp", "smooth")),
    "slab-3d": (SPECTRAL, (*THREE, "Executioner/num_steps=4"), ("c", "cbar")),
    "users": (REAL, USERS, ("less",)),
    "secant": (SPECTRAL, (*SECANT, "Executioner/num_steps=3"), ("c",)),
    "pencil": (
        SPECTRAL, (*THREE, "Domain/parallel_mode=FFT_PENCIL", "Executioner/num_steps=4"),
        ("c", "cbar", "wave"),
    ),
    "real-space": (REAL, (), ("c", "lap")),
    "real-space-3d": (
        REAL, (*THREE, "Domain/periodic_directions='X Y Z'", "Executioner/num_steps=5"), ("c",),
    ),
    **LATTICES,
    **BODIES,
    **{f"drawn-{seed}": (draw(seed).text, (), ("c", "w", "both")) for seed in DRAWN},
}  # fmt: skip


REFUSED: dict[str, tuple[str, tuple[str, ...], str]] = {
    "wrong-users": (
        REAL, (*USERS, "TensorComputes/Solve/less/type=LocalMean"),
        "LocalMean gives a part of the box other numbers",
    ),
    "wrong-nodes": (*DISPLACED[:2], "ComputeDisplacements needs the whole box"),
    "wrong-transform": (*TRANSFORMED[:2], "FFT or iFFT in an expression needs the whole box"),
}  # fmt: skip
"""What no part of a box can do, and what the error says."""


def alone(name: str, folder: Path, *more: str) -> Result:
    text, overrides, _ = SCENARIOS[name]
    folder.mkdir(exist_ok=True)
    tree = read_text(text, overrides=(*overrides, *more), moose=True)
    with users_computes():
        return run(build(tree), folder, jit=False)


FEW = ("slab", "users", "channel", "plate", "drawn-318", "drawn-339")
"""What the plain suite runs; the sweep runs all."""


@pytest.fixture(
    scope="module",
    params=[
        (2, FEW),
        *(pytest.param((n, tuple(SCENARIOS)), marks=pytest.mark.exhaustive) for n in (1, 2)),
        pytest.param(
            (4, tuple(each for each in SCENARIOS if each not in NARROW)),
            marks=pytest.mark.exhaustive,
        ),
    ],
    ids=lambda each: f"{each[0]}-{'few' if each[1] is FEW else 'all'}",
)  # fmt: skip
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which so many processes have run scenarios."""
    count, names = request.param
    folder = tmp_path_factory.mktemp(f"ranks{count}")
    for name in names:
        text, overrides, fields = SCENARIOS[name]
        # with four ranks all are compiled, where no exchange is part of a sequence
        jit = name == "slab" or count == 4
        scenario = {"text": text, "overrides": overrides, "fields": fields, "jit": jit}
        scenario["store_after"] = 7 if name == "slab" else None
        (folder / f"{name}.json").write_text(json.dumps(scenario))
    for name, (text, overrides, told) in REFUSED.items():
        refused = {"text": text, "overrides": overrides, "fields": []}
        refused["refused"] = told if count > 1 else ""
        (folder / f"{name}.json").write_text(json.dumps(refused))
    start_world(count, folder)
    return folder


@pytest.mark.parametrize(
    "name",
    [n if n in FEW else pytest.param(n, marks=pytest.mark.exhaustive) for n in SCENARIOS],
)
def test_ranks_give_the_fields_of_one_process(world: Path, name: str, tmp_path: Path) -> None:
    if not (world / name).is_dir():
        pytest.skip("these ranks cannot share it, or run it in the world of all")
    found = torch.load(world / name / "result.pt")
    expected = alone(name, tmp_path / "alone")
    for field, value in found["fields"].items():
        one = expected.state.buffers[field]
        assert value.shape == one.shape
        assert (value - one).abs().max() <= 1e-12 * one.abs().max(), field
    for row, other in zip(found["rows"], expected.values, strict=True):
        assert row == pytest.approx(other, rel=1e-11, abs=1e-14)


def test_ranks_write_the_tables_and_fields_of_one_process(world: Path, tmp_path: Path) -> None:
    alone("slab", tmp_path / "alone")
    for name in ("out.csv", "out_bins_0020.csv"):
        ours, theirs = ((f / name).read_text() for f in (world / "slab", tmp_path / "alone"))
        assert len(ours.splitlines()) == len(theirs.splitlines())
        for row, other in zip(ours.splitlines()[1:], theirs.splitlines()[1:], strict=True):
            numbers = [[float(x) for x in each.split(",")] for each in (row, other)]
            assert numbers[0] == pytest.approx(numbers[1], rel=1e-11, abs=1e-14)
    ours, theirs = (read_frames(f / "parts.xmf") for f in (world / "slab", tmp_path / "alone"))
    assert ours.times == theirs.times
    for frame in (0, 20):
        for name in ("c", "slope"):
            a, b = ours.array(name, frame), theirs.array(name, frame)
            assert a.shape == b.shape
            assert abs(a - b).max() <= 1e-12 * max(abs(b).max(), 1e-300)


def test_a_checkpoint_of_ranks_goes_on_alone(world: Path, tmp_path: Path) -> None:
    """Stored after seven steps by some ranks, finished by one process that has no ranks."""
    text, overrides, _ = SCENARIOS["slab"]
    bare = (*overrides, "TensorOutputs/active=''", "Outputs/active=''")
    stored = world / "slab" / "run.checkpoint"
    simulation = build(read_text(text, overrides=bare, moose=True))
    going_on = prepared(simulation, tmp_path, jit=False)
    with pytest.raises(IngotError, match="TensorOutputs"):
        restore(going_on, stored)
    folder = tmp_path / "copy"
    shutil.copytree(world / "slab", folder)
    ready = prepared(build(read_text(text, overrides=overrides, moose=True)), folder, jit=False)
    restore(ready, folder / "run.checkpoint")
    for _ in ready.steps():
        pass
    one = alone("slab", tmp_path / "alone").state.buffers["c"]
    assert (ready.state.buffers["c"] - one).abs().max() <= 1e-12 * one.abs().max()


@pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.exhaustive)])
def test_a_checkpoint_goes_on_by_other_ranks_and_bit_for_bit_by_as_many(
    world: Path, count: int, tmp_path: Path
) -> None:
    text, overrides, fields = SCENARIOS["slab"]
    folder = tmp_path / "again"
    shutil.copytree(world / "slab", folder / "slab")
    scenario = {
        "text": text, "overrides": overrides, "fields": fields, "jit": True,
        "restart": str(folder / "slab" / "run.checkpoint"),
    }  # fmt: skip
    (folder / "slab.json").write_text(json.dumps(scenario))
    before = torch.load(world / "slab" / "result.pt")
    start_world(count, folder)
    after = torch.load(folder / "slab" / "result.pt")
    same = f"ranks{count}" in str(world)
    for name, value in before["fields"].items():
        if same:
            assert torch.equal(value, after["fields"][name])
        assert (value - after["fields"][name]).abs().max() <= 1e-12 * value.abs().max()
    assert after["times"] == before["times"]


sizes = st.lists(st.integers(4, 12), min_size=3, max_size=3).map(tuple)


@given(sizes, st.sampled_from(["FFT_SLAB", "FFT_PENCIL", "REAL_SPACE"]), st.integers(1, 4))
def test_parts_cover_a_box_once(sizes: tuple[int, ...], mode: str, count: int) -> None:
    try:
        parts = parts_of(sizes, mode, (1,) * count)  # type: ignore[arg-type]
    except IngotError as error:
        assert error.problems[0].code == "wrong-ranks"
        return
    assert parts.count == count
    for find, shape in ((parts.box, parts.sizes), (parts.spectrum_box, parts.spectrum_sizes)):
        seen = torch.zeros(shape)
        for rank in range(count):
            seen[find(rank)] += 1
        assert (seen == 1).all()
    for rank in range(count):
        assert parts.rank(parts.place(rank)) == rank


@given(sizes, st.sampled_from(["FFT_SLAB", "REAL_SPACE"]), st.integers(1, 4),
       st.tuples(*[st.booleans()] * 3), st.booleans())  # fmt: skip
def test_what_ranks_own_joins_to_the_whole(
    sizes: tuple[int, ...], mode: str, count: int, narrow: tuple[bool, ...], spectral: bool
) -> None:
    parts = parts_of(sizes, mode, (1,) * count)  # type: ignore[arg-type]
    wide = parts.spectrum_sizes if spectral else parts.sizes
    shape = tuple(1 if thin else n for thin, n in zip(narrow, wide, strict=True))
    whole = torch.arange(2 * math.prod(shape), dtype=torch.float64).reshape(*shape, 2)
    pieces = [Share(parts, rank).own(whole, spectral=spectral) for rank in range(count)]
    joined = parts.join(pieces, spectral=spectral)
    # where every rank has one row, one number that holds along the axis looks like a row of it
    cuts = parts.spectrum if spectral else parts.grid
    rows = zip(shape, cuts, strict=True)
    assert all(n == m or set(cut) == {1} for (n, cut), m in zip(rows, joined.shape, strict=False))
    assert torch.equal(joined, whole.expand_as(joined))


@given(st.integers(1, 60), st.lists(st.integers(1, 5), min_size=1, max_size=6))
def test_rows_are_dealt_out_whole(rows: int, weights: list[int]) -> None:
    parts = deal(rows, weights)
    assert sum(parts) == rows
    assert all(part >= 1 for part in parts) or rows < len(weights)


def test_layouts_are_compact() -> None:
    assert [nearly_square(n) for n in (1, 2, 4, 6, 12)] == [(1, 1), (2, 1), (2, 2), (3, 2), (4, 3)]
    assert least_surface((100, 10), 2) == (2, 1)
    assert least_surface((10, 100), 4) == (1, 4)
    assert least_surface((32, 32, 32), 8) == (2, 2, 2)


def test_a_box_that_is_not_cut_has_one_rank() -> None:
    with pytest.raises(IngotError, match="parallel_mode = FFT_SLAB"):
        parts_of((8, 8), "NONE", (1, 1))
    with pytest.raises(IngotError, match="use fewer ranks"):
        parts_of((8, 3), "FFT_SLAB", (1,) * 4)
