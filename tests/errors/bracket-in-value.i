# call: read
[Tensors]
  [x]
    type = Python
    expr = y[0]
  []
[]
