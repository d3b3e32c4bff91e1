# call: read
[Models]
  [steel]
    type = J2Plasticity
    E = 200GPa
    nu = 0.5
    yeild_stress = 250
    isotropic_hardening = vocce
    saturated_hardening = 100
    kinematic_hardening = armstrong_frederick
    C = '20e3 5e3'
    g = '200 50 1'
    kinematic_modulus = 3
  []
[]
[Drivers]
  [test]
    type = UniaxialTest
    strain = 0.01
    cycles = 0
  []
  [misplaced]
    type = J2Plasticity
  []
[]
