"""A field that is stored narrow, one cell along axes where it is constant, is the whole field."""

import math
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from ingot.fields import COMPUTES, POSTPROCESSORS, Grid, Space, Spectrum, build, compute, run, space
from ingot.fields.blocks.bind import Bound
from ingot.fields.blocks.measure import taken
from ingot.fields.computes.boundary import region, region_slopes
from ingot.fields.declare import ComputeArgument
from ingot.fields.jit import Jit
from ingot.fields.solvers.implicit import broyden, first_residual, move, secant, start
from ingot.fields.solvers.multistep import euler, real_euler, semi_implicit
from ingot.fields.spaces import Mode
from ingot.fields.step import Ambient, Buffer, Eager, State, Step, perform, whole_arguments
from ingot.hit import read_text

BOXES: list[tuple[tuple[int, ...], Mode]] = [
    ((7,), "NONE"), ((8,), "NONE"), ((1,), "NONE"), ((2,), "NONE"),
    ((6, 5), "NONE"), ((1, 4), "NONE"), ((6, 6), "NONE"), ((5, 4), "FFT_SLAB"),
    ((4, 3, 5), "NONE"), ((3, 1, 2), "NONE"), ((4, 3, 6), "FFT_PENCIL"),
]  # fmt: skip
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "ParsedCompute": [
        {"names": ("a", "b"), "expression": "a*b + x - t", "extra_symbols": True},
        {"names": ("a", "b"), "expression": "iFFT(FFT(a)*2) + b"},
        {"names": ("a", "b"), "expression": "FFT(2) + a*b"},
    ],
    "FFTGradient": [{"direction": "X"}],
    "FiniteDifferenceLaplacian": [{"stencil_width": "3"}, {"stencil_width": "5"}],
    "TensorInterfaceVelocityPostprocessor": [{"compatible": True}, {"compatible": False}],
    "TensorExtremeValuePostprocessor": [{"value_type": "MIN"}, {"value_type": "MAX"}],
    "ElementExtremeValue": [
        {"nodal": nodal, "value_type": kind} for nodal in (True, False) for kind in ("MIN", "MAX")
    ],
    "PointValue": [{"nodal": nodal, "point": (1.9, 0.3, 1.1)} for nodal in (True, False)],
    "ComputeReynoldsNumber": [{"tau": 0.8, "diameter": 3.0}],
}
SPECTRAL = ("FFTGradient", "FFTGradientSquare", "GradientTensor")
"""Computes whose input is a spectrum where they are told so."""

MODELS = ("NEML2TensorCompute", "LibtorchGibbsEnergy")
"""Computes that read files; the second is tried below, the first has tests of its own."""


OF_COMPONENTS = ("lbm", "elasticity", "galerkin", "mechanics")
"""Where computes of vectors, tensors and distributions are; draws here are of scalar fields."""

READERS = [
    name for name, declared in COMPUTES.items()
    if name not in MODELS and declared.prepare is None
    and not set(OF_COMPONENTS) & set(declared.function.__module__.split("."))
    and any(a.role in ("grid", "grids") for a in declared.arguments)
]  # fmt: skip
"""Computes of scalar fields; those that prepare something are tried in pieces."""


def narrow(box: Space, shape: tuple[int, ...], dice: random.Random, *, half: bool) -> Tensor:
    """A random field that is constant along some axes; one number where along all."""
    sizes = [1 if dice.random() < 0.5 else n for n in shape]
    real = torch.rand(sizes if dice.random() < 0.9 else (), dtype=torch.float64) + 0.5
    if not half:
        return real
    imaginary = torch.rand_like(real) - 0.5
    return torch.complex(real, imaginary) if dice.random() < 0.7 else real


def compare(function: Any, given: Mapping[str, Any], box: Space, dice: random.Random) -> None:
    """Whether a function of narrow fields gives what it gives of them filled first."""
    options = {k: v for k, v in given.items() if k not in ("grids", "spectra")}
    state, full = State(box, dt=0.1, time=0.3), State(box, dt=0.1, time=0.3)
    arguments: dict[str, Any] = {}
    for kind, names in (("grids", given["grids"]), ("spectra", given["spectra"])):
        shape = box.shape if kind == "grids" else box.spectrum_shape
        for name, count in names:
            keys = [f"{name}{at}" for at in range(count or 1)]
            for key in keys:
                state.buffers[key] = narrow(box, shape, dice, half=kind == "spectra")
                full.buffers[key] = state.buffers[key].expand(shape).contiguous()
            arguments[name] = tuple(map(Buffer, keys)) if count else Buffer(keys[0])
    for name in ("space", "time", "dt"):
        if name in function.__code__.co_varnames[: function.__code__.co_argcount]:
            arguments[name] = Ambient(name)
    count = len(list(flat_results(function, arguments, options, full)))
    step = Step("s", function, arguments, tuple(f"r{k}" for k in range(count)), options)
    found, expected = perform(step, state.look_up), perform(step, full.look_up)
    for name, value in expected.items():
        sizes = value.shape
        torch.testing.assert_close(found[name].expand(sizes), value, rtol=1e-12, atol=1e-12)


