"""Orders of the solvers of fields: `python -m benchmarks.orders` measures how fast errors fall.

In: a rate whose solution is known. Out: a table, solver by solver, with steps of one size and with
steps that change, as the reference does it and as the mathematics says.
"""

import argparse
import functools
import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.figures import format_table, read_result, write_result
from ingot.fields import Result, build, run
from ingot.hit import read_text

# u' = -0.5 u + (0.5 cos(t) - sin(t)) + u^2 - cos(t)^2 is solved by u = cos(t) everywhere; its
# second derivative is not zero at the start, so that a first step by Euler shows.
INPUT = """
[Domain]
  dim = 1
  nx = 4
[]
[Problem]
  marlin_compatible = false
[]
[TensorComputes]
  [Initialize]
    [u]
      type = ConstantTensor
      buffer = u
      real = 1
    []
    [linear]
      type = ParsedCompute
      buffer = linear
      extra_symbols = true
      expression = '-0.5'
      expand = RECIPROCAL
    []
  []
  [Solve]
    [ubar]
      type = ForwardFFT
      buffer = ubar
      input = u
    []
    [rest]
      type = ParsedCompute
      buffer = rest
      inputs = u
      extra_symbols = true
      expression = '0.5*cos(t) - sin(t) + u^2 - cos(t)^2'
    []
    [restbar]
      type = ForwardFFT
      buffer = restbar
      input = rest
    []
  []
[]
[TensorSolver]
  type = AdamsBashforthMoulton
  buffer = u
  reciprocal_buffer = ubar
  linear_reciprocal = linear
  nonlinear_reciprocal = restbar
  substeps = 1
[]
[Postprocessors]
  [u]
    type = TensorAveragePostprocessor
    buffer = u
  []
[]
[Executioner]
  type = Transient
  end_time = 1
[]
"""
EXPLICIT = (
    "TensorSolver/linear_reciprocal=0",
    "TensorComputes/Solve/rest/expression='0.5*cos(t) - sin(t) - 0.5*u + u^2 - cos(t)^2'",
)
COMPATIBLE = "Problem/marlin_compatible=true"
TIGHT = tuple(
    f"TensorSolver/{each}"
    for each in ("relative_tolerance=1e-12", "absolute_tolerance=1e-12", "max_iterations=60")
)
"""Iterations that end well below the error of a step."""


def error(result: Result) -> float:
    """How far the last mean is from the solution."""
    return abs(result.values[-1]["u"] - math.cos(1))


def equal_steps(count: int) -> tuple[str, ...]:
    """Steps of one size."""
    return (f"Executioner/dt={1 / count!r}",)


def changing_steps(count: int) -> tuple[str, ...]:
    """Steps that grow and shrink by half, so that no two in a row are alike."""
    return (
        "Functions/size/type=ParsedFunction",
        f"Functions/size/expression='(1 + 0.5*sin(20*t))/{count}'",
        "Executioner/TimeStepper/type=FunctionDT", "Executioner/TimeStepper/function=size",
        "TensorSolver/substeps=2",
    )  # fmt: skip


def measure_order(
    simulate: Callable[..., Result],
    overrides: Sequence[str],
    fine: int,
    steps: Callable[[int], tuple[str, ...]] = equal_steps,
) -> float:
    """How fast the error falls with the step size: its slope in logarithms."""
    coarse, small = (error(simulate(*steps(n), *overrides)) for n in (fine // 2, fine))
    return math.log2(coarse / small)


def with_solver(kind: str, *options: str) -> str:
    """The input with another solver, which has options of its own."""
    head, rest = INPUT.split("[TensorSolver]\n")
    _, tail = rest.split("[]\n", 1)
    block = "".join(f"  {each}\n" for each in (f"type = {kind}", "buffer = u", *options))
    return f"{head}[TensorSolver]\n{block}[]\n{tail}"


def solvers() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """What is measured: a name, an input, and what makes it use the solver."""
    spectra = ("reciprocal_buffer = ubar", "time_derivative_reciprocal = restbar")
    yield "`ForwardEulerSolver`", with_solver("ForwardEulerSolver", *spectra), EXPLICIT[1:]
    real = with_solver("RealSpaceForwardEuler", "time_derivative = rest")
    yield "`RealSpaceForwardEuler`", real, EXPLICIT[1:]
    for name, overrides in split_solvers():
        yield name, INPUT, overrides


def split_solvers() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Those that part a linear operator from the rest of the rates."""
    for order in range(1, 6):
        predictor = f"TensorSolver/predictor_order={order}"
        yield f"`AdamsBashforthMoulton`, predictor of order {order}", (predictor, *EXPLICIT)
    for order in range(2, 6):
        corrected = (
            f"TensorSolver/predictor_order={order - 1}",
            f"TensorSolver/corrector_order={order}", "TensorSolver/corrector_steps=1",
        )  # fmt: skip
        yield f"the same, order {order - 1}, corrected by order {order}", (*corrected, *EXPLICIT)
    yield "the same of order 2, a linear part implicit", ()
    yield "`AdamsBashforthMoultonCoupled`", ("TensorSolver/type=AdamsBashforthMoultonCoupled",)
    yield "`ETDRK4Solver`", ("TensorSolver/type=ETDRK4Solver",)
    for kind in ("SecantSolver", "BroydenSolver"):
        yield f"`{kind}`", (f"TensorSolver/type={kind}", *TIGHT)


def main() -> None:
    """Measure and print; `--out FOLDER` stores the table."""
    options = argparse.ArgumentParser(description=main.__doc__)
    options.add_argument("--out", type=Path)
    out = options.parse_args().out
    with tempfile.TemporaryDirectory() as folder:

        def simulate(text: str, *overrides: str) -> Result:
            return run(build(read_text(text, overrides=overrides, moose=True)), folder, jit=False)

        rows = []
        for name, text, overrides in solvers():
            simulate_it = functools.partial(simulate, text)
            cells = [
                f"{measure_order(simulate_it, (*overrides, *mode), 160, steps):.1f}"
                for mode in ((), (COMPATIBLE,))
                for steps in (equal_steps, changing_steps)
            ]
            rows.append([name, *cells])
        columns = ("solver", "equal", "changing", "compatible, equal", "compatible, changing")
        place = out or Path(folder)
        write_result(place, "orders", "python -m benchmarks.orders", columns, rows)
        print(format_table(read_result("orders", place)))


if __name__ == "__main__":
    main()
