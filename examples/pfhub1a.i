# PFHub benchmark 1a: spinodal decomposition in a periodic square, with its published parameters.
# The stiff part, -M k^2 (S + kappa k^2), is exact; steps grow until c changes fast somewhere.
M = 5
kappa = 2
S = 0.5
chemical = '5*(c-0.3)^2*(0.7-c)^2'

[Domain]
  dim = 2
  nx = 200
  ny = 200
  xmax = 200
  ymax = 200
[]

[Problem]
  marlin_compatible = false
[]

[TensorComputes]
  [Initialize]
    [c]
      type = ParsedCompute
      buffer = c
      extra_symbols = true
      expression = '0.5 + 0.01*(cos(0.105*x)*cos(0.11*y) + (cos(0.13*x)*cos(0.087*y))^2
        + cos(0.025*x-0.15*y)*cos(0.07*x-0.02*y))'
    []
    [linear]
      type = ParsedCompute
      buffer = linear
      extra_symbols = true
      expression = '-${M}*k2*(${S} + ${kappa}*k2)'
    []
    [laplacian]
      type = ReciprocalLaplacianFactor
      buffer = laplacian
      factor = ${M}
    []
  []
  [Solve]
    [cbar]
      type = ForwardFFT
      buffer = cbar
      input = c
    []
    [potential]
      type = ParsedCompute
      buffer = potential
      inputs = c
      expression = '${chemical} - ${S}/2*c^2'
      derivatives = c
    []
    [potential_bar]
      type = ForwardFFT
      buffer = potential_bar
      input = potential
    []
    [rest]
      type = ParsedCompute
      buffer = rest
      inputs = 'laplacian potential_bar'
      expression = 'laplacian*potential_bar'
    []
  []
  [Postprocess]
    [gradient_energy]
      type = FFTGradientSquare
      buffer = gradient_energy
      input = c
      factor = ${fparse kappa/2}
    []
    [energy]
      type = ParsedCompute
      buffer = energy
      inputs = 'c gradient_energy'
      expression = '${chemical} + gradient_energy'
    []
    [driving]
      type = ParsedCompute
      buffer = driving
      inputs = c
      expression = ${chemical}
      derivatives = c
    []
    [driving_bar]
      type = ForwardFFT
      buffer = driving_bar
      input = driving
    []
    [present_bar]
      type = ForwardFFT
      buffer = present_bar
      input = c
    []
    [rate_bar]
      type = ParsedCompute
      buffer = rate_bar
      inputs = 'present_bar driving_bar'
      extra_symbols = true
      expression = '-${M}*k2*(driving_bar + ${kappa}*k2*present_bar)'
    []
    [rate]
      type = InverseFFT
      buffer = rate
      input = rate_bar
    []
  []
[]

[TensorSolver]
  type = ETDRK4Solver
  buffer = c
  reciprocal_buffer = cbar
  linear_reciprocal = linear
  nonlinear_reciprocal = rest
  substeps = 5
[]

[Postprocessors]
  [F]
    type = TensorIntegralPostprocessor
    buffer = energy
    execute_on = 'INITIAL TIMESTEP_END'
  []
  [mean]
    type = TensorAveragePostprocessor
    buffer = c
    execute_on = 'INITIAL TIMESTEP_END'
  []
  [fall]
    type = TensorExtremeValuePostprocessor
    buffer = rate
    value_type = MIN
  []
  [rise]
    type = TensorExtremeValuePostprocessor
    buffer = rate
    value_type = MAX
  []
  [limit]
    type = ParsedPostprocessor
    pp_names = 'rise fall'
    expression = '0.05/max(rise, -fall)'
  []
[]

[TensorOutputs]
  [fields]
    type = XDMFTensorOutput
    buffer = c
    enable_hdf5 = true
    time_step_interval = 20
    execute_on = 'INITIAL TIMESTEP_END FINAL'
  []
[]

[Executioner]
  type = Transient
  end_time = 1e4
  dtmax = 10
  [TimeStepper]
    type = TensorSolveIterationAdaptiveDT
    dt = 0.1
    min_iterations = 1
    max_iterations = 1
    growth_factor = 1.1
    timestep_limiting_postprocessor = limit
  []
[]

[Outputs]
  csv = true
[]
