# call: build both
[Models]
  [one]
    type = ScalarLinearCombination
    from = 'x'
    to = 'y'
  []
  [other]
    type = ScalarLinearCombination
    from = 'z'
    to = 'y'
  []
  [both]
    type = ComposedModel
    models = 'one other'
  []
[]
