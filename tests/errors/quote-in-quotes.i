# call: read
[Tensors]
  [x]
    type = Python
    expr = 'torch.tensor([1.0]) # one'
  []
[]
