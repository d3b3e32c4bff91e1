# A rotated grain of a phase-field crystal: implicit Euler by secants, steps that adapt.
angle = 0.95
L = ${fparse 12*pi}

[Domain]
  dim = 2
  nx = 40
  ny = 40
  xmax = ${L}
  ymax = ${fparse 12*pi/sin(pi/3)}
[]

[TensorComputes]
  [Initialize]
    [inner]
      type = ParsedCompute
      buffer = inner
      extra_symbols = true
      expression = 'a := ${angle}; b := a+pi/3; c := a-pi/3;
        -(sin((sin(a)*y+cos(a)*x)/2)^2 + sin((sin(b)*y+cos(b)*x)/2)^2 + sin((sin(c)*y+cos(c)*x)/2)^2 - 1.5)/4'
    []
    [outer]
      type = ParsedCompute
      buffer = outer
      extra_symbols = true
      expression = 'b := pi/3; c := -pi/3;
        -(sin(x/2)^2 + sin((sin(b)*y+cos(b)*x)/2)^2 + sin((sin(c)*y+cos(c)*x)/2)^2 - 1.5)/4'
    []
    [psi]
      type = ParsedCompute
      buffer = psi
      extra_symbols = true
      inputs = 'inner outer'
      expression = 'if((x-6*pi)^2 + (y-6*pi)^2 < (4*pi)^2, inner, outer)'
    []
    [linear]
      type = SwiftHohenbergLinear
      buffer = linear
      r = 0.025
    []
  []
  [Solve]
    [root]
      [psibar]
        type = ForwardFFT
        buffer = psibar
        input = psi
      []
      [nonlinear]
        type = ParsedCompute
        buffer = nonlinear
        inputs = psi
        expression = '0.2*psi^2 - psi^3'
      []
      [nonlinear_bar]
        type = ForwardFFT
        buffer = nonlinear_bar
        input = nonlinear
      []
    []
  []
[]

[TensorSolver]
  type = SecantSolver
  root_compute = root
  buffer = psi
  reciprocal_buffer = psibar
  linear_reciprocal = linear
  nonlinear_reciprocal = nonlinear_bar
  substeps = 3
[]

[Postprocessors]
  [dt]
    type = TimestepSize
  []
[]

[Executioner]
  type = Transient
  num_steps = 10
  dtmax = 500
  [TimeStepper]
    type = TensorSolveIterationAdaptiveDT
    dt = 1
    min_iterations = 100
    max_iterations = 400
    growth_factor = 1.4
    cutback_factor = 0.9
  []
[]
