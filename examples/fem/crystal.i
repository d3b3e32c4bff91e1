# A copper crystal at small strains, MPa and seconds: slip by a power law on the twelve {111}<110>
# systems, one strength for all, a lattice that stays as it was. `orientation` is that of a grain.
[Data]
  [crystal_geometry]
    type = CubicCrystal
    lattice_parameter = 1
    slip_directions = '1 1 0'
    slip_planes = '1 1 1'
  []
[]

[Models]
  [rotation]
    type = RotationMatrix
    from = 'orientation'
    to = 'orientation_matrix'
  []
  [elasticity]
    type = LinearIsotropicElasticity
    coefficients = '127e3 0.34'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
    strain = 'elastic_strain'
  []
  [resolved_shear]
    type = ResolvedShear
  []
  [slip_rate]
    type = PowerLawSlipRule
    n = 12
    gamma0 = 1e-3
  []
  [strength]
    type = SingleSlipStrengthMap
    constant_strength = 60
  []
  [hardening]
    type = VoceSingleSlipHardeningRule
    initial_slope = 250
    saturated_hardening = 90
  []
  [total_slip_rate]
    type = SumSlipRates
  []
  [plastic_rate]
    type = PlasticDeformationRate
  []
  [strain_rate]
    type = SR2VariableRate
    variable = 'strain'
  []
  [elastic_rate]
    type = SR2LinearCombination
    from = 'strain_rate plastic_deformation_rate'
    to = 'elastic_strain_rate'
    weights = '1 -1'
  []
  [next_elastic_strain]
    type = SR2BackwardEulerTimeIntegration
    variable = 'elastic_strain'
  []
  [next_hardening]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'slip_hardening'
  []
  [balance]
    type = ComposedModel
    models = 'rotation elasticity resolved_shear slip_rate strength hardening total_slip_rate
              plastic_rate strain_rate elastic_rate next_elastic_strain next_hardening'
  []
  [guess]
    type = ConstantExtrapolationPredictor
    unknowns_SR2 = 'elastic_strain'
    unknowns_Scalar = 'slip_hardening'
  []
  [return_map]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
    predictor = 'guess'
  []
  [crystal]
    type = ComposedModel
    models = 'return_map elasticity'
    additional_outputs = 'elastic_strain'
  []
[]

[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'balance'
    unknowns = 'elastic_strain slip_hardening'
  []
[]

[Solvers]
  [newton]
    type = NewtonWithLineSearch
    max_its = 50
    max_linesearch_iterations = 5
    abs_tol = 1e-12
    rel_tol = 1e-10
  []
[]
