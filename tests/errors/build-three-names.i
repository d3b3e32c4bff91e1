[Models]
  [parts]
    type = VecComponents
    from = 'traction'
    to = 'normal shear'
  []
[]
