# Flow past a cylinder at a Reynolds number of 100: a von Karman street of vortices.
# Lengths are in cells, times in steps of the lattice; viscosity is (tau - 1/2) / 3.

diameter = 12
speed = 0.08
tau = 0.5288

[Domain]
  dim = 2
  nx = 240
  ny = 80
  xmax = 240
  ymax = 80
[]

[Stencil]
  [lattice]
    type = LBMD2Q9
  []
[]

[Problem]
  type = LatticeBoltzmannProblem
  binary_media = media
  substeps = 500
  marlin_compatible = false
[]

[TensorBuffers]
  [f]
    type = LBMTensorBuffer
    buffer_type = df
  []
  [feq]
    type = LBMTensorBuffer
    buffer_type = df
  []
  [collided]
    type = LBMTensorBuffer
    buffer_type = df
  []
  [velocity]
    type = LBMTensorBuffer
    buffer_type = mv
  []
  [density]
    type = LBMTensorBuffer
    buffer_type = ms
  []
  [speed]
    type = LBMTensorBuffer
    buffer_type = ms
  []
  [media]
    type = LBMTensorBuffer
    buffer_type = ms
    is_integer = true
  []
[]

[TensorComputes]
  [Initialize]
    [cylinder]
      type = ParsedCompute
      buffer = media
      expression = 'if((x - 48)^2 + (y - 41)^2 < ${diameter}^2 / 4, 0, 1)'
      extra_symbols = true
      is_integer = true
    []
    [density]
      type = LBMConstantTensor
      buffer = density
      constants = 1
    []
    [velocity]
      type = LBMConstantTensor
      buffer = velocity
      constants = '${speed} 0.02'  # across too, so that the wake does not stay symmetric
    []
    [f]
      type = LBMEquilibrium
      buffer = f
      bulk = density
      velocity = velocity
    []
    [collided]
      type = LBMEquilibrium
      buffer = collided
      bulk = density
      velocity = velocity
    []
  []
  [Boundary]
    [cylinder]
      type = LBMBounceBack
      buffer = f
      f_old = collided
      boundary = wall
    []
    [inlet]
      type = LBMFixedFirstOrderBC
      buffer = f
      f = f
      value = ${speed}
      boundary = left
    []
    [outlet]
      type = LBMMicroscopicZeroGradientBC
      buffer = f
      boundary = right
    []
  []
  [Solve]
    [density]
      type = LBMComputeDensity
      buffer = density
      f = f
    []
    [velocity]
      type = LBMComputeVelocity
      buffer = velocity
      f = f
      rho = density
    []
    [feq]
      type = LBMEquilibrium
      buffer = feq
      bulk = density
      velocity = velocity
    []
    [collision]
      type = LBMMRTCollision
      buffer = collided
      f = f
      feq = feq
      tau0 = ${tau}
    []
    [speed]
      type = LBMComputeVelocityMagnitude
      buffer = speed
      velocity = velocity
    []
  []
[]

[TensorSolver]
  type = LBMStream
  buffer = f
  f_old = collided
[]

[Executioner]
  type = Transient
  num_steps = 40
[]

[Postprocessors]
  [fastest]
    type = TensorExtremeValuePostprocessor
    buffer = speed
    value_type = MAX
  []
[]

[TensorOutputs]
  [fields]
    type = XDMFTensorOutput
    buffer = 'velocity speed'
    enable_hdf5 = true
  []
[]

[Outputs]
  csv = true
[]
