# call: build all
[Models]
  [one]
    type = VoceIsotropicHardening
    saturated_hardening = 100
  []
  [two]
    type = SR2Invariant
    invariant_type = 'VON_MISES'
  []
  [all]
    type = ComposedModel
    models = 'one two three'
  []
[]
