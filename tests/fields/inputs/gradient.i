# A gradient with its three components, written at nodes.
[Domain]
  dim = 3
  nx = 20
  ny = 10
  nz = 5
[]

[TensorBuffers]
  [grad_c]
    type = VectorTensor
  []
[]

[TensorComputes]
  [Initialize]
    [c]
      type = ParsedCompute
      buffer = c
      extra_symbols = true
      expression = 'sin(8*pi*x)+cos(4*pi*y)+sin(2*pi*z)'
    []
    [grad_c]
      type = GradientTensor
      buffer = grad_c
      input = c
    []
    [square]
      type = FFTGradientSquare
      buffer = square
      input = c
    []
    [wrong]
      type = ParsedCompute
      buffer = wrong
      inputs = square
      extra_symbols = true
      expression = 'abs(square - (8*pi*cos(8*pi*x))^2 - (4*pi*sin(4*pi*y))^2 - (2*pi*cos(2*pi*z))^2)'
    []
  []
[]

[Postprocessors]
  [wrong]
    type = TensorIntegralPostprocessor
    buffer = wrong
    execute_on = INITIAL
  []
[]

[TensorOutputs]
  [xdmf]
    type = XDMFTensorOutput
    buffer = 'c grad_c'
    output_mode = 'NODE NODE'
    enable_hdf5 = true
  []
[]

[Executioner]
  type = Transient
  num_steps = 1
[]
