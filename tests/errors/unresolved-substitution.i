# call: read
nbatch = 5
[Tensors]
  [x]
    type = Python
    expr = '''
      result = torch.zeros(${nbacth})
    '''
  []
[]
