# call: read
[Models]
  [elasticity]
    coefficients = '100 0.3'
  []
[]
[Models]
  [flow]
    type = AssociativePlasticFlow
  []
[]
Models/elasticity/coefficients = '200 0.3'
