# call: build steel
[Tensors]
  [modulus]
    type = Python
    expr = 'SR2(torch.zeros(6))'
  []
[]
[Models]
  [steel]
    type = IsotropicElasticity
    E = modulus
    nu = 0.3
  []
[]
