# call: build parts
[Models]
  [parts]
    type = VecComponents
    from = 'traction'
    to = 'normal shear'
  []
[]
