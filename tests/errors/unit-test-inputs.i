# call: driver unit
[Tensors]
  [strain]
    type = Python
    expr = 'SR2.fill(0.1)'
  []
[]
[Models]
  [rate]
    type = SR2VariableRate
    variable = 'strain'
  []
[]
[Drivers]
  [unit]
    type = ModelUnitTest
    model = 'rate'
    input_SR2_names = 'strain'
    input_SR2_values = 'strain'
    input_Scalar_names = 't t~1'
    input_Scalar_values = '1 strain'
    output_Scalar_names = 'strain_rate'
    output_Scalar_values = '2'
  []
[]
