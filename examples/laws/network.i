# Creep at a rate that a network gives, under stress and temperature that vary from point to point.
# NetworkCreepRate stands in network.py: ingot run network.i --load network.py
points = 20
steps = 30

[Tensors]
  [times]
    type = Python
    expr = 'Scalar(torch.linspace(0, 10, ${steps}))'
  []
  [stresses]
    type = Python
    expr = 'Scalar(torch.linspace(0, 2, ${points}).expand(${steps}, ${points}))'
  []
  [temperatures]
    type = Python
    expr = 'Scalar(torch.linspace(1, -1, ${points}).expand(${steps}, ${points}))'
  []
  [by_stress]
    type = Python
    expr = 'Scalar(torch.tensor([0.9, -0.4, 0.3, 1.2]), sub_batch_ndim=1)'
  []
  [by_temperature]
    type = Python
    expr = 'Scalar(torch.tensor([0.5, 0.8, -0.6, 0.1]), sub_batch_ndim=1)'
  []
  [by_strain]
    type = Python
    expr = 'Scalar(torch.tensor([-1.1, 0.2, 0.7, -0.5]), sub_batch_ndim=1)'
  []
  [first]
    type = Python
    expr = 'Scalar(torch.tensor([0.1, -0.2, 0.0, 0.3]), sub_batch_ndim=1)'
  []
  [weights]
    type = Python
    expr = 'Scalar(torch.tensor([[0.7, -0.3, 0.2, 0.5], [0.4, 0.6, -0.8, 0.9], [-0.5, 0.1, 0.3, 0.2]]), sub_batch_ndim=2)'
  []
  [second]
    type = Python
    expr = 'Scalar(torch.tensor([0.2, -0.1, 0.4]), sub_batch_ndim=1)'
  []
  [result]
    type = Python
    expr = 'Scalar(torch.tensor([0.3, 0.2, -0.1]), sub_batch_ndim=1)'
  []
[]

[Models]
  [rate]
    type = NetworkCreepRate
    by_stress = 'by_stress'
    by_temperature = 'by_temperature'
    by_strain = 'by_strain'
    first = 'first'
    weights = 'weights'
    second = 'second'
    result = 'result'
    rate = 'creep_strain_rate'
  []
  [integration]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'creep_strain'
  []
  [residual]
    type = ComposedModel
    models = 'rate integration'
  []
  [creep]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
  []
[]

[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'residual'
    unknowns = 'creep_strain'
  []
[]

[Solvers]
  [newton]
    type = Newton
    linear_solver = 'lu'
  []
  [lu]
    type = DenseLU
  []
[]

[Drivers]
  [hold]
    type = TransientDriver
    model = 'creep'
    prescribed_time = 'times'
    prescribed_Scalar_names = 'stress temperature'
    prescribed_Scalar_values = 'stresses temperatures'
  []
[]
