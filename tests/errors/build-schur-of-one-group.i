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
    linear_solver = 'schur'
  []
  [schur]
    type = SchurComplement
    primary_solver = 'lu'
    schur_solver = 'lu'
  []
  [lu]
    type = DenseLU
  []
[]
