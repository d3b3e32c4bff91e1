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
    type = NonlinearSytem
    model = 'integrate'
    unknowns = 'x'
  []
[]
[Solvers]
  [newton]
    type = NewtonWithLinesearch
  []
[]
