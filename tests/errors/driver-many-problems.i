# call: driver driver
[Tensors]
  [times]
    type = Python
    expr = 'Scalar(torch.linspace(0, 1, 5))'
  []
  [strains]
    type = Python
    expr = 'SR2(torch.zeros(4, 6))'
  []
  [rows]
    type = Python
    expr = 'Scalar(torch.zeros(5, 2))'
  []
  [start]
    type = Python
    expr = 'Scalar(torch.zeros(3))'
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
    prescribd_Vec_names = 'x'
    prescribed_SR2_names = 'strain strian'
    prescribed_SR2_values = 'strains strains'
    prescribed_Scalar_names = 't~1 t'
    prescribed_Scalar_values = 'rows rows'
    prescribed_WR2_names = 'strain_rate'
    prescribed_WR2_values = 'strains missing'
    ic_R2_names = 'spin'
    ic_Scalar_names = 'strain_rate'
    ic_Scalar_values = 'start'
  []
[]
