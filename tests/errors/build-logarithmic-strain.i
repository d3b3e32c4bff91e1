# call: build finite
[Models]
  [elasticity]
    type = LinearIsotropicElasticity
    coefficients = '200000 0.3'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
  []
  [finite]
    type = LogarithmicStrain
    model = 'elasticity'
    strain = 'strian'
    stress = 'tension'
  []
[]
