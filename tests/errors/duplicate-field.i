# call: read
[Models]
  [elasticity]
    type = LinearIsotropicElasticity
    coefficients = '100 0.3'
    coefficients = '200 0.3'
  []
[]
