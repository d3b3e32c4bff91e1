# call: build update
[Models]
  [norm]
    type = SR2Invariant
    tensor = 's'
    invariant = 's_residual'
    invariant_type = 'VONMISES'
  []
  [update]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
  []
[]
[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'norm'
    unknowns = 's'
  []
[]
[Solvers]
  [newton]
    type = Newton
  []
[]
