"""Small models and their packages, compiled once for the whole test run."""

import fcntl
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ingot import Program
from ingot.drivers import transient_driver
from ingot.execute.interpret import Interpreter
from ingot.hit import read
from ingot.model import Factory
from ingot.options import PackagedBackend as Backend
from ingot.package import Package, compile_model
from ingot.package.stages import advance, load
from ingot.package.target import Target
from ingot.program import with_jacobian
from ingot.runtime import Artifact
from ingot.runtime import load as load_package
from ingot.runtime.loader import metadata_of
from tests.systems import plasticity

ELASTIC = """
[Tensors]
  [stiffness]
    type = Python
    expr = 'Scalar(torch.linspace(1e5, 2e5, 5, dtype=torch.float64))'
  []
[]
[Models]
  [elastic]
    type = LinearIsotropicElasticity
    coefficients = 'stiffness 0.3'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
  []
[]
"""

DECAY = """
[Tensors]
  [times]
    type = Python
    expr = 'Scalar(torch.linspace(0.0, 2.0, 5, dtype=torch.float64).reshape(5, 1))'
  []
  [heat]
    type = CSVScalar
    csv_file = 'data/heat.csv'
    column_names = 'heat'
  []
[]
[Drivers]
  [driver]
    type = TransientDriver
    model = 'decay'
    prescribed_time = 'times'
    prescribed_Scalar_names = 'T extra'
    prescribed_Scalar_values = 'heat times'
    ic_Scalar_names = 'alpha'
    ic_Scalar_values = '0.05'
  []
[]
[Models]
  [coefficient]
    type = ArrheniusParameter
    reference_value = '4.0'
    activation_energy = '9000'
    ideal_gas_constant = 8.314
    temperature = 'T'
  []
  [rate]
    type = ContractingGeometry
    coef = 'coefficient'
    order = 0.6
    conversion_degree = 'alpha'
    reaction_rate = 'alpha_rate'
  []
  [integrate]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'alpha'
  []
  [reaction]
    type = ComposedModel
    models = 'coefficient rate integrate'
  []
  [guess]
    type = ConstantExtrapolationPredictor
    unknowns_Scalar = 'alpha'
  []
[]
[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'reaction'
    unknowns = 'alpha'
  []
[]
[Solvers]
  [newton]
    type = Newton
    abs_tol = 1e-10
    rel_tol = 1e-12
    linear_solver = 'lu'
  []
  [lu]
    type = DenseLU
  []
[]
[Models]
  [update]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
    predictor = 'guess'
  []
  [sum]
    type = ScalarLinearCombination
    from = 'alpha extra'
    weights = '2 3'
    to = 'total'
  []
  [decay]
    type = ComposedModel
    models = 'update sum'
    additional_outputs = 'alpha'
  []
[]
"""

DIFFUSION = """
[Tensors]
  [edges]
    type = Python
    expr = 'linspace(Scalar(0.0).sub_batch, Scalar(1.0).sub_batch, 6)'
  []
  [centers]
    type = Python
    expr = 'Scalar(0.5 * (edges.data[..., :-1] + edges.data[..., 1:]), sub_batch_ndim=1)'
  []
  [dx_centers]
    type = Python
    expr = 'Scalar(centers.data[..., 1:] - centers.data[..., :-1], sub_batch_ndim=1)'
  []
  [dx]
    type = Python
    expr = 'Scalar(edges.data[..., 1:] - edges.data[..., :-1], sub_batch_ndim=1)'
  []
  [D_cells]
    type = Python
    expr = 'Scalar(0.5 + 0.1 * centers.data, sub_batch_ndim=1)'
  []
[]
[Models]
  [diffusivity]
    type = LinearlyInterpolateToCellEdges
    cell_values = 'D_cells'
    cell_centers = 'centers'
    cell_edges = 'edges'
    edge_values = 'D'
  []
  [flux]
    type = FiniteVolumeGradient
    u = 'c'
    prefactor = 'D'
    dx = 'dx_centers'
    grad_u = 'J'
  []
  [left]
    type = FiniteVolumeAppendBoundaryCondition
    input = 'J'
    bc_value = 0.0
    side = 'left'
  []
  [right]
    type = FiniteVolumeAppendBoundaryCondition
    input = 'J_with_bc_left'
    bc_value = 0.1
    side = 'right'
  []
  [divergence]
    type = FiniteVolumeGradient
    u = 'J_with_bc_left_with_bc_right'
    dx = 'dx'
    grad_u = 'out'
  []
  [react]
    type = ContractingGeometry
    coef = 0.2
    order = 0.7
    conversion_degree = 'c'
    reaction_rate = 'made'
  []
  [sum]
    type = ScalarLinearCombination
    from = 'out made'
    weights = '1 1'
    to = 'c_rate'
  []
  [integrate]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'c'
  []
  [cells]
    type = ComposedModel
    models = 'diffusivity flux left right divergence react sum integrate'
  []
  [guess]
    type = ConstantExtrapolationPredictor
    unknowns_Scalar = 'c'
  []
  [diffusion]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
    predictor = 'guess'
  []
[]
[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'cells'
    unknowns = 'c'
  []
[]
[Solvers]
  [newton]
    type = Newton
  []
[]
"""

