# A yield stress that is a cubic of plastic strain, with coefficients tabulated by temperature.
# TabulatedPolynomial stands in polynomial.py: ingot run polynomial.i --load polynomial.py
[Tensors]
  [times]
    type = Python
    expr = 'Scalar(torch.linspace(0, 1, 11))'
  []
  [strains]
    type = Python
    expr = 'Scalar(torch.linspace(0, 0.5, 11)[:, None].expand(11, 3))'
  []
  [measured]
    type = Python
    expr = 'Scalar(torch.tensor([250.0, 450.0, 700.0]).expand(11, 3))'
  []
  [knots]
    type = Python
    expr = 'Scalar(torch.tensor([300.0, 400.0, 600.0]), sub_batch_ndim=1)'
  []
  [constant]
    type = Python
    expr = 'Scalar(torch.tensor([200.0, 180.0, 120.0]), sub_batch_ndim=1)'
  []
  [linear]
    type = Python
    expr = 'Scalar(torch.tensor([400.0, 300.0, 100.0]), sub_batch_ndim=1)'
  []
  [quadratic]
    type = Python
    expr = 'Scalar(torch.tensor([-300.0, -200.0, -50.0]), sub_batch_ndim=1)'
  []
  [cubic]
    type = Python
    expr = 'Scalar(torch.tensor([100.0, 50.0, 10.0]), sub_batch_ndim=1)'
  []
[]

[Models]
  [yield_stress]
    type = TabulatedPolynomial
    argument = 'plastic_strain'
    temperatures = 'knots'
    coefficients = 'constant linear quadratic cubic'
    value = 'yield_stress'
  []
[]

[Drivers]
  [curve]
    type = TransientDriver
    model = 'yield_stress'
    prescribed_time = 'times'
    prescribed_Scalar_names = 'plastic_strain temperature'
    prescribed_Scalar_values = 'strains measured'
  []
[]
