# A viscoplastic steel whose yield stress is 200 times a strength that is given at every point.
[Models]
  [strengths]
    type = ScalarLinearCombination
    from = 'strength'
    to = 'yield_stress'
    weights = 200
  []
  [mandel]
    type = IsotropicMandelStress
    cauchy_stress = 'stress'
  []
  [vonmises]
    type = SR2Invariant
    invariant_type = 'VONMISES'
    tensor = 'mandel_stress'
    invariant = 'effective_stress'
  []
  [hardening]
    type = VoceIsotropicHardening
    saturated_hardening = 60
    saturation_rate = 100
  []
  [yield]
    type = YieldFunction
    yield_stress = 'yield_stress'
    isotropic_hardening = 'isotropic_hardening'
  []
  [flow]
    type = ComposedModel
    models = 'vonmises yield'
  []
  [normality]
    type = Normality
    model = 'flow'
    function = 'yield_function'
    from = 'mandel_stress isotropic_hardening'
    to = 'flow_direction isotropic_hardening_direction'
  []
  [rate]
    type = PerzynaPlasticFlowRate
    reference_stress = 100
    exponent = 4
  []
  [plastic]
    type = AssociativePlasticFlow
  []
  [equivalent]
    type = AssociativeIsotropicPlasticHardening
  []
  [total]
    type = SR2VariableRate
    variable = 'strain'
    variable_rate = 'total_rate'
  []
  [elastic]
    type = SR2LinearCombination
    from = 'total_rate plastic_strain_rate'
    to = 'elastic_strain_rate'
    weights = '1 -1'
  []
  [elasticity]
    type = LinearIsotropicElasticity
    coefficients = '200000 0.3'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
    rate_form = true
    strain = 'elastic_strain'
  []
  [stress]
    type = SR2BackwardEulerTimeIntegration
    variable = 'stress'
  []
  [ep]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'equivalent_plastic_strain'
  []
  [all]
    type = ComposedModel
    models = 'strengths mandel vonmises hardening yield normality rate plastic equivalent total elastic
              elasticity stress ep'
  []
[]
[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'all'
    unknowns = 'stress equivalent_plastic_strain'
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
[Models]
  [predictor]
    type = ConstantExtrapolationPredictor
    unknowns_SR2 = 'stress'
    unknowns_Scalar = 'equivalent_plastic_strain'
  []
  [steel]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
    predictor = 'predictor'
  []
[]
