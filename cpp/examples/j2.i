# J2 plasticity with Voce hardening: strain and the old state -> stress and the new state.
[Models]
  [elastic_strain]
    type = SR2LinearCombination
    from = 'strain plastic_strain'
    to = 'elastic_strain'
    weights = '1 -1'
  []
  [elasticity]
    type = LinearIsotropicElasticity
    coefficients = '200000 0.3'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
    strain = 'elastic_strain'
  []
  [vonmises]
    type = SR2Invariant
    invariant_type = 'VONMISES'
    tensor = 'stress'
    invariant = 'effective_stress'
  []
  [surface]
    type = YieldFunction
    yield_stress = 200
    isotropic_hardening = 'isotropic_hardening'
  []
  [flow]
    type = ComposedModel
    models = 'vonmises surface'
  []
  [normality]
    type = Normality
    model = 'flow'
    function = 'yield_function'
    from = 'stress isotropic_hardening'
    to = 'flow_direction isotropic_hardening_direction'
  []
  [flow_plastically]
    type = AssociativePlasticFlow
  []
  [harden]
    type = VoceIsotropicHardening
    saturated_hardening = 80
    saturation_rate = 40
  []
  [accumulate]
    type = AssociativeIsotropicPlasticHardening
  []
  [integrate_plastic_strain]
    type = SR2BackwardEulerTimeIntegration
    variable = 'plastic_strain'
  []
  [integrate_equivalent]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'equivalent_plastic_strain'
  []
  [consistency]
    type = FBComplementarity
    a = 'yield_function'
    b = 'flow_rate'
  []
  [residual]
    type = ComposedModel
    models = 'elastic_strain elasticity vonmises surface normality flow_plastically harden accumulate
              integrate_plastic_strain integrate_equivalent consistency'
  []
  [guess]
    type = ConstantExtrapolationPredictor
    unknowns_SR2 = 'plastic_strain'
    unknowns_Scalar = 'equivalent_plastic_strain flow_rate'
  []
  [update]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
    predictor = 'guess'
  []
  [j2]
    type = ComposedModel
    models = 'update elastic_strain elasticity'
    additional_outputs = 'plastic_strain'
  []
[]
[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'residual'
    unknowns = 'plastic_strain equivalent_plastic_strain flow_rate'
    residuals = 'plastic_strain_residual equivalent_plastic_strain_residual complementarity'
  []
[]
[Solvers]
  [newton]
    type = Newton
  []
[]
