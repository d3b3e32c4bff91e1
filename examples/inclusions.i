# A square of a steel that yields, with four hard inclusions, is stretched and held in width.
[Domain]
  dim = 2
  nx = 41
  ny = 41
[]

[Problem]
  marlin_compatible = false
[]

[TensorComputes]
  [Initialize]
    [strength]
      type = ParsedCompute
      buffer = strength
      extra_symbols = true
      expression = 'a := (x-0.25)^2+(y-0.3)^2; b := (x-0.7)^2+(y-0.2)^2; c := (x-0.3)^2+(y-0.75)^2;
                    d := (x-0.75)^2+(y-0.65)^2; if(min(min(a,b),min(c,d)) < 0.16^2, 20, 1)'
      expand = REAL
    []
    [F]
      type = RankTwoIdentity
      buffer = F
    []
  []
  [Solve]
    [law]
      [strain]
        type = ComputeSmallStrain
        buffer = strain
        F = Fnew
      []
      [steel]
        type = NEML2TensorCompute
        neml2_input_file = inclusions_steel.i
        neml2_model = steel
        marlin_inputs = 'strain strength'
        neml2_inputs = 'strain strength'
        marlin_outputs = 'stress plastic_strain'
        neml2_outputs = 'stress equivalent_plastic_strain'
        marlin_derivatives = tangent
        neml2_derivatives = 'stress strain'
      []
    []
    [root]
      [load]
        type = MacroscopicDeformation
        buffer = load
        rate = '0.01 0  0 -0.01'
      []
      [mechanics]
        type = FFTMechanics
        buffer = Fnew
        constitutive_model = law
        tangent_operator = tangent
        applied_macroscopic_strain = load
        preconditioner = GREEN
        l_tol = 1e-3
        nl_rel_tol = 1e-7
      []
    []
  []
  [Postprocess]
    [axial]
      type = TensorComponent
      buffer = axial
      input = stress
      row = 0
    []
    [mises]
      type = ComputeVonMisesStress
      buffer = mises
    []
    [displacements]
      type = ComputeDisplacements
      buffer = displacements
      F = F
    []
  []
[]

[TensorSolver]
  type = ForwardEulerSolver
  root_compute = root
  forward_buffer = F
  forward_buffer_new = Fnew
[]

[Postprocessors]
  [stress]
    type = TensorAveragePostprocessor
    buffer = axial
  []
  [plastic]
    type = TensorAveragePostprocessor
    buffer = plastic_strain
  []
[]

[Executioner]
  type = Transient
  num_steps = 12
  dt = 0.05
[]
