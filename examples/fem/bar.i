# A steel that saturates, so that a bar of it necks; MPa.
[Models]
  [bar]
    type = J2Plasticity
    E = 206.9e3
    nu = 0.29
    yield_stress = 450
    isotropic_hardening = voce
    saturated_hardening = 265
    saturation_rate = 16.93
  []
[]
