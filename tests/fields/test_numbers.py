"""Every compute and solver keeps to the device and the precision of its run."""

from itertools import chain, repeat
from pathlib import Path

import pytest
import torch

from ingot.fields import COMPUTES, Simulation, Space, build, run
from ingot.fields.blocks.domain import space_of
from ingot.fields.solvers import SOLVERS
from ingot.fields.solvers.solve import Substep
from ingot.fields.step import Eager, State
from ingot.hit import read

INPUT = Path(__file__).parent / "inputs" / "every_compute.i"
SINGLE = "Domain/floating_precision=SINGLE"
KINDS = {torch.float32, torch.complex64, torch.bool}
ELSEWHERE = {
    "LibtorchGibbsEnergy", "NEML2TensorCompute", "ComputeDisplacements", "ComputeSmallStrain",
    "ComputeVonMisesStress", "FFTElasticChemicalPotential", "FFTMechanics",
    "FFTQuasistaticElasticity", "HyperElasticIsotropic", "MacroscopicDeformation",
    "MacroscopicShearTensor", "PhaseMechanicsTest", "SmallStrainIsotropic", "TensorComponent",
}  # fmt: skip
"""Computes of files beside the input, and of mechanics; those and lattices have tests of theirs."""

SPLIT = {
    "AdamsBashforthMoulton": ("TensorSolver/corrector_steps=1",),
    "AdamsBashforthMoultonCoupled": (),
    "ETDRK4Solver": (),
    "SecantSolver": (),
    "BroydenSolver": ("TensorSolver/max_iterations=60",),
}
"""The solvers that take a linear part, with options that let them converge."""


def made(solver: str, *overrides: str) -> Simulation:
    chosen = f"TensorSolver/type={solver}"
    return build(read(INPUT, [chosen, *SPLIT[solver], *overrides], moose=True))


def test_the_input_holds_every_compute() -> None:
    text = INPUT.read_text()
    library = {n for n, each in COMPUTES.items() if each.function.__module__.startswith("ingot.")}
    library -= {name for name in library if name.startswith("LBM")}
    missing = {name for name in library - ELSEWHERE if f"type = {name}\n" not in text}
    assert not missing
    assert {*SPLIT, "SemiImplicitSolver", "ForwardEulerSolver", "RealSpaceForwardEuler"} == {
        *SOLVERS
    } - {"LBMStream"}


@pytest.mark.parametrize("solver", SPLIT)
def test_all_stays_on_the_device_of_the_run(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # tensors of the meta device have no values, and do not mix with those of another device
    simulation = made(solver, SINGLE)
    sizes = chain(repeat(1.0, 3), repeat(0.0))
    monkeypatch.setattr(Space, "norm", lambda *_: torch.tensor(next(sizes)))
    state = State(
        space_of(simulation.domain, "meta", 1), {}, simulation.histories, simulation.spectra
    )
    state.dt = 0.1
    Eager().run(simulation.initialize, state)
    Eager().run(simulation.postprocess, state)
    for index in range(2):
        simulation.solver.substep(Substep(simulation.root, state, Eager(), index, compatible=False))
        state.advance()
    Eager().run(simulation.postprocess, state)
    strays = {n for n, value in state.buffers.items() if not value.is_meta and value.dim() > 0}
    assert not strays
    assert {value.dtype for value in state.buffers.values()} <= KINDS


@pytest.mark.parametrize("jit", [False, True], ids=["direct", "jit"])
@pytest.mark.parametrize("solver", SPLIT)
def test_single_precision_is_single_throughout(solver: str, jit: bool, tmp_path: Path) -> None:
    right = "Problem/marlin_compatible=false"
    exact = run(made(solver, right), tmp_path, jit=False)
    found = run(made(solver, right, SINGLE), tmp_path, jit=jit)
    assert {value.dtype for value in found.state.buffers.values()} <= KINDS
    torch.testing.assert_close(
        found.state.buffers["c"].double(), exact.state.buffers["c"], atol=1e-6, rtol=0
    )
    for name, value in exact.values[-1].items():
        assert found.values[-1][name] == pytest.approx(value, rel=2e-3), name
