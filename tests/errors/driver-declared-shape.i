# call: driver driver
[Settings]
  [example_batch_shape]
    strain = '(2; 12)'
    strian = '(2; 12)'
  []
[]
[Tensors]
  [times]
    type = Python
    expr = 'Scalar(torch.linspace(0, 1, 5))'
  []
  [strains]
    type = Python
    expr = 'SR2(torch.zeros(5, 12, 6))'
  []
[]
[Models]
  [rate]
    type = SR2VariableRate
    variable = 'strain'
  []
[]
[Drivers]
  [driver]
    type = TransientDriver
    model = 'rate'
    prescribed_time = 'times'
    prescribed_SR2_names = 'strain'
    prescribed_SR2_values = 'strains'
  []
[]