def flat_results(function: Any, arguments: Any, options: Any, state: State) -> Any:
    looked = {
        k: tuple(map(state.look_up, v)) if isinstance(v, tuple) else state.look_up(v)
        for k, v in arguments.items()
    }
    result = function(**looked, **options)
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize(("sizes", "mode"), BOXES, ids=str)
@pytest.mark.parametrize("name", READERS)
def test_a_compute_of_narrow_fields_is_one_of_the_whole(
    name: str, sizes: tuple[int, ...], mode: Mode
) -> None:
    declared = COMPUTES[name]
    fields = [a for a in declared.arguments if a.role in ("grid", "grids")]
    box = space(sizes, upper=(3.0, 2.0, 1.5), mode=mode)
    kinds = whole_arguments(declared.function)
    for seed, options in enumerate(OPTIONS.get(name, [{}]) * 5):
        for reciprocal in (False, True) if name in SPECTRAL else (False,):
            grids, spectra = [], []
            for each in fields:
                spectral = reciprocal or kinds.get(each.name) == Spectrum
                row = (each.name, 2 if each.role == "grids" else 0)
                (spectra if spectral else grids).append(row)
            more = {"input_is_reciprocal": True} if reciprocal else {}
            given = {"grids": grids, "spectra": spectra, **options, **more}
            compare(declared.function, given, box, random.Random(seed))


PIECES: list[tuple[Any, dict[str, Any]]] = [
    (euler, {"grids": [], "spectra": [("spectrum", 0), ("rate", 0)]}),
    (real_euler, {"grids": [("field", 0), ("rate", 0)], "spectra": []}),
    (semi_implicit, {"grids": [], "spectra": [("spectrum", 0), ("rates", 2), ("linear", 0)],
                     "weights": (1.5, -0.5)}),
    (start, {"grids": [], "spectra": [("spectrum", 0), ("rate", 0), ("linear", 0)],
             "epsilon": 1e-3}),
    (secant, {"grids": [], "damping": 0.5, "spectra": [
        (n, 0) for n in ("spectrum", "rate", "before", "last", "last_residual", "linear")]}),
    (first_residual, {"grids": [], "spectra": [("spectra", 2), ("rates", 2), ("operators", 2)],
                      "linear": (True, True)}),
    (region_slopes, {"grids": [("psi", 0)], "spectra": []}),
    (region, {"grids": [("psi", 0)], "spectra": []}),
]  # fmt: skip
"""What solvers and computes with preparations are made of."""


@pytest.mark.parametrize(("sizes", "mode"), BOXES, ids=str)
@pytest.mark.parametrize(("function", "given"), PIECES, ids=lambda x: getattr(x, "__name__", ""))
def test_a_solver_of_narrow_fields_is_one_of_the_whole(
    function: Any, given: dict[str, Any], sizes: tuple[int, ...], mode: Mode
) -> None:
    box = space(sizes, upper=(3.0, 2.0, 1.5), mode=mode)
    for seed in range(5):
        compare(function, given, box, random.Random(seed))


def test_the_pieces_of_broydens_solver_take_whole_spectra() -> None:
    for function, names in ((broyden, {"spectra", "rates", "before"}), (move, {"spectra"})):
        assert set(whole_arguments(function)) == names


@pytest.mark.parametrize(("sizes", "mode"), BOXES, ids=str)
@pytest.mark.parametrize("name", [n for n in POSTPROCESSORS if n != "FunctionElementIntegral"])
def test_a_postprocessor_of_a_narrow_field_is_one_of_the_whole(
    name: str, sizes: tuple[int, ...], mode: Mode
) -> None:
    declared = POSTPROCESSORS[name]
    box = space(sizes, upper=(3.0, 2.0, 1.5), mode=mode)
    spectral = whole_arguments(declared.function).get("buffer") == Spectrum
    shape = box.spectrum_shape if spectral else box.shape
    for seed, options in enumerate(OPTIONS.get(name, [{}]) * 5):
        dice = random.Random(seed)
        now, before = (narrow(box, shape, dice, half=spectral) for _ in range(2))
        numbers = []
        for change in (lambda x: x, lambda x: x.expand(shape).contiguous()):
            state = State(box, dt=0.1, buffers={"u": change(now)}, old={"u": (change(before),)})
            bound = Bound(
                declared,
                {a.name: source(a) for a in declared.arguments if source(a) is not None},
                options, (), {a.name: "u" for a in declared.arguments if a.role == "past"},
            )  # fmt: skip
            numbers.append(taken(bound, state, None))
        assert math.isclose(*numbers, rel_tol=1e-12, abs_tol=1e-12), name


