# call: integer Models elasticity coefficients
[Models]
  [elasticity]
    type = LinearIsotropicElasticity
  []
[]
