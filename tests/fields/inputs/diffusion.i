# Diffusion by differences on the grid, without transforms.
[Domain]
  dim = 2
  nx = 80
  ny = 60
  parallel_mode = REAL_SPACE
  periodic_directions = 'X Y'
  xmin = -1
  ymin = -1
[]

[TensorComputes]
  [Initialize]
    [u]
      type = ParsedCompute
      buffer = u
      extra_symbols = true
      expression = 'exp(-100*(x^2+y^2))'
      expand = REAL
    []
  []
  [Solve]
    [rate]
      type = FiniteDifferenceLaplacian
      buffer = rate
      input = u
    []
  []
[]

[TensorSolver]
  type = RealSpaceForwardEuler
  buffer = u
  time_derivative = rate
  substeps = 100
[]

[Postprocessors]
  [U]
    type = TensorIntegralPostprocessor
    buffer = u
  []
  [max_u]
    type = TensorExtremeValuePostprocessor
    buffer = u
    value_type = MAX
  []
[]

[Executioner]
  type = Transient
  num_steps = 1
  dt = 0.01
[]

[Outputs]
  csv = true
[]
