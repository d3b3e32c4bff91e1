# call: build all
[Models]
  [surface]
    type = YieldFunction
    yield_stress = 100
  []
  [all]
    type = ComposedModel
    models = 'surface'
    additional_outputs = 'yield_fonction'
  []
[]
