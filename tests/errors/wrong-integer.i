# call: integer Solvers newton max_its
[Solvers]
  [newton]
    type = Newton
    max_its = 1e2
  []
[]
