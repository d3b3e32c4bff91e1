# call: read
[Models]
  [elasticity]
    type = LinearIsotropicElasticity
  []
  [elasticity]
    type = CubicElasticityTensor
  []
[]
