"""What compiling costs as a model repeats its parts: 2, 4, 8, 16 back stresses.

Out: a markdown table of seconds for each stage, the compiler's with every instance written out
(`all`) and with one function for all (`auto`), and what a step of a point costs in both.
`python -m benchmarks.chaboche [--help]`.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar
from unittest import mock

import torch

from ingot.codegen import compiler, source
from ingot.codegen.build import NATIVE_FLAGS
from ingot.execute import kernel
from ingot.execute.transient import Transient
from ingot.hit import read_text
from ingot.model import Model, build
from ingot.options import Inline
from ingot.program import Choices, Program, compile_passes, prepared, with_jacobian
from ingot.program.pipeline import clean, factor, loops

Result = TypeVar("Result")
MODES: tuple[Inline, ...] = ("all", "auto")

TEXT = """
[Models]
  [isoharden]
    type = VoceIsotropicHardening
    saturated_hardening = 100
    saturation_rate = 1.2
  []
  [kinharden]
    type = SR2LinearCombination
    from = '{names}'
    to = 'back_stress'
    weights = '{ones}'
  []
  [mandel_stress]
    type = IsotropicMandelStress
    cauchy_stress = 'stress'
  []
  [overstress]
    type = SR2LinearCombination
    to = 'overstress'
    from = 'mandel_stress back_stress'
    weights = '1 -1'
  []
  [vonmises]
    type = SR2Invariant
    invariant_type = 'VONMISES'
    tensor = 'overstress'
    invariant = 'effective_stress'
  []
  [yield_surface]
    type = YieldFunction
    yield_stress = 5
    isotropic_hardening = 'isotropic_hardening'
  []
  [flow]
    type = ComposedModel
    models = 'overstress vonmises yield_surface'
  []
  [normality]
    type = Normality
    model = 'flow'
    function = 'yield_function'
    from = 'mandel_stress isotropic_hardening'
    to = 'flow_direction isotropic_hardening_direction'
  []
  [flow_rate]
    type = PerzynaPlasticFlowRate
    reference_stress = 100
    exponent = 2
  []
  [eprate]
    type = AssociativeIsotropicPlasticHardening
  []
{laws}
  [Eprate]
    type = AssociativePlasticFlow
  []
  [Erate]
    type = SR2VariableRate
    variable = 'E'
  []
  [Eerate]
    type = SR2LinearCombination
    from = 'E_rate plastic_strain_rate'
    to = 'strain_rate'
    weights = '1 -1'
  []
  [elasticity]
    type = LinearIsotropicElasticity
    coefficients = '1e5 0.3'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
    rate_form = true
  []
  [integrate_ep]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'equivalent_plastic_strain'
  []
  [integrate_stress]
    type = SR2BackwardEulerTimeIntegration
    variable = 'stress'
  []
  [rate]
    type = ComposedModel
    models = 'isoharden kinharden mandel_stress overstress vonmises yield_surface normality
              flow_rate eprate Eprate {rates} Erate Eerate elasticity integrate_stress
              integrate_ep {integrals}'
  []
  [predictor]
    type = ConstantExtrapolationPredictor
    unknowns_SR2 = 'stress {names}'
    unknowns_Scalar = 'equivalent_plastic_strain'
  []
  [model]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
    predictor = 'predictor'
  []
[]

