# call: build strengths
[Data]
  [crystal]
    type = CubicCrystal
    lattice_parameter = 1.0
    slip_directions = '1 1'
    slip_planes = '1 1 1'
  []
[]
[Models]
  [strengths]
    type = SingleSlipStrengthMap
    constant_strength = 50
    crystal_geometry = 'crystal'
  []
[]
