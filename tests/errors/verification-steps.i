# call: driver verification
[Tensors]
  [times]
    type = Python
    expr = 'Scalar(torch.linspace(0, 1, 5))'
  []
[]
[Models]
  [rate]
    type = ScalarVariableRate
    variable = 'x'
  []
[]
[Drivers]
  [driver]
    type = TransientDriver
    model = 'rate'
    prescribed_time = 'times'
  []
  [verification]
    type = Verification
    driver = 'driver'
    time_steps = '3 5'
    Scalar_names = 'output.x_rat input.x'
    Scalar_values = 'times 1'
  []
[]