_ROOT = """
  [{name}_square]
    type = ScalarMultiplication
    from = '{name} {name}'
    to = '{name}_squared'
  []
  [{name}_balance]
    type = ScalarLinearCombination
    from = '{name}_squared {given}'
    weights = '1 -1'
    to = '{name}_residual'
  []
  [{name}_system]
    type = ComposedModel
    models = '{name}_square {name}_balance'
  []
  [{update}]
    type = ImplicitUpdate
    equation_system = '{name}'
    solver = '{solver}'
    guess = {guess}
  []
"""

TWO_UPDATES = f"""
[Models]
{_ROOT.format(name="x", given="f", update="first", solver="tight", guess="given")}
{_ROOT.format(name="y", given="x", update="second", solver="loose", guess="given")}
{_ROOT.format(name="z", given="y", update="third", solver="tight", guess="old")}
  [inner]
    type = ComposedModel
    models = 'first second'
    additional_outputs = 'x'
  []
  [both]
    type = ComposedModel
    models = 'inner third'
    additional_outputs = 'x y'
  []
[]
[EquationSystems]
  [x]
    type = NonlinearSystem
    model = 'x_system'
    unknowns = 'x'
  []
  [y]
    type = NonlinearSystem
    model = 'y_system'
    unknowns = 'y'
  []
  [z]
    type = NonlinearSystem
    model = 'z_system'
    unknowns = 'z'
  []
[]
[Solvers]
  [tight]
    type = Newton
    max_its = 25
  []
  [loose]
    type = NewtonWithLineSearch
    abs_tol = 1e-3
    rel_tol = 0.0
    max_its = 4
    linesearch_type = STRONG_WOLFE
    linesearch_cutback = 2.0
  []
[]
"""
"""Roots of roots of roots: two solvers for three updates, the last of which starts from its old
value."""

TWO_INPUTS = {
    "f": torch.tensor([4.0, 2.0, 1.0, 81.0, 1e-3], dtype=torch.float64),
    **{n: torch.tensor([1.0, 1.5, 1.0, 2.0, 1.0]).double() for n in ("x", "y", "z~1")},
}
PLASTIC = plasticity("FBComplementarity", isotropic=True, kinematic=False)
BOTH = ("kernel", "inductor")
RATE = "update.reaction.coefficient.reference_value"
ORDER = "update.reaction.rate.order"
HEAT = "heat\n900\n950\n1000\n1050\n1100\n"


