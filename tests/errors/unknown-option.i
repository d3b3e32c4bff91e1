# call: options Models hardening type saturated_hardening saturation_rate
[Models]
  [hardening]
    type = VoceIsotropicHardening
    saturated_hardening = 100
    saturation_rte = 1.1
    [extra]
    []
  []
[]
