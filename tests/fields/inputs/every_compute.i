# One of each compute that fills a buffer or works on spectra, around a small Cahn-Hilliard solve.
[Domain]
  dim = 2
  nx = 8
  ny = 6
  xmax = 3
  ymax = 3
[]

[Functions]
  [wave]
    type = ParsedFunction
    expression = 'sin(x) + t'
  []
[]

[TensorComputes]
  [Initialize]
    [c]
      type = ParsedCompute
      buffer = c
      extra_symbols = true
      expression = '0.5 + 0.05*cos(2*pi*x/3)*sin(2*pi*y/3)'
      expand = REAL
    []
    [random]
      type = RandomTensor
      buffer = random
      min = 0
      max = 1
      seed = 0
    []
    [mobility]
      type = ReciprocalLaplacianFactor
      buffer = mobility
      factor = 0.2
    []
    [stiffness]
      type = ReciprocalLaplacianSquareFactor
      buffer = stiffness
      factor = -0.001
    []
    [psi]
      type = ConstantTensor
      buffer = psi
      real = 1
    []
  []
  [Solve]
    [mu]
      type = ParsedCompute
      buffer = mu
      inputs = c
      expression = '0.1*c^2*(c-1)^2'
      derivatives = c
    []
    [mubar]
      type = ForwardFFT
      buffer = mubar
      input = mu
    []
    [rate]
      type = ParsedCompute
      buffer = rate
      inputs = 'mobility mubar'
      expression = 'mobility*mubar'
    []
    [cbar]
      type = ForwardFFT
      buffer = cbar
      input = c
    []
  []
  [Postprocess]
    [back]
      type = InverseFFT
      buffer = back
      input = cbar
    []
    [filtered]
      type = ParsedCompute
      buffer = filtered
      inputs = 'cbar smooth'
      expression = 'cbar*smooth'
    []
    [smooth]
      type = DeAliasingTensor
      buffer = smooth
      method = HOULI
    []
    [sharp]
      type = DeAliasingTensor
      buffer = sharp
      method = SHARP
    []
    [crystal]
      type = SwiftHohenbergLinear
      buffer = crystal
    []
    [constant_bar]
      type = ConstantReciprocalTensor
      buffer = constant_bar
      real = 2
    []
    [slope]
      type = FFTGradient
      buffer = slope
      input = cbar
      direction = Y
      input_is_reciprocal = true
    []
    [square]
      type = FFTGradientSquare
      buffer = square
      input = c
    []
    [gradient]
      type = GradientTensor
      buffer = gradient
      input = cbar
      input_is_reciprocal = true
    []
    [laplacian]
      type = FiniteDifferenceLaplacian
      buffer = laplacian
      input = c
      stencil_width = 5
    []
    [box]
      type = SmoothRectangleCompute
      buffer = box
      x1 = 0
      x2 = 1
      y1 = 0
      y2 = 1
      int_width = 0.3
      profile = TANH
    []
    [identity]
      type = RankTwoIdentity
      buffer = identity
    []
    [function]
      type = MooseFunctionTensor
      buffer = function
      function = wave
    []
    [reaction]
      type = ReciprocalAllenCahn
      buffer = reaction
      dF_chem_deta = c
      L = psi
      psi = psi
    []
    [diffusion]
      type = ReciprocalMatDiffusion
      buffer = diffusion
      chemical_potential = c
      mobility = psi
      psi = psi
    []
    [mixed]
      type = ParsedCompute
      buffer = mixed
      inputs = c
      extra_symbols = true
      expression = 'if(c > 0.5, x*pi, t) + (c < 0.5) + 2^0.5 + min(c, 0.3) + atan2(c, 2)'
    []
  []
[]

[TensorSolver]
  type = AdamsBashforthMoulton
  buffer = c
  reciprocal_buffer = cbar
  linear_reciprocal = stiffness
  nonlinear_reciprocal = rate
  substeps = 2
[]

[Postprocessors]
  [mean]
    type = TensorAveragePostprocessor
    buffer = c
  []
  [total]
    type = TensorIntegralPostprocessor
    buffer = c
  []
  [most]
    type = TensorExtremeValuePostprocessor
    buffer = c
    value_type = MAX
  []
  [change]
    type = TensorIntegralChangePostprocessor
    buffer = c
  []
  [speed]
    type = TensorInterfaceVelocityPostprocessor
    buffer = c
  []
  [total_bar]
    type = ReciprocalIntegral
    buffer = cbar
    execute_on = 'INITIAL TIMESTEP_END'
  []
  [critical]
    type = SemiImplicitCriticalTimeStep
    buffer = stiffness
  []
[]

[VectorPostprocessors]
  [histogram]
    type = TensorHistogram
    buffer = c
    min = 0
    max = 1
    bins = 4
  []
[]

[Executioner]
  type = Transient
  num_steps = 3
  dt = 0.1
[]

[Outputs]
  csv = true
[]
