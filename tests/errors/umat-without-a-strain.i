# call: umat rate
[Models]
  [rate]
    type = SR2VariableRate
    variable = 'elongation'
  []
[]
