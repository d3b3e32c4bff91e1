# A cyclic test of a steel, by presets: ingot run examples/cyclic.i --save cyclic.csv
[Models]
  [steel]
    type = J2Plasticity
    E = 200e3
    nu = 0.3
    yield_stress = 250
    isotropic_hardening = voce
    saturated_hardening = 60
    saturation_rate = 20
    kinematic_hardening = armstrong_frederick
    C = '40e3 8e3'
    g = '400 60'
  []
[]
[Drivers]
  [cyclic]
    type = UniaxialTest
    model = steel
    strain = '0.01 -0.01'
    cycles = 5
  []
[]
