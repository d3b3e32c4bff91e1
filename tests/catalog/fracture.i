# Elastic brittle fracture with a phase field, written after the description of the published case.

[Tensors]
  [times]
    type = Python
    expr = 'Scalar(torch.linspace(0, 3, 1000, dtype=torch.float64))'
  []
  [strains]
    type = Python
    expr = 'SR2(torch.linspace(0, 1, 1000, dtype=torch.float64)[:, None] * SR2.fill(0.016, -0.008, -0.008).data)'
  []
[]
[Models]
  [degrade]
    type = PowerDegradationFunction
    phase = 'd'
    degradation = 'g'
    power = 2
  []
  [elastic]
    type = LinearIsotropicStrainEnergyDensity
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
    coefficients = '25.84e3 0.18'
    decomposition = VOLDEV
    strain = 'E'
    active_strain_energy_density = 'psie_active'
    inactive_strain_energy_density = 'psie_inactive'
  []
  [active]
    type = ScalarMultiplication
    from = 'g psie_active'
    to = 'degraded'
  []
  [crack]
    type = CrackGeometricFunctionAT2
    phase = 'd'
    crack = 'alpha'
  []
  [sum]
    type = ScalarLinearCombination
    from = 'degraded psie_inactive alpha'
    weights = '1 1 0.0152'
    to = 'psi'
  []
  [energy]
    type = ComposedModel
    models = 'degrade elastic active crack sum'
  []
  [dpsidd]
    type = Normality
    model = 'energy'
    function = 'psi'
    from = 'd'
    to = 'dpsi_dd'
  []
  [drate]
    type = ScalarVariableRate
    variable = 'd'
  []
  [force]
    type = ScalarLinearCombination
    from = 'dpsi_dd d_rate'
    to = 'F'
  []
  [complementarity]
    type = FBComplementarity
    a = 'F'
    a_inequality = 'LE'
    b = 'd_rate'
    b_inequality = 'GE'
    complementarity = 'd_residual'
  []
  [residual]
    type = ComposedModel
    models = 'dpsidd drate force complementarity'
  []
  [predictor]
    type = LinearExtrapolationPredictor
    unknowns_Scalar = 'd'
  []
  [update]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
    predictor = 'predictor'
  []
  [stress]
    type = Normality
    model = 'energy'
    function = 'psi'
    from = 'E'
    to = 'S'
  []
  [model]
    type = ComposedModel
    models = 'update stress'
    additional_outputs = 'd'
  []
[]
[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'residual'
    unknowns = 'd'
  []
[]
[Solvers]
  [newton]
    type = Newton
    rel_tol = 1e-8
    abs_tol = 1e-10
    max_its = 50
    linear_solver = 'lu'
  []
  [lu]
    type = DenseLU
  []
[]
[Drivers]
  [driver]
    type = TransientDriver
    model = 'model'
    prescribed_time = 'times'
    prescribed_SR2_names = 'E'
    prescribed_SR2_values = 'strains'
  []
[]
