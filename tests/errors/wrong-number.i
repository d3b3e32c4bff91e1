# call: numbers Models elasticity coefficients
[Models]
  [elasticity]
    coefficients = '100 0,3'
  []
[]
