# call: build update
[Models]
  [integrate]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'x'
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
    model = 'integrate'
    unknowns = 'x'
  []
[]
[Solvers]
  [newton]
    type = Newton
    linear_solver = 'krylov'
  []
  [krylov]
    type = GMRES
    restart = 0
    reltol = 1e-4
    cache_strategy = 'cord'
    preconditioner = 'schur'
  []
  [schur]
    type = SchurComplement
  []
[]
