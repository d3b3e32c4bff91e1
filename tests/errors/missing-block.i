# call: integer Models elastcity coefficients
[Models]
  [elasticity]
    type = LinearIsotropicElasticity
  []
[]
