# call: read
[Models]
  [elasticity]
    type = LinearIsotropicElasticity
[]
