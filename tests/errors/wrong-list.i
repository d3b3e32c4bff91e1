# call: words EquationSystems system unknowns
[EquationSystems]
  [system]
    unknowns = 'a b; c'
  []
[]
