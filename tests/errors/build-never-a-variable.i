# call: build k
[Tensors]
  [p0]
    type = Python
    expr = 'Scalar(5.0)'
  []
[]
[Models]
  [k]
    type = ArrheniusParameter
    reference_value = 'p_0'
    activation_energy = '1 kJ'
    ideal_gas_constant = R
  []
[]
