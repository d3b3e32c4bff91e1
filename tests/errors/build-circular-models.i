# call: build both
[Models]
  [there]
    type = ScalarLinearCombination
    from = 'x'
    to = 'y'
  []
  [back]
    type = ScalarLinearCombination
    from = 'y'
    to = 'x'
  []
  [both]
    type = ComposedModel
    models = 'there back'
  []
[]
