# call: build there
[Models]
  [there]
    type = ScalarLinearCombination
    from = 'x'
    to = 'y'
    weights = 'back'
  []
  [back]
    type = ScalarLinearCombination
    from = 'y'
    to = 'z'
    offset = 'there'
  []
[]
