# call: read
[Models]
  [model]
    type = ComposedModel
    models = elasticity flow
  []
[]
