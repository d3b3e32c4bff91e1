# call: build hardening
[Tensors]
  [strain]
    type = Python
    expr = 'SR2.fill(0.1)'
  []
[]
[Models]
  [hardening]
    type = VoceIsotropicHardening
    saturated_hardening = 'strain'
    saturation_rate = 1.1
  []
[]
