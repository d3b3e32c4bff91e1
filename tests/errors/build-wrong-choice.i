# call: build elasticity
[Models]
  [elasticity]
    type = LinearIsotropicElasticity
    coefficient_types = 'YOUNGS_MODULUS POISONS_RATIO'
    compliance = maybe
    stain = 'e'
  []
[]
