# call: driver elasticity
[Drivers]
  [elasticity]
    type = LinearIsotropicElasticity
  []
[]
