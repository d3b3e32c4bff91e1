# call: build normality
[Models]
  [surface]
    type = YieldFunction
    yield_stress = 100
  []
  [normality]
    type = Normality
    model = 'surface'
    function = 'yield_funtion'
    from = 'effective_stres'
    to = 'N'
  []
[]
