# call: build both
[Models]
  [norm]
    type = SR2Invariant
    tensor = 's'
    invariant = 'size'
    invariant_type = 'I1'
  []
  [twice]
    type = SR2LinearCombination
    from = 'size'
    weights = '2'
  []
  [both]
    type = ComposedModel
    models = 'norm twice'
  []
[]
