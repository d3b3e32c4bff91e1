# call: driver driver
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
    prescribed_time = '1.0'
  []
[]