def source(argument: ComputeArgument) -> Any:
    return Buffer("u") if argument.role in ("grid", "variable") else argument.ambient


TEXT = """
[Domain]
  dim = 2
  nx = 8
  ny = 6
  xmax = 6.283185307179586
  ymax = 3
[]
[TensorComputes]
  [Initialize]
    [u]
      type = ParsedCompute
      buffer = u
      expression = '2+cos(x)'
      extra_symbols = true
      expand = EXPAND
    []
  []
  [Solve]
    [ubar]
      type = ForwardFFT
      buffer = ubar
      input = u
    []
    [back]
      type = InverseFFT
      buffer = back
      input = ubar
    []
    [slope]
      type = FFTGradient
      buffer = slope
      input = u
      direction = X
    []
    [laplacian]
      type = FiniteDifferenceLaplacian
      buffer = laplacian
      input = u
    []
    [squares]
      type = FFTGradientSquare
      buffer = squares
      input = u
    []
    [total]
      type = TotalOfAField
      buffer = total
      field = u
    []
  []
[]
[Postprocessors]
  [integral]
    type = TensorIntegralPostprocessor
    buffer = u
  []
  [change]
    type = TensorIntegralChangePostprocessor
    buffer = u
  []
[]
[VectorPostprocessors]
  [histogram]
    type = TensorHistogram
    buffer = u
    min = 1
    max = 3
    bins = 4
  []
[]
[TensorOutputs]
  [x]
    type = XDMFTensorOutput
    buffer = 'u slope'
    enable_hdf5 = false
  []
[]
[Executioner]
  type = Transient
  num_steps = 3
[]
[Outputs]
  csv = true
[]
"""


@pytest.fixture
def total_of_a_field() -> Any:
    @compute
    def TotalOfAField(field: Grid) -> Grid:
        """The sum of all cells, in every cell.

        field: the field
        """
        return field.sum().expand(field.shape).contiguous()

    yield
    del COMPUTES["TotalOfAField"]


@pytest.mark.usefixtures("total_of_a_field")
@pytest.mark.parametrize("jit", [False, True], ids=["direct", "compiled"])
def test_a_run_with_a_narrow_field_is_one_with_the_whole(jit: bool, tmp_path: Path) -> None:
    results = []
    for expand in ("NONE", "REAL"):
        text = TEXT.replace("EXPAND", expand)
        folder = tmp_path / expand
        made = build(read_text(text, moose=True))
        results.append(run(made, folder, jit=jit))
    narrow_run, full = results
    for name in ("back", "slope", "laplacian", "squares", "total"):
        torch.testing.assert_close(
            narrow_run.state.buffers[name], full.state.buffers[name], rtol=1e-12, atol=1e-12
        )
    assert narrow_run.state.buffers["u"].shape == (8, 1), "it is stored narrow"
    x = full.state.space.axes[0]
    torch.testing.assert_close(full.state.buffers["slope"], (-torch.sin(x)).expand(8, 6))
    for one, other in zip(narrow_run.values, full.values, strict=True):
        assert one == pytest.approx(other, rel=1e-14, abs=1e-14)
    for path in (each for each in full.files if each.name != "out.csv"):
        same = tmp_path / "NONE" / path.name
        assert same.read_bytes() == path.read_bytes(), path.name


@pytest.mark.parametrize("sizes", [(8,), (6, 5), (4, 3, 5)], ids=str)
def test_compiled_sequences_take_narrow_fields(sizes: tuple[int, ...]) -> None:
    box = space(sizes, upper=(3.0, 2.0, 1.5))
    names = {"ForwardFFT": {}, "FFTGradientSquare": {}, "GradientTensor": {},
             "FiniteDifferenceLaplacian": {"stencil_width": "5"}}  # fmt: skip
    steps = tuple(
        Step(f"{name}{at}", COMPUTES[name].function,
             {"input": Buffer(f"u{at}"), "space": Ambient("space")}, (f"{name}{at}",), options)
        for name, options in names.items() for at in range(4)
    )  # fmt: skip
    dice = random.Random(1)
    fields = {f"u{at}": narrow(box, sizes, dice, half=False) for at in range(4)}
    compiled = State(box, buffers=dict(fields))
    executor = Jit()
    executor.run(steps, compiled)
    assert executor.statistics.fallbacks == 0
    direct = State(box, buffers={n: u.expand(sizes).contiguous() for n, u in fields.items()})
    Eager().run(steps, direct)
    for step in steps:
        found, expected = compiled.buffers[step.name], direct.buffers[step.name]
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
