# call: read
[Models]
  [model]
    type = ComposedModel
  []
[]
[]
