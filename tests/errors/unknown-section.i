# call: sections Models Tensors Drivers
[Modles]
[]
[Tensor]
[]
