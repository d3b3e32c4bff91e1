# call: build normality
[Models]
  [elasticity]
    type = LinearIsotropicElasticity
    coefficients = '200 0.3'
    coefficient_types = 'YOUNGS_MODULUS POISSONS_RATIO'
  []
  [normality]
    type = Normality
    model = 'elasticity'
    function = 'stress'
    from = 'strain'
    to = 'N M'
  []
[]
