[Preset]
  section = Models
  doc = 'Viscoplasticity of a cubic single crystal: slip by a power law of the resolved shear
         stress, one strength for all slip systems, and a lattice that turns. Reads
         deformation_rate and vorticity, gives cauchy_stress, elastic_strain, orientation, whose
         initial value a driver gives, and what hardens.'
  [E]
    kind = parameter
    above = 0
    doc = 'Young modulus along a cube axis'
  []
  [nu]
    kind = parameter
    above = -1
    below = 0.5
    doc = 'Poisson ratio along a cube axis'
  []
  [elasticity]
    kind = choice
    choices = 'isotropic cubic'
    default = isotropic
    doc = 'whether the shear modulus along cube axes is that of E and nu, or one of its own'
  []
  [shear_modulus]
    kind = parameter
    above = 0
    when = 'elasticity cubic'
    doc = 'shear modulus along cube axes'
  []
  [slip_systems]
    kind = choice
    choices = 'fcc bcc'
    default = fcc
    doc = 'the 12 systems {111}<110> or {110}<111>'
  []
  [strength]
    kind = parameter
    above = 0
    doc = 'strength of every slip system without hardening'
  []
  [reference_rate]
    kind = parameter
    above = 0
    doc = 'slip rate where the resolved shear stress is the strength'
  []
  [exponent]
    kind = parameter
    from = 1
    doc = 'exponent of the slip rate'
  []
  [hardening]
    kind = choice
    choices = 'none linear voce'
    default = none
    doc = 'how the strength grows with slip: not, by initial_slope, or up to saturated_hardening'
  []
  [initial_slope]
    kind = parameter
    when = 'hardening linear voce'
    doc = 'strength per slip at first'
  []
  [saturated_hardening]
    kind = parameter
    above = 0
    when = 'hardening voce'
    doc = 'growth of the strength once saturated'
  []
[]

{% set slips = "'1 1 0'" if slip_systems == "fcc" else "'1 1 1'" %}
{% set planes = "'1 1 1'" if slip_systems == "fcc" else "'1 1 0'" %}
[Data]
  [{{ name }}_crystal]
    type = CubicCrystal
    lattice_parameter = 1
    slip_directions = {{ slips }}
    slip_planes = {{ planes }}
  []
[]

[Models]
  [{{ name }}_orientation_matrix]
    type = RotationMatrix
    from = orientation
    to = orientation_matrix
  []
{% if elasticity == "cubic" %}
  [{{ name }}_stiffness]
    type = CubicElasticityTensor
    coefficients = '${E} ${nu} ${shear_modulus}'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO SHEAR_MODULUS'
  []
  [{{ name }}_elasticity]
    type = GeneralElasticity
    elastic_stiffness_tensor = {{ name }}_stiffness
    strain = elastic_strain
    stress = cauchy_stress
  []
{% else %}
  [{{ name }}_elasticity]
    type = LinearIsotropicElasticity
    coefficients = '${E} ${nu}'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
    strain = elastic_strain
    stress = cauchy_stress
  []
{% endif %}
  [{{ name }}_resolved_shear]
    type = ResolvedShear
    stress = cauchy_stress
    crystal_geometry = {{ name }}_crystal
  []
  [{{ name }}_elastic_strain_rate]
    type = ElasticStrainRate
  []
  [{{ name }}_plastic_vorticity]
    type = PlasticVorticity
    crystal_geometry = {{ name }}_crystal
  []
  [{{ name }}_plastic_deformation_rate]
    type = PlasticDeformationRate
    crystal_geometry = {{ name }}_crystal
  []
  [{{ name }}_orientation_rate]
    type = OrientationRate
  []
  [{{ name }}_slip_rate]
    type = PowerLawSlipRule
    n = ${exponent}
    gamma0 = ${reference_rate}
  []
  [{{ name }}_slip_strength]
    type = SingleSlipStrengthMap
    constant_strength = ${strength}
    crystal_geometry = {{ name }}_crystal
  []
  [{{ name }}_total_slip_rate]
    type = SumSlipRates
  []
{% if hardening != "voce" %}
  [{{ name }}_hardening_rate]
    type = LinearSingleSlipHardeningRule
    hardening_slope = {{ "0" if hardening == "none" else "${initial_slope}" }}
  []
{% else %}
  [{{ name }}_hardening_rate]
    type = VoceSingleSlipHardeningRule
    initial_slope = ${initial_slope}
    saturated_hardening = ${saturated_hardening}
  []
{% endif %}
  [{{ name }}_hardening]
    type = ScalarBackwardEulerTimeIntegration
    variable = slip_hardening
  []
  [{{ name }}_elastic_strain]
    type = SR2BackwardEulerTimeIntegration
    variable = elastic_strain
  []
  [{{ name }}_orientation]
    type = WR2ImplicitExponentialTimeIntegration
    variable = orientation
  []
  [{{ name }}_residual]
    type = ComposedModel
    models = '{{ name }}_orientation_matrix {{ name }}_elasticity {{ name }}_orientation_rate
              {{ name }}_resolved_shear {{ name }}_elastic_strain_rate {{ name }}_plastic_deformation_rate
              {{ name }}_plastic_vorticity {{ name }}_slip_rate {{ name }}_slip_strength
              {{ name }}_total_slip_rate {{ name }}_hardening_rate {{ name }}_hardening
              {{ name }}_elastic_strain {{ name }}_orientation'
  []
  [{{ name }}_strain_predictor]
    type = CrystalPlasticityStrainPredictor
    scale = 0.1
  []
  [{{ name }}_state_predictor]
    type = ConstantExtrapolationPredictor
    unknowns_MRP = orientation
    unknowns_Scalar = slip_hardening
  []
  [{{ name }}_predictor]
    type = ComposedModel
    models = '{{ name }}_strain_predictor {{ name }}_state_predictor'
  []
  [{{ name }}_update]
    type = ImplicitUpdate
    equation_system = {{ name }}_system
    solver = {{ name }}_newton
    predictor = {{ name }}_predictor
  []
  [{{ name }}]
    type = ComposedModel
    models = '{{ name }}_update {{ name }}_elasticity'
    additional_outputs = 'elastic_strain orientation'
  []
[]

{% set state = ["elastic_strain", "slip_hardening", "orientation"] %}
[EquationSystems]
  [{{ name }}_system]
    type = NonlinearSystem
    model = {{ name }}_residual
    unknowns = '{{ state | join(" ") }}'
    residuals = '{{ state | join("_residual ") }}_residual'
  []
[]

[Solvers]
  [{{ name }}_newton]
    type = NewtonWithLineSearch
    max_linesearch_iterations = 5
    linear_solver = {{ name }}_lu
  []
  [{{ name }}_lu]
    type = DenseLU
  []
[]
