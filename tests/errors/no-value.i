# call: read
[Models]
  [model]
    type =
    models = 'elasticity'
  []
[]
