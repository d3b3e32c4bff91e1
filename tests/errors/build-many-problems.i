# call: build hardening
[Models]
  [hardening]
    type = VoceIsotropicHardening
    saturation_rte = 1.1
    [extra]
    []
  []
[]
