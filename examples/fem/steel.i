# Rate-independent plasticity of a steel, MPa: it yields at 250 and hardens linearly.
[Models]
  [steel]
    type = J2Plasticity
    E = 200e3
    nu = 0.3
    yield_stress = 250
    isotropic_hardening = linear
    hardening_modulus = 2000
  []
[]
