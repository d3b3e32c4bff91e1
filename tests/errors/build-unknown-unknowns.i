# call: build update
[Models]
  [integrate]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'strain'
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
    unknowns = 'strian flow'
    residuals = 'strain_residul'
  []
[]
[Solvers]
  [newton]
    type = Newton
  []
[]
