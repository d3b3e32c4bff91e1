# call: read
[EquationSystems]
  [system]
    type = NonlinearSystem
    unknowns = 'strain; rate;'
  []
[]
