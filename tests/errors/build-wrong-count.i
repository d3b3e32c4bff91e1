# call: build elasticity
[Models]
  [elasticity]
    type = LinearIsotropicElasticity
    coefficients = '1 2 3'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
  []
[]
