# call: build strengths
[Models]
  [strengths]
    type = SingleSlipStrengthMap
  []
[]
