# call: build hardening
[Models]
  [hardening]
    type = VoceIsotropicHardning
    saturated_hardening = 100
    saturation_rate = 1.1
  []
[]
