"""Printed by `python -m benchmarks.stubs` from the declarations of the catalogue."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from torch import Tensor

from ingot.catalog.crystal import CubicCrystal as _CubicCrystal
from ingot.catalog.declare import Declared
from ingot.model import Model
from ingot.model.given import OutputOf
from ingot.types import Value

Constant: TypeAlias = float | Sequence[Any] | np.ndarray[Any, Any] | Tensor | Value
"""Numbers: leading axes of an array are a batch."""
Parameter: TypeAlias = Constant | str | Model | OutputOf
"""Numbers, the name of a variable, or a model whose output stands in."""

class Maker:
    type: str
    law: Declared | None
    @property
    def options(self) -> tuple[str, ...]: ...
    def __init__(self, type: str, law: Declared | None = None) -> None: ...
    def __call__(self, *, name: str | None = None, **options: Any) -> Any: ...

def of(function: Callable[..., Any]) -> Maker:
    """The maker of a law of your own: a function under `@model`."""

def declaration_of(function: Callable[..., Any]) -> Declared: ...
def describe_options(maker: Maker) -> list[tuple[str, Any]]: ...

def AOTIModel(
    *,
    artifact_path: Any = None,
    solvers: Any = None,
    solver: Any = None,
    program: Any = None,
    name: str | None = None,
) -> Model:
    r"""A model that was compiled before.

    artifact_path: the package's folder, relative to the file; solvers: rules that act at load, as
    update:solver for each; solver: one for all; program: what the package computes, as a hash, or
    several of which it may be one; others are refused
    """

def AdvectiveStress(
    *,
    coefficient: Parameter,
    js: str | None = None,
    jt: str | None = None,
    deformation_gradient: str = "deformation_gradient",
    pk1_stress: str = "pk1_stress",
    advective_stress: str = "advective_stress",
    name: str | None = None,
) -> Model:
    r"""The stress that drives a flow, $p_s = -\tfrac{c}{3} J_s^{-5/3} J_t^{-2/3}\, P : F$.

    The volume ratios of swelling, $J_s$, and of temperature, $J_t$, are 1 unless they are named.

    coefficient: scale of the stress, $c$

    reads js: Scalar, jt: Scalar, deformation_gradient: R2, pk1_stress: R2

    gives advective_stress: Scalar
    """

def ArrheniusParameter(
    *,
    reference_value: Constant,
    activation_energy: Constant,
    ideal_gas_constant: float,
    temperature: str = "temperature",
    parameter: str = "{block}",
    name: str | None = None,
) -> Model:
    r"""A thermally activated parameter, $p = p_0 e^{-Q / R T}$.

    reference_value: limit at high temperature, $p_0$
    activation_energy: energy per amount, $Q$
    ideal_gas_constant: gas constant in matching units, $R$

    reads temperature: Scalar

    gives parameter: Scalar
    """

def AssociativeIsotropicPlasticHardening(
    *,
    flow_rate: str = "flow_rate",
    isotropic_hardening_direction: str = "isotropic_hardening_direction",
    equivalent_plastic_strain_rate: str = "equivalent_plastic_strain_rate",
    name: str | None = None,
) -> Model:
    r"""Growth of the equivalent plastic strain, $\dot{\bar\varepsilon}_p = -\dot\gamma N_k$.

    reads flow_rate: Scalar, isotropic_hardening_direction: Scalar

    gives equivalent_plastic_strain_rate: Scalar
    """

def AssociativeJ2FlowDirection(
    *,
    mandel_stress: str = "mandel_stress",
    flow_direction: str = "flow_direction",
    name: str | None = None,
) -> Model:
    r"""The direction of J2 flow, $N = \tfrac32 s / \bar\sigma$, of length $\sqrt{3/2}$.

    reads mandel_stress: SR2

    gives flow_direction: SR2
    """

def AssociativeKinematicPlasticHardening(
    *,
    flow_rate: str = "flow_rate",
    kinematic_hardening_direction: str = "kinematic_hardening_direction",
    kinematic_plastic_strain_rate: str = "kinematic_plastic_strain_rate",
    name: str | None = None,
) -> Model:
    r"""Growth of the kinematic plastic strain, $\dot K_p = -\dot\gamma N_X$.

    reads flow_rate: Scalar, kinematic_hardening_direction: SR2

    gives kinematic_plastic_strain_rate: SR2
    """

def AssociativePlasticFlow(
    *,
    flow_rate: str = "flow_rate",
    flow_direction: str = "flow_direction",
    plastic_strain_rate: str = "plastic_strain_rate",
    name: str | None = None,
) -> Model:
    r"""Plastic strain grows along the flow direction, $\dot\varepsilon_p = \dot\gamma N$.

    reads flow_rate: Scalar, flow_direction: SR2

    gives plastic_strain_rate: SR2
    """

def AvramiErofeevNucleation(
    *,
    coef: Parameter,
    order: Parameter,
    conversion_degree: str = "conversion_degree",
    reaction_rate: str = "reaction_rate",
    name: str | None = None,
) -> Model:
    r"""Nucleation by Avrami and Erofeev, $f = k (1 - \alpha) (-\ln(1 - \alpha))^n$.

    coef: rate coefficient, $k$
    order: order of the reaction, $n$

    reads conversion_degree: Scalar

    gives reaction_rate: Scalar
    """

def BenzeggaghKenaneFullSeparation(
    *,
    mode_mixity: Parameter,
    critical_separation: Parameter,
    penalty_stiffness: Constant,
    mode_I_fracture_toughness: Constant,
    mode_II_fracture_toughness: Constant,
    shear_strength: Constant,
    eta: Constant,
    normal_separation: str = "normal_separation",
    full_separation: str = "full_separation",
    name: str | None = None,
) -> Model:
    r"""The separation at which nothing is left, by Benzeggagh and Kenane,
    $\frac{2}{K \delta_c} (G_I + (G_{II} - G_I) (\beta^2 / (1 + \beta^2))^\eta)$.

    mode_mixity: share of shear, $\beta$
    critical_separation: separation at which damage begins, $\delta_c$
    penalty_stiffness: stiffness of the sound interface, $K$
    mode_I_fracture_toughness: energy per area in opening, $G_I$
    mode_II_fracture_toughness: energy per area in shear, $G_{II}$
    shear_strength: strength in shear, $S$: where none opens, it is $2 G_{II} / S$
    eta: exponent, $\eta$

    reads normal_separation: Scalar

    gives full_separation: Scalar
    """

def BilinearTraction(
    *,
    penalty_stiffness: Constant,
    critical_separation: Parameter,
    full_separation: Parameter,
    effective_separation: str = "effective_separation",
    normal_separation: str = "normal_separation",
    tangential_separation_1: str = "tangential_separation_1",
    tangential_separation_2: str = "tangential_separation_2",
    normal_penetration: str | None = None,
    traction: str = "traction",
    damage: str = "damage",
    name: str | None = None,
) -> Model:
    r"""Traction $K (1 - d) \delta$ with damage that never heals, up to
    $d = \delta_f (\delta_m - \delta_c) / (\delta_m (\delta_f - \delta_c))$.

    penalty_stiffness: stiffness of the sound interface, $K$, and against penetration
    critical_separation: separation at which damage begins, $\delta_c$
    full_separation: separation at which nothing is left, $\delta_f$

    reads effective_separation: Scalar, normal_separation: Scalar, tangential_separation_1: Scalar, tangential_separation_2: Scalar, normal_penetration: Scalar

    gives traction: Vec, damage: Scalar
    """

def BrooksCoreyCapillaryPressure(
    *,
    threshold_pressure: Parameter,
    exponent: Parameter,
    log_extension: bool = False,
    transition_saturation: float = 0.0,
    effective_saturation: str = "effective_saturation",
    capillary_pressure: str = "capillary_pressure",
    name: str | None = None,
) -> Model:
    r"""Capillary pressure of Brooks and Corey, $P = P_t S^{-1/p}$.

    threshold_pressure: pressure at full saturation, $P_t$
    exponent: distribution of pore sizes, $p$
    log_extension: go on below the transition as an exponential of the same value and slope
    transition_saturation: where it starts

    reads effective_saturation: Scalar

    gives capillary_pressure: Scalar
    """

def BurgersElement(
    *,
    maxwell_modulus: Parameter,
    maxwell_viscosity: Parameter,
    kelvin_modulus: Parameter,
    kelvin_viscosity: Parameter,
    strain: str = "strain",
    maxwell_viscous_strain: str = "maxwell_viscous_strain",
    kelvin_voigt_strain: str = "kelvin_voigt_strain",
    stress: str = "stress",
    maxwell_viscous_strain_rate: str = "{maxwell_viscous_strain}_rate",
    kelvin_voigt_strain_rate: str = "{kelvin_voigt_strain}_rate",
    name: str | None = None,
) -> Model:
    r"""A spring, a dashpot and a Kelvin-Voigt element in line,
    $\sigma = E_M (\varepsilon - \varepsilon_{vM} - \varepsilon_K) = \eta_M \dot\varepsilon_{vM}
    = E_K \varepsilon_K + \eta_K \dot\varepsilon_K$.

    maxwell_modulus: stiffness of the spring, $E_M$
    maxwell_viscosity: viscosity of the dashpot, $\eta_M$
    kelvin_modulus: stiffness of the Kelvin-Voigt element, $E_K$
    kelvin_viscosity: viscosity of the Kelvin-Voigt element, $\eta_K$

    reads strain: SR2, maxwell_viscous_strain: SR2, kelvin_voigt_strain: SR2

    gives stress: SR2, maxwell_viscous_strain_rate: SR2, kelvin_voigt_strain_rate: SR2
    """

def CamanhoDavilaCriticalSeparation(
    *,
    mode_mixity: Parameter,
    penalty_stiffness: Constant,
    normal_strength: Constant,
    shear_strength: Constant,
    normal_separation: str = "normal_separation",
    critical_separation: str = "critical_separation",
    name: str | None = None,
) -> Model:
    r"""The separation at which damage begins,
    $\delta_c = \delta_n \delta_s \sqrt{(1 + \beta^2) / (\delta_s^2 + \beta^2 \delta_n^2)}$.

    mode_mixity: share of shear, $\beta$
    penalty_stiffness: stiffness of the sound interface, $K$
    normal_strength: strength in opening, $K \delta_n$
    shear_strength: strength in shear, $K \delta_s$; it alone counts where none opens

    reads normal_separation: Scalar

    gives critical_separation: Scalar
    """

def CauchyStress(
    *,
    deformation_gradient: str = "deformation_gradient",
    kirchhoff_stress: str = "kirchhoff_stress",
    cauchy_stress: str = "cauchy_stress",
    name: str | None = None,
) -> Model:
    r"""The force on an area of the deformed body, $\sigma = \tau / \det F$.

    reads deformation_gradient: R2, kirchhoff_stress: SR2

    gives cauchy_stress: SR2
    """

def ChabochePlasticHardening(
    *,
    C: Parameter,
    g: Parameter,
    A: Parameter,
    a: Parameter,
    flow_rate: str = "flow_rate",
    flow_direction: str = "flow_direction",
    back_stress: str = "back_stress",
    back_stress_rate: str = "{back_stress}_rate",
    name: str | None = None,
) -> Model:
    r"""Back stress with dynamic and static recovery,
    $\dot X = (\tfrac23 C N - g X) \dot\gamma - A \|X\|^{a-1} X$.

    C: growth along the flow direction
    g: dynamic recovery
    A: static recovery
    a: exponent of the static recovery

    reads flow_rate: Scalar, flow_direction: SR2, back_stress: SR2

    gives back_stress_rate: SR2
    """

def ChemicalGibbsFreeEnergyDifference(
    *,
    chemical_potentials: Sequence[Parameter] | Parameter,
    equilibrium_potentials: Sequence[Parameter] | Parameter,
    concentration_differences: Sequence[str],
    chemical_gibbs_free_energy: str = "chemical_gibbs_free_energy",
    name: str | None = None,
) -> Model:
    r"""The energy that a precipitate gains, $\Delta g = \sum_i \Delta x_i (\mu_i - \mu_i^{eq})$.

    chemical_potentials: potentials of the species, $\mu_i$
    equilibrium_potentials: potentials in equilibrium, $\mu_i^{eq}$

    reads concentration_differences: Scalar

    gives chemical_gibbs_free_energy: Scalar
    """

def ConstantExtrapolationPredictor(
    *,
    unknowns_SR2: Any = None,
    unknowns_Scalar: Any = None,
    unknowns_MRP: Any = None,
    unknowns_R2: Any = None,
    cold: Any = None,
    time: Any = None,
    name: str | None = None,
) -> Model:
    r"""Every listed unknown starts at its old value, $u = u_n$.

    unknowns_SR2, unknowns_Scalar, unknowns_MRP, unknowns_R2: the unknowns of each kind
    cold: pairs `unknown:variable`; before there is any history the unknown starts at the variable
    time: what tells whether there is, by its two old values; `t` unless told
    """

def ContractingGeometry(
    *,
    coef: Parameter,
    order: Constant,
    conversion_degree: str = "conversion_degree",
    reaction_rate: str = "reaction_rate",
    name: str | None = None,
) -> Model:
    r"""Reaction on a shrinking core, $f = k (1 - \alpha)^n$.

    The core $1 - \alpha$ is kept within $[\epsilon, 1 - \epsilon]$.

    coef: rate coefficient, $k$
    order: order of the reaction, $n$

    reads conversion_degree: Scalar

    gives reaction_rate: Scalar
    """

def CoordinateDescentPredictor(
    *,
    rate_law: Model | None = None,
    driving_force_input: Any = None,
    coupling: Any = None,
    trial_driving_force: Any = None,
    rate: Any = None,
    sweeps: Any = None,
    bisections: Any = None,
    polish: Any = None,
    name: str | None = None,
) -> Model:
    r"""Rates $g$ that a coupled law gives, $g_i = \phi(b_i - \sum_j A_{ij} g_j)$, by descent.

    rate_law: the law $\phi$, a model with one output
    driving_force_input: the input of the law that is the driving force
    coupling: what is read as $A$, a square on the axis of the forces
    trial_driving_force: what is read as $b$, with one axis or none
    rate: what is given as $g$
    sweeps: how often every rate is solved for, the others held; 16 unless told
    bisections: how often the interval of a force is halved; 16 unless told
    polish: how many steps of Newton's method follow; 3 unless told
    """

def CopyMRP(
    *,
    from_: str = "from",
    to: str = "to",
    name: str | None = None,
) -> Model:
    r"""A variable under another name, $y = x$.

    reads from: MRP

    gives to: MRP
    """

def CopyMillerIndex(
    *,
    from_: str = "from",
    to: str = "to",
    name: str | None = None,
) -> Model:
    r"""A variable under another name, $y = x$.

    reads from: MillerIndex

    gives to: MillerIndex
    """

def CopyR2(
    *,
    from_: str = "from",
    to: str = "to",
    name: str | None = None,
) -> Model:
    r"""A variable under another name, $y = x$.

    reads from: R2

    gives to: R2
    """

def CopySR2(
    *,
    from_: str = "from",
    to: str = "to",
    name: str | None = None,
) -> Model:
    r"""A variable under another name, $y = x$.

    reads from: SR2

    gives to: SR2
    """

def CopySSR4(
    *,
    from_: str = "from",
    to: str = "to",
    name: str | None = None,
) -> Model:
    r"""A variable under another name, $y = x$.

    reads from: SSR4

    gives to: SSR4
    """

def CopyScalar(
    *,
    from_: str = "from",
    to: str = "to",
    name: str | None = None,
) -> Model:
    r"""A variable under another name, $y = x$.

    reads from: Scalar

    gives to: Scalar
    """

def CopyVec(
    *,
    from_: str = "from",
    to: str = "to",
    name: str | None = None,
) -> Model:
    r"""A variable under another name, $y = x$.

    reads from: Vec

    gives to: Vec
    """

def CopyWR2(
    *,
    from_: str = "from",
    to: str = "to",
    name: str | None = None,
) -> Model:
    r"""A variable under another name, $y = x$.

    reads from: WR2

    gives to: WR2
    """

def CrackGeometricFunctionAT1(
    *,
    phase: str = "phase",
    crack: str = "crack",
    name: str | None = None,
) -> Model:
    r"""The crack surface of the first Ambrosio-Tortorelli functional, $\alpha = d$.

    reads phase: Scalar

    gives crack: Scalar
    """

def CrackGeometricFunctionAT2(
    *,
    phase: str = "phase",
    crack: str = "crack",
    name: str | None = None,
) -> Model:
    r"""The crack surface of the second Ambrosio-Tortorelli functional, $\alpha = d^2$.

    reads phase: Scalar

    gives crack: Scalar
    """

def CrystalPlasticityDeformationGradientPredictor(
    *,
    scale: Constant = 0.1,
    threshold: Constant = 0.001,
    deformation_gradient: str = "deformation_gradient",
    plastic_deformation_gradient: str = "plastic_deformation_gradient",
    name: str | None = None,
) -> Model:
    r"""A guess that takes most of a large elastic deformation as plastic: with
    $F_e = F P_n^{-1}$, $P = (I + s (F_e - I))^{-1} F$.

    scale: part of the elastic deformation that stays elastic, $s$
    threshold: elastic strain up to which the old plastic deformation is kept

    reads deformation_gradient: R2

    gives plastic_deformation_gradient: R2
    """

def CrystalPlasticityStrainPredictor(
    *,
    scale: Constant = 1.0,
    threshold: Constant = 0.001,
    deformation_rate: str = "deformation_rate",
    time: str = "t",
    elastic_strain: str = "elastic_strain",
    name: str | None = None,
) -> Model:
    r"""A guess that loads elastically while the strain is small, $e_n + s (t - t_n) d$.

    scale: part of the increment that is taken, $s$
    threshold: strain above which the old strain is kept

    reads deformation_rate: SR2, time: Scalar

    gives elastic_strain: SR2
    """

def CubicCrystal(
    *,
    lattice_parameter: Any,
    slip_directions: Any,
    slip_planes: Any,
    name: str | None = None,
) -> _CubicCrystal:
    r"""A cubic lattice with families of slip systems (directions and planes, pair by pair).

    lattice_parameter: edge of the unit cell
    slip_directions: one direction a family
    slip_planes: one plane a family
    """

def CubicElasticityTensor(
    *,
    coefficients: Sequence[Parameter] | Parameter,
    coefficient_types: Sequence[Literal['YOUNGS_MODULUS', 'POISSONS_RATIO', 'SHEAR_MODULUS']],
    C: str = "{block}",
    name: str | None = None,
) -> Model:
    r"""The stiffness of a cubic crystal along its axes: $\lambda + 2 \mu$ and $\lambda$ of $E$ and
    $\nu$ between normal components, $2 G$ for those in shear.

    coefficients: three elastic constants
    coefficient_types: which constants they are: Young's, Poisson's and the shear modulus

    gives C: SSR4
    """

def CurrentConcentration(
    *,
    initial_concentration: Parameter,
    precipitate_concentrations: Sequence[Parameter] | Parameter,
    precipitate_volume_fractions: Sequence[str],
    current_concentration: str = "current_concentration",
    name: str | None = None,
) -> Model:
    r"""What precipitates leave in the matrix, $x = (x_0 - \sum_i f_i x_i^p) / (1 - \sum_i f_i)$.

    initial_concentration: concentration without precipitates, $x_0$
    precipitate_concentrations: concentrations in the precipitates, $x_i^p$

    reads precipitate_volume_fractions: Scalar

    gives current_concentration: Scalar
    """

def CylindricalChannelGeometry(
    *,
    solid_fraction: str = "solid_fraction",
    product_fraction: str = "product_fraction",
    inner_radius: str = "inner_radius",
    outer_radius: str = "outer_radius",
    name: str | None = None,
) -> Model:
    r"""Radii of the product around a channel, $\sqrt{1 - \phi_s - \phi_p}$ and $\sqrt{1 - \phi_s}$.

    The square of the inner radius is kept within $[\epsilon, 1 - \epsilon]$.

    reads solid_fraction: Scalar, product_fraction: Scalar

    gives inner_radius: Scalar, outer_radius: Scalar
    """

def DiffusionLimitedReaction(
    *,
    diffusion_coefficient: Parameter,
    molar_volume: float,
    product_dummy_thickness: float = 0.01,
    product_inner_radius: str = "product_inner_radius",
    solid_inner_radius: str = "solid_inner_radius",
    liquid_reactivity: str = "liquid_reactivity",
    solid_reactivity: str = "solid_reactivity",
    reaction_rate: str = "reaction_rate",
    name: str | None = None,
) -> Model:
    r"""Reaction by diffusion through a product layer,
    $\dot r = \frac{2 D R_l R_s}{\Omega} \frac{r_o}{r_o - r_i + \delta}$.

    diffusion_coefficient: diffusion through the product, $D$
    molar_volume: volume of an amount of product, $\Omega$
    product_dummy_thickness: keeps the rate finite without a product, $\delta$

    reads product_inner_radius: Scalar, solid_inner_radius: Scalar, liquid_reactivity: Scalar, solid_reactivity: Scalar

    gives reaction_rate: Scalar
    """

def DislocationObstacleStrengthMap(
    *,
    constant_strength: Parameter,
    alpha: Parameter,
    mu: Parameter,
    b: Parameter,
    dislocation_density: str = "dislocation_density",
    slip_strengths: str = "slip_strengths",
    name: str | None = None,
) -> Model:
    r"""Strength by the dislocations in the way, $\hat\tau_i = \tau_0 + \alpha \mu b \sqrt{\rho_i}$.

    constant_strength: strength without dislocations, $\tau_0$
    alpha: strength of an obstacle, $\alpha$
    mu: shear modulus, $\mu$
    b: length of the Burgers vector

    reads dislocation_density: Scalar

    gives slip_strengths: Scalar
    """

def DumpInSmallestBin(
    *,
    cell_centers: Parameter,
    magnitude: str = "magnitude",
    dumped_source: str = "state/dumped_source",
    name: str | None = None,
) -> Model:
    r"""A source in the first cell alone, $s_0 = m$.

    cell_centers: where the centres are, of which the number counts

    reads magnitude: Scalar

    gives dumped_source: Scalar
    """

def EffectiveSaturation(
    *,
    residual_saturation: Constant,
    max_fraction: Parameter,
    fluid_fraction: str = "fluid_fraction",
    effective_saturation: str = "effective_saturation",
    name: str | None = None,
) -> Model:
    r"""The share of the mobile fluid, $S = (\phi / \phi_{max} - S_r) / (1 - S_r)$.

    residual_saturation: saturation that does not flow, $S_r$
    max_fraction: largest fraction of fluid, $\phi_{max}$

    reads fluid_fraction: Scalar

    gives effective_saturation: Scalar
    """

def EffectiveVolume(
    *,
    reference_mass: Parameter,
    densities: Sequence[Constant] | Constant,
    mass_fractions: Sequence[str],
    open_volume_fraction: str | None = None,
    composite_volume: str = "composite_volume",
    name: str | None = None,
) -> Model:
    r"""The volume of a composite, $V = \frac{M}{1 - \phi_o} \sum_i w_i / \rho_i$.

    reference_mass: mass of the composite, $M$
    densities: densities of its parts, $\rho_i$

    reads open_volume_fraction: Scalar, mass_fractions: Scalar

    gives composite_volume: Scalar
    """

def ElasticStrainRate(
    *,
    elastic_strain: str = "elastic_strain",
    deformation_rate: str = "deformation_rate",
    vorticity: str = "vorticity",
    plastic_deformation_rate: str = "plastic_deformation_rate",
    elastic_strain_rate: str = "elastic_strain_rate",
    name: str | None = None,
) -> Model:
    r"""The objective rate of elastic strain, $\dot e = d - d^p + W e - e W$.

    reads elastic_strain: SR2, deformation_rate: SR2, vorticity: WR2, plastic_deformation_rate: SR2

    gives elastic_strain_rate: SR2
    """

def ExponentialLawPermeability(
    *,
    reference_permeability: Constant,
    reference_porosity: Constant,
    scale: Constant,
    porosity: str = "porosity",
    permeability: str = "permeability",
    name: str | None = None,
) -> Model:
    r"""Permeability that decays with porosity, $K = K_0 e^{-a (\phi - \phi_0)}$.

    reference_permeability: permeability at the reference porosity, $K_0$
    reference_porosity: porosity that it is known at, $\phi_0$
    scale: how fast it decays, $a$

    reads porosity: Scalar

    gives permeability: Scalar
    """

def FBComplementarity(
    *,
    a_inequality: Literal['LE', 'GE'] = "LE",
    b_inequality: Literal['LE', 'GE'] = "GE",
    a: str = "a",
    b: str = "b",
    complementarity: str = "complementarity",
    name: str | None = None,
) -> Model:
    r"""$a \perp b$ by Fischer and Burmeister, $\pm a \pm b - \sqrt{a^2 + b^2 + \epsilon}$.

    a_inequality: whether a stays below or above zero
    b_inequality: whether b stays below or above zero

    reads a: Scalar, b: Scalar

    gives complementarity: Scalar
    """

def FiniteVolumeAppendBoundaryCondition(
    *,
    bc_value: Constant,
    side: Literal['left', 'right'] = "left",
    input: str = "input",
    output: str = "{input}_with_bc_{side}",
    name: str | None = None,
) -> Model:
    r"""Edge values with one more at a boundary.

    bc_value: the value at the boundary
    side: which end it is put at

    reads input: Scalar

    gives output: Scalar
    """

def FiniteVolumeGradient(
    *,
    dx: Constant,
    prefactor: Parameter = 1.0,
    u: str = "u",
    grad_u: str = "grad_u",
    name: str | None = None,
) -> Model:
    r"""The flux down a gradient, $g_e = -p_e (u_{e+1} - u_e) / \Delta x_e$.

    dx: distance between neighbours
    prefactor: conductivity, $p$

    reads u: Scalar

    gives grad_u: Scalar
    """

def FiniteVolumeUpwindedAdvectiveFlux(
    *,
    u: str = "u",
    v_edge: str = "v_edge",
    flux: str = "flux",
    name: str | None = None,
) -> Model:
    r"""The advective flux of the upwind cell, $J_e = v_e (u_{e+1} + H(v_e)(u_e - u_{e+1}))$.

    reads u: Scalar, v_edge: Scalar

    gives flux: Scalar
    """

def FirstPiolaKirchhoffStress(
    *,
    deformation_gradient: str = "deformation_gradient",
    second_piola_kirchhoff_stress: str = "second_piola_kirchhoff_stress",
    first_piola_kirchhoff_stress: str = "first_piola_kirchhoff_stress",
    name: str | None = None,
) -> Model:
    r"""The force on an area of the body before it deformed, $P = F S$.

    reads deformation_gradient: R2, second_piola_kirchhoff_stress: SR2

    gives first_piola_kirchhoff_stress: R2
    """

def FixOrientation(
    *,
    threshold: float = 1.0,
    input: str = "input",
    output: str = "output",
    name: str | None = None,
) -> Model:
    r"""The same rotation by its other parameters, $-r / r \cdot r$, from a threshold on.

    threshold: size of $r \cdot r$ from which they are changed

    reads input: MRP

    gives output: MRP
    """

def FredrickArmstrongPlasticHardening(
    *,
    C: Parameter,
    g: Parameter,
    flow_rate: str = "flow_rate",
    flow_direction: str = "flow_direction",
    back_stress: str = "back_stress",
    back_stress_rate: str = "{back_stress}_rate",
    name: str | None = None,
) -> Model:
    r"""Back stress with dynamic recovery, $\dot X = (\tfrac23 C N - g X) \dot\gamma$.

    C: growth along the flow direction
    g: dynamic recovery

    reads flow_rate: Scalar, flow_direction: SR2, back_stress: SR2

    gives back_stress_rate: SR2
    """

def GTNYieldFunction(
    *,
    yield_stress: Parameter,
    q1: Parameter,
    q2: Parameter,
    q3: Parameter,
    flow_invariant: str = "flow_invariant",
    poro_invariant: str = "poro_invariant",
    void_fraction: str = "void_fraction",
    isotropic_hardening: str | None = None,
    yield_function: str = "yield_function",
    name: str | None = None,
) -> Model:
    r"""The Gurson-Tvergaard-Needleman surface of a porous metal,
    $f = (\sigma_e/\sigma_f)^2 + 2 q_1 \phi \cosh(q_2 \sigma_p / 2 \sigma_f) - (1 + q_3 \phi^2)$.

    yield_stress: flow stress of the matrix, to which hardening is added
    q1: weight of the porosity
    q2: weight of the pressure
    q3: weight of the squared porosity

    reads flow_invariant: Scalar, poro_invariant: Scalar, void_fraction: Scalar, isotropic_hardening: Scalar

    gives yield_function: Scalar
    """

def GeneralElasticity(
    *,
    elastic_stiffness_tensor: Parameter,
    strain: str = "strain",
    orientation: str = "orientation",
    stress: str = "stress",
    name: str | None = None,
) -> Model:
    r"""Hooke's law of a crystal, $\sigma = R (C : R^T \varepsilon R) R^T$.

    elastic_stiffness_tensor: stiffness along the axes of the crystal, $C$

    reads strain: SR2, orientation: MRP

    gives stress: SR2
    """

def GreenLagrangeStrain(
    *,
    deformation_gradient: str = "deformation_gradient",
    strain: str = "strain",
    name: str | None = None,
) -> Model:
    r"""The strain of Green and Lagrange, $\tfrac12 (F^T F - I)$.

    reads deformation_gradient: R2

    gives strain: SR2
    """

def GursonCavitation(
    *,
    plastic_strain_rate: str = "plastic_strain_rate",
    void_fraction: str = "void_fraction",
    void_fraction_rate: str = "void_fraction_rate",
    name: str | None = None,
) -> Model:
    r"""Void growth by plastic volume change, $(1 - \phi)\, \mathrm{tr}\, \dot\varepsilon_p$.

    reads plastic_strain_rate: SR2, void_fraction: Scalar

    gives void_fraction_rate: Scalar
    """

def HenckyStrain(
    *,
    deformation_gradient: str = "deformation_gradient",
    strain: str = "strain",
    name: str | None = None,
) -> Model:
    r"""The logarithmic strain of a deformation, $E = \tfrac{1}{2} \ln F^T F$; NaN unless
    $\det F > 0$.

    reads deformation_gradient: R2

    gives strain: SR2
    """

def HenckyStressPullBack(
    *,
    deformation_gradient: str = "deformation_gradient",
    stress: str = "stress",
    second_piola_kirchhoff_stress: str = "second_piola_kirchhoff_stress",
    name: str | None = None,
) -> Model:
    r"""The stress $T$ that works on the logarithmic strain, on $C = F^T F$: $S = T : 2 dE/dC$.

    `HenckyStrain` gives that strain; $T : dE = \tfrac{1}{2} S : dC$ for every change.

    reads deformation_gradient: R2, stress: SR2

    gives second_piola_kirchhoff_stress: SR2
    """

def HermiteSmoothStep(
    *,
    lower_bound: Constant,
    upper_bound: Constant,
    complement: bool = False,
    argument: str = "argument",
    value: str = "value",
    name: str | None = None,
) -> Model:
    r"""A cubic from 0 to 1 between two bounds, $3 u^2 - 2 u^3$.

    lower_bound: where it leaves 0
    upper_bound: where it reaches 1
    complement: go from 1 to 0 instead

    reads argument: Scalar

    gives value: Scalar
    """

def IdealSolutionVolumetricDrivingForce(
    *,
    gas_constant: Constant,
    equilibrium_concentrations: Sequence[Parameter] | Parameter,
    current_concentrations: Sequence[str],
    weights: Sequence[Constant] | Constant = 1.0,
    temperature: str = "temperature",
    driving_force: str = "driving_force",
    name: str | None = None,
) -> Model:
    r"""The driving force in an ideal solution, $\Delta g = R T \sum_k w_k \ln(c_k / c_k^{eq})$.

    gas_constant: gas constant, $R$
    equilibrium_concentrations: concentrations in equilibrium, $c_k^{eq}$
    weights: one for every species, or one for all, $w_k$

    reads temperature: Scalar, current_concentrations: Scalar

    gives driving_force: Scalar
    """

def IrreversibleScalar(
    *,
    from_: str = "from",
    to: str = "to",
    name: str | None = None,
) -> Model:
    r"""A value that never decreases, $\max(x, y_n)$.

    reads from: Scalar

    gives to: Scalar
    """

def IsotropicElasticityTensor(
    *,
    coefficients: Sequence[Parameter] | Parameter,
    coefficient_types: Sequence[Literal['YOUNGS_MODULUS', 'POISSONS_RATIO', 'BULK_MODULUS', 'SHEAR_MODULUS']],
    C: str = "{block}",
    name: str | None = None,
) -> Model:
    r"""The stiffness of an isotropic solid, $C = 3 K I_{vol} + 2 G I_{dev}$.

    coefficients: two elastic constants
    coefficient_types: which constants they are

    gives C: SSR4
    """

def IsotropicMandelStress(
    *,
    cauchy_stress: str = "cauchy_stress",
    mandel_stress: str = "mandel_stress",
    name: str | None = None,
) -> Model:
    r"""For small elastic strain and isotropy, Mandel and Cauchy stress are one, $M = \sigma$.

    reads cauchy_stress: SR2

    gives mandel_stress: SR2
    """

def KelvinVoigtElement(
    *,
    modulus: Parameter,
    viscosity: Parameter,
    strain: str = "strain",
    stress: str = "stress",
    name: str | None = None,
) -> Model:
    r"""A spring beside a dashpot, $\sigma = E \varepsilon + \eta \dot\varepsilon$.

    modulus: stiffness of the spring, $E$
    viscosity: viscosity of the dashpot, $\eta$

    reads strain: SR2

    gives stress: SR2
    """

def KineticFactor(
    *,
    molar_volume: Parameter,
    avogadro_number: Parameter,
    critical_radius: str = "critical_radius",
    projected_diffusivity_sum: str = "projected_diffusivity_sum",
    kinetic_factor: str = "kinetic_factor",
    name: str | None = None,
) -> Model:
    r"""How fast a nucleus takes up atoms, $\beta = 4 \pi (N_a / V_m)^{4/3} R^2 / S$.

    molar_volume: volume of an amount, $V_m$
    avogadro_number: particles of an amount, $N_a$

    reads critical_radius: Scalar, projected_diffusivity_sum: Scalar

    gives kinetic_factor: Scalar
    """

def KirchhoffStress(
    *,
    deformation_gradient: str = "deformation_gradient",
    second_piola_kirchhoff_stress: str = "second_piola_kirchhoff_stress",
    kirchhoff_stress: str = "kirchhoff_stress",
    name: str | None = None,
) -> Model:
    r"""The Cauchy stress times the change of volume, $\tau = F S F^T$.

    reads deformation_gradient: R2, second_piola_kirchhoff_stress: SR2

    gives kirchhoff_stress: SR2
    """

def KocksMeckingActivationEnergy(
    *,
    shear_modulus: Parameter,
    eps0: float,
    k: float,
    b: float,
    temperature: str = "temperature",
    strain_rate: str = "strain_rate",
    activation_energy: str = "activation_energy",
    name: str | None = None,
) -> Model:
    r"""The energy that activates flow, $k T / (\mu b^3) \ln(\dot\varepsilon_0/\dot\varepsilon)$.

    shear_modulus: shear modulus, $\mu$
    eps0: reference strain rate, $\dot\varepsilon_0$
    k: Boltzmann's constant
    b: length of the Burgers vector

    reads temperature: Scalar, strain_rate: Scalar

    gives activation_energy: Scalar
    """

def KocksMeckingFlowSwitch(
    *,
    g0: Parameter,
    sharpness: float = 1.0,
    activation_energy: str = "activation_energy",
    rate_independent_flow_rate: str = "rate_independent_flow_rate",
    rate_dependent_flow_rate: str = "rate_dependent_flow_rate",
    flow_rate: str = "flow_rate",
    name: str | None = None,
) -> Model:
    r"""Flow that depends on rate above an energy, by $\tfrac12 (1 + \tanh s (g - g_0))$.

    g0: energy where both kinds of flow meet, $g_0$
    sharpness: how sharp the change is, $s$

    reads activation_energy: Scalar, rate_independent_flow_rate: Scalar, rate_dependent_flow_rate: Scalar

    gives flow_rate: Scalar
    """

def KocksMeckingFlowViscosity(
    *,
    A: Parameter,
    B: Parameter,
    shear_modulus: Parameter,
    eps0: float,
    k: float,
    b: float,
    temperature: str = "temperature",
    viscosity: str = "{block}",
    name: str | None = None,
) -> Model:
    r"""The viscosity of flow, $\eta = e^B \mu \dot\varepsilon_0^{k T A / \mu b^3}$.

    A: slope of the logarithm of stress by activation energy
    B: its value without activation energy
    shear_modulus: shear modulus, $\mu$
    eps0: reference strain rate, $\dot\varepsilon_0$
    k: Boltzmann's constant
    b: length of the Burgers vector

    reads temperature: Scalar

    gives viscosity: Scalar
    """

def KocksMeckingIntercept(
    *,
    A: Parameter,
    B: Parameter,
    C: Parameter,
    intercept: str = "intercept",
    name: str | None = None,
) -> Model:
    r"""The energy where both kinds of flow meet, $g_0 = (C - B) / A$.

    A: slope of the logarithm of stress by activation energy
    B: its value without activation energy
    C: its value in rate-independent flow

    gives intercept: Scalar
    """

def KocksMeckingRateSensitivity(
    *,
    A: Parameter,
    shear_modulus: Parameter,
    k: float,
    b: float,
    temperature: str = "temperature",
    rate_sensitivity: str = "rate_sensitivity",
    name: str | None = None,
) -> Model:
    r"""The exponent of viscoplastic flow, $n = -\mu b^3 / (k T A)$.

    A: slope of the logarithm of stress by activation energy, negative
    shear_modulus: shear modulus, $\mu$
    k: Boltzmann's constant
    b: length of the Burgers vector

    reads temperature: Scalar

    gives rate_sensitivity: Scalar
    """

def KocksMeckingYieldStress(
    *,
    C: Parameter,
    shear_modulus: Parameter,
    yield_stress: str = "yield_stress",
    name: str | None = None,
) -> Model:
    r"""The stress of rate-independent flow, $\sigma_y = \mu e^C$.

    C: logarithm of the stress over the shear modulus
    shear_modulus: shear modulus, $\mu$

    gives yield_stress: Scalar
    """

def KozenyCarmanPermeability(
    *,
    reference_permeability: Constant,
    reference_porosity: Constant,
    n: Constant,
    m: Constant,
    porosity: str = "porosity",
    permeability: str = "permeability",
    name: str | None = None,
) -> Model:
    r"""Kozeny and Carman by void ratios $e = \phi / (1 - \phi)$, $K = K_0\, e^n / e_0^m$.

    reference_permeability: factor of the permeability, $K_0$
    reference_porosity: porosity of the reference void ratio, $\phi_0$
    n: power of the void ratio
    m: power of the reference void ratio

    reads porosity: Scalar

    gives permeability: Scalar
    """

def LinearDashpot(
    *,
    viscosity: Parameter,
    stress: str = "stress",
    viscous_strain_rate: str = "viscous_strain_rate",
    name: str | None = None,
) -> Model:
    r"""A dashpot, $\dot\varepsilon_v = \sigma / \eta$.

    viscosity: stress per strain rate, $\eta$

    reads stress: SR2

    gives viscous_strain_rate: SR2
    """

def LinearExtrapolationPredictor(
    *,
    unknowns_SR2: Any = None,
    unknowns_Scalar: Any = None,
    unknowns_MRP: Any = None,
    unknowns_R2: Any = None,
    cold: Any = None,
    time: Any = None,
    name: str | None = None,
) -> Model:
    r"""Every listed unknown goes on as it went, $u = u_n + (u_n - u_{n-1}) \Delta t / \Delta t_n$.

    unknowns_SR2, unknowns_Scalar, unknowns_MRP, unknowns_R2: the unknowns of each kind
    cold: pairs `unknown:variable`; before there is any history the unknown starts at the variable
    time: what the steps are of, `t` unless told
    """

def LinearIsotropicElasticJ2TrialStressUpdate(
    *,
    coefficients: Sequence[Parameter] | Parameter,
    coefficient_types: Sequence[Literal['YOUNGS_MODULUS', 'POISSONS_RATIO', 'BULK_MODULUS', 'SHEAR_MODULUS']],
    elastic_trial_stress: str = "elastic_trial_stress",
    equivalent_plastic_strain: str = "equivalent_plastic_strain",
    updated_trial_stress: str = "updated_trial_stress",
    name: str | None = None,
) -> Model:
    r"""The effective stress that plastic flow leaves, $\sigma_{tr} - 3 G \Delta\bar\varepsilon_p$.

    coefficients: two elastic constants
    coefficient_types: which constants they are

    reads elastic_trial_stress: Scalar, equivalent_plastic_strain: Scalar

    gives updated_trial_stress: Scalar
    """

def LinearIsotropicElasticity(
    *,
    coefficients: Sequence[Parameter] | Parameter,
    coefficient_types: Sequence[Literal['YOUNGS_MODULUS', 'POISSONS_RATIO', 'BULK_MODULUS', 'SHEAR_MODULUS']],
    compliance: bool = False,
    rate_form: bool = False,
    strain: str = "strain",
    stress: str = "stress",
    name: str | None = None,
) -> Model:
    r"""Hooke's law, $\sigma = 3 K \mathrm{vol}\, \varepsilon + 2 G \mathrm{dev}\, \varepsilon$.

    coefficients: two elastic constants
    coefficient_types: which constants they are
    compliance: give strain from stress instead
    rate_form: relate the rates instead

    reads strain: SR2

    gives stress: SR2
    """

def LinearIsotropicHardening(
    *,
    hardening_modulus: Parameter,
    equivalent_plastic_strain: str = "equivalent_plastic_strain",
    isotropic_hardening: str = "isotropic_hardening",
    name: str | None = None,
) -> Model:
    r"""Hardening in proportion to plastic strain, $h = K \bar\varepsilon_p$.

    hardening_modulus: hardening per strain, $K$

    reads equivalent_plastic_strain: Scalar

    gives isotropic_hardening: Scalar
    """

def LinearIsotropicStrainEnergyDensity(
    *,
    coefficients: Sequence[Parameter] | Parameter,
    coefficient_types: Sequence[Literal['YOUNGS_MODULUS', 'POISSONS_RATIO', 'BULK_MODULUS', 'SHEAR_MODULUS']],
    decomposition: Literal['NONE', 'VOLDEV'] = "NONE",
    strain: str = "strain",
    active_strain_energy_density: str = "active_strain_energy_density",
    inactive_strain_energy_density: str = "inactive_strain_energy_density",
    name: str | None = None,
) -> Model:
    r"""Elastic energy that drives cracks and that does not, $\tfrac12 K (\mathrm{tr}\,
    \varepsilon)^2 + G\, e : e$ with the deviator $e$, and zero.

    coefficients: two elastic constants
    coefficient_types: which constants they are
    decomposition: `VOLDEV` leaves the energy of compression, $\mathrm{tr}\, \varepsilon < 0$, out

    reads strain: SR2

    gives active_strain_energy_density: Scalar, inactive_strain_energy_density: Scalar
    """

def LinearKinematicHardening(
    *,
    hardening_modulus: Parameter,
    kinematic_plastic_strain: str = "kinematic_plastic_strain",
    back_stress: str = "back_stress",
    name: str | None = None,
) -> Model:
    r"""Back stress in proportion to plastic strain, $X = H K_p$.

    hardening_modulus: back stress per strain, $H$

    reads kinematic_plastic_strain: SR2

    gives back_stress: SR2
    """

def LinearSingleSlipHardeningRule(
    *,
    hardening_slope: Parameter,
    slip_hardening: str = "slip_hardening",
    sum_slip_rates: str = "sum_slip_rates",
    slip_hardening_rate: str = "slip_hardening_rate",
    name: str | None = None,
) -> Model:
    r"""Hardening in proportion to slip, $\theta \sum_i |\dot\gamma_i|$, whatever it is by now.

    hardening_slope: hardening per slip, $\theta$

    reads slip_hardening: Scalar, sum_slip_rates: Scalar

    gives slip_hardening_rate: Scalar
    """

def LinearlyInterpolateToCellEdges(
    *,
    cell_values: Parameter,
    cell_centers: Constant,
    cell_edges: Constant,
    edge_values: str = "edge_values",
    name: str | None = None,
) -> Model:
    r"""Values on interior edges, $q_e = ((x_{i+1} - e) q_i + (e - x_i) q_{i+1}) / (x_{i+1} - x_i)$.

    cell_values: values at the cell centres
    cell_centers: where the centres are
    cell_edges: where all edges are, boundaries included

    gives edge_values: Scalar
    """

def LogarithmicStrain(
    *,
    model: Model | None = None,
    strain: Any = None,
    stress: Any = None,
    deformation_gradient: Any = None,
    kirchhoff_stress: Any = None,
    first_piola_kirchhoff_stress: Any = None,
    cauchy_stress: Any = None,
    second_piola_kirchhoff_stress: Any = None,
    jaumann_tangent: Any = None,
    name: str | None = None,
) -> Model:
    r"""A small-strain model on the logarithmic strain of a deformation gradient; a point at which
    the determinant of that is not positive fails.

    model: the small-strain model, whose other inputs and outputs are this one's too; strain: its
    strain, `strain` unless told, whose old values come from old deformation gradients; stress: its
    stress, `stress` unless told; deformation_gradient: what is given, `deformation_gradient` unless
    told; kirchhoff_stress, first_piola_kirchhoff_stress: names of these stresses; cauchy_stress,
    second_piola_kirchhoff_stress: the same, given where they are named; jaumann_tangent: the
    derivative of the Kirchhoff stress, at its Jaumann rate, by the rate of deformation, given where
    it is named.
    """

def MRPConstantParameter(
    *,
    value: Parameter,
    parameter: str = "{block}",
    name: str | None = None,
) -> Model:
    r"""A parameter that several models may share, $p = v$.

    value: its value, $v$

    gives parameter: MRP
    """

def MRPInputParameter(
    *,
    variable: str = "variable",
    parameter: str = "parameter",
    name: str | None = None,
) -> Model:
    r"""A parameter that is read as an input, $p = x$.

    reads variable: MRP

    gives parameter: MRP
    """

def MRPParameterToVariable(
    *,
    from_: Parameter,
    to: str = "to",
    name: str | None = None,
) -> Model:
    r"""A variable that has the value of a parameter, $x = p$.

    from: the parameter, $p$

    gives to: MRP
    """

def MacaulaySplit(
    *,
    from_: str = "from",
    to_positive: str = "to_positive",
    to_negative: str = "to_negative",
    name: str | None = None,
) -> Model:
    r"""The parts above and below zero, $\langle x \rangle$ and $x - \langle x \rangle$.

    reads from: Scalar

    gives to_positive: Scalar, to_negative: Scalar
    """

def MillerIndexConstantParameter(
    *,
    value: Parameter,
    parameter: str = "{block}",
    name: str | None = None,
) -> Model:
    r"""A parameter that several models may share, $p = v$.

    value: its value, $v$

    gives parameter: MillerIndex
    """

def MillerIndexInputParameter(
    *,
    variable: str = "variable",
    parameter: str = "parameter",
    name: str | None = None,
) -> Model:
    r"""A parameter that is read as an input, $p = x$.

    reads variable: MillerIndex

    gives parameter: MillerIndex
    """

def MillerIndexParameterToVariable(
    *,
    from_: Parameter,
    to: str = "to",
    name: str | None = None,
) -> Model:
    r"""A variable that has the value of a parameter, $x = p$.

    from: the parameter, $p$

    gives to: MillerIndex
    """

def MinMapComplementarity(
    *,
    a_inequality: Literal['LE', 'GE'] = "LE",
    b_inequality: Literal['LE', 'GE'] = "GE",
    a: str = "a",
    b: str = "b",
    complementarity: str = "complementarity",
    name: str | None = None,
) -> Model:
    r"""$a \perp b$ as $\min(\pm a, \pm b)$; a tie takes $b$.

    a_inequality: whether a stays below or above zero
    b_inequality: whether b stays below or above zero

    reads a: Scalar, b: Scalar

    gives complementarity: Scalar
    """

def MixedControlSetup(
    *,
    threshold: float = 0.5,
    control: str = "control",
    x_above: str = "x_above",
    x_below: str = "x_below",
    y: str = "y",
    z: str = "z",
    name: str | None = None,
) -> Model:
    r"""Two tensors that exchange the components whose control is not above a threshold.

    threshold: the control above which $y$ takes a component of the first

    reads control: SR2, x_above: SR2, x_below: SR2

    gives y: SR2, z: SR2
    """

def ModeMixity(
    *,
    normal_separation: str = "normal_separation",
    tangential_separation: str = "tangential_separation",
    mode_mixity: str = "mode_mixity",
    name: str | None = None,
) -> Model:
    r"""The share of shear in an opening, $\beta = \delta_s / \delta_n$; 0 where none opens.

    reads normal_separation: Scalar, tangential_separation: Scalar

    gives mode_mixity: Scalar
    """

def Normality(
    *,
    model: Model | None = None,
    function: Any = None,
    from_: Any = None,
    to: Any = None,
    name: str | None = None,
) -> Model:
    r"""The gradient of an inner model's scalar output by some of its inputs.

    model: the inner model; function: its scalar output; from: inputs; to: names of the gradients.
    """

def NucleationBarrierAndCriticalRadius(
    *,
    surface_energy: Parameter,
    total_gibbs_free_energy_difference: Parameter,
    molar_volume: Constant,
    nucleation_barrier: str = "nucleation_barrier",
    critical_radius: str = "critical_radius",
    name: str | None = None,
) -> Model:
    r"""A nucleus that neither grows nor shrinks, $\Delta G^* = \tfrac{16}{3} \pi \gamma^3 V_m^2 /
    \Delta g^2$ and $R^* = 2 \gamma V_m / \Delta g$.

    surface_energy: energy of the interface, $\gamma$
    total_gibbs_free_energy_difference: energy gained by an amount, $\Delta g$
    molar_volume: volume of an amount, $V_m$

    gives nucleation_barrier: Scalar, critical_radius: Scalar
    """

def NucleationFluxMagnitude(
    *,
    nucleation_site_density: Parameter,
    boltzmann_constant: Constant,
    zeldovich_factor: str = "zeldovich_factor",
    kinetic_factor: str = "kinetic_factor",
    nucleation_barrier: str = "nucleation_barrier",
    temperature: str = "temperature",
    nucleation_flux_magnitude: str = "nucleation_flux_magnitude",
    name: str | None = None,
) -> Model:
    r"""Nuclei formed by time, $J = Z \beta N_0 e^{-\Delta G^* / k T}$.

    nucleation_site_density: sites for nuclei, $N_0$
    boltzmann_constant: energy of a particle by temperature, $k$

    reads zeldovich_factor: Scalar, kinetic_factor: Scalar, nucleation_barrier: Scalar, temperature: Scalar

    gives nucleation_flux_magnitude: Scalar
    """

def OlevskySinteringStress(
    *,
    surface_tension: Parameter,
    particle_radius: Parameter,
    void_fraction: str = "void_fraction",
    sintering_stress: str = "sintering_stress",
    name: str | None = None,
) -> Model:
    r"""The driving stress of sintering, $\sigma_s = 3 \gamma \phi^2 / r$.

    surface_tension: surface tension, $\gamma$
    particle_radius: radius of the powder particles, $r$

    reads void_fraction: Scalar

    gives sintering_stress: Scalar
    """

def OrientationRate(
    *,
    elastic_strain: str = "elastic_strain",
    vorticity: str = "vorticity",
    plastic_deformation_rate: str = "plastic_deformation_rate",
    plastic_vorticity: str = "plastic_vorticity",
    orientation_rate: str = "orientation_rate",
    name: str | None = None,
) -> Model:
    r"""The spin of the lattice, $\Omega = w - w^p + d^p e - e d^p$.

    reads elastic_strain: SR2, vorticity: WR2, plastic_deformation_rate: SR2, plastic_vorticity: WR2

    gives orientation_rate: WR2
    """

def OrthotropicLinearTraction(
    *,
    normal_stiffness: Constant,
    tangential_stiffness: Constant,
    penalty_stiffness: Constant = 0.0,
    normal_separation: str = "normal_separation",
    tangential_separation_1: str = "tangential_separation_1",
    tangential_separation_2: str = "tangential_separation_2",
    normal_penetration: str | None = None,
    traction: str = "traction",
    name: str | None = None,
) -> Model:
    r"""Springs between two faces, $t = (K_n \delta_n + K_p \delta_p, K_t \delta_1, K_t \delta_2)$.

    normal_stiffness: stiffness along the normal, $K_n$
    tangential_stiffness: stiffness in shear, $K_t$
    penalty_stiffness: stiffness against penetration, $K_p$

    reads normal_separation: Scalar, tangential_separation_1: Scalar, tangential_separation_2: Scalar, normal_penetration: Scalar

    gives traction: Vec
    """

def PerSlipForestDislocationEvolution(
    *,
    k1: Parameter,
    k2: Parameter,
    dislocation_density: str = "dislocation_density",
    slip_rates: str = "slip_rates",
    dislocation_density_rate: str = "{dislocation_density}_rate",
    name: str | None = None,
) -> Model:
    r"""Dislocations that multiply and recover with slip,
    $\dot\rho_i = (k_1 \sqrt{\rho_i} - k_2 \rho_i) |\dot\gamma_i|$.

    k1: multiplication by the forest
    k2: dynamic recovery

    reads dislocation_density: Scalar, slip_rates: Scalar

    gives dislocation_density_rate: Scalar
    """

def PerzynaPlasticFlowRate(
    *,
    reference_stress: Parameter,
    exponent: Parameter,
    yield_function: str = "yield_function",
    flow_rate: str = "flow_rate",
    name: str | None = None,
) -> Model:
    r"""Viscoplastic overstress flow, $\dot\gamma = \langle f / \eta \rangle^n$.

    reference_stress: overstress at unit rate, $\eta$
    exponent: rate sensitivity, $n$

    reads yield_function: Scalar

    gives flow_rate: Scalar
    """

def PhaseTransformationEigenstrain(
    *,
    phase_fraction: str = "phase_fraction",
    volume_fraction_change: str = "volume_fraction_change",
    eigenstrain: str = "eigenstrain",
    name: str | None = None,
) -> Model:
    r"""Isotropic strain of a phase that grows, $\varepsilon = \Delta V f I$.

    reads phase_fraction: Scalar, volume_fraction_change: Scalar

    gives eigenstrain: SR2
    """

def PlasticDeformationRate(
    *,
    crystal_geometry: _CubicCrystal,
    orientation_matrix: str = "orientation_matrix",
    slip_rates: str = "slip_rates",
    plastic_deformation_rate: str = "plastic_deformation_rate",
    name: str | None = None,
) -> Model:
    r"""Plastic stretching, $d^p = \mathrm{sym}(Q (\sum_i \dot\gamma_i M_i) Q^T)$.

    crystal_geometry: the crystal with its slip systems

    reads orientation_matrix: R2, slip_rates: Scalar

    gives plastic_deformation_rate: SR2
    """

def PlasticSpatialVelocityGradient(
    *,
    crystal_geometry: _CubicCrystal,
    orientation_matrix: str = "orientation_matrix",
    slip_rates: str = "slip_rates",
    plastic_spatial_velocity_gradient: str = "plastic_spatial_velocity_gradient",
    name: str | None = None,
) -> Model:
    r"""Plastic velocity gradient, $l^p = Q (\sum_i \dot\gamma_i\, s_i \otimes m_i) Q^T$.

    crystal_geometry: the crystal with its slip systems

    reads orientation_matrix: R2, slip_rates: Scalar

    gives plastic_spatial_velocity_gradient: R2
    """

def PlasticVorticity(
    *,
    crystal_geometry: _CubicCrystal,
    orientation_matrix: str = "orientation_matrix",
    slip_rates: str = "slip_rates",
    plastic_vorticity: str = "plastic_vorticity",
    name: str | None = None,
) -> Model:
    r"""Plastic spin, $w^p = \mathrm{skew}(Q (\sum_i \dot\gamma_i W_i) Q^T)$.

    crystal_geometry: the crystal with its slip systems

    reads orientation_matrix: R2, slip_rates: Scalar

    gives plastic_vorticity: WR2
    """

def PowerDegradationFunction(
    *,
    power: Constant,
    eta: float = 0.0,
    phase: str = "phase",
    degradation: str = "degradation",
    name: str | None = None,
) -> Model:
    r"""Degradation by a power of what is intact, $g = (1 - d)^p (1 - \eta) + \eta$.

    power: exponent of the intact part, $p$
    eta: what is left of a broken point, $\eta$

    reads phase: Scalar

    gives degradation: Scalar
    """

def PowerLawFullSeparation(
    *,
    mode_mixity: Parameter,
    critical_separation: Parameter,
    penalty_stiffness: Constant,
    mode_I_fracture_toughness: Constant,
    mode_II_fracture_toughness: Constant,
    shear_strength: Constant,
    eta: Constant,
    normal_separation: str = "normal_separation",
    full_separation: str = "full_separation",
    name: str | None = None,
) -> Model:
    r"""The separation at which nothing is left, by a power law,
    $\frac{2 + 2 \beta^2}{K \delta_c} (G_I^{-\eta} + (\beta^2 / G_{II})^\eta)^{-1/\eta}$.

    mode_mixity: share of shear, $\beta$
    critical_separation: separation at which damage begins, $\delta_c$
    penalty_stiffness: stiffness of the sound interface, $K$
    mode_I_fracture_toughness: energy per area in opening, $G_I$
    mode_II_fracture_toughness: energy per area in shear, $G_{II}$
    shear_strength: strength in shear, $S$: where none opens, it is $2 G_{II} / S$
    eta: exponent, $\eta$

    reads normal_separation: Scalar

    gives full_separation: Scalar
    """

def PowerLawIsotropicHardeningStaticRecovery(
    *,
    tau: Parameter,
    n: Parameter,
    isotropic_hardening: str = "isotropic_hardening",
    isotropic_hardening_rate: str = "{isotropic_hardening}_rate",
    name: str | None = None,
) -> Model:
    r"""Hardening recovers at rest, $\dot h = -|h / \tau|^{n-1} h / \tau$.

    tau: hardening that recovers at unit rate, $\tau$
    n: exponent

    reads isotropic_hardening: Scalar

    gives isotropic_hardening_rate: Scalar
    """

def PowerLawKinematicHardeningStaticRecovery(
    *,
    tau: Parameter,
    n: Parameter,
    back_stress: str = "back_stress",
    back_stress_rate: str = "{back_stress}_rate",
    name: str | None = None,
) -> Model:
    r"""Back stress recovers at rest, $\dot X = -(\|X\| / \tau)^{n-1} X / \tau$.

    tau: back stress that recovers at unit rate, $\tau$
    n: exponent

    reads back_stress: SR2

    gives back_stress_rate: SR2
    """

def PowerLawPermeability(
    *,
    reference_permeability: Constant,
    reference_porosity: Constant,
    exponent: Constant,
    porosity: str = "porosity",
    permeability: str = "permeability",
    name: str | None = None,
) -> Model:
    r"""Permeability as a power of porosity, $K = K_0 (\phi / \phi_0)^p$.

    reference_permeability: permeability at the reference porosity, $K_0$
    reference_porosity: porosity that it is known at, $\phi_0$
    exponent: the power, $p$

    reads porosity: Scalar

    gives permeability: Scalar
    """

def PowerLawSlipRule(
    *,
    gamma0: Parameter,
    n: Parameter,
    resolved_shears: str = "resolved_shears",
    slip_strengths: str = "slip_strengths",
    slip_rates: str = "slip_rates",
    name: str | None = None,
) -> Model:
    r"""Slip by a power law, $\dot\gamma_0 |\tau_i / \hat\tau_i|^{n-1} \tau_i / \hat\tau_i$.

    gamma0: slip rate at the strength, $\dot\gamma_0$
    n: rate sensitivity

    reads resolved_shears: Scalar, slip_strengths: Scalar

    gives slip_rates: Scalar
    """

def PrecipitateVolumeFraction(
    *,
    radius: Parameter,
    number_density: str = "number_density",
    volume_fraction: str = "volume_fraction",
    name: str | None = None,
) -> Model:
    r"""The volume of spheres of all sizes, $f = \sum_i \tfrac43 \pi R_i^3 n_i$.

    radius: radius in each class, or in all, $R_i$

    reads number_density: Scalar

    gives volume_fraction: Scalar
    """

def ProjectedDiffusivitySum(
    *,
    concentration_differences: Sequence[Parameter] | Parameter,
    diffusivities: Sequence[Parameter] | Parameter,
    far_field_concentrations: Sequence[str],
    projected_diffusivity_sum: str = "projected_diffusivity_sum",
    name: str | None = None,
) -> Model:
    r"""The resistance of all species to growth, $S = \sum_k \Delta x_k^2 / (D_k x_k)$.

    concentration_differences: from precipitate to matrix, $\Delta x_k$
    diffusivities: diffusivities in the matrix, $D_k$

    reads far_field_concentrations: Scalar

    gives projected_diffusivity_sum: Scalar
    """

def R2BackwardEulerTimeIntegration(
    *,
    variable: str = "variable",
    rate: str = "{variable}_rate",
    time: str = "t",
    variable_residual: str = "{variable}_residual",
    name: str | None = None,
) -> Model:
    r"""The residual of backward Euler, $r = s - s_n - (t - t_n) \dot s$.

    reads variable: R2, rate: R2, time: Scalar

    gives variable_residual: R2
    """

def R2ConstantParameter(
    *,
    value: Parameter,
    parameter: str = "{block}",
    name: str | None = None,
) -> Model:
    r"""A parameter that several models may share, $p = v$.

    value: its value, $v$

    gives parameter: R2
    """

def R2Determinant(
    *,
    input: str = "input",
    determinant: str = "determinant",
    name: str | None = None,
) -> Model:
    r"""The determinant, $\det A$.

    reads input: R2

    gives determinant: Scalar
    """

def R2ForwardEulerTimeIntegration(
    *,
    rate: str = "{variable}_rate",
    old_variable: str = "{variable}~1",
    time: str = "t",
    variable: str = "variable",
    name: str | None = None,
) -> Model:
    r"""Forward Euler, $s = s_n + (t - t_n) \dot s$.

    reads rate: R2, old_variable: R2, time: Scalar

    gives variable: R2
    """

def R2InputParameter(
    *,
    variable: str = "variable",
    parameter: str = "parameter",
    name: str | None = None,
) -> Model:
    r"""A parameter that is read as an input, $p = x$.

    reads variable: R2

    gives parameter: R2
    """

def R2Multiplication(
    *,
    invert_A: bool = False,
    invert_B: bool = False,
    transpose_A: bool = False,
    transpose_B: bool = False,
    A: str = "A",
    B: str = "B",
    to: str = "to",
    name: str | None = None,
) -> Model:
    r"""A product of matrices, $A B$, $A^{-1} B$, $A^T B$, $A^{-T} B$ and so on.

    invert_A: take the inverse of A
    invert_B: take the inverse of B
    transpose_A: transpose A, once inverted
    transpose_B: transpose B, once inverted

    reads A: R2, B: R2

    gives to: R2
    """

def R2ParameterToVariable(
    *,
    from_: Parameter,
    to: str = "to",
    name: str | None = None,
) -> Model:
    r"""A variable that has the value of a parameter, $x = p$.

    from: the parameter, $p$

    gives to: R2
    """

def R2ToSR2(
    *,
    input: str = "input",
    output: str = "output",
    name: str | None = None,
) -> Model:
    r"""The symmetric part, $(A + A^T) / 2$.

    reads input: R2

    gives output: SR2
    """

def R2ToWR2(
    *,
    input: str = "input",
    output: str = "output",
    name: str | None = None,
) -> Model:
    r"""The skew part, $(A - A^T) / 2$.

    reads input: R2

    gives output: WR2
    """

def R2VariableRate(
    *,
    variable: str = "variable",
    time: str = "t",
    variable_rate: str = "{variable}_rate",
    name: str | None = None,
) -> Model:
    r"""The rate over a step, $(f - f_n) / (t - t_n)$.

    reads variable: R2, time: Scalar

    gives variable_rate: R2
    """

def RateCondensation(
    *,
    model: Model | None = None,
    rate: Any = None,
    driving_force: Any = None,
    coupling: Any = None,
    trial_driving_force: Any = None,
    name: str | None = None,
) -> Model:
    r"""What an explicit return path says of its rate: $b = f(0)$ and $A = -\partial f/\partial r$.

    model: the return path, from a rate to a driving force
    rate: the input that is the rate
    driving_force: the output that is the driving force
    coupling: what is given as $A$
    trial_driving_force: what is given as $b$
    """

def RateLimitedPrecipitateGrowthRate(
    *,
    radius: Parameter,
    equilibrium_concentration: Parameter,
    concentration_difference: Parameter,
    diffusivity: Parameter,
    current_concentration: str = "current_concentration",
    growth_rate: str = "growth_rate",
    name: str | None = None,
) -> Model:
    r"""Growth by the slowest species, $\dot R = \frac{D}{R} \frac{x - x_{eq}}{\Delta x}$.

    radius: radius of the precipitate, $R$
    equilibrium_concentration: concentration at its surface, $x_{eq}$
    concentration_difference: from precipitate to matrix, $\Delta x$
    diffusivity: diffusivity in the matrix, $D$

    reads current_concentration: Scalar

    gives growth_rate: Scalar
    """

def RationalDegradationFunction(
    *,
    power: Constant,
    b1: Constant,
    b2: Constant,
    b3: Constant,
    eta: float = 0.0,
    phase: str = "phase",
    degradation: str = "degradation",
    name: str | None = None,
) -> Model:
    r"""Degradation of cohesive fracture, $g = \frac{f}{f + Q} (1 - \eta) + \eta$, $f = (1 - d)^p$,
    $Q = b_1 d (1 + b_2 d + b_2 b_3 d^2)$.

    power: exponent of the intact part, $p$
    b1: linear coefficient of the broken part
    b2: quadratic coefficient, relative to the linear one
    b3: cubic coefficient, relative to the quadratic one
    eta: what is left of a broken point, $\eta$

    reads phase: Scalar

    gives degradation: Scalar
    """

def ResolvedShear(
    *,
    crystal_geometry: _CubicCrystal,
    stress: str = "stress",
    orientation_matrix: str = "orientation_matrix",
    resolved_shears: str = "resolved_shears",
    name: str | None = None,
) -> Model:
    r"""Stress resolved on the slip systems, $\tau_i = \sigma : \mathrm{sym}(Q M_i Q^T)$.

    crystal_geometry: the crystal with its slip systems

    reads stress: SR2, orientation_matrix: R2

    gives resolved_shears: Scalar
    """

def RotationMatrix(
    *,
    from_: str = "from",
    to: str = "to",
    name: str | None = None,
) -> Model:
    r"""The matrix of a rotation, $R = I + (4 (1 - \rho) W + 8 W^2) / (1 + \rho)^2$.

    reads from: MRP

    gives to: R2
    """

def SFFKPrecipitationGrowthRate(
    *,
    radius: Parameter,
    gibbs_free_energy_difference: Parameter,
    gas_constant: Parameter,
    projected_diffusivity_sum: str = "projected_diffusivity_sum",
    temperature: str = "temperature",
    growth_rate: str = "growth_rate",
    name: str | None = None,
) -> Model:
    r"""Growth by Svoboda, Fischer, Fratzl and Kozeschnik, $\dot R = \Delta g / (R R_g T S)$.

    radius: radius of the precipitate, $R$
    gibbs_free_energy_difference: energy that drives growth, $\Delta g$
    gas_constant: gas constant, $R_g$

    reads projected_diffusivity_sum: Scalar, temperature: Scalar

    gives growth_rate: Scalar
    """

def SR2BackwardEulerTimeIntegration(
    *,
    variable: str = "variable",
    rate: str = "{variable}_rate",
    time: str = "t",
    variable_residual: str = "{variable}_residual",
    name: str | None = None,
) -> Model:
    r"""The residual of backward Euler, $r = s - s_n - (t - t_n) \dot s$.

    reads variable: SR2, rate: SR2, time: Scalar

    gives variable_residual: SR2
    """

def SR2BilinearInterpolation(
    *,
    abscissa1: Constant,
    abscissa2: Constant,
    ordinate: Constant,
    argument1: str = "argument1",
    argument2: str = "argument2",
    output: str = "{block}",
    name: str | None = None,
) -> Model:
    r"""A table that is linear in each of two variables and goes on as it ends,
    $y_{00} + (y_{10} - y_{00}) \xi + (y_{01} - y_{00}) \eta + (y_{11} - y_{10} - y_{01} + y_{00})
    \xi \eta$.

    abscissa1: where the rows are, ascending
    abscissa2: where the columns are, ascending
    ordinate: the values at rows and columns

    reads argument1: Scalar, argument2: Scalar

    gives output: SR2
    """

def SR2ConstantParameter(
    *,
    value: Parameter,
    parameter: str = "{block}",
    name: str | None = None,
) -> Model:
    r"""A parameter that several models may share, $p = v$.

    value: its value, $v$

    gives parameter: SR2
    """

def SR2Determinant(
    *,
    input: str = "input",
    determinant: str = "determinant",
    name: str | None = None,
) -> Model:
    r"""The determinant, $\det A$.

    reads input: SR2

    gives determinant: Scalar
    """

def SR2DynamicMean(
    *,
    from_: Any = None,
    to: Any = None,
    dim: Any = None,
    name: str | None = None,
) -> Model:
    r"""The mean over an axis of the batch, which is gone afterwards.

    from: what is averaged; to: the mean; dim: the axis, counted from the left, or from the right
    where it is negative.
    """

def SR2DynamicSum(
    *,
    from_: Any = None,
    to: Any = None,
    dim: Any = None,
    name: str | None = None,
) -> Model:
    r"""The sum over an axis of the batch, which is gone afterwards.

    from: what is summed; to: the sum; dim: the axis, counted from the left, or from the right
    where it is negative.
    """

def SR2ForwardEulerTimeIntegration(
    *,
    rate: str = "{variable}_rate",
    old_variable: str = "{variable}~1",
    time: str = "t",
    variable: str = "variable",
    name: str | None = None,
) -> Model:
    r"""Forward Euler, $s = s_n + (t - t_n) \dot s$.

    reads rate: SR2, old_variable: SR2, time: Scalar

    gives variable: SR2
    """

def SR2InputParameter(
    *,
    variable: str = "variable",
    parameter: str = "parameter",
    name: str | None = None,
) -> Model:
    r"""A parameter that is read as an input, $p = x$.

    reads variable: SR2

    gives parameter: SR2
    """

def SR2IntermediateDiff(
    *,
    from_: Any = None,
    to: Any = None,
    dim: Any = None,
    n: Any = None,
    reduces: Any = None,
    name: str | None = None,
) -> Model:
    r"""Differences of neighbours along a structural axis, which is shorter afterwards.

    from: what is differenced
    to: the differences
    dim: the axis, counted from the left, or from the right where it is negative
    n: how many times, once unless told
    reduces: a name for the axis, without effect
    """

def SR2IntermediateMean(
    *,
    from_: Any = None,
    to: Any = None,
    reduces: Any = None,
    name: str | None = None,
) -> Model:
    r"""The mean along the last structural axis, which is gone afterwards.

    from: what is averaged
    to: the mean
    reduces: a name for the axis, without effect
    """

def SR2IntermediateSum(
    *,
    from_: Any = None,
    to: Any = None,
    reduces: Any = None,
    name: str | None = None,
) -> Model:
    r"""The sum along the last structural axis, which is gone afterwards.

    from: what is summed
    to: the sum
    reduces: a name for the axis, without effect
    """

def SR2Invariant(
    *,
    invariant_type: Literal['VONMISES', 'EFFECTIVE_STRAIN', 'I1'],
    tensor: str = "tensor",
    invariant: str = "invariant",
    name: str | None = None,
) -> Model:
    r"""An invariant: $\sqrt{\tfrac32 s:s}$, $\sqrt{\tfrac23 e:e}$ of the deviator, or the trace.

    invariant_type: which one

    reads tensor: SR2

    gives invariant: Scalar
    """

def SR2LinearCombination(
    *,
    from_: Sequence[str],
    weights: Sequence[Parameter] | Parameter = 1.0,
    offset: Parameter = 0.0,
    to: str = "to",
    name: str | None = None,
) -> Model:
    r"""A weighted sum, $\sum_i w_i v_i + b$.

    weights: one for every term, or one for all
    offset: added to every component, $b$

    reads from: SR2

    gives to: SR2
    """

def SR2ParameterToVariable(
    *,
    from_: Parameter,
    to: str = "to",
    name: str | None = None,
) -> Model:
    r"""A variable that has the value of a parameter, $x = p$.

    from: the parameter, $p$

    gives to: SR2
    """

def SR2ToR2(
    *,
    input: str = "input",
    output: str = "output",
    name: str | None = None,
) -> Model:
    r"""A symmetric tensor as a matrix, $A_{ij} = A_{ji}$.

    reads input: SR2

    gives output: R2
    """

def SR2TwoStageThermalAnnealing(
    *,
    T1: Constant,
    T2: Constant,
    tau: Constant,
    base_rate: str = "base_rate",
    base: str = "base",
    temperature: str = "temperature",
    modified_rate: str = "modified_rate",
    name: str | None = None,
) -> Model:
    r"""Hardening as it is below $T_1$, none below $T_2$, and recovery, $-s / \tau$, above.

    T1: temperature from which nothing hardens, $T_1$
    T2: temperature from which hardening recovers, $T_2$
    tau: time of the recovery, $\tau$

    reads base_rate: SR2, base: SR2, temperature: Scalar

    gives modified_rate: SR2
    """

def SR2VariableRate(
    *,
    variable: str = "variable",
    time: str = "t",
    variable_rate: str = "{variable}_rate",
    name: str | None = None,
) -> Model:
    r"""The rate over a step, $(f - f_n) / (t - t_n)$.

    reads variable: SR2, time: Scalar

    gives variable_rate: SR2
    """

def SSR4ConstantParameter(
    *,
    value: Parameter,
    parameter: str = "{block}",
    name: str | None = None,
) -> Model:
    r"""A parameter that several models may share, $p = v$.

    value: its value, $v$

    gives parameter: SSR4
    """

def SSR4InputParameter(
    *,
    variable: str = "variable",
    parameter: str = "parameter",
    name: str | None = None,
) -> Model:
    r"""A parameter that is read as an input, $p = x$.

    reads variable: SSR4

    gives parameter: SSR4
    """

def SSR4ParameterToVariable(
    *,
    from_: Parameter,
    to: str = "to",
    name: str | None = None,
) -> Model:
    r"""A variable that has the value of a parameter, $x = p$.

    from: the parameter, $p$

    gives to: SSR4
    """

def SalehaniIraniTraction(
    *,
    normal_characteristic_length: Constant,
    tangential_characteristic_length: Constant,
    normal_strength: Constant,
    shear_strength: Constant,
    penalty_stiffness: Constant = 0.0,
    normal_separation: str = "normal_separation",
    tangential_separation_1: str = "tangential_separation_1",
    tangential_separation_2: str = "tangential_separation_2",
    normal_penetration: str | None = None,
    traction: str = "traction",
    damage: str = "damage",
    name: str | None = None,
) -> Model:
    r"""Traction $e T_n b_n (1 - d)$ along the normal and $\sqrt{2 e}\, T_t b_i (1 - d)$ in shear,
    with damage that never heals, up to $d = 1 - e^{-b_n - b_1^2 - b_2^2}$.

    normal_characteristic_length: what $\delta_n$ is divided by in $b_n$
    tangential_characteristic_length: what $\delta_i$ is divided by in $\sqrt 2\, b_i$
    normal_strength: strength in opening, $T_n$
    shear_strength: strength in shear, $T_t$
    penalty_stiffness: stiffness against penetration

    reads normal_separation: Scalar, tangential_separation_1: Scalar, tangential_separation_2: Scalar, normal_penetration: Scalar

    gives traction: Vec, damage: Scalar
    """

def ScalarBackwardEulerTimeIntegration(
    *,
    variable: str = "variable",
    rate: str = "{variable}_rate",
    time: str = "t",
    variable_residual: str = "{variable}_residual",
    name: str | None = None,
) -> Model:
    r"""The residual of backward Euler, $r = s - s_n - (t - t_n) \dot s$.

    reads variable: Scalar, rate: Scalar, time: Scalar

    gives variable_residual: Scalar
    """

def ScalarBilinearInterpolation(
    *,
    abscissa1: Constant,
    abscissa2: Constant,
    ordinate: Constant,
    argument1: str = "argument1",
    argument2: str = "argument2",
    output: str = "{block}",
    name: str | None = None,
) -> Model:
    r"""A table that is linear in each of two variables and goes on as it ends,
    $y_{00} + (y_{10} - y_{00}) \xi + (y_{01} - y_{00}) \eta + (y_{11} - y_{10} - y_{01} + y_{00})
    \xi \eta$.

    abscissa1: where the rows are, ascending
    abscissa2: where the columns are, ascending
    ordinate: the values at rows and columns

    reads argument1: Scalar, argument2: Scalar

    gives output: Scalar
    """

def ScalarConstantParameter(
    *,
    value: Parameter,
    parameter: str = "{block}",
    name: str | None = None,
) -> Model:
    r"""A parameter that several models may share, $p = v$.

    value: its value, $v$

    gives parameter: Scalar
    """

def ScalarForwardEulerTimeIntegration(
    *,
    rate: str = "{variable}_rate",
    old_variable: str = "{variable}~1",
    time: str = "t",
    variable: str = "variable",
    name: str | None = None,
) -> Model:
    r"""Forward Euler, $s = s_n + (t - t_n) \dot s$.

    reads rate: Scalar, old_variable: Scalar, time: Scalar

    gives variable: Scalar
    """

def ScalarInputParameter(
    *,
    variable: str = "variable",
    parameter: str = "parameter",
    name: str | None = None,
) -> Model:
    r"""A parameter that is read as an input, $p = x$.

    reads variable: Scalar

    gives parameter: Scalar
    """

def ScalarLinearCombination(
    *,
    from_: Sequence[str],
    weights: Sequence[Parameter] | Parameter = 1.0,
    offset: Parameter = 0.0,
    to: str = "to",
    name: str | None = None,
) -> Model:
    r"""A weighted sum, $\sum_i w_i v_i + b$.

    weights: one for every term, or one for all
    offset: added to every component, $b$

    reads from: Scalar

    gives to: Scalar
    """

def ScalarLinearInterpolation(
    *,
    abscissa: Constant,
    ordinate: Constant,
    argument: str = "argument",
    output: str = "{block}",
    name: str | None = None,
) -> Model:
    r"""A table that is linear between knots and goes on as it ends,
    $y_i + (y_{i+1} - y_i) (x - x_i) / (x_{i+1} - x_i)$.

    abscissa: where the knots are, ascending
    ordinate: the values at the knots

    reads argument: Scalar

    gives output: Scalar
    """

def ScalarMultiplication(
    *,
    from_: Sequence[str],
    scaling: Parameter = 1.0,
    reciprocal: Sequence[Literal['false', 'true']] = ('false',),
    to: str = "to",
    name: str | None = None,
) -> Model:
    r"""A scaled product, $s \prod_i v_i^{\pm 1}$.

    scaling: multiplies the product, $s$
    reciprocal: whether to divide by a factor; one for every factor, or one for all

    reads from: Scalar

    gives to: Scalar
    """

def ScalarPNorm(
    *,
    exponent: Constant,
    from_: Sequence[str],
    weights: Sequence[Constant] | Constant = 1.0,
    to: str = "to",
    name: str | None = None,
) -> Model:
    r"""A weighted norm, $(\sum_i w_i |v_i|^p + \epsilon)^{1/p}$.

    exponent: which norm, $p$
    weights: one for every term, or one for all

    reads from: Scalar

    gives to: Scalar
    """

def ScalarParameterToVariable(
    *,
    from_: Parameter,
    to: str = "to",
    name: str | None = None,
) -> Model:
    r"""A variable that has the value of a parameter, $x = p$.

    from: the parameter, $p$

    gives to: Scalar
    """

def ScalarToDiagonalSR2(
    *,
    input: str = "input",
    output: str = "output",
    name: str | None = None,
) -> Model:
    r"""A multiple of the unit tensor, $s I$.

    reads input: Scalar

    gives output: SR2
    """

def ScalarTwoStageThermalAnnealing(
    *,
    T1: Constant,
    T2: Constant,
    tau: Constant,
    base_rate: str = "base_rate",
    base: str = "base",
    temperature: str = "temperature",
    modified_rate: str = "modified_rate",
    name: str | None = None,
) -> Model:
    r"""Hardening as it is below $T_1$, none below $T_2$, and recovery, $-s / \tau$, above.

    T1: temperature from which nothing hardens, $T_1$
    T2: temperature from which hardening recovers, $T_2$
    tau: time of the recovery, $\tau$

    reads base_rate: Scalar, base: Scalar, temperature: Scalar

    gives modified_rate: Scalar
    """

def ScalarVariableRate(
    *,
    variable: str = "variable",
    time: str = "t",
    variable_rate: str = "{variable}_rate",
    name: str | None = None,
) -> Model:
    r"""The rate over a step, $(f - f_n) / (t - t_n)$.

    reads variable: Scalar, time: Scalar

    gives variable_rate: Scalar
    """

def SemiInfiniteCoordinateTransform(
    *,
    shift: Parameter,
    coordinate: str = "coordinate",
    transformed_coordinate: str = "state/x_hat",
    name: str | None = None,
) -> Model:
    r"""Half a line mapped to the unit interval, $\hat x = x / (x + s)$.

    shift: coordinate that is mapped to one half, $s$

    reads coordinate: Scalar

    gives transformed_coordinate: Scalar
    """

def SingleSlipStrengthMap(
    *,
    constant_strength: Parameter,
    crystal_geometry: _CubicCrystal,
    slip_hardening: str = "slip_hardening",
    slip_strengths: str = "slip_strengths",
    name: str | None = None,
) -> Model:
    r"""One strength for every slip system, $\hat\tau_i = \bar\tau + \tau_0$.

    constant_strength: strength without hardening, $\tau_0$
    crystal_geometry: the crystal with its slip systems

    reads slip_hardening: Scalar

    gives slip_strengths: Scalar
    """

def SlipSystemElasticInteraction(
    *,
    elastic_stiffness_tensor: Parameter,
    crystal_geometry: _CubicCrystal,
    orientation: str = "orientation",
    time: str = "t",
    coupling: str = "coupling",
    name: str | None = None,
) -> Model:
    r"""How slip relaxes the stress resolved on another system, $(t - t_n) M_i : C : M_j$.

    elastic_stiffness_tensor: stiffness along the axes of the crystal, $C$
    crystal_geometry: the crystal with its slip systems

    reads orientation: MRP, time: Scalar

    gives coupling: Scalar
    """

def SlopeSaturationVoceIsotropicHardening(
    *,
    saturated_hardening: Parameter,
    initial_hardening_rate: Parameter,
    flow_rate: str = "flow_rate",
    isotropic_hardening: str = "isotropic_hardening",
    isotropic_hardening_rate: str = "{isotropic_hardening}_rate",
    name: str | None = None,
) -> Model:
    r"""The rate of hardening that saturates, $\mathrm{sign}(R)\,\theta_0 (1 - h/R) \dot\gamma$.

    saturated_hardening: hardening once saturated, $R$, also negative
    initial_hardening_rate: hardening per flow at first, $\theta_0$

    reads flow_rate: Scalar, isotropic_hardening: Scalar

    gives isotropic_hardening_rate: Scalar
    """

def SmearedDeltaSource(
    *,
    width: Parameter,
    cell_centers: Parameter,
    magnitude: str = "magnitude",
    location: str = "location",
    smeared_source: str = "state/smeared_source",
    name: str | None = None,
) -> Model:
    r"""A source around a point, $s_k = \frac{m}{w \sqrt{2 \pi}} e^{-((x_k - x_0) / w)^2 / 2}$.

    width: standard deviation, $w$
    cell_centers: where the centres are, $x_k$

    reads magnitude: Scalar, location: Scalar

    gives smeared_source: Scalar
    """

def SumSlipRates(
    *,
    slip_rates: str = "slip_rates",
    sum_slip_rates: str = "sum_slip_rates",
    name: str | None = None,
) -> Model:
    r"""The total slip rate, $\sum_i |\dot\gamma_i|$.

    reads slip_rates: Scalar

    gives sum_slip_rates: Scalar
    """

def SwellingAndPhaseChangeDeformationJacobian(
    *,
    phase_fraction: Parameter,
    swelling_coefficient: Constant,
    reference_volume_difference: Constant,
    fluid_fraction: str = "fluid_fraction",
    jacobian: str = "jacobian",
    name: str | None = None,
) -> Model:
    r"""The change of volume by a fluid, $J = 1 + \alpha c \varphi + (1 - c) \varphi \Delta\Omega$.

    phase_fraction: liquid part of the fluid, $c$
    swelling_coefficient: swelling by liquid, $\alpha$
    reference_volume_difference: change of volume as it turns solid, $\Delta\Omega$

    reads fluid_fraction: Scalar

    gives jacobian: Scalar
    """

def SymmetricHermiteInterpolation(
    *,
    lower_bound: Constant,
    upper_bound: Constant,
    argument: str = "argument",
    output: str = "{block}",
    name: str | None = None,
) -> Model:
    r"""A symmetric bump of unit area between two bounds, $(24 c^2 - 32 c^3) / (x_1 - x_0)$ up to
    the middle.

    lower_bound: where it rises from 0, $x_0$
    upper_bound: where it is back at 0, $x_1$

    reads argument: Scalar

    gives output: Scalar
    """

def ThermalDeformationJacobian(
    *,
    reference_temperature: Constant,
    CTE: Parameter,
    temperature: str = "temperature",
    jacobian: str = "jacobian",
    name: str | None = None,
) -> Model:
    r"""The change of volume with temperature, $J = 1 + \alpha (T - T_0)$.

    reference_temperature: temperature of no change, $T_0$
    CTE: coefficient of thermal expansion, of the volume, $\alpha$

    reads temperature: Scalar

    gives jacobian: Scalar
    """

def ThermalEigenstrain(
    *,
    reference_temperature: Constant,
    CTE: Parameter,
    temperature: str = "temperature",
    eigenstrain: str = "eigenstrain",
    name: str | None = None,
) -> Model:
    r"""Isotropic thermal strain, $\varepsilon = \alpha (T - T_0) I$.

    reference_temperature: temperature of zero strain, $T_0$
    CTE: coefficient of thermal expansion, $\alpha$

    reads temperature: Scalar

    gives eigenstrain: SR2
    """

def VanGenuchtenCapillaryPressure(
    *,
    a: Parameter,
    m: Parameter,
    log_extension: bool = False,
    transition_saturation: float = 0.0,
    effective_saturation: str = "effective_saturation",
    capillary_pressure: str = "capillary_pressure",
    name: str | None = None,
) -> Model:
    r"""Capillary pressure of van Genuchten, $P = a (S^{-1/m} - 1)^{1-m}$ for $S < 1$.

    a: scale of the pressure
    m: distribution of pore sizes
    log_extension: go on below the transition as an exponential of the same value and slope
    transition_saturation: where it starts

    reads effective_saturation: Scalar

    gives capillary_pressure: Scalar
    """

def VecBackwardEulerTimeIntegration(
    *,
    variable: str = "variable",
    rate: str = "{variable}_rate",
    time: str = "t",
    variable_residual: str = "{variable}_residual",
    name: str | None = None,
) -> Model:
    r"""The residual of backward Euler, $r = s - s_n - (t - t_n) \dot s$.

    reads variable: Vec, rate: Vec, time: Scalar

    gives variable_residual: Vec
    """

def VecBilinearInterpolation(
    *,
    abscissa1: Constant,
    abscissa2: Constant,
    ordinate: Constant,
    argument1: str = "argument1",
    argument2: str = "argument2",
    output: str = "{block}",
    name: str | None = None,
) -> Model:
    r"""A table that is linear in each of two variables and goes on as it ends,
    $y_{00} + (y_{10} - y_{00}) \xi + (y_{01} - y_{00}) \eta + (y_{11} - y_{10} - y_{01} + y_{00})
    \xi \eta$.

    abscissa1: where the rows are, ascending
    abscissa2: where the columns are, ascending
    ordinate: the values at rows and columns

    reads argument1: Scalar, argument2: Scalar

    gives output: Vec
    """

def VecComponents(
    *,
    to: Sequence[str],
    from_: str = "from",
    name: str | None = None,
) -> Model:
    r"""The components of a vector, $v_1, v_2, v_3$.

    to: a name for each component

    reads from: Vec

    gives {to[0]}: Scalar, {to[1]}: Scalar, {to[2]}: Scalar
    """

def VecConstantParameter(
    *,
    value: Parameter,
    parameter: str = "{block}",
    name: str | None = None,
) -> Model:
    r"""A parameter that several models may share, $p = v$.

    value: its value, $v$

    gives parameter: Vec
    """

def VecInputParameter(
    *,
    variable: str = "variable",
    parameter: str = "parameter",
    name: str | None = None,
) -> Model:
    r"""A parameter that is read as an input, $p = x$.

    reads variable: Vec

    gives parameter: Vec
    """

def VecParameterToVariable(
    *,
    from_: Parameter,
    to: str = "to",
    name: str | None = None,
) -> Model:
    r"""A variable that has the value of a parameter, $x = p$.

    from: the parameter, $p$

    gives to: Vec
    """

def VecVariableRate(
    *,
    variable: str = "variable",
    time: str = "t",
    variable_rate: str = "{variable}_rate",
    name: str | None = None,
) -> Model:
    r"""The rate over a step, $(f - f_n) / (t - t_n)$.

    reads variable: Vec, time: Scalar

    gives variable_rate: Vec
    """

def VoceIsotropicHardening(
    *,
    saturated_hardening: Parameter,
    saturation_rate: Parameter,
    equivalent_plastic_strain: str = "equivalent_plastic_strain",
    isotropic_hardening: str = "isotropic_hardening",
    name: str | None = None,
) -> Model:
    r"""Hardening that saturates exponentially with plastic strain, $h = Q (1 - e^{-b p})$.

    saturated_hardening: hardening once saturated, $Q$
    saturation_rate: how fast it saturates, $b$

    reads equivalent_plastic_strain: Scalar

    gives isotropic_hardening: Scalar
    """

def VoceSingleSlipHardeningRule(
    *,
    initial_slope: Parameter,
    saturated_hardening: Parameter,
    slip_hardening: str = "slip_hardening",
    sum_slip_rates: str = "sum_slip_rates",
    slip_hardening_rate: str = "slip_hardening_rate",
    name: str | None = None,
) -> Model:
    r"""Hardening that saturates, $\theta_0 (1 - \bar\tau / \tau_f) \sum_i |\dot\gamma_i|$.

    initial_slope: slope without hardening, $\theta_0$
    saturated_hardening: hardening once saturated, $\tau_f$

    reads slip_hardening: Scalar, sum_slip_rates: Scalar

    gives slip_hardening_rate: Scalar
    """

def VolumeAdjustDeformationGradient(
    *,
    input: str = "input",
    jacobian: str = "jacobian",
    output: str = "output",
    name: str | None = None,
) -> Model:
    r"""The deformation less a change of volume, $F_e = J^{-1/3} F$.

    reads input: R2, jacobian: Scalar

    gives output: R2
    """

def VolumeChangeEigenstrain(
    *,
    reference_volume: Constant,
    volume: str = "volume",
    eigenstrain: str = "eigenstrain",
    name: str | None = None,
) -> Model:
    r"""Isotropic strain of a change in volume, $\varepsilon = ((V / V_0)^{1/3} - 1) I$.

    reference_volume: volume of zero strain, $V_0$

    reads volume: Scalar

    gives eigenstrain: SR2
    """

def WR2ConstantParameter(
    *,
    value: Parameter,
    parameter: str = "{block}",
    name: str | None = None,
) -> Model:
    r"""A parameter that several models may share, $p = v$.

    value: its value, $v$

    gives parameter: WR2
    """

def WR2ExplicitExponentialTimeIntegration(
    *,
    rate: str = "{variable}_rate",
    time: str = "t",
    variable: str = "variable",
    name: str | None = None,
) -> Model:
    r"""A rotation update, $s = \exp((t - t_n) \dot s) \circ s_n$.

    reads rate: WR2, time: Scalar

    gives variable: MRP
    """

def WR2ImplicitExponentialTimeIntegration(
    *,
    variable: str = "variable",
    rate: str = "{variable}_rate",
    time: str = "t",
    variable_residual: str = "{variable}_residual",
    name: str | None = None,
) -> Model:
    r"""The residual of a rotation update, $r = s - \exp((t - t_n) \dot s) \circ s_n$.

    reads variable: MRP, rate: WR2, time: Scalar

    gives variable_residual: MRP
    """

def WR2InputParameter(
    *,
    variable: str = "variable",
    parameter: str = "parameter",
    name: str | None = None,
) -> Model:
    r"""A parameter that is read as an input, $p = x$.

    reads variable: WR2

    gives parameter: WR2
    """

def WR2ParameterToVariable(
    *,
    from_: Parameter,
    to: str = "to",
    name: str | None = None,
) -> Model:
    r"""A variable that has the value of a parameter, $x = p$.

    from: the parameter, $p$

    gives to: WR2
    """

def WiechertElement(
    *,
    equilibrium_modulus: Parameter,
    modulus_1: Parameter,
    viscosity_1: Parameter,
    modulus_2: Parameter,
    viscosity_2: Parameter,
    strain: str = "strain",
    viscous_strain_1: str = "viscous_strain_1",
    viscous_strain_2: str = "viscous_strain_2",
    stress: str = "stress",
    viscous_strain_1_rate: str = "{viscous_strain_1}_rate",
    viscous_strain_2_rate: str = "{viscous_strain_2}_rate",
    name: str | None = None,
) -> Model:
    r"""A spring beside two springs with dashpots,
    $\sigma = E_\infty \varepsilon + \sigma_1 + \sigma_2$,
    $\sigma_i = E_i (\varepsilon - \varepsilon_{v i}) = \eta_i \dot\varepsilon_{v i}$.

    equilibrium_modulus: stiffness of the lone spring, $E_\infty$
    modulus_1: stiffness of the first branch, $E_1$
    viscosity_1: viscosity of the first branch, $\eta_1$
    modulus_2: stiffness of the second branch, $E_2$
    viscosity_2: viscosity of the second branch, $\eta_2$

    reads strain: SR2, viscous_strain_1: SR2, viscous_strain_2: SR2

    gives stress: SR2, viscous_strain_1_rate: SR2, viscous_strain_2_rate: SR2
    """

def YieldFunction(
    *,
    yield_stress: Parameter,
    effective_stress: str = "effective_stress",
    isotropic_hardening: str | None = None,
    yield_function: str = "yield_function",
    name: str | None = None,
) -> Model:
    r"""A yield surface in stress, $f = \sqrt{2/3}\,(\bar\sigma - \sigma_y - h)$.

    yield_stress: initial size of the surface, $\sigma_y$

    reads effective_stress: Scalar, isotropic_hardening: Scalar

    gives yield_function: Scalar
    """

def ZeldovichFactor(
    *,
    surface_energy: Parameter,
    molar_volume: Constant,
    avogadro_number: Constant,
    boltzmann_constant: Constant,
    critical_radius: str = "critical_radius",
    temperature: str = "temperature",
    zeldovich_factor: str = "zeldovich_factor",
    name: str | None = None,
) -> Model:
    r"""The share of nuclei that go on growing, $Z = \frac{V_m}{2 \pi N_a R^2}
    \sqrt{\gamma / k T}$.

    surface_energy: energy of the interface, $\gamma$
    molar_volume: volume of an amount, $V_m$
    avogadro_number: particles of an amount, $N_a$
    boltzmann_constant: energy of a particle by temperature, $k$

    reads critical_radius: Scalar, temperature: Scalar

    gives zeldovich_factor: Scalar
    """

def ZenerElement(
    *,
    equilibrium_modulus: Parameter,
    maxwell_modulus: Parameter,
    maxwell_viscosity: Parameter,
    strain: str = "strain",
    viscous_strain: str = "viscous_strain",
    stress: str = "stress",
    viscous_strain_rate: str = "{viscous_strain}_rate",
    name: str | None = None,
) -> Model:
    r"""A spring beside a spring with a dashpot, $\sigma = E_\infty \varepsilon + \sigma_M$,
    $\sigma_M = E_M (\varepsilon - \varepsilon_v) = \eta_M \dot\varepsilon_v$.

    equilibrium_modulus: stiffness of the lone spring, $E_\infty$
    maxwell_modulus: stiffness of the spring before the dashpot, $E_M$
    maxwell_viscosity: viscosity of the dashpot, $\eta_M$

    reads strain: SR2, viscous_strain: SR2

    gives stress: SR2, viscous_strain_rate: SR2
    """
