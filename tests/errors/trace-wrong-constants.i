# call: trace elasticity
[Models]
  [elasticity]
    type = LinearIsotropicElasticity
    coefficients = '200 80'
    coefficient_types = 'YOUNGS_MODULUS YOUNGS_MODULUS'
  []
[]
