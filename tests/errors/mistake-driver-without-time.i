# call: driver stretch
[Tensors]
  [times]
    type = Python
    expr = 'Scalar(torch.linspace(0, 1, 5))'
  []
  [strains]
    type = Python
    expr = 'SR2(torch.linspace(0, 1, 5)[:, None] * SR2.fill(0.01, -0.003, -0.003).data)'
  []
[]
[Models]
  [elasticity]
    type = LinearIsotropicElasticity
    coefficients = '200000 0.3'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
  []
[]
[Drivers]
  [stretch]
    type = TransientDriver
    model = elasticity
    prescribed_SR2_names = strain
    prescribed_SR2_values = strains
  []
[]
