# J2 plasticity with linear hardening, as finite-element codes have it built in.
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
  [hardening]
    type = LinearIsotropicHardening
    hardening_modulus = 2000
  []
  [yield]
    type = YieldFunction
    yield_stress = 200
    isotropic_hardening = 'isotropic_hardening'
  []
  [direction]
    type = AssociativeJ2FlowDirection
    mandel_stress = 'stress'
  []
  [flow]
    type = AssociativePlasticFlow
    flow_rate = 'gamma'
    plastic_strain_rate = 'plastic_strain_rate'
  []
  [integrate_plastic_strain]
    type = SR2BackwardEulerTimeIntegration
    variable = 'plastic_strain'
  []
  [integrate_equivalent_plastic_strain]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'equivalent_plastic_strain'
    rate = 'gamma'
  []
  [complementarity]
    type = MinMapComplementarity
    a = 'yield_function'
    b = 'gamma'
    complementarity = 'gamma_residual'
  []
  [residuals]
    type = ComposedModel
    models = 'elastic_strain elasticity vonmises hardening yield direction flow
              integrate_plastic_strain integrate_equivalent_plastic_strain complementarity'
  []
  [update]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
    guess = 'old'
  []
  [j2]
    type = ComposedModel
    models = 'update elastic_strain elasticity'
    additional_outputs = 'plastic_strain equivalent_plastic_strain gamma'
  []
[]
[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'residuals'
    unknowns = 'plastic_strain equivalent_plastic_strain gamma'
  []
[]
[Solvers]
  [newton]
    type = Newton
    abs_tol = 1e-10
    rel_tol = 1e-12
    max_its = 25
    linear_solver = 'lu'
  []
  [lu]
    type = DenseLU
  []
[]
