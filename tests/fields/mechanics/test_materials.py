"""Materials of Ingot as laws of a mechanical solve, their internal variables kept per voxel."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from ingot.errors import IngotError
from ingot.execute import executor
from ingot.fields import space
from ingot.fields.computes.mechanics import smooth_waves
from ingot.fields.computes.projection import projected
from ingot.fields.matrices import entries
from ingot.hit import read_text
from ingot.model import build
from ingot.program import freeze, trace
from tests.fields.jit.test_material import MODEL

from .cases import simulated
from .test_galerkin import matrix

RATE = "0.01 0.004 0  0 -0.005 0  0.001 0 -0.005"
RVE = f"""
[Domain]
  dim = 3
  nx = 5
  ny = 3
  nz = 4
[]
[Problem]
  marlin_compatible = false
[]
[TensorComputes]
  [Initialize]
    [F]
      type = RankTwoIdentity
      buffer = F
    []
  []
  [Solve]
    [law]
      [strain]
        type = ComputeSmallStrain
        buffer = strain
        F = Fnew
      []
      [material]
        type = NEML2TensorCompute
        neml2_input_file = material.i
        neml2_model = model
        marlin_inputs = strain
        neml2_inputs = E
        marlin_outputs = 'stress ep'
        neml2_outputs = 'stress equivalent_plastic_strain'
        marlin_derivatives = tangent
        neml2_derivatives = 'stress E'
      []
    []
    [root]
      [load]
        type = MacroscopicDeformation
        buffer = load
        rate = '{RATE}'
      []
      [mech]
        type = FFTMechanics
        buffer = Fnew
        constitutive_model = law
        tangent_operator = tangent
        applied_macroscopic_strain = load
        l_tol = 1e-8
        nl_rel_tol = 1e-11
        nl_abs_tol = 1e-11
        preconditioner = GREEN
      []
    []
  []
[]
[TensorSolver]
  type = ForwardEulerSolver
  root_compute = root
  forward_buffer = F
  forward_buffer_new = Fnew
  substeps = 2
[]
[Executioner]
  type = Transient
  num_steps = 3
  dt = 0.1
[]
"""
SOFT = """
    [soft]
      type = ParsedCompute
      buffer = soft
      expression = 'if(x < 0.5, 1, 0.4 + 0.1*sin(2*pi*y))'
      extra_symbols = true
      expand = REAL
    []
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "material.i").write_text(MODEL)
    yield tmp_path


def mandel(matrix: Tensor) -> Tensor:
    sym = (matrix + matrix.T) / 2
    off = torch.stack([sym[1, 2], sym[0, 2], sym[0, 1]]) * 2**0.5
    return torch.cat([sym.diagonal(), off])


def point_model(times: list[float]) -> tuple[Tensor, Tensor]:
    """Stress and plastic strain of one point that follows the mean strain."""
    program = freeze(trace(build(read_text(MODEL), "model")), 2.2e-16)
    run = executor(program, "interpret", torch.float64)
    rate = torch.tensor([float(x) for x in RATE.split()], dtype=torch.float64).reshape(3, 3)
    now = {"stress": torch.zeros(6).double(), "equivalent_plastic_strain": torch.zeros(()).double()}
    for before, after in itertools.pairwise(times):
        given = {f"{name}~1": value for name, value in now.items()}
        given |= {
            "E": mandel(after * rate),
            "E~1": mandel(before * rate),
            "t": torch.tensor(after, dtype=torch.float64),
            "t~1": torch.tensor(before, dtype=torch.float64),
        }
        now = run(given)[0]
    return now["stress"], now["equivalent_plastic_strain"]


TIMES = [0.05 * k for k in range(7)]


