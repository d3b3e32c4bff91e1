# call: read
[Models]
  [steel]
    type = J2Plasticity
    E = 200e3
    nu = 0.3
    yield_stress = 250
  []
  [steel_yield]
    type = YieldFunction
    yield_stress = 1
  []
[]