[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'rate'
    unknowns = 'stress equivalent_plastic_strain {names}'
    residuals = 'stress_residual equivalent_plastic_strain_residual {residuals}'
  []
[]

[Solvers]
  [newton]
    type = Newton
    linear_solver = 'lu'
  []
  [lu]
    type = DenseLU
  []
[]
"""
LAW = """
  [{name}rate]
    type = ChabochePlasticHardening
    back_stress = '{name}'
    C = {C}
    g = {g}
    A = {A}
    a = {a}
  []
  [integrate_{name}]
    type = SR2BackwardEulerTimeIntegration
    variable = '{name}'
  []"""


@dataclass(frozen=True, slots=True)
class BackStress:
    """One back stress and its parameters."""

    name: str
    C: float
    g: float
    A: float
    a: float


def back_stresses(count: int) -> list[BackStress]:
    """Back stresses that harden ever more slowly; no exponent is a whole or half number."""
    return [
        BackStress(f"X{i + 1}", 1e4 / (i + 1), 100 / (i + 1) + i, 1e-8 / (i + 1), 1.2 + 0.07 * i)
        for i in range(count)
    ]


def chaboche(parts: Sequence[BackStress]) -> str:
    """The input file of a model with these back stresses."""
    names = [p.name for p in parts]
    return TEXT.format(
        names=" ".join(names),
        ones=" ".join("1" for _ in names),
        rates=" ".join(f"{n}rate" for n in names),
        integrals=" ".join(f"integrate_{n}" for n in names),
        residuals=" ".join(f"{n}_residual" for n in names),
        laws="".join(
            LAW.format(name=p.name, C=p.C, g=p.g, A=p.A, a=p.a) for p in parts
        ),
    )  # fmt: skip


def built(count: int) -> Model:
    """A model with that many back stresses."""
    return build(read_text(chaboche(back_stresses(count))), "model")


def loading(count: int, points: int, steps: int) -> Transient:
    """Tension at strain rates over six decades."""
    ramp = torch.linspace(0.0, 1.0, steps, dtype=torch.float64)
    end = torch.logspace(-1, 5, points, dtype=torch.float64)
    along = torch.tensor([0.1, -0.05, -0.05, 0.0, 0.0, 0.0], dtype=torch.float64)
    strain = (ramp[:, None, None] * along).expand(steps, points, 6).contiguous()
    rest = torch.zeros(points, 6, dtype=torch.float64)
    initial = {"stress": rest, "equivalent_plastic_strain": rest[:, 0].contiguous()}
    initial |= {p.name: rest for p in back_stresses(count)}
    return Transient(steps, {"t": ramp[:, None] * end, "E": strain}, initial)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--counts", type=int, nargs="+", default=[2, 4, 8, 16])
    parser.add_argument("--slopes", action="store_true", help="with the derivative of the stress")
    parser.add_argument("--points", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=60)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    names = ["build + trace", "clean", "regions + factor"]
    each = [f"{what} {mode}" for mode in MODES for what in ("lines", "print", "g++")]
    titles = ["back stresses", *names, *each, "total all", "total auto", "run auto / all"]
    print(f"seconds; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    print("|", " | ".join(titles), "|")
    print("|" + "--:|" * len(titles))
    for count in chosen.counts:
        print("|", " | ".join(row(count, chosen)), "|", flush=True)


def row(count: int, chosen: argparse.Namespace) -> list[str]:
    """One line of the table."""
    traced, tracing = timed(lambda: prepared(built(count)))
    program = with_jacobian(traced, [("stress", "E")]) if chosen.slopes else traced
    choices = Choices()
    ready, cleaning = timed(lambda: loops(clean(program, choices), choices))
    _, factoring = timed(lambda: factor(ready, choices))
    compiled_program = compile_passes(program)
    cells = [str(count), f"{tracing:.2f}", f"{cleaning:.2f}", f"{factoring:.2f}"]
    shared = tracing + cleaning + factoring
    totals = []
    for mode in MODES:
        text, printing = timed(partial(source.write_source, compiled_program, mode))
        compiling = compiled(text)
        totals.append(shared + printing + compiling)
        cells += [str(text.count("\n")), f"{printing:.2f}", f"{compiling:.2f}"]
    return [*cells, *(f"{t:.1f}" for t in totals), f"{ratio(traced, count, chosen):.3f}"]


def timed(work: Callable[[], Result]) -> tuple[Result, float]:
    """A result and the seconds it took."""
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def compiled(text: str) -> float:
    """Seconds of the C++ compiler."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "kernel.cpp"
        file.write_text(text)
        flags = (*NATIVE_FLAGS, "-DINGOT_REAL=double")
        return timed(lambda: compiler.translate(file, flags, file.with_suffix(".so")))[1]


def ratio(program: Program, count: int, chosen: argparse.Namespace) -> float:
    """Seconds of a transient, `auto` over `all`: the best of many in turns."""
    runs = {}
    for mode in MODES:
        with mock.patch.object(kernel, "write_section", partial(source.write_section, inline=mode)):
            runs[mode] = kernel.Kernel(program).arrange(loading(count, chosen.points, 60))
    best = dict.fromkeys(MODES, float("inf"))
    for _ in range(chosen.rounds):
        for mode, run in runs.items():
            best[mode] = min(best[mode], timed(run)[1])
    return best["auto"] / best["all"]


if __name__ == "__main__":
    main()