@dataclass(frozen=True)
class Made:
    """A package, the file it comes from, and the same program for the interpreter."""

    file: Path
    package: Package
    program: Program
    pairs: tuple[tuple[str, str], ...]

    @property
    def folder(self) -> Path:
        """The folder of the package."""
        return self.package.folder

    def artifact(self, backend: Backend | None = None) -> Artifact:
        """The package, loaded afresh."""
        return load_package(self.folder, backend=backend)

    def interpreted(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Values, and blocks called `output:input`, of the interpreter, promoted values fixed."""
        found, _ = Interpreter(with_jacobian(self.program, self.pairs))(inputs)
        outputs = [v.name for v in self.program.outputs]
        names = [*outputs, *(f"{y}:{x}" for y, x in self.pairs)]
        return dict(zip(names, found.values(), strict=True))


@cache
def home() -> Path:
    """One folder for all workers of a test run."""
    return Path(os.environ.get("INGOT_TEST_HOME") or tempfile.mkdtemp(prefix="ingot-tests-"))


def written(text: str, folder: Path) -> Path:
    """A model's file, and the data that it may read, in a folder."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    (folder / "data" / "heat.csv").write_text(HEAT)
    file = folder / "model.i"
    file.write_text(text)
    return file


def made(text: str, model: str, folder: str, *, driver: str | None = None, **target: Any) -> Made:
    """Compile a model of a text in a folder of its own."""
    file = written(text, home() / folder)
    chosen = Target(output_dir=file.parent / "out", **target)
    factory = Factory(read(file))
    shapes = None if driver is None else transient_driver(factory, driver).shapes
    parted = advance(load(factory, model, chosen, driver=driver, shapes=shapes), "partition")
    command = f"ingot compile model.i --model {model}"
    place = chosen.output_dir / model / chosen.device[0]
    with (file.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if place.is_dir():
            stub = chosen.output_dir / f"{model}_aoti.i" if chosen.stub else None
            package = Package((place,), stub, metadata_of(place, chosen.device[0])[0])
        else:
            package = compile_model(
                factory, model, chosen, driver=driver, shapes=shapes, command=command
            )  # fmt: skip
    return Made(file, package, parted.program, parted.pairs)


@cache
def elastic() -> Made:
    """Stress of strain at five stiffnesses, Poisson's ratio promoted."""
    return made(ELASTIC, "elastic", "elastic", parameter=("nu",), derivative=(":", ":nu"),
                backend=BOTH)  # fmt: skip


@cache
def material() -> Made:
    """The same at one stiffness, a user material too."""
    text = ELASTIC.replace("'stiffness 0.3'", "'200000 0.3'")
    return made(text, "elastic", "material", umat=True, stub=False)


@cache
def steel() -> Made:
    """Hooke's law of a preset, whose two parameters have ranges."""
    text = "[Models]\n[steel]\ntype = IsotropicElasticity\nE = 200e3\nnu = 0.3\n[]\n[]"
    return made(text, "steel", "steel", parameter=("E", "nu"), stub=False, baseline=False)


@cache
def two_updates() -> Made:
    """Three updates in series that share two solvers."""
    return made(TWO_UPDATES, "both", "two_updates", backend=BOTH)


@cache
def decay() -> Made:
    """One unknown, two promoted parameters inside the implicit update, and a driver."""
    pairs = (":", f":{RATE}", f":{ORDER}")
    return made(DECAY, "decay", "decay", driver="driver", parameter=(RATE, ORDER),
                derivative=pairs, backend=BOTH)  # fmt: skip


@cache
def trained() -> Made:
    """The same as `decay`, with adjoints and without any pair."""
    return made(DECAY, "decay", "trained", driver="driver", parameter=(RATE, ORDER), train=True,
                stub=False)  # fmt: skip


@cache
def single() -> Made:
    """The same in single precision, without derivatives."""
    text = DECAY.replace("1e-10", "1e-5").replace("1e-12", "1e-5")
    return made(text, "decay", "single", dtype="float32", parameter=(RATE,), stub=False)


@cache
def plastic() -> Made:
    """Rate-independent plasticity with all pairs."""
    return made(PLASTIC, "update", "plastic", derivative=(":",))


@cache
def diffusion() -> Made:
    """Five cells, each the neighbour of the next."""
    shapes = ("c=(2; 5)",)
    return made(DIFFUSION, "diffusion", "diffusion", example_batch_shape=shapes,
                derivative=(":",), backend=BOTH)  # fmt: skip


def inputs_of(one: Made, *batch: int, seed: int = 0) -> dict[str, Tensor]:
    """Inputs at which the model has something to do."""
    meta = one.package.metadata
    found = draw_inputs([v.name for v in meta.inputs], *batch, seed=seed)
    return {n: x.to(getattr(torch, meta.dtype)) for n, x in found.items()}


def draw_inputs(names: Iterable[str], *batch: int, seed: int = 0) -> dict[str, Tensor]:
    """The same of inputs by these names."""
    g = torch.Generator().manual_seed(seed)

    def noise(*rest: int) -> Tensor:
        return torch.rand((*batch, *rest), generator=g, dtype=torch.float64)

    known = {
        "strain": lambda: 0.01 * noise(6),
        "T": lambda: 900 + 200 * noise(),
        "alpha~1": lambda: 0.05 + 0.3 * noise(),
        "extra": noise,
        "t": lambda: 0.5 + noise(),
        "t~1": lambda: 0.1 * noise(),
        "c~1": lambda: 0.2 + 0.3 * noise(5),
        "E": lambda: 0.006 * (noise(6) - 0.5),
        "plastic_strain~1": lambda: 1e-4 * (noise(6) - 0.5),
        "equivalent_plastic_strain~1": lambda: 1e-3 * noise(),
        "flow_rate~1": lambda: 1e-3 * noise(),
    }
    return {name: known[name]() for name in names}