@pytest.mark.parametrize("preconditioner", ["NONE", "GREEN"])
def test_a_homogeneous_body_is_the_point_model(preconditioner: str, folder: Path) -> None:
    chosen = f"TensorComputes/Solve/root/mech/preconditioner={preconditioner}"
    found = simulated(RVE, folder, chosen).state.buffers
    stress, plastic = point_model(TIMES)
    assert plastic > 1e-4
    axes = (0, 1, 2)
    torch.testing.assert_close(found["stress"].mean(axes), stress, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(found["ep"].mean(axes), plastic, rtol=1e-10, atol=0)
    torch.testing.assert_close(found["stress"], stress.expand_as(found["stress"]))


FIELDS = ("F", "stress", "ep")


def soft_body(folder: Path, *overrides: str, jit: bool = False) -> dict[str, Tensor]:
    """A body whose yield stress varies, by a parameter that is a field."""
    weak = MODEL.replace("yield_stress = 20", "yield_stress = 'soft_yield'").replace(
        "[Models]\n  [mandel]",
        "[Models]\n  [weak]\n    type = ScalarLinearCombination\n    from = soft\n"
        "    to = soft_yield\n    weights = 20\n  []\n  [mandel]",
        1,
    ).replace("models = 'mandel vonmises", "models = 'weak mandel vonmises")  # fmt: skip
    (folder / "material.i").write_text(weak)
    text = RVE.replace("[Initialize]", f"[Initialize]\n{SOFT}")
    text = text.replace("marlin_inputs = strain", "marlin_inputs = 'strain soft'")
    text = text.replace("neml2_inputs = E", "neml2_inputs = 'E soft'")
    return simulated(text, folder, *overrides, jit=jit).state.buffers


def test_a_body_of_soft_and_hard_parts_is_in_equilibrium(folder: Path) -> None:
    found = soft_body(folder)
    box = space((5, 3, 4))
    stress = matrix(found["stress"], 3)
    left = projected(entries(stress, box), smooth_waves(box), box)
    assert max(float(each.abs().max()) for each in left) < 1e-7 * float(stress.abs().max())
    assert float(found["ep"].std()) > 1e-5
    mean = found["F"].mean((0, 1, 2)) - torch.eye(3).double()
    rate = torch.tensor([float(x) for x in RATE.split()], dtype=torch.float64).reshape(3, 3)
    torch.testing.assert_close(mean, TIMES[-1] * rate, rtol=0, atol=1e-12)


def test_preconditioners_agree(folder: Path) -> None:
    # a grid of odd sizes has no Nyquist wavenumbers
    sizes, mech = ("Domain/nz=3",), "TensorComputes/Solve/root/mech"
    green = soft_body(folder, *sizes)
    plain = soft_body(folder, *sizes, f"{mech}/preconditioner=NONE", f"{mech}/l_max_its=2000")
    for name in FIELDS:
        torch.testing.assert_close(green[name], plain[name], rtol=1e-7, atol=1e-10)


@pytest.mark.slow
def test_a_compiled_solve_agrees_with_a_direct_one(folder: Path) -> None:
    direct, compiled = soft_body(folder), soft_body(folder, jit=True)
    for name in FIELDS:
        torch.testing.assert_close(direct[name], compiled[name], rtol=1e-9, atol=1e-11)


def test_a_law_outside_a_solve_keeps_its_variables(folder: Path) -> None:
    """Evaluated once in a substep, it goes on from what it gave before."""
    text = RVE.replace("root_compute = root\n", "root_compute = law\n").replace(
        "F = Fnew", "F = F"
    ).replace("  forward_buffer = F\n  forward_buffer_new = Fnew\n", "")  # fmt: skip
    held = text.replace(
        "[Solve]\n    [law]",
        f"[Solve]\n    [law]\n      [moved]\n        type = MacroscopicDeformation\n"
        f"        buffer = moved\n        rate = '{RATE}'\n      []\n      [sum]\n"
        "        type = ParsedCompute\n        buffer = F\n        inputs = 'Fstart moved'\n"
        "        expression = 'Fstart + moved'\n      []",
        1,
    ).replace("buffer = F\n    []", "buffer = Fstart\n    []", 1)  # fmt: skip
    held = held.replace("buffer = moved\n", "buffer = moved\n        F = Fstart\n", 1)
    start, end = held.index("    [root]"), held.index("  []\n[]\n[TensorSolver]")
    found = simulated(held[:start] + held[end:], folder).state.buffers
    stress, plastic = point_model(TIMES)
    torch.testing.assert_close(found["stress"][0, 0, 0], stress, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(found["ep"][0, 0, 0], plastic, rtol=1e-10, atol=0)


FINITE = """
[Models]
  [finite]
    type = LogarithmicStrain
    model = 'model'
    strain = 'E'
  []
[]
"""


def finite_body(folder: Path, *overrides: str, model: str = MODEL) -> dict[str, Tensor]:
    """The same body at large strains, by the logarithm of its stretch."""
    (folder / "material.i").write_text(model + FINITE)
    law = "TensorComputes/Solve/law/material"
    options = (
        f"{law}/neml2_model=finite", f"{law}/marlin_inputs=Fnew",
        f"{law}/neml2_inputs=deformation_gradient", f"{law}/marlin_outputs='P tau ep'",
        f"{law}/neml2_outputs='first_piola_kirchhoff_stress stress equivalent_plastic_strain'",
        f"{law}/neml2_derivatives='first_piola_kirchhoff_stress deformation_gradient'",
        "TensorComputes/Solve/root/mech/stress=P", "Executioner/dt=2",
    )  # fmt: skip
    return simulated(RVE, folder, *options, *overrides).state.buffers


def test_a_homogeneous_body_at_large_strains_is_the_point_model(folder: Path) -> None:
    found = finite_body(folder)
    program = freeze(trace(build(read_text(MODEL + FINITE), "finite")), 2.2e-16)
    run = executor(program, "interpret", torch.float64)
    rate = torch.tensor([float(x) for x in RATE.split()], dtype=torch.float64).reshape(3, 3)
    unit = torch.eye(3, dtype=torch.float64)
    now = {"stress": torch.zeros(6).double(), "equivalent_plastic_strain": torch.zeros(()).double()}
    for step in range(6):
        times = torch.tensor([step, step + 1.0], dtype=torch.float64)
        given = {f"{name}~1": now[name] for name in ("stress", "equivalent_plastic_strain")}
        given |= {
            "deformation_gradient": unit + times[1] * rate, "t": times[1], "t~1": times[0],
            "deformation_gradient~1": unit + times[0] * rate,
        }  # fmt: skip
        now = run(given)[0]
    mean = found["P"].mean((0, 1, 2))
    wanted = now["first_piola_kirchhoff_stress"]
    torch.testing.assert_close(mean, wanted, rtol=1e-10, atol=1e-10)


def test_a_body_at_large_strains_is_in_equilibrium(folder: Path) -> None:
    text = SOFT.replace("0.4 + 0.1*sin(2*pi*y)", "2").replace("= soft", "= ep")
    law = "TensorComputes/Initialize/ep"
    lines = (line.strip().split(" = ") for line in text.splitlines() if " = " in line)
    start = [f"{law}/{key}={value}" for key, value in lines]
    found = finite_body(folder, *start)
    box = space((5, 3, 4))
    left = projected(entries(found["P"], box), smooth_waves(box), box)
    assert float(found["P"].std()) > 1
    assert max(float(each.abs().max()) for each in left) < 1e-7 * float(found["P"].abs().max())


MISTAKES = {
    "neml2_derivatives='stress'": "neml2_derivatives has 1 entries, marlin_derivatives 1",
    "neml2_derivatives='sress E'": "the model has no variable 'sress'",
    "neml2_derivatives='stress strain'": "the model has no variable 'strain'",
    "neml2_outputs='equivalent_plastic_strain stress' marlin_outputs='ep stress'": "",
    "neml2_outputs=stress marlin_outputs=stress": "needs 'equivalent_plastic_strain~1'",
}


@pytest.mark.parametrize("options", MISTAKES)
def test_a_mistake_is_told(options: str, folder: Path) -> None:
    words = options.replace("' m", "'|m").replace("s m", "s|m").split("|")
    given = [f"TensorComputes/Solve/law/material/{each}" for each in words]
    if not MISTAKES[options]:
        simulated(RVE, folder, *given, "Executioner/num_steps=1")
        return
    with pytest.raises(IngotError) as error:
        simulated(RVE, folder, *given)
    assert MISTAKES[options] in str(error.value)
