[elasticity]
  type = LinearIsotropicElasticity
  coefficients 100
[]
