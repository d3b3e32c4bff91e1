# call: driver driver
[Tensors]
  [times]
    type = Python
    expr = 'Scalar(torch.arange(3.0) / torch.tensor([1.0, 1.0, 0.0]))'
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
  []
[]
