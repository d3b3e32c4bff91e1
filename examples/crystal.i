# A thousand copper single crystals of random orientation, stretched by 5 % at constant rate.
# Power-law slip on the twelve {111}<110> systems, Voce hardening shared by all, lattice rotation.
crystals = 1000
steps = 100
rate = 1e-3
end = 50

[Tensors]
  [times]
    type = Python
    expr = 'Scalar(torch.linspace(0, ${end}, ${steps}))'
  []
  [stretching]
    type = Python
    expr = 'SR2((${rate} * SR2.fill(1.0, -0.5, -0.5).data).expand(${steps}, 6))'
  []
  [spin]
    type = Python
    expr = 'WR2(torch.zeros(${steps}, 3))'
  []
  [orientations]
    # Shoemake's uniformly distributed quaternions; of q and -q the one that turns less.
    type = Python
    expr = '
      u = torch.rand(${crystals}, 3, generator=torch.Generator().manual_seed(1))
      a, b = 2 * math.pi * u[:, 1], 2 * math.pi * u[:, 2]
      small, large = torch.sqrt(1 - u[:, 0]), torch.sqrt(u[:, 0])
      vector = torch.stack([small * a.sin(), small * a.cos(), large * b.sin()], dim=-1)
      scalar = (large * b.cos())[:, None]
      result = MRP(vector * torch.where(scalar < 0, -1.0, 1.0) / (1 + scalar.abs()))
    '
  []
  [lattice]
    type = Python
    expr = 'Scalar(0.3615)'
  []
  [directions]
    type = Python
    expr = 'MillerIndex(torch.tensor([1, 1, 0]))'
  []
  [planes]
    type = Python
    expr = 'MillerIndex(torch.tensor([1, 1, 1]))'
  []
[]

[Data]
  [crystal_geometry]
    type = CubicCrystal
    lattice_parameter = 'lattice'
    slip_directions = 'directions'
    slip_planes = 'planes'
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
    coefficients = '127000 0.34'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
    strain = 'elastic_strain'
    stress = 'cauchy_stress'
  []
  [resolved_shear]
    type = ResolvedShear
    stress = 'cauchy_stress'
  []
  [slip_rate]
    type = PowerLawSlipRule
    n = 12
    gamma0 = 1e-3
  []
  [strength]
    type = SingleSlipStrengthMap
    constant_strength = 16
  []
  [hardening]
    type = VoceSingleSlipHardeningRule
    initial_slope = 250
    saturated_hardening = 90
  []
  [total_slip_rate]
    type = SumSlipRates
  []
  [plastic_stretching]
    type = PlasticDeformationRate
  []
  [plastic_spin]
    type = PlasticVorticity
  []
  [elastic_stretching]
    type = ElasticStrainRate
  []
  [lattice_spin]
    type = OrientationRate
  []
  [next_elastic_strain]
    type = SR2BackwardEulerTimeIntegration
    variable = 'elastic_strain'
  []
  [next_hardening]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'slip_hardening'
  []
  [next_orientation]
    type = WR2ImplicitExponentialTimeIntegration
    variable = 'orientation'
  []
  [balance]
    type = ComposedModel
    models = 'rotation elasticity resolved_shear slip_rate strength hardening total_slip_rate
              plastic_stretching plastic_spin elastic_stretching lattice_spin
              next_elastic_strain next_hardening next_orientation'
  []
  [first_strain]
    type = CrystalPlasticityStrainPredictor
    scale = 0.1
  []
  [first_others]
    type = ConstantExtrapolationPredictor
    unknowns_Scalar = 'slip_hardening'
    unknowns_MRP = 'orientation'
  []
  [guess]
    type = ComposedModel
    models = 'first_strain first_others'
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
    unknowns = 'elastic_strain slip_hardening orientation'
  []
[]

[Solvers]
  [newton]
    type = NewtonWithLineSearch
    max_linesearch_iterations = 5
  []
[]

[Drivers]
  [stretch]
    type = TransientDriver
    model = 'crystal'
    prescribed_time = 'times'
    prescribed_SR2_names = 'deformation_rate'
    prescribed_SR2_values = 'stretching'
    prescribed_WR2_names = 'vorticity'
    prescribed_WR2_values = 'spin'
    ic_MRP_names = 'orientation'
    ic_MRP_values = 'orientations'
  []
[]
